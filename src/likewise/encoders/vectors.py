"""Encode texts at inference, each distinct text once, in batches of a limited number of tokens.

A text that is longer than the encoder's limit may be read in windows (`encoders.features`). Its vector is the
mean of theirs, weighted by the number of tokens that each adds, so that every token of the text counts once:
with mean pooling, this is what the encoder does with a text that fits. A mean of unit vectors is shorter than
one, so it is put back on unit length if the encoder ends with Normalize.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from likewise.answering import CHUNK, CUT, Long, Vectors
from likewise.data.batching import token_budget_batches
from likewise.encoders.features import TextFeatures, Window
from likewise.encoders.sentence import autocast_settings, check_precision
from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEFAULT_BUDGET = 2048
_GPU_BUDGET = 32_768
# Characters of texts that are divided into windows and held at once.
_GROUP_CHARS = 16_000_000


def to_device(features: dict[str, object], device: torch.device) -> dict[str, object]:
    """Move the tensors of a feature mapping to a device."""
    return {key: value.to(device) if isinstance(value, Tensor) else value for key, value in features.items()}


@torch.inference_mode()
def encode_texts(
    encoder: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: str = "fp32",
    token_budget: int | None = None,
    features: TextFeatures | None = None,
    progress: Callable[[int], None] | None = None,
) -> Vectors:
    """The vectors of texts, N×d, in the given order; `progress` receives the number of encoded texts.

    `features` made with long="chunk" divide the texts that are longer than the encoder's limit. Without a
    `token_budget`, batches are as large as the device deserves.
    """
    if token_budget is None:
        token_budget = DEFAULT_BUDGET if encoder.device.type == "cpu" else _GPU_BUDGET
    features = features or TextFeatures(encoder)
    distinct = list(dict.fromkeys(texts))
    features.add(distinct)
    parts = [features.parts(text) for text in distinct]
    owners: dict[str | bytes, list[int]] = {}
    for index, mine in enumerate(parts):
        for key in dict.fromkeys(part.key for part in mine):
            owners.setdefault(key, []).append(index)
    waiting = [len({part.key for part in mine}) for mine in parts]
    pieces = list(owners)
    lengths = [features.length(piece) for piece in pieces]
    was_training = encoder.training
    encoder.eval()
    rows: dict[str | bytes, Vectors] = {}
    try:
        for batch in token_budget_batches(lengths, budget=token_budget):
            inputs = to_device(features.batch([pieces[i] for i in batch]), encoder.device)
            with torch.autocast(**autocast_settings(precision, str(encoder.device))):
                vectors = _encoded(encoder, inputs)
            done = 0
            for index, vector in zip(batch, vectors.float().cpu().numpy(), strict=True):
                rows[pieces[index]] = vector
                for owner in owners[pieces[index]]:
                    waiting[owner] -= 1
                    done += not waiting[owner]
            if progress is not None:
                progress(done)
    finally:
        encoder.train(was_training)
    if not distinct:
        return np.zeros((0, int(encoder.get_embedding_dimension() or 0)), dtype=np.float32)
    unit = type(encoder[-1]).__name__ == "Normalize"
    found = {text: _pooled(rows, mine, unit=unit) for text, mine in zip(distinct, parts, strict=True)}
    return np.stack([found[text] for text in texts])


def _pooled(rows: dict[str | bytes, Vectors], parts: Sequence[Window], *, unit: bool) -> Vectors:
    """The vector of a text from those of its windows."""
    if len(parts) == 1:
        return rows[parts[0].key]
    windows = np.stack([rows[part.key] for part in parts])
    mean = np.average(windows, axis=0, weights=[part.weight for part in parts])
    length = float(np.linalg.norm(mean)) if unit else 1.0
    pooled: Vectors = (mean / (length or 1.0)).astype(np.float32)
    return pooled


def _encoded(encoder: SentenceTransformer, inputs: dict[str, object]) -> Tensor:
    """The vectors of a batch; raises an error for tokens that the network does not have."""
    try:
        vectors: Tensor = encoder(inputs)["sentence_embedding"]
    except IndexError as error:
        raise ModelError(
            f"the encoder's tokenizer gives tokens that its network does not have ({error}). "
            "Its folder is damaged. Copy the model or train it again."
        ) from error
    return vectors


class VectorCache:
    """A store of vectors by text with limited capacity; the least recently used vectors are dropped first."""

    def __init__(self, capacity: int = 100_000) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()

    def __len__(self) -> int:
        return len(self._vectors)

    def clear(self) -> None:
        """Remove all vectors."""
        self._vectors.clear()

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts that are not stored."""
        return [text for text in dict.fromkeys(texts) if text not in self._vectors]

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the vectors of texts."""
        for text, vector in zip(texts, vectors, strict=True):
            self._vectors[text] = vector

    def take(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of stored texts, then drop the oldest ones beyond the capacity."""
        rows = []
        for text in texts:
            self._vectors.move_to_end(text)
            rows.append(self._vectors[text])
        while len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)
        return np.stack(rows)


class Encoding:
    """An encoder for inference, with batches of a limited number of tokens and a cache of recent vectors."""

    def __init__(
        self,
        encoder: SentenceTransformer,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
        kept: int = 100_000,
        keep_tokens: bool = False,
        long: Long = CUT,
    ) -> None:
        self._encoder, self._token_budget, self._keep_tokens = encoder, token_budget, keep_tokens
        self.precision, self.long = check_precision(precision), long
        self._features = TextFeatures(encoder, long=long)
        self._cache = VectorCache(kept)

    @property
    def limit(self) -> int | None:
        """The number of tokens after which a text is cut, or None."""
        return self._features.limit

    @property
    def cut(self) -> set[int]:
        """Hashes of the texts of which only the beginning was read."""
        return self._features.cut

    @property
    def unknown(self) -> set[int]:
        """Hashes of the texts of which no token is known."""
        return self._features.unknown

    def measure(self, texts: Sequence[str]) -> None:
        """Find the texts that would be cut, where their vectors come from elsewhere."""
        self._features.add_long(texts)
        if not self._keep_tokens:
            self._features.forget()

    def encode(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> Vectors:
        """The vectors of texts, N×d, computed now."""
        if self.long == CHUNK and len(groups := list(_groups(texts))) > 1:
            return np.concatenate([self._encode(group, progress) for group in groups])
        return self._encode(texts, progress)

    def _encode(self, texts: Sequence[str], progress: Callable[[int], None] | None) -> Vectors:
        vectors = encode_texts(
            self._encoder,
            texts,
            precision=self.precision,
            token_budget=self._token_budget,
            features=self._features,
            progress=progress,
        )
        if not self._keep_tokens:
            self._features.forget()
        return vectors

    def forget(self) -> None:
        """Empty the cache, because the encoder has changed."""
        self._cache.clear()

    def recall(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> Vectors:
        """The vectors of texts, N×d, from the cache where possible."""
        if not texts:
            return np.zeros((0, int(self._encoder.get_embedding_dimension() or 0)), dtype=np.float32)
        missing = self._cache.missing(texts)
        if missing:
            self._cache.put(missing, self.encode(missing, progress=progress))
        return self._cache.take(texts)


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in groups of a limited number of characters."""
    group: list[str] = []
    chars = 0
    for text in texts:
        if group and chars + len(text) > _GROUP_CHARS:
            yield group
            group, chars = [], 0
        group.append(text)
        chars += len(text)
    yield group
