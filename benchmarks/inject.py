"""Teach phrases to an encoder in the ways of Arase & Tsujii 2019, and write how well each way learns them.

    python benchmarks/inject.py minilm
    python benchmarks/inject.py mpnet --ways both simple --links runs/injection/links-*.jsonl.gz
    python benchmarks/inject.py mpnet --ways both --seed 2

    python benchmarks/inject.py --merge runs/injection/minilm-*.json

Without --links the recipe's own data is read and aligned. Every checkpoint goes to
$LIKEWISE_MODELS/injected-ENCODER-WAY, where the paraphrase-* experiments find it. Accuracies on held-out
paraphrases go to benchmarks/results/injection.json, beside those of other encoders; ways that are taught side
by side write files of their own (--results), which --merge puts there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import likewise
from likewise.data import write_json_aside
from likewise.training.state import FitEvent

RESULTS = Path(__file__).resolve().parent / "results" / "injection.json"
# The rows of Arase & Tsujii 2019, Tables 5 to 7, and what no paper has.
WAYS: dict[str, dict[str, Any]] = {
    "both": {},
    "simple": {"features": "simple"},
    "sentences": {"learns": "sentences"},
    "phrases": {"learns": "phrases"},
    "phrases-simple": {"learns": "phrases", "features": "simple"},
    "binary": {"learns": "binary-phrases"},
    "near": {"negatives": "near"},
    # Chosen on STS-B dev and iSTS train by small runs; at full size towers-slow is better there.
    "towers": {"two_tower": True, "features": "cosine", "learning_rate": 2e-5, "head_learning_rate": 1e-2},
    "towers-elaborate": {"two_tower": True},
}
TOWERS = WAYS["towers"]
WAYS |= {
    "towers-anchor30": {**TOWERS, "anchor": 30.0},
    "towers-slow": {**TOWERS, "learning_rate": 5e-6},
    "towers-phrases": {**TOWERS, "learns": "phrases"},
}


def main() -> None:
    """Train the ways that are asked for, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("encoder", nargs="?")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--links", nargs="+", help="files of links instead of the recipe's data")
    parser.add_argument("--seed", type=int, default=1, help="of the teaching; 2: injected-ENCODER-WAY-2")
    parser.add_argument("--suffix", help="noise50: injected-ENCODER-WAY-noise50")
    parser.add_argument("--set", nargs="*", default=[], help="stage.0.KEY=VALUE")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--merge", nargs="+", type=Path, metavar="FILE", help="results into one file; trains nothing"
    )
    given = parser.parse_args()
    if given.merge:
        merge(given.merge, given.results)
        return
    if given.encoder is None:
        parser.error("name an encoder")
    for way in given.ways:
        marks = [str(given.seed)] if given.seed != 1 else []
        name = "-".join(["injected", given.encoder, way, *marks, *([given.suffix] if given.suffix else [])])
        overrides: dict[str, Any] = {"seed": given.seed}
        overrides |= {f"stage.0.{key}": value for key, value in WAYS[way].items()}
        if given.links:
            overrides["stage.0.data"] = [{"source": file} for file in given.links]
        overrides |= dict(_override(text) for text in given.set)
        likewise.train(
            "paraphrase-injection",
            Path(os.environ["LIKEWISE_MODELS"]) / name,
            encoder=given.encoder,
            overrides=overrides,
            precision=given.precision,
            overwrite=True,
            tell=print,
            emit=show,
        )
        write(given.results, name)


def show(event: FitEvent) -> None:
    """A line per look at dev."""
    if event.kind == "evaluate":
        numbers = ", ".join(f"{name} {value:.3f}" for name, value in event.values.items())
        print(f"  step {event.step:,} of {event.total:,}: {numbers}", flush=True)


def _override(text: str) -> tuple[str, Any]:
    from likewise.recipes.reading import parse_override

    return parse_override(text)


def write(results: Path, name: str) -> None:
    """Add one checkpoint's accuracies to the results."""
    folder = Path(os.environ["LIKEWISE_MODELS"]) / name
    document = json.loads((folder / "likewise" / "model.json").read_text(encoding="utf8"))
    [stage] = document["stages"]
    kept = ("held_out", "pairs_of", "aligned_by", "steps", "best_step", "best_value", "seconds", "leakage")
    add(results, {name: {**{key: stage[key] for key in kept}, "taught": document["injected"]}})


def merge(files: Sequence[Path], results: Path) -> None:
    """Add what runs side by side wrote into files of their own."""
    for file in files:
        add(results, json.loads(file.read_text(encoding="utf8")))


def add(results: Path, found: dict[str, Any]) -> None:
    """Put numbers by checkpoint into a file of results."""
    known = json.loads(results.read_text(encoding="utf8")) if results.is_file() else {}
    results.parent.mkdir(parents=True, exist_ok=True)
    write_json_aside(results, dict(sorted((known | found).items())))


if __name__ == "__main__":
    main()
