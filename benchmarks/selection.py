"""How often training that changes nothing is called "better", where the dev rows also chose the step.

    python benchmarks/selection.py --output benchmarks/results/selection.json

The model before training and the model of every evaluation step are equally good in truth (correlation .8
with the ratings). The best on dev is kept and compared with the first on the same rows. `drift`: errors move
away from the first model's step by step. `scatter`: each step's errors are a draw of their own around them.
Once with a plain 95 % interval, once with the one that `likewise train` prints, widened for the choice.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.data import write_json_aside
from likewise.evaluation import compare_systems, compute
from likewise.kinds.gains import LEVEL
from likewise.versions import commit, versions

TRUTH, KEPT = 0.8, 0.85  # correlation with the ratings; of the last step's errors with the first's
CELLS = [(100, 10), (300, 10), (300, 30), (849, 10), (849, 30)]
Floats = NDArray[np.float64]


def errors(kind: str, rows: int, steps: int, rng: np.random.Generator) -> list[Floats]:
    """The errors of the model before training and of every step."""
    found = [rng.standard_normal(rows)]
    for _ in range(steps):
        share, base = (KEPT ** (1 / steps), found[-1]) if kind == "drift" else (KEPT, found[0])
        found.append(share * base + np.sqrt(1 - share**2) * rng.standard_normal(rows))
    return found


def called_better(kind: str, rows: int, steps: int, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether the chosen step is called better than the start: by a plain interval, by the widened one."""
    quality = rng.standard_normal(rows)
    ratings = np.clip(np.round(2.5 + 1.25 * quality), 0, 5)
    models = [TRUTH * quality + np.sqrt(1 - TRUTH**2) * error for error in errors(kind, rows, steps, rng)]
    values = [compute("spearman", ratings, model) for model in models]
    best = models[int(np.argmax(values))]
    if best is models[0]:
        return False, False
    levels = (LEVEL, 1 - (1 - LEVEL) / len(models))
    plain, widened = (compare_systems("spearman", ratings, best, models[0], level=one) for one in levels)
    return plain.verdict == "better", widened.verdict == "better"


def main() -> None:
    """Simulate every cell and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    cells: list[dict[str, Any]] = []
    for number, (kind, rows, steps) in enumerate((k, *cell) for k in ("drift", "scatter") for cell in CELLS):
        rng = np.random.default_rng([7, number])
        said = np.array([called_better(kind, rows, steps, rng) for _ in range(options.simulations)])
        plain, widened = (round(100 * float(share), 2) for share in said.mean(axis=0))
        shares = {"plain": plain, "widened": widened}
        cells.append({"steps differ by": kind, "rows": rows, "steps": steps, **shares})
        print(cells[-1], flush=True)
    if options.output:
        made = {"commit": commit(), "versions": versions()}
        write_json_aside(
            options.output, {"made_by": made, "simulations": options.simulations, "cells": cells}
        )


if __name__ == "__main__":
    main()
