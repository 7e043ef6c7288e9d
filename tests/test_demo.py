"""`likewise demo` from start to end, over tiny models: it shows what the rules pick that it states."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.cli import demo
from likewise.cli.demo_shipped import PAIR, Shipped, limits_of
from likewise.evaluation.challenge import measure_challenge, read_challenge
from likewise.naming import DEFAULT_NAME

ROWS = Path(demo.__file__).parents[1] / "samples" / "reviews" / "test.csv"


@pytest.fixture(scope="module")
def stand_ins(tiny_encoder, tiny_pairs, tmp_path_factory) -> Path:
    """A folder of models: a tiny raw encoder, and on it a tiny model with the shipped model's relations."""
    models = tmp_path_factory.mktemp("models")
    shutil.copytree(tiny_encoder, models / "raw")
    header, *lines = tiny_pairs.read_text(encoding="utf8").splitlines()
    labels = ("not_paraphrase", "paraphrase")
    table = models / "pairs.csv"
    rows = [f"{line},{labels[row % 2]}" for row, line in enumerate(lines)]
    table.write_text("\n".join([f"{header},paraphrase", *rows]) + "\n", encoding="utf8")
    likewise.train(
        table,
        models / DEFAULT_NAME,
        relations=["similarity:0..5", "entailment:classes", "paraphrase:classes"],
        encoder=tiny_encoder,
        overrides={"stage.0.max_steps": 4, "stage.0.keep_start": False},
        device="cpu",
        quiet=True,
    )
    return models


@pytest.fixture
def run(here, stand_ins, monkeypatch):
    """The demo in a terminal of 80 columns, with one epoch of training and every ninth challenge item."""
    from likewise.evaluation import challenge

    monkeypatch.setenv("LIKEWISE_MODELS", str(stand_ins))
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(demo.out, "width", 80)
    items = read_challenge()[::9]
    monkeypatch.setattr(challenge, "read_challenge", lambda path=None: items)

    def run(*words: str) -> str:
        code, said = here("demo", "--device", "cpu", *words)
        assert code == 0, said
        return said

    return run


@pytest.fixture
def shown(run):
    """What the demo says."""
    return run()


def test_demo_first_shows_what_the_shipped_model_answers(shown, stand_ins):
    raw, model = (likewise.load(stand_ins / name, device="cpu") for name in ("raw", DEFAULT_NAME))
    answers = model.score([PAIR])
    said = shown[shown.index("1. Ask") : shown.index("3. Train")]
    assert "\n   ".join(PAIR) in said
    assert f"raw cosine  {raw.embedding().cosines([PAIR])[0]:.2f} on -1..1" in said
    assert f"similarity  {answers['similarity'][0]:.1f} on 0..5" in said
    for name in ("entailment", "paraphrase"):
        [label], chances = answers[name], answers.chances(0)[name]
        assert f"{name}  {label} ({chances[label]:.0%})" in said
    before, after = measure_challenge(raw, source="cosine"), measure_challenge(model)
    for old, new in zip(before.phenomena, after.phenomena, strict=True):
        values = rf"{old['cosine'].value:.1f}  \(\d+ to \d+\)\s+{new['similarity'].value:.1f}  \(\d+ to \d+\)"
        assert re.search(rf"^{old.name}\s+{values}", said, re.MULTILINE), said
    assert limits_of(after) in " ".join(said.split())


def test_demo_limits_follow_from_the_intervals(stand_ins):
    result = measure_challenge(likewise.load(stand_ins / DEFAULT_NAME, device="cpu"))
    said = limits_of(result)
    for found in result.phenomena:
        interval = found["similarity"].interval
        where = re.search(rf"([a-z ]+) chance on [^.]*\b{found.name}\b", said)
        if interval.low > 50:
            assert where is None, found
        else:
            assert ("worse than" in where[1]) == (interval.high < 50), found
    assert f"{result.overall['entailment'].value:.1f} % for entailment (always answering" in said


def test_demo_as_json_has_the_answers_and_the_gains(run, stand_ins, tmp_path):
    said = run("--json")
    found = json.loads(said[said.index("{\n") : said.rindex("\n}") + 2])
    answers = likewise.load(stand_ins / DEFAULT_NAME, device="cpu").score([PAIR])
    shipped = found["shipped"]["pair"]["relations"]
    assert shipped["similarity"]["value"] == pytest.approx(answers["similarity"][0], rel=1e-5)
    for name in ("entailment", "paraphrase"):
        assert shipped[name]["value"] == answers[name][0]
        assert shipped[name]["probabilities"] == pytest.approx(answers.chances(0)[name], rel=1e-5)
    assert set(found["shipped"]["challenge"]) == {"raw", DEFAULT_NAME}
    trained = found["trained"]
    assert (trained["folder"], trained["pairs"]) == ("demo-model", 144)
    for told in trained["relations"].values():
        assert told["gain"] == pytest.approx(told["trained"] - told["raw"])
        assert told["interval"]["low"] <= told["gain"] <= told["interval"]["high"]


def test_demo_shows_pairs_and_a_limit_that_rules_pick(shown, tmp_path, tiny_encoder):
    with ROWS.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    pairs = [(row["text_a"], row["text_b"]) for row in rows]
    similarity, opinion = (np.array([float(row[name]) for row in rows]) for name in ("similarity", "opinion"))
    cosine = likewise.load(tiny_encoder, device="cpu").score(pairs, source="cosine")["similarity"]
    answer = likewise.load(tmp_path / "demo-model", device="cpu").score(pairs)["opinion"]
    off = np.abs(answer - opinion)
    sorts = ((1, 0), (5, 4), (0, 4))
    chosen = [[row for row in range(144) if (similarity[row], opinion[row]) == sort] for sort in sorts]
    picked = [sorted(rows, key=lambda row: off[row])[len(rows) // 2] for rows in chosen] + [off.argmax()]
    told = " ".join(shown.split())
    places = [told.index(f"{pairs[row][0]} {pairs[row][1]} raw cosine {cosine[row]:.2f}") for row in picked]
    assert places[:3] == sorted(places[:3])
    assert f"{(off >= 2).sum()} of the 144 opinions are off by 2 points or more" in told
    worst = (
        f"opinion trained model {answer[picked[3]]:.1f}, rating in the sample {opinion[picked[3]]:g} (0..4)"
    )
    assert worst in told[told.index("6. Its limit") :]


def test_demo_fits_a_terminal_and_gives_gains_with_intervals(shown):
    # What was written to the error stream stands behind.
    said = re.search(r"1\. Ask.*--output my-model\n", shown, re.DOTALL)[0]
    assert [line for line in said.splitlines() if len(line) > 80] == []
    number, bounds = r"[+-]?\d+\.\d", r"\([+-]?\d+ to [+-]?\d+\)"
    for relation in ("similarity", "opinion"):
        assert re.search(rf"^{relation}(?:\s+{number}  {bounds}){{3}}\s*$", said, re.MULTILINE), said
    for command in ("likewise score", "likewise data check", "likewise train"):
        assert f"   {command} " in said


@pytest.mark.slow
def test_demo_shipped_model_tells_the_pharmacy_pair_apart(minilm):
    found = Shipped.of(*(likewise.load(name, device="cpu") for name in ("raw", "default")))
    assert found.answers["similarity"][0] / 5 < (found.cosine + 1) / 2
    assert found.answers["entailment"] == ["contradiction"]
    assert found.answers["paraphrase"] == ["not_paraphrase"]
    whole = found.after.overall["similarity"].value
    assert whole > found.before.overall["cosine"].value
