"""The texts of a step, each distinct one once and in chunks of similar length; vectors before step 1; what is
cut off training texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Chunks of one batch may differ this much in length before a new chunk is opened (CPU; a GPU takes one
# chunk).
_CHUNK_GROWTH = 1.3
_CHUNK_MINIMUM = 8
# The same for batches of hundreds of texts on a GPU, where a chunk costs more than some padding.
_LARGE_GROWTH, _LARGE_MINIMUM = 2.0, 64


class DistinctTexts:
    """The distinct texts of a step, shortest first, and the row of each among their vectors."""

    def __init__(
        self, texts: Iterable[str], features: TextFeatures, *, chunked: bool, large: bool = False
    ) -> None:
        self.texts = sorted(set(texts), key=lambda text: (features.length(text), text))
        self._place = {text: index for index, text in enumerate(self.texts)}
        # On a GPU one chunk is faster, unless hundreds of texts would be padded to the longest.
        if chunked:
            chunks: Iterable[list[str]] = length_chunks(self.texts, features)
        elif large:
            chunks = length_chunks(self.texts, features, growth=_LARGE_GROWTH, minimum=_LARGE_MINIMUM)
        else:
            chunks = [self.texts]
        self.chunks: list[dict[str, Any]] = [features.batch(chunk) for chunk in chunks]

    def rows(self, texts: Iterable[str]) -> torch.Tensor:
        """The row of each text in the vectors of all chunks."""
        return torch.tensor([self._place[text] for text in texts])


def length_chunks(
    distinct: Sequence[str],
    features: TextFeatures,
    *,
    growth: float = _CHUNK_GROWTH,
    minimum: int = _CHUNK_MINIMUM,
) -> Iterator[list[str]]:
    """Texts sorted by length, cut into chunks where padding would grow."""
    chunk: list[str] = []
    for text in distinct:
        if len(chunk) >= minimum and features.length(text) > growth * features.length(chunk[0]):
            yield chunk
            chunk = []
        chunk.append(text)
    yield chunk


def cut_notes(features: TextFeatures, texts: Iterable[str]) -> list[str]:
    """A line of the plan about training texts of which only the beginning is read; none if all are read.

    Only texts that may be too long are tokenized. The features keep their tokens for training.
    """
    distinct = set(texts)
    features.add_long(distinct)
    return cut_note(sum(hash(text) in features.cut for text in distinct), len(distinct), features.limit)


def cut_note(cut: int, of: int, limit: int | None, noun: str = "text") -> list[str]:
    """The line for `cut` of so many distinct training texts."""
    if not cut or limit is None:
        return []
    are, their = ("is", "its") if cut == 1 else ("are", "their")
    rest = f"longer than {limit:,} tokens; only {their} beginning is read"
    return [f"{cut:,} of {of:,} training {noun}s {are} {rest}"]


class Anchors:
    """Vectors of all training texts before the first step, in half precision."""

    def __init__(self, encoder: SentenceTransformer, texts: Iterable[str], features: TextFeatures) -> None:
        distinct = list(dict.fromkeys(texts))
        self._place = {text: row for row, text in enumerate(distinct)}
        self._vectors = encode_texts(encoder, distinct, features=features).astype(np.float16)

    def take(self, texts: Sequence[str]) -> torch.Tensor:
        """Vectors of these texts, N×d."""
        return torch.from_numpy(self._vectors[[self._place[text] for text in texts]]).float()
