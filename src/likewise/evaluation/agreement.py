"""Krippendorff's α: how far the ratings of several people agree, between chance (0) and always (1).

    α = 1 − observed disagreement / disagreement expected by chance

Observed disagreement is the mean squared difference between two ratings of one item, and expected
disagreement that between any two ratings of the data. The metric defines the difference: 0 or 1 between
labels (nominal), the difference of mid-ranks (ordinal), the difference of the numbers (interval). Any rating
may be missing, and items with fewer than two ratings do not count. Source: Krippendorff, *Computing
Krippendorff's Alpha-Reliability*, 2011; Krippendorff, *Content Analysis*, 4th edition, ch. 12.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.intervals import resample
from likewise.records import Array, RelationKind
from likewise.wording import counted

AlphaMetric = Literal["nominal", "ordinal", "interval"]
METRIC_OF: dict[RelationKind, AlphaMetric] = {
    "graded": "interval",
    "ordered": "ordinal",
    "classes": "nominal",
}
# Krippendorff's customary limits: from the first, data may be relied on; below the second, not at all.
RELIABLE, TENTATIVE = 0.8, 0.667
SAMPLES = 1000
# Fewer items give no verdict; fewer than the second no interval, as a bootstrap of so few is much too narrow.
_FEWEST_ITEMS, _FEWEST_FOR_INTERVAL = 10, 30
# α without each annotator is measured for at most so many annotators, and listed for at most so many.
_MOST_ANNOTATORS, _MOST_LISTED = 50, 10
# Someone is named only if α rises by so much, and the rise is significant at this level (two-sided).
_OUTLIER_GAIN, _OUTLIER_LEVEL = 0.05, 0.05

Index = NDArray[np.int64]
# One rating: the item, the annotator, and a number (for labels: the label, or its place in their order).
ItemRating = tuple[Hashable, Hashable, Any]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of annotators on one relation.

    `value` is α, or None with the `reason`. `low` and `high` bound the 95 % interval of a bootstrap over
    items, or are None if items are too few. `items` are those with two or more ratings, and `ratings` are the
    ratings of these items. `without` holds α without each annotator, if there are at least three of them.
    `outlier` is the annotator without whom the others agree clearly better, if one is (`_Coded.outlier`).
    """

    metric: AlphaMetric
    items: int
    ratings: int
    annotators: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    without: tuple[tuple[str, float], ...] = ()
    outlier: str | None = None

    @property
    def verdict(self) -> str:
        """What α means and what to do, in a few sentences."""
        if self.value is None:
            return f"Agreement cannot be measured: {self.reason}."
        if self.items < _FEWEST_ITEMS:
            return f"These are too few to judge agreement. Have {_FEWEST_ITEMS} or more rated by two people."
        if self.value >= RELIABLE:
            return "The annotators agree well."
        if self.value >= TENTATIVE:
            said = "The annotators agree moderately. Conclusions from these ratings are tentative."
            return f"{said}{self._each()}"
        said = "The annotators often disagree."
        advice = "Read the pairs on which they differ most, write down how such pairs are rated, and have "
        return f"{said}{self._each()} {advice}these pairs rated again, or by more annotators."

    def _each(self) -> str:
        """α without the annotator who differs, or without each of them."""
        if self.outlier is not None:
            value = dict(self.without)[self.outlier]
            question = f"check how {self.outlier} understood the question"
            return f" Without {self.outlier}, α is {value:.2f}: {question}."
        if not self.without or len(self.without) > _MOST_LISTED:
            return ""
        listed = ", ".join(f"{value:.2f} without {name}" for name, value in self.without)
        return f" α is {listed}."

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        interval = None if self.low is None else [self.low, self.high]
        return {
            "alpha": self.value,
            "interval": interval,
            "metric": self.metric,
            "items": self.items,
            "ratings": self.ratings,
            "annotators": self.annotators,
            "without": dict(self.without),
            "outlier": self.outlier,
            "verdict": self.verdict,
        }


def krippendorff_alpha(table: Sequence[Sequence[Any]], *, metric: AlphaMetric = "interval") -> float:
    """α of a table with a row for each annotator and a column for each item. None and NaN are missing.

    Labels of the nominal metric may be anything; the other metrics take numbers. If no item has two ratings,
    or if all ratings are the same, α is not defined, which is an error.
    """
    cells = [
        (item, row, value)
        for row, values in enumerate(table)
        for item, value in enumerate(values)
        if value is not None and value == value
    ]
    return _Coded.of(cells, metric).alpha()


def measure_agreement(ratings: Iterable[ItemRating], *, metric: AlphaMetric, seed: int = 1) -> Agreement:
    """α of ratings with its interval, and α without each annotator. Undefined values have a reason."""
    coded = _Coded.of(list(ratings), metric)
    made = Agreement(metric, coded.items, len(coded.item), len(coded.names))
    try:
        value = coded.alpha()
    except EvaluationError as error:
        return Agreement(metric, made.items, made.ratings, made.annotators, reason=str(error))
    low, high = coded.interval(seed)
    without = tuple(coded.without()) if 3 <= len(coded.names) <= _MOST_ANNOTATORS else ()
    outlier = coded.outlier(value, without, seed)
    return Agreement(
        metric,
        made.items,
        made.ratings,
        made.annotators,
        value,
        low,
        high,
        without=without,
        outlier=outlier,
    )


@dataclass(frozen=True, slots=True)
class _Coded:
    """The ratings of items with two or more of them, as numbers: item, annotator and value of each rating.

    `values` are the distinct values in increasing order. For the nominal metric they are only numbered.
    """

    metric: AlphaMetric
    item: Index
    annotator: Index
    code: Index
    values: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, ratings: Sequence[ItemRating], metric: AlphaMetric) -> _Coded:
        if metric not in METRIC_OF.values():
            raise UsageError(f"there is no metric {metric!r}. Choose nominal, ordinal or interval.")
        item, _ = _numbered(one[0] for one in ratings)
        annotator, names = _numbered(one[1] for one in ratings)
        if metric == "nominal":
            code, labels = _numbered(one[2] for one in ratings)
            values = np.arange(len(labels), dtype=np.float64)
        else:
            numbers = np.asarray([float(one[2]) for one in ratings], dtype=np.float64)
            values, places = np.unique(numbers, return_inverse=True)
            code = places.astype(np.int64)
        named = tuple(str(name) for name in names)
        coded = cls(metric, item, annotator, code, values, named)
        return coded._pairable(np.ones(len(item), dtype=bool))[0]

    @property
    def items(self) -> int:
        return int(self.item.max()) + 1 if len(self.item) else 0

    def _pairable(self, wanted: NDArray[np.bool_]) -> tuple[_Coded, Index]:
        """Of the wanted ratings, those of items with two or more; and the number each item had before."""
        counts = np.bincount(self.item[wanted], minlength=self.items)
        kept = wanted & (counts >= 2)[self.item]
        item, before = _numbered(self.item[kept].tolist())
        others = _Coded(self.metric, item, self.annotator[kept], self.code[kept], self.values, self.names)
        return others, np.asarray(before, dtype=np.int64)

    def alpha(self, weights: Array | None = None) -> float:
        """α, in which each item counts as often as its weight says."""
        if not len(self.item):
            raise EvaluationError("no item has ratings of two annotators")
        size = np.bincount(self.item).astype(np.float64)
        weight = np.ones(len(size)) if weights is None else weights
        counts: Array = np.bincount(self.code, weight[self.item], len(self.values)).astype(np.float64)
        total = float(weight @ size)
        if self.metric == "nominal":
            same = self._same_codes(len(size))
            observed = float(weight @ ((size**2 - same) / (size - 1)))
            expected = total**2 - float(counts @ counts)
        else:
            x = self._positions(counts, total)
            first = np.bincount(self.item, x[self.code])
            second = np.bincount(self.item, x[self.code] ** 2)
            observed = 2 * float(weight @ ((size * second - first**2) / (size - 1)))
            expected = 2 * (total * float(counts @ x**2) - float(counts @ x) ** 2)
        if np.count_nonzero(counts) < 2 or not expected > 0:
            raise EvaluationError("all ratings are the same")
        return 1.0 - (total - 1) * observed / expected

    def _positions(self, counts: Array, total: float) -> Array:
        """Where each value lies: the number itself, or for ordinal data its mid-rank; around the mean."""
        x = np.cumsum(counts) - counts / 2 if self.metric == "ordinal" else self.values
        return x - float(counts @ x) / total

    def _same_codes(self, items: int) -> Array:
        """Σ n² over the labels of each item, where n annotators chose the label."""
        cells, n = np.unique(self.item * len(self.values) + self.code, return_counts=True)
        found: Array = np.bincount(cells // len(self.values), n.astype(np.float64) ** 2, items).astype(
            np.float64
        )
        return found

    def interval(self, seed: int) -> tuple[float | None, float | None]:
        """The 95 % interval of a percentile bootstrap over items; None for few items."""
        if self.items < _FEWEST_FOR_INTERVAL:
            return None, None
        try:
            drawn = self._resampled(self.alpha, seed)
        except EvaluationError:  # nearly all ratings are the same
            return None, None
        low, high = np.quantile(drawn, (0.025, 0.975))
        return float(low), float(high)

    def _resampled(self, statistic: Callable[[Array], float], seed: int) -> Array:
        """A statistic of the items' weights in each sample of a bootstrap over items."""
        items = self.items
        return resample(
            lambda index: statistic(np.bincount(index, minlength=items).astype(np.float64)),
            items,
            rng=np.random.default_rng(seed),
            samples=SAMPLES,
        )

    def without(self) -> Iterable[tuple[str, float]]:
        """α of the others, for each annotator for whom it is defined."""
        for number, name in enumerate(self.names):
            others, _ = self._pairable(self.annotator != number)
            try:
                yield name, others.alpha()
            except EvaluationError:
                continue

    def outlier(self, value: float, without: Sequence[tuple[str, float]], seed: int) -> str | None:
        """The annotator without whom α is highest, if it rises by .05 or more and not by chance.

        The rise is tested by its standard error in a paired bootstrap over items. The level is divided by the
        number of annotators (Bonferroni), because the highest of several α is always above their mean.
        """
        from scipy import special

        if self.items < _FEWEST_FOR_INTERVAL or not without:
            return None
        name, best = max(without, key=lambda one: one[1])
        if best < value + _OUTLIER_GAIN:
            return None
        others, before = self._pairable(self.annotator != self.names.index(name))
        try:
            rises = self._resampled(lambda weights: others.alpha(weights[before]) - self.alpha(weights), seed)
        except EvaluationError:  # in most samples the others' ratings are the same
            return None
        limit = float(special.stdtrit(len(before) - 1, 1 - _OUTLIER_LEVEL / 2 / len(self.names)))
        return name if best - value > limit * float(np.std(rises, ddof=1)) else None


def describe(name: str, found: Agreement) -> str:
    """One line about the agreement on a relation, such as "similarity: Krippendorff's α .74 …"."""
    if found.value is None:
        return f"{name}: {found.verdict}"
    bounds = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    counts = (
        f"{counted(found.items, 'item')} with 2 or more ratings, {counted(found.annotators, 'annotator')}"
    )
    return f"{name}: Krippendorff's α ({found.metric}) {found.value:.2f}{bounds}, {counts}. {found.verdict}"


def _numbered(things: Iterable[Hashable]) -> tuple[Index, list[Hashable]]:
    """A number for each thing, by first occurrence, and the distinct things."""
    known: dict[Hashable, int] = {}
    numbers = [known.setdefault(thing, len(known)) for thing in things]
    return np.asarray(numbers, dtype=np.int64), list(known)
