"""The test of two systems and the default interval: equal to references, and right as often as they say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation import (
    METRICS,
    Difference,
    Protocol,
    SuiteResult,
    Task,
    compare_correlations,
    compare_results,
    compare_systems,
    metric_interval,
    run_tasks,
)
from likewise.evaluation.estimates import estimate
from likewise.evaluation.influence import metric_influence, pearson_influence, spearman_influence
from likewise.evaluation.metrics import compute
from likewise.evaluation.results import average_interval
from likewise.evaluation.sharing import Sharing, row_sharing, text_numbers
from likewise.records import Record, Relation

ROOT = Path(__file__).resolve().parents[2]


def _rows(metric: str, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if METRICS[metric].compares_labels:
        gold = rng.integers(0, 2 if metric == "f1" else 3, n)
        return gold, *(np.where(rng.random(n) < share, gold, gold.max() - gold) for share in (0.85, 0.7))
    latent = rng.normal(size=n)
    scores = [latent + noise * rng.normal(size=n) for noise in (0.5, 0.8)]
    return np.clip(np.round(2.5 + 1.25 * latent), 0, 5), scores[0], scores[1]


@pytest.mark.parametrize("metric", METRICS)
def test_influence_is_what_leaving_out_a_row_does(metric: str) -> None:
    gold, a, _ = _rows(metric, 200)
    value, influence = metric_influence(metric, gold, a)
    assert value == compute(metric, gold, a)
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    left_out = [199 * (value - compute(metric, np.delete(gold, i), np.delete(a, i))) for i in range(200)]
    assert np.corrcoef(influence, left_out)[0, 1] > 0.999
    assert influence.std() == pytest.approx(np.std(left_out), rel=0.02)


def test_influence_of_pearson_is_the_jackknife_of_fisher_z() -> None:
    gold, a, _ = _rows("pearson", 30)
    value, influence = metric_influence("pearson", gold, a)
    z = [math.atanh(stats.pearsonr(np.delete(gold, i), np.delete(a, i))[0]) for i in range(30)]
    expected = 29 * (np.mean(z) - np.array(z)) * (1 - value**2)
    assert influence == pytest.approx(expected, abs=1e-10)


def test_influence_works_on_many_sets_at_once() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, (4, 25)).astype(float), rng.normal(size=(4, 25))
    for name, function in (("pearson", pearson_influence), ("spearman", spearman_influence)):
        values, influence = function(x, y)
        for at in range(4):
            assert values[at] == pytest.approx(compute(name, x[at], y[at]), abs=1e-12)
            assert influence[at] == pytest.approx(metric_influence(name, x[at], y[at])[1], abs=1e-10)


@pytest.mark.parametrize("metric", ["accuracy", "mse", "mae"])
def test_differences_of_means_equal_the_paired_t_test(metric: str) -> None:
    gold, a, b = _rows(metric, 60)
    loss = {
        "accuracy": lambda said: (said == gold) * 1.0,
        "mse": lambda said: (said - gold) ** 2,
        "mae": lambda said: np.abs(said - gold),
    }[metric]
    expected = stats.ttest_rel(loss(a), loss(b))
    ends = expected.confidence_interval(0.95)
    found = compare_systems(metric, gold, a, b)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert found.groups == pytest.approx(60)


def test_differences_in_equal_clusters_equal_the_t_test_of_cluster_means() -> None:
    gold, a, b = _rows("mae", 120)
    groups = np.repeat(np.arange(30), 4)
    gap = (np.abs(a - gold) - np.abs(b - gold)).reshape(30, 4).mean(axis=1)
    expected = stats.ttest_1samp(gap, 0)
    for found in (
        compare_systems("mae", gold, a, b, groups=groups),
        compare_systems(
            "mae", gold, a, b, texts=[(f"prompt {g}", f"answer {i}") for i, g in enumerate(groups)]
        ),
    ):
        assert found.p is not None
        # Dependence inside the clusters, if any is found, takes nothing from equal clusters.
        assert found.groups == pytest.approx(30, rel=0.01)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-3)
        assert found.p == pytest.approx(expected.pvalue, rel=2e-2)


def test_sharing_adds_up_all_pairs_of_rows_that_share_a_text() -> None:
    rng = np.random.default_rng(2)
    texts = [tuple(f"t{k}" for k in rng.integers(0, 12, 2)) for _ in range(40)]
    texts += [
        ("t1", "t2"),
        ("T2!", "t1"),
        ("t3", "t3"),
        ("alone", "t3"),
    ]  # both shared, turned round, one text
    values = rng.normal(size=len(texts))
    keys = [{text.lower().strip("!") for text in pair} for pair in texts]
    together = np.array([[bool(one & other) for other in keys] for one in keys])
    sharing = row_sharing(len(texts), texts=texts)
    assert sharing.variance(values) == pytest.approx(max(values @ together @ values, 0), rel=1e-9)
    assert sharing.effective(np.ones(44), np.ones(44)) <= 44**2 / together.sum() + 1e-9
    assert not sharing.independent
    numbered = row_sharing(len(texts), texts=text_numbers(texts))
    assert numbered.variance(values) == pytest.approx(float(sharing.variance(values)))


def test_sharing_counts_independent_groups() -> None:
    values = np.random.default_rng(3).normal(size=60)
    assert Sharing(60).effective(values) == pytest.approx(60)
    even = row_sharing(60, groups=[row % 20 for row in range(60)])
    assert even.effective(values) == pytest.approx(20)
    # One group of 41 rows and 19 single ones, which agree inside the group: about one group decides.
    hub = row_sharing(60, groups=[max(0, row - 40) for row in range(60)])
    assert hub.effective(np.r_[np.ones(41), np.tile([1.0, -1.0], 10)[:19]]) < 2
    assert hub.effective(values) < 60**2 / (41**2 + 19) + 1e-9


def test_differences_say_when_they_cannot_tell() -> None:
    gold, a, b = _rows("spearman", 200)
    few = compare_systems("spearman", gold[:29], a[:29], b[:29])
    assert (few.p, few.interval, few.verdict) == (None, None, "cannot tell")
    assert few.reason == "only 29 rows are there, but at least 30 are needed"
    assert "cannot tell, because only 29 rows" in str(few)
    shared = compare_systems("spearman", gold, a, b, groups=[row % 8 for row in range(200)])
    assert shared.p is None
    assert "are worth about 8 independent ones" in shared.reason
    labels = np.r_[np.ones(10, int), np.zeros(190, int)]
    rare = compare_systems("f1", labels, np.roll(labels, 1), np.roll(labels, 2))
    assert rare.reason == "only 12 of 200 rows have a part in f1, but at least 30 are needed"
    with pytest.raises(EvaluationError, match="cannot be compared: only 29 rows"):
        compare_correlations(gold[:29], a[:29], b[:29])


def test_differences_are_told_in_words_and_json() -> None:
    gold, a, b = _rows("pearson", 300)
    found = compare_systems("pearson", gold, a, b)
    assert found.verdict == "better"
    assert compare_systems("pearson", gold, b, a).verdict == "worse"
    assert compare_systems("mae", gold, gold + 1.0 + 0.1 * a, gold + 0.1 * b).verdict == "worse"
    assert str(found).startswith("pearson ×100 ")
    assert str(found).endswith("p < .001): better")
    same = compare_systems("pearson", gold, a, 2 * a + 1)
    assert (same.p, same.verdict) == (1.0, "no difference shown")
    document = found.to_dict()
    assert document["verdict"] == "better"
    assert document["interval"]["low"] > 0
    assert isinstance(found, Difference)


def test_differences_of_subset_means_add_up_the_subsets() -> None:
    gold, a, b = _rows("spearman", 300)
    subsets = ["x"] * 100 + ["y"] * 200
    found = compare_systems("spearman", gold, a, b, subsets=subsets, aggregation="mean")
    parts = [compare_systems("spearman", gold[s], a[s], b[s]) for s in (slice(100), slice(100, 300))]
    assert found.difference == pytest.approx(sum(part.difference for part in parts) / 2)
    errors = [part.difference / part.statistic for part in parts]
    assert found.difference / found.statistic == pytest.approx(math.hypot(*errors) / 2, rel=0.01)


def test_differences_refuse_rows_that_do_not_pair_up() -> None:
    gold, a, b = _rows("pearson", 40)
    with pytest.raises(EvaluationError, match="there are 40 ratings or labels, but 40 and 39 predictions"):
        compare_systems("pearson", gold, a, b[:39])
    with pytest.raises(EvaluationError, match="one set per row"):
        compare_systems("pearson", gold, a, b, texts=[("a", "b")])
    with pytest.raises(EvaluationError, match="but one or two per row are expected"):
        compare_systems("pearson", gold, a, b, texts=[("a", "b", "c")] * 40)
    with pytest.raises(UsageError, match="both texts and groups are given"):
        compare_systems("pearson", gold, a, b, texts=[("a",)] * 40, groups=[1] * 40)
    with pytest.raises(UsageError, match="between 0 and 1"):
        compare_systems("pearson", gold, a, b, level=95)


@pytest.mark.parametrize("metric", METRICS)
def test_intervals_have_a_width_where_all_is_right(metric: str) -> None:
    gold, a, _ = _rows(metric, 80)
    perfect = metric_interval(metric, gold, gold)
    assert perfect.high > perfect.low
    assert perfect.method.startswith("Clopper-Pearson at the edge")
    clustered = metric_interval(metric, gold, gold, groups=[row % 20 for row in range(80)])
    assert clustered.high - clustered.low > perfect.high - perfect.low
    usual = metric_interval(metric, gold, a)
    assert usual.low < usual.value < usual.high


def test_intervals_at_the_edge_equal_clopper_pearson() -> None:
    labels = [0, 1] * 25
    expected = stats.binomtest(50, 50).proportion_ci(0.95, method="exact")
    assert metric_interval("accuracy", labels, labels).low == pytest.approx(expected.low)
    none = metric_interval("accuracy", labels, [1 - label for label in labels])
    assert (none.low, none.high) == pytest.approx((0, stats.binomtest(0, 50).proportion_ci(0.95).high))
    scores = np.arange(50.0)
    assert metric_interval("spearman", scores, scores**3).low == pytest.approx(2 * expected.low - 1)
    assert metric_interval("pearson", scores, -scores).high == pytest.approx(1 - 2 * expected.low)


def test_intervals_stay_numbers_where_one_row_decides() -> None:
    gold = np.zeros(2000)
    wrong = np.r_[1e-3, np.zeros(1999)]
    labels, said = np.tile([0, 1], 1000), np.tile([0, 1], 1000)
    said[0] = 1
    for groups in (None, np.repeat(np.arange(4), 500)):
        for metric, x, y in (("mse", gold, wrong), ("mae", gold, wrong), ("f1-macro", labels, said)):
            found = metric_interval(metric, x, y, groups=groups)
            assert np.isfinite([found.low, found.high]).all()
            assert found.low < found.value < found.high


def test_intervals_of_f1_are_those_of_a_share() -> None:
    gold, a, _ = _rows("f1", 200)
    found = metric_interval("f1", gold, a)
    hits, either = int(np.sum(gold & a)), int(np.sum(gold | a))
    share = stats.binomtest(hits, either).proportion_ci(0.95, method="wilson")
    expected = [2 * end / (1 + end) for end in (share.low, share.high)]
    assert (found.low, found.high) == pytest.approx(expected, abs=0.004)


def test_average_interval_counts_rows_of_two_tasks_together() -> None:
    gold, a, _ = _rows("spearman", 150)
    other = np.clip(gold + np.random.default_rng(5).integers(-1, 2, 150), 0, 5)
    tasks = [estimate("spearman", one, a) for one in (gold, other)]
    texts = [(row, 1000 + row) for row in range(150)]
    same = average_interval(tasks, texts * 2)
    apart = average_interval(tasks, [(row,) for row in range(300)])
    assert same is not None
    assert apart is not None
    assert same.value == pytest.approx(50 * (tasks[0].value + tasks[1].value))
    assert same.high - same.low > 1.2 * (apart.high - apart.low)
    assert average_interval([tasks[0], estimate("mae", gold, a)], texts * 2) is None


def _suite_result(name: str, noise: float) -> SuiteResult:
    rng = np.random.default_rng(8)
    tasks = []
    for number in range(2):
        relation = Relation("similarity", "graded", lo=0, hi=5)
        values = rng.integers(0, 6, 60)
        records = [Record((f"a {row}", f"b {row}"), {"similarity": float(v)}) for row, v in enumerate(values)]
        tasks.append((Task(f"task {number}", relation=relation), records))
    gold = np.array([record.values["similarity"] for _, records in tasks for record in records])
    scores = gold + noise * np.random.default_rng(len(name)).normal(size=len(gold))
    protocol = Protocol(aggregation="all")
    return run_tasks(name, tasks, score=lambda texts, names: scores, protocol=protocol, keep_predictions=True)


def test_results_of_two_models_are_compared_task_by_task_and_on_average() -> None:
    good, bad = _suite_result("good", 0.5), _suite_result("worse", 3.0)
    found = compare_results(good, bad)
    assert list(found) == ["task 0", "task 1", "average"]
    one, other = good.predictions["task 1"], bad.predictions["task 1"]
    alone = compare_systems("spearman", one.gold, one.predicted, other.predicted, texts=one.texts)
    assert found["task 1"] == alone
    assert found["average"].difference == pytest.approx((found["task 0"].difference + alone.difference) / 2)
    # Both tasks ask about the same 60 pairs: together they are no more than that.
    assert found["average"].groups == pytest.approx(60, rel=0.1)
    assert found["average"].verdict == "better"
    assert good.average_interval is not None
    assert "average" in good.to_text().splitlines()[-3]
    assert good.to_dict()["average_interval"]["low"] < good.average < good.average_interval.high
    bare = replace(bad, predictions={})
    with pytest.raises(EvaluationError, match="keep_predictions=True"):
        compare_results(good, bare)


@pytest.fixture
def simulating(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from simulating import cells, populations

    return cells, populations


def test_simulations_tests_err_and_intervals_hold_as_often_as_they_say(simulating, monkeypatch) -> None:
    cells, populations = simulating
    monkeypatch.setattr(populations, "TRUTH_ROWS", 200_000)
    rng = np.random.default_rng(7)
    graded, labelled = populations.Graded(0.6, share=0.6), populations.Labelled(0.2, 0.8, 0.05)
    many, crossed = populations.prompts(40, rng), populations.crossed(150, rng)
    for cell in (
        cells.Cell("rows", "ties", "spearman", populations.Graded(0.6), populations.apart(100)),
        cells.Cell("rows", "ties", "pearson", populations.Graded(0.6), populations.apart(100)),
        cells.Cell("rows", "labels", "f1", labelled, populations.apart(300)),
        cells.Cell("prompts", "shared", "spearman", graded, many, shares=True),
        cells.Cell("crossed", "shared", "pearson", graded, crossed, shares=True),
    ):
        found = cell.run(300, [7])
        assert found["told"] > 0.95, found
        assert 0.02 <= found["error"] <= 0.085, found  # 5 % of 300, give or take three standard errors
        assert 0.915 <= found["coverage"] <= 0.985, found
        if cell.shares:
            assert found["error_old"] > found["error"] + 0.02, found
            assert found["coverage_old"] < found["coverage"], found
    refused = cells.Cell("prompts", "few", "pearson", graded, populations.prompts(12, rng), shares=True)
    assert refused.run(20, [7])["told"] == 0
