"""likewise audit: files, corpora and suites in; a report, and the filtered training file, out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from likewise.cli import audit as audit_module
from likewise.cli.audit import AuditCommand, audit, spread_option, with_number
from likewise.errors import DataError, LeakageError, UsageError
from likewise.evaluation.copies import NEAR

TRAIN = """left_text,right_text,score,note
A heron waits by the lock.,The barge is late.,4.5,keep my notes
THE TOLL WENT UNPAID,"Nobody paid the toll, alas",5,shared by order and case
Rye needs a long proof.,"Wheat, ""they say"", rises faster.",1.5,commas
"""
TEST = (
    "text_a\ttext_b\tsubset\nNobody paid the toll, alas.\tThe toll went unpaid!\troad\nOats.\tRye.\tfield\n"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command in a folder with a training and a test file; errors come through as raised."""
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text(TRAIN)
    Path("test.tsv").write_text(TEST)
    app = typer.Typer()
    app.command(cls=AuditCommand)(audit)

    def invoke(*args: object) -> str:
        result = CliRunner().invoke(
            app, [str(arg) for arg in args], catch_exceptions=False, standalone_mode=False
        )
        if result.exception:
            raise result.exception
        return result.output

    return invoke


COLUMNS = ("--text-a", "left_text", "--text-b", "right_text")


def test_audit_cli_prints_the_report(run) -> None:
    lines = run("train.csv", "--against", "test.tsv", *COLUMNS).splitlines()
    assert lines[1].split() == ["test.tsv", "2", "1", "50.0%", "1", "1", "1", "1"]
    assert lines[2].split()[0] == "road"
    assert (
        "1 of 3 training rows are evaluation pairs. The set with the largest share "
        "is test.tsv, with 50.0% of its rows."
    ) in lines[4]
    assert lines[5] == "e.g. train.csv:3 = test.tsv:2"


def test_audit_cli_test_files_may_have_the_named_columns_too(run) -> None:
    Path("test.csv").write_text(
        "left_text,right_text,text_a,text_b\nThe toll went unpaid.,Nobody paid the toll; alas,x,y\n"
    )
    data = json.loads(run("train.csv", "--against", "test.csv", *COLUMNS, "--json"))
    assert data["shared_train_rows"] == 1


def test_audit_cli_output_keeps_all_columns_of_the_kept_rows(run) -> None:
    printed = run("train.csv", "--against", "test.tsv", *COLUMNS, "--output", "clean.csv")
    assert printed.splitlines()[-1] == "clean.csv: 2 of 3 training rows written"
    with Path("clean.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["note"] for row in rows] == ["keep my notes", "commas"]
    assert rows[1]["right_text"] == 'Wheat, "they say", rises faster.'
    assert list(rows[0]) == ["left_text", "right_text", "score", "note"]


def test_audit_cli_joins_several_training_files_under_common_names(run) -> None:
    Path("train.csv").write_text(TRAIN.replace("left_text,right_text", "sentence1,sentence2"))
    Path("more.jsonl").write_text('{"premise": "Oats.", "hypothesis": "Rye.", "label": 1}\n' * 2)
    data = json.loads(
        run("train.csv", "more.jsonl", "--against", "test.tsv", "--json", "--output", "all.jsonl")
    )
    assert (data["train_rows"], data["shared_train_rows"], data["kept_rows"], data["output"]) == (
        5,
        3,
        2,
        "all.jsonl",
    )
    rows = [json.loads(line) for line in Path("all.jsonl").read_text().splitlines()]
    assert rows[0]["text_a"] == "A heron waits by the lock."
    assert rows[0]["note"] == "keep my notes"


def test_audit_cli_against_takes_several_values(run) -> None:
    Path("train.csv").write_text(TRAIN.replace("left_text,right_text", "text_a,text_b"))
    Path("second.tsv").write_text(TEST)
    data = json.loads(run("train.csv", "--against", "test.tsv", "second.tsv", "--json"))
    assert [found["name"] for found in data["sets"]] == ["test.tsv", "second.tsv"]
    args = ["a", "--against", "x", "y", "--json", "b"]
    assert spread_option("--against", args) == ["a", "--against", "x", "--against", "y", "--json", "b"]


def test_audit_cli_single_texts(run) -> None:
    Path("news.csv").write_text("label,text\n1,Plain news.\n0,Other news.\n")
    Path("seen.csv").write_text("label,text\n1,plain NEWS\n")
    data = json.loads(run("news.csv", "--against", "seen.csv", "--json"))
    assert data["shared_train_rows"] == 1


NEAR_TRAIN = """text_a,text_b,score
Nobody paid the toll alas,Entirely new.,5
"the toll, it went unpaid","alas, paid the toll nobody",4
Rye needs a long proof.,Wheat rises faster.,1
Nobody paid the toll alas,The toll went unpaid,5
"""


def near_files() -> None:
    Path("train.csv").write_text(NEAR_TRAIN)
    Path("test.tsv").write_text("text_a\ttext_b\nNobody paid the toll, alas.\tThe toll: it went unpaid!\n")


def test_audit_cli_near_alone_means_nine_tenths(run) -> None:
    near_files()
    for given in (["--near"], ["--near", "0.9"], ["--near=0.9"]):
        data = json.loads(run("train.csv", *given, "--against", "test.tsv", "--json"))
        assert (data["near"], data["near_train_rows"], data["kept_rows"]) == (0.9, 1, 4)
        assert data["near_examples"] == [["train.csv:3", "test.tsv:2"]]
        assert data["strict"] is False
    assert (
        json.loads(run("train.csv", "--near", "0.8", "--against", "test.tsv", "--json"))["near_train_rows"]
        == 2
    )
    assert "near" not in json.loads(run("train.csv", "--against", "test.tsv", "--json"))
    assert with_number("--near", ["--near", "train.csv", "--near"], "0.9") == [
        *("--near", "0.9", "train.csv", "--near", "0.9")
    ]


def test_audit_cli_strict_writes_only_rows_that_share_nothing(run) -> None:
    near_files()
    printed = run("train.csv", "--against", "test.tsv", "--strict", "--output", "clean.csv").splitlines()
    assert printed[-2:] == [
        (
            "strict filter: kept 1 of 4 training rows and dropped 0 evaluation pairs, 3 rows with "
            "a text of an evaluation row and 0 near-duplicates"
        ),
        "clean.csv: 1 of 4 training rows written",
    ]
    assert any(line.startswith("shared texts: 3 of 4 training rows") for line in printed)
    assert "e.g. train.csv:3 ≈ test.tsv:2" in printed
    with Path("clean.csv").open(newline="") as handle:
        assert [row["text_a"] for row in csv.DictReader(handle)] == ["Rye needs a long proof."]


def test_audit_cli_limit_asks_for_pairs_alone(run) -> None:
    near_files()
    run("train.csv", "--against", "test.tsv", "--near", "--strict", "--limit", 0)


@pytest.mark.parametrize("near", ["0", "-1", "1.5", "nan"])
def test_audit_cli_near_is_a_jaccard_similarity(run, near) -> None:
    near_files()
    with pytest.raises(
        UsageError, match=r"but a Jaccard similarity above 0 and at most 1 is expected, such as 0\.9"
    ):
        run("train.csv", "--against", "test.tsv", "--near", near)


def test_audit_cli_says_the_default_of_near(run) -> None:
    assert float(audit_module._NEAR) == NEAR


def test_audit_cli_refuses_what_would_go_wrong(run) -> None:
    Path("train.csv").write_text(TRAIN.replace("left_text,right_text", "text_a,text_b"))
    with pytest.raises(LeakageError, match=r"test\.tsv: 1 of 2 pairs"):
        run("train.csv", "--against", "test.tsv", "--limit", 0.1)
    with pytest.raises(UsageError, match="is an input of this command"):
        run("train.csv", "--against", "test.tsv", "--output", "./train.csv")
    with pytest.raises(DataError, match="no such file"):
        run("train.csv", "--against", "absent.tsv")
    with pytest.raises(DataError, match="no column 'left'"):
        run("train.csv", "--against", "test.tsv", "--text-a", "left", "--text-b", "right")
    Path("train.csv").write_text("text_a,text_b\nOne.,Two.\nThree.,\n")
    with pytest.raises(DataError, match=r"train\.csv:3: text_b is empty"):
        run("train.csv", "--against", "test.tsv", "--output", "clean.csv")
    assert sorted(path.name for path in Path().iterdir()) == ["test.tsv", "train.csv"]


@pytest.mark.realdata
def test_audit_cli_pinned_counts_of_named_corpora(run, data_dir: Path) -> None:
    named = ("stsb/train", "sick/train", "--against", "sts7", "--data-dir", data_dir)
    data = json.loads(run(*named, "--json", "--output", "clean.jsonl"))
    assert (data["train_rows"], data["kept_rows"]) == (10_249, 5_318)
    rows = [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()]
    assert sum(row.get("similarity") is not None for row in rows) == 951
    assert sum(row.get("relatedness") is not None for row in rows) == 4_367
