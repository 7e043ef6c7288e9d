"""Seconds from the start of the process to the first training step of a recipe over a frozen encoder.

    python benchmarks/start_speed.py multilingual --precision bf16 \
        --output benchmarks/results/start_speed.json

Every start is a new Python process. The first one may have to encode and is not counted; `files read` starts
without prepared rows and identities, `second run` with them. Vectors come from the cache in both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

CHILD = """
import sys, time
from likewise.kinds.vector_tasks import ParallelTask
def first_step(task, epoch):
    print(time.monotonic(), flush=True)
    sys.exit(0)
ParallelTask.losses = first_step
import likewise
likewise.train(sys.argv[1], precision=sys.argv[2])
"""


def main() -> None:
    """Start, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    seconds_to_first_step(options.recipe, options.precision)
    found: dict[str, list[float]] = {"files read": [], "second run": []}
    for _ in range(options.repeats):
        for name in ("prepared", "identities"):
            shutil.rmtree(cache_folder() / name, ignore_errors=True)
        for kind in found:
            found[kind].append(seconds_to_first_step(options.recipe, options.precision))
    document = {
        "recipe": options.recipe,
        "precision": options.precision,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "seconds": {
            kind: {"median": statistics.median(runs), "least": min(runs), "most": max(runs)}
            for kind, runs in found.items()
        },
    }
    text = json.dumps(document, indent=2) + "\n"
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text, encoding="utf8")


def cache_folder() -> Path:
    """Where likewise keeps vectors."""
    from likewise.encoders.cache import default_folder

    return default_folder()


def seconds_to_first_step(recipe: str, precision: str) -> float:
    """One start in a process of its own."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, recipe, precision], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout.split()[-1]) - started


if __name__ == "__main__":
    main()
