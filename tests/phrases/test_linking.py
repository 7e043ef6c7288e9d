"""Pairs with phrase links in the plain format: who made them."""

from __future__ import annotations

import pytest

from likewise.data.links import LinkedPair
from likewise.encoders.sentence import load_encoder
from likewise.phrases.aligner import Aligner
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.linking import Asked, align_pairs, makers


@pytest.mark.parametrize(
    ("by", "phrases_and_links"),
    [
        ("likewise 0.1.0, default, phrases by rules", ("rules", "likewise 0.1.0, default")),
        ("Ann, phrases by spaCy en 3.8, small", ("spaCy en 3.8, small", "Ann")),
        ("Ann", ("given", "Ann")),
        (None, ("given", "given")),
    ],
)
def test_makers_of_phrases_and_of_links_are_told_apart(by, phrases_and_links):
    assert makers(LinkedPair("a", "b", (), (), (), by=by)) == phrases_and_links


def test_makers_of_our_links_are_those_who_made_them(tiny_encoder):
    aligner = Aligner(load_encoder(tiny_encoder, device="cpu"))
    [pair] = align_pairs([Asked("a man", "the dog")], RuleChunker(), aligner, by="likewise 1, m")
    assert makers(pair) == ("rules", "likewise 1, m")
