"""Compute one task's value from its rows: measured per subset and combined as the protocol says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError
from likewise.evaluation.estimates import Estimate, estimate
from likewise.evaluation.intervals import Interval, estimated_interval
from likewise.evaluation.metrics import compute
from likewise.evaluation.protocol import Aggregation
from likewise.evaluation.sharing import Sharing

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class SubsetValue:
    """One subset's value on the metric's own scale. `reason` says why there is none."""

    name: str
    n: int
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A task's value on the metric's own scale, its 95 % confidence interval if one exists, and its subsets.

    `estimate` says how far each row moves the value; an average over tasks is computed from it.
    """

    value: float
    interval: Interval | None
    subsets: tuple[SubsetValue, ...]
    estimate: Estimate


def aggregate(
    metric: str,
    aggregation: Aggregation,
    *,
    gold: Column,
    predicted: Column,
    subsets: Sequence[str],
    sharing: Sharing | None = None,
) -> Aggregate:
    """Measure N rows: all pooled (all), or as the plain (mean) or size-weighted (wmean) mean of their
    subsets.

    Without subsets all three are the same. A subset without a value makes a mean undefined, but not a pooled
    value. `sharing` says which rows share a text; without it they count as independent.
    """
    names, label = list(dict.fromkeys(subsets)), np.asarray(subsets)
    values: tuple[SubsetValue, ...] = ()
    if len(names) > 1:
        rows = [(name, label == name) for name in names]
        values = tuple(_measure(metric, name, gold[here], predicted[here]) for name, here in rows)
    for subset in values:
        if aggregation != "all" and subset.value is None:
            raise EvaluationError(f"subset {subset.name}: {subset.reason}")
    found = estimate(metric, gold, predicted, subsets=subsets, aggregation=aggregation)
    return Aggregate(found.value, _interval(found, sharing or Sharing(len(gold))), values, found)


def _measure(metric: str, name: str, gold: Column, predicted: Column) -> SubsetValue:
    try:
        return SubsetValue(name, len(gold), compute(metric, gold, predicted))
    except EvaluationError as error:
        return SubsetValue(name, len(gold), None, str(error))


def _interval(found: Estimate, sharing: Sharing) -> Interval | None:
    try:
        return estimated_interval(found, sharing)
    except EvaluationError:  # too few rows for an interval, though enough for a value
        return None
