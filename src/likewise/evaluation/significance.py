"""Tests of a difference: between groups of runs (seeds), and between two systems on one test set.

Student's, Welch's and the paired t-test come from scipy, Holm and McNemar from statsmodels
(`likewise[statistics]`); each is loaded on first use. `correlations` compares two correlations on one test
set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from likewise.errors import EvaluationError, MissingExtraError, UsageError
from likewise.evaluation.effects import Runs, check_runs, check_varies, hedges_g
from likewise.evaluation.inputs import Values, paired_labels
from likewise.evaluation.intervals import Interval, MetricLike, metric_function, resample
from likewise.records import Array

Alternative = Literal["two-sided", "greater", "less"]


@dataclass(frozen=True, slots=True)
class Test:
    """The outcome of one test of a − b. `alternative` is the claim that p supports ("greater": a is above
    b).
    """

    __test__: ClassVar[bool] = False  # pytest would otherwise collect a class of this name

    name: str
    statistic: float
    p: float
    alternative: Alternative
    effect: float
    n: tuple[int, ...]
    interval: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {**asdict(self), "n": list(self.n)}


def student(a: Runs, b: Runs, *, alternative: Alternative = "two-sided") -> Test:
    """Student's t-test of two groups of runs with pooled variance. The effect is Hedges' g."""
    return _independent("Student", a, b, alternative=alternative, equal_var=True)


def welch(a: Runs, b: Runs, *, alternative: Alternative = "two-sided") -> Test:
    """Welch's t-test of two groups of runs whose variances may differ. The effect is Hedges' g."""
    return _independent("Welch", a, b, alternative=alternative, equal_var=False)


def paired_t(a: Runs, b: Runs, *, alternative: Alternative = "two-sided") -> Test:
    """t-test of runs that share seeds or splits, a[i] with b[i]. The effect is mean(a−b)/sd(a−b)."""
    from scipy import stats

    check_alternative(alternative)
    x, y = check_runs(a, "first group"), check_runs(b, "second group")
    if len(x) != len(y):
        raise EvaluationError(f"{len(x)} and {len(y)} runs cannot be paired. Use welch for unpaired groups.")
    gap = x - y
    if np.ptp(gap) <= 1e-12 * max(np.abs(x).max(), np.abs(y).max()):
        raise EvaluationError(
            f"a − b is {gap[0]:g} in every run, but a paired test needs "
            "differences that vary. Check that the runs differ."
        )
    result = stats.ttest_rel(x, y, alternative=alternative)
    effect = float(gap.mean() / gap.std(ddof=1))
    return Test("paired t", float(result.statistic), float(result.pvalue), alternative, effect, (len(x),))


def holm(pvalues: Sequence[float] | Array) -> list[float]:
    """Holm's (1979) adjusted p-values in the given order. Compare each with α itself."""
    row = np.asarray(pvalues, dtype=np.float64)
    if row.ndim != 1 or not len(row) or not ((row >= 0) & (row <= 1)).all():
        raise EvaluationError(f"found {row.tolist()}, but Holm's correction needs p-values in 0..1.")
    order = np.argsort(row, kind="stable")
    steps = row[order] * (len(row) - np.arange(len(row)))
    adjusted = np.empty(len(row))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted.tolist()


def mcnemar(gold: Values, a: Values, b: Values, *, exact: bool = True) -> Test:
    """McNemar's two-sided test of two labellings of one test set. The effect is the difference of accuracies.

    The test is exact binomial by default (statistic: the smaller discordant count), or else χ² with
    continuity correction.
    """
    (x, said_a, _), (x_again, said_b, _) = paired_labels(gold, a), paired_labels(gold, b)
    right_a, right_b = x == said_a, x_again == said_b
    only_a, only_b = int(np.sum(right_a & ~right_b)), int(np.sum(~right_a & right_b))
    try:
        from statsmodels.stats.contingency_tables import mcnemar as test
    except ImportError:
        raise MissingExtraError("statsmodels", "statistics") from None
    if not exact and not only_a + only_b:
        raise EvaluationError(
            "both labellings are right and wrong on the same rows, so χ² is undefined. Use exact=True."
        )
    table = [[int(np.sum(right_a & right_b)), only_a], [only_b, int(np.sum(~right_a & ~right_b))]]
    result = test(table, exact=exact, correction=True)
    effect = float(np.mean(right_a) - np.mean(right_b))
    return Test("McNemar", float(result.statistic), float(result.pvalue), "two-sided", effect, (len(x),))


def paired_bootstrap(
    metric: MetricLike,
    gold: Values,
    a: Values,
    b: Values,
    *,
    rng: np.random.Generator,
    samples: int = 1000,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> Test:
    """Test metric(a) − metric(b) on one test set by resampling its rows (Koehn 2004), with a percentile
    interval.

    p = (1 + draws on the other side of zero) / (1 + samples), doubled for two sides. The statistic is a − b.
    """
    function = metric_function(metric)
    x, first, second = np.asarray(gold), np.asarray(a), np.asarray(b)
    check_alternative(alternative)
    effect = function(x, first) - function(x, second)

    def difference(index: Any) -> float:
        return function(x[index], first[index]) - function(x[index], second[index])

    draws = resample(difference, len(x), rng=rng, samples=samples)
    tail = (1 - level) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    greater = (1 + int(np.sum(draws <= 0))) / (1 + samples)
    less = (1 + int(np.sum(draws >= 0))) / (1 + samples)
    p = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]
    interval = Interval(effect, float(low), float(high), level, f"bootstrap percentile, {samples} samples")
    return Test("paired bootstrap", effect, p, alternative, effect, (len(x),), interval)


def arrows(
    ours: Runs,
    baseline: Runs,
    *,
    alpha: float = 0.05,
    test: Literal["student", "welch"] = "student",
    higher_is_better: bool = True,
) -> str:
    """The mark after a baseline's cell: ↑ if ours is significantly better, ↓ if it is worse, else nothing.

    It is one two-sided test at α, without correction. The arrows in Tables 2 and 3 of Zhang, Wilson &
    Mihalcea 2018, as we read them, are two one-sided tests at α each, which together err twice as often.
    """
    found = {"student": student, "welch": welch}[test](ours, baseline)
    if found.p >= alpha:
        return ""
    return "↑" if (found.effect > 0) == higher_is_better else "↓"


def check_alternative(alternative: str) -> None:
    """Refuse an alternative that is none of the three."""
    if alternative not in ("two-sided", "greater", "less"):
        raise UsageError(f"alternative {alternative!r} is not one of two-sided, greater, less")


def _independent(name: str, a: Runs, b: Runs, *, alternative: Alternative, equal_var: bool) -> Test:
    from scipy import stats

    check_alternative(alternative)
    x, y = check_runs(a, "first group"), check_runs(b, "second group")
    check_varies(x, y)
    result = stats.ttest_ind(x, y, equal_var=equal_var, alternative=alternative)
    effect = hedges_g(x, y)
    n = (len(x), len(y))
    return Test(name, float(result.statistic), float(result.pvalue), alternative, effect.value, n, effect)
