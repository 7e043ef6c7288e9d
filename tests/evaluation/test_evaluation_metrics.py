"""Every metric equals its reference implementation, and says why where there is no answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.metrics import METRICS, average_ranks, compute, f1, get_metric

SHAPES = {
    "plain": lambda rng, n: rng.normal(size=n),
    "heavy ties": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "sixths": lambda rng, n: np.round(rng.uniform(0, 5, n) * 6) / 6,
    "far from zero": lambda rng, n: 1e6 + rng.normal(size=n),
    "float32 scores": lambda rng, n: rng.uniform(-1, 1, n).astype(np.float32),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [3, 10, 257, 1379])
def test_metrics_correlations_equal_scipy(shape: str, n: int) -> None:
    rng = np.random.default_rng(n)
    gold = rng.integers(0, 26, n) / 5
    gold[:2] = 0, 5  # never constant, however small n is
    predicted = SHAPES[shape](rng, n)
    predicted[:2] += (0, 1)
    assert compute("spearman", gold, predicted) == pytest.approx(
        stats.spearmanr(gold, predicted)[0], abs=1e-12
    )
    reference = stats.pearsonr(np.asarray(gold), np.asarray(predicted, dtype=np.float64))[0]
    assert compute("pearson", gold, predicted) == pytest.approx(
        reference, abs=1e-9 if "far" in shape else 1e-12
    )


def test_metrics_average_ranks_equal_scipy() -> None:
    values = np.random.default_rng(5).integers(0, 30, 500).astype(float)
    np.testing.assert_array_equal(average_ranks(values), stats.rankdata(values))


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_metrics_pearson_survives_extreme_scales(factor: float) -> None:
    gold, predicted = np.array([0.1, 0.5, 0.4, 0.9]), np.array([0.2, 0.3, 0.5, 0.7])
    expected = stats.pearsonr(gold, predicted)[0]
    assert compute("pearson", gold * factor, predicted) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("labels", [("0", "1"), ("no", "maybe", "yes"), (0, 1), (0, 1, 2, 3)])
def test_metrics_labels_equal_sklearn(labels: tuple[object, ...]) -> None:
    rng = np.random.default_rng(len(labels))
    gold = np.array(labels)[rng.integers(0, len(labels), 300)]
    predicted = np.where(rng.random(300) < 0.6, gold, np.array(labels)[rng.integers(0, len(labels), 300)])
    assert compute("accuracy", gold, predicted) == pytest.approx(
        sk.accuracy_score(gold, predicted), abs=1e-12
    )
    assert compute("f1-macro", gold, predicted) == pytest.approx(
        sk.f1_score(gold, predicted, average="macro"), abs=1e-12
    )
    assert compute("matthews", gold, predicted) == pytest.approx(
        sk.matthews_corrcoef(gold, predicted), abs=1e-12
    )
    if len(labels) == 2:
        expected = sk.f1_score(gold, predicted, pos_label=labels[1])
        assert compute("f1", gold.tolist(), predicted.tolist()) == pytest.approx(expected, abs=1e-12)


def test_metrics_f1_takes_a_label_and_not_its_denial() -> None:
    labels = np.array(["not_same", "same"])
    rng = np.random.default_rng(7)
    gold, predicted = labels[rng.integers(0, 2, 200)], labels[rng.integers(0, 2, 200)]
    assert compute("f1", gold, predicted) == pytest.approx(
        sk.f1_score(gold, predicted, pos_label="same"), abs=1e-12
    )
    assert compute("f1", ["same", "same", "not_same"], ["same", "not_same", "same"]) == 0.5
    assert compute("f1", ["same", "not_same"], ["not_same", "not_same"]) == 0  # as sklearn has it
    with pytest.raises(
        EvaluationError, match="the positive label 'same' occurs neither in the data nor in the predictions"
    ):
        compute("f1", ["not_same"], ["not_same"])
    with pytest.raises(EvaluationError, match="which of 'not_same', 'other' is positive"):
        compute("f1", ["not_same"], ["other"])


def test_metrics_errors_equal_sklearn() -> None:
    rng = np.random.default_rng(2)
    gold, predicted = rng.normal(size=50), rng.normal(size=50)
    assert compute("mse", gold, predicted) == pytest.approx(sk.mean_squared_error(gold, predicted), abs=1e-12)
    assert compute("mae", gold, predicted) == pytest.approx(
        sk.mean_absolute_error(gold, predicted), abs=1e-12
    )


def test_metrics_f1_positive_label_is_named() -> None:
    gold, predicted = ["yes", "yes", "no", "no"], ["yes", "no", "yes", "no"]
    assert f1(gold, predicted, positive="yes") == 0.5
    with pytest.raises(EvaluationError, match="which of 'no', 'yes' is positive"):
        f1(gold, predicted)


@pytest.mark.parametrize("name", ["pearson", "spearman"])
@pytest.mark.parametrize(
    ("gold", "predicted", "reason"),
    [
        ([1, 2, 3, 4], [0.5, 0.5, 0.5, 0.5], "the predictions are all 0.5"),
        ([1, 2, 3, 4], [0.1 + 0.2, 0.3, 0.3, 0.3], "the predictions are all 0.3"),
        ([3, 3, 3], [0.1, 0.2, 0.3], "the ratings are all 3"),
        ([0, 0, 0], [0.1, 0.2, 0.3], "the ratings are all 0"),
        (
            [1, 2, 3],
            [0.1, float("nan"), 0.3],
            r"1 of 3 predictions are missing or infinite \(the first at index 1\)",
        ),
        ([1, None, 3], [0.1, 0.2, 0.3], "1 of 3 ratings are missing"),
        ([1, 2, 3], [0.1, 0.2, float("inf")], "missing or infinite"),
        ([1, 2], [1, 2], "2 values are too few. At least 3"),
        ([1, 2, 3], [1, 2], "there are 3 ratings, but 2 predictions"),
        ([1, 2, 3], [[1, 2], [2, 3], [3, 4]], "but one number per pair is expected"),
        (["low", "high", "low"], [1, 2, 3], "ratings are not numbers"),
    ],
)
def test_metrics_undefined_correlations_say_why(name: str, gold: list, predicted: list, reason: str) -> None:
    with pytest.raises(EvaluationError, match=reason):
        compute(name, gold, predicted)


@pytest.mark.parametrize(
    ("name", "gold", "predicted", "reason"),
    [
        ("accuracy", [], [], "no labels"),
        ("accuracy", ["a", None], ["a", "a"], "missing in some rows"),
        ("accuracy", ["a", 1], ["a", "b"], "mixed types"),
        ("accuracy", [0, 1], ["0", "1"], "cannot agree"),
        (
            "accuracy",
            [0, 1, 1],
            [0.31, 0.72, 0.4],
            r"the predictions are scores such as 0\.31\. Map scores to labels",
        ),
        ("f1", ["0", "1", "2"], ["0", "1", "2"], "two labels, but there are 3"),
        ("f1", [0, 0], [0, 0], "positive label 1 occurs neither"),
        ("matthews", ["a", "b", "a"], ["a", "a", "a"], "predicted labels are all 'a'"),
        ("matthews", ["a", "a", "a"], ["a", "b", "a"], "true labels are all 'a'"),
        ("mse", [], [], "too few"),
    ],
)
def test_metrics_undefined_labels_say_why(name: str, gold: list, predicted: list, reason: str) -> None:
    with pytest.raises(EvaluationError, match=reason):
        compute(name, gold, predicted)


def test_metrics_table_states_how_to_read_each() -> None:
    assert list(METRICS) == ["pearson", "spearman", "accuracy", "f1", "f1-macro", "matthews", "mse", "mae"]
    assert METRICS["spearman"].unit == "spearman ×100"
    assert METRICS["mse"].unit == "mse"
    assert not METRICS["mse"].higher_is_better
    with pytest.raises(UsageError, match="'kendall' is not one of pearson, spearman"):
        get_metric("kendall")
