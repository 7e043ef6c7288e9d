"""What phrases taught to texts that are encoded apart do to an encoder: cosines of sentences, and of phrases.

    python benchmarks/inject.py minilm --ways towers towers-elaborate towers-anchor30
    python benchmarks/two_towers.py minilm injected-minilm-{towers,towers-elaborate,towers-anchor30}

Sentences: sts7 by the cosine (test), STS-B dev to choose by. Phrases: chunks of iSTS linked by mutual best
cosines of their means in the last layer, F1 on test, train to choose by. The first encoder is taken as it is;
of the others the best on average over dev and train is measured on test too. Results go to
benchmarks/results/two-towers.json, beside those of other encoders.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import likewise
from alignment import CHUNKED, best_cosines, cases, f1
from likewise.data import load_records, write_json_aside
from likewise.evaluation.metrics import compute

RESULTS = Path(__file__).resolve().parent / "results" / "two-towers.json"
LAST = 1


def main() -> None:
    """Measure the encoders that are named and add them to the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("encoders", nargs="+")
    parser.add_argument("--dev", action="store_true", help="only what may be chosen by; writes nothing")
    given = parser.parse_args()
    found = {}
    for encoder in given.encoders:
        found[encoder] = choose_by(encoder)
        print(encoder, json.dumps(found[encoder]), flush=True)
    if given.dev:
        return
    as_it_is, *taught = given.encoders
    chosen = max(taught, key=lambda encoder: statistics.mean(found[encoder].values()), default=as_it_is)
    for encoder in dict.fromkeys((as_it_is, chosen)):
        found[encoder] |= measured(encoder)
        print(encoder, json.dumps(found[encoder]), flush=True)
    add(found)


def choose_by(encoder: str) -> dict[str, float]:
    """Numbers on dev and train."""
    rows = load_records("stsb/dev")
    scores = likewise.load(encoder).score([row.texts for row in rows])
    gold = [row.values["similarity"] for row in rows]
    sentences = {"STS-B dev": 100 * compute("spearman", gold, next(iter(scores.values())))}
    return sentences | {f"{name} train": _linked(encoder, name, "train") for name in CHUNKED}


def measured(encoder: str) -> dict[str, float]:
    """Numbers on test."""
    average = likewise.evaluate(encoder, "sts7").average
    return {"sts7": average, **{f"{name} test": _linked(encoder, name, "test") for name in CHUNKED}}


def _linked(encoder: str, name: str, split: str) -> float:
    group = cases(encoder, name, split)
    return 100 * f1(best_cosines(group, LAST), group)


def add(found: dict[str, dict[str, float]]) -> None:
    """Put the encoders' numbers into the results."""
    known: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf8")) if RESULTS.is_file() else {}
    write_json_aside(RESULTS, known | {Path(encoder).name: numbers for encoder, numbers in found.items()})


if __name__ == "__main__":
    main()
