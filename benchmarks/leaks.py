"""What the leak filters leave of STS-B and SICK, and what they share with sts7 then.

    python benchmarks/leaks.py --data-dir corpora --output benchmarks/results/leaks.json

For every split that the recipe `similarity` trains or selects on: rows, rows after the filter by pair, what
these still share with the seven test sets, and rows after the strict filter. For every test set: rows that
share a text with the training rows that the filter by pair leaves, and rows that have a near-copy there. Then
how many rows a second one core compares, and the raw cosine on SICK-R: over the test rows, as sts7 has it,
and over all rows of train, trial and test, as MTEB has it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import likewise
from likewise.data import load_corpus, load_records, write_json_aside
from likewise.evaluation import AuditReport, audit, compute, filter_overlap, sts7_evaluation_sets
from likewise.evaluation.copies import NEAR
from likewise.evaluation.leakage import OverlapIndex
from likewise.records import Record
from likewise.versions import commit, machine, versions

SPLITS = {"train": ("stsb/train", "sick/train"), "dev": ("stsb/dev", "sick/trial")}
STRANGERS = "qqp/train"
SICK = ("train", "trial", "test")
Tests = dict[str, list[Record]]


def read(name: str, data_dir: str | None) -> list[Record]:
    """The rows of a split."""
    return load_corpus(*name.split("/"), data_dir=data_dir)


def measure_split(rows: Sequence[Record], tests: Tests) -> dict[str, int]:
    """What the filters leave of a split, and what the filter by pair does not see."""
    by_pair, _ = filter_overlap(rows, tests)
    strict, _ = filter_overlap(rows, tests, strict=True)
    left = audit(by_pair, tests, near=NEAR)
    return {
        "rows": len(rows),
        "by_pair": len(by_pair),
        "with_text": left.text_train_rows,
        "near_copies": left.near_train_rows,
        "near_copies_alone": left.dropped["near-copy"],
        "strict": len(strict),
    }


def measure_tests(report: AuditReport) -> list[dict[str, Any]]:
    """What each test set shares with the training rows, and all of them together."""
    found = [
        {"name": overlap.name, "rows": overlap.rows, "with_text": overlap.some_texts}
        | {"with_all_texts": overlap.all_texts, "near_copies": overlap.near}
        for overlap in report.sets
    ]
    whole = {key: sum(entry[key] for entry in found) for key in found[0] if key != "name"}
    return [
        {**entry, "share_with_text": entry["with_text"] / entry["rows"]}
        for entry in [*found, {"name": "sts7", **whole}]
    ]


def measure_speed(tests: Tests, data_dir: str | None) -> dict[str, Any]:
    """Rows a second that one core compares, near-copies included."""
    rows = load_records(STRANGERS, relations=(), data_dir=data_dir)
    started = time.perf_counter()
    index = OverlapIndex(tests, near=NEAR)
    built = time.perf_counter()
    for record in rows:
        index.compare(record.texts)
    seconds = time.perf_counter() - built
    report = index.report()
    return {
        "source": STRANGERS,
        "rows": len(rows),
        "indexed_rows": sum(map(len, tests.values())),
        "seconds_to_build": round(built - started, 2),
        "rows_per_second": round(len(rows) / seconds),
        "found": {"by_pair": report.shared_train_rows, "near_copies": report.near_train_rows},
    }


def measure_sick(encoder: str, device: str | None, data_dir: str | None) -> dict[str, Any]:
    """Spearman × 100 of the raw cosine on SICK-R: over the test rows, and over all rows."""
    parts = {split: load_corpus("sick", split, data_dir=data_dir) for split in SICK}
    model = likewise.load(encoder, device=device)
    found: dict[str, Any] = {"encoder": encoder}
    for name, splits in (("test", ("test",)), ("all", SICK)):
        rows = [record for split in splits for record in parts[split]]
        said = model.score([record.texts for record in rows])["similarity"]
        gold = [record.values["relatedness"] for record in rows]
        found[name] = {"rows": len(rows), "spearman": 100 * compute("spearman", gold, said)}
    return found


def main() -> None:
    """Measure all of it and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--data-dir")
    parser.add_argument("--device")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    tests = sts7_evaluation_sets(options.data_dir)
    splits: dict[str, dict[str, int]] = {}
    for part, names in SPLITS.items():
        for name in names:
            splits[name] = measure_split(read(name, options.data_dir), tests)
        counts = [splits[name] for name in names]
        splits[part] = {key: sum(count[key] for count in counts) for key in counts[0]}
    train = [record for name in SPLITS["train"] for record in read(name, options.data_dir)]
    report = audit(filter_overlap(train, tests)[0], tests, near=NEAR)
    result = {
        "made_by": {"commit": commit(), "versions": versions(), "machine": machine()},
        "near": NEAR,
        "splits": splits,
        "tests": measure_tests(report),
        "speed": measure_speed(tests, options.data_dir),
        "sick": measure_sick(options.encoder, options.device, options.data_dir),
    }
    for key in ("splits", "tests", "speed", "sick"):
        print(key, result[key], flush=True)
    if options.output:
        write_json_aside(options.output, result)


if __name__ == "__main__":
    sys.exit(main())
