"""Estimates: a metric's value on some rows with its error, and the confidence interval that follows from
both.

The error comes from the influence of each row, added up over rows that share a text (`sharing`). The quantile
comes from Student's t, with the number of independent groups of rows minus one as degrees of freedom. Each
metric has its own transformation; `benchmarks/simulations.py` measures the coverage of the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.influence import metric_influence
from likewise.evaluation.inputs import Codes, Values
from likewise.evaluation.protocol import Aggregation
from likewise.evaluation.sharing import Sharing
from likewise.records import Array

CORRELATIONS = ("pearson", "spearman", "matthews")
# Below so many independent groups a quantile of t is a guess.
_FEWEST_GROUPS = 2.5
FEWEST_ROWS = 4
_LARGEST_EXPONENT = 700.0
_GAP = (
    f"a part of the mean has fewer than {FEWEST_ROWS} rows or a perfect value, so it has no error to add up"
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value on the metric's own scale. `moves` is how far each of n rows moves it, shape (n,), sum 0.

    `scale` is the usual size of a row's move in its part of the data, shape (n,). `rarest` is the number of
    rows with the rarest label, if labels are compared, and `span` the range of the ratings. `gap` says why
    the mean of several parts has no interval, if one of them has none.
    """

    metric: str
    value: float
    moves: Array
    scale: Array
    rarest: int = 0
    span: float = 0.0
    gap: str = ""

    def error(self, sharing: Sharing) -> tuple[float, float]:
        """The standard error, and the number of independent groups of rows behind it."""
        groups = float(sharing.effective(self.moves, self.scale))
        if groups < _FEWEST_GROUPS:
            raise EvaluationError(
                f"the texts of the {sharing.n} rows recur, so they are worth only about "
                f"{max(groups, 1):.0f} independent rows, and no interval can be given. Add rows "
                "with other texts."
            )
        return math.sqrt(float(sharing.variance(self.moves)) * groups / (groups - 1)), groups

    def bounds(self, sharing: Sharing, level: float) -> tuple[float, float, str]:
        """Both ends of the confidence interval, and the name of the method."""
        check_level(level)
        if self.gap:
            raise EvaluationError(self.gap)
        perfect = self.metric in CORRELATIONS and 1 - abs(self.value) < 1e-12
        if perfect or not np.any(self.moves):
            return self._at_the_edge(sharing, level)
        error, groups = self.error(sharing)
        low, high, name = self._ends(error, groups, level)
        return low, high, f"{name}, {_counted(sharing, groups)}"

    def _ends(self, error: float, groups: float, level: float) -> tuple[float, float, str]:
        quantile = t_quantile(level, groups - 1)
        if self.metric in CORRELATIONS:
            half = quantile * error / (1 - self.value**2)
            centre = math.atanh(self.value)
            return math.tanh(centre - half), math.tanh(centre + half), "Fisher z"
        if self.metric == "accuracy":
            return *_score_ends(self.value, error, quantile), "Wilson"
        if self.metric == "f1":
            share = self.value / (2 - self.value)
            ends = _score_ends(share, 2 * error / (2 - self.value) ** 2, quantile)
            return _f1_of(ends[0]), _f1_of(ends[1]), "Wilson of TP/(TP+FP+FN)"
        if self.metric == "f1-macro":
            centre = math.log(self.value / (1 - self.value))
            half = quantile * error / (self.value * (1 - self.value))
            return _logistic(centre - half), _logistic(centre + half), "logit"
        half = min(quantile * error / self.value, _LARGEST_EXPONENT)
        return self.value * math.exp(-half), self.value * math.exp(half), "log"

    def _at_the_edge(self, sharing: Sharing, level: float) -> tuple[float, float, str]:
        """Bounds if all rows agree, as for r = 1. The only unknown is how many other rows might not agree.

        With n independent groups, a share of up to q = 1 − (α/2)^(1/n) of other rows may be of another kind
        (Clopper & Pearson 1934).
        """
        plain = np.ones(sharing.n)
        groups = float(sharing.effective(plain * 0.0, plain))
        known = groups * (self.rarest / sharing.n if self.metric in ("f1", "f1-macro", "matthews") else 1.0)
        sure = ((1 - level) / 2) ** (1 / max(known, 1.0))
        name = f"Clopper-Pearson at the edge, {_counted(sharing, groups)}"
        if self.metric in ("pearson", "spearman"):
            low, high = sorted((self.value, self.value * (2 * sure - 1)))
            return low, high, name
        if self.metric == "matthews":
            low, high = sorted((self.value, self.value * sure))
            return low, high, name
        if self.metric in ("mse", "mae"):
            if self.value != 0:
                raise EvaluationError(
                    f"every row has the same error of {self.value:g}, so no interval follows"
                )
            return 0.0, (1 - sure) * self.span ** (2 if self.metric == "mse" else 1), name
        if self.value == 0:
            return 0.0, 1 - sure if self.metric == "accuracy" else _f1_of(1 - sure), name
        return (sure if self.metric == "accuracy" else _f1_of(sure)), 1.0, name


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """Rows that are measured by themselves: their numbers, their moves, and which of them take part."""

    rows: Codes
    moves: Array
    active: NDArray[np.bool_]


def estimate(
    metric: str,
    gold: Values,
    predicted: Values,
    *,
    subsets: Sequence[str] = (),
    aggregation: Aggregation = "all",
) -> Estimate:
    """The metric of N rows with each row's move: pooled, or the mean or size-weighted mean of subsets."""
    x, y = np.asarray(gold), np.asarray(predicted)
    found = [
        (metric_influence(metric, x[rows], y[rows]), rows, weight)
        for rows, weight in subset_rows(subsets, len(x), aggregation)
    ]
    value = math.fsum(weight * one for (one, _), _, weight in found)
    parts = [
        MeasuredPart(rows, weight * influence / len(rows), takes_part(metric, influence))
        for (_, influence), rows, weight in found
    ]
    return assemble(metric, value, parts, x)


def takes_part(metric: str, *influences: Array) -> NDArray[np.bool_]:
    """The rows that count: all rows or, for F1, those that have or get the positive label."""
    if metric != "f1":
        return np.ones(len(influences[0]), dtype=bool)
    return np.asarray(np.any([influence != 0 for influence in influences], axis=0))


def assemble(metric: str, value: float, parts: Sequence[MeasuredPart], gold: NDArray[Any]) -> Estimate:
    """An estimate from parts of the rows."""
    whole, scale = np.zeros(len(gold)), np.zeros(len(gold))
    for part in parts:
        # What rounding leaves of nothing would otherwise look like an error.
        clean = np.where(np.abs(part.moves) > 1e-12 * max(abs(value), 1.0) / len(part.rows), part.moves, 0.0)
        count = max(int(part.active.sum()), 1)
        whole[part.rows] = clean
        scale[part.rows] = part.active * math.sqrt(float(np.sum(clean**2)) / count)
    span = float(np.ptp(gold)) if gold.dtype.kind in "fiu" else 0.0
    rarest = int(np.unique(gold, return_counts=True)[1].min())
    small = len(parts) > 1 and any(
        len(part.rows) < FEWEST_ROWS or not np.any(whole[part.rows]) for part in parts
    )
    return Estimate(metric, value, whole, scale, rarest, span, _GAP if small else "")


def average_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """The plain mean of several tasks of one metric, with their rows one after the other."""
    count = len(estimates)
    if not count or len({one.metric for one in estimates}) > 1:
        raise UsageError("an average needs one or more tasks that share a metric. Choose such tasks.")
    value = math.fsum(one.value for one in estimates) / count
    moves = np.concatenate([one.moves for one in estimates]) / count
    scale = np.concatenate([one.scale for one in estimates]) / count
    still = count > 1 and any(len(one.moves) < FEWEST_ROWS or not np.any(one.moves) for one in estimates)
    gap = next((one.gap for one in estimates if one.gap), _GAP if still else "")
    rarest, span = min(one.rarest for one in estimates), max(one.span for one in estimates)
    return Estimate(estimates[0].metric, value, moves, scale, rarest, span, gap)


def subset_rows(subsets: Sequence[str], n: int, aggregation: Aggregation) -> list[tuple[Codes, float]]:
    """Row numbers of each part that is measured by itself, with its weight. Weights add up to 1."""
    names = list(dict.fromkeys(subsets))
    if aggregation == "all" or len(names) < 2:
        return [(np.arange(n), 1.0)]
    if len(subsets) != n:
        raise EvaluationError(
            f"there are {n} rows, but {len(subsets)} names of subsets. Give one name per row."
        )
    label = np.asarray(subsets)
    parts = [np.flatnonzero(label == name) for name in names]
    return [(rows, 1 / len(parts) if aggregation == "mean" else len(rows) / n) for rows in parts]


def t_quantile(level: float, freedom: float) -> float:
    """The two-sided quantile of Student's t."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + level) / 2))


def check_level(level: float) -> None:
    """Refuse a confidence level such as 95."""
    if not 0.0 < level < 1.0:
        raise UsageError(f"the level is {level:g}, but it must be between 0 and 1, such as 0.95.")


def _score_ends(share: float, error: float, quantile: float) -> tuple[float, float]:
    """Wilson's (1927) ends for the number of independent trials that correspond to the error."""
    trials = share * (1 - share) / error**2
    squared = quantile**2 / trials
    centre = (share + squared / 2) / (1 + squared)
    half = math.sqrt(quantile**2 * share * (1 - share) / trials + squared**2 / 4) / (1 + squared)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _f1_of(share: float) -> float:
    return 2 * share / (1 + share)


def _logistic(value: float) -> float:
    return (1 + math.tanh(value / 2)) / 2


def _counted(sharing: Sharing, groups: float) -> str:
    if sharing.independent:
        return f"{sharing.n:,} independent rows"
    return f"{sharing.n:,} rows that share texts like {groups:,.0f} independent ones"
