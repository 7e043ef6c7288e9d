"""The challenge set: shares against hand-computed ones, and a model's own answers by every way of asking."""

from __future__ import annotations

import hashlib
import json
from importlib import resources

import numpy as np
import pytest
from typer.testing import CliRunner

import likewise
from likewise.answering import Answering, Answers, Limits
from likewise.cli import app
from likewise.errors import DataError, EvaluationError, ModelError, UsageError
from likewise.evaluation.challenge import ChallengeItem, measure_challenge, ordered_share, read_challenge
from likewise.evaluation.intervals import metric_interval, wilson_interval
from likewise.records import Relation

HEADER = "id,phenomenon,text,same,other,other_label\n"
ROWS = """n-1,negation,the man sings,a man sings,the man is not fast,contradiction
n-2,negation,the cat sleeps,one cat sleeps,the cat is not in the park,contradiction
n-3,negation,the band plays,a band plays,the band is not fast,neutral
r-1,roles,the man cooks the soup,the old man cooks soup,the soup cooks the man,neutral
r-2,roles,the child runs,a child runs,the child is in the kitchen,entailment
"""
NLI = Relation.parse("entailment:contradiction|neutral|entailment")
PARAPHRASE = Relation.parse("paraphrase:not_paraphrase|paraphrase")
SIMILARITY = Relation.parse("similarity:0..5")
BUNDLED = resources.files("likewise").joinpath("samples/challenge.csv")


@pytest.fixture
def items(tmp_path) -> tuple[ChallengeItem, ...]:
    (tmp_path / "items.csv").write_text(HEADER + ROWS, encoding="utf-8")
    return read_challenge(tmp_path / "items.csv")


class Fixed(Answering):
    """Answers that are given by hand: those to all pairs (text, same), then those to all (text, other)."""

    texts = frozenset({2})
    limits = Limits(1024, None)

    def __init__(self, answers, cosines=None, relations=(SIMILARITY, NLI, PARAPHRASE)):
        self._answers, self._cosines = answers, cosines
        self._relations = tuple(relations)
        self.about = {"name": "fixed"}

    @property
    def relations(self):
        return self._relations

    def sources(self, relation):
        return ("head",)

    def answer(self, rows, relation, *, source=None, progress=None):
        found = next(one for one in self._relations if one.name == relation)
        values = self._answers[relation]
        assert len(rows) == len(values)
        return Answers(found, source or "head", values if found.labels else np.asarray(values, float))

    def embedding(self):
        if self._cosines is None:
            raise ModelError("this model reads both texts at once and has no vectors.")
        return self

    def cosines(self, pairs, *, progress=None):
        return np.asarray(self._cosines, float)


BY_HAND = {
    # Ordered rightly: n-1; n-2 is a tie; n-3 and r-1 are wrong; r-2 is right.
    "similarity": [4.0, 3.0, 1.0, 2.0, 5.0, 1.0, 3.0, 2.0, 2.5, 0.0],
    # Right: same of n-1, n-2, r-1, r-2; other of n-1, n-3, r-1.
    "entailment": [
        *("entailment", "entailment", "neutral", "entailment", "entailment"),
        *("contradiction", "neutral", "neutral", "neutral", "neutral"),
    ],
    # Right: same of all but r-1; other of n-2 and r-2.
    "paraphrase": [
        *("paraphrase", "paraphrase", "paraphrase", "not_paraphrase", "paraphrase"),
        *("paraphrase", "not_paraphrase", "paraphrase", "paraphrase", "not_paraphrase"),
    ],
}
COSINES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_challenge_shares_are_those_computed_by_hand(items):
    found = measure_challenge(Fixed(BY_HAND, COSINES), items)
    assert [part.name for part in found.phenomena] == ["negation", "roles"]
    negation, roles, everything = found["negation"], found["roles"], found["all"]
    assert everything is found.overall
    assert (negation.items, roles.items, everything.items) == (3, 2, 5)
    assert negation["similarity"].value == pytest.approx(100 * 1.5 / 3)
    assert roles["similarity"].value == pytest.approx(50)
    assert everything["similarity"].value == pytest.approx(100 * 2.5 / 5)
    assert [part["similarity"].ties for part in (negation, roles, everything)] == [1, 0, 1]
    assert [part["cosine"].value for part in (negation, roles, everything)] == [100, 75, 90]
    assert negation["entailment"].value == pytest.approx(100 * 4 / 6)
    assert roles["entailment"].value == pytest.approx(100 * 3 / 4)
    assert everything["entailment"].value == pytest.approx(70)
    assert negation["paraphrase"].value == pytest.approx(100 * 4 / 6)
    assert roles["paraphrase"].value == pytest.approx(50)
    # Always answering "entailment" is right for all pairs (text, same), and for the other pair of r-2.
    assert [part["entailment"].majority for part in (negation, roles, everything)] == [50, 75, 60]
    assert everything["entailment"].most_frequent == "entailment"
    assert everything["paraphrase"].majority == 50
    assert [everything[name].n for name in ("similarity", "cosine", "entailment", "paraphrase")] == [
        5,
        5,
        10,
        10,
    ]


def test_challenge_intervals_are_wilsons_and_count_an_item_once(items):
    found = measure_challenge(Fixed(BY_HAND, COSINES), items).overall
    interval = found["similarity"].interval
    assert (interval.low, interval.high, interval.method) == pytest.approx(
        (100 * wilson_interval(0.5, 5).low, 100 * wilson_interval(0.5, 5).high, "Wilson")
    )
    gold = ["entailment"] * 5 + [item.other_label for item in items]
    expected = metric_interval("accuracy", gold, BY_HAND["entailment"], groups=[*range(5), *range(5)])
    assert found["entailment"].interval == expected.scaled(100)
    one = measure_challenge(Fixed({"similarity": [2, 1]}, [1, 0], (SIMILARITY,)), items[:1])
    assert one.overall["similarity"].value == 100
    labels = Fixed({"paraphrase": ["paraphrase", "paraphrase"]}, None, (PARAPHRASE,))
    assert measure_challenge(labels, items[:1]).overall["paraphrase"].interval is None


def test_challenge_ordered_share_counts_ties_as_half():
    share = ordered_share(np.array([1.0, 2.0, 3.0, 0.0]), np.array([1.0, 2.0, 1.0, 4.0]))
    assert (share.value, share.n, share.ties) == (50, 4, 2)


def test_challenge_leaves_out_what_a_model_does_not_answer_and_says_why(items):
    reply = Relation.parse("entailment:no|yes")
    found = measure_challenge(Fixed({"similarity": BY_HAND["similarity"]}, None, (SIMILARITY, reply)), items)
    assert set(found.overall.shares) == {"similarity"}
    assert "cosine is left out: this model reads both texts at once" in found.notes[0]
    assert found.notes[1] == (
        "entailment is left out: the model answers it on no | yes, but the labels contradiction, neutral, "
        "entailment are expected"
    )
    with pytest.raises(EvaluationError, match=r"all has no share of 'cosine'\. Choose one of similarity"):
        found.overall["cosine"]
    with pytest.raises(EvaluationError, match=r"no phenomenon 'tense'\. Choose one of negation, roles, all"):
        found["tense"]
    with pytest.raises(UsageError, match="asks nothing that this model answers"):
        measure_challenge(Fixed({}, None, (reply,)), items)


def test_challenge_takes_another_graded_relation_where_there_is_no_similarity(items):
    other = Relation.parse("relatedness:1..5")
    answering = Fixed({"relatedness": BY_HAND["similarity"]}, COSINES, (NLI, other))
    answering._answers["entailment"] = BY_HAND["entailment"]
    found = measure_challenge(answering, items)
    assert found.overall["similarity"].value == 50
    assert "similarity: relation relatedness (1..5), from the head" in found.protocol


def test_challenge_by_the_cosine_measures_nothing_else(items):
    found = measure_challenge(Fixed(BY_HAND, COSINES), items, source="cosine")
    assert list(found.overall.shares) == ["cosine"]
    with pytest.raises(UsageError, match="score source 'guess' is not one of"):
        measure_challenge(Fixed(BY_HAND, COSINES), items, source="guess")


def test_challenge_of_a_raw_encoder_is_its_cosine(items, tiny_encoder):
    model = likewise.load(tiny_encoder, device="cpu")
    found = measure_challenge(model, items, keep_predictions=True)
    assert list(found.overall.shares) == ["similarity", "cosine"]
    for phenomenon in (*found.phenomena, found.overall):
        assert phenomenon["similarity"].value == phenomenon["cosine"].value
    for item in items:
        scores = model.score([(item.text, item.same), (item.text, item.other)])["similarity"]
        assert found.predictions[item.id]["cosine"] == pytest.approx(list(scores))


@pytest.fixture
def folder(tiny_encoder, tiny_pairs, tmp_path):
    """A model that answers similarity and entailment, barely trained."""
    likewise.train(
        tiny_pairs,
        tmp_path / "model",
        encoder=tiny_encoder,
        relations=["similarity:0..5", "entailment:contradiction|neutral|entailment"],
        overrides={"stage.0.max_steps": 2},
        device="cpu",
        quiet=True,
    )
    return tmp_path / "model"


def test_challenge_measures_what_score_answers(items, folder):
    model = likewise.load(folder, device="cpu")
    same = model.score([(item.text, item.same) for item in items])
    other = model.score([(item.text, item.other) for item in items])
    found = measure_challenge(model, items).overall
    higher = [a > b for a, b in zip(same["similarity"], other["similarity"], strict=True)]
    assert found["similarity"].value == pytest.approx(100 * np.mean(higher))
    right = [said == "entailment" for said in same["entailment"]]
    right += [said == item.other_label for said, item in zip(other["entailment"], items, strict=True)]
    assert found["entailment"].value == pytest.approx(100 * np.mean(right))


def test_challenge_is_a_suite_of_evaluate(items, folder, tiny_encoder, monkeypatch, here, tmp_path):
    monkeypatch.setattr("likewise.evaluation.challenge.read_challenge", lambda: items)
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    found = likewise.evaluate(folder, "challenge", device="cpu", quiet=True)
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert (line["suite"], line["result"]["overall"]["items"]) == ("challenge", 5)
    code, said = here("evaluate", folder, tiny_encoder, "--suite", "challenge", "--output", "out.json")
    assert code == 0, said
    assert found.to_text().splitlines()[0].split() == [
        *("challenge", "items", "similarity", "95", "%", "interval", "cosine", "95", "%", "interval")
    ]
    for text in (*found.to_text().splitlines()[:4], "a tie counts as half", "majority", "not audited"):
        assert text in said
    first, raw = json.loads((tmp_path / "out.json").read_text())
    assert first["overall"] == json.loads(json.dumps(found.overall.to_dict()))
    assert set(first["predictions"]) == {item.id for item in items}
    assert raw["phenomena"][0]["name"] == "negation"
    assert first["fingerprint"] == raw["fingerprint"] == found.fingerprint
    code, said = here("evaluate", folder, "--suite", "challenge", "--json", "--device", "cpu")
    assert code == 0, said
    assert "predictions" not in json.loads(said[said.index("{") : said.rindex("}") + 1])
    assert "| negation | 3 |" in found.to_markdown()


def test_challenge_may_be_the_suite_of_a_recipe(items, tiny_encoder, tiny_pairs, monkeypatch, here, tmp_path):
    monkeypatch.setattr("likewise.evaluation.challenge.read_challenge", lambda: items)
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    (tmp_path / "own.toml").write_text(
        f"""
name = "own"
encoder = "{tiny_encoder}"
[relation.similarity]
lo = 0
hi = 5
[[stage]]
data = [{{ source = "{tiny_pairs}" }}]
objective = [{{ relation = "similarity", head = "scalar", loss = "mse", pairing = ["prod", "absdiff"] }}]
max_steps = 1
[evaluation]
suite = "challenge"
"""
    )
    code, said = here("train", "own.toml", "--output", "own", "--device", "cpu")
    assert code == 0, said
    assert said.count("negation") == 1
    assert "a tie counts as half" in said


def test_challenge_is_no_list_of_tasks(tmp_path, here):
    from likewise.evaluation import get_suite

    with pytest.raises(UsageError, match="'challenge' is not a list of tasks"):
        get_suite("challenge")
    code, said = here("evaluate", "x", "--suite", "challenge", "--report", "r")
    assert code != 0
    assert "--report works only with --suite crosslingual" in said
    assert "challenge" in CliRunner().invoke(app, ["evaluate", "--help"]).output


def test_challenge_refuses_a_model_of_single_texts(items, tiny_encoder):
    with pytest.raises(UsageError, match="but this model answers single texts"):
        measure_challenge(likewise.load_classifier(tiny_encoder, device="cpu"), items)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("id,text\n1,x\n", "there is no column phenomenon, same, other, other_label"),
        (HEADER, "there are no items below the header"),
        (HEADER + ROWS + ROWS, "items.csv:7: another item has the id 'n-1' too"),
        (HEADER + ROWS.replace("contradiction", "no"), "items.csv:2: other_label is 'no', but one of contr"),
        (HEADER + ROWS.replace("a man sings", ""), "items.csv:2: same is empty"),
    ],
)
def test_challenge_file_problems_name_their_place(tmp_path, text, found):
    (tmp_path / "items.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=found):
        read_challenge(tmp_path / "items.csv")


@pytest.mark.skipif(not BUNDLED.is_file(), reason="the challenge set is not in this checkout")
def test_challenge_set_that_comes_with_the_package_is_whole():
    items = read_challenge()
    assert 2 * len(items) >= 400
    names = [item.phenomenon for item in items]
    assert {names.count(name) for name in names} == {30}
    assert len({text for item in items for text in (item.text, item.same, item.other)}) == 3 * len(items)


def test_challenge_set_is_the_one_that_was_frozen_before_training():
    """Results of different models compare only on the same items; a new set gets a new name."""
    digest = hashlib.sha256(BUNDLED.read_bytes()).hexdigest()
    assert digest == "b084185e1a27e19ee78e1ee3b88d871872090719e397b5af67ba887cef8e4c2b"
