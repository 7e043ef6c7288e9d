"""Phrase links in their plain format: what is written is read again, what is wrong is named with its line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.data.links import Link, LinkedPair, read_links, split_at_blanks, write_links
from likewise.errors import DataError, FormatError

ROW = {
    "text_a": "A red boat sails .",
    "text_b": "Someone sails a boat",
    "links": [{"a": [0, 3], "b": [2, 4], "score": 0.5}, {"a": [3, 4], "b": [1, 2]}],
}
PAIR = LinkedPair(
    ROW["text_a"],
    ROW["text_b"],
    ((0, 1), (2, 5), (6, 10), (11, 16), (17, 18)),
    ((0, 7), (8, 13), (14, 15), (16, 20)),
    (Link((0, 3), (2, 4), 0.5), Link((3, 4), (1, 2))),
    source="links.jsonl:1",
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
NAMES = st.none() | TEXTS
SCORES = st.none() | st.floats(allow_nan=False, allow_infinity=False)
CHANCES = st.none() | st.floats(0, 1)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file that is named as its user stands to it."""
    monkeypatch.chdir(tmp_path)
    return Path("links.jsonl")


def put(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def one(**parts):
    """A change of the row's links to one that joins the first words, but for the parts given."""
    return {"links": [{"a": [0, 1], "b": [0, 1], **parts}]}


def crosses(first, second) -> bool:
    (a, b), (c, d) = first, second
    return a < c < b < d or c < a < d < b


@st.composite
def words_of(draw, text):
    """Where blanks separate, or anywhere: cuts of the text, of which every second piece is a word."""
    if draw(st.booleans()):
        return split_at_blanks(text)
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    return tuple(zip(cuts[::2], cuts[1::2], strict=False))


def spans_in(size):
    ends = st.tuples(st.integers(0, size), st.integers(0, size))
    return ends.filter(lambda span: span[0] < span[1])


@st.composite
def nested_in(draw, size):
    """Distinct spans of which no two cross."""
    spans = []
    for span in draw(st.lists(spans_in(size), unique=True, max_size=6)) if size else []:
        if not any(crosses(span, other) for other in spans):
            spans.append(span)
    return tuple(spans)


@st.composite
def linked_pairs(draw):
    text_a, text_b = draw(TEXTS), draw(TEXTS)
    words_a, words_b = draw(words_of(text_a)), draw(words_of(text_b))
    links = ()
    if words_a and words_b:
        link = st.builds(Link, spans_in(len(words_a)), spans_in(len(words_b)), SCORES, CHANCES)
        links = tuple(draw(st.lists(link, unique_by=lambda link: (link.a, link.b), max_size=4)))
    spans = draw(nested_in(len(words_a))), draw(nested_in(len(words_b)))
    return LinkedPair(text_a, text_b, words_a, words_b, links, *spans, "", draw(NAMES), draw(NAMES))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(linked_pairs(), max_size=3))
def test_links_round_trip_is_exact(path, pairs):
    assert write_links(path, pairs) == len(pairs)
    placed = [replace(pair, source=f"links.jsonl:{line}") for line, pair in enumerate(pairs, 1)]
    assert list(read_links(path)) == placed


@settings(max_examples=60)
@given(TEXTS)
def test_links_words_are_what_blanks_separate(text):
    assert [text[start:end] for start, end in split_at_blanks(text)] == text.split()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans=st.lists(spans_in(6), max_size=7))
def test_links_refuses_spans_that_cross_and_no_others(path, spans):
    put(path, {"text_a": "a b c d e f", "text_b": "g", "links": [], "spans_a": spans})
    if any(crosses(first, second) for first in spans for second in spans):
        with pytest.raises(DataError, match=r"which cross\. Let one span hold the other completely"):
            list(read_links(path))
    else:
        assert next(read_links(path)).spans_a == tuple(dict.fromkeys(spans))


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.xz", "jsonl.bz2", "jsonl.zst"])
def test_links_are_compressed_by_the_ending(tmp_path, ending):
    path = tmp_path / f"links.{ending}"
    assert write_links(path, [PAIR, PAIR]) == 2
    assert [pair.source for pair in read_links(path)] == [f"{path}:1", f"{path}:2"]
    assert (path.read_bytes()[:1] == b"{") == (ending == "jsonl")


def test_links_reads_what_a_person_would_write(path):
    spans = {"spans_a": [[0, 3], [3, 4], [0, 4]], "spans_b": None, "id": "7", "by": "Ann", "note": 1}
    words = {"words_a": [[0, 5], [6, 10], [11, 16], [17, 18]]}
    first, second, third = read_links(put(path, ROW, "", ROW | spans, ROW | words))
    assert first == PAIR
    assert (second.id, second.by) == ("7", "Ann")
    assert (second.spans_a, second.spans_b) == (((0, 3), (3, 4), (0, 4)), ())
    assert second.source == "links.jsonl:3"
    assert third.words_a[0] == (0, 5)


def test_links_may_share_a_span_and_repeats_count_once(path):
    one, other = {"a": [0, 1], "b": [0, 1]}, {"a": [0, 1], "b": [1, 2], "score": 1}
    row = ROW | {"links": [one, other, one, {"b": [1, 2], "a": [0, 1], "score": 1.0}]}
    assert next(read_links(put(path, row))).links == (Link((0, 1), (0, 1)), Link((0, 1), (1, 2), 1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": {}}, r"links is \{\}, but a list is expected"),
        ({"links": [[0, 1]]}, r'links\[0\] is \[0, 1\], but \{"a": \[start, end\]'),
        ({"links": [{"a": [0, 1]}]}, r"links\[0\] is .*Write each link as an object"),
        (one(b=[2, 2]), r"links\[0\]\.b is \[2, 2\], which is empty"),
        (one(a=[0, 6]), r"links\[0\]\.a is \[0, 6\], which is outside the 5 words of text_a"),
        (one(b=[3, 2]), r"\.b is \[3, 2\], which ends before it begins"),
        (one(a=[-1, 1]), r"\.a is \[-1, 1\], which is outside"),
        (one(a=[0, 1.0]), r"\[0, 1\.0\], but \[start, end\] with two whole"),
        (one(a=[False, True]), "but .start, end. with two whole numbers is expected"),
        (one(a=[0, 1, 2]), "but .start, end. with two whole numbers is expected"),
        (one(a=0), "a is 0, but .start, end. with two"),
        (one(score="1"), r"links\[0\]\.score is '1', but a finite number"),
        (one(score=True), "score is True, but a finite number is expected"),
        (one(score=math.nan), "score is 'NaN', but a finite number"),
        (one(score=10**400), "score is 1000.*…, but a finite number"),
        (
            {"links": [{"a": [0, 1], "b": [0, 1]}, {"a": [0, 1], "b": [0, 1], "score": 1}]},
            r"links\[1\] links the same spans as an earlier link, with another score or chance. Keep one",
        ),
        (
            one(chance=1.5),
            r"links\[0\]\.chance is 1\.5, but a number from 0 to 1 is expected. Correct it, or leave",
        ),
        (one(chance="likely"), r"links\[0\]\.chance is 'likely', but a number from 0 to 1 is expected"),
        ({"spans_a": [[0, 2], [1, 3]]}, r"spans_a holds \[0, 2\] and \[1, 3\], which cross"),
        ({"spans_b": [[0, 5]]}, r"spans_b\[0\] is \[0, 5\], which is outside the 4 words of text_b"),
        ({"spans_b": "all"}, "spans_b is 'all', but a list is expected"),
        ({"words_a": [[2, 5], [0, 1]]}, r"words_a\[1\] is \[0, 1\], which starts before the word ahead"),
        ({"words_a": [[0, 2], [1, 5]]}, r"words_a\[1\] is \[1, 5\], which starts before"),
        ({"words_a": [[0, 99]]}, r"words_a\[0\] is \[0, 99\], which is outside the 18 characters of text_a"),
        ({"words_b": [[0, 0]]}, r"words_b\[0\] is \[0, 0\], which is empty"),
        ({"words_b": [["a", "b"]]}, r"words_b\[0\] is .*two whole numbers"),
        ({"text_a": "  "}, "text_a is empty, but a text is expected"),
        ({"text_b": 3}, r"text_b is 3 \(int\), but a text is expected"),
        ({"text_b": "\ud800"}, "text_b holds half of a surrogate pair"),
        ({"id": 3}, r"id is 3 \(int\), but a text is expected"),
        (
            {"text_a": "a " * 10_001},
            "text_a has 10,001 words, which is more than the limit of 10,000. Split the text",
        ),
        ({"words_b": [[0, 1]] * 10_001}, "text_b has 10,001 words, which is more than the limit"),
        ({"id": "a" * 2**20}, r"this line has 1\.0 MB, which is more than the limit of 1 MB"),
    ],
)
def test_links_names_what_is_wrong_with_file_and_line(path, change, message):
    with pytest.raises(DataError, match=r"^links\.jsonl:2: .*" + message):
        list(read_links(put(path, ROW, ROW | change)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"this line is not a JSON object \("),
        ("[" * 100_000, r"this line is not a JSON object \("),
        ("[]", "this is a JSON list, but an object is expected"),
        (
            '{"text_a": "a"}',
            "this line lacks text_b and links, but text_a, text_b, links are needed. Add what is missing",
        ),
        ('{"text_a": "a", "text_a": "b"}', "the same key occurs twice"),
        (json.dumps(ROW).replace("0.5", "1e999"), "score is inf, but a finite number is expected"),
    ],
)
def test_links_names_lines_that_are_no_pairs(path, line, message):
    with pytest.raises(DataError, match=r"^links\.jsonl:3: .*" + message):
        list(read_links(put(path, ROW, ROW, line)))


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (one(b=[2, 2]), r"write \[2, 3\] for one of the 4 words of text_b, or leave the span out"),
        (one(a=[0, 0]), r"write \[0, 1\] for one of the 5 words of text_a, or leave the span out"),
        ({"spans_a": [[1, 1]]}, r"write \[1, 2\] for one of the 5 words of text_a"),
        ({"words_b": [[3, 3]]}, r"write \[3, 4\] for one of the 20 characters of text_b"),
        (one(b=[3, 2]), r"Write \[2, 3\] if the two were exchanged, or leave the span out"),
        (one(b=[4, 4]), r"Leave the span out, or name some of the 4 words of text_b"),
        (one(b=[9, 5]), r"Leave the span out, or name some of the 4 words of text_b"),
        (one(b=[-1, -1]), r"Leave the span out, or name some of the 4 words of text_b"),
    ],
)
def test_links_remedy_for_an_empty_span_speaks_of_that_span(path, change, remedy):
    with pytest.raises(DataError, match=r"^links\.jsonl:1: .*" + remedy):
        list(read_links(put(path, ROW | change)))


@pytest.mark.parametrize("kind", [str, Path])
def test_links_errors_name_the_path_as_it_was_given(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    given = kind("deep/links.jsonl")
    put(Path(given), ROW, "", ROW | one(a=[9, 10]))
    first = next(read_links(given))
    assert first.source == "deep/links.jsonl:1"
    with pytest.raises(DataError, match=r"^deep/links\.jsonl:3: links"):
        list(read_links(given))
    with pytest.raises(DataError, match=r"^deep/links\.jsonl:1: id is 3"):
        write_links(given, [replace(PAIR, id=3)])
    (tmp_path / "deep/links.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(FormatError, match=r"^deep/links\.jsonl:1: byte 0xff"):
        list(read_links(given))


def test_links_that_are_none_say_that_someone_looked(path):
    [pair] = read_links(put(path, ROW | {"links": []}))
    assert pair.links == ()
    assert pair.aligned
    with pytest.raises(DataError, match=r"lacks links, but .*; `links` may be an empty list"):
        list(read_links(put(path, {key: ROW[key] for key in ("text_a", "text_b")})))


def test_links_yields_what_stands_before_a_wrong_line(path):
    pairs = read_links(put(path, ROW, "{"))
    assert next(pairs) == PAIR
    with pytest.raises(DataError, match=r"links\.jsonl:2"):
        next(pairs)


def test_links_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FormatError, match="cannot be opened"):
        list(read_links(tmp_path / "absent.jsonl"))
    (tmp_path / "bytes.jsonl").write_bytes(b'{"text_a": "\xff"}\n')
    with pytest.raises(FormatError, match=r"bytes\.jsonl:1: byte 0xff at offset 12 is not UTF-8"):
        list(read_links(tmp_path / "bytes.jsonl"))
    write_links(tmp_path / "whole.jsonl.gz", [PAIR] * 50)
    (tmp_path / "cut.jsonl.gz").write_bytes((tmp_path / "whole.jsonl.gz").read_bytes()[:-20])
    with pytest.raises(FormatError, match="cut short or damaged"):
        list(read_links(tmp_path / "cut.jsonl.gz"))


def test_links_leaves_out_what_goes_without_saying(path):
    write_links(path, [PAIR])
    assert json.loads(path.read_text(encoding="utf-8")) == ROW


def test_links_takes_numbers_of_numpy(path):
    score = np.float32(0.5)
    spans = [tuple(row) for row in np.array([[0, 3], [3, 4]])]
    links = (Link(spans[0], (2, 4), score), PAIR.links[1])
    write_links(path, [replace(PAIR, links=links, spans_a=tuple(spans))])
    assert list(read_links(path)) == [replace(PAIR, spans_a=((0, 3), (3, 4)))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": (Link((0, 1), (0, 9)),)}, r"links\[0\]\.b is \[0, 9\], which is outside the 4 words"),
        ({"links": (Link((0, 1), (0, 1), math.nan),)}, "score is nan, but a finite number is expected"),
        ({"spans_b": ((0, 2), (1, 3))}, "which cross"),
        ({"by": "\ud800"}, "by holds half of a surrogate pair"),
        ({"text_a": "é" * 2**19, "words_a": ((0, 2**19),), "links": ()}, "more than the limit of 1 MB"),
    ],
)
def test_links_writes_nothing_that_it_would_not_read(path, change, message):
    path.write_text("old", encoding="utf-8")
    with pytest.raises(DataError, match=r"^links\.jsonl:2: .*" + message):
        write_links(path, [PAIR, replace(PAIR, **change)])
    assert [file.name for file in path.parent.iterdir()] == ["links.jsonl"]
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.xz"])
def test_links_can_be_rewritten_in_place(tmp_path, ending):
    path = tmp_path / f"links.{ending}"
    write_links(path, [PAIR, PAIR])
    assert write_links(path, (replace(pair, by="Ann") for pair in read_links(path))) == 2
    assert [pair.by for pair in read_links(path)] == ["Ann", "Ann"]
