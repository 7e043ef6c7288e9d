"""Krippendorff's α against his own example, against a direct computation, and at its limits."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation import agreement
from likewise.evaluation.agreement import describe, krippendorff_alpha, measure_agreement

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C and following: four observers,
# twelve units. He prints .743 (nominal), .815 (ordinal) and .849 (interval).
N = None
EXAMPLE = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]


def ratings_of(table):
    """(item, annotator, value) of a table with a row per annotator."""
    return [(i, f"r{a}", v) for a, row in enumerate(table) for i, v in enumerate(row) if v is not None]


@pytest.mark.parametrize(("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_agreement_is_what_krippendorff_prints(metric, printed):
    assert krippendorff_alpha(EXAMPLE, metric=metric) == pytest.approx(printed, abs=5e-4)


def test_agreement_of_two_annotators_on_labels_is_what_krippendorff_prints():
    # The same paper, section A: two observers, ten binary units, α = .095.
    table = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
    assert krippendorff_alpha(table, metric="nominal") == pytest.approx(0.095, abs=5e-4)
    words = [["no yes".split()[value] for value in row] for row in table]
    assert krippendorff_alpha(words, metric="nominal") == krippendorff_alpha(table, metric="nominal")


def direct(table, metric):
    """α from the coincidence matrix, as the paper defines it."""
    values = sorted({v for row in table for v in row if v is not None})
    place = {value: number for number, value in enumerate(values)}
    o = np.zeros((len(values), len(values)))
    for column in zip(*table, strict=True):
        said = [place[v] for v in column if v is not None]
        for i, c in enumerate(said):
            for j, k in enumerate(said):
                if i != j:
                    o[c, k] += 1 / (len(said) - 1)
    n = o.sum(axis=1)

    def difference(c, k):
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return (values[c] - values[k]) ** 2
        low, high = min(c, k), max(c, k)
        return (n[low : high + 1].sum() - (n[c] + n[k]) / 2) ** 2

    delta = np.array([[difference(c, k) for k in range(len(values))] for c in range(len(values))])
    return 1 - (n.sum() - 1) * (o * delta).sum() / (np.outer(n, n) * delta).sum()


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_agreement_equals_the_definition_with_missing_ratings(metric):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 5, 40)
    table = [[int(min(4, max(0, t + rng.integers(-1, 2)))) for t in truth] for _ in range(3)]
    table = [[None if rng.random() < 0.3 else value for value in row] for row in table]
    assert krippendorff_alpha(table, metric=metric) == pytest.approx(direct(table, metric), abs=1e-12)


def test_agreement_is_one_if_all_agree_and_about_zero_by_chance():
    rng = np.random.default_rng(1)
    same = [list(range(20)), list(range(20))]
    assert krippendorff_alpha(same) == pytest.approx(1)
    chance = rng.integers(0, 5, (2, 3000)).tolist()
    assert abs(krippendorff_alpha(chance)) < 0.06


def test_agreement_without_two_ratings_or_without_differences_has_a_reason():
    with pytest.raises(EvaluationError, match="no item has ratings of two annotators"):
        krippendorff_alpha([[1, None], [None, 2]])
    alike = measure_agreement(ratings_of([[3, 3], [3, 3]]), metric="interval")
    assert (alike.value, alike.reason) == (None, "all ratings are the same")
    assert "cannot be measured" in describe("x", alike)
    with pytest.raises(UsageError, match="no metric 'ratio'"):
        krippendorff_alpha([[1, 2], [1, 2]], metric="ratio")


def test_agreement_interval_is_that_of_a_bootstrap_over_items():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=60)
    table = [(truth + 0.5 * rng.normal(size=60)).tolist() for _ in range(3)]
    found = measure_agreement(ratings_of(table), metric="interval")
    assert found == measure_agreement(ratings_of(table), metric="interval")
    drawn = []
    for _ in range(400):
        index = rng.integers(0, 60, 60)
        drawn.append(krippendorff_alpha([[row[i] for i in index] for row in table]))
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.03)
    assert found.low < found.value < found.high


def test_agreement_has_no_interval_for_few_items():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=30)
    table = [(truth + 0.5 * rng.normal(size=30)).tolist() for _ in range(2)]
    assert measure_agreement(ratings_of(table), metric="interval").low is not None
    few = measure_agreement(ratings_of([row[:29] for row in table]), metric="interval")
    assert (few.low, few.high) == (None, None)
    assert "[" not in describe("x", few)


def test_agreement_names_the_annotator_who_differs():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 6, 80)
    table = [*([int(t) for t in truth] for _ in range(3)), rng.integers(0, 6, 80).tolist()]
    found = measure_agreement(ratings_of(table), metric="interval")
    assert found.outlier == "r3"
    assert found.to_dict()["outlier"] == "r3"
    assert dict(found.without)["r3"] == pytest.approx(1)
    assert "check how r3 understood the question" in found.verdict
    some = measure_agreement(ratings_of([row[:29] for row in table]), metric="interval")
    assert some.outlier is None
    assert "1.00 without r3" in some.verdict
    few = measure_agreement(ratings_of([row[:9] for row in table]), metric="interval")
    assert few.outlier is None
    assert "too few to judge" in few.verdict


def test_agreement_names_who_differs_also_if_annotators_rated_different_items():
    rng = np.random.default_rng(4)
    rows = [truth + 0.3 * rng.normal(size=120) for truth in [rng.normal(size=120)] for _ in range(4)]
    rows[1] = rng.normal(size=120)
    table = [
        [None if (i + a) % 4 == 0 else float(v) for i, v in enumerate(row)] for a, row in enumerate(rows)
    ]
    assert measure_agreement(ratings_of(table), metric="interval").outlier == "r1"


@pytest.mark.parametrize("metric", ["nominal", "interval"])
def test_agreement_blames_exchangeable_annotators_rarely(metric, monkeypatch):
    # Without a test, α without someone is .05 higher in more than half of these samples by chance.
    monkeypatch.setattr(agreement, "SAMPLES", 100)
    rng = np.random.default_rng(7)
    blamed = higher = 0
    for seed in range(50):
        said = rng.normal(size=30) + rng.normal(size=(3, 30))
        table = (
            np.clip(np.round(2.5 + 1.4 * said), 0, 5) if metric == "interval" else np.where(said > 1, 1, 0)
        )
        found = measure_agreement(ratings_of(table.tolist()), metric=metric, seed=seed)
        blamed += found.outlier is not None
        higher += max(value for _, value in found.without) >= found.value + 0.05
    assert higher > 25
    assert blamed <= 3
