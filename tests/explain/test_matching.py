"""Where two texts part."""

from __future__ import annotations

import csv

import pytest

from likewise.data.links import Link, LinkedPair, read_links, split_at_blanks, write_links
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError
from likewise.explain.matching import least_matched, match_linked, match_pairs
from likewise.phrases.aligner import Aligner
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.linking import Asked, align_pairs
from likewise.phrases.spans import given


@pytest.fixture(scope="module")
def aligner(tiny_encoder) -> Aligner:
    return Aligner(load_encoder(tiny_encoder, device="cpu"))


def linked(text_a: str, text_b: str, links: list[Link], **more: object) -> LinkedPair:
    return LinkedPair(text_a, text_b, split_at_blanks(text_a), split_at_blanks(text_b), tuple(links), **more)


def test_least_matched_is_the_phrase_around_what_differs():
    phrases = given("the boy plays chess in the park", [(0, 2), (2, 4), (4, 7)], where="test")
    matched = [0.9, 0.95, 0.7, 0.2, 0.9, 0.95, 0.95]
    assert phrases.said(least_matched(phrases, matched)) == "plays chess"
    assert least_matched(phrases, [0.9] * 7) is None


def test_least_matched_counts_no_marks_and_takes_the_shortest():
    phrases = given("yes , no", [(0, 2)], where="test")
    assert least_matched(phrases, [0.5, 0.0, 0.9]) == (0, 1)
    assert least_matched(given("", [], where="test"), []) is None


def test_least_matched_is_no_phrase_that_stands_in_the_other_text():
    phrases = given("a man plays the guitar", [(0, 2), (2, 5)], where="test")
    matched = [0.9, 0.9, 0.9, 0.7, 0.9]
    assert least_matched(phrases, matched) == (3, 4)
    assert least_matched(phrases, matched, other=["He", "plays", "The", "guitar"]) is None
    assert least_matched(phrases, [0.9, 0.9, 0.7, 0.7, 0.5], other=["plays", "the", "harp"]) == (2, 5)


def test_explain_finds_the_edit(minilm):
    phraser, aligner = RuleChunker(), Aligner(load_encoder(minilm, device="cpu"))
    a, b = phraser(["A boy is playing chess in the park.", "A boy is playing the violin in the park."])
    [found] = match_pairs(aligner, [(a, b)])
    assert "violin" in b.said(found.odd_b)
    assert "park" not in b.said(found.odd_b)
    assert len(found.matched_a) == len(a.words)
    assert found.matched_b[b.tokens.index("violin")] < 0.75 < found.matched_b[b.tokens.index("park")]


@pytest.mark.parametrize("text", ["", "🙂"])
def test_explain_of_texts_without_phrases(minilm, text):
    phraser, aligner = RuleChunker(), Aligner(load_encoder(minilm, device="cpu"))
    [found] = match_pairs(aligner, [tuple(phraser([text, "A cat."]))])
    assert len(found.matched_b) == 3


# Links that are given


def test_links_that_were_written_are_shown_as_they_were_before(aligner, tiny_pairs, tmp_path):
    with tiny_pairs.open(encoding="utf8", newline="") as file:
        texts = [(f"{row['text_a']}.", f"Today, {row['text_b']}!") for row in csv.DictReader(file)]
    phraser = RuleChunker()
    direct = match_pairs(aligner, [tuple(phraser(pair)) for pair in texts])
    write_links(
        tmp_path / "l.jsonl", align_pairs([Asked(*pair) for pair in texts], phraser, aligner, by="us")
    )
    again = match_linked(aligner, list(read_links(tmp_path / "l.jsonl")))
    assert sum(len(one.links) for one in direct) > len(texts)
    for one, other in zip(direct, again, strict=True):
        assert (other.blocks_a, other.blocks_b) == (one.blocks_a, one.blocks_b)
        assert (other.odd_a, other.odd_b) == (one.odd_a, one.odd_b)
        assert [(link.a, link.b, link.chance) for link in other.links] == [
            (link.a, link.b, link.chance) for link in one.links
        ]
        assert [link.strength for link in other.links] == pytest.approx([link.strength for link in one.links])
        assert [link.score for link in other.links] == [link.strength for link in one.links]


def test_a_word_that_a_link_names_is_shown_with_its_neighbours_unless_it_is_listed(aligner):
    links = [Link((0, 1), (0, 1), chance=0.9), Link((1, 2), (0, 1), chance=0.6)]
    pair = linked("dog cat man runs", "dog", links)
    [found] = match_linked(aligner, [pair])
    assert [block.span for block in found.blocks_a] == [(0, 1), (1, 4)]
    listed = linked("dog cat man runs", "dog", links, spans_a=((1, 2),))
    [found] = match_linked(aligner, [listed])
    assert [block.span for block in found.blocks_a] == [(0, 1), (1, 2), (2, 4)]


def test_phrases_that_cross_are_refused_with_their_text_and_both_spans(aligner):
    pair = linked(
        "the old man plays",
        "a man sings now",
        [Link((0, 2), (0, 2)), Link((1, 3), (3, 4))],
        spans_b=((1, 3),),
        source="deep/their.jsonl:7",
    )
    with pytest.raises(DataError) as refused:
        match_linked(aligner, [pair])
    assert str(refused.value).splitlines() == [
        "deep/their.jsonl:7: in text_a, [0, 2] 'the old' of links crosses [1, 3] 'old man' of links. "
        "Let one span hold the other completely, or let them lie apart.",
        "deep/their.jsonl:7: in text_b, [0, 2] 'a man' of links crosses [1, 3] 'man sings' of spans_b. "
        "Let one span hold the other completely, or let them lie apart.",
    ]


def test_long_texts_with_links_are_refused_with_their_line(aligner):
    with pytest.raises(DataError, match=r"their\.jsonl:2: the second text has 1,001 words"):
        match_linked(aligner, [linked("a", "dog " * 1001, [], source="their.jsonl:2")])


# Words that the encoder did not read


def test_words_beyond_the_encoders_longest_input_are_counted(aligner):
    # 64 pieces, two of them markers.
    phraser = RuleChunker()
    [found] = match_pairs(aligner, [tuple(phraser(["dog " * 70 + "!", "a dog " * 31]))])
    assert (found.unread_a, found.unread_b) == (8, 0)
    [found] = match_linked(aligner, [linked("a dog", "dog " * 63, [])])
    assert (found.unread_a, found.unread_b) == (0, 1)


@pytest.mark.parametrize("text", ["dog " * 62 + "!", "...", "dog"])
def test_marks_beyond_the_encoders_longest_input_are_not_counted(aligner, text):
    [found] = match_pairs(aligner, [tuple(RuleChunker()([text, "a dog"]))])
    assert (found.unread_a, found.unread_b) == (0, 0)


def test_characters_that_a_tokenizer_drops_are_not_beyond_it(minilm):
    phraser, aligner = RuleChunker(), Aligner(load_encoder(minilm, device="cpu"))
    a, b = phraser(["a dog \u0301", "a dog"])
    assert a.tokens[-1] == "\u0301"
    [found] = match_pairs(aligner, [(a, b)])
    assert (found.unread_a, found.unread_b) == (0, 0)
