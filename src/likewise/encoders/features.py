"""Make model inputs from texts; each distinct text is tokenized once, however often it is used.

Batches are padded from the stored ids. Encoders whose inputs are not plain rows of ids (static averages)
tokenize each batch again, which costs almost nothing.

A text of more tokens than the encoder reads is cut, or divided into windows (`long`):

    cut     the first tokens, up to the limit
    chunk   windows of whole tokens, each as long as the limit allows; markers and the prompt stand around
            each of them. A window begins an eighth before the end of the former one, so that words at a
            border are read with what precedes them and with what follows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from likewise.answering import CHUNK, CUT, Long
from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_ROWS = ("input_ids", "attention_mask", "token_type_ids")
# Texts and characters that are tokenized at once: tokenizers hold a hundred bytes for a token, cut or not.
_WINDOW = 512
_WINDOW_CHARS = 2_000_000
# The share of a window that it has in common with the former one.
OVERLAP = 1 / 8
_LIMITING = ("text", "common")
# Tokenizers without a limit say a number like this.
_NO_LIMIT = 10**9


def default_prompt(encoder: SentenceTransformer) -> str | None:
    """The text that the encoder puts before every text by default, such as E5's "query: "."""
    name = encoder.default_prompt_name
    return encoder.prompts.get(name) or None if name else None


def token_limit(encoder: SentenceTransformer) -> int | None:
    """The number of tokens, markers included, after which an encoder cuts a text; None if it cuts none."""
    own = getattr(encoder[0], "processing_kwargs", None) or {}  # of a folder, for texts and for any input
    known = [getattr(encoder, "max_seq_length", None), *(own.get(k, {}).get("max_length") for k in _LIMITING)]
    limits = [int(limit) for limit in known if limit is not None and limit < _NO_LIMIT]
    return min(limits, default=None)


class Window(NamedTuple):
    """A text, or a window of one, under its key in the features; `weight` is the number of tokens it adds."""

    key: str | bytes
    weight: int


def _tokens_that_say_nothing(encoder: SentenceTransformer) -> frozenset[int] | None:
    """The unknown token and the markers; None if the tokenizer has no unknown token."""
    tokenizer = getattr(encoder[0], "tokenizer", None)
    unknown = getattr(tokenizer, "unk_token_id", None)
    markers = getattr(tokenizer, "all_special_ids", None)
    return None if unknown is None or markers is None else frozenset([unknown, *markers])


class TextFeatures:
    """The model inputs of one encoder; every distinct text is tokenized once."""

    def __init__(self, encoder: SentenceTransformer, prompt: str | None = None, *, long: Long = CUT) -> None:
        self._encoder, self._long = encoder, long
        self._prompt = prompt or default_prompt(encoder)
        self._rows: dict[str | bytes, tuple[Tensor, ...]] = {}
        self._lengths: dict[str | bytes, int] = {}
        self._parts: dict[str, list[Window]] = {}
        # Hashes of the texts of which only the beginning is read.
        self.cut: set[int] = set()
        # Hashes of the texts of which no token is known: all of them have the same vector.
        self.unknown: set[int] = set()
        self._nothing = None if self._prompt else _tokens_that_say_nothing(encoder)
        sample = self._preprocess(["a", "a a"])
        self._keys = tuple(key for key in _ROWS if key in sample)
        self._extra = {key: value for key, value in sample.items() if not isinstance(value, Tensor)}
        self._with_lengths = "sentence_lengths" in sample
        self._stored = "attention_mask" in sample and not (
            {key for key, value in sample.items() if isinstance(value, Tensor)} - {*_ROWS, "sentence_lengths"}
        )
        self._pad = {"input_ids": self._pad_id(sample)}
        self.limit = token_limit(encoder) if self._stored else None

    def _preprocess(self, texts: Sequence[str], **options: Any) -> Any:
        try:
            return self._encoder.preprocess(list(texts), prompt=self._prompt, **options)
        except Exception as error:
            if type(error) is not Exception:
                raise
            # The tokenizers library has no class of its own for what its models cannot do.
            found = " ".join(str(error).split())[:200]
            raise ModelError(
                f"the model's tokenizer failed on a text ({found}). Use another model."
            ) from error

    def _pad_id(self, sample: Any) -> int:
        if "attention_mask" not in sample:
            return 0
        padded = sample["input_ids"][sample["attention_mask"] == 0]
        return int(padded[0]) if len(padded) else 0

    def add(self, texts: Iterable[str]) -> None:
        """Tokenize the texts that were not tokenized before."""
        new = sorted({text for text in texts if text not in self._lengths}, key=len)
        for group in _groups(new):
            self._add_window(group)

    def add_long(self, texts: Iterable[str]) -> None:
        """Tokenize the texts that may be longer than the limit: a token is at least one byte of its text."""
        if self.limit is None:
            return
        room = self.limit - 8 - len((self._prompt or "").encode())
        self.add(text for text in texts if len(text) * 4 > room and len(text.encode()) > room)

    def _add_window(self, texts: Sequence[str]) -> None:
        features = self._preprocess(texts)
        if not self._stored:
            self._lengths.update({text: 1 + len(text) // 6 for text in texts})
            return
        lengths = features["attention_mask"].sum(dim=1).tolist()
        for index, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            mask = features["attention_mask"][index].bool()
            self._rows[text] = tuple(features[key][index][mask] for key in self._keys)
            self._lengths[text] = int(length)
            if self._nothing is not None and self._nothing.issuperset(self._rows[text][0].tolist()):
                self.unknown.add(hash(text))
        if self.limit is None:
            return
        encodings = getattr(features, "encodings", None)
        for index, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            if length < self.limit:
                continue
            if self._is_cut(text, None if encodings is None else encodings[index]):
                if self._long == CHUNK:
                    self._divide(text)
                else:
                    self.cut.add(hash(text))

    def _is_cut(self, text: str, encoding: Any) -> bool:
        """Whether a text that fills the limit has more tokens; fast tokenizers keep what they cut off."""
        if encoding is not None:
            return bool(encoding.overflowing)
        return len(self._whole(text)[0]) > self._lengths[text]

    def _whole(self, text: str) -> list[Tensor]:
        """All tokens of a text, in the rows of `_keys`."""
        split = getattr(getattr(self._encoder[0], "tokenizer", None), "tokenize", None)
        if self._with_lengths and split is not None:  # word vectors
            ids = torch.tensor(split(f"{self._prompt or ''}{text}"), dtype=torch.long)
            return [ids if key == "input_ids" else torch.ones_like(ids) for key in self._keys]
        whole = {"text": {"truncation": False, "verbose": False}}
        found = self._preprocess([text], processing_kwargs=whole)
        return [found[key][0] for key in self._keys]

    def _divide(self, text: str) -> None:
        """Store the windows of a text that is longer than the limit."""
        rows, limit = self._whole(text), self.limit or 0
        before, behind = self._around
        room = limit - before - behind
        if room < 2:
            self.cut.add(hash(text))  # a prompt that leaves no room
            return
        body = len(rows[0]) - before - behind
        parts, read = [], 0
        for start in range(0, body, max(1, room - int(room * OVERLAP))):
            end = min(start + room, body)
            window = tuple(
                torch.cat([row[:before], row[before + start : before + end], row[len(row) - behind :]])
                for row in rows
            )
            key = window[self._keys.index("input_ids")].numpy().tobytes()
            self._rows[key], self._lengths[key] = window, len(window[0])
            parts.append(Window(key, end - read))
            read = end
            if end == body:
                break
        self._parts[text] = parts

    @cached_property
    def _around(self) -> tuple[int, int]:
        """How many tokens stand before every text (markers, the prompt) and behind it."""
        empty, one = (self._whole(text)[0].tolist() for text in ("", "a"))
        before = _common(empty, one)
        return before, _common(empty[before:][::-1], one[before:][::-1])

    def parts(self, text: str) -> list[Window]:
        """The windows of a text that was divided, or the text itself."""
        if text not in self._lengths:
            self.add([text])
        return self._parts.get(text) or [Window(text, self._lengths[text])]

    def length(self, text: str | bytes) -> int:
        """The number of tokens of a text, or of a window, including markers."""
        if isinstance(text, str) and text not in self._lengths:
            self.add([text])
        return self._lengths[text]

    def batch(self, texts: Sequence[str | bytes]) -> dict[str, Any]:
        """The padded model inputs of these texts and windows, in their order."""
        named = [text for text in texts if isinstance(text, str)]
        self.add(named)
        if not self._stored:
            return dict(self._preprocess(named))
        columns = zip(*(self._rows[text] for text in texts), strict=True)
        batch: dict[str, Any] = dict(self._extra)
        for key, rows in zip(self._keys, columns, strict=True):
            batch[key] = pad_sequence(list(rows), batch_first=True, padding_value=self._pad.get(key, 0))
        if self._with_lengths:
            batch["sentence_lengths"] = torch.tensor([self._lengths[text] for text in texts])
        return batch

    def forget(self) -> None:
        """Remove the stored texts; long scoring runs call this between windows to limit memory."""
        self._rows.clear()
        self._lengths.clear()
        self._parts.clear()


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in groups that are tokenized at once."""
    group: list[str] = []
    chars = 0
    for text in texts:
        if group and (len(group) == _WINDOW or chars + len(text) > _WINDOW_CHARS):
            yield group
            group, chars = [], 0
        group.append(text)
        chars += len(text)
    if group:
        yield group


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two rows begin with in common."""
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return place
    return min(len(a), len(b))
