"""Where two texts part."""

from __future__ import annotations

import pytest

from likewise.encoders.sentence import load_encoder
from likewise.phrases.aligner import Aligner
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.explaining import explain, least_matched
from likewise.phrases.spans import given


def test_least_matched_is_the_phrase_around_what_differs():
    phrases = given("the boy plays chess in the park", [(0, 2), (2, 4), (4, 7)], where="test")
    matched = [0.9, 0.95, 0.7, 0.2, 0.9, 0.95, 0.95]
    assert phrases.said(least_matched(phrases, matched)) == "plays chess"
    assert least_matched(phrases, [0.9] * 7) is None


def test_least_matched_counts_no_marks_and_takes_the_shortest():
    phrases = given("yes , no", [(0, 2)], where="test")
    assert least_matched(phrases, [0.5, 0.0, 0.9]) == (0, 1)
    assert least_matched(given("", [], where="test"), []) is None


def test_explain_finds_the_edit(minilm):
    phraser, aligner = RuleChunker(), Aligner(load_encoder(minilm, device="cpu"))
    a, b = phraser(["A boy is playing chess in the park.", "A boy is playing the violin in the park."])
    [found] = explain(aligner, [(a, b)])
    assert "violin" in b.said(found.odd_b)
    assert "park" not in b.said(found.odd_b)
    assert len(found.matched_a) == len(a.words)
    assert found.matched_b[b.tokens.index("violin")] < 0.75 < found.matched_b[b.tokens.index("park")]


@pytest.mark.parametrize("text", ["", "🙂"])
def test_explain_of_texts_without_phrases(minilm, text):
    phraser, aligner = RuleChunker(), Aligner(load_encoder(minilm, device="cpu"))
    [found] = explain(aligner, [tuple(phraser([text, "A cat."]))])
    assert len(found.matched_b) == 3
