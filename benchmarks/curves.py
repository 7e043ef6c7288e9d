"""Mean dev Pearson during stage 1, from the cells of the multilingual grid.

    likewise experiment benchmarks/experiments/multilingual-grid.toml --precision bf16
    python benchmarks/curves.py --precision bf16

Writes benchmarks/results/multilingual-curves.json and docs/figures/stage-1-curves.svg.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from likewise.experiments.cell import take_former
from likewise.experiments.plan import ExperimentPlan
from likewise.experiments.schema import read_experiment

HERE = Path(__file__).parent
GRID = HERE / "experiments" / "multilingual-grid.toml"
FIGURE = HERE.parent / "docs" / "figures" / "stage-1-curves.svg"
SHOWN = ("S1", "S1 + prelayer")


def main() -> None:
    """Read, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", type=Path, default=Path("runs") / "cells")
    parser.add_argument("--precision", default="fp32")
    options = parser.parse_args()
    found = curves(options.cells, options.precision)
    target = HERE / "results" / "multilingual-curves.json"
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    draw(found)


def curves(cells: Path, precision: str) -> list[dict[str, Any]]:
    """Per base, setting and seed the mean dev Pearson after each epoch, and the epoch that was kept."""
    plan = ExperimentPlan(read_experiment(GRID), None, precision, None)
    found = []
    for runs in plan.final_cells():
        for [cell] in runs:
            if not cell.setting.startswith(SHOWN):
                continue
            setting, start = split_name(cell.setting)
            file = cells / f"{cell.key}.json"
            if not file.is_file() and not take_former(cell, cells):
                print(f"{cell.setting}, seed {cell.seed}: not run yet, left out")
                continue
            [stage] = json.loads(file.read_text(encoding="utf8"))["stages"]
            kept = next(entry["epoch"] for entry in stage["history"] if entry["step"] == stage["best_step"])
            dev = [round(entry["rated"], 4) for entry in stage["history"]]
            found.append({"base": start, "setting": setting, "seed": cell.seed, "kept": kept, "dev": dev})
    return found


def split_name(name: str) -> tuple[str, str]:
    """A cell's name into its setting and its start."""
    setting = max((one for one in SHOWN if name.startswith(one)), key=len)
    return setting, name.removeprefix(setting).strip()


def draw(found: list[dict[str, Any]]) -> None:
    """One panel per base."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    bases = list(dict.fromkeys(entry["base"] for entry in found))
    colours = dict(zip(SHOWN, ("#1f5fa8", "#d1662b"), strict=True))
    figure, panels = pyplot.subplots(1, len(bases), figsize=(4.6 * len(bases), 3.4), squeeze=False)
    for panel, base in zip(panels[0], bases, strict=True):
        for entry in (e for e in found if e["base"] == base):
            epochs = range(1, len(entry["dev"]) + 1)
            label = entry["setting"] if entry["seed"] == 1 else None
            panel.plot(epochs, entry["dev"], color=colours[entry["setting"]], alpha=0.75, lw=1.2, label=label)
            kept = entry["kept"]
            panel.plot([kept], [entry["dev"][kept - 1]], "o", color=colours[entry["setting"]], ms=4)
        panel.set(title=base, xlabel="epoch", ylabel="mean dev Pearson, 6 pairs")
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False)
    figure.tight_layout()
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
