"""The folders that verbs run in: inputs, and what earlier verbs left, built once and copied for every run.

inputs/    encoder, tables, recipes, experiment, suite: what no verb may touch
out/       where verbs write
cache/ home/ tmp/ looks/   LIKEWISE_CACHE, HOME, TMPDIR and the log of test runs
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import tomli_w
import transformers

from tests.tiny import build_encoder, build_pairs

FOLDERS = ("inputs", "out", "cache", "home", "tmp", "looks")
_ENCODER = "inputs/encoder"
_PAIRS = {"source": "inputs/pairs.csv"}
_FAST: dict[str, Any] = {
    "batch_size": 16,
    "max_steps": 4,
    "save_every": 1,
    "evaluate_every": 1,
    "learning_rate": 1e-3,
}
_SIMILARITY = {"similarity": {"lo": 0, "hi": 5}}


def build_inputs(world: Path) -> None:
    """A world before any verb has run."""
    for name in FOLDERS:
        (world / name).mkdir(parents=True)
    inputs = world / "inputs"
    transformers.utils.logging.disable_progress_bar()
    made = build_encoder(world / "tiny")
    shutil.copytree(made, inputs / "encoder")
    shutil.rmtree(world / "tiny")
    build_pairs(inputs / "pairs.csv")
    with (inputs / "pairs.csv").open(encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    # More than one buffer full, so that an answered file takes several writes.
    many = [(row["text_a"], other["text_b"]) for other in rows[:6] for row in rows]
    _table(inputs / "many.csv", ["text_a", "text_b"], many)
    _table(
        inputs / "test.csv",
        ["text_a", "text_b", "similarity"],
        [(row["text_b"], row["text_a"], row["similarity"]) for row in rows[:8]],
    )
    _table(inputs / "texts.csv", ["text"], [(row["text_a"],) for row in rows[:6]])
    texts = [row["text_a"] for row in rows] + [row["text_b"] for row in rows]
    for name, labels in (("mood", ("fast", "slow")), ("place", ("park", "house"))):
        rated = [(text, labels[number % 2]) for number, text in enumerate(texts)]
        _table(inputs / f"{name}s.csv", ["text", name], rated)
    lines = [f"{row['text_a']}\t{row['text_b']}" for row in rows]
    (inputs / "en-de.tsv").write_text("\n".join(["en\tde", *lines]) + "\n", encoding="utf8")
    (inputs / "suite.toml").write_text(
        'name = "mine"\n[[task]]\nname = "pairs"\nfile = "test.csv"\nrelation = "similarity:0..5"\n',
        encoding="utf8",
    )
    for name, document in _recipes().items():
        (inputs / f"{name}.toml").write_text(tomli_w.dumps(document), encoding="utf8")


def _recipes() -> dict[str, dict[str, Any]]:
    cosine = {"data": [_PAIRS], "objective": [{"relation": "similarity", "loss": "pearson"}], **_FAST}
    scalar = {"relation": "similarity", "head": "scalar", "loss": "mse", "pairing": ["prod", "absdiff"]}
    small = {"name": "small", "encoder": _ENCODER, "relation": _SIMILARITY}
    tasks = {"mood": {"kind": "classes", "labels": ["fast", "slow"]}}
    moods = {"source": "inputs/moods.csv", "columns": {"mood": "mood"}}
    labels = {"kind": "labels", "data": [moods], "matcher": "dot", **_FAST}
    parallel = {
        "kind": "parallel",
        "parallel": [{"source": "inputs/en-de.tsv", "languages": ["en", "de"]}],
        "dev": [{"source": "inputs/test.csv"}],
        "epochs": 3,
        "batch_size": 16,
    }
    refine = {"kind": "refine", "data": [_PAIRS], "epochs": 2, "batch_size": 16}
    return {
        "one": {**small, "stage": [cosine]},
        "two": {
            **small,
            "stage": [{**cosine, "max_steps": 3, "objective": [scalar]}, {**cosine, "max_steps": 3}],
        },
        "other": {**small, "seed": 7, "stage": [cosine]},
        "labels": {"name": "labels", "encoder": _ENCODER, "relation": tasks, "stage": [labels]},
        "frozen": {
            "name": "frozen",
            "encoder": _ENCODER,
            "relation": _SIMILARITY,
            "stage": [parallel, refine],
        },
        "experiment": _experiment("inputs/quick.toml", 1, 2),
        "experiment-frozen": _experiment("inputs/frozen.toml", 1),
        "quick": {**small, "stage": [{**cosine, "max_steps": 2}]},
    }


def _experiment(recipe: str, *seeds: int) -> dict[str, Any]:
    return {
        "name": "small",
        "recipe": recipe,
        "suite": "inputs/suite.toml",
        "seeds": list(seeds),
        "setting": [{"name": "only"}],
    }


def _table(file: Path, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    with file.open("w", newline="", encoding="utf8") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        writer.writerows(rows)
