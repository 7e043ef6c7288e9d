"""Distillation: an encoder learns the cosines that other models, the teachers, give to pairs of texts.

    u_k        unit vectors of teacher k; c_k = u_k·u_k' is its cosine of two texts
    σ_k        standard deviation of c_k over random pairs of texts
    v          the u_k one behind the other, each divided by √(K σ_k), so v·v' = mean of c_k / σ_k
    p          proximity of two texts: (v·v' − μ) / (v·v − μ), where μ is the mean of v·v' over random pairs;
               0 for random pairs on average, 1 for the same text
    target t   f + (1 − f) p, where f is the encoder's own mean cosine of random pairs before training
    loss       Σ w (s − t)² / (1 − f)² / Σ w over all pairs of a batch; s is the encoder's cosine
    weight w   1 + near · p₊², because a batch has few pairs of close texts and many of unrelated ones

Standardising lets teachers with other ranges of cosines count alike: E5's cosines lie in .7 to 1, those of
all-MiniLM in −.1 to 1. The target starts where the encoder is, so training changes what it knows and not the
level of its cosines. A batch consists of texts and some of their nearest neighbours by the teachers, since
random texts are hardly ever close.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from likewise.answering import Numbers, Vectors
from likewise.errors import DataError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Random pairs of texts over which cosines are standardised.
_RANDOM_PAIRS = 100_000
# A teacher that gives all pairs of texts the same cosine teaches nothing.
_FLAT = 1e-6
_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Taught:
    """What the teachers say of pairs of texts: the vectors v, N×D in half precision, and μ and v·v."""

    vectors: Tensor
    random: float
    own: float

    @classmethod
    def of(cls, teachers: list[Vectors], names: list[str]) -> Taught:
        """The teachers' vectors, N×d each, standardised and joined."""
        texts = len(teachers[0])
        if texts < 2:
            raise DataError("distillation needs at least two different texts. Add texts (stage.N.data).")
        a, b = random_pairs(texts)
        spreads = []
        for vectors, name in zip(teachers, names, strict=True):
            spread = float(_cosines(vectors, a, b).std())
            if not spread > _FLAT:
                raise DataError(f"teacher {name} gives all texts the same cosine. Choose another teacher.")
            spreads.append(spread)
        joined = np.empty((texts, sum(vectors.shape[1] for vectors in teachers)), dtype=np.float16)
        start = 0
        for vectors, spread in zip(teachers, spreads, strict=True):
            width = vectors.shape[1]
            for row in range(0, texts, _ROWS):
                part = unit_rows(np.asarray(vectors[row : row + _ROWS]))
                joined[row : row + _ROWS, start : start + width] = part / (len(teachers) * spread) ** 0.5
            start += width
        own = sum(1 / spread for spread in spreads) / len(teachers)
        random = np.einsum("nd,nd->n", joined[a].astype(np.float32), joined[b].astype(np.float32)).mean()
        return cls(torch.from_numpy(joined), float(random), own)

    def to(self, device: torch.device) -> Taught:
        """The same on a device."""
        return replace(self, vectors=self.vectors.to(device))

    def proximity(self, rows: Tensor) -> Tensor:
        """p of all pairs of these texts, B×B."""
        chosen = self.vectors[rows].float()
        return (chosen @ chosen.T - self.random) / (self.own - self.random)

    def proximity_of(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Numbers:
        """p of single pairs of texts, by their numbers."""
        first, second = (self.vectors[torch.from_numpy(side)].float() for side in (a, b))
        found = ((first * second).sum(dim=1).double() - self.random) / (self.own - self.random)
        return found.cpu().numpy()


class CosineLearner(nn.Module):
    """The encoder, and the loss between its cosines and the teachers'."""

    def __init__(self, encoder: SentenceTransformer, taught: Taught, *, floor: float, near: float) -> None:
        super().__init__()
        self.encoder = encoder
        self._taught, self._floor, self._near = taught, floor, near

    def ask(self, taught: Taught) -> None:
        """Use the teachers' vectors on another device."""
        self._taught = taught

    def forward(
        self, chunks: list[dict[str, Any]], order: Tensor, texts: Tensor, weight: float = 1.0
    ) -> dict[str, Tensor]:
        """The loss of one step: chunks of distinct texts, the row of each in them, and their numbers."""
        vectors = torch.cat([self.encoder(dict(chunk))["sentence_embedding"] for chunk in chunks])
        unit = functional.normalize(vectors[order].float(), dim=-1)
        near = self._taught.proximity(texts)
        target = self._floor + (1 - self._floor) * near
        return {"loss": weight * matrix_loss(unit @ unit.T, target, near, self._floor, self._near)}


def matrix_loss(said: Tensor, target: Tensor, proximity: Tensor, floor: float, near: float) -> Tensor:
    """Σ w (s − t)² / (1 − f)² / Σ w over the pairs above the diagonal of B×B matrices."""
    with torch.autocast(said.device.type, enabled=False):
        above = torch.ones_like(said, dtype=torch.bool).triu(diagonal=1)
        weights = 1 + near * proximity.clamp(min=0)[above] ** 2
        errors = ((said.float() - target)[above] / (1 - floor)) ** 2
        return (weights * errors).sum() / weights.sum()


def random_pairs(texts: int, count: int = _RANDOM_PAIRS) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of random pairs of different texts; the same for the same number of texts."""
    rng = np.random.default_rng(5)
    count = min(count, texts * (texts - 1))
    a = rng.integers(0, texts, count)
    return a, (a + rng.integers(1, texts, count)) % texts


def mean_cosine(vectors: Vectors) -> float:
    """The mean cosine of random pairs of texts."""
    a, b = random_pairs(len(vectors))
    return float(_cosines(vectors, a, b).mean())


def unit_rows(vectors: Vectors) -> Vectors:
    """Vectors with length one; a vector of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(lengths, 1e-12)
    return scaled


def _cosines(vectors: Vectors, a: NDArray[np.int64], b: NDArray[np.int64]) -> Numbers:
    parts = []
    for start in range(0, len(a), _ROWS):
        first, second = (unit_rows(vectors[side[start : start + _ROWS]]) for side in (a, b))
        parts.append((first * second).sum(axis=1))
    return np.concatenate(parts).astype(np.float64)
