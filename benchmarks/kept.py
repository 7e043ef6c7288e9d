"""What is kept and what answers after training on few pairs, beside the untouched encoder.

    python benchmarks/kept.py --data-dir corpora --output benchmarks/results/kept.json
    python benchmarks/kept.py --data-dir corpora --draws 101 102 --set stage.0.epochs=8

Draws 300 rated pairs of STS-B train, trains a recipe on them, and measures 400 other pairs that share no text
with them (Spearman × 100): the untouched encoder, and what answers, the head and the cosine after training.
Once as shipped, and once with step 0 left out of what may be kept. Settings were chosen on draws from 101 on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise.data import load_records, write_json_aside
from likewise.evaluation import compute
from likewise.records import Record, Relation
from likewise.versions import commit, versions

ROWS, HELD_OUT = 300, 400
SIMILARITY = Relation("similarity", lo=0, hi=5)


def draw(number: int, data_dir: str | None) -> tuple[list[Record], list[Record]]:
    """Pairs to train on, and others that share no text with them."""
    records = load_records("stsb/train", relations=[SIMILARITY], data_dir=data_dir)
    random.Random(number).shuffle(records)
    train = records[:ROWS]
    texts = {text for record in train for text in record.texts}
    others = [record for record in records[ROWS:] if not texts & set(record.texts)]
    return train, others[:HELD_OUT]


def spearman(records: Sequence[Record], said: Any) -> float | None:
    """Spearman × 100; None of a head that says the same of all pairs, as it does before training."""
    if np.ptp(said) == 0:
        return None
    return round(100 * compute("spearman", [record.values["similarity"] for record in records], said), 2)


def trained(
    recipe: str,
    encoder: str,
    train: Sequence[Record],
    held: Sequence[Record],
    changes: dict[str, Any],
    device: str | None,
) -> dict[str, Any]:
    """What a model says of the held-out pairs, by all that it can answer with."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "pairs.jsonl"
        rows = [{"text_a": r.a, "text_b": r.b, "similarity": r.values["similarity"]} for r in train]
        table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
        told: list[str] = []
        model = likewise.train(
            recipe,
            data=str(table),
            relations=["similarity:0..5"],
            encoder=encoder,
            overrides=changes,
            device=device,
            tell=told.append,
        )
    pairs = [record.texts for record in held]
    answers = np.asarray(model.score(pairs)["similarity"])
    gold = [record.values["similarity"] for record in held]
    found = {"answer": spearman(held, answers), "source": model.source("similarity")}
    found |= {
        source: spearman(held, model.score(pairs, source=source)["similarity"])
        for source in ("cosine", "head")
        if source in model.sources("similarity")
    }
    found |= {"mean_answer": round(float(answers.mean()), 3), "mean_rating": round(float(np.mean(gold)), 3)}
    return {**found, "mae": round(float(np.abs(answers - gold).mean()), 3), "said": told[-1]}


def measure(number: int, options: argparse.Namespace) -> dict[str, Any]:
    """One draw."""
    train, held = draw(number, options.data_dir)
    raw = likewise.load(options.encoder, device=options.device)
    before = raw.score([record.texts for record in held])["similarity"]
    changes = {path: value_of(text) for path, _, text in (one.partition("=") for one in options.set)}
    found = {"draw": number, "rows": len(train), "held_out": len(held), "raw": spearman(held, before)}
    forms = {"as shipped": {}, "step 0 left out": {"stage.0.keep_start": False}}
    for form, more in forms.items():
        if form in options.forms:
            found[form] = trained(
                options.recipe, options.encoder, train, held, changes | more, options.device
            )
    return found


def value_of(text: str) -> Any:
    """A value as a recipe would have it; text that is no TOML is a string."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def main() -> None:
    """Measure every draw and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--recipe", default="regression-sts")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--forms", nargs="+", default=["as shipped", "step 0 left out"])
    parser.add_argument("--data-dir")
    parser.add_argument("--device")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    draws = []
    for number in options.draws:
        draws.append(measure(number, options))
        print(json.dumps(draws[-1]), flush=True)
    if options.output:
        made = {"commit": commit(), "versions": versions()}
        settings = {"recipe": options.recipe, "encoder": options.encoder, "set": options.set}
        write_json_aside(options.output, {"made_by": made, **settings, "draws": draws})


if __name__ == "__main__":
    sys.exit(main())
