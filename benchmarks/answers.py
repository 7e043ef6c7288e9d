"""Does `evaluate` measure what `score` answers? On SICK, two relations learnt from 540 pairs.

    python benchmarks/answers.py --data-dir corpora --output benchmarks/results/answers.json

Every number is computed twice: by `likewise evaluate` as it comes, and from the answers of `score` by a few
lines of numpy. Beside them stand the cosine, where it was asked for, and what costs nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

import likewise
from likewise.data import load_records, write_json_aside
from likewise.errors import EvaluationError
from likewise.records import Record, Relation
from likewise.versions import commit, versions

ROWS = 540
LABELS = ("contradiction", "neutral", "entailment")
RELATIONS = (
    Relation("relatedness", lo=1, hi=5),
    Relation("entailment", kind="classes", labels=LABELS, metric="accuracy"),
)
MEASURED = (("relatedness", "spearman"), ("relatedness", "mae"), ("entailment", "accuracy"))


def write_table(path: Path, records: Sequence[Record]) -> Path:
    """Records as JSON lines."""
    rows = [{"text_a": r.a, "text_b": r.b, **r.values} for r in records]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    return path


def write_suite(path: Path, table: Path) -> Path:
    """A suite of the three numbers."""
    scales = {"relatedness": "relatedness:1..5", "entailment": f"entailment:{'|'.join(LABELS)}"}
    tasks = [
        f'[[task]]\nname = "{relation} {metric}"\nfile = "{table.name}"\n'
        f'relation = "{scales[relation]}"\nmetric = "{metric}"\n'
        for relation, metric in MEASURED
    ]
    path.write_text("by_name = true\n" + "\n".join(tasks), encoding="utf8")
    return path


def by_hand(metric: str, gold: Sequence[Any], said: Sequence[Any]) -> float:
    """A metric in a few lines."""
    if metric == "accuracy":
        return 100 * float(np.mean([a == b for a, b in zip(gold, said, strict=True)]))
    if metric == "mae":
        return float(np.mean(np.abs(np.asarray(said, float) - np.asarray(gold, float))))
    return 100 * float(np.corrcoef(rankdata(gold), rankdata(said))[0, 1])


def evaluated(model: Any, suite: Path, **options: Any) -> dict[str, float | None]:
    """What `evaluate` says of each task; None where it leaves a task out."""
    try:
        tasks = {task.name: task.value for task in likewise.evaluate(model, str(suite), **options).tasks}
    except EvaluationError:
        tasks = {}
    return {f"{r} {m}": tasks.get(f"{r} {m}") for r, m in MEASURED}


def main() -> None:
    """Train, ask, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir")
    parser.add_argument("--device")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    train = load_records("sick/train", relations=list(RELATIONS), data_dir=options.data_dir)
    random.Random(options.seed).shuffle(train)
    test = load_records("sick/test", relations=list(RELATIONS), data_dir=options.data_dir)
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        table = write_table(Path(folder) / "train.jsonl", train[:ROWS])
        suite = write_suite(Path(folder) / "test.toml", write_table(Path(folder) / "test.jsonl", test))
        model = likewise.train(
            str(table),
            Path(folder) / "model",
            relations=["relatedness:1..5", f"entailment:{'|'.join(LABELS)}"],
            encoder=options.encoder,
            device=options.device,
            tell=told.append,
        )
        answers = model.score([record.texts for record in test])
        common = Counter(r.values["entailment"] for r in train[:ROWS]).most_common(1)[0][0]
        mean = float(np.mean([r.values["relatedness"] for r in train[:ROWS]]))
        gold = {name: [r.values[name] for r in test] for name in ("relatedness", "entailment")}
        nothing = {"relatedness": [mean] * len(test), "entailment": [common] * len(test)}
        found = {
            "evaluate": evaluated(model, suite),
            "score, by hand": {f"{r} {m}": by_hand(m, gold[r], answers[r]) for r, m in MEASURED},
            "evaluate --source cosine": evaluated(model, suite, source="cosine"),
            "the untouched encoder": evaluated(
                likewise.load(options.encoder), write_raw(Path(folder), suite), source="cosine"
            ),
            "mean rating, commonest label": {
                f"{r} {m}": None if m == "spearman" else by_hand(m, gold[r], nothing[r]) for r, m in MEASURED
            },
        }
    sentences = [line for line in told if "before training" in line or "always" in line]
    for name, numbers in found.items():
        print(name, json.dumps(numbers))
    print(*sentences, sep="\n")
    if options.output:
        made = {"commit": commit(), "versions": versions()}
        sources = {name: model.source(name) for name in ("relatedness", "entailment")}
        document = {"made_by": made, "rows": ROWS, "test_rows": len(test), "seed": options.seed}
        write_json_aside(
            options.output, {**document, "sources": sources, "numbers": found, "said": sentences}
        )


def write_raw(folder: Path, suite: Path) -> Path:
    """The suite for an encoder without relations: its cosine is measured against whatever is asked."""
    path = folder / "raw.toml"
    path.write_text(suite.read_text(encoding="utf8").replace("by_name = true\n", ""), encoding="utf8")
    return path


if __name__ == "__main__":
    sys.exit(main())
