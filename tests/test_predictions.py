"""Predictions beside a result file: a test is repeated without training, and nothing else is read."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import zipfile

import numpy as np
import pytest

from likewise.errors import DataError, EvaluationError, UsageError
from likewise.evaluation import compare_results
from likewise.evaluation.sharing import text_fingerprints
from likewise.experiments import predictions, run_experiments
from likewise.experiments.predictions import Gathered, gather, read_run, write_summary

ROWS = [("A dog runs.", "a dog runs"), ("A cat.", "A dog runs."), ("One.", "Two.")] * 20
GOLD = np.array([5.0, 1.5, 0.5] * 20, dtype=np.float32)
LABELS = np.array(["yes", "no", "maybe"] * 20)


def cell(source="cosine", tasks=("rated", "labelled")):
    """What a cell says of its results, as far as predictions need it."""
    known = {
        "rated": {"metric": "pearson", "relation": "similarity", "fingerprint": "f1"},
        "labelled": {"metric": "accuracy", "relation": "entailment", "fingerprint": "f2"},
    }
    rest = {"n": len(ROWS), "pairs": "p", "missing": 0}
    protocol = {"metric": "by task", "aggregation": "all", "source": source}
    found = [{"name": name, **known[name], **rest} for name in tasks]
    return {"results": {source: {"tasks": found, "protocol": protocol}}}


def kept(seed, source="cosine"):
    """The arrays of such a cell."""
    noise = np.random.default_rng(seed).normal(0, 1, len(ROWS)).astype(np.float32)
    rows = text_fingerprints(ROWS)
    answers = np.where(noise > 1, "no", LABELS)
    return {
        "gold/rated": GOLD,
        "rows/rated": rows,
        f"{source}/rated": GOLD + noise,
        "gold/labelled": LABELS,
        "rows/labelled": rows,
        "subsets/labelled": np.array(["a", "b"] * 30),
        f"{source}/labelled": answers,
    }


class Result:
    """As much of a result as is written."""

    name = "mine"

    def __init__(self, predictions):
        self.predictions = predictions

    def to_dict(self):
        return {"name": "mine", "suite": "s"}


def predictions_of(summary):
    """The one file of predictions beside a result file."""
    [found] = summary.parent.glob("*.npz")
    return found


@pytest.fixture
def summary(tmp_path):
    """A result file with two settings, two seeds."""
    runs = [
        ("", name, seed, [(cell(), kept(seed + at))]) for at, name in ((0, "a"), (7, "b")) for seed in (1, 2)
    ]
    written = write_summary(Result(gather(runs)), tmp_path / "out")
    assert [path.name for path in written] == ["mine.json", predictions_of(written[0]).name]
    return written[0]


def test_run_is_read_back_as_it_was_measured(summary):
    found = read_run(summary, "b", seed=2)
    arrays = kept(9)
    assert np.array_equal(found.predictions["labelled"].predicted, arrays["cosine/labelled"])
    assert np.array_equal(found.predictions["labelled"].gold, LABELS)
    np.testing.assert_allclose(found.predictions["rated"].predicted, arrays["cosine/rated"], atol=1e-3)
    assert found["labelled"].value == pytest.approx(100 * np.mean(arrays["cosine/labelled"] == LABELS))
    wanted = 100 * np.corrcoef(GOLD, arrays["cosine/rated"])[0, 1]
    assert found["rated"].value == pytest.approx(wanted, abs=1e-2)
    assert found["rated"].fingerprint == "f1"


def test_test_between_two_runs_is_repeated_and_knows_which_rows_share_texts(summary):
    found = compare_results(read_run(summary, "a", seed=1), read_run(summary, "b", seed=1))
    # Three pairs of texts, twenty times each: they amount to too few independent rows for any test.
    assert found["rated"].verdict == "cannot tell"
    assert "share texts" in found["rated"].reason


def test_texts_are_not_in_the_file_and_nothing_is_pickled(summary):
    beside = predictions_of(summary)
    with np.load(beside, allow_pickle=False) as file:
        assert file["rows/rated"].dtype == np.uint64
        assert all(file[name].dtype.kind in "fuU" for name in file.files)
    # Compared as audits do: case and marks aside.
    rows = text_fingerprints(ROWS)
    assert rows[0, 0] == rows[0, 1] != rows[1, 0]


def test_result_file_without_predictions_says_how_to_get_them(tmp_path):
    (tmp_path / "old.json").write_text('{"name": "old"}')
    with pytest.raises(EvaluationError, match=r"no predictions are kept beside .*; run the experiment again"):
        read_run(tmp_path / "old.json", "a", seed=1)


def test_unknown_run_names_those_that_are_there(summary):
    with pytest.raises(EvaluationError, match=r"no predictions of 'c seed 1'\. Choose one of a seed 1, "):
        read_run(summary, "c", seed=1)
    with pytest.raises(EvaluationError, match="'a seed 1 by head'"):
        read_run(summary, "a", seed=1, source="head")


def test_another_or_a_damaged_file_is_refused(summary):
    beside = predictions_of(summary)
    beside.write_bytes(beside.read_bytes()[:-1])
    with pytest.raises(DataError, match="is not the file that its result file was written with"):
        read_run(summary, "a", seed=1)
    beside.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        read_run(summary, "a", seed=1)


def put_in(summary, change):
    """Change the document of a result file."""
    document = json.loads(summary.read_text())
    change(document["predictions"])
    summary.write_text(json.dumps(document))


def digest_of(path):
    """The digest as the document holds it."""
    from likewise.files import file_sha256

    return file_sha256(path)


def test_pickles_and_bombs_are_refused(summary):
    beside = predictions_of(summary)
    arrays = {"predicted/0/rated": np.array([object()]), "gold/rated": GOLD, "rows/rated": GOLD}
    np.savez_compressed(beside, **arrays, allow_pickle=True)
    put_in(summary, lambda told: told.update(sha256=digest_of(beside)))
    with pytest.raises(DataError, match="cannot be read"):
        read_run(summary, "a", seed=1)
    with (
        zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as parts,
        parts.open("gold/rated.npy", "w") as file,
    ):
        for _ in range(1100):
            file.write(bytes(2**20))
    assert beside.stat().st_size < 2**22
    put_in(summary, lambda told: told.update(sha256=digest_of(beside)))
    with pytest.raises(DataError, match="too much for predictions"):
        read_run(summary, "a", seed=1)


def test_document_that_leads_elsewhere_or_does_not_fit_is_refused(summary, tmp_path):
    shutil.copy(predictions_of(summary), tmp_path / "elsewhere.npz")
    put_in(summary, lambda told: told.update(file="../elsewhere.npz"))
    with pytest.raises(DataError, match=r"out/elsewhere\.npz: this file cannot be read"):
        read_run(summary, "a", seed=1)
    for change in (
        {"file": predictions_of(summary).name, "tasks": {}},
        {"runs": [{"setting": "a"}]},
        {"runs": 7},
    ):
        put_in(summary, lambda told, change=change: told.update(change))
        with pytest.raises(DataError, match="does not fit them"):
            read_run(summary, "a", seed=1)


def test_cells_of_earlier_versions_have_none(tmp_path):
    old = {name: row for name, row in kept(1).items() if not name.startswith("rows/")}
    assert gather([("", "a", 1, [(cell(), old)])]) is None
    assert [path.name for path in write_summary(Result(None), tmp_path)] == ["mine.json"]


def test_experiment_says_where_its_numbers_come_from(tmp_path, tiny_encoder, tiny_pairs, monkeypatch):
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    (tmp_path / "suite.toml").write_text(
        f'name = "mine"\n[[task]]\nname = "pairs"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n'
    )
    (tmp_path / "recipe.toml").write_text(
        f'name = "small"\nencoder = "{tiny_encoder}"\n[relation.similarity]\n[[stage]]\n'
        f'data = [{{ source = "{tiny_pairs}" }}]\nmax_steps = 1\nbatch_size = 8\n'
        'objective = [{ relation = "similarity", head = "cosine", loss = "mse" }]\n'
    )
    (tmp_path / "experiment.toml").write_text(
        f'name = "small"\nrecipe = "{tmp_path / "recipe.toml"}"\nsuite = "{tmp_path / "suite.toml"}"\n'
        'seeds = [1, 2]\n[[setting]]\nname = "MSE"\n'
    )
    [result] = run_experiments(
        [tmp_path / "experiment.toml"], tmp_path / "cells", device="cpu", keep_predictions=True
    )
    [summary, beside] = write_summary(result, tmp_path / "results")
    document = json.loads(summary.read_text())
    [maker] = document["made_by"]
    assert maker["cells"] == 2
    assert {"torch", "scipy", "scikit-learn", "tokenizers", "likewise", "python"} <= set(maker["versions"])
    assert maker["machine"]["processor"]
    assert "commit" in maker
    assert document["test_rows"]["pairs"]["n"] == 40
    assert document["content"][str(tiny_pairs)]
    for seed, value in zip((1, 2), document["settings"][0]["numbers"]["pairs"], strict=True):
        assert read_run(summary, "MSE", seed=seed)["pairs"].value == pytest.approx(value, abs=0.02)
    assert beside.stat().st_size < 10_000


def test_commit_is_the_checkouts_or_nothing(tmp_path, monkeypatch):
    import likewise.versions as versions

    versions.commit.cache_clear()
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "site-packages" / "likewise" / "versions.py"))
    assert versions.commit() == ""
    versions.commit.cache_clear()


def gathered(*, more=0):
    """Predictions of one run."""
    return Result(gather([("", "a", 1, [(cell(), kept(1 + more))])]))


def test_a_writer_that_is_stopped_leaves_the_old_result_whole(tmp_path, monkeypatch):
    """Killed, or on a full disk, between the two files: the old pair is read, the next writer cleans up."""
    summary, _ = write_summary(gathered(), tmp_path / "out")
    before = read_run(summary, "a", seed=1)["rated"].value
    with monkeypatch.context() as patch:
        patch.setattr(predictions, "write_json_aside", lambda *_, **__: stop())
        with pytest.raises(KeyboardInterrupt):
            write_summary(gathered(more=3), tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.npz"))) == 2
    assert read_run(summary, "a", seed=1)["rated"].value == before
    summary, beside = write_summary(gathered(more=3), tmp_path / "out")
    assert read_run(summary, "a", seed=1)["rated"].value != before
    assert predictions_of(summary) == beside


def test_a_writer_that_was_stopped_in_an_empty_folder_is_repeated(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(predictions, "write_json_aside", lambda *_, **__: stop())
        with pytest.raises(KeyboardInterrupt):
            write_summary(gathered(), tmp_path / "out", replace=False)
    summary, beside = write_summary(gathered(), tmp_path / "out", replace=False)
    assert predictions_of(summary) == beside
    assert read_run(summary, "a", seed=1)


def test_files_that_the_replaced_result_does_not_name_stay(tmp_path):
    """Neither what a user calls like ours, nor what another result or a copy of one still names."""
    out = tmp_path / "out"
    summary, beside = write_summary(gathered(), out)
    shutil.copy(summary, out / "before.json")
    hashed = [f"{name}.predictions-0123456789ab.npz" for name in ("mine", "other")]
    theirs = ["mine.predictions.npz", *hashed]
    for name in theirs:
        (out / name).write_bytes(b"a user's")
    write_summary(gathered(more=3), out)
    assert all((out / name).read_bytes() == b"a user's" for name in theirs)
    assert beside.is_file()
    assert read_run(out / "before.json", "a", seed=1)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_under_the_name_of_predictions_is_not_written_over(tmp_path, kind):
    out = tmp_path / "out"
    summary, beside = write_summary(gathered(), out)
    summary.unlink()
    beside.unlink()
    notes = tmp_path / "notes.txt"
    notes.write_text("a user's")
    shutil.copy(notes, beside) if kind == "file" else beside.symlink_to(notes)
    with pytest.raises(UsageError, match="already exists and holds something else"):
        write_summary(gathered(), out)
    assert notes.read_text() == beside.read_text() == "a user's"
    assert not summary.exists()


def test_results_that_differ_in_the_order_of_tasks_alone_have_the_same_predictions(tmp_path):
    one = gathered()
    other = gathered()
    arrays = dict(reversed(other.predictions.arrays.items()))
    other.predictions = Gathered(other.predictions.about, arrays)
    assert write_summary(one, tmp_path / "a")[1].name == write_summary(other, tmp_path / "b")[1].name


def test_two_writers_of_one_result_take_turns(tmp_path, monkeypatch):
    """The one that is stopped between its two files holds the other up, which then finds both."""
    write = predictions.write_json_aside
    began, ended = threading.Event(), threading.Event()

    def slowly(*arguments, **options):
        began.set()
        assert not ended.wait(0.5)
        write(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(predictions, "write_json_aside", slowly)
        first = threading.Thread(target=write_summary, args=(gathered(), tmp_path / "out"))
        first.start()
        began.wait(5)
        patch.setattr(predictions, "write_json_aside", write)
        write_summary(gathered(more=3), tmp_path / "out")
        ended.set()
        first.join()
    assert read_run(tmp_path / "out" / "mine.json", "a", seed=1)
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".json", ".npz"]


def test_predictions_of_earlier_versions_go_with_the_result_that_named_them(tmp_path):
    summary, beside = write_summary(gathered(), tmp_path / "out")
    document = json.loads(summary.read_text())
    beside.rename(summary.with_name("mine.predictions.npz"))
    document["predictions"]["file"] = "mine.predictions.npz"
    summary.write_text(json.dumps(document))
    assert read_run(summary, "a", seed=1)
    summary, beside = write_summary(gathered(more=3), tmp_path / "out")
    assert predictions_of(summary) == beside


def stop():
    raise KeyboardInterrupt


def test_labels_that_would_fill_the_memory_are_refused(tmp_path):
    """A file of a few kilobytes: one very long label, in every row."""
    summary, beside = write_summary(gathered(), tmp_path / "out")
    with np.load(beside) as held:
        arrays = dict(held)
    arrays["labels/labelled"] = np.array(["yes", "no", "x" * 2_000_000])
    np.savez_compressed(beside, **arrays)
    document = json.loads(summary.read_text())
    document["predictions"]["sha256"] = hashlib.sha256(beside.read_bytes()).hexdigest()
    summary.write_text(json.dumps(document))
    with pytest.raises(DataError, match="labels have up to 2,000,000 characters in every row"):
        read_run(summary, "a", seed=1)
