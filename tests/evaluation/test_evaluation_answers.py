"""`evaluate` measures what `score` answers; what cannot be measured does not stop the rest."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from scipy.stats import spearmanr

import likewise

WORDS = "the old man plays guitar a woman sings in park one cat sleeps child runs street".split()


@pytest.fixture
def rated(tmp_path, monkeypatch):
    """Forty rated pairs, and a suite that asks for a number, for a label, and for the error on the scale."""
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    rng = np.random.default_rng(3)
    labels = ("contradiction", "neutral", "entailment")
    rows = [
        (*(" ".join(rng.choice(WORDS, 4)) for _ in "ab"), round(float(rng.uniform(0, 5)), 1), labels[n % 3])
        for n in range(40)
    ]
    with (tmp_path / "test.csv").open("w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows([("text_a", "text_b", "similarity", "entailment"), *rows])
    (tmp_path / "suite.toml").write_text(
        """
[[task]]
name = "number"
file = "test.csv"
relation = "similarity:0..5"
[[task]]
name = "error"
file = "test.csv"
relation = "similarity:0..5"
metric = "mae"
[[task]]
name = "label"
file = "test.csv"
relation = "entailment:contradiction|neutral|entailment"
""",
        encoding="utf8",
    )
    return rows


@pytest.fixture
def folder(rated, tmp_path, tiny_encoder):
    """A model with a head for each of the two relations, barely trained."""
    likewise.train(
        tmp_path / "test.csv",
        tmp_path / "model",
        encoder=tiny_encoder,
        relations=["similarity:0..5", "entailment:contradiction|neutral|entailment"],
        overrides={"stage.0.max_steps": 2},
        device="cpu",
    )
    return tmp_path / "model"


def test_evaluate_measures_what_score_answers(rated, folder, tmp_path):
    model = likewise.load(folder, device="cpu")
    scores = model.score([row[:2] for row in rated])
    result = likewise.evaluate(model, tmp_path / "suite.toml")
    assert result.protocol.source == "answer"
    assert result.left_out == ()
    gold = np.array([row[2] for row in rated])
    assert result["number"].value == pytest.approx(100 * spearmanr(scores["similarity"], gold).statistic)
    assert result["error"].value == pytest.approx(np.abs(scores["similarity"] - gold).mean())
    right = [said == row[3] for said, row in zip(scores["entailment"], rated, strict=True)]
    assert result["label"].value == pytest.approx(100 * np.mean(right))


def test_evaluate_of_a_raw_encoder_leaves_out_labels_and_errors_on_a_scale(rated, tmp_path, tiny_encoder):
    result = likewise.evaluate(tiny_encoder, tmp_path / "suite.toml")
    assert [task.name for task in result.tasks] == ["number"]
    assert result.protocol.source == "cosine"
    assert set(result.left_out) == {"error", "label"}
    assert any("which a cosine does not have" in note for note in result.notes)


def test_evaluate_goes_on_past_a_task_and_a_model_that_cannot_be_measured(rated, folder, tmp_path, here):
    lines = (tmp_path / "test.csv").read_text(encoding="utf8").splitlines()
    same = ["text_a,text_b,similarity", *(f"{line.rsplit(',', 2)[0]},3" for line in lines[1:])]
    (tmp_path / "same.csv").write_text("\n".join(same) + "\n", encoding="utf8")
    extra = '[[task]]\nname = "same"\nfile = "same.csv"\nrelation = "similarity:0..5"\n'
    suite = tmp_path / "suite.toml"
    suite.write_text(suite.read_text(encoding="utf8") + extra, encoding="utf8")
    code, said = here("evaluate", "no-such-model-here", folder, "--suite", suite, "--output", "r.json")
    assert code == 1
    assert "no-such-model-here was not measured" in said
    assert "not measured: same" in said
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf8"))
    assert [task["name"] for task in document["tasks"]] == ["number", "error", "label"]
