"""Tests equal scipy or published numbers; arrows are those of Zhang, Wilson & Mihalcea 2018."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats

from likewise.errors import EvaluationError, MissingExtraError, UsageError
from likewise.evaluation.correlations import compare_correlations, difference_interval, steiger, williams
from likewise.evaluation.effects import cohen_d, hedges_g
from likewise.evaluation.significance import arrows, holm, mcnemar, paired_bootstrap, paired_t, student, welch

OURS = [0.744, 0.741, 0.748, 0.739, 0.750, 0.743]
BASE = [0.731, 0.735, 0.729, 0.738, 0.733]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_significance_t_tests_equal_scipy(alternative: str) -> None:
    pooled = stats.ttest_ind(OURS, BASE, alternative=alternative)
    unpooled = stats.ttest_ind(OURS, BASE, equal_var=False, alternative=alternative)
    paired = stats.ttest_rel(OURS[:5], BASE, alternative=alternative)
    for found, expected in (
        (student(OURS, BASE, alternative=alternative), pooled),
        (welch(OURS, BASE, alternative=alternative), unpooled),
        (paired_t(OURS[:5], BASE, alternative=alternative), paired),
    ):
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-12)
        assert found.alternative == alternative


def test_significance_student_equals_the_formula() -> None:
    x, y = np.array(OURS), np.array(BASE)
    pooled = (5 * x.var(ddof=1) + 4 * y.var(ddof=1)) / 9
    t = (x.mean() - y.mean()) / np.sqrt(pooled * (1 / 6 + 1 / 5))
    assert student(OURS, BASE).statistic == pytest.approx(t, rel=1e-12)
    assert student(OURS, BASE).p == pytest.approx(2 * stats.t.sf(t, 9), rel=1e-12)


def test_significance_effect_sizes_equal_hand_computed() -> None:
    # means 3 and 1, variances 1 and 1: d = 2; J(4) = Γ(2)/(√2·Γ(1.5)) = .797885
    d, g = cohen_d([2, 3, 4], [0, 1, 2]), hedges_g([2, 3, 4], [0, 1, 2])
    assert d.value == pytest.approx(2.0)
    assert g.value == pytest.approx(2 * 0.7978845608, abs=1e-9)
    half = 1.959963984540054 * np.sqrt(6 / 9 + 4 / 12)
    assert (d.low, d.high) == pytest.approx((2 - half, 2 + half), abs=1e-12)
    assert student([2, 3, 4], [0, 1, 2]).interval == g


def test_significance_holm_keeps_the_order_given() -> None:
    # Sorted: .005·4, .01·3, .03·2, .04 raised to the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    pvalues = np.random.default_rng(0).uniform(0, 0.2, 9)
    adjusted = holm(pvalues)
    assert (np.diff(np.asarray(adjusted)[np.argsort(pvalues)]) >= 0).all()
    assert all(b >= a for a, b in zip(pvalues, adjusted, strict=True))
    with pytest.raises(EvaluationError, match="needs p-values"):
        holm([0.2, float("nan")])


def test_significance_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.stats.contingency_tables", None)
    with pytest.raises(MissingExtraError, match=r"statsmodels .*likewise\[statistics\]"):
        mcnemar([1, 0], [1, 1], [0, 0])


def test_significance_williams_equals_published_value() -> None:
    # Silver, Hittner & May (2006), DEPCOR, and Steiger (1980), case A, p. 249.
    found = williams(0.3, 0.4, 0.5, 100)
    assert found.statistic == pytest.approx(-1.0767, abs=5e-5)
    assert found.p == pytest.approx(0.2843, abs=5e-5)
    assert williams(0.4, 0.5, 0.1, 103).statistic == pytest.approx(-0.8913, abs=5e-5)
    assert williams(0.4, 0.3, 0.5, 100).statistic == -found.statistic
    assert williams(0.4, 0.3, 0.5, 100, alternative="greater").p == pytest.approx(found.p / 2)
    assert williams(0.4, 0.3, 0.5, 100, alternative="less").p == pytest.approx(1 - found.p / 2)


def test_significance_steiger_equals_published_value() -> None:
    found = steiger(0.3, 0.4, 0.5, 100)  # Silver, Hittner & May (2006)
    assert found.statistic == pytest.approx(-1.0718, abs=5e-5)
    assert found.p == pytest.approx(0.2838, abs=5e-5)


def test_significance_difference_interval_equals_published_value() -> None:
    found = difference_interval(0.396, 0.179, 0.088, 66)  # Zou (2007), overlapping example
    assert (found.low, found.high) == pytest.approx((-0.093, 0.517), abs=5e-4)


def test_significance_compare_correlations_holds_its_level() -> None:
    rng, rejected = np.random.default_rng(7), 0
    for _ in range(400):
        gold = rng.normal(size=80)
        shared = rng.normal(size=80)
        a, b = (gold + shared + rng.normal(size=80) for _ in range(2))
        rejected += compare_correlations(gold, a, b, metric="pearson").p < 0.05
    assert 8 <= rejected <= 34  # 20 expected
    better = compare_correlations(gold, gold + 0.3 * shared, b, alternative="greater", test="steiger")
    assert better.p < 0.001
    assert better.effect > 0
    assert better.interval is not None
    assert better.interval.low > 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((0.5, 0.5, 1.0, 50), "inside −1..1"),
        ((0.9, -0.9, 0.9, 50), "no data has"),
        ((0.5, 0.4, 0.3, 3), "too few"),
        ((0.5, -0.5, 0.5, 50), "infinite"),
    ],
)
def test_significance_impossible_correlations_say_why(values: tuple, reason: str) -> None:
    with pytest.raises(EvaluationError, match=reason):
        williams(*values)


def test_significance_mcnemar_equals_binomial() -> None:
    gold = [1] * 20
    a, b = [1] * 15 + [0] * 5, [1] * 8 + [0] * 10 + [1] * 2
    found = mcnemar(gold, a, b)  # a alone right 7 times, b alone twice
    assert found.statistic == 2
    assert found.p == pytest.approx(stats.binomtest(2, 9).pvalue, rel=1e-12)
    assert found.effect == pytest.approx(0.25)
    assert mcnemar(gold, a, b, exact=False).statistic == pytest.approx((abs(7 - 2) - 1) ** 2 / 9)
    assert mcnemar(gold, a, a).p == 1
    with pytest.raises(EvaluationError, match="Use exact=True"):
        mcnemar(gold, a, a, exact=False)


def test_significance_paired_bootstrap_sees_a_real_difference_only() -> None:
    rng = np.random.default_rng(5)
    gold = rng.normal(size=200)
    good, bad = gold + 0.5 * rng.normal(size=200), gold + 1.5 * rng.normal(size=200)
    twin = gold + 0.5 * rng.normal(size=200)
    found = paired_bootstrap("spearman", gold, good, bad, rng=np.random.default_rng(0), samples=300)
    assert found.p == pytest.approx(2 / 301)
    assert found.interval is not None
    assert 0 < found.interval.low < found.effect < found.interval.high
    less = paired_bootstrap(
        "spearman", gold, good, bad, rng=np.random.default_rng(0), samples=300, alternative="less"
    )
    assert less.p == 1
    assert paired_bootstrap("spearman", gold, good, twin, rng=np.random.default_rng(0), samples=300).p > 0.05


def test_significance_arrows_read_as_methods_1_6() -> None:
    level, above, below = [0.70, 0.71, 0.69, 0.70], [0.75, 0.76, 0.74, 0.75], [0.65, 0.66, 0.64, 0.65]
    assert arrows(above, level) == "↑"
    assert arrows(below, level) == "↓"
    assert arrows(level, [0.70, 0.705, 0.695, 0.70]) == ""
    assert arrows(below, level, higher_is_better=False, test="welch") == "↑"
    near = [0.711, 0.721, 0.703, 0.712]
    assert student(near, level, alternative="greater").p < 0.05 < student(near, level).p
    assert arrows(near, level) == ""  # two-sided: 5 % on both sides together


def test_significance_refuses_runs_without_meaning() -> None:
    with pytest.raises(EvaluationError, match="needs spread"):
        student([0.7, 0.7, 0.7], [0.6, 0.6])
    with pytest.raises(EvaluationError, match="at least 2"):
        welch([0.7], [0.6, 0.5])
    with pytest.raises(EvaluationError, match="missing or infinite"):
        welch([0.7, float("nan")], [0.6, 0.5])
    with pytest.raises(EvaluationError, match="cannot be paired"):
        paired_t([0.7, 0.8], [0.6, 0.5, 0.4])
    with pytest.raises(EvaluationError, match="in every run"):
        paired_t([0.7, 0.8], [0.6, 0.7])
    with pytest.raises(UsageError, match="two-sided, greater, less"):
        student(OURS, BASE, alternative="larger")  # type: ignore[arg-type]


def test_significance_outcome_is_json_ready() -> None:
    found = student(OURS, BASE).to_dict()
    assert found["n"] == [6, 5]
    assert found["interval"]["method"].startswith("Hedges")


@pytest.mark.parametrize("pvalues", [[0.01, 0.04, 0.03], [0.5, 0.5, 0.001, 0.2], [1.0], [0.0, 0.9]])
def test_significance_holm_equals_statsmodels(pvalues: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    assert holm(pvalues) == pytest.approx(multipletests(pvalues, method="holm")[1].tolist())
