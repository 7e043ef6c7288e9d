"""A user's own table, gone through once: what single steps find, with one opening of its file."""

from __future__ import annotations

import builtins
import gzip
import io
import json
import logging

import pytest

from likewise.data import count_rows, infer_relations, load_records, open_table
from likewise.data import own as module
from likewise.data.columns import find_any_texts
from likewise.data.own import open_own_table
from likewise.errors import DataError, FormatError, UsageError
from likewise.records import Relation

COLUMNS = ("text_a", "text_b", "score", "label", "duplicate_of", "mood", "note")
ROWS = [
    {
        "text_a": f"a dog {n}",
        "text_b": f"a cat {n}",
        "score": "" if n % 3 else str(n % 5),
        "label": ("yes", "no", "")[n % 3],
        "duplicate_of": str(n % 2),
        "mood": ("glad", "sad", "calm", "wild")[n % 4],
        "note": f"seen on day {n}",
    }
    for n in range(60)
]
GUESSES = (
    "column 'mood' (calm, glad, sad, …) is not used. If it holds labels, declare it: "
    'relations=["mood:classes"]',
    "column 'duplicate_of' holds only 0, 1. It is read as a scale 0..1 on which "
    'higher means more similar. If these are labels, declare them: relations=["duplicate_of:classes"]',
)


def write(folder, ending, rows=ROWS, columns=COLUMNS):
    path = folder / f"pairs.{ending}"
    if ending == "parquet":
        import pandas

        pandas.DataFrame(rows, columns=list(columns)).to_parquet(path)
        return path
    mark = "\t" if ending.startswith("tsv") else ","
    lines = [mark.join(columns), *(mark.join(row[column] for column in columns) for row in rows)]
    if ending.startswith("jsonl"):
        lines = [json.dumps(row) for row in rows]
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    return path


@pytest.fixture
def opened(monkeypatch):
    """Names of the files that were opened for reading."""
    names = []
    real = io.open

    def counted(file, mode="r", *rest, **more):
        if "pairs." in str(file) and "r" in mode:
            names.append(str(file))
        return real(file, mode, *rest, **more)

    monkeypatch.setattr(io, "open", counted)
    monkeypatch.setattr(builtins, "open", counted)
    return names


def as_found_by_steps(source, table, **options):
    """What the single functions find of the same table."""
    texts = find_any_texts(open_table(source).columns, *table.named)
    relations = infer_relations(source, text_a=table.named[0], text_b=table.named[1], pairs=None, **options)
    assert table.columns == open_table(source).columns
    assert table.texts == texts
    assert table.relations == tuple(relations)
    assert table.rows == count_rows(source)
    return table


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "jsonl.gz"])
def test_own_table_of_a_file_is_what_the_single_steps_find(tmp_path, ending, opened):
    path = write(tmp_path, ending)
    table = open_own_table(path, name="pairs")
    assert len(opened) == 1
    as_found_by_steps(path, table)
    assert [relation.name for relation in table.relations] == ["score", "label", "duplicate_of"]
    assert [relation.kind for relation in table.relations] == ["graded", "classes", "graded"]
    assert (table.rated, table.rows) == (60, 60)
    assert table.guesses == GUESSES
    assert (table.name, table.source, table.corpus, table.named) == ("pairs", path, None, (None, None))


def test_own_table_in_memory(tmp_path):
    import pandas

    frame = pandas.DataFrame(ROWS)
    frame["score"] = pandas.to_numeric(frame["score"])
    for source in (frame, ROWS):
        table = as_found_by_steps(source, open_own_table(source, name="table"))
        assert (table.rated, table.rows, table.guesses) == (60, 60, GUESSES)
    pairs = open_own_table([("a", "b", 0.0), ("c", "d", None)], name="table")
    assert (pairs.relations, pairs.rated, pairs.rows) == ((Relation.graded("score", 0, 1),), 1, 2)


def test_own_table_counts_only_rows_with_a_rating_of_its_relations(tmp_path):
    columns = ("text_a", "text_b", "score", "note")
    path = write(tmp_path, "csv", columns=columns)
    assert (open_own_table(path, name="x").rated, open_own_table(path, name="x").rows) == (20, 60)
    columns = ("text_a", "text_b", "score", "label", "note")
    path = write(
        tmp_path,
        "csv",
        [{**row, "label": row["label"] if n < 20 else ""} for n, row in enumerate(ROWS)],
        columns,
    )
    found = open_own_table(path, name="x")
    assert found.rated == sum(bool(row["score"] or (row["label"] and n < 20)) for n, row in enumerate(ROWS))
    assert open_own_table(path, name="x", most=10).rated == 10
    assert open_own_table(path, name="x", most=21).rated == 21


def test_own_table_with_declared_relations(tmp_path, opened):
    path = write(tmp_path, "csv")
    table = open_own_table(path, name="x", declared=["score:0..5", "mood:classes"])
    assert len(opened) == 1
    as_found_by_steps(path, table, declared=["score:0..5", "mood:classes"])
    assert (table.rated, table.rows, table.guesses) == (60, 60, ())
    opened.clear()
    table = open_own_table(path, name="x", declared=["score:0..5"])
    assert len(opened) == 1
    assert (table.relations, table.rated, table.rows) == ((Relation.graded("score", 0, 5),), 20, 60)
    assert table.guesses == ()
    # Nothing is read beyond what is counted: the rest is read with the rows.
    short = open_own_table(path, name="x", declared=["score:0..5"], most=2)
    assert (short.rated, short.rows) == (2, 4)
    assert open_own_table(ROWS, name="x", declared=["score:0..5"], most=2).rows == 60
    path.write_text("text_a,text_b,score\n", encoding="utf8")
    assert open_own_table(path, name="x", declared=["score:0..5"]).rated == 0
    with pytest.raises(DataError, match="relation 'score' has no label at all"):
        open_own_table(path, name="x", declared=["score:classes"])
    with pytest.raises(DataError, match=r"no column 'scor' .*did you mean 'score'"):
        open_own_table(path, name="x", declared=["scor:0..5"])
    with pytest.raises(UsageError, match="declared twice"):
        open_own_table(path, name="x", declared=["score:0..5", "score:0..1"])


def test_own_table_of_single_texts(tmp_path):
    rows = [{"text": f"a dog {n}", "label": ("glad", "sad")[n % 2]} for n in range(12)]
    path = write(tmp_path, "tsv", rows, ("text", "label"))
    table = as_found_by_steps(path, open_own_table(path, name="x"))
    assert (table.texts, table.rated) == (("text",), 12)
    assert table.relations == (Relation.classes("label", ["glad", "sad"]),)
    assert open_own_table(path, name="x", pairs=False) == table
    with pytest.raises(DataError, match="no two columns have known names for texts"):
        open_own_table(path, name="x", pairs=True)


def test_own_table_takes_named_text_columns(tmp_path):
    rows = [
        {"text_a": f"a{n}", "left one": f"b{n}", "right one": f"c{n}", "score": str(n % 5)} for n in range(9)
    ]
    path = write(tmp_path, "csv", rows, ("text_a", "left one", "right one", "score"))
    table = open_own_table(path, name="x", text_a="left one", text_b="right one")
    as_found_by_steps(path, table)
    assert (table.texts, table.named) == (("left one", "right one"), ("left one", "right one"))
    with pytest.raises(
        DataError, match=r"^my/pairs\.csv: there is no column 'lift one' \(did you mean 'left one'"
    ):
        open_own_table(path, name="my/pairs.csv", text_a="lift one", text_b="right one")


def test_own_table_looks_for_guesses_only_so_far(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LOOKED_AT", 10)
    rows = [
        {
            "text_a": f"a{n}",
            "text_b": f"b{n}",
            "score": str(n % 2 if n < 10 else 5),
            "mood": ("x", "y")[n % 2],
        }
        for n in range(20)
    ]
    rows[10]["mood"] = "7"
    columns = ("text_a", "text_b", "score", "mood")
    found = open_own_table(write(tmp_path, "csv", rows, columns), name="x").guesses
    assert len(found) == 2
    assert found[0].startswith("column 'mood' (x, y) is not used")
    assert found[1].startswith("column 'score' holds only 0, 1. It is read as a scale 0..5")
    rows[9]["mood"], rows[9]["score"] = "7", "5"
    assert open_own_table(write(tmp_path, "csv", rows, columns), name="x").guesses == ()


def test_own_table_without_a_relation_has_nothing_to_guess_about(tmp_path):
    path = write(tmp_path, "csv", columns=("text_a", "text_b", "mood"))
    table = open_own_table(path, name="x")
    assert (table.relations, table.rated, table.rows, table.guesses) == ((), 0, 60, ())


def test_own_table_without_rows_or_that_cannot_be_read(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("text_a,text_b,score\n", encoding="utf8")
    with pytest.raises(DataError) as caught:
        open_own_table(path, name="x")
    assert (
        str(caught.value)
        == "pairs.csv: this has columns (text_a, text_b, score) but no rows. Add rows below the header."
    )
    path.write_text("text_a,text_b,score\na,b,1\nc,d\n", encoding="utf8")
    with pytest.raises(
        FormatError,
        match=r"pairs\.csv:3: there are 2 fields, but 3 are expected \(text_a, text_b, score\)\. Put",
    ):
        open_own_table(path, name="x")
    with pytest.raises(FormatError, match=r"there is no such file\. Did you mean pairs\.csv"):
        open_own_table(tmp_path / "pair.csv", name="x")
    with pytest.raises(UsageError, match="rows cannot be read from int"):
        open_own_table(3, name="x")


def test_own_table_from_standard_input_is_not_gone_through(monkeypatch):
    def pipe():
        content = b"text_a,text_b,score\na,b,1\n"
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    for declared in ([], ["score:classes"]):
        pipe()
        with pytest.raises(
            UsageError, match=r"stdin can be read only once\. Declare the relations with their range"
        ):
            open_own_table("-", name="x", declared=declared)
    pipe()
    table = open_own_table("-", name="x", declared=["score:0..5"])
    assert (table.columns, table.rated, table.rows) == (("text_a", "text_b", "score"), None, None)


def test_own_table_says_what_was_found_as_inference_does(tmp_path, caplog):
    path = write(tmp_path, "csv")
    with caplog.at_level(logging.INFO, logger="likewise"):
        open_own_table(path, name="x")
        first = [record.getMessage() for record in caplog.records]
        caplog.clear()
        infer_relations(path)
    assert first == [record.getMessage() for record in caplog.records]
    assert first


@pytest.mark.realdata
def test_own_table_of_a_named_corpus_is_what_the_catalogue_says(data_dir):
    table = open_own_table("stsb/train", name="stsb/train", data_dir=data_dir)
    assert table.corpus.name == "stsb"
    assert table.texts == table.corpus.texts
    assert table.relations == tuple(infer_relations("stsb/train", data_dir=data_dir))
    assert (table.rated, table.rows, table.guesses) == (None, None, ())
    declared = open_own_table("sick/train", name="x", declared=["entailment:classes"], data_dir=data_dir)
    assert list(declared.relations) == infer_relations(
        "sick/train", declared=["entailment:classes"], data_dir=data_dir
    )
    assert declared.rated is None


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz"])
def test_records_are_loaded_with_one_opening_or_two(tmp_path, ending, opened):
    path = write(tmp_path, ending)
    relation = Relation.graded("score", 0, 5)
    given = load_records(path, relations=[relation])
    assert len(opened) == 1
    opened.clear()
    assert [record.texts for record in load_records(path)] == [record.texts for record in given]
    assert len(opened) == 2
    opened.clear()
    table = open_table(path)
    assert list(table) == list(table)
    assert len(opened) == 2
    opened.clear()
    table = open_table(path)
    assert "score" in table.columns
    assert load_records(table, relations=[relation]) == given
    assert len(opened) == 1
    assert open_own_table(table, name="x").relations == open_own_table(path, name="x").relations


def test_own_table_of_hundreds_of_columns_says_a_few_of_them(tmp_path):
    names = [f"c{number}" for number in range(300)]
    rows = [f"t{row},u{row}," + ",".join("1" for _ in names) for row in range(3)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["text_a,text_b," + ",".join(names), *rows]) + "\n", encoding="utf8")
    guesses = open_own_table(path, name="pairs").guesses
    assert len(guesses) == 11
    assert guesses[-1] == "… and 290 more like these"
