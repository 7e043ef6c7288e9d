"""Chunks by rules: those that people draw, and no nonsense on any other text."""

from __future__ import annotations

import json
import lzma
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.phrases.chunking import RuleChunker
from likewise.phrases.spans import nodes

CHUNKER = RuleChunker()


def chunks(text: str) -> list[str]:
    (phrases,) = CHUNKER([text])
    assert phrases.by == CHUNKER.name == "rules"
    return [phrases.said(span) for span in phrases.spans]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "A cat is standing on tree branches.",
            ["A cat", "is standing", "on tree branches", "tree branches"],
        ),
        (
            "Saudis to permit women to compete in Olympics",
            ["to permit", "to compete", "in Olympics"],
        ),
        ("A black and white cat sleeps.", ["A black and white cat"]),
        (
            "A man plays a guitar next to the river.",
            ["A man", "a guitar", "next to the river", "the river"],
        ),
        ("They have not been seen.", ["have not been seen"]),
        (
            "A small dog looking up at the camera.",
            ["A small dog", "looking up", "at the camera", "the camera"],
        ),
        ("She doesn't like the red car.", ["doesn't like", "the red car"]),
        ("He did not kick the ball.", ["did not kick", "the ball"]),
        ("People in a living room", ["in a living room", "a living room"]),
        ("A parked car in a gated yard", ["A parked car", "in a gated yard", "a gated yard"]),
    ],
)
def test_chunks_are_those_people_draw(text, wanted):
    assert chunks(text) == wanted


def test_chunks_of_a_list_hold_its_parts():
    found = chunks("Two dogs and a cat play with wine, bread and a teapot.")
    assert {"Two dogs and a cat", "Two dogs", "a cat", "with wine, bread and a teapot"} <= set(found)
    assert "a teapot" in found


def test_chunks_do_not_join_what_opens_a_clause():
    assert "a bench and a woman" not in str(chunks("A man sits on a bench and a woman stands."))


def test_chunks_hold_of_phrases_together_with_what_they_follow():
    assert chunks("on a patch of grass")[:2] == ["on a patch of grass", "on a patch"]


def test_chunks_of_several_sentences_lie_in_them():
    found = chunks("The dog barks at me. It is a big dog!")
    assert found[0] == "The dog barks at me"
    assert "It is a big dog" in found


def test_chunks_tell_us_from_the_us():
    assert "US troops" in chunks("The army sends US troops to Mali.")
    assert "us troops" not in chunks("The army gives us troops.")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我喜歡蘋果，他不喜歡。", ["我喜歡蘋果", "他不喜歡"]),
        ("Собака спит, кошка ест.", ["Собака спит", "кошка ест"]),
        ("הכלב ישן", ["הכלב ישן"]),
        ("", []),
        ("...!?", []),
        ("👍🏽 👨‍👩‍👧", []),
    ],
)
def test_chunks_of_other_languages_are_cut_at_punctuation(text, wanted):
    assert chunks(text) == wanted


PIECES = (
    "the a cat dogs and , . to is not running painted in of up US 5 très 我 👍 ' s don't one which quickly"
).split()


@settings(max_examples=100)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)))
def test_chunks_are_a_tree_without_marks_at_their_edges(text):
    (phrases,) = CHUNKER([text])
    nodes(phrases)
    for start, end in phrases.spans:
        assert end - start > 1
        for edge in (phrases.tokens[start], phrases.tokens[end - 1]):
            assert any(map(str.isalnum, edge)) or edge in ("'", "%") or category(edge[0]) == "Sc"
    assert CHUNKER([text]) == [phrases]


@pytest.mark.parametrize(
    "part", ["red", "very", "dog,", "of", "the", "to", "dog of", "is.", "5", "' s", "will"]
)
def test_chunks_of_a_long_text(part):
    """A pattern that goes back over what it has read would not come to an end here."""
    assert len(CHUNKER([f"{part} " * 20_000])[0].words) >= 20_000


def test_chunks_over_the_callers_own_words():
    phrases = CHUNKER.over("Egypt 's army", ((0, 5), (6, 8), (9, 13)))
    assert phrases.spans == ((0, 3),)


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "least"), [("images.train", 0.9), ("headlines.train", 0.7)])
def test_chunks_find_the_gold_chunks_of_ists(data_dir, name, least):
    found = wanted = 0
    with lzma.open(data_dir / "ists2016" / f"{name}.jsonl.xz", "rt", encoding="utf8") as file:
        for row in map(json.loads, file):
            for side in "12":
                gold = {(s[0] - 1, s[-1]) for link in row["alignment"] if len(s := link[f"s{side}"]) > 1}
                spans = set(CHUNKER.over(*_spaced(row[f"tokens{side}"])).spans)
                found, wanted = found + len(gold & spans), wanted + len(gold)
    assert wanted > 2000
    assert found / wanted >= least


def _spaced(tokens):
    words, at = [], 0
    for token in tokens:
        words.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), tuple(words)
