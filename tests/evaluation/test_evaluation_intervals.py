"""Intervals equal published or scipy numbers and cover what they promise to cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.intervals import (
    Interval,
    bootstrap_interval,
    combine_intervals,
    fisher_interval,
    mean_interval,
    metric_interval,
    resample,
    spearman_interval,
    wilson_interval,
)
from likewise.evaluation.metrics import compute


def _correlated(rng: np.random.Generator, n: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=n)
    return x, rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)


def test_intervals_fisher_equals_scipy() -> None:
    x, y = _correlated(np.random.default_rng(0), 40, 0.7)
    expected = stats.pearsonr(x, y).confidence_interval(0.9)
    found = fisher_interval(compute("pearson", x, y), 40, level=0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_intervals_wilson_equals_scipy() -> None:
    expected = stats.binomtest(81, 100).proportion_ci(0.95, method="wilson")
    found = wilson_interval(0.81, 100)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert wilson_interval(0.0, 7).low == 0
    assert wilson_interval(1.0, 7).high == 1


def test_intervals_mean_equals_scipy() -> None:
    values = [0.71, 0.74, 0.69, 0.72, 0.75]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean_interval(values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.method == "t over 5 runs"


def test_intervals_spearman_is_wider_than_fisher_by_the_stated_variance() -> None:
    wide, narrow = spearman_interval(0.8, 103), fisher_interval(0.8, 103)
    ratio = (math.atanh(wide.high) - math.atanh(0.8)) / (math.atanh(narrow.high) - math.atanh(0.8))
    assert ratio == pytest.approx(math.sqrt(1 + 0.8**2 / 2), abs=1e-12)


def test_intervals_cover_the_truth_as_often_as_promised() -> None:
    rng, rho, n, trials = np.random.default_rng(11), 0.6, 60, 600
    true_spearman = 6 / math.pi * math.asin(rho / 2)
    hits = np.zeros(4)
    for _ in range(trials):
        x, y = _correlated(rng, n, rho)
        found = [
            (fisher_interval(compute("pearson", x, y), n), rho),
            (spearman_interval(compute("spearman", x, y), n), true_spearman),
            (wilson_interval(rng.binomial(n, 0.8) / n, n), 0.8),
            (mean_interval(rng.normal(3.0, 1.0, 5)), 3.0),
        ]
        hits += [interval.low <= truth <= interval.high for interval, truth in found]
    assert ((hits / trials > 0.925) & (hits / trials < 0.975)).all(), hits / trials


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_bootstrap_covers_and_is_reproducible(method: str) -> None:
    rng, hits = np.random.default_rng(3), 0
    for _ in range(60):
        x, y = _correlated(rng, 40, 0.6)
        found = bootstrap_interval("pearson", x, y, rng=rng, samples=200, method=method)
        hits += found.low <= 0.6 <= found.high
    assert 52 <= hits <= 60
    first, second = (
        bootstrap_interval("spearman", x, y, rng=np.random.default_rng(1), samples=100, method=method)
        for _ in range(2)
    )
    assert first == second
    assert first.low < first.value < first.high


def test_intervals_bootstrap_agrees_with_scipy_bca() -> None:
    x, y = _correlated(np.random.default_rng(8), 50, 0.8)
    reference = stats.bootstrap(
        (x, y),
        lambda a, b: stats.pearsonr(a, b)[0],
        paired=True,
        vectorized=False,
        n_resamples=1000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    found = bootstrap_interval("pearson", x, y, rng=np.random.default_rng(0), method="bca")
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=0.03)


def test_intervals_combined_mean_is_narrower_and_weighted() -> None:
    one, two = Interval(0.8, 0.7, 0.9, 0.95, "x"), Interval(0.4, 0.3, 0.5, 0.95, "x")
    mean = combine_intervals([one, two], [1, 1])
    assert mean.value == pytest.approx(0.6)
    assert mean.high - mean.value == pytest.approx(math.sqrt(0.05**2 + 0.05**2))
    assert combine_intervals([one, two], [3, 1]).value == pytest.approx(0.7)


def test_intervals_metric_picks_the_usual_method() -> None:
    rng = np.random.default_rng(4)
    x, y = _correlated(rng, 30, 0.5)
    assert metric_interval("pearson", x, y).method == "Fisher z, 30 independent rows"
    assert metric_interval("spearman", x, y).method == "Fisher z, 30 independent rows"
    labels = rng.integers(0, 2, 30)
    assert metric_interval("accuracy", labels, 1 - labels * (x > 0)).method.startswith("Wilson")
    assert metric_interval("mse", x, y).method.startswith("log")
    texts = [(f"prompt {row % 15}", f"answer {row}") for row in range(30)]
    assert "15 independent ones" in metric_interval("mae", x, y, texts=texts).method


def test_intervals_refuse_what_has_none() -> None:
    assert fisher_interval(1.0, 10).low == 1.0
    with pytest.raises(EvaluationError, match="at least 4 pairs"):
        fisher_interval(0.5, 3)
    with pytest.raises(EvaluationError, match="at least 2 finite values"):
        mean_interval([0.5])
    with pytest.raises(UsageError, match="between 0 and 1"):
        fisher_interval(0.5, 30, level=95)
    with pytest.raises(UsageError, match="too few"):
        resample(lambda index: 0.0, 5, rng=np.random.default_rng(0), samples=10)
    with pytest.raises(EvaluationError, match="fails too often"):
        bootstrap_interval("pearson", [0, 0, 1], [0, 0, 1], rng=np.random.default_rng(0))


def test_intervals_scaled_and_as_dict() -> None:
    shown = fisher_interval(0.5, 100).scaled(100)
    assert shown.value == 50
    assert shown.to_dict()["method"] == "Fisher z"
