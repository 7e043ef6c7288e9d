"""Explanations of scores, over a tiny encoder: what is measured, what is told, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from likewise.data.links import Link, LinkedPair, read_links, split_at_blanks, write_links
from likewise.errors import DataError, ModelError, UsageError
from likewise.explain.explainer import Explainer
from likewise.explain.explanation import ExplainedPhrase, ExplainedText, ExplainedWord
from likewise.explain.occlusion import without
from likewise.explain.page import least_line
from likewise.methods.pairs import Objective, PairModel
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.linking import Asked
from likewise.phrases.spans import given
from likewise.predict import Predictor, load
from likewise.records import Relation

TEXTS = ("The old man plays guitar in the park.", "A woman reads one book near the river.")


@pytest.fixture(scope="module")
def predictor(tiny_encoder) -> Predictor:
    return load(tiny_encoder, device="cpu")


def linked(text_a: str, text_b: str, links: list[Link], **more: object) -> LinkedPair:
    return LinkedPair(text_a, text_b, split_at_blanks(text_a), split_at_blanks(text_b), tuple(links), **more)


# Leaving words out


@pytest.mark.parametrize(
    ("text", "span", "left"),
    [
        ("The man plays.", (0, 2), "plays."),
        ("The man plays.", (2, 3), "The man."),
        ("In the park, a man  plays", (0, 3), ", a man  plays"),
        ("a man plays", (1, 2), "a plays"),
        ("我喜歡蘋果", (1, 3), "我蘋果"),
        ("plays!", (0, 1), None),
        ("🙂 plays", (1, 2), "🙂"),
    ],
)
def test_without_closes_the_gap(text, span, left):
    assert without(given(text, [], where="x"), span) == left


def test_carries_is_the_score_less_the_score_without_the_phrase(predictor):
    found = predictor.explain(*TEXTS, phrases="rules")
    assert found.measure == "similarity"
    [whole] = predictor.score([TEXTS])["similarity"]
    assert found.score == pytest.approx(whole, abs=1e-6)
    phrases_a, phrases_b = RuleChunker()(TEXTS)
    for phrase in found.a.phrases:
        [left] = predictor.score([(without(phrases_a, phrase.span), TEXTS[1])])["similarity"]
        assert phrase.carries == pytest.approx(whole - left, abs=1e-5)
    for phrase in found.b.phrases:
        [left] = predictor.score([(TEXTS[0], without(phrases_b, phrase.span))])["similarity"]
        assert phrase.carries == pytest.approx(whole - left, abs=1e-5)
    assert len({phrase.carries for phrase in found.a.phrases}) > 1


def test_carries_of_a_label_counts_its_share(tiny_encoder):
    from likewise.encoders.sentence import load_encoder

    torch.manual_seed(1)
    relation = Relation("entailment", "classes", labels=("no", "maybe", "yes"))
    model = PairModel(
        load_encoder(tiny_encoder, device="cpu"), [Objective(relation, "classes", "cross_entropy")]
    )
    predictor = Predictor(model)
    found = predictor.explain(*TEXTS, phrases="rules")
    [label] = predictor.score([TEXTS])["entailment"]
    assert found.score == label
    assert found.measure == f"share of {label}"
    place = relation.labels.index(label)

    def share(a: str, b: str) -> float:
        u, v = torch.from_numpy(predictor.encode([a, b])).split(1)
        with torch.inference_mode():
            return float(torch.softmax(model.output(model.objectives[0], u, v), dim=-1)[0, place])

    assert found.share == pytest.approx(share(*TEXTS), abs=1e-5)
    first = found.a.phrases[0]
    left = without(RuleChunker()(TEXTS)[0], first.span)
    assert first.carries == pytest.approx(share(*TEXTS) - share(left, TEXTS[1]), abs=1e-5)
    assert json.loads(json.dumps(found.to_dict()))["share"] == found.share


def test_all_of_a_pair_is_scored_in_one_call(predictor, monkeypatch):
    asked = []
    plain = predictor.answer
    monkeypatch.setattr(
        predictor, "answer", lambda rows, *more: asked.append(len(rows)) or plain(rows, *more)
    )
    found = predictor.explain([TEXTS, TEXTS[::-1]], phrases="rules")
    assert asked == [2 + sum(len(side.phrases) for one in found for side in (one.a, one.b))]


# What is told


def test_explanation_covers_both_texts_and_agrees_with_itself(predictor):
    found = predictor.explain(*TEXTS, phrases="rules")
    for side, other in ((found.a, found.b), (found.b, found.a)):
        assert [side.text[word.start : word.end] for word in side.words][-1] == "."
        for place, phrase in enumerate(side.phrases):
            assert side.text[phrase.start : phrase.end] == phrase.text == side.said(phrase.span)
            assert (phrase.partner is None) == (phrase.strength is None) == (phrase.chance is None)
            if phrase.partner is not None:
                partner = other.phrases[phrase.partner]
                assert (partner.partner, partner.strength) == (place, phrase.strength)
                assert 0 <= phrase.strength <= 1
        assert 0 <= phrase.match <= 1
    assert set(found.a.unmatched) == {phrase for phrase in found.a.phrases if phrase.partner is None}
    assert found.phrases_by == "rules"


def test_a_text_against_itself_matches_phrase_by_phrase(predictor):
    found = predictor.explain(TEXTS[0], TEXTS[0], phrases="rules")
    assert [(one.text, other.text) for one, other in found.joined] == [
        (text, text) for text in ("The old man", "plays", "guitar", "in the park")
    ]
    assert {one.strength for one, _ in found.joined} == {1.0}
    assert found.a.least_matched is None


def test_to_dict_has_the_documented_keys(predictor):
    document = predictor.explain(*TEXTS, phrases="rules").to_dict()
    assert list(document) == [
        *(
            "source",
            "relation",
            "scale",
            "answered_by",
            "score",
            "share",
            "measure",
            "phrases_by",
            "links_by",
        ),
        *("a", "b", "links", "notes"),
    ]
    assert list(document["a"]) == ["text", "words", "phrases", "least_matched"]
    assert list(document["a"]["words"][0]) == ["start", "end", "match", "linked"]
    assert list(document["a"]["phrases"][0]) == [
        *("span", "start", "end", "text", "match", "partner", "strength", "chance", "carries"),
    ]
    assert list(document["links"][0]) == ["a", "b", "strength", "chance", "score"]
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize("text", ["man", "man!"])
def test_a_text_of_one_phrase_has_nothing_measured_and_says_so(predictor, text):
    found = predictor.explain(text, TEXTS[1], phrases="rules")
    assert [phrase.carries for phrase in found.a.phrases] == [None]
    assert "the first text is a single phrase" in found.notes[0]
    assert None not in [phrase.carries for phrase in found.b.phrases]


@pytest.mark.parametrize("text", ["...", "?!", "—"])
def test_a_text_of_marks_has_no_phrase_and_says_so(predictor, text):
    found = predictor.explain(TEXTS[0], text, phrases="rules")
    assert found.b.phrases == ()
    assert found.notes == ("the second text has no phrases, because it holds only punctuation marks",)


@pytest.mark.parametrize("text", ["🙂 👨‍👩‍👧 ok", "الكلب نائم", "a\x00b\nc d", "e\u0301 x " * 30])
def test_odd_texts_are_explained(predictor, text):
    found = predictor.explain(text, TEXTS[0], phrases="rules")
    assert found.a.phrases
    json.dumps(found.to_dict(), ensure_ascii=False).encode("utf8")


def test_lists_frames_and_files_of_pairs_come_back_in_order(predictor, tmp_path):
    (tmp_path / "p.csv").write_text("a,b\nthe dog,a cat\na man,the woman\n", encoding="utf8")
    found = predictor.explain(tmp_path / "p.csv", phrases="rules")
    assert [(one.a.text, one.b.text) for one in found] == [("the dog", "a cat"), ("a man", "the woman")]
    assert found == predictor.explain([("the dog", "a cat"), ("a man", "the woman")], phrases="rules")


def test_a_relation_is_chosen_by_name(predictor):
    assert predictor.explain(*TEXTS, relation="similarity", phrases="rules").relation.name == "similarity"
    with pytest.raises(UsageError, match="does not answer relation 'topic'"):
        predictor.explain(*TEXTS, relation="topic")


def test_a_phraser_that_falls_back_is_told_once(predictor, monkeypatch, caplog):
    import sys

    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setattr(predictor, "_phrasers", {})
    assert predictor.explain("a man", "a dog").phrases_by == "rules"
    predictor.explain("a man", "a cat")
    assert [record.message.count("phrases are found by rules") for record in caplog.records] == [1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (62, []),
        (
            63,
            [
                (
                    "the last word of the second text is beyond the encoder's limit of "
                    "64 tokens and was not compared"
                )
            ],
        ),
        (
            99,
            [
                (
                    "the last 37 words of the second text are beyond the encoder's limit "
                    "of 64 tokens and were not compared"
                )
            ],
        ),
    ],
)
def test_words_beyond_the_encoder_are_told(predictor, words, expected):
    found = predictor.explain("the dog", "dog " * words, phrases="rules")
    assert [note for note in found.notes if "beyond" in note] == expected
    assert found.to_dict()["notes"] == list(found.notes)


# What is refused


def test_long_texts_are_refused_with_their_place(predictor):
    with pytest.raises(
        DataError, match=r"pair 1: the second text has 1,001 words, but at most 1,000 .* Cut it"
    ):
        predictor.explain([TEXTS, ("a man", "dog " * 1001)], phrases="rules")


def test_empty_texts_are_refused(predictor):
    with pytest.raises(DataError, match="pair 0, text b: the text is empty"):
        predictor.explain("a man", " ")


def test_a_model_of_word_vectors_is_refused_with_a_remedy(tiny_vectors, tmp_path):
    from likewise.encoders.words import average_encoder

    average_encoder(tiny_vectors, device="cpu").save(str(tmp_path / "m"), create_model_card=False)
    with pytest.raises(
        ModelError, match=r"states of a transformer .*; load another `model` with likewise\.load$"
    ):
        load(tmp_path / "m", device="cpu").explain("a man", "a dog")


# Corpora of links


def test_align_writes_what_read_links_reads(predictor, tmp_path):
    explainer = Explainer(predictor, phrases="rules")
    asked = [Asked(*TEXTS, "p.csv:2", "x1"), Asked("the dog", "the dog", "p.csv:3")]
    assert write_links(tmp_path / "l.jsonl.gz", explainer.align(asked)) == 2
    first, second = read_links(tmp_path / "l.jsonl.gz")
    assert (first.id, second.id) == ("x1", None)
    assert first.by.endswith(", phrases by rules")
    assert first.words_a == RuleChunker()([TEXTS[0]])[0].words
    assert Link((0, 1), (0, 1), 1.0, 1.0) in second.links
    assert [(link.a, link.b) for link in second.links if link.score < 1] == []


def test_align_cuts_windows_and_encodes_each_distinct_text_of_one_once(predictor, monkeypatch):
    from likewise.phrases import linking as module

    monkeypatch.setattr(module, "WINDOW", 3)
    monkeypatch.setattr(module, "WORD_BUDGET", 8)
    explainer = Explainer(predictor, phrases="rules")
    seen = []
    plain = explainer._aligner._states
    monkeypatch.setattr(
        explainer._aligner, "_states", lambda texts, words: seen.append(list(texts)) or plain(texts, words)
    )
    asked = [Asked("a man", "a dog"), Asked("a man", "a dog"), Asked("a cat", "a man"), Asked(*TEXTS)]
    plainly = [one.links for one in Explainer(predictor, phrases="rules").align(asked)]
    assert [one.links for one in explainer.align(asked)] == plainly
    # Two pairs of four words fill the budget; the window of three ends; one long pair goes alone.
    assert seen == [["a man", "a dog"], ["a cat", "a man"], list(TEXTS)]


def test_links_of_others_are_explained_with_their_score_and_our_strength(predictor):
    pair = linked(
        "the old man plays", "a man sings", [Link((0, 3), (0, 2), 4.5), Link((3, 4), (2, 3))],
        by="Ann", source="their.jsonl:1",
    )  # fmt: skip
    [found] = Explainer(predictor).explain_linked([pair])
    assert [(one.text, other.text) for one, other in found.joined] == [
        ("the old man", "a man"), ("plays", "sings"),
    ]  # fmt: skip
    assert [link.score for link in found.links] == [4.5, None]
    assert {link.chance for link in found.links} == {None}
    assert found.links[0].strength == found.a.phrases[0].strength
    assert (found.links_by, found.phrases_by, found.source) == ("Ann", "given", "their.jsonl:1")
    ours = predictor.explain("the old man plays", "the old man plays", phrases="rules")
    [same] = Explainer(predictor).explain_linked(
        [linked(ours.a.text, ours.b.text, [Link(link.a, link.b) for link in ours.links])]
    )
    assert [link.strength for link in same.links] == [link.strength for link in ours.links]


def test_links_of_others_that_cross_are_refused_with_their_line(predictor):
    pair = linked("a b c", "a b c", [Link((0, 2), (0, 1)), Link((1, 3), (1, 2))], source="their.jsonl:7")
    with pytest.raises(
        DataError, match=r"their.jsonl:7: in text_a, \[0, 2\] 'a b' of links crosses .*\. Let one"
    ):
        list(Explainer(predictor).explain_linked([pair]))


# Real weights


def test_explain_finds_what_matches_and_what_does_not(minilm):
    found = load(minilm, device="cpu").explain(
        "A boy is playing chess in the park.", "A boy is playing the violin in the park.", phrases="rules"
    )
    said = {(one.text, other.text): one for one, other in found.joined}
    assert said["in the park", "in the park"].strength > 0.8
    weak = said["chess", "the violin"]
    assert weak.strength < 0.4
    # Without what differs the score would be higher, without what is shared lower.
    assert weak.carries < 0 < said["in the park", "in the park"].carries
    assert found.a.said(found.a.least_matched) == "chess"
    assert np.isclose(found.score, 0.621, atol=0.01)


def side(matches, partners, least):
    """A text of one-word phrases, a..: their match and partner, and the span that is matched least."""
    words = tuple(ExplainedWord(2 * n, 2 * n + 1, match, False) for n, match in enumerate(matches))
    phrases = tuple(
        ExplainedPhrase((n, n + 1), 2 * n, 2 * n + 1, "abcdef"[n], match, partner, None, None, None)
        for n, (match, partner) in enumerate(zip(matches, partners, strict=True))
    )
    return ExplainedText(" ".join("abcdef"[: len(words)]), words, phrases, least)


@pytest.mark.parametrize(
    ("matches", "partners", "least", "said"),
    [
        ([0.9, 0.2, 0.9], [0, 1, 2], (1, 2), "b"),
        ([0.3, 0.2, 0.4], [0, 1, 2], (0, 3), "no phrase stands out"),
        ([0.3, 0.5, 0.4], [0, None, None], (0, 3), "c"),  # never beside a phrase without a match
        ([0.9, 0.9, 0.9], [0, 1, None], None, "c"),
        ([0.9, 0.9], [None, None], None, "no phrase stands out"),
        ([0.9, 0.9], [0, 1], None, "every word is matched"),
    ],
)
def test_what_is_pointed_at_does_not_contradict_the_table(matches, partners, least, said):
    text = side(matches, partners, least)
    assert (least_line(text) or text.said(text.stands_out)) == said
