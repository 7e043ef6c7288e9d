"""Correlations of many systems with the same ratings, all on the same resampled rows.

Translated test sets hold the same rows in every language pair, so their correlations rise and fall together,
and an average over pairs is only as certain as its rows. A resample is a count per row (Efron & Tibshirani
1993), which turns 1,000 resamples into a few matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.intervals import Interval
from likewise.records import Array

SAMPLES = 1000


def draw_counts(rows: int, *, rng: np.random.Generator, samples: int = SAMPLES) -> Array:
    """How often each row occurs in each resample, rows × samples. Every column sums to `rows`."""
    if samples < 100:
        raise UsageError(f"{samples} bootstrap samples are too few. Use at least 100.")
    return rng.multinomial(rows, np.full(rows, 1 / rows), size=samples).T.astype(np.float64)


def pearson_draws(gold: Array, scores: Array, counts: Array) -> Array:
    """Pearson of P systems with the ratings on every resample: gold (N,), scores P×N, counts N×S; gives
    P×S.
    """
    n = len(gold)
    y, x = _standard(gold), _standard(scores)
    mean_y, mean_x = y @ counts / n, x @ counts / n
    shared = (x * y) @ counts / n - mean_x * mean_y
    spread_x, spread_y = x**2 @ counts / n - mean_x**2, y**2 @ counts / n - mean_y**2
    return _ratio(shared, spread_x, spread_y)


def spearman_draws(gold: Array, scores: Array, counts: Array) -> Array:
    """Spearman of P systems with the ratings on every resample, ranked anew in each. Shapes as for
    Pearson.
    """
    ranks = _centred_ranks(gold, counts)
    weighted = ranks * counts
    spread = np.einsum("ns,ns->s", weighted, ranks)
    draws = []
    for row in scores:
        own = _centred_ranks(row, counts)
        shared = np.einsum("ns,ns->s", weighted, own)
        draws.append(_ratio(shared, np.einsum("ns,ns,ns->s", counts, own, own), spread))
    return np.stack(draws)


def draws_interval(value: float, draws: Array, *, level: float = 0.95) -> Interval:
    """The percentile interval of a value from its draws, shape (S,). Draws without a value are left out."""
    kept = draws[np.isfinite(draws)]
    if len(kept) < 0.9 * len(draws):
        raise EvaluationError(
            "a bootstrap over rows fails too often, because there are too few "
            "rows, or too few that differ. Use more rows."
        )
    low, high = np.quantile(kept, ((1 - level) / 2, (1 + level) / 2))
    return Interval(value, float(low), float(high), level, f"bootstrap over rows, {len(draws)} samples")


def mean_draws(draws: Array, rows: Sequence[int]) -> Array:
    """The draws of a plain mean over some of P systems: P×S gives (S,)."""
    made: Array = draws[list(rows)].mean(axis=0)
    return made


def _standard(values: Array) -> Array:
    gap = values - values.mean(axis=-1, keepdims=True)
    spread = gap.std(axis=-1, keepdims=True)
    made: Array = gap / np.where(spread > 0, spread, 1.0)
    return made


def _centred_ranks(values: Array, counts: Array) -> Array:
    """The rank of each row's value in each resample, ties at their mean, minus the mean rank; N×S."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    below = np.zeros((len(values) + 1, counts.shape[1]))
    np.cumsum(counts[np.argsort(values, kind="stable")], axis=0, out=below[1:])
    # Values below, plus half of those equal, less half of all: the constant of the ranks cancels.
    middle: Array = (below[ends - sizes] + below[ends] - len(values)) / 2
    return middle[group]


def _ratio(shared: Array, spread_x: Array, spread_y: Array) -> Array:
    """The correlation from its sums. NaN if a resample holds only one value."""
    below = spread_x * spread_y
    tiny = 1e-12 * np.maximum(spread_x, spread_y) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Array = np.where(below > tiny, shared / np.sqrt(np.maximum(below, 0.0)), np.nan)
    return made
