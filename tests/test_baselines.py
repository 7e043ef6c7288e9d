"""What costs nothing is measured right: thresholds are the best of their rows, and never look at test."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from likewise.evaluation.metrics import compute
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.tasks import Task, TaskRows
from likewise.records import Record

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def baselines(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("baselines")


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
@pytest.mark.parametrize("seed", range(5))
def test_baseline_threshold_is_the_best_of_all(baselines, metric, seed):
    draw = np.random.default_rng(seed)
    cosines = draw.normal(size=60).round(1)  # with ties
    gold = draw.random(60) < 1 / (1 + np.exp(-cosines))
    threshold = baselines.best_threshold(metric, gold, cosines)
    tried = [compute(metric, gold, cosines >= bar) for bar in np.linspace(-3, 3, 601)[1:-1]]
    tried = [
        value for value, bar in zip(tried, np.linspace(-3, 3, 601)[1:-1], strict=True) if bar > cosines.min()
    ]
    assert compute(metric, gold, cosines >= threshold) == pytest.approx(max(tried))


def test_baseline_threshold_comes_from_other_rows_than_it_is_measured_on(baselines, monkeypatch):
    labels = ["not_paraphrase", "paraphrase"]
    rows = [Record((f"a{n}", f"b{n}"), {"paraphrase": labels[n % 2]}) for n in range(40)]
    dev = [Record((f"c{n}", f"d{n}"), {"paraphrase": labels[n % 2]}) for n in range(4000)]
    asked = []

    def load(*name, data_dir):
        asked.append(name)
        return dev

    def cosines(records):
        # On dev .5 tells the labels apart, on test .9 would.
        high = {"c": (0.2, 0.8), "a": (0.85, 0.95)}
        return np.array([high[r.texts[0][0]][r.values["paraphrase"] == "paraphrase"] for r in records])

    monkeypatch.setattr(baselines, "load_corpus", load)
    task = Task("MRPC", "mrpc", relation="paraphrase", metric="f1")
    found = baselines.cosine(task, TaskRows(task, rows, Protocol()), cosines, None)
    assert asked == [("mrpc", "dev")]
    assert (found["threshold"], found["rows"], found["from"]) == (0.5, 1000, "mrpc/dev")
    assert found["value"] == pytest.approx(100 * 2 / 3)  # every test pair lies above it
    always = baselines.majority(task, TaskRows(task, rows, Protocol()), None)
    assert always["label"] == "paraphrase"
    assert always["value"] == pytest.approx(100 * 2 / 3)
