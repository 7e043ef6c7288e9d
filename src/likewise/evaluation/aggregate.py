"""One task's value from its rows: measured per subset and put together as the protocol says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError
from likewise.evaluation.intervals import Interval, combine_intervals, metric_interval
from likewise.evaluation.metrics import compute
from likewise.evaluation.protocol import Aggregation

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class SubsetValue:
    """One subset's value on the metric's own scale; `reason` says why where there is none."""

    name: str
    n: int
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A task's value on the metric's own scale, its 95 % interval where one exists, and its subsets."""

    value: float
    interval: Interval | None
    subsets: tuple[SubsetValue, ...]


def aggregate(
    metric: str, aggregation: Aggregation, *, gold: Column, predicted: Column, subsets: Sequence[str]
) -> Aggregate:
    """Measure N rows: pooled (all), or as plain (mean) or size-weighted (wmean) mean of their subsets.

    Without subsets all three are the same. A subset without a value stops a mean, but not a pooled value.
    """
    names = list(dict.fromkeys(subsets))
    if len(names) < 2:
        return Aggregate(compute(metric, gold, predicted), _interval(metric, gold, predicted), ())
    label = np.asarray(subsets)
    parts = [(gold[label == name], predicted[label == name]) for name in names]
    values = tuple(_measure(metric, name, *part) for name, part in zip(names, parts, strict=True))
    if aggregation == "all":
        return Aggregate(compute(metric, gold, predicted), _interval(metric, gold, predicted), values)
    weights = [1.0 if aggregation == "mean" else float(value.n) for value in values]
    total = 0.0
    for subset, weight in zip(values, weights, strict=True):
        if subset.value is None:
            raise EvaluationError(f"subset {subset.name}: {subset.reason}")
        total += weight * subset.value
    intervals = [found for part in parts if (found := _interval(metric, *part)) is not None]
    interval = combine_intervals(intervals, weights) if len(intervals) == len(parts) else None
    return Aggregate(total / sum(weights), interval, values)


def _measure(metric: str, name: str, gold: Column, predicted: Column) -> SubsetValue:
    try:
        return SubsetValue(name, len(gold), compute(metric, gold, predicted))
    except EvaluationError as error:
        return SubsetValue(name, len(gold), None, str(error))


def _interval(metric: str, gold: Column, predicted: Column) -> Interval | None:
    try:
        return metric_interval(metric, gold, predicted)
    except EvaluationError:  # too few rows for an interval, though enough for a value
        return None
