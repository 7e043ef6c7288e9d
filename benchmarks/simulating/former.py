"""What was the default before: tests and intervals that take rows for independent."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from likewise.evaluation.correlations import compare_correlations, difference_interval
from likewise.evaluation.intervals import fisher_interval, spearman_interval, wilson_interval
from likewise.evaluation.metrics import compute

SAMPLES = 1000
Bounds = tuple[float, float]


def former_test(metric: str, gold: Any, a: Any, b: Any, rng: np.random.Generator) -> float:
    """The p that was given: Williams, McNemar, or a paired bootstrap of rows."""
    if metric in ("pearson", "spearman"):
        return compare_correlations(gold, a, b, metric=metric, test="williams").p  # type: ignore[arg-type]
    if metric == "accuracy":
        only_a, only_b = int(np.sum((a == gold) & (b != gold))), int(np.sum((a != gold) & (b == gold)))
        return float(min(1.0, 2 * stats.binom.cdf(min(only_a, only_b), only_a + only_b, 0.5)))
    draws = _draws(metric, gold, [a, b], rng)
    gap = draws[0] - draws[1]
    less, more = np.sum(gap <= 0), np.sum(gap >= 0)
    return float(min(1.0, 2 * (1 + min(less, more)) / (1 + SAMPLES)))


def former_interval(metric: str, gold: Any, predicted: Any, rng: np.random.Generator) -> Bounds:
    """The interval that was given: Fisher, Bonett–Wright, Wilson, or percentiles of a bootstrap."""
    closed = {"pearson": fisher_interval, "spearman": spearman_interval, "accuracy": wilson_interval}
    if metric in closed:
        found = closed[metric](compute(metric, gold, predicted), len(gold))
        return found.low, found.high
    low, high = np.quantile(_draws(metric, gold, [predicted], rng)[0], (0.025, 0.975))
    return float(low), float(high)


def former_difference(metric: str, gold: Any, a: Any, b: Any) -> Bounds:
    """Zou's interval of the difference of two correlations."""
    r_ag, r_bg, r_ab = compute(metric, gold, a), compute(metric, gold, b), compute(metric, a, b)
    found = difference_interval(r_ag, r_bg, r_ab, len(gold))
    return found.low, found.high


def _draws(metric: str, gold: Any, systems: list[Any], rng: np.random.Generator) -> Any:
    """The metric of each system on resampled rows, shape (systems, SAMPLES)."""
    n = len(gold)
    if metric == "mae":
        losses = np.stack([np.abs(gold - said) for said in systems], axis=1)
        return (rng.multinomial(n, np.full(n, 1 / n), SAMPLES) @ losses / n).T
    # Rows of labels come in a few kinds: drawing their counts is drawing the rows.
    kinds = np.stack([gold, *systems], axis=1)
    cells, counts = np.unique(kinds, axis=0, return_counts=True)
    drawn = rng.multinomial(n, counts / n, SAMPLES)
    found = []
    for at in range(1, kinds.shape[1]):
        hits = drawn @ (cells[:, 0] * cells[:, at])
        found.append(2 * hits / np.maximum(drawn @ (cells[:, 0] + cells[:, at]), 1))
    return np.stack(found)
