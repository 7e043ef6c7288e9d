"""How often tests of two systems err, and how often intervals hold the truth: old defaults beside new ones.

    python benchmarks/simulations.py --data-dir corpora            all, a quarter of an hour on one core
    python benchmarks/simulations.py --simulations 300 --only independent

Rows are drawn from populations whose values are known. Two systems that are equally good there are tested at
5 %: a test that holds says "different" in 4 to 6 % of the draws. Intervals of 95 % should hold the truth in
93 to 97 %. Which rows share texts is drawn, or taken from STS12 and Human Activity Phrases; ratings and
scores are always drawn.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from likewise.disk import write_json_aside
from likewise.versions import versions
from simulating.cells import AverageCell, Cell
from simulating.populations import Graded, Labelled, apart, crossed, prompts, real

SEED = 7
SHARE = 0.6
CORRELATIONS = ("pearson", "spearman")
LABELS = {
    "half are ones": Labelled(0.5, 0.85, 0.15),
    "a fifth are ones": Labelled(0.2, 0.8, 0.05),
    "a tenth are ones": Labelled(0.1, 0.7, 0.03),
}
Cells = list[Cell | AverageCell]


def main() -> None:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=5000)
    parser.add_argument("--only", default="", help="cells whose kind of rows holds this text")
    parser.add_argument("--data-dir", type=Path, default=None, help="corpora, for STS12 and HAP")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/statistics.json"))
    options = parser.parse_args()
    begun, found = time.monotonic(), []
    for number, cell in enumerate(all_cells(options.data_dir)):
        if options.only in cell.rows:
            found.append(cell.run(options.simulations, [SEED, number]))
            print(line(found[-1]), flush=True)
    document = {
        "simulations": options.simulations,
        "seed": SEED,
        "seconds": round(time.monotonic() - begun),
        "versions": versions(),
        "cells": found,
    }
    write_json_aside(options.output, document)


def line(found: dict[str, Any]) -> str:
    """One cell, to read while the others run."""
    numbers = [
        f"{name} {'–' if found[key] is None else f'{100 * found[key]:.1f}'}"
        for name, key in (
            ("error old", "error_old"),
            ("new", "error"),
            ("coverage old", "coverage_old"),
            ("new", "coverage"),
            ("told", "told"),
        )
    ]
    return f"{found['rows']}, {found['about']}, {found['metric']}, n {found['n']}: {', '.join(numbers)}"


def all_cells(data_dir: Path | None) -> Cells:
    """Every cell of the table; those with real texts only where the corpora are."""
    return [
        *independent_cells(),
        *label_cells(),
        *shared_cells(),
        *(real_cells(data_dir) if data_dir else []),
    ]


def independent_cells() -> Cells:
    """Rows that share nothing, with ties; even and uneven errors; two systems that do differ."""
    cells: Cells = []
    for metric in CORRELATIONS:
        for n in (30, 100, 300, 1000):
            cells += [Cell("independent", f"r {r}", metric, Graded(r), apart(n)) for r in (0.3, 0.6, 0.85)]
        uneven = "first" if metric == "pearson" else "both"
        cells += [
            Cell("independent, uneven errors", "r 0.6", metric, Graded(0.6, uneven=uneven), apart(n))
            for n in (30, 100, 300, 1000)
        ]
        cells += [
            Cell("independent, systems differ", f"r {a} and {b}", metric, Graded(a, b), apart(n))
            for a, b in ((0.65, 0.6), (0.85, 0.8))
            for n in (30, 100, 300, 1000)
        ]
    cells += [Cell("independent", "r 0.6", "mae", Graded(0.6), apart(n)) for n in (30, 100)]
    return cells


def label_cells() -> Cells:
    """Labels, few of them ones, on independent rows and beside prompts that recur."""
    cells: Cells = [
        Cell("independent", about, metric, population, apart(n))
        for metric in ("accuracy", "f1")
        for about, population in LABELS.items()
        for n in (100, 300, 1000)
    ]
    population, texts = Labelled(0.2, 0.8, 0.05, share=SHARE), prompts(100, np.random.default_rng(SEED))
    cells += [
        Cell("100 prompts in 2–10 rows each", "a fifth are ones", metric, population, texts, shares=True)
        for metric in ("accuracy", "f1")
    ]
    return cells


def shared_cells() -> Cells:
    """Texts that recur 2 to 10 times, beside others or beside one another; with and without an effect."""
    cells: Cells = []
    rng = np.random.default_rng(SEED)
    designs = {
        "12 prompts in 2–10 rows each": prompts(12, rng),
        "30 prompts in 2–10 rows each": prompts(30, rng),
        "100 prompts in 2–10 rows each": prompts(100, rng),
        "100 crossed texts in 2–10 rows each": crossed(100, rng),
        "300 crossed texts in 2–10 rows each": crossed(300, rng),
    }
    for metric in CORRELATIONS:
        for rows, texts in designs.items():
            cells.append(Cell(rows, "r 0.6", metric, Graded(0.6, share=SHARE), texts, shares=True))
        texts = designs["100 prompts in 2–10 rows each"]
        cells.append(Cell("100 prompts without an effect", "r 0.6", metric, Graded(0.6), texts, shares=True))
    return cells


def real_cells(data_dir: Path) -> Cells:
    """The texts of STS12 and Human Activity Phrases."""
    cells: Cells = []
    designs = {"texts of STS12": real("STS12", data_dir), "texts of HAP": real("HAP similarity", data_dir)}
    for rows, texts in designs.items():
        cells += [
            Cell(rows, f"r {r}", metric, Graded(r, share=SHARE), texts, shares=True)
            for metric in CORRELATIONS
            for r in (0.6, 0.85)
        ]
    for metric in CORRELATIONS:
        population, texts = Graded(0.6, share=SHARE), designs["texts of HAP"]
        cells.append(AverageCell("texts of HAP", "4 tasks", metric, population, texts))
    return cells


if __name__ == "__main__":
    main()
