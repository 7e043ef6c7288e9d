"""Drawn splits: disjoint, complete, balanced, the same on every machine, and only of the file they name."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from likewise.cli.data import app
from likewise.data import check, find_corpus, load_corpus, text_key
from likewise.data.catalogue import Corpus, Rating, SeededDraw, Split
from likewise.data.corpora import corpus_table, verify
from likewise.data.drawing import apart_order, drawn_order
from likewise.errors import DataError, FormatError
from likewise.records import Relation

DOMAINS = ("books", "dvd", "electronics", "kitchen")
PARTS = {"train": 1400, "dev": 200, "test": 400}
# Reviews that the files hold more than once: test rows whose text stands in train.
REPEATED = {"books": 10, "dvd": 11, "electronics": 5, "kitchen": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    return tmp_path


def write(path, labels, *, kind="a"):
    """A file with one invented text a row, numbered from 0."""
    path.parent.mkdir(exist_ok=True)
    rows = [f"{label}\t{kind}\tText {number}.\n" for number, label in enumerate(labels)]
    path.write_text("".join(["label\tkind\ttext\n", *rows]), encoding="utf-8")


def own_corpus(*draws, **options):
    """A corpus of one file, own.tsv, with a split of each draw: "0", "1", …"""
    splits = {
        str(name): Split(str(name), "own.tsv", draw.stop - draw.start, draw=draw, **options)
        for name, draw in enumerate(draws)
    }
    rating = Rating(Relation.parse("tone:down|up"), "label")
    return Corpus("own", "", "", "Nobody 1900", ("text",), (rating,), splits)


def rows_of(corpus, split, folder):
    return list(corpus_table(corpus, corpus.find_split(split), data_dir=folder))


def lines_of(rows):
    return [int(source.rpartition(":")[2]) for _, source in rows]


def test_drawing_order_is_pinned():
    """These orders may never change: numbers were measured on rows that were drawn by them."""
    assert drawn_order(["up"] * 8, 1) == [7, 4, 6, 5, 2, 3, 0, 1]
    assert drawn_order(["up"] * 8, 2) == [2, 5, 6, 1, 7, 3, 0, 4]
    assert drawn_order(["up"] * 4 + ["down"] * 4, 1) == [7, 2, 4, 3, 6, 0, 5, 1]


def test_drawing_order_is_by_sha256_of_seed_and_number():
    digests = {hashlib.sha256(b"1:%d" % number).hexdigest(): number for number in range(100)}
    assert drawn_order(["up"] * 100, 1) == [digests[digest] for digest in sorted(digests)]


def test_drawing_order_gives_every_stretch_the_shares_of_the_groups():
    groups = ["rare"] * 10 + ["usual"] * 90
    order = drawn_order(groups, 3)
    assert sorted(order) == list(range(100))
    for start in range(0, 100, 20):
        assert Counter(groups[number] for number in order[start : start + 20])["rare"] == 2
    assert drawn_order([], 1) == []


def test_drawing_by_text_is_pinned_and_keeps_shared_texts_together():
    """This order may never change either."""
    rows = [("a", "b"), ("c", "d"), ("e", "F"), ("B!", "g"), ("f", "h"), ("i", "j")]
    assert apart_order(rows, 1) == [5, 2, 4, 0, 3, 1]
    digests = {hashlib.sha256(b"1:%d" % number).hexdigest(): number for number in (0, 1, 2, 5)}
    assert [digests[digest] for digest in sorted(digests)] == [5, 2, 0, 1]
    assert apart_order([], 1) == []


def test_drawing_by_text_takes_the_rows_of_its_stretch(folder):
    (folder / "own.tsv").write_text(
        "label\ttext\n" + "".join(f"up\tText {n // 2}.\n" for n in range(8)), encoding="utf-8"
    )
    draws = [SeededDraw(1, "", 8, start, stop, apart=True) for start, stop in ((0, 4), (4, 8))]
    corpus = own_corpus(*draws)
    parts = [{row.fields["text"] for row in rows_of(corpus, name, folder)} for name in ("0", "1")]
    assert [len(part) for part in parts] == [2, 2]
    assert parts[0].isdisjoint(parts[1])
    with pytest.raises(DataError, match="the file has 8 rows, but 9 are expected to draw from"):
        rows_of(own_corpus(SeededDraw(1, "", 9, 0, 4, apart=True)), "0", folder)


def test_drawing_order_does_not_hang_on_the_order_in_which_groups_appear():
    """Only the numbers and groups of rows count, and the names of groups where they stand at one place."""
    first = drawn_order(["down", "up"] * 5, 1)
    second = drawn_order(["up", "down"] * 5, 1)
    assert [number % 2 for number in first] == [0, 1] * 5
    assert [number % 2 for number in second] == [1, 0] * 5
    assert first[::2] == second[1::2]


def test_drawing_parts_are_disjoint_complete_and_balanced(folder):
    write(folder / "own.tsv", ["up"] * 20 + ["down"] * 20)
    cuts = [(0, 28), (28, 32), (32, 40)]
    corpus = own_corpus(*(SeededDraw(1, "label", 40, start, stop) for start, stop in cuts))
    parts = [rows_of(corpus, split, folder) for split in corpus.splits]
    lines = [line for rows in parts for line in lines_of(rows)]
    assert sorted(lines) == list(range(2, 42))
    for rows, (start, stop) in zip(parts, cuts, strict=True):
        half = (stop - start) // 2
        assert Counter(row.fields["tone"] for row in rows) == {"up": half, "down": half}
        assert lines_of(rows) == sorted(lines_of(rows))
        assert [row.fields["text"] for row in rows] == [f"Text {line - 2}." for line in lines_of(rows)]
    assert lines_of(parts[1]) == [3, 21, 27, 30]
    assert lines_of(rows_of(corpus, "2", folder)) == lines_of(parts[2])


def test_drawing_another_seed_draws_other_rows(folder):
    write(folder / "own.tsv", ["up", "down"] * 20)
    corpus = own_corpus(SeededDraw(1, "label", 40, 0, 20), SeededDraw(2, "label", 40, 0, 20))
    first, second = (lines_of(rows_of(corpus, split, folder)) for split in corpus.splits)
    assert len(first) == len(second) == 20
    assert first != second


def test_drawing_is_from_the_rows_that_where_keeps(folder):
    write(folder / "kept.tsv", ["up", "down"] * 4, kind="a")
    lines = (folder / "kept.tsv").read_text(encoding="utf-8").splitlines()
    mixed = [lines[0], *(line for row in lines[1:] for line in ("up\tb\tOther.", row))]
    (folder / "own.tsv").write_text("\n".join(mixed) + "\n", encoding="utf-8")
    corpus = own_corpus(
        SeededDraw(1, "label", 8, 0, 4), SeededDraw(1, "label", 8, 4, 8), where={"kind": ["a"]}
    )
    texts = [{row.fields["text"] for row in rows_of(corpus, split, folder)} for split in corpus.splits]
    order = drawn_order(["up", "down"] * 4, 1)
    assert texts == [{f"Text {number}." for number in order[:4]}, {f"Text {number}." for number in order[4:]}]


@pytest.mark.parametrize("rows", [39, 41])
def test_drawing_from_another_number_of_rows_is_refused(folder, rows):
    write(folder / "own.tsv", (["up", "down"] * 21)[:rows])
    corpus = own_corpus(SeededDraw(1, "label", 40, 0, 20))
    found = (
        rf"own\.tsv: the file has {rows} rows, but 40 are expected to draw from. Copy or download it again"
    )
    with pytest.raises(DataError, match=found):
        rows_of(corpus, "0", folder)
    (problem,) = verify(corpus, corpus.find_split(), folder)
    assert "40 are expected to draw from" in problem.message


def test_drawing_without_its_column_is_refused(folder):
    write(folder / "own.tsv", ["up", "down"])
    corpus = own_corpus(SeededDraw(1, "stars", 2, 0, 2))
    with pytest.raises(
        DataError, match=r"own\.tsv: there is no column stars\. The columns are label, kind, text"
    ):
        rows_of(corpus, "0", folder)


def test_drawing_tells_of_a_malformed_row_once(folder):
    write(folder / "own.tsv", ["up", "down"] * 2)
    with (folder / "own.tsv").open("a", encoding="utf-8") as stream:
        stream.write("up\n")
    corpus = own_corpus(SeededDraw(1, "label", 4, 0, 4))
    problems = []
    table = corpus_table(corpus, corpus.find_split(), data_dir=folder)
    assert len(list(table.scan(problems.append))) == 4
    assert [problem.source for problem in problems] == ["own.tsv:6"]
    with pytest.raises(FormatError, match=r"own\.tsv:6"):
        list(table)


def test_drawing_the_reviews_of_a_domain(folder):
    write(folder / "mdsd" / "books.tsv", ["positive"] * 1000 + ["negative"] * 1000)
    corpus = find_corpus("mdsd_split")
    seen = []
    for part, rows in PARTS.items():
        records = load_corpus("mdsd_split", f"books_{part}", data_dir=folder)
        assert Counter(record.values["sentiment"] for record in records) == {
            "positive": rows // 2,
            "negative": rows // 2,
        }
        seen += [record.texts[0] for record in records]
        # Invented rows: their number is right, their checksum is not.
        (problem,) = verify(corpus, corpus.find_split(f"books_{part}"), folder)
        assert "sha256" in problem.message
    assert sorted(seen) == sorted(f"Text {number}." for number in range(2000))
    assert check("mdsd_split/books_dev", data_dir=folder).rows == 200


def test_drawing_shows_in_the_list_of_corpora(folder):
    write(folder / "mdsd" / "books.tsv", ["positive", "negative"])
    listed = json.loads(CliRunner().invoke(app, ["list", "--data-dir", str(folder), "--json"]).stdout)
    (entry,) = [entry for entry in listed if entry["name"] == "mdsd_split"]
    assert {split["name"]: split["rows"] for split in entry["splits"]} == {
        f"{domain}_{part}": rows for domain in DOMAINS for part, rows in PARTS.items()
    }
    assert [split["name"] for split in entry["splits"] if split["here"]] == [
        f"books_{part}" for part in PARTS
    ]


@pytest.mark.realdata
@pytest.mark.parametrize("domain", DOMAINS)
def test_drawing_real_parts_are_the_whole_file(domain, data_dir):
    parts = {part: load_corpus("mdsd_split", f"{domain}_{part}", data_dir=data_dir) for part in PARTS}
    assert {part: len(records) for part, records in parts.items()} == PARTS
    for records in parts.values():
        assert set(Counter(record.values["sentiment"] for record in records).values()) == {len(records) // 2}
    whole = load_corpus("mdsd", domain, data_dir=data_dir)
    drawn = sorted((r.source, r.texts, r.values["sentiment"]) for records in parts.values() for r in records)
    assert len({source for source, _, _ in drawn}) == 2000
    assert drawn == sorted((r.source, r.texts, r.values["sentiment"]) for r in whole)
    # The files hold both labels in the same places, so the same rows of each are drawn.
    assert [int(r.source.rpartition(":")[2]) for r in parts["test"][:8]] == [3, 15, 16, 17, 20, 21, 28, 47]
    train = {text_key(record.texts[0]) for record in parts["train"]}
    assert sum(text_key(record.texts[0]) in train for record in parts["test"]) == REPEATED[domain]
