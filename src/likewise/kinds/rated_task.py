"""RatedTask: what stage 2 of the multilingual method learns from: cosines against ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from likewise.kinds.parallel_task import ParallelVectors
from likewise.losses import Loss

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RatedVectors:
    """Rated pairs as rows of a matrix of distinct texts.

    `vectors` N×d; `a`, `b` rows of it, `target` (0..1) and `group` (data entries), P each; `weight` says how
    often a row is drawn, None where all are drawn once.
    """

    vectors: NDArray[np.float32]
    a: Rows
    b: Rows
    target: NDArray[np.float32]
    group: Rows
    weight: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, slots=True)
class ParallelAlignment:
    """Translations that go on finding each other among the others of a batch: InfoNCE, both ways."""

    data: ParallelVectors
    weight: float = 0.1
    temperature: float = 0.05
    batch_size: int = 256

    def loss(self, adapt: nn.Module, generator: np.random.Generator) -> Tensor:
        """The weighted loss of a batch drawn by the generator."""
        rows = generator.integers(0, len(self.data), self.batch_size)
        texts = np.concatenate([self.data.a[rows], self.data.b[rows]])
        z = functional.normalize(adapt(torch.from_numpy(self.data.vectors[texts])), dim=1)
        s, t = z.chunk(2)
        logits = s @ t.T / self.temperature
        own = torch.arange(len(rows))
        both = functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)
        return self.weight * both / 2


class RatedTask:
    """Stage 2 over cached vectors: g(cos(adapt(x_a), adapt(x_b))) against the rating."""

    def __init__(
        self,
        adapt: nn.Module,
        cosine_map: nn.Module,
        loss: Loss,
        data: RatedVectors,
        *,
        evaluate: Callable[[], Mapping[str, float]],
        batch_size: int = 64,
        seed: int = 1,
        grouped: bool = False,
        alignment: ParallelAlignment | None = None,
    ) -> None:
        self._adapt, self._map, self._loss, self._data = adapt, cosine_map, loss, data
        self._evaluate, self._batch, self._seed, self._grouped = evaluate, batch_size, seed, grouped
        self._alignment = alignment
        self._vectors = torch.from_numpy(data.vectors)

    @property
    def pairs(self) -> int:
        """Training pairs."""
        return len(self._data)

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """One loss per batch; the last, smaller batch counts like the others."""
        generator = np.random.default_rng([self._seed, epoch])
        order = self._order(generator)
        for start in range(0, len(order), self._batch):
            loss = self._step(order[start : start + self._batch])
            if self._alignment is not None:
                loss = loss + self._alignment.loss(self._adapt, generator)
            yield loss

    def _order(self, generator: np.random.Generator) -> Rows:
        count, weight = len(self._data), self._data.weight
        if weight is None:
            return generator.permutation(count)
        return generator.choice(count, count, p=weight / weight.sum())

    def evaluate(self) -> Mapping[str, float]:
        """Numbers on dev."""
        return self._evaluate()

    def _step(self, rows: Rows) -> Tensor:
        data = self._data
        texts = self._vectors[torch.from_numpy(np.concatenate([data.a[rows], data.b[rows]]))]
        u, v = self._adapt(texts).chunk(2)
        output = self._map(functional.cosine_similarity(u, v, dim=1))
        target, mask = torch.from_numpy(data.target[rows]), torch.ones(len(rows), dtype=torch.bool)
        # Losses that compare pairs do so within a data entry.
        options = {"group": torch.from_numpy(data.group[rows])} if self._grouped else {}
        return self._loss(output, target, mask, **options).mean()
