"""Answers as a pandas frame: the columns of a scored file, and the index of what was scored."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import likewise
from likewise.answering import Answers, Classes, Scores
from likewise.errors import MissingExtraError, UsageError
from likewise.records import Relation

pandas = pytest.importorskip("pandas")
PAIRS = [("a man plays", "a dog runs"), ("man", "dog")]


@pytest.fixture
def scores():
    """Scores of two pairs: a number with an interval, and labels."""
    number = Answers(
        Relation("similarity", lo=0.0, hi=5.0),
        "head",
        np.array([1.0, 4.0]),
        interval=np.array([[0, 2], [3, 5]]),
    )
    chances = np.array([[0.25, 0.75], [0.5, 0.5]])
    label = Answers(Relation.classes("verdict", ["no", "yes"]), "head", ["yes", "no"], chances)
    return Scores([number, label])


def test_frame_of_scores_has_columns_for_labels_and_intervals(scores):
    frame = scores.to_frame()
    assert list(frame) == [
        "similarity", "low(similarity)", "high(similarity)", "verdict", "p(verdict=no)", "p(verdict=yes)"
    ]  # fmt: skip
    assert frame["similarity"].tolist() == [1.0, 4.0]
    assert frame["high(similarity)"].tolist() == [2.0, 5.0]
    assert frame["verdict"].tolist() == ["yes", "no"]
    assert frame["p(verdict=yes)"].tolist() == [0.75, 0.5]


def test_frame_of_scores_takes_the_pairs_that_were_scored(scores):
    frame = scores.to_frame(PAIRS)
    assert list(frame)[:3] == ["text_a", "text_b", "similarity"]
    assert frame["text_b"].tolist() == ["a dog runs", "dog"]
    own = pandas.DataFrame({"similarity": [5, 0], "note": ["x", "y"]}, index=["r7", "r3"])
    frame = scores.to_frame(pairs=own)
    assert list(frame)[:3] == ["similarity", "note", "predicted_similarity"]
    assert frame.loc["r3", "predicted_similarity"] == 4.0
    assert list(own) == ["similarity", "note"]  # a copy
    assert scores.to_frame(iter(["one", "other"]))["text"].tolist() == ["one", "other"]


@pytest.mark.parametrize("wrong", [PAIRS[:1], "one text", [("a", "b", "c")] * 2, []])
def test_frame_of_other_rows_is_refused(scores, wrong):
    with pytest.raises(UsageError, match="asked about"):
        scores.to_frame(wrong)


def test_frame_keeps_the_index_of_what_was_scored_and_agrees_with_the_file(tiny_encoder, here, tmp_path):
    rows = pandas.DataFrame(PAIRS, columns=["text_a", "text_b"], index=[7, 3])
    model = likewise.load(tiny_encoder, device="cpu")
    frame = model.score(rows).to_frame(pairs=rows)
    assert frame.index.tolist() == [7, 3]
    assert model.score(rows["text_a"], rows["text_b"]).to_frame().index.tolist() == [7, 3]
    assert model.score(PAIRS).to_frame().index.tolist() == [0, 1]
    rows.to_csv(tmp_path / "pairs.csv", index=False)
    code, said = here("score", "pairs.csv", "--model", tiny_encoder, "--output", "scored.csv")
    assert code == 0, said
    written = pandas.read_csv(tmp_path / "scored.csv")
    pandas.testing.assert_frame_equal(written, frame.reset_index(drop=True), atol=1e-6)


def test_frame_of_classes_has_the_label_and_its_probabilities(tiny_encoder):
    classes = Classes(("good", "bad"), np.array([[0.9, 0.1], [0.2, 0.8]]))
    frame = classes.to_frame(["one", "other"])
    assert list(frame) == ["text", "label", "p(good)", "p(bad)"]
    assert frame["label"].tolist() == ["good", "bad"]
    texts = pandas.Series(["a man plays", "a dog runs"], index=["x", "y"])
    model = likewise.load_classifier(tiny_encoder, device="cpu")
    found = model.classify(texts, labels=["man", "dog"]).to_frame()
    assert found.index.tolist() == ["x", "y"]
    np.testing.assert_allclose(found[["p(man)", "p(dog)"]].sum(axis=1), 1.0)


def test_frame_without_pandas_says_what_to_install(scores, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'likewise\[tables\]'"):
        scores.to_frame()
