"""Links on real weights, and texts that are hard to read."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.encoders.sentence import load_encoder
from likewise.errors import ModelError, UsageError
from likewise.phrases.aligner import Aligner
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.measures import margin_apart, mutual, word_measures
from likewise.phrases.scoring import shipped
from likewise.phrases.spans import given
from likewise.phrases.states import WordStates, mean_of_runs

RULES = RuleChunker()


@pytest.fixture(scope="module")
def encoder(minilm):
    return load_encoder(minilm, device="cpu")


@pytest.fixture(scope="module")
def aligner(encoder):
    return Aligner(encoder)


def linked(aligner, a: str, b: str):
    one, two = RULES([a, b])
    [found] = aligner([(one, two)])
    words = {(one.said(link.a), two.said(link.b)) for link in found.words}
    return words, {(one.said(link.a), two.said(link.b)) for link in found.phrases}


def test_words_and_phrases_are_linked(aligner):
    words, phrases = linked(
        aligner, "The old gardener watered the roses.", "An elderly gardener watered the flowers."
    )
    assert {("old", "elderly"), ("gardener", "gardener"), ("roses", "flowers")} <= words
    assert {("The old gardener", "An elderly gardener"), ("the roses", "the flowers")} <= phrases


def test_what_has_no_partner_stays_unlinked(aligner):
    words, phrases = linked(aligner, "A dog sleeps in the hall.", "A dog sleeps.")
    assert {a for a, _ in words} == {"A", "dog", "sleeps", "."}
    assert all(a != "in the hall" for a, _ in phrases)


def test_alignment_does_not_depend_on_batch_mates(aligner):
    pairs = [
        ("The cat sat.", "A cat was sitting."),
        ("It rained all day in the old town.", "Rain fell."),
    ]
    phrased = [tuple(RULES(list(pair))) for pair in pairs]
    alone = [aligner([pair])[0] for pair in phrased]
    together = aligner(phrased)
    for one, two in zip(alone, together, strict=True):
        assert [(x.a, x.b) for x in one.links] == [(x.a, x.b) for x in two.links]
        np.testing.assert_allclose(
            [x.strength for x in one.links], [x.strength for x in two.links], atol=2e-3
        )


@pytest.mark.parametrize("text", ["", "   ", "🙂 👨‍👩‍👧", "مرحبا يا صديقي", "…", "\ufe0f", "猫が好き"])
def test_texts_that_are_hard_to_read(aligner, text):
    one, two = RULES([text, "A cat sat."])
    for pair in ((one, two), (two, one), (one, one)):
        [found] = aligner([pair])
        assert all(0 <= link.strength <= 1 and 0.5 <= link.chance <= 1 for link in found.links)


def test_words_beyond_the_encoders_length_are_unlinked(aligner):
    long, short = RULES([" ".join(["word"] * 700) + " zebra", "zebra"])
    [found] = aligner([(long, short)])
    assert not any(link.a[0] >= 600 for link in found.words)


def test_a_text_beyond_all_limits_is_refused(aligner):
    long, short = RULES([" ".join(["word"] * 1_001), "zebra"])
    with pytest.raises(UsageError, match=r"1,001 words.*Cut it"):
        aligner([(long, short)])


def test_margins_are_the_same_in_blocks(monkeypatch):
    from likewise.phrases import measures

    random = np.random.default_rng(1)
    scores, apart = random.normal(size=(7, 9)), random.random((9, 9)) < 0.5
    whole = margin_apart(scores, apart)
    monkeypatch.setattr(measures, "_CELLS", 100)
    np.testing.assert_array_equal(margin_apart(scores, apart), whole)


def test_given_spans_are_used(aligner):
    a = given("red car stopped", [(0, 2)], where="a")
    b = given("red vehicle halted", [(0, 2)], where="b")
    [found] = aligner([(a, b)])
    assert ((0, 2), (0, 2)) in [(link.a, link.b) for link in found.phrases]


def test_states_are_means_of_pieces(encoder):
    states = WordStates(encoder)
    [found] = states(["unbelievable birds"], [[(0, 12), (13, 18)]])
    assert found.middle.shape == found.last.shape == (2, 384)
    assert states.layer == 3
    with pytest.raises(ModelError, match=r"Choose 0 to 6"):
        WordStates(encoder, layer=9)


def test_an_encoder_without_a_transformer_is_refused(tiny_vectors):
    from likewise.encoders.words import average_encoder

    encoder = average_encoder(tiny_vectors)
    with pytest.raises(ModelError, match="fast tokenizer"):
        WordStates(encoder)


def test_mean_of_runs():
    states = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(mean_of_runs(states, [(1, 3), (0, 0)]), [[3, 4], [0, 0]])


def test_measures_know_their_rivals():
    scores = np.array([[0.9, 0.5, 0.8]])
    apart = np.array([[False, True, False], [True, False, True], [False, True, False]])
    np.testing.assert_allclose(margin_apart(scores, apart), [[0.4, -0.4, 0.3]])
    assert mutual(np.array([[0.9, 0.8], [0.95, 0.1]]), 0.0).tolist() == [[0, 0], [1, 0]]


def test_shipped_weights_fit_the_measures():
    ours = shipped()
    cosines = np.eye(2)
    assert word_measures(["a", "b"], ["a", "b"], cosines).shape[-1] == len(ours.words.weights)
    assert ours.word_logits(["red", "cars"], ["red", "cars"], cosines).argmax(axis=1).tolist() == [0, 1]
