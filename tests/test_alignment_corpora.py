"""Alignments and edits that people made, in files of their published form; the sentences are invented."""

from __future__ import annotations

import json
import lzma

import pytest
from benchmarks.alignment_corpora import (
    ChunkedPair,
    ChunkLink,
    Edit,
    WordLinkedPair,
    edited_words,
    match_edits,
    read_chunked,
    read_edits,
    read_word_links,
)

from likewise.errors import DataError, FormatError, UsageError

CHUNKED = {
    "id": 1,
    "tokens1": ["Turn", "the", "lamp", "off", "now"],
    "tokens2": ["Switch", "off", "a", "lamp"],
    "alignment": [
        {"s1": [5], "s2": [], "type": "NOALI", "score": None},
        {"s1": [4, 1], "s2": [1, 2], "type": "EQUI", "score": 5.0},
        {"s1": [2, 3], "s2": [3, 4], "type": "SIMI_FACT", "score": 4},
        {"s1": [2, 3], "s2": [1, 2], "type": "NOALI_FACT", "score": 0.0},
    ],
}
LINKED = {
    "id": "0:0",
    "sentence1": "the cook  stirs it",
    "sentence2": "a chef stirs",
    "sure": "2-2 1-1 2-2",
    "possible": "0-0",
}
ORIGINAL = """label\tpremise\thypothesis
neutral\tA goat stands on a hill.\tThe goat is old.
neutral\tTwo cooks share a "pan".\tThey are friends.
neutral\tA girl paints a wall.\tShe is at school.
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)


def put(folder, name, *rows):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    path.write_bytes(lzma.compress(text.encode()) if name.endswith(".xz") else text.encode())
    return folder


def one(**parts):
    """A change of the row's alignment to one entry of the first words, but for the parts given."""
    return {"alignment": [{"s1": [1], "s2": [1], "type": "EQUI", "score": 5, **parts}]}


def put_revised(folder, *rows, kind="hypothesis"):
    put(folder, "snli_counterfactual/original.dev.tsv.xz", ORIGINAL)
    lines = ("label\tpremise\thypothesis\n", *(f"entailment\t{a}\t{b}\n" for a, b in rows))
    return put(folder, f"snli_counterfactual/revised_{kind}.dev.tsv.xz", *lines)


@pytest.mark.parametrize("ending", ["", ".xz"])
def test_alignments_chunks_and_their_links(tmp_path, ending, monkeypatch):
    put(tmp_path, f"ists2016/images.train.jsonl{ending}", CHUNKED)
    expected = ChunkedPair(
        ("Turn", "the", "lamp", "off", "now"),
        ("Switch", "off", "a", "lamp"),
        ((0, 3), (1, 2), (4,)),
        ((0, 1), (2, 3)),
        (ChunkLink((0, 3), (0, 1), "EQUI", 5.0), ChunkLink((1, 2), (2, 3), "SIMI_FACT", 4.0)),
        f"ists2016/images.train.jsonl{ending}:1",
    )
    assert read_chunked("images", "train", data_dir=tmp_path) == [expected]
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    assert read_chunked("images", "train") == [expected]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens1": []}, r"tokens1 is \[\], expected a list of words. Give the file as published"),
        ({"tokens2": ["a", 1]}, r"tokens2 is \['a', 1\], expected a list of words"),
        ({"alignment": None}, "alignment is None, expected a list"),
        ({"alignment": [[1]]}, r"alignment\[0\] is \[1\], expected an object with s1, s2 and type"),
        ({"alignment": [{"s1": [1], "s2": [1]}]}, "expected an object with s1, s2 and type"),
        (one(s1=[0]), r"s1 is \[0\], expected .* from 1 to 5"),
        (one(s2=[5]), r"s2 is \[5\], expected .* from 1 to 4"),
        (one(s1=[True]), "expected whole numbers from 1"),
        (one(s2=1), r"alignment\[0\]\.s2 is 1, expected a list"),
        (one(score="5"), "score is '5', expected a finite number"),
        (one(s1=[], score=10**400), "expected a finite number or"),
    ],
)
def test_alignments_names_wrong_chunks(tmp_path, change, message):
    put(tmp_path, "ists2016/headlines.test.jsonl", CHUNKED, CHUNKED | change)
    with pytest.raises(DataError, match=r"^ists2016/headlines\.test\.jsonl:2: .*" + message):
        read_chunked("headlines", "test", data_dir=tmp_path)


@pytest.mark.parametrize("ending", ["", ".xz"])
def test_alignments_word_links(tmp_path, ending):
    put(tmp_path, f"multimwa/wiki.dev.jsonl{ending}", LINKED)
    assert read_word_links("wiki", "dev", data_dir=tmp_path) == [
        WordLinkedPair(
            ("the", "cook", "stirs", "it"),
            ("a", "chef", "stirs"),
            frozenset({(1, 1), (2, 2)}),
            frozenset({(0, 0)}),
            f"multimwa/wiki.dev.jsonl{ending}:1",
        )
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sure": "4-0"}, "sure holds '4-0', expected a-b with a below 4 and b below 3"),
        ({"possible": "0-3"}, "possible holds '0-3', expected a-b"),
        ({"sure": "0-0 1"}, "sure holds '1', expected a-b"),
        ({"sure": "0--1"}, "sure holds '0--1', expected a-b"),
        ({"sure": [[0, 0]]}, r"sure is \[\[0, 0\]\], expected a text such as \"0-0 1-2\""),
        ({"sentence2": ""}, "sentence2 is empty, but a text is expected"),
    ],
)
def test_alignments_names_wrong_word_links(tmp_path, change, message):
    put(tmp_path, "multimwa/mtref.test.jsonl", LINKED, LINKED | change)
    with pytest.raises(DataError, match=r"^multimwa/mtref\.test\.jsonl:2: .*" + message):
        read_word_links("mtref", "test", data_dir=tmp_path)


def test_alignments_absent_files_say_how_to_get_them(tmp_path):
    where = (
        r"was not found \(searched in: .*Get it with `likewise data get \w+`, or name the folder that holds "
        r"it with data_dir=\"DIR\" or LIKEWISE_DATA"
    )
    with pytest.raises(DataError, match=r"^corpus ists2016/images_test: .*images\.test\.jsonl\.xz " + where):
        read_chunked("images", "test", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"^corpus multimwa/wiki_train: .*" + where):
        read_word_links("wiki", "train", data_dir=tmp_path / "absent")
    with pytest.raises(DataError, match=r"revised_premise_dev: .*no folder was named"):
        read_edits("premise", "dev")


def test_alignments_unknown_names_list_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match=r"no split 'images_dev'\. Choose one of headlines_train, "):
        read_chunked("images", "dev", data_dir=tmp_path)
    with pytest.raises(UsageError, match=r"no split 'newsela_test'\. Choose one of mtref_train, "):
        read_word_links("newsela", "test", data_dir=tmp_path)
    with pytest.raises(UsageError, match=r"no split 'revised_label_dev'\. Choose one of original_train, "):
        read_edits("label", "dev", data_dir=tmp_path)


def test_alignments_files_of_another_form_are_refused(tmp_path):
    put(tmp_path, "multimwa/wiki.dev.jsonl", CHUNKED)
    with pytest.raises(DataError, match=r"no column sentence1, .*Give the file as published \(Lan et al"):
        read_word_links("wiki", "dev", data_dir=tmp_path)
    put(tmp_path, "ists2016/images.test.jsonl", "{\n")
    with pytest.raises(FormatError, match=r"images\.test\.jsonl:1: this line is not a JSON object"):
        read_chunked("images", "test", data_dir=tmp_path)


def test_alignments_edits_stand_two_by_two(tmp_path):
    put_revised(
        tmp_path,
        ("A goat stands on a hill.", "The goat is on a hill."),
        ("A goat stands on a hill", "The goat is  old."),  # nothing edited
        ('Two cooks share a "pan".', "They are strangers."),
        ("Two cooks rest.", "They are rivals."),  # of no original
        ("A girl paints a wall.", "She is asleep."),
        ("A girl paints a wall.", "She paints."),
    )
    found = match_edits("hypothesis", "dev", data_dir=tmp_path)
    assert (found.rows, found.unmatched, found.unchanged) == (6, 1, 1)
    assert [(edit.original, edit.edited) for edit in found.edits] == [
        ("The goat is old.", "The goat is on a hill."),
        ("They are friends.", "They are strangers."),
        ("She is at school.", "She is asleep."),
        ("She is at school.", "She paints."),
    ]
    assert found.edits[1].source == "snli_counterfactual/revised_hypothesis.dev.tsv.xz:4"
    assert read_edits("hypothesis", "dev", data_dir=tmp_path) == list(found.edits)


def test_alignments_edits_are_matched_after_a_lost_row(tmp_path):
    rows = [
        ("A goat stands on a mound.", "The goat is old."),
        ('Two cooks hide a "pan".', "They are friends."),
        ("Two cooks rest.", "They are friends."),
        ("A girl eats.", "She is at school."),
    ]
    put_revised(tmp_path, *rows, kind="premise")
    edits = read_edits("premise", "dev", data_dir=tmp_path)
    assert edits[1] == Edit(
        'Two cooks share a "pan".',
        'Two cooks hide a "pan".',
        "snli_counterfactual/revised_premise.dev.tsv.xz:3",
    )
    assert [edit.edited for edit in edits] == [premise for premise, _ in rows]


def test_alignments_edits_leave_it_open_where_two_originals_could_be_meant(tmp_path):
    put_revised(tmp_path, ("A girl paints a wall.", "She sings."))
    again = "neutral\tA girl paints a wall.\tShe is tall.\n"
    put(tmp_path, "snli_counterfactual/original.dev.tsv.xz", ORIGINAL, again)
    assert match_edits("hypothesis", "dev", data_dir=tmp_path).unmatched == 1


@pytest.mark.parametrize(
    ("original", "edited", "new"),
    [
        ("The goat is old", "the goat is very old", {3}),
        ("The goat is old", "the goat is young now", {3, 4}),
        ("The goat is old", "The goat is", set()),
        ("The goat", "", set()),
        ("", "A goat", {0, 1}),
        ("the a " * 150, "the a " * 150 + "end", {300}),
    ],
)
def test_alignments_edited_words_are_the_new_ones(original, edited, new):
    assert edited_words(original.split(), edited.split()) == new


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "split", "rows", "links"),
    [
        ("headlines", "train", 756, 2187),
        ("headlines", "test", 375, 1171),
        ("images", "train", 750, 1913),
        ("images", "test", 375, 1144),
    ],
)
def test_alignments_chunked_counts(name, split, rows, links, data_dir):
    pairs = read_chunked(name, split, data_dir=data_dir)
    assert (len(pairs), sum(len(pair.links) for pair in pairs)) == (rows, links)
    assert all({link.a for link in pair.links} <= set(pair.chunks_a) for pair in pairs)
    assert all(link.score is not None and 0 <= link.score <= 5 for pair in pairs for link in pair.links)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "split", "rows", "sure", "possible"),
    [
        ("mtref", "train", 2398, 51040, 0),
        ("mtref", "dev", 800, 13693, 2072),
        ("mtref", "test", 800, 14425, 1927),
        ("wiki", "train", 2514, 70072, 0),
        ("wiki", "dev", 533, 15082, 0),
        ("wiki", "test", 1052, 29768, 0),
    ],
)
def test_alignments_word_link_counts(name, split, rows, sure, possible, data_dir):
    pairs = read_word_links(name, split, data_dir=data_dir)
    counts = len(pairs), sum(len(pair.sure) for pair in pairs), sum(len(pair.possible) for pair in pairs)
    assert counts == (rows, sure, possible)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("kind", "split", "edits", "unmatched", "unchanged"),
    [
        ("hypothesis", "train", 3331, 0, 1),
        ("hypothesis", "dev", 400, 0, 0),
        ("premise", "train", 3295, 1, 36),
        ("premise", "dev", 399, 0, 1),
    ],
)
def test_alignments_edit_counts(kind, split, edits, unmatched, unchanged, data_dir):
    found = match_edits(kind, split, data_dir=data_dir)
    assert (len(found.edits), found.unmatched, found.unchanged) == (edits, unmatched, unchanged)
