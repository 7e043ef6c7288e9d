"""Encode texts at inference, each distinct text once, in batches of a limited number of tokens."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from likewise.answering import Vectors
from likewise.data.batching import token_budget_batches
from likewise.encoders.features import TextFeatures
from likewise.encoders.sentence import autocast_settings, check_precision
from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEFAULT_BUDGET = 2048


def to_device(features: dict[str, object], device: torch.device) -> dict[str, object]:
    """Move the tensors of a feature mapping to a device."""
    return {key: value.to(device) if isinstance(value, Tensor) else value for key, value in features.items()}


@torch.inference_mode()
def encode_texts(
    encoder: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: str = "fp32",
    token_budget: int = DEFAULT_BUDGET,
    features: TextFeatures | None = None,
    progress: Callable[[int], None] | None = None,
) -> Vectors:
    """The vectors of texts, N×d, in the given order; `progress` receives the number of encoded texts."""
    features = features or TextFeatures(encoder)
    distinct = list(dict.fromkeys(texts))
    features.add(distinct)
    lengths = [features.length(text) for text in distinct]
    was_training = encoder.training
    encoder.eval()
    rows: list[Vectors | None] = [None] * len(distinct)
    try:
        for batch in token_budget_batches(lengths, budget=token_budget):
            inputs = to_device(features.batch([distinct[i] for i in batch]), encoder.device)
            with torch.autocast(**autocast_settings(precision, str(encoder.device))):
                vectors = _encoded(encoder, inputs)
            for index, vector in zip(batch, vectors.float().cpu().numpy(), strict=True):
                rows[index] = vector
            if progress is not None:
                progress(len(batch))
    finally:
        encoder.train(was_training)
    place = {text: index for index, text in enumerate(distinct)}
    if not distinct:
        return np.zeros((0, int(encoder.get_embedding_dimension() or 0)), dtype=np.float32)
    return np.stack([rows[place[text]] for text in texts])  # type: ignore[misc]


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
    ) -> None:
        self._encoder, self._token_budget, self._keep_tokens = encoder, token_budget, keep_tokens
        self.precision = check_precision(precision)
        self._features = TextFeatures(encoder)
        self._cache = VectorCache(kept)

    def encode(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> Vectors:
        """The vectors of texts, N×d, computed now."""
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
