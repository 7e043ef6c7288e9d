"""Make model inputs from texts; each distinct text is tokenized once, however often it is used.

Batches are padded from the stored ids. Encoders whose inputs are not plain rows of ids (static averages)
tokenize each batch again, which costs almost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_ROWS = ("input_ids", "attention_mask", "token_type_ids")
_WINDOW = 512


def default_prompt(encoder: SentenceTransformer) -> str | None:
    """The text that the encoder puts before every text by default, such as E5's "query: "."""
    name = encoder.default_prompt_name
    return encoder.prompts.get(name) or None if name else None


class TextFeatures:
    """The model inputs of one encoder; every distinct text is tokenized once."""

    def __init__(self, encoder: SentenceTransformer, prompt: str | None = None) -> None:
        self._encoder = encoder
        self._prompt = prompt or default_prompt(encoder)
        self._rows: dict[str, tuple[Tensor, ...]] = {}
        self._lengths: dict[str, int] = {}
        sample = self._preprocess(["a", "a a"])
        self._keys = tuple(key for key in _ROWS if key in sample)
        self._extra = {key: value for key, value in sample.items() if not isinstance(value, Tensor)}
        self._with_lengths = "sentence_lengths" in sample
        self._stored = "attention_mask" in sample and not (
            {key for key, value in sample.items() if isinstance(value, Tensor)} - {*_ROWS, "sentence_lengths"}
        )
        self._pad = {"input_ids": self._pad_id(sample)}

    def _preprocess(self, texts: Sequence[str]) -> dict[str, Any]:
        try:
            return dict(self._encoder.preprocess(list(texts), prompt=self._prompt))
        except Exception as error:
            if type(error) is not Exception:
                raise
            # The tokenizers library has no class of its own for what its models cannot do.
            found = " ".join(str(error).split())[:200]
            raise ModelError(
                f"the model's tokenizer failed on a text ({found}). Use another model."
            ) from error

    def _pad_id(self, sample: dict[str, Any]) -> int:
        if "attention_mask" not in sample:
            return 0
        padded = sample["input_ids"][sample["attention_mask"] == 0]
        return int(padded[0]) if len(padded) else 0

    def add(self, texts: Iterable[str]) -> None:
        """Tokenize the texts that were not tokenized before."""
        new = sorted({text for text in texts if text not in self._lengths}, key=len)
        for start in range(0, len(new), _WINDOW):
            self._add_window(new[start : start + _WINDOW])

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

    def length(self, text: str) -> int:
        """The number of tokens of a text, including markers."""
        if text not in self._lengths:
            self.add([text])
        return self._lengths[text]

    def batch(self, texts: Sequence[str]) -> dict[str, Any]:
        """The padded model inputs of these texts, in their order."""
        self.add(texts)
        if not self._stored:
            return self._preprocess(texts)
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
