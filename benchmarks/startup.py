"""Seconds of processor time from the start of a process to its first answer, and what the imports take.

    python benchmarks/startup.py --before FOLDER --output benchmarks/results/startup.json

FOLDER holds the `src` of an earlier state. Processes of both states alternate, so that a busy machine slows
both. Wall time depends on what else runs, and is not reported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

SCORE = ["-m", "likewise", "score", "a dog", "a cat", "--device", "cpu"]
COMMANDS = {
    "score": SCORE,
    "help": ["-m", "likewise", "--help"],
    "cache info": ["-m", "likewise", "cache", "info"],
}
# What scoring would need at least: the same encoder by transformers alone.
PLAIN = (
    "from transformers import AutoTokenizer, BertModel\n"
    "BertModel.from_pretrained, AutoTokenizer.from_pretrained  # names load when they are used"
)
IMPORTS = {
    "torch": "import torch",
    "transformers": PLAIN,
    "sentence_transformers": "import sentence_transformers",
}


def main() -> None:
    """Start, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="src of an earlier state")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    now = Path(__file__).resolve().parents[1] / "src"
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(options.repeats):
        for name, command in COMMANDS.items():
            for state, source in (("before", options.before), ("after", now)):
                found.setdefault(name, {}).setdefault(state, []).append(seconds(command, source))
        for name, code in IMPORTS.items():
            found.setdefault(f"import {name}", {}).setdefault("alone", []).append(seconds(["-c", code], now))
    document = {
        "cores": os.cpu_count(),
        "repeats": options.repeats,
        "seconds": {
            name: {state: spread(runs) for state, runs in states.items()} for name, states in found.items()
        },
    }
    text = json.dumps(document, indent=2) + "\n"
    print(text, end="")
    if options.output is not None:
        options.output.write_text(text, encoding="utf8")


def spread(runs: list[float]) -> dict[str, float]:
    """Median, least and most."""
    told = {"median": statistics.median(runs), "least": min(runs), "most": max(runs)}
    return {name: round(value, 2) for name, value in told.items()}


def seconds(command: list[str], source: Path) -> float:
    """The processor time of a new process, and of those that it starts."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
