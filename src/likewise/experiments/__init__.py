"""Experiments: settings × seeds, a grid chosen on dev, cell by cell, resumable."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from likewise.experiments.cell import Cell, run_cell
from likewise.experiments.schema import Experiment, Setting, Start, read_experiment
from likewise.experiments.summary import ExperimentResult, Row
from likewise.recipes.reading import read_recipe


def experiment(
    file: str | Path,
    output: str | Path | None = None,
    *,
    workers: int = 1,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> ExperimentResult:
    """Run an experiment file: grid on dev first, then the chosen point of every setting with all seeds."""
    plan = read_experiment(Path(file))
    folder = Path(output) if output is not None else Path("runs") / plan.name
    folder.mkdir(parents=True, exist_ok=True)
    runner = _Runner(
        plan, folder, workers, device, precision, None if data_dir is None else str(data_dir), progress, tell
    )
    chosen, grid = runner.choose()
    rows = [
        (start, setting, chosen[start.name, setting.name]) for start in plan.start for setting in plan.setting
    ]
    final = [
        [runner.cell(start, setting, point, seed) for seed in plan.seeds] for start, setting, point in rows
    ]
    runner.run([cell for cells in final for cell in cells])
    made = tuple(
        _row(start.name, setting.name, point, [runner.read(cell) for cell in cells])
        for (start, setting, point), cells in zip(rows, final, strict=True)
    )
    sample = runner.read(final[0][0])
    about = {
        "versions": sample["versions"],
        "device": sample["device"],
        "precision": precision,
        "fingerprints": {s["name"]: s["fingerprints"] for s in sample["stages"]},
        "suite": plan.suite,
        "base": plan.base,
    }
    baseline = plan.baseline or plan.setting[0].name
    return ExperimentResult(plan.name, plan.description, plan.recipe, baseline, made, grid, about)


class _Runner:
    """Runs cells side by side and reads their files."""

    def __init__(
        self,
        plan: Experiment,
        folder: Path,
        workers: int,
        device: str | None,
        precision: str,
        data_dir: str | None,
        progress: Callable[[int], None] | None,
        tell: Callable[[str], None],
    ) -> None:
        self._plan, self._folder, self._workers = plan, folder, workers
        self._device, self._precision, self._data_dir = device, precision, data_dir
        self._progress, self._tell = progress, tell

    def cell(
        self, start: Start, setting: Setting, point: dict[str, Any], seed: int, *, measure: bool = True
    ) -> Cell:
        """The cell of a setting at a grid point with a seed; grid cells are not measured on test data."""
        changes = {**self._plan.base, **start.set, **setting.set, **point}
        recipe = read_recipe(setting.recipe or self._plan.recipe, overrides={**changes, "seed": seed})
        return Cell(
            f"{setting.name} {start.name}".strip(),
            recipe.model_dump(mode="json"),
            changes,
            seed,
            self._plan.suite,
            self._plan.sources,
            tuple(check.model_dump() for check in self._plan.check),
            measure,
            self._device,
            self._precision,
            self._data_dir,
        )

    def choose(self) -> tuple[dict[tuple[str, str], dict[str, Any]], list[dict[str, Any]]]:
        """The grid point with the best mean dev score, per row, and the whole search for the record."""
        seeds = self._plan.grid_seeds or self._plan.seeds[:1]
        rows = [(start, setting) for start in self._plan.start for setting in self._plan.setting]
        tried = [
            (start, setting, point, [self.cell(start, setting, point, seed, measure=False) for seed in seeds])
            for start, setting in rows
            for point in self._plan.points(setting)
            if len(self._plan.points(setting)) > 1
        ]
        self.run([cell for *_, cells in tried for cell in cells])
        chosen = {(start.name, setting.name): self._plan.points(setting)[0] for start, setting in rows}
        best: dict[tuple[str, str], float] = {}
        record = []
        for start, setting, point, cells in tried:
            dev = [float(self.read(cell)["dev"]) for cell in cells]
            mean = sum(dev) / len(dev)
            record.append({"start": start.name, "setting": setting.name, "point": point, "dev": dev})
            if mean > best.get((start.name, setting.name), float("-inf")):
                best[start.name, setting.name], chosen[start.name, setting.name] = mean, point
        return chosen, record

    def run(self, cells: Sequence[Cell]) -> None:
        """Run the cells that have no file yet."""
        waiting = [cell for cell in cells if not (self._folder / f"{cell.key}.json").is_file()]
        if self._progress is not None:
            self._progress(len(cells) - len(waiting))
        if self._workers == 1 or len(waiting) <= 1:
            for cell in waiting:
                self._finished(cell, run_cell(cell, self._folder))
            return
        os.environ.setdefault("LIKEWISE_CELL_THREADS", str(max(1, (os.cpu_count() or 1) // self._workers)))
        with ProcessPoolExecutor(self._workers, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(run_cell, cell, self._folder): cell for cell in waiting}
            for future in as_completed(futures):
                self._finished(futures[future], future.result())

    def _finished(self, cell: Cell, path: Path) -> None:
        found = json.loads(path.read_text(encoding="utf8"))
        averages = {source: round(r["average"], 2) for source, r in found.get("results", {}).items()}
        dev = "–" if found["dev"] is None else f"{found['dev']:.4f}"
        self._tell(
            f"{cell.setting} seed {cell.seed} {cell.overrides}: dev {dev} {averages} {found['seconds']:.0f} s"
        )
        if self._progress is not None:
            self._progress(1)

    def read(self, cell: Cell) -> dict[str, Any]:
        """What a finished cell wrote."""
        document: dict[str, Any] = json.loads((self._folder / f"{cell.key}.json").read_text(encoding="utf8"))
        return document


def _row(start: str, setting: str, point: dict[str, Any], cells: list[dict[str, Any]]) -> Row:
    numbers: dict[str, list[float]] = {}
    for cell in cells:
        for source, result in cell["results"].items():
            prefix = "" if source == "cosine" else f"{source} "
            for task in result["tasks"]:
                numbers.setdefault(prefix + task["name"], []).append(float(task["value"]))
            numbers.setdefault(prefix + "average", []).append(float(result["average"]))
        for name, value in cell["checks"].items():
            numbers.setdefault(name, []).append(float(value))
    return Row(
        start,
        setting,
        point,
        tuple(int(cell["seed"]) for cell in cells),
        tuple(cell["dev"] for cell in cells),
        {name: tuple(values) for name, values in numbers.items()},
        tuple(float(cell["train_seconds"]) for cell in cells),
        tuple(cell["peak_memory_mib"] for cell in cells),
    )
