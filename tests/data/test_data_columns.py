"""Which columns hold the texts, which hold ratings, and on which scale."""

from __future__ import annotations

import logging

import pytest

from likewise.data import find_relations, find_text_columns, infer_relations, open_table
from likewise.data.columns import COUPLES, find_any_texts, find_text_column
from likewise.data.ratings import RANGES, find_range
from likewise.errors import DataError, UsageError


def relations_of(rows, declared=(), texts=("a", "b")):
    table = open_table(rows)
    return {r.name: r for r in find_relations(table, table.columns, texts, declared, source=table.name)}


def rated(name, values):
    return [{"a": f"a{i}", "b": f"b{i}", name: value} for i, value in enumerate(values)]


@pytest.mark.parametrize("couple", COUPLES)
def test_columns_well_known_couples_in_any_case(couple):
    columns = ["id", couple[1].upper(), "score", couple[0].capitalize()]
    assert find_text_columns(columns) == (couple[0].capitalize(), couple[1].upper())


def test_columns_explicit_names_win():
    columns = ["text_a", "text_b", "premise", "hypothesis"]
    assert find_text_columns(columns, "hypothesis", "premise") == ("hypothesis", "premise")
    assert find_text_columns(columns, "premise") == ("premise", "hypothesis")
    assert find_text_columns(columns, None, "hypothesis") == ("premise", "hypothesis")


def test_columns_error_lists_columns_a_near_name_and_the_remedy():
    with pytest.raises(DataError) as caught:
        find_text_columns(["First", "Second", "score"], "frist", source="pairs.csv")
    assert str(caught.value) == (
        "pairs.csv: there is no column 'frist' (did you mean 'First'?). "
        'The columns are First, Second, score. Name an existing column with text_a="NAME".'
    )
    with pytest.raises(
        DataError, match=r"The columns are x, y\. Name the text columns: text_a=.NAME., text_b=.NAME."
    ):
        find_text_columns(["x", "y"])
    with pytest.raises(DataError, match=r"Name the text columns: text_a=.NAME., text_b=.NAME."):
        find_text_columns(["text_a", "text_b", "other"], "other")
    with pytest.raises(DataError, match=r"both texts come from column 'a'"):
        find_text_columns(["a", "b"], "a", "a")


def test_columns_one_text():
    assert find_text_column(["label", "Sentence"]) == "Sentence"
    assert find_text_column(["anything"]) == "anything"
    assert find_text_column(["x", "y"], "y") == "y"
    with pytest.raises(DataError, match=r"Name the text column: text_a=.NAME."):
        find_text_column(["x", "y"])
    with pytest.raises(DataError, match="no column 'z'"):
        find_text_column(["x", "y"], "z")


@pytest.mark.parametrize(
    ("lo", "hi", "found"),
    [
        (0, 1, (0, 1)),
        (0.2, 0.9, (0, 1)),
        (0, 5, (0, 5)),
        (1, 5, (1, 5)),
        (1.2, 4.9, (1, 5)),
        (0, 4, (0, 4)),
        (0.3, 3.8, (0, 4)),
        (1, 4, (1, 5)),
        (-1, 1, (-1, 1)),
        (-2, 1.5, (-2, 2)),
        (1.5, 2, (1, 5)),
        (0, 2, (0, 4)),
        (0, 9.5, (0, 10)),
        (1, 7, (1, 7)),
        (0, 87, (0, 100)),
        (-3.2, 5.1, (-4, 6)),
        (200, 200, (200, 201)),
    ],
)
def test_ratings_range_is_the_narrowest_conventional_one(lo, hi, found):
    assert find_range(lo, hi) == found


@pytest.mark.parametrize("ends", RANGES)
def test_ratings_every_conventional_range_is_found_by_its_ends(ends):
    assert find_range(*ends) == ends


def test_ratings_numbers_and_labels_are_found_and_the_rest_left_out(caplog):
    rows = [
        {
            "a": "x",
            "b": "y",
            "id": 1,
            "year": 2012,
            "old_index": "3",
            "score": "4.5",
            "label": "yes",
            "genre": "p",
        },
        {
            "a": "x",
            "b": "z",
            "id": 2,
            "year": 2013,
            "old_index": "1",
            "score": "NA",
            "label": "no",
            "genre": "q",
        },
        {
            "a": "u",
            "b": "z",
            "id": 3,
            "year": 2013,
            "old_index": "2",
            "score": "0",
            "label": "yes",
            "genre": "p",
        },
    ]
    with caplog.at_level(logging.INFO, logger="likewise"):
        found = relations_of(rows)
    assert list(found) == ["score", "label"]
    assert (found["score"].kind, found["score"].scale) == ("graded", "0..5")
    assert (found["label"].kind, found["label"].labels) == ("classes", ("no", "yes"))
    assert (
        "column 'score': read as a scale of 0..5 (found 0 to 4.5). To declare "
        "another scale, write score:lo..hi."
    ) in caplog.text


@pytest.mark.parametrize(
    ("name", "values", "scale"),
    [
        ("score", [1, 2, 3], "1..5"),  # increasing, but its name says what it is
        ("whatever", [0.5, 0.1, 0.9], "0..1"),
        ("whatever", [1, 2, 3], None),  # an index
        ("whatever", [2001, 1999, 2001], None),  # years
        ("pair_id", [5, 3, 5], None),
        ("sim_1", [1, 2, 3], "1..5"),
        ("release", [1, 2, 3], None),
        ("qid1", [5, 3, 5], None),
        ("similarity", ["1.5", "oops", "2"], "1..5"),  # the odd cell is for `check` to report
        ("whatever", ["1.5", "oops", "2"], None),
        ("label", ["a", "a", "a"], None),  # one label is no question
        ("label", [f"l{i}" for i in range(21)], None),
        ("comment", ["good", "bad", "good"], None),
        ("label", [None, "", "nan"], None),
        ("gold_label", ["yes", "-", "no"], "no | yes"),
        ("label", [True, False, True], "0..1"),
    ],
)
def test_ratings_inference(name, values, scale):
    found = relations_of(rated(name, values))
    assert found[name].scale == scale if scale else found == {}


def test_ratings_declared_forms():
    rows = rated("grade", ["low", "high", "low"])
    assert relations_of(rows, ["grade:low<high"])["grade"].kind == "ordered"
    assert relations_of(rows, ["grade:low|high"])["grade"].labels == ("low", "high")
    assert relations_of(rows, ["grade:classes"])["grade"].labels == ("high", "low")
    both = relations_of([{**row, "s": "1"} for row in rows], ["s:0..4", "grade:classes"])
    assert [relation.scale for relation in both.values()] == ["0..4", "high | low"]


def test_ratings_declared_errors():
    rows = rated("grade", ["low", "low"])
    with pytest.raises(
        DataError,
        match=r"rows: there is no column 'grad' \(did you mean 'grade'\?\).*relations=\[.NAME:lo\.\.hi.\]",
    ):
        relations_of(rows, ["grad:0..5"])
    with pytest.raises(
        DataError, match=r"rows: relation 'grade' has only the label 'low', but two or more are needed"
    ):
        relations_of(rows, ["grade:classes"])
    with pytest.raises(UsageError, match="Write NAME:lo"):
        relations_of(rows, ["grade"])


def test_ratings_declared_twice_are_refused():
    with pytest.raises(UsageError, match=r"relation 'score' is declared twice\. Keep one"):
        infer_relations([{"a": "x", "b": "y", "score": 1}], declared=["score:0..5", "score:0..4"])


def test_columns_a_mistyped_name_is_told_as_one():
    with pytest.raises(DataError, match="no column 'sentence9' \\(did you mean 'sentence2'\\?\\)"):
        find_any_texts(["sentence1", "sentence2", "score"], "sentence9")
    assert find_any_texts(["note", "score"], "note") == ("note",)
