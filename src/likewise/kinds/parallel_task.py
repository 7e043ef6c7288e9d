"""ParallelTask: what stage 1 of the multilingual method learns from, batch by batch, on cached vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.methods.multilingual import MeaningSplit, SplitLoss, SplitSides

Form = Literal["paper", "fused"]
Rows = NDArray[np.int64]
# Pairs of the dev share that are looked at after every epoch.
_DEV_PAIRS = 50_000


@dataclass(frozen=True, slots=True)
class ParallelVectors:
    """Translations as rows of a matrix of distinct texts.

    `vectors` N×d; `a`, `b` P rows of it; `language_a`, `language_b` P language numbers; `group` P numbers of
    the language pair, by which rows are balanced.
    """

    vectors: NDArray[np.float32]
    a: Rows
    b: Rows
    language_a: Rows
    language_b: Rows
    group: Rows

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows of one epoch, aligned: translations, negatives, and texts of the same language."""

    rows: Rows
    others: Rows
    same_a: Rows
    same_b: Rows


class ParallelTask:
    """Stage 1 over cached vectors."""

    def __init__(
        self,
        split: MeaningSplit,
        loss: SplitLoss,
        data: ParallelVectors,
        *,
        form: Form = "paper",
        batch_size: int = 512,
        dev_share: float = 0.2,
        balance: float = 1.0,
        seed: int = 1,
        rated: Callable[[], Mapping[str, float]] | None = None,
        select: Literal["loss", "rated"] = "loss",
    ) -> None:
        self._split, self._loss, self._data = split, loss, data
        self._form, self._batch, self._balance, self._seed = form, batch_size, balance, seed
        self._rated, self._select = rated, select
        order = np.random.default_rng([seed, 2**31]).permutation(len(data))
        held = max(1, round(dev_share * len(data)))
        self._dev, self._train = np.sort(order[:held]), np.sort(order[held:])
        self._vectors = torch.from_numpy(data.vectors)
        self._texts = self._texts_by_language()

    @property
    def pairs(self) -> int:
        """Training pairs, dev left out."""
        return len(self._train)

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """One loss per batch."""
        draw = self._draw(self._train, [self._seed, epoch], balance=self._balance)
        for start in range(0, len(draw.rows), self._batch):
            yield self._loss.total(self._terms(draw, slice(start, start + self._batch)))

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """Terms on dev, their sum, what rated pairs say, and the score: −loss, or the rated number."""
        draw = self._draw(self._dev[:_DEV_PAIRS], [self._seed, 2**31 + 1], balance=1.0)
        sums: dict[str, float] = {}
        for start in range(0, len(draw.rows), self._batch):
            part = slice(start, start + self._batch)
            share = len(draw.rows[part]) / len(draw.rows)
            for name, value in self._terms(draw, part).items():
                sums[name] = sums.get(name, 0.0) + share * float(value)
        loss = sum(self._loss.weights[name] * value for name, value in sums.items())
        rated = dict(self._rated()) if self._rated is not None else {}
        score = rated["rated"] if self._select == "rated" else -loss
        return {"score": score, "loss": loss, **sums, **rated}

    def _terms(self, draw: Draw, part: slice) -> dict[str, Tensor]:
        data, rows = self._data, draw.rows[part]
        languages = np.concatenate([data.language_a[rows], data.language_b[rows]])
        sides = SplitSides(self._at(data.a[rows], data.b[rows]), torch.from_numpy(languages))
        if self._form == "fused":
            return self._split.fused_terms(sides, _same_in_batch(languages), self._loss)
        others = draw.others[part]
        far = self._at(data.a[others], data.b[others])
        same = self._at(draw.same_a[part], draw.same_b[part])
        return self._split.terms(sides, far, same, self._loss)

    def _at(self, first: Rows, second: Rows) -> Tensor:
        """Vectors of rows, the first above the second."""
        return self._vectors[torch.from_numpy(np.concatenate([first, second]))]

    def _draw(self, rows: Rows, seed: list[int], *, balance: float) -> Draw:
        generator = np.random.default_rng(seed)
        drawn = balanced_rows(self._data.group[rows], balance, generator)
        rows = rows[drawn]
        if self._form == "fused":
            return Draw(rows, rows, rows, rows)
        # Rows of another batch, aligned with this one's, as in the authors' code.
        batches = max(1, len(rows) // self._batch)
        others = np.roll(rows, self._batch * int(generator.integers(1, batches)) if batches > 1 else 1)
        same_a = self._same_language(self._data.language_a[rows], generator)
        same_b = self._same_language(self._data.language_b[rows], generator)
        return Draw(rows, others, same_a, same_b)

    def _texts_by_language(self) -> dict[int, Rows]:
        data = self._data
        found: dict[int, Rows] = {}
        for rows in (np.arange(len(data)), self._train):  # a language that only dev has is found there
            languages = np.concatenate([data.language_a[rows], data.language_b[rows]])
            texts = np.concatenate([data.a[rows], data.b[rows]])
            found |= {int(one): np.unique(texts[languages == one]) for one in np.unique(languages)}
        return found

    def _same_language(self, languages: Rows, generator: np.random.Generator) -> Rows:
        found = np.empty(len(languages), dtype=np.int64)
        for one in np.unique(languages):
            mine = languages == one
            found[mine] = generator.choice(self._texts[int(one)], int(mine.sum()))
        return found


def balanced_rows(group: Rows, balance: float, generator: np.random.Generator) -> Rows:
    """Places of as many rows as there are, groups drawn by size^balance: 1 as they lie, 0 all alike."""
    if balance == 1.0:
        return generator.permutation(len(group))
    counts = np.bincount(group)
    weights = np.where(counts > 0, counts.astype(np.float64) ** (balance - 1.0), 0.0)[group]
    return generator.choice(len(group), len(group), p=weights / weights.sum())


def _same_in_batch(languages: Rows) -> Tensor:
    """For each row the next one of its language in the batch, in a circle; itself if it is alone."""
    order = np.argsort(languages, kind="stable")
    ordered = languages[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    following = np.arange(1, len(order) + 1)
    following[np.r_[starts[1:] - 1, len(order) - 1]] = starts
    same = np.empty_like(order)
    same[order] = order[following]
    return torch.from_numpy(same)
