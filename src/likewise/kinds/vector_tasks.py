"""The training batches of the stages over a frozen encoder: translations, and rated pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from likewise.losses import Loss
from likewise.methods.multilingual import MeaningSplit, SplitLoss, SplitSides

SplitForm = Literal["paper", "fused"]
# Numbers of rows, P of them.
RowNumbers = NDArray[np.int64]
# Pairs of the dev share that are looked at after every epoch.
_DEV_PAIRS = 50_000


@dataclass(frozen=True, slots=True)
class ParallelVectors:
    """Translations as row numbers into a matrix of distinct texts.

    `vectors` is N×d. The others have P entries: `a` and `b` are rows of `vectors`, `language_a` and
    `language_b` language numbers, `group` the number of the language pair, by which rows are balanced.
    """

    vectors: NDArray[np.float32]
    a: RowNumbers
    b: RowNumbers
    language_a: RowNumbers
    language_b: RowNumbers
    group: RowNumbers

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, slots=True)
class Draw:
    """The row numbers of one epoch, aligned: translations, negatives, and texts of the same language."""

    rows: RowNumbers
    others: RowNumbers
    same_a: RowNumbers
    same_b: RowNumbers


class ParallelTask:
    """Stage 1 of the multilingual method, trained on cached vectors."""

    def __init__(
        self,
        split: MeaningSplit,
        loss: SplitLoss,
        data: ParallelVectors,
        *,
        form: SplitForm = "paper",
        batch_size: int = 512,
        dev_share: float = 0.2,
        balance: float = 1.0,
        seed: int = 1,
        rated: Callable[[], Mapping[str, float]] | None = None,
        rated_before: Callable[[], Mapping[str, float]] | None = None,
        select: Literal["loss", "rated"] = "loss",
    ) -> None:
        self._split, self._loss, self._data = split, loss, data
        self._form, self._batch, self._balance, self._seed = form, batch_size, balance, seed
        self._rated, self._rated_before, self._select = rated, rated_before, select
        order = np.random.default_rng([seed, 2**31]).permutation(len(data))
        held = max(1, round(dev_share * len(data)))
        self._dev, self._train = np.sort(order[:held]), np.sort(order[held:])
        self._vectors = torch.from_numpy(data.vectors)
        self._texts = self._texts_by_language()

    @property
    def pairs(self) -> int:
        """The number of training pairs, without dev pairs."""
        return len(self._train)

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The loss of each batch of an epoch."""
        draw = self._draw(self._train, [self._seed, epoch], balance=self._balance)
        for start in range(0, len(draw.rows), self._batch):
            yield self._loss.total(self._terms(draw, slice(start, start + self._batch)))

    def evaluate(self) -> dict[str, float]:
        """The loss terms on dev, their sum, the rated pairs' numbers, and the score (−loss or rated)."""
        return self._evaluate(self._rated)

    def at_start(self) -> dict[str, float]:
        """The same; the rated pairs measure the model without the new layers."""
        return self._evaluate(self._rated_before)

    @torch.no_grad()
    def _evaluate(self, asked: Callable[[], Mapping[str, float]] | None) -> dict[str, float]:
        draw = self._draw(self._dev[:_DEV_PAIRS], [self._seed, 2**31 + 1], balance=1.0)
        sums: dict[str, float] = {}
        for start in range(0, len(draw.rows), self._batch):
            part = slice(start, start + self._batch)
            share = len(draw.rows[part]) / len(draw.rows)
            for name, value in self._terms(draw, part).items():
                sums[name] = sums.get(name, 0.0) + share * float(value)
        loss = sum(self._loss.weights[name] * value for name, value in sums.items())
        rated = dict(asked()) if asked is not None else {}
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

    def _at(self, first: RowNumbers, second: RowNumbers) -> Tensor:
        """The vectors of both lists of rows, the first above the second."""
        return self._vectors[torch.from_numpy(np.concatenate([first, second]))]

    def _draw(self, rows: RowNumbers, seed: list[int], *, balance: float) -> Draw:
        generator = np.random.default_rng(seed)
        drawn = balanced_rows(self._data.group[rows], balance, generator)
        rows = rows[drawn]
        if self._form == "fused":
            return Draw(rows, rows, rows, rows)
        # RowNumbers of another batch, aligned with this one's, as in the authors' code.
        batches = max(1, len(rows) // self._batch)
        others = np.roll(rows, self._batch * int(generator.integers(1, batches)) if batches > 1 else 1)
        same_a = self._same_language(self._data.language_a[rows], generator)
        same_b = self._same_language(self._data.language_b[rows], generator)
        return Draw(rows, others, same_a, same_b)

    def _texts_by_language(self) -> dict[int, RowNumbers]:
        data = self._data
        found: dict[int, RowNumbers] = {}
        for rows in (np.arange(len(data)), self._train):  # a language that only dev has is found there
            languages = np.concatenate([data.language_a[rows], data.language_b[rows]])
            texts = np.concatenate([data.a[rows], data.b[rows]])
            found |= {int(one): np.unique(texts[languages == one]) for one in np.unique(languages)}
        return found

    def _same_language(self, languages: RowNumbers, generator: np.random.Generator) -> RowNumbers:
        found = np.empty(len(languages), dtype=np.int64)
        for one in np.unique(languages):
            mine = languages == one
            found[mine] = generator.choice(self._texts[int(one)], int(mine.sum()))
        return found


def balanced_rows(group: RowNumbers, balance: float, generator: np.random.Generator) -> RowNumbers:
    """Draw as many rows as there are; groups are drawn by size^balance (1: by size, 0: all equally often)."""
    if balance == 1.0:
        return generator.permutation(len(group))
    counts = np.bincount(group)
    weights = np.where(counts > 0, counts.astype(np.float64) ** (balance - 1.0), 0.0)[group]
    return generator.choice(len(group), len(group), p=weights / weights.sum())


def _same_in_batch(languages: RowNumbers) -> Tensor:
    """For each row, the next row of its language in the batch, going round; the row itself if it is alone."""
    order = np.argsort(languages, kind="stable")
    ordered = languages[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    following = np.arange(1, len(order) + 1)
    following[np.r_[starts[1:] - 1, len(order) - 1]] = starts
    same = np.empty_like(order)
    same[order] = order[following]
    return torch.from_numpy(same)


@dataclass(frozen=True, slots=True)
class RatedVectors:
    """Rated pairs as row numbers into a matrix of distinct texts.

    `vectors` is N×d. The others have P entries: `a` and `b` are rows of `vectors`, `target` is 0 to 1,
    `group` the number of the data entry, `weight` how often a row is drawn (None: each once).
    """

    vectors: NDArray[np.float32]
    a: RowNumbers
    b: RowNumbers
    target: NDArray[np.float32]
    group: RowNumbers
    weight: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, slots=True)
class ParallelAlignment:
    """Keeps translations closest to each other among all texts of a batch: InfoNCE in both directions."""

    data: ParallelVectors
    weight: float = 0.1
    temperature: float = 0.05
    batch_size: int = 256

    def loss(self, adapt: nn.Module, generator: np.random.Generator) -> Tensor:
        """The weighted loss of a batch that the generator draws."""
        rows = generator.integers(0, len(self.data), self.batch_size)
        texts = np.concatenate([self.data.a[rows], self.data.b[rows]])
        z = functional.normalize(adapt(torch.from_numpy(self.data.vectors[texts])), dim=1)
        s, t = z.chunk(2)
        logits = s @ t.T / self.temperature
        own = torch.arange(len(rows))
        both = functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)
        return self.weight * both / 2


class RatedTask:
    """Stage 2 of the multilingual method: g(cos(adapt(x_a), adapt(x_b))) fits the rating."""

    def __init__(
        self,
        adapt: nn.Module,
        cosine_map: nn.Module,
        loss: Loss,
        data: RatedVectors,
        *,
        evaluate: Callable[[], Mapping[str, float]],
        at_start: Callable[[], Mapping[str, float]],
        batch_size: int = 64,
        seed: int = 1,
        grouped: bool = False,
        alignment: ParallelAlignment | None = None,
    ) -> None:
        self._adapt, self._map, self._loss, self._data = adapt, cosine_map, loss, data
        self._evaluate, self._at_start = evaluate, at_start
        self._batch, self._seed, self._grouped = batch_size, seed, grouped
        self._alignment = alignment
        self._vectors = torch.from_numpy(data.vectors)

    @property
    def pairs(self) -> int:
        """The number of training pairs."""
        return len(self._data)

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The loss of each batch; the last, smaller batch counts like the others."""
        generator = np.random.default_rng([self._seed, epoch])
        order = self._order(generator)
        for start in range(0, len(order), self._batch):
            loss = self._step(order[start : start + self._batch])
            if self._alignment is not None:
                loss = loss + self._alignment.loss(self._adapt, generator)
            yield loss

    def _order(self, generator: np.random.Generator) -> RowNumbers:
        count, weight = len(self._data), self._data.weight
        if weight is None:
            return generator.permutation(count)
        return generator.choice(count, count, p=weight / weight.sum())

    def evaluate(self) -> Mapping[str, float]:
        """The dev numbers."""
        return self._evaluate()

    def at_start(self) -> Mapping[str, float]:
        """The dev numbers of the model without the layers that are being trained."""
        return self._at_start()

    def _step(self, rows: RowNumbers) -> Tensor:
        data = self._data
        texts = self._vectors[torch.from_numpy(np.concatenate([data.a[rows], data.b[rows]]))]
        u, v = self._adapt(texts).chunk(2)
        output = self._map(functional.cosine_similarity(u, v, dim=1))
        target, mask = torch.from_numpy(data.target[rows]), torch.ones(len(rows), dtype=torch.bool)
        # Losses that compare pairs do so within a data entry.
        options = {"group": torch.from_numpy(data.group[rows])} if self._grouped else {}
        return self._loss(output, target, mask, **options).mean()
