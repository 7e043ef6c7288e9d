"""Effect sizes: how large a difference is, in standard deviations, with its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from likewise.errors import EvaluationError
from likewise.evaluation.intervals import Interval
from likewise.records import Array

Runs = Sequence[float] | Array


def cohen_d(a: Runs, b: Runs, *, level: float = 0.95) -> Interval:
    """Difference of two group means in pooled standard deviations (Cohen 1988), a minus b.

    The interval is the large-sample interval, with variance (n₁+n₂)/(n₁n₂) + d²/(2(n₁+n₂)) (Hedges & Olkin
    1985).
    """
    x, y = check_runs(a, "first group"), check_runs(b, "second group")
    d = float((x.mean() - y.mean()) / _pooled(x, y))
    return _large_sample(d, len(x), len(y), level=level, method="Cohen's d, large sample")


def hedges_g(a: Runs, b: Runs, *, level: float = 0.95) -> Interval:
    """Cohen's d times the small-sample factor Γ(m/2)/(√(m/2)·Γ((m−1)/2)), m = n₁+n₂−2 (Hedges 1981)."""
    x, y = check_runs(a, "first group"), check_runs(b, "second group")
    half = (len(x) + len(y) - 2) / 2
    shrink = math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
    g = shrink * float((x.mean() - y.mean()) / _pooled(x, y))
    return _large_sample(g, len(x), len(y), level=level, method="Hedges' g, large sample")


def check_runs(values: Runs, what: str) -> Array:
    """One group of runs as an array of N ≥ 2 finite numbers. Anything else is an error with the reason."""
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1 or len(row) < 2:
        raise EvaluationError(f"the {what} holds {row.size} runs, but a test over runs needs at least 2.")
    if not np.isfinite(row).all():
        raise EvaluationError(
            f"the {what} holds missing or infinite values. Leave failed runs out of both groups."
        )
    return row


def check_varies(x: Array, y: Array) -> None:
    """Refuse two groups without any spread, for which neither a t statistic nor an effect size exists."""
    scale = max(float(np.abs(x).max()), float(np.abs(y).max()))
    if max(float(np.ptp(x)), float(np.ptp(y))) <= 1e-12 * scale:
        raise EvaluationError(
            "the runs of each group are all equal, but a test needs spread. Check that the seeds "
            "differ, or compare predictions on one test set instead."
        )


def _pooled(x: Array, y: Array) -> float:
    check_varies(x, y)
    n, m = len(x), len(y)
    return math.sqrt(((n - 1) * float(x.var(ddof=1)) + (m - 1) * float(y.var(ddof=1))) / (n + m - 2))


def _large_sample(effect: float, n: int, m: int, *, level: float, method: str) -> Interval:
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt((n + m) / (n * m) + effect**2 / (2 * (n + m)))
    return Interval(effect, effect - half, effect + half, level, method)
