"""The model that answers when none is named: likewise-mini, over the real weights of its base."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import likewise

PAIR = ("The pharmacy is open on Sundays.", "The pharmacy is never open on Sundays.")
LABELS = {
    "entailment": ("contradiction", "neutral", "entailment"),
    "paraphrase": ("not_paraphrase", "paraphrase"),
}


@pytest.fixture(autouse=True)
def _weights(minilm):
    """The weights of its base are here, or the test is skipped with the reason."""


def test_default_model_answers_three_relations_in_the_terminal(here):
    code, said = here("score", *PAIR, "--device", "cpu")
    assert code == 0, said
    first, *others = [line.split() for line in said.splitlines()[:3]]
    assert (first[0], first[2:4]) == ("similarity", ["on", "0..5,"])
    assert 0 <= float(first[1]) <= 5
    assert {line[0]: line[1] in LABELS[line[0]] for line in others} == dict.fromkeys(LABELS, True)


def test_default_model_answers_the_same_everywhere(here, tmp_path):
    scores = likewise.score(*PAIR)
    expected = {name: scores[name][0] for name in scores}
    assert list(expected) == ["similarity", *LABELS]
    code, said = here("score", *PAIR, "--json", "--device", "cpu")
    assert code == 0, said
    told = json.loads(said[said.index("{") : said.rindex("}") + 1])["relations"]
    (tmp_path / "pairs.csv").write_text("text_a,text_b\n" + ",".join(PAIR) + "\n", encoding="utf8")
    code, said = here("score", "pairs.csv", "--output", "scored.csv", "--device", "cpu")
    assert code == 0, said
    with (tmp_path / "scored.csv").open(encoding="utf8", newline="") as file:
        [row] = csv.DictReader(file)
    for name, labels in LABELS.items():
        assert told[name]["value"] == row[name] == expected[name]
        shares = [float(row[f"p({name}={label})"]) for label in labels]
        assert shares == pytest.approx(list(told[name]["probabilities"].values()), abs=1e-4)
    for found in (told["similarity"]["value"], row["similarity"]):
        assert float(found) == pytest.approx(expected["similarity"], abs=1e-4)


def test_default_model_is_named_in_what_it_writes(here, tmp_path):
    (tmp_path / "pairs.csv").write_text("text_a,text_b\n" + ",".join(PAIR) + "\n", encoding="utf8")
    code, said = here("explain", "pairs.csv", "--output", "links.jsonl", "--phrases", "rules")
    assert code == 0, said
    [line] = (tmp_path / "links.jsonl").read_text(encoding="utf8").splitlines()
    assert "likewise-mini" in json.loads(line)["by"]


def test_default_model_explains_each_relation():
    model = likewise.load()
    for relation in ("similarity", *LABELS):
        found = model.explain(*PAIR, relation=relation, phrases="rules")
        assert found.to_dict()["score"] == pytest.approx(model.score(*PAIR)[relation][0])


def test_default_model_compares_texts_with_labels(here):
    code, said = here("classify", "My parcel arrived two weeks late.", "--labels", "delivery, sport")
    assert code == 0, said
    assert said.startswith("delivery")


def test_default_vectors_differ_from_those_of_raw():
    mine, raw = (likewise.load(name).encode(list(PAIR)) for name in ("default", "raw"))
    assert mine.shape == raw.shape == (2, 384)
    assert np.abs(mine - raw).max() > 1e-3


def test_default_model_tells_what_it_has_seen_before_a_training(here, tiny_pairs):
    code, said = here("train", tiny_pairs, "--encoder", "default", "--output", "mine", "--dry-run")
    assert code == 0, said
    assert "the encoder likewise-mini was already trained by Likewise, on " in said
    assert 'name = "likewise-mini"' in said
