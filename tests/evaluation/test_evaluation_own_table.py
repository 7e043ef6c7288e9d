"""Evaluation on rows of one's own: a file or a frame instead of a suite, and the difference of two models."""

from __future__ import annotations

import json
import random

import pandas as pd
import pytest

import likewise
from likewise.errors import DataError, UsageError

WORDS = "the old dog runs fast child plays guitar in park two men cook red house".split()


@pytest.fixture
def rated(tmp_path):
    """Pairs that share more or fewer words, rated by how many, in columns with names of one's own."""
    rng = random.Random(3)
    rows = []
    for number in range(60):
        shared = number % 5
        words = rng.sample(WORDS, 10 - shared)
        a = words[:shared] + words[shared : shared + 5 - shared]
        b = words[:shared] + words[5 : 10 - shared]
        kind = "near" if shared > 2 else "far"
        rows.append({"Left side": " ".join(a), "Right": " ".join(b), "same?": shared, "label": kind})
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return frame


def test_evaluate_takes_a_frame_and_a_file_alike(rated, tiny_encoder, tmp_path):
    model = likewise.load(tiny_encoder, device="cpu")
    columns = {"text_a": "Left side", "text_b": "Right"}
    frame = likewise.evaluate(model, data=rated, relations="same?:0..4", log=False, **columns)
    file = likewise.evaluate(
        model, data=tmp_path / "mine.csv", relations=["same?:0..4"], log=False, **columns
    )
    [one], [other] = frame.tasks, file.tasks
    assert (one.name, one.metric, one.n) == ("same?", "spearman", 60)
    assert one.value == other.value
    assert one.fingerprint == other.fingerprint
    guessed = likewise.evaluate(model, data=rated, log=False, **columns)
    assert "same?" in [task.name for task in guessed.tasks]
    assert guessed.left_out == ("label",)


def test_evaluate_says_what_is_missing_or_too_much(rated, tiny_encoder):
    model = likewise.load(tiny_encoder, device="cpu")
    with pytest.raises(UsageError, match="Pass rows of your own as data="):
        likewise.evaluate(model, rated)
    with pytest.raises(UsageError, match="suite and data are both given"):
        likewise.evaluate(model, "sts7", data=rated)
    with pytest.raises(UsageError, match="Pass the rows as data"):
        likewise.evaluate(model, "sts7", relations="similarity:0..5")
    with pytest.raises(DataError, match="no column has a known name for texts"):
        likewise.evaluate(model, data=rated)


def test_evaluate_tells_the_difference_of_two_models(here, rated, tiny_encoder, tmp_path):
    columns = ("--text-a", "Left side", "--text-b", "Right", "--device", "cpu")
    relation = ("--relation", "same?:0..4")
    start = ("--encoder", tiny_encoder, "--set", "stage.0.max_steps=2")
    code, said = here("train", "mine.csv", "--output", "m", *start, *relation, *columns)
    assert code == 0, said
    command = ("evaluate", tiny_encoder, "m", "--data", "mine.csv", *relation)
    code, said = here(*command, *columns)
    assert code == 0, said
    assert f"m against {tiny_encoder}" in said
    assert "same?: spearman ×100 " in said
    code, said = here(*command, *columns, "--output", "found.json")
    first, second = json.loads((tmp_path / "found.json").read_text())
    assert "differences" not in first
    assert second["differences"]["from"] == str(tiny_encoder)
    task = second["differences"]["tasks"]["same?"]
    assert task["difference"] == pytest.approx(
        second["tasks"][0]["value"] - first["tasks"][0]["value"], abs=1
    )
    before = (tmp_path / "mine.csv").read_bytes()
    code, said = here(*command, *columns, "--output", "mine.csv", "--overwrite")
    assert code == 2
    assert (tmp_path / "mine.csv").read_bytes() == before
    for wrong in (("--suite", "sts7"), ()):
        data = ("--data", "mine.csv") if wrong else ()
        code, said = here("evaluate", tiny_encoder, *data, *wrong, *relation)
        assert code == 2, said


def test_evaluate_refuses_at_once_what_it_cannot_do(here, rated, tiny_encoder, tmp_path):
    (tmp_path / "texts.csv").write_text("text_a,text_b\na,b\nc,d\n", encoding="utf8")
    suite = '[[task]]\nname = "s"\nfile = "mine.csv"\nrelation = "same?:0..4"\n'
    (tmp_path / "s.toml").write_text(suite + 'text_a = "Left side"\ntext_b = "Right"\n', encoding="utf8")
    evaluate = ("evaluate", tiny_encoder, "--device", "cpu")
    for arguments, told in (
        (("--data", "-", "--relation", "same?:0..4"), "can be read only once. Save it to a file"),
        (("--data", "texts.csv"), "no column holds ratings or labels"),
        (("--suite", "s.toml", "--output", "s.toml", "--overwrite"), "is an input"),
        (("--suite", "s.toml", "--report", "out"), "--report works only with --suite crosslingual"),
    ):
        code, said = here(*evaluate, *arguments)
        assert code in (1, 2), said
        assert told in " ".join(said.split())
    assert not (tmp_path / "runs").exists()
