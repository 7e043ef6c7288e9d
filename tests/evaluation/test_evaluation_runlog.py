"""The log of test runs keeps every line, also from writers side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from likewise.disk import UnwritableError
from likewise.errors import DataError
from likewise.evaluation import Protocol, SuiteResult, Task, log_test_run, read_log, run_tasks
from likewise.evaluation.runlog import log_path
from likewise.records import Record


@pytest.fixture
def result() -> SuiteResult:
    """A small result with its predictions kept."""
    records = [Record((f"Oak {i}", f"Elm {i}"), {"similarity": float(i)}) for i in range(6)]
    score = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.9])
    return run_tasks(
        "trees",
        [(Task("t"), records)],
        score=lambda pairs, relations: score,
        protocol=Protocol(),
        keep_predictions=True,
    )


def test_runlog_appends_one_line_per_run(tmp_path: Path, result: SuiteResult) -> None:
    path = tmp_path / "deep" / "log.jsonl"
    assert read_log(path) == []
    for model in ("first", "zweites Modell ✓"):
        assert log_test_run(result, model=model, fingerprint="ab12", recipe="demo", path=path) == path
    first, second = read_log(path)
    assert (first["suite"], first["model"], first["recipe"], first["fingerprint"]) == (
        "trees",
        "first",
        "demo",
        "ab12",
    )
    assert second["model"] == "zweites Modell ✓"
    assert first["protocol"] == {"metric": "spearman", "aggregation": "all", "source": "cosine"}
    assert first["result"]["tasks"][0]["value"] == pytest.approx(result["t"].value)
    assert "predictions" not in first["result"]
    assert first["date"].endswith("+00:00")


def test_runlog_place_is_named_by_call_environment_or_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: SuiteResult
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIKEWISE_TEST_LOG", raising=False)
    assert log_test_run(result, model="m") == Path("runs/likewise-test-runs.jsonl")
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "other.jsonl"))
    assert log_path() == tmp_path / "other.jsonl"
    assert log_path("named.jsonl") == Path("named.jsonl")


def test_runlog_damaged_lines_are_named(tmp_path: Path, result: SuiteResult) -> None:
    path = tmp_path / "log.jsonl"
    log_test_run(result, model="m", path=path)
    with path.open("a") as handle:
        handle.write('[1]\n{"half": ')
    log_test_run(result, model="after\u2028it", path=path)
    with pytest.raises(DataError, match=r"log\.jsonl:2: this is not a JSON object") as caught:
        read_log(path)
    assert [problem.source.rpartition(":")[2] for problem in caught.value.problems] == ["2", "3"]
    path.write_text("\n".join(line for line in path.read_text().split("\n") if line.startswith('{"date')))
    assert [run["model"] for run in read_log(path)] == ["m", "after\u2028it"]
    with pytest.raises(DataError, match="cannot be written"):
        log_test_run(result, model="m", path=tmp_path)


def test_runlog_keeps_every_line_of_concurrent_writers(tmp_path: Path) -> None:
    code = """
import sys
from likewise.evaluation import Protocol, SuiteResult, TaskResult, log_test_run
task = TaskResult("t", "similarity", "spearman", 80.0, 9, None, (), "0" * 64)
result = SuiteResult("trees", Protocol(), (task,) * 40)
for number in range(50):
    log_test_run(result, model=f"{sys.argv[1]}-{number}")
"""
    path = tmp_path / "log.jsonl"
    environment = {**os.environ, "LIKEWISE_TEST_LOG": str(path)}
    writers = [subprocess.Popen([sys.executable, "-c", code, name], env=environment) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    runs = read_log(path)
    assert sorted(run["model"] for run in runs) == sorted(f"{name}-{n}" for name in "abc" for n in range(50))
    for name in "abc":
        own = [run["model"] for run in runs if run["model"].startswith(name)]
        assert own == [f"{name}-{n}" for n in range(50)]
    assert all(len(run["result"]["tasks"]) == 40 for run in runs)


def test_runlog_on_a_full_disk_leaves_no_half_line(
    tmp_path: Path, result: SuiteResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    log_test_run(result, model="first", path=path)
    before, write = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:10]))
    with pytest.raises(DataError, match=r"this cannot be written .*No space left.* Name another log"):
        log_test_run(result, model="second", path=path)
    assert path.read_bytes() == before


def test_runlog_that_cannot_be_written_does_not_cost_the_result(
    tmp_path: Path,
    tiny_encoder: Path,
    tiny_pairs: Path,
    here: Callable[..., tuple[int, str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("LIKEWISE_TEST_LOG", raising=False)
    (tmp_path / "suite.toml").write_text(
        f'name = "mine"\n[[task]]\nname = "pairs"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n'
    )
    (tmp_path / "runs").write_text("a file where the folder should be")
    code, said = here("evaluate", tiny_encoder, "--suite", "suite.toml", "--output", "out.json")
    assert code == 0, said
    assert (tmp_path / "out.json").is_file()
    assert (
        caplog.text.count("this test run could not be added to the log: runs/likewise-test-runs.jsonl") == 1
    )


def test_runlog_adds_no_line_to_a_file_that_is_no_log(tmp_path: Path, result: SuiteResult) -> None:
    data = tmp_path / "pairs.csv"
    data.write_text("text_a,text_b\n", encoding="utf8")
    with pytest.raises(UnwritableError, match="this is not a log of test runs"):
        log_test_run(result, model="m", path=data)
    assert data.read_text(encoding="utf8") == "text_a,text_b\n"
