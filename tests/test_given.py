"""What a caller may pass as texts and as pairs: every form that has an order and one meaning."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise.errors import DataError, LikewiseError, UsageError
from likewise.predict.given import given_pairs, given_texts

TEXTS = ["a man runs", "the dog sleeps", "two birds"]
PAIRS = [("a man", "a dog"), ("one", "two"), ("x y", "z")]
FRAME = pd.DataFrame({"ticket": TEXTS, "n": [1, 2, 3]}, index=[7, 8, 9])
COUPLES = pd.DataFrame({"here": [a for a, _ in PAIRS], "there": [b for _, b in PAIRS]})


@pytest.mark.parametrize(
    "given",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), FRAME["ticket"], iter(TEXTS),
     (text for text in TEXTS), dict.fromkeys(TEXTS).keys()],
    ids=["list", "tuple", "array", "objects", "Series", "iterator", "generator", "keys"],
)  # fmt: skip
def test_texts_in_every_form_are_read_in_order(given):
    assert given_texts(given) == TEXTS


def test_texts_of_a_frame_are_those_of_its_column_and_not_its_column_names():
    assert given_texts(FRAME, text="ticket") == TEXTS
    assert given_texts(FRAME[["ticket"]]) == TEXTS
    assert given_texts([{"ticket": text} for text in TEXTS], text="ticket") == TEXTS
    with pytest.raises(DataError, match=r"there is no column 'tickets' .*did you mean 'ticket'"):
        given_texts(FRAME, text="tickets")
    with pytest.raises(DataError, match="no column has a known name for texts"):
        given_texts(FRAME)


@pytest.mark.parametrize(
    "given",
    [set(TEXTS), {"a": "b"}, np.array(PAIRS), np.array("one"), 7, b"bytes", PAIRS],
    ids=["set", "mapping", "two columns", "no rows", "number", "bytes", "pairs"],
)
def test_texts_in_a_form_without_one_meaning_are_refused(given):
    with pytest.raises(UsageError):
        given_texts(given)


@pytest.mark.parametrize(
    ("given", "b"),
    [(PAIRS, None), ([list(pair) for pair in PAIRS], None), (np.array(PAIRS), None), (iter(PAIRS), None),
     (zip(*zip(*PAIRS, strict=True), strict=True), None), (COUPLES["here"], COUPLES["there"]),
     ([a for a, _ in PAIRS], np.array([b for _, b in PAIRS]))],
    ids=["tuples", "lists", "array", "iterator", "zip", "Series", "list and array"],
)  # fmt: skip
def test_pairs_in_every_form_are_read_in_order(given, b):
    assert given_pairs(given, b) == PAIRS


def test_pairs_of_a_frame_and_of_two_texts():
    assert given_pairs(COUPLES, text_a="here", text_b="there") == PAIRS
    assert given_pairs(COUPLES.to_dict("records"), text_a="here", text_b="there") == PAIRS
    assert given_pairs("a man", "a dog") == PAIRS[:1]


@pytest.mark.parametrize(
    ("given", "b", "said"),
    [
        (TEXTS, None, "reads pairs of texts"),
        (TEXTS, TEXTS[:2], "there are 3 first texts and 2 second texts"),
        ("a man", ["a dog"], "one argument is a text and the other one is not"),
        (np.zeros((2, 2, 2)), None, r"an array of shape \(2, 2, 2\)"),
        (set(PAIRS), None, "set was passed"),
        ({"a": "b"}, None, "dict was passed"),
    ],
)
def test_pairs_in_a_form_without_one_meaning_are_refused(given, b, said):
    with pytest.raises(LikewiseError, match=said):
        given_pairs(given, b)


def test_models_take_these_forms(tiny_encoder):
    model = likewise.load(tiny_encoder, device="cpu")
    expected = model.score(PAIRS)["similarity"]
    assert model.score(COUPLES["here"], COUPLES["there"])["similarity"] == pytest.approx(expected)
    assert likewise.score("a man", "a dog", model=model)["similarity"] == pytest.approx(expected[:1])
    assert model.encode(FRAME, text="ticket") == pytest.approx(model.encode(TEXTS))
    assert model.encode(TEXTS[0]).shape == (model.encode(TEXTS).shape[1],)
    with pytest.raises(UsageError, match="Name the model with model="):
        likewise.score(PAIRS, model)
