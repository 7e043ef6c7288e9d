"""`likewise demo` from start to end, over the tiny encoder: it shows what the rules pick that it states."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.cli import demo

ROWS = Path(demo.__file__).parents[1] / "samples" / "reviews" / "test.csv"


@pytest.fixture
def shown(here, tiny_encoder, tmp_path, monkeypatch):
    """What the demo says in a terminal of 80 columns, where the raw encoder is the tiny one."""
    shutil.copytree(tiny_encoder, tmp_path / "models" / "raw")
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(demo.out, "width", 80)
    code, said = here("demo", "--device", "cpu")
    assert code == 0, said
    return said


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
    assert worst in told[told.index("4. Its limit") :]


def test_demo_fits_a_terminal_and_gives_gains_with_intervals(shown):
    # What was written to the error stream stands behind.
    said = re.search(r"2\. Evaluate.*--output my-model\n", shown, re.DOTALL)[0]
    assert max(map(len, said.splitlines())) <= 80
    number, bounds = r"[+-]?\d+\.\d", r"\([+-]?\d+ to [+-]?\d+\)"
    for relation in ("similarity", "opinion"):
        assert re.search(rf"^{relation}(?:\s+{number}  {bounds}){{3}}\s*$", said, re.MULTILINE), said
    for command in ("likewise score", "likewise data check", "likewise train"):
        assert f"   {command} " in said
