"""Compare two correlations with the same ratings: is system a closer to the ratings than system b?

The scores of a and b come from the same pairs, so the two correlations depend on each other and on r(a, b).
Neither scipy nor statsmodels has these tests.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from likewise.errors import EvaluationError
from likewise.evaluation.differences import compare_systems
from likewise.evaluation.inputs import Values
from likewise.evaluation.intervals import Interval, fisher_interval
from likewise.evaluation.metrics import compute
from likewise.evaluation.sharing import Texts
from likewise.evaluation.significance import Alternative, Test, check_alternative


def williams(
    r_ag: float,
    r_bg: float,
    r_ab: float,
    n: int,
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> Test:
    """Williams' (1959) t of r(a, gold) − r(b, gold) from n pairs, df = n − 3 (Steiger 1980, eq. 7).

    t = (r_ag − r_bg) √[(n−1)(1+r_ab) / (2 (n−1)/(n−3) |R| + r̄² (1−r_ab)³)], where |R| is the determinant of
    the three correlations and r̄ the mean of the first two. The test is meant for Pearson; with Spearman's r
    it is an approximation.
    """
    from scipy import stats

    determinant = _check(r_ag, r_bg, r_ab, n)
    check_alternative(alternative)
    mean = (r_ag + r_bg) / 2
    below = 2 * (n - 1) / (n - 3) * determinant + mean**2 * (1 - r_ab) ** 3
    if below <= 0:
        raise EvaluationError(
            "the ratings are an exact sum of the two systems' scores, so Williams' t is infinite."
        )
    t = (r_ag - r_bg) * math.sqrt((n - 1) * (1 + r_ab) / below)
    p = {
        "greater": float(stats.t.sf(t, n - 3)),
        "less": float(stats.t.cdf(t, n - 3)),
        "two-sided": float(2 * stats.t.sf(abs(t), n - 3)),
    }[alternative]
    interval = difference_interval(r_ag, r_bg, r_ab, n, level=level)
    return Test("Williams", t, p, alternative, r_ag - r_bg, (n,), interval)


def steiger(
    r_ag: float,
    r_bg: float,
    r_ab: float,
    n: int,
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> Test:
    """Steiger's (1980, eq. 14) z of r(a, gold) − r(b, gold) from n pairs, with their pooled covariance."""
    _check(r_ag, r_bg, r_ab, n)
    check_alternative(alternative)
    mean = (r_ag + r_bg) / 2
    square = mean**2
    covariance = (r_ab * (1 - 2 * square) - square * (1 - 2 * square - r_ab**2) / 2) / (1 - square) ** 2
    z = (math.atanh(r_ag) - math.atanh(r_bg)) * math.sqrt((n - 3) / (2 - 2 * covariance))
    normal = NormalDist()
    p = {"greater": normal.cdf(-z), "less": normal.cdf(z), "two-sided": 2 * normal.cdf(-abs(z))}[alternative]
    interval = difference_interval(r_ag, r_bg, r_ab, n, level=level)
    return Test("Steiger", z, p, alternative, r_ag - r_bg, (n,), interval)


def difference_interval(r_ag: float, r_bg: float, r_ab: float, n: int, *, level: float = 0.95) -> Interval:
    """Confidence interval of r(a, gold) − r(b, gold) from n pairs (Zou 2007, overlapping correlations)."""
    _check(r_ag, r_bg, r_ab, n)
    a, b = fisher_interval(r_ag, n, level=level), fisher_interval(r_bg, n, level=level)
    rest = 1 - r_ag**2 - r_bg**2 - r_ab**2
    shared = ((r_ab - r_ag * r_bg / 2) * rest + r_ab**3) / ((1 - r_ag**2) * (1 - r_bg**2))
    gap = r_ag - r_bg
    below = _joint(r_ag - a.low, b.high - r_bg, shared)
    above = _joint(a.high - r_ag, r_bg - b.low, shared)
    return Interval(gap, gap - below, gap + above, level, "Zou, dependent correlations")


def compare_correlations(
    gold: Values,
    a: Values,
    b: Values,
    *,
    metric: Literal["pearson", "spearman"] = "spearman",
    test: Literal["rows", "williams", "steiger"] = "rows",
    alternative: Alternative = "two-sided",
    texts: Texts | None = None,
) -> Test:
    """Test two systems' scores on one test set. The effect is r_ag − r_bg.

    The default test is that of `compare_systems`, which takes ties and rows that share `texts` into account
    and refuses to decide if it cannot tell. Williams' and Steiger's tests assume independent rows and normal
    values.
    """
    if test != "rows":
        function = {"williams": williams, "steiger": steiger}[test]
        r_ag, r_bg, r_ab = compute(metric, gold, a), compute(metric, gold, b), compute(metric, a, b)
        return function(r_ag, r_bg, r_ab, len(gold), alternative=alternative)
    check_alternative(alternative)
    found = compare_systems(metric, gold, a, b, texts=texts)
    if found.p is None or found.statistic is None:
        raise EvaluationError(f"the two systems cannot be compared: {found.reason}")
    above = found.p / 2 if found.statistic >= 0 else 1 - found.p / 2
    p = {"two-sided": found.p, "greater": above, "less": 1 - above}[alternative]
    return Test("rows", found.statistic, p, alternative, found.difference, (found.rows,), found.interval)


def _joint(one: float, other: float, shared: float) -> float:
    return math.sqrt(max(0.0, one**2 + other**2 - 2 * shared * one * other))


def _check(r_ag: float, r_bg: float, r_ab: float, n: int) -> float:
    if n < 4:
        raise EvaluationError(f"{n} pairs are too few to compare two correlations. At least 4 are needed.")
    if not max(abs(r_ag), abs(r_bg), abs(r_ab)) < 1:
        raise EvaluationError(
            f"the correlations are {r_ag:g} and {r_bg:g} with the ratings and {r_ab:g} with each "
            "other, but all must be inside −1..1. Scores that order all pairs alike cannot be told "
            "apart, and a perfect system needs no test."
        )
    determinant = 1 - r_ag**2 - r_bg**2 - r_ab**2 + 2 * r_ag * r_bg * r_ab
    if determinant < -1e-9:
        raise EvaluationError(
            f"no data has the correlations {r_ag:g} and {r_bg:g} with the ratings and {r_ab:g} with "
            "each other. Check the three numbers."
        )
    return max(determinant, 0.0)
