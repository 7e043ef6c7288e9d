"""Confidence intervals: how precise a measured value is, each with the name of its method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.estimates import FEWEST_ROWS, Estimate, check_level, estimate
from likewise.evaluation.inputs import Values
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.sharing import GroupKeys, Sharing, Texts, row_sharing
from likewise.records import Array

MetricLike = str | Callable[[Values, Values], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval, the level in 0..1 and the method that gave it."""

    value: float
    low: float
    high: float
    level: float
    method: str

    def scaled(self, factor: float) -> Interval:
        """The same interval in another unit (factor > 0), such as ×100."""
        return Interval(self.value * factor, self.low * factor, self.high * factor, self.level, self.method)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return asdict(self)


def fisher_interval(r: float, n: int, *, level: float = 0.95) -> Interval:
    """Confidence interval of Pearson's r from n pairs: tanh(atanh r ± z/√(n−3)) (Fisher 1921)."""
    return _fisher(r, n, 1.0, level, "Fisher z")


def spearman_interval(r: float, n: int, *, level: float = 0.95) -> Interval:
    """Confidence interval of Spearman's r from n pairs: Fisher z, variance (1 + r²/2)/(n−3) (Bonett &
    Wright 2000).
    """
    return _fisher(r, n, 1.0 + r * r / 2.0, level, "Fisher z, Bonett-Wright variance")


def wilson_interval(share: float, n: int, *, level: float = 0.95) -> Interval:
    """Confidence interval of a share in 0..1 of n trials, such as an accuracy (Wilson 1927)."""
    if not 0.0 <= share <= 1.0 or n < 1:
        raise EvaluationError(
            f"a share of {share:g} among {n} trials has no Wilson interval. A share in 0..1 and n ≥ "
            "1 are needed."
        )
    z = _quantile(level)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Exact ends at 0 and 1, which rounding would otherwise push past the value itself.
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return Interval(share, low, high, level, "Wilson")


def mean_interval(values: Sequence[float] | Array, *, level: float = 0.95) -> Interval:
    """Confidence interval of the mean of ≥ 2 independent runs, such as seeds: mean ± t·s/√n."""
    from scipy import stats

    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1 or len(row) < 2 or not np.isfinite(row).all():
        raise EvaluationError(
            f"found {row.tolist()}, but an interval over runs needs at least 2 finite values."
        )
    _quantile(level)
    mean = float(row.mean())
    half = float(stats.t.ppf((1 + level) / 2, len(row) - 1) * row.std(ddof=1) / math.sqrt(len(row)))
    return Interval(mean, mean - half, mean + half, level, f"t over {len(row)} runs")


def bootstrap_interval(
    metric: MetricLike,
    gold: Values,
    predicted: Values,
    *,
    rng: np.random.Generator,
    samples: int = 1000,
    level: float = 0.95,
    method: Literal["percentile", "bca"] = "percentile",
) -> Interval:
    """Confidence interval of any metric from resampled pairs: percentiles, or BCa (Efron 1987) for skewed
    metrics.
    """
    function = metric_function(metric)
    x, y = np.asarray(gold), np.asarray(predicted)
    value = function(x, y)
    draws = resample(lambda index: function(x[index], y[index]), len(x), rng=rng, samples=samples)
    tail = (1 - level) / 2
    _quantile(level)
    tails = (tail, 1 - tail)
    if method == "bca":
        tails = _bca_tails(
            value, draws, [function(np.delete(x, i), np.delete(y, i)) for i in range(len(x))], tail
        )
    low, high = np.quantile(draws, tails)
    return Interval(value, float(low), float(high), level, f"bootstrap {method}, {samples} samples")


def metric_interval(
    name: str,
    gold: Values,
    predicted: Values,
    *,
    level: float = 0.95,
    texts: Texts | None = None,
    groups: GroupKeys | None = None,
) -> Interval:
    """The default confidence interval of a named metric on a test set. `texts` or `groups` say which rows
    depend on each other.

    It rests on the influence of each row, added up over rows that share a text (see `estimates`). It also has
    a width at r = 1 and at accuracy 1. Without texts, rows count as independent.
    """
    found = estimate(name, gold, predicted)
    return estimated_interval(found, row_sharing(len(found.moves), texts=texts, groups=groups), level=level)


def estimated_interval(found: Estimate, sharing: Sharing, *, level: float = 0.95) -> Interval:
    """The confidence interval of an estimate on rows of which some share texts."""
    if sharing.n < FEWEST_ROWS:
        raise EvaluationError(
            f"{sharing.n} rows are too few for an interval. At least {FEWEST_ROWS} are needed."
        )
    low, high, method = found.bounds(sharing, level)
    return Interval(found.value, low, high, level, method)


def combine_intervals(intervals: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Confidence interval of a weighted mean of independent values from their intervals (MOVER; Zou &
    Donner 2008).
    """
    if not intervals or len(intervals) != len(weights) or not sum(weights) > 0:
        raise UsageError("combining intervals needs one weight per interval and a positive sum of weights.")
    share = [weight / sum(weights) for weight in weights]
    value = math.fsum(w * i.value for w, i in zip(share, intervals, strict=True))
    below = math.sqrt(math.fsum((w * (i.value - i.low)) ** 2 for w, i in zip(share, intervals, strict=True)))
    above = math.sqrt(math.fsum((w * (i.high - i.value)) ** 2 for w, i in zip(share, intervals, strict=True)))
    return Interval(
        value, value - below, value + above, intervals[0].level, f"MOVER of {intervals[0].method}"
    )


def resample(
    statistic: Callable[[Any], float], n: int, *, rng: np.random.Generator, samples: int = 1000
) -> Array:
    """The statistic of `samples` draws of n row numbers with replacement; shape (samples,).

    A draw without a value (all rows alike) is drawn again. If 1 draw in 10 fails, the result is an error.
    """
    if samples < 100:
        raise UsageError(f"{samples} bootstrap samples are too few. Use at least 100.")
    values, failed = np.empty(samples), 0
    for at in range(samples):
        while True:
            try:
                values[at] = statistic(rng.integers(0, n, n))
                break
            except EvaluationError as error:
                failed += 1
                if failed > max(samples // 10, 1):
                    raise EvaluationError(f"a bootstrap of {n} rows fails too often: {error}") from error
    return values


def _fisher(r: float, n: int, factor: float, level: float, method: str) -> Interval:
    if not -1.0 <= r <= 1.0 or n < 4:
        raise EvaluationError(
            f"a correlation of {r:g} from {n} pairs has no interval. A value in −1..1 and at least "
            "4 pairs are needed."
        )
    half = _quantile(level) * math.sqrt(factor / (n - 3))
    if abs(r) == 1.0:
        return Interval(r, r, r, level, f"{method}, degenerate at ±1")
    z = math.atanh(r)
    return Interval(r, math.tanh(z - half), math.tanh(z + half), level, method)


def _bca_tails(value: float, draws: Array, left_out: Sequence[float], tail: float) -> tuple[float, float]:
    normal = NormalDist()
    below = (np.sum(draws < value) + 0.5 * np.sum(draws == value)) / len(draws)
    bias = normal.inv_cdf(float(np.clip(below, 0.5 / len(draws), 1 - 0.5 / len(draws))))
    gap = np.mean(left_out) - np.asarray(left_out)
    spread = float(np.sum(gap**2))
    skew = float(np.sum(gap**3)) / (6 * spread**1.5) if spread > 0 else 0.0

    def moved(z: float) -> float:
        return normal.cdf(bias + (bias + z) / (1 - skew * (bias + z)))

    return moved(normal.inv_cdf(tail)), moved(normal.inv_cdf(1 - tail))


def metric_function(metric: MetricLike) -> Callable[[Values, Values], float]:
    """The function of a metric given by name, or the function itself."""
    return get_metric(metric).function if isinstance(metric, str) else metric


def _quantile(level: float) -> float:
    check_level(level)
    return NormalDist().inv_cdf((1 + level) / 2)
