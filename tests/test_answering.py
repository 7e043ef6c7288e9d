"""Files of answers: rows that cannot be read, and runs that are stopped and continued."""

from __future__ import annotations

import csv
import json
import time

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise.cli import answering, console
from likewise.data.asked import BadRows, ask_rows
from likewise.data.journal import journal_folder
from likewise.data.tables import open_table
from likewise.errors import DataError, UsageError
from likewise.predict.pairs import Predictor

GOOD = [("1", "a man plays", "a man is playing"), ("2", "the dog runs", "a cat sleeps")]
BAD = "id,text_a,text_b\n1,a man plays,a man is playing\n2,,nothing\n3,only\n4,the dog runs,a cat sleeps\n"


@pytest.fixture
def cpu(tiny_encoder):
    return ("--model", str(tiny_encoder), "--device", "cpu")


def rows_of(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


def test_score_keeps_rows_without_texts_blank_and_tells_them(tmp_path, here, cpu):
    (tmp_path / "p.csv").write_text(BAD)
    code, said = here("score", "p.csv", "--output", "out.csv", *cpu)
    assert code == 0, said
    assert "2 of 4 rows could not be read and have no answers:" in said
    assert "p.csv:3: text_a is empty, but a text is expected" in said
    assert "p.csv:4: there are 2 fields, but 3 are expected (id, text_a, text_b)" in said
    assert "2 pairs scored" in said
    rows = rows_of(tmp_path / "out.csv")
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert [bool(row["similarity"]) for row in rows] == [True, False, False, True]
    code, said = here("score", "p.csv", "--output", "skipped.csv", "--on-bad", "skip", *cpu)
    assert code == 0, said
    assert "2 of 4 rows could not be read and are left out:" in said
    assert rows_of(tmp_path / "skipped.csv") == [rows[0], rows[3]]


def test_score_stops_at_a_bad_row_if_it_is_told_to(tmp_path, here, cpu):
    (tmp_path / "p.csv").write_text(BAD)
    code, said = here("score", "p.csv", "--output", "out.csv", "--on-bad", "stop", *cpu)
    assert code == 1
    assert "p.csv:3: text_a is empty" in said
    assert not (tmp_path / "out.csv").exists()
    code, said = here("score", "p.csv", "--on-bad", "drop", *cpu)
    assert code == 2
    assert "Choose stop, skip or blank" in said


def test_score_refuses_a_row_without_a_place_and_a_table_without_a_text(tmp_path, here, cpu):
    (tmp_path / "wide.csv").write_text("text_a,text_b\nx,y\nx,y,z\n")
    code, said = here("score", "wide.csv", *cpu)
    assert code == 1
    assert "wide.csv:3: there are 3 fields" in said
    assert "leave such rows out: --on-bad skip" in said
    assert here("score", "wide.csv", "--on-bad", "skip", *cpu)[0] == 0
    (tmp_path / "none.csv").write_text("text_a,text_b\n,y\nx,\n")
    code, said = here("score", "none.csv", "--output", "out.csv", *cpu)
    assert code == 1
    assert "none of 2 rows can be answered (columns: text_a, text_b)" in said
    assert not (tmp_path / "out.csv").exists()


def test_rows_with_bytes_that_are_no_text_are_bad_rows(tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(b"text_a,text_b\nx,y\ncaf\xe9,z\nu,v\n")
    bad = BadRows("blank")
    assert [asked.texts for asked in ask_rows(open_table(path), ("text_a", "text_b"), bad)] == [
        ("x", "y"),
        None,
        ("u", "v"),
    ]
    assert [problem.source for problem in bad.first] == ["p.csv:3"]
    path = tmp_path / "p.jsonl"
    path.write_text('{"text": "x"}\nno json\n{"text": 1}\n{"text": NaN}\n')
    bad = BadRows("skip")
    assert [asked.texts for asked in ask_rows(open_table(path), ("text",), bad)] == [("x",), None, None]
    assert (bad.count, bad.told(4)[0]) == (3, "3 of 4 rows could not be read and are left out:")


def test_score_writes_the_delimiter_of_its_input(tmp_path, here, cpu):
    (tmp_path / "p.csv").write_text('id;text_a;text_b\n1;"a; b";c, d\n')
    assert here("score", "p.csv", "--output", "out.csv", *cpu)[0] == 0
    assert (tmp_path / "out.csv").read_text().startswith('id;text_a;text_b;similarity\n1;"a; b";c, d;')
    assert here("score", "p.csv", "--output", "out.tsv", *cpu)[0] == 0
    assert (tmp_path / "out.tsv").read_text().startswith("id\ttext_a\ttext_b\t")


def test_score_writes_a_byte_order_mark_where_excel_wrote_one_and_keeps_empty_rows(tmp_path, here, cpu):
    (tmp_path / "p.csv").write_text("id;text_a;text_b\n1;a;b\n;;\n", encoding="utf-8-sig")
    assert here("score", "p.csv", "--output", "out.csv", *cpu)[0] == 0
    written = (tmp_path / "out.csv").read_bytes()
    assert written.startswith(b"\xef\xbb\xbfid;text_a;text_b;similarity\n1;a;b;")
    assert written.endswith(b"\n;;;\n")


def test_score_and_classify_read_a_spreadsheet(tmp_path, here, cpu):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("id", "text_a", "text_b"), *GOOD):
        book.active.append(row)
    book.create_sheet("Texts").append(["text"])
    book["Texts"].append(["the dog runs"])
    book.save(tmp_path / "p.xlsx")
    code, said = here("score", "p.xlsx", "--output", "out.csv", *cpu)
    assert code == 0, said
    assert [row["id"] for row in rows_of(tmp_path / "out.csv")] == ["1", "2"]
    code, said = here("classify", "p.xlsx#Texts", "--labels", "the dog, the man", *cpu)
    assert code == 0, said
    assert "the dog runs" in said


# Runs that are stopped.


@pytest.fixture
def long(tmp_path, monkeypatch):
    """A table that takes five windows and two and a half sections."""
    monkeypatch.setattr(answering, "WINDOW", 20)
    monkeypatch.setattr(answering, "SECTION_TEXTS", 60)
    rows = [f"{n},a man plays {n},the dog {n % 50} runs" for n in range(95)]
    rows[31] = "31,,empty"
    rows[77] = "77,short"
    (tmp_path / "p.csv").write_text("\n".join(["id,text_a,text_b", *rows]) + "\n")
    return tmp_path


def stopping(monkeypatch, after: int, error: BaseException) -> None:
    """Let the model fail at its call number `after`."""
    calls = []
    real = Predictor.score

    def score(self, *arguments, **options):
        calls.append(None)
        if len(calls) == after:
            raise error
        return real(self, *arguments, **options)

    monkeypatch.setattr(Predictor, "score", score)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_score_that_is_stopped_and_resumed_writes_the_same_bytes(long, monkeypatch, here, cpu, ending):
    assert here("score", "p.csv", "--output", f"whole.{ending}", *cpu)[0] == 0
    out = f"parts.{ending}"
    for after in (2, 3, 3):
        with monkeypatch.context() as patch:
            stopping(patch, after, KeyboardInterrupt())
            code, said = here("score", "p.csv", "--output", out, "--resume", *cpu)
        assert code == 130, said
        assert not (long / out).exists()
    assert "To continue, repeat the command with --resume." in said
    code, said = here("score", "p.csv", "--output", out, "--resume", *cpu)
    assert code == 0, said
    assert "resuming after 80 rows" in said
    assert "2 of 95 rows could not be read" in said
    assert (long / out).read_bytes() == (long / f"whole.{ending}").read_bytes()
    assert not journal_folder(long / out).exists()


def stop_early(here, monkeypatch, *arguments) -> str:
    with monkeypatch.context() as patch:
        stopping(patch, 4, KeyboardInterrupt())
        code, said = here("score", "p.csv", "--output", "out.csv", *arguments)
    assert code == 130, said
    return said


def test_resume_takes_the_same_input_model_and_options_only(long, monkeypatch, here, cpu):
    said = stop_early(here, monkeypatch, *cpu)
    assert "kept in out.csv.part" in said
    command = ("score", "p.csv", "--output", "out.csv", *cpu)
    code, said = here(*command)
    assert code == 2
    assert "Continue it with --resume, or start over with --overwrite" in said
    code, said = here(*command, "--resume", "--relation", "similarity")
    assert code == 2
    assert "was begun differently (options)" in said
    before = (long / "p.csv").read_bytes()
    (long / "p.csv").write_bytes(before.replace(b"dog", b"cat"))
    code, said = here(*command, "--resume")
    assert (code, "was begun differently (input)" in said) == (2, True)
    (long / "p.csv").write_bytes(before)
    code, said = here(*command, "--resume", "--on-bad", "skip")  # decides only what is written
    assert code == 0, said
    assert len(rows_of(long / "out.csv")) == 93


def test_overwrite_starts_a_stopped_run_over(long, monkeypatch, here, cpu):
    stop_early(here, monkeypatch, *cpu)
    code, said = here("score", "p.csv", "--output", "out.csv", "--overwrite", *cpu)
    assert code == 0, said
    assert "resuming" not in said
    assert not (long / "out.csv.part").exists()


def test_resume_finds_an_output_that_was_complete(long, monkeypatch, here, cpu):
    with monkeypatch.context() as patch:
        patch.setattr(
            "likewise.data.journal.Journal.remove", lambda self: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        assert here("score", "p.csv", "--output", "out.csv", *cpu)[0] == 130
    before, asked = (long / "out.csv").read_bytes(), (long / "p.csv").read_bytes()
    assert (long / "out.csv.part").is_dir()
    # Another input has other answers, although the output is complete.
    (long / "p.csv").write_bytes(asked.replace(b"dog", b"cat"))
    code, said = here("score", "p.csv", "--output", "out.csv", "--resume", *cpu)
    assert (code, "was begun differently (input)" in said) == (2, True)
    (long / "p.csv").write_bytes(asked)
    code, said = here("score", "p.csv", "--output", "out.csv", "--resume", *cpu)
    assert (code, "complete already" in said) == (0, True)
    assert (long / "out.csv").read_bytes() == before
    assert not (long / "out.csv.part").exists()
    assert here("score", "p.csv", "--output", "out.csv", "--resume", *cpu)[0] == 2  # it exists already


def test_journal_keeps_out_of_folders_of_others_and_damage_is_told(long, monkeypatch, here, cpu):
    (long / "out.csv.part").mkdir()
    (long / "out.csv.part" / "mine.txt").write_text("mine")
    code, said = here("score", "p.csv", "--output", "out.csv", "--overwrite", *cpu)
    assert (code, "not a folder of answers" in said) == (2, True)
    assert (long / "out.csv.part" / "mine.txt").read_text() == "mine"
    (long / "out.csv.part" / "mine.txt").unlink()
    (long / "out.csv.part").rmdir()
    stop_early(here, monkeypatch, *cpu)
    section = long / "out.csv.part" / "answers-000000.jsonl"
    lines = section.read_text().splitlines(keepends=True)
    for damaged in ("[0.5]\nno\n", "", "".join(lines[:-1]), "".join(["[4.9]\n", *lines[1:]])):
        section.write_text(damaged)
        code, said = here("score", "p.csv", "--output", "out.csv", "--resume", *cpu)
        assert (code, "is damaged" in said) == (2, True), damaged


def test_score_of_an_input_that_changes_meanwhile_is_refused(long, monkeypatch, here, cpu):
    real = Predictor.score

    def score(self, *arguments, **options):
        with (long / "p.csv").open("a") as file:
            file.write("x,y,z\n")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Predictor, "score", score)
    code, said = here("score", "p.csv", "--output", "out.csv", *cpu)
    assert (code, "has changed while it was answered" in said) == (1, True)
    assert not (long / "out.csv").exists()


def test_resume_needs_two_files(tmp_path, here, cpu):
    (tmp_path / "p.csv").write_text(BAD)
    assert "Name the file with --output" in here("score", "p.csv", "--resume", *cpu)[1]
    code, said = here("score", "p.csv", "--resume", "--output", "out.csv", *cpu)
    assert code == 0, said
    assert "there are no answers to resume from" in said


def test_classify_resumes_too(long, monkeypatch, here, tiny_encoder):
    from likewise.predict.labels import Classifier

    command = (
        "classify",
        "p.csv",
        "--text",
        "text_a",
        "--labels",
        "the dog, the man",
        "--model",
        tiny_encoder,
    )
    assert here(*command, "--output", "whole.csv")[0] == 0
    with monkeypatch.context() as patch:
        calls = []
        real = Classifier.answer

        def answer(self, *arguments, **options):
            calls.append(None)
            if len(calls) == 5:
                raise KeyboardInterrupt
            return real(self, *arguments, **options)

        patch.setattr(Classifier, "answer", answer)
        code, said = here(*command, "--output", "parts.csv")
        assert (code, "--resume" in said) == (130, True)
    code, said = here(*command, "--output", "parts.csv", "--resume")
    assert (code, "resuming after" in said) == (0, True)
    assert (long / "parts.csv").read_bytes() == (long / "whole.csv").read_bytes()
    document = json.dumps([row["label"] for row in rows_of(long / "parts.csv")])
    assert '""' in document  # the rows without a text


def test_counting_prints_lines_where_no_bar_is_shown(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with console.counting("scoring", "pairs", 300) as advance:
        for _ in range(3):
            now[0] += 20
            advance(100)
    assert capsys.readouterr().err == "scoring: 200 of 300 pairs\n"


# In Python.


@pytest.fixture(scope="module")
def model(tiny_encoder):
    return likewise.load(tiny_encoder)


@pytest.mark.parametrize(
    "given",
    [
        ([("a man", "a dog"), ("x", None), ("x", float("nan")), ("the dog", "a cat")],),
        (["a man", "x", "x", "the dog"], ["a dog", None, "", "a cat"]),
        (pd.DataFrame({"a": ["a man", "x", "x", "the dog"], "b": ["a dog", None, np.nan, "a cat"]}),),
        ([{"a": a, "b": b} for a, b in [("a man", "a dog"), ("x", ""), ("x", 1), ("the dog", "a cat")]],),
        (np.array([["a man", "a dog"], ["x", None], ["x", " "], ["the dog", "a cat"]], dtype=object),),
    ],
    ids=["tuples", "two lists", "frame", "dicts", "array"],
)  # fmt: skip
def test_score_in_python_gives_nan_to_rows_it_cannot_read(model, given, caplog):
    whole = model.score([("a man", "a dog"), ("the dog", "a cat")])["similarity"]
    found = model.score(*given, on_bad="blank")
    values = np.asarray(found["similarity"])
    assert np.isnan(values).tolist() == [False, True, True, False]
    np.testing.assert_array_equal(values[[0, 3]], whole)
    assert [np.isnan(row["similarity"]) for row in found.rows()] == [False, True, True, False]
    assert "nan" in repr(found)
    assert "2 of 4 rows could not be read and have no answers:" in caplog.text
    np.testing.assert_array_equal(model.score(*given, on_bad="skip")["similarity"], whole)
    with pytest.raises(DataError):
        model.score(*given)


def test_score_in_python_reads_a_sheet_with_its_delimiter(model, tmp_path):
    (tmp_path / "p.csv").write_text("text_a|b;text_b\nx|y;z\n")
    assert len(model.score(tmp_path / "p.csv", text_a="text_a|b", text_b="text_b", delimiter=";")) == 1
    with pytest.raises(UsageError, match="from memory"):
        model.score([("a", "b")], delimiter=";")
    with pytest.raises(UsageError, match="Choose stop, skip or blank"):
        model.score([("a", "b")], on_bad="drop")
    with pytest.raises(DataError, match="rows:1: the second text is empty"):
        model.score([("a", None)], on_bad="blank")


def test_classify_in_python_gives_nan_and_no_label(tiny_encoder):
    model = likewise.load_classifier(tiny_encoder)
    found = model.classify(["the dog", None, "a man"], labels=["dog", "man"], on_bad="blank")
    assert found.best[1] is None
    assert None not in (found.best[0], found.best[2])
    assert np.isnan(found.probabilities).all(axis=1).tolist() == [False, True, False]
    assert len(model.classify(["the dog", None], labels=["dog", "man"], on_bad="skip")) == 1
