"""Strategies: which pairs of a pool are rated next.

    random      drawn at random
    scores      spread evenly over the predicted scores: as many pairs from each tenth of their range
    doubt       the pairs of which the model is least sure, first
    cover       pairs unlike each other and unlike the rated ones (k-means++ over pair features)
    mixed       k-means++ as in `cover`, in which a distance counts more if the model is unsure of the pair
    scores+doubt, scores+cover   spread over the scores as in `scores`, and within each tenth by the other one

Pair features are |u − v| and u∘v of the vectors of the two texts. k-means++: Arthur & Vassilvitskii 2007;
`mixed` follows the idea of BADGE (Ash et al. 2020), with the model's doubt in place of the gradient's length.
docs/annotation.md says which of them beat drawing at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Numbers
from likewise.errors import UnknownNameError, UsageError

PoolRows = NDArray[np.int64]

# As many parts of the range of predicted scores get the same number of pairs.
PARTS = 10
# Rows whose distances to the rated pairs are computed at once.
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Pool:
    """What is known of the pairs that may be chosen, row by row.

    `texts` numbers the two texts of each pair, N×2; the same text has the same number. `scores` are predicted
    scores, N. `doubt` is how unsure the model is, N, 0 or more. `features` are pair features, N×d, and
    `rated` those of the pairs that have ratings already, M×d.
    """

    texts: NDArray[np.int64]
    scores: Numbers
    doubt: Numbers | None = None
    features: NDArray[np.float32] | None = None
    rated: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.scores)


def choose(pool: Pool, count: int, *, strategy: str, rng: np.random.Generator, most: int = 1) -> PoolRows:
    """The numbers of `count` rows of a pool, in the order in which they were chosen.

    A text is in at most `most` of the chosen pairs, as long as other pairs are left.
    """
    if strategy not in STRATEGIES:
        raise UnknownNameError(f"there is no strategy {strategy!r}. Choose {', '.join(STRATEGIES)}.")
    if count < 1:
        raise UsageError(f"{count} pairs cannot be chosen. Choose 1 or more.")
    return _Chosen(pool.texts, count, most).fill(STRATEGIES[strategy](pool, count, rng))


def cover_features(u: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.float32]:
    """|u − v| and u∘v of the vectors of pairs, N×2d. Either half has a mean squared length of 1."""
    halves = np.abs(u - v), u * v
    return np.concatenate([half / max(float(np.sqrt((half**2).sum(1).mean())), 1e-12) for half in halves], 1)


class _Chosen:
    """Rows that are chosen one after the other, as their texts allow."""

    def __init__(self, texts: NDArray[np.int64], count: int, most: int) -> None:
        self._texts, self._count, self._most = texts, count, most

    def fill(self, order: Iterable[int]) -> PoolRows:
        """The first rows of an order whose texts are not used up, then the first of those passed over."""
        used: Counter[int] = Counter()
        chosen: list[int] = []
        passed: list[int] = []
        for row in order:
            if len(chosen) == self._count:
                break
            own = {int(text) for text in self._texts[row]}
            if any(used[text] >= self._most for text in own):
                passed.append(row)
                continue
            chosen.append(row)
            used.update(own)
        return np.asarray([*chosen, *passed][: self._count], dtype=np.int64)


def _random(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    yield from (int(row) for row in rng.permutation(len(pool)))


def _scores(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    yield from _in_turn([part[rng.permutation(len(part))] for part in _parts(pool.scores)], rng)


def _doubt(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    yield from (int(row) for row in _least_sure(pool, np.arange(len(pool)), rng))


def _cover(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    yield from _spread(_features(pool), rng, rated=pool.rated)


def _mixed(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    yield from _spread(_features(pool), rng, rated=pool.rated, weights=_known_doubt(pool) ** 2)


def _scores_doubt(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    yield from _in_turn([_least_sure(pool, part, rng) for part in _parts(pool.scores)], rng)


def _scores_cover(pool: Pool, count: int, rng: np.random.Generator) -> Iterator[int]:
    features = _features(pool)
    parts = _parts(pool.scores)
    yield from _in_turn([(part, _spread(features[part], rng, rated=pool.rated)) for part in parts], rng)


Strategy = Callable[[Pool, int, np.random.Generator], Iterator[int]]
STRATEGIES: dict[str, Strategy] = {
    "random": _random,
    "scores": _scores,
    "doubt": _doubt,
    "cover": _cover,
    "mixed": _mixed,
    "scores+doubt": _scores_doubt,
    "scores+cover": _scores_cover,
}


def _parts(scores: Numbers) -> list[PoolRows]:
    """The rows of each tenth of the range of scores. Empty parts are left out."""
    low, high = float(scores.min()), float(scores.max())
    place = np.zeros(len(scores), dtype=np.int64)
    if high > low:
        place = np.minimum(((scores - low) / (high - low) * PARTS).astype(np.int64), PARTS - 1)
    return [rows for part in range(PARTS) if len(rows := np.flatnonzero(place == part))]


def _in_turn(
    parts: Sequence[PoolRows | tuple[PoolRows, Iterator[int]]], rng: np.random.Generator
) -> Iterator[int]:
    """One row of each part after the other, in a new random order each round, until all are empty."""
    left = [_rows_of(part) for part in parts]
    while left:
        for at in rng.permutation(len(left)):
            row = next(left[at], None)
            if row is not None:
                yield row
            else:
                left[at] = iter(())
        left = [rows for rows in map(_peeked, left) if rows is not None]


def _rows_of(part: PoolRows | tuple[PoolRows, Iterator[int]]) -> Iterator[int]:
    if isinstance(part, tuple):
        rows, order = part
        return (int(rows[at]) for at in order)
    return (int(row) for row in part)


def _peeked(rows: Iterator[int]) -> Iterator[int] | None:
    first = next(rows, None)
    return None if first is None else _joined(first, rows)


def _joined(first: int, rows: Iterator[int]) -> Iterator[int]:
    yield first
    yield from rows


def _least_sure(pool: Pool, rows: PoolRows, rng: np.random.Generator) -> PoolRows:
    """Rows in the order of their doubt, the greatest first; ties in random order."""
    mixed = rows[rng.permutation(len(rows))]
    return mixed[np.argsort(-_known_doubt(pool)[mixed], kind="stable")]


def _spread(
    features: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    rated: NDArray[np.float32] | None,
    weights: Numbers | None = None,
) -> Iterator[int]:
    """Rows by k-means++: each is drawn with a probability proportional to the squared distance to the nearest
    row that is rated or drawn, times its weight.
    """
    squares = np.einsum("nd,nd->n", features, features, dtype=np.float64)
    nearest = np.full(len(features), np.inf)
    if rated is not None and len(rated):
        lengths = np.einsum("nd,nd->n", rated, rated, dtype=np.float64)
        for start in range(0, len(features), _BLOCK):
            part = slice(start, start + _BLOCK)
            found = squares[part, None] - 2.0 * (features[part] @ rated.T) + lengths
            nearest[part] = np.maximum(found.min(axis=1), 0.0)
    free = np.ones(len(features), dtype=bool)
    while free.any():
        chance = np.where(free, np.where(np.isinf(nearest), 1.0, nearest), 0.0)
        chance = chance * (1.0 if weights is None else weights)
        if not chance.sum() > 0:  # all that is left is as near as can be, or of no weight
            chance = free.astype(np.float64)
        row = int(rng.choice(len(features), p=chance / chance.sum()))
        yield row
        free[row] = False
        nearest = np.minimum(nearest, _distances(features, squares, features[row]))


def _distances(features: NDArray[np.float32], squares: Numbers, one: NDArray[np.float32]) -> Numbers:
    found = squares - 2.0 * (features @ one) + float(one @ one)
    return np.maximum(found, 0.0)


def _features(pool: Pool) -> NDArray[np.float32]:
    if pool.features is None:
        raise UsageError("this strategy needs pair features, and this model has no vectors of texts.")
    return pool.features


def _known_doubt(pool: Pool) -> Numbers:
    if pool.doubt is None:
        raise UsageError("this strategy needs two sources to compare, and this model has only one.")
    return pool.doubt
