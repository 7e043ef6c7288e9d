"""Words → pieces → back, for any text, at both ends, and in a pair of texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.phrases.pieces import NONE, pieces_of_span, pieces_of_words
from likewise.phrases.words import split_words


def words_of_pieces(run, runs):
    """The span of words that a run of pieces covers, whole or in part."""
    inside = [
        index
        for index, (start, end) in enumerate(runs)
        if (start, end) != NONE and start < run[1] and end > run[0]
    ]
    return (inside[0], inside[-1] + 1) if inside else NONE


def test_pieces_of_words_at_both_ends():
    #       [CLS]   un      read    able    book    s       [SEP]
    pieces = [(0, 0), (0, 2), (2, 6), (6, 10), (11, 15), (15, 16), (0, 0)]
    runs = pieces_of_words([(0, 10), (11, 16)], pieces)
    assert runs == [(1, 4), (4, 6)]
    assert pieces_of_span((0, 2), runs) == (1, 6)
    assert words_of_pieces((1, 4), runs) == (0, 1)
    assert words_of_pieces((3, 5), runs) == (0, 2)


def test_pieces_of_a_word_that_was_cut_off():
    runs = pieces_of_words([(0, 2), (3, 5)], [(0, 0), (0, 2), (0, 0)])
    assert runs == [(1, 2), NONE]
    assert pieces_of_span((1, 2), runs) == NONE
    assert pieces_of_span((0, 2), runs) == (1, 2)


def test_pieces_of_nothing():
    assert pieces_of_words([], [(0, 0), (0, 0)]) == []
    assert words_of_pieces((0, 3), []) == NONE


@pytest.fixture(scope="module")
def tokenizer(minilm):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(minilm)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60))
def test_words_to_pieces_and_back_for_any_text(tokenizer, text):
    words = split_words(text)
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    runs = pieces_of_words(words, offsets)
    for number, run in enumerate(runs):
        if run == NONE:
            continue
        covered = {i for piece in range(*run) for i in range(*offsets[piece])}
        assert covered & set(range(*words[number]))
        first, after = words_of_pieces(run, runs)
        # A piece may hold the end of one word and the start of the next: the word is inside, nothing is lost.
        assert first <= number < after


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="abcdefgz", min_size=1, max_size=9), min_size=1, max_size=8))
def test_words_to_pieces_and_back_exactly(tokenizer, words):
    text, other = " ".join(words), "one more text"
    tokens = tokenizer(text, other, return_offsets_mapping=True)
    places = [i for i, side in enumerate(tokens.sequence_ids(0)) if side == 0]
    offsets = [span if i in places else (0, 0) for i, span in enumerate(tokens["offset_mapping"])]
    runs = pieces_of_words(split_words(text), offsets)
    assert [words_of_pieces(run, runs) for run in runs] == [(i, i + 1) for i in range(len(words))]
    assert pieces_of_span((0, len(words)), runs) == (places[0], places[-1] + 1)
    assert places[0] == 1  # after [CLS]


def test_pieces_of_the_second_text_of_a_pair(tokenizer):
    tokens = tokenizer("unbelievable birds", "they sing beautifully", return_offsets_mapping=True)
    sides = tokens.sequence_ids(0)
    second = [
        span if side == 1 else (0, 0) for side, span in zip(sides, tokens["offset_mapping"], strict=True)
    ]
    runs = pieces_of_words(split_words("they sing beautifully"), second)
    assert runs[0][0] == sides.index(1)
    assert runs[-1][1] == len(sides) - 1  # before the last [SEP]
    assert runs[0][0] == tokens["input_ids"].index(tokenizer.sep_token_id) + 1
