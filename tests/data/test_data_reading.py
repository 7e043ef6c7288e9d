"""read and load: texts and values, validated row by row, with the line in every error."""

from __future__ import annotations

import io
import sys

import pytest

from likewise.data import infer_relations, load_records, read
from likewise.errors import DataError, FormatError, UsageError, ValueRangeError
from likewise.records import Record, Relation

SIMILARITY = Relation.graded("similarity", 0, 5)
ENTAILS = Relation.classes("entails", ("yes", "no"))
GRADE = Relation.ordered("grade", ("low", "middle", "high"))


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(
        "text_a,text_b,similarity,entails,subset,language\n"
        "A cat sleeps.,A kitten is asleep.,4.5,yes,animals,en\n"
        "A cat sleeps.,A car is parked.,,no,animals,en\n"
        "It rains.,It is raining.,5,,weather,en\n",
        encoding="utf-8",
    )
    return path


def one(cell, relation=SIMILARITY):
    return load_records([{"text_a": "x", "text_b": "y", relation.name: cell}], relations=[relation])[
        0
    ].values[relation.name]


def test_reading_records(pairs):
    records = load_records(pairs, relations=[SIMILARITY, ENTAILS])
    assert records[0] == Record(
        ("A cat sleeps.", "A kitten is asleep."),
        {"similarity": 4.5, "entails": "yes"},
        "pairs.csv:2",
        "animals",
        "en",
    )
    assert [record.values for record in records[1:]] == [
        {"similarity": None, "entails": "no"},
        {"similarity": 5.0, "entails": None},
    ]


def test_reading_limit_and_texts_only(pairs):
    assert [record.values for record in load_records(pairs, relations=(), limit=2)] == [{}, {}]


def test_reading_finds_relations_when_none_are_named(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("s1\ts2\tscore\tlabel\nx\ty\t0.5\tyes\nz\tw\t1\tno\n", encoding="utf-8")
    assert load_records(path)[0].values == {"score": 0.5, "label": "yes"}
    assert [relation.scale for relation in infer_relations(path)] == ["0..1", "no | yes"]
    assert [relation.scale for relation in infer_relations(path, declared=["score:0..5"])] == ["0..5"]


def test_reading_takes_relations_in_words_beside_objects(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("text_a,text_b,near,kind,other\na,b,3,x,1\nc,d,4,y,2\n", encoding="utf8")
    asked = ["kind:classes", Relation.graded("other", 0, 2), "near:0..5"]
    first, second = load_records(path, relations=asked)
    assert first.values == {"kind": "x", "other": 1.0, "near": 3.0}
    assert second.values == {"kind": "y", "other": 2.0, "near": 4.0}
    assert [r.values for r in load_records(path, relations="near:0..5")] == [{"near": 3.0}, {"near": 4.0}]


def test_reading_columns_map_names(pairs):
    relation = Relation.graded("closeness", 0, 5)
    records = load_records(pairs, relations=[relation], columns={"closeness": "similarity"})
    assert records[0].values == {"closeness": 4.5}
    with pytest.raises(
        DataError, match=r"there is no column 'closenes'\. The columns are text_a.*leave the relation out"
    ):
        read(pairs, relations=[relation], columns={"closeness": "closenes"})


def test_reading_one_text_a_row(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,label\nhello,a\nbye,b\n", encoding="utf-8")
    records = load_records(path, pairs=False)
    assert [(record.texts, record.values) for record in records] == [
        (("hello",), {"label": "a"}),
        (("bye",), {"label": "b"}),
    ]


@pytest.mark.parametrize("cell", ["", "  ", "NA", "na", "n/a", "null", "-", None, float("nan")])
@pytest.mark.parametrize("relation", [SIMILARITY, ENTAILS, GRADE])
def test_reading_missing_values(cell, relation):
    assert one(cell, relation) is None


@pytest.mark.parametrize("cell", ["nan", " NaN "])
@pytest.mark.parametrize("relation", [SIMILARITY, ENTAILS, GRADE])
def test_reading_a_written_nan_is_refused(cell, relation):
    with pytest.raises(
        DataError, match=r"is NaN, but a value on .* is expected\. Leave it empty if it is missing"
    ):
        one(cell, relation)


def test_reading_jsonl_nan_is_refused_with_its_line(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"a": "x", "b": "y", "similarity": 1}\n{"a": "v", "b": "w", "similarity": NaN}\n')
    with pytest.raises(DataError, match=r"p.jsonl:2: similarity is NaN"):
        load_records(path, relations=[SIMILARITY])


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_reading_jsonl_an_unquoted_word_is_no_text(tmp_path, word):
    path = tmp_path / "p.jsonl"
    rows = ('{"a": "x", "b": "NaN", "similarity": 1}', f'{{"a": "v", "b": {word}, "similarity": 1}}')
    path.write_text("\n".join(rows))
    with pytest.raises(DataError, match=rf"p.jsonl:2: b is {word} without quotes, but a text is expected"):
        load_records(path, relations=[SIMILARITY])


@pytest.mark.parametrize(
    ("relation", "cell", "value"),
    [
        (SIMILARITY, " 3.5 ", 3.5),
        (SIMILARITY, 3, 3.0),
        (SIMILARITY, "1e0", 1.0),
        (SIMILARITY, True, 1.0),
        (ENTAILS, " yes ", "yes"),
        (GRADE, "middle", "middle"),
        (GRADE, "2", "high"),
        (GRADE, 0, "low"),
        (Relation.classes("l", ("0", "1")), 1, "1"),
        (Relation.classes("l", ("0", "1")), 1.0, "1"),
        (Relation.classes("l", ("true", "false")), True, "true"),
        (Relation.classes("l", ("NA", "-")), "NA", "NA"),  # a label of the relation is never missing
    ],
)
def test_reading_values(relation, cell, value):
    assert one(cell, relation) == value


@pytest.mark.parametrize("cell", ["5.2", "-0.1", "inf", 6])
def test_reading_value_out_of_range(cell):
    with pytest.raises(
        ValueRangeError, match=r"rows:1: similarity is .*, but the scale is 0 to 5\. Correct the value"
    ):
        one(cell)


@pytest.mark.parametrize("cell", ["four", "3,5", "1_0", [1], 10**400])
def test_reading_value_that_is_no_number(cell):
    with pytest.raises(
        DataError,
        match=r"rows:1: similarity is .*, which is not a number\. Correct the value, or leave it empty",
    ):
        one(cell)


def test_reading_unknown_label():
    with pytest.raises(
        ValueRangeError,
        match=r"rows:1: entails is 'maybe', but it must be one of yes, no\. Correct the value",
    ):
        one("maybe", ENTAILS)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("", r"rows:2: text_b is empty, but a text is expected. Fill it in, or remove the row"),
        (" \t", r"rows:2: text_b is empty"),
        (None, r"rows:2: text_b is empty"),
        (float("nan"), r"rows:2: text_b is empty"),
        (12, r"rows:2: text_b is 12 \(int\), but a text is expected. Write it as a string"),
        ("x" * 51, r"rows:2: text_b has 51 characters, which is more than the limit of 50. Shorten or split"),
        ("a\ud800", r"rows:2: text_b holds half of a surrogate pair"),
    ],
)
def test_reading_bad_text(cell, message):
    rows = [{"text_a": "x", "text_b": "y"}, {"text_a": "x", "text_b": cell}]
    with pytest.raises(DataError, match=message):
        load_records(rows, max_chars=50)


def test_reading_stops_at_the_first_problem_and_not_before(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\tsimilarity\nx\ty\t1\nx\ty\t9\nragged\n", encoding="utf-8")
    records = read(path, relations=[SIMILARITY])
    assert next(records).values == {"similarity": 1.0}
    with pytest.raises(ValueRangeError, match=r"pairs\.tsv:3: similarity is 9"):
        next(records)


def test_reading_opens_at_once(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read(tmp_path / "absent.csv")


def test_reading_standard_input_needs_declared_relations(monkeypatch):
    content = b"text_a,text_b,similarity\nx,y,1\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(
        UsageError,
        match=r"stdin can be read only once\. Declare the relations .*relations=\[.NAME:lo\.\.hi.\]",
    ):
        read("-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert load_records("-", relations=[SIMILARITY])[0].source == "stdin:2"
