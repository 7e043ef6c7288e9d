"""Experiments: settings × seeds, a grid chosen on dev, cell by cell, resumable."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from likewise.errors import EvaluationError, LikewiseError
from likewise.experiments.cell import Cell, run_cell
from likewise.experiments.parts import one_by_one
from likewise.experiments.rows import make_row
from likewise.experiments.schema import Experiment, Setting, Start, read_experiment
from likewise.experiments.summary import ExperimentResult
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
    return run_experiments(
        [file],
        output,
        workers=workers,
        device=device,
        precision=precision,
        data_dir=data_dir,
        progress=progress,
        tell=tell,
    )[0]


def run_experiments(
    files: Sequence[str | Path],
    output: str | Path | None = None,
    *,
    workers: int = 1,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> list[ExperimentResult]:
    """Run several experiment files over one pool of workers; a training they share is run once."""
    folder = Path(output) if output is not None else Path("runs") / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    where = None if data_dir is None else str(data_dir)
    plans = [_Plan(read_experiment(Path(file)), device, precision, where) for file in files]
    runner = _Runner(folder, workers, progress, tell)
    # Rows without a grid need not wait for the grids of the others.
    runner.run([cell for plan in plans for cell in (*plan.grid_cells(), *plan.settled_cells())])
    for plan in plans:
        plan.choose(runner.read)
    runner.run([cell for plan in plans for runs in plan.final_cells() for run in runs for cell in run])
    return [plan.result(runner.read) for plan in plans]


Read = Callable[[Cell], dict[str, Any]]


class _Plan:
    """One experiment file: which cells it needs, which grid points it chose, what table comes out."""

    def __init__(self, plan: Experiment, device: str | None, precision: str, data_dir: str | None) -> None:
        self._plan = plan
        self._device, self._precision, self._data_dir = device, precision, data_dir
        self._rows = [(start, setting) for start in plan.start for setting in plan.setting]
        self._chosen = {_name(row): plan.points(row[1])[0] for row in self._rows}
        self._grid: list[dict[str, Any]] = []

    def _cells(
        self, start: Start, setting: Setting, point: dict[str, Any], seed: int, *, measure: bool = True
    ) -> list[Cell]:
        """The cells of a setting at a grid point with a seed: one, or one per relation.

        Grid cells are not measured on test data.
        """
        changes = {**self._plan.base, **start.set, **setting.set, **point}
        recipe = read_recipe(setting.recipe or self._plan.recipe, overrides={**changes, "seed": seed})
        name = f"{setting.name} {start.name}".strip()
        parts = {name: recipe}
        if setting.each == "relation":
            parts = {f"{name} ({relation})": part for relation, part in one_by_one(recipe).items()}
        return [
            Cell(
                part,
                one.model_dump(mode="json"),
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
            for part, one in parts.items()
        ]

    def _tried(self) -> list[tuple[Start, Setting, dict[str, Any], list[list[Cell]]]]:
        """Every grid point of the rows that have a choice, with its cells."""
        seeds = self._plan.grid_seeds or self._plan.seeds[:1]
        return [
            (
                start,
                setting,
                point,
                [self._cells(start, setting, point, seed, measure=False) for seed in seeds],
            )
            for start, setting in self._rows
            for point in self._plan.points(setting)
            if self._has_grid(setting)
        ]

    def _has_grid(self, setting: Setting) -> bool:
        return len(self._plan.points(setting)) > 1

    def grid_cells(self) -> list[Cell]:
        """Cells that choose: trained, looked at on dev, never measured on test data."""
        return [cell for *_, runs in self._tried() for run in runs for cell in run]

    def settled_cells(self) -> list[Cell]:
        """Final cells of the rows that have nothing to choose."""
        rows = zip(self._rows, self.final_cells(), strict=True)
        settled = [runs for (_, setting), runs in rows if not self._has_grid(setting)]
        return [cell for runs in settled for run in runs for cell in run]

    def final_cells(self) -> list[list[list[Cell]]]:
        """Per row and seed the cells of that run, at the chosen grid point."""
        return [
            [self._cells(*row, self._chosen[_name(row)], seed) for seed in self._plan.seeds]
            for row in self._rows
        ]

    def choose(self, read: Read) -> None:
        """Per row the grid point with the best mean dev score; the whole search is kept for the record."""
        best: dict[tuple[str, str], float] = {}
        for start, setting, point, runs in self._tried():
            dev = [_mean([float(read(cell)["dev"]) for cell in run]) for run in runs]
            mean = _mean(dev)
            self._grid.append({"start": start.name, "setting": setting.name, "point": point, "dev": dev})
            name = _name((start, setting))
            if mean > best.get(name, float("-inf")):
                best[name], self._chosen[name] = mean, point

    def result(self, read: Read) -> ExperimentResult:
        """The table, from the files of the final cells."""
        plan, final = self._plan, self.final_cells()
        made = tuple(
            make_row(*_name(row), self._chosen[_name(row)], [[read(cell) for cell in run] for run in runs])
            for row, runs in zip(self._rows, final, strict=True)
        )
        sample = read(final[0][0][0])
        about = {
            "versions": sample["versions"],
            "device": sample["device"],
            "matmul": sample["matmul"],
            "precision": self._precision,
            "fingerprints": {s["name"]: s["fingerprints"] for s in sample["stages"]},
            "suite": plan.suite,
            "base": plan.base,
        }
        baseline = plan.baseline or plan.setting[0].name
        return ExperimentResult(plan.name, plan.description, plan.recipe, baseline, made, self._grid, about)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _name(row: tuple[Start, Setting]) -> tuple[str, str]:
    return row[0].name, row[1].name


class _Runner:
    """Runs cells side by side and reads their files."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        progress: Callable[[int], None] | None,
        tell: Callable[[str], None],
    ) -> None:
        self._folder, self._workers = folder, workers
        self._progress, self._tell = progress, tell

    def run(self, cells: Iterable[Cell]) -> None:
        """Run the cells that have no file yet, each once."""
        distinct = {cell.key: cell for cell in cells}
        waiting = [cell for key, cell in distinct.items() if not self._file(key).is_file()]
        if self._progress is not None:
            self._progress(len(distinct) - len(waiting))
        failed = list(self._run_here(waiting) if self._workers == 1 else self._run_beside(waiting))
        if failed:
            raise EvaluationError("\n".join([f"{len(failed)} of {len(distinct)} cells failed:", *failed]))

    def _run_here(self, cells: Sequence[Cell]) -> Iterator[str]:
        for cell in cells:
            yield from self._finish(cell, partial(run_cell, cell, self._folder))

    def _run_beside(self, cells: Sequence[Cell]) -> Iterator[str]:
        os.environ.setdefault("LIKEWISE_CELL_THREADS", str(max(1, (os.cpu_count() or 1) // self._workers)))
        with ProcessPoolExecutor(self._workers, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(run_cell, cell, self._folder): cell for cell in cells}
            try:
                for future in as_completed(futures):
                    yield from self._finish(futures[future], future.result)
            except BaseException:  # a bug of ours, or Ctrl-C: the cells that wait would only delay it
                pool.shutdown(cancel_futures=True)
                raise

    def _finish(self, cell: Cell, result: Callable[[], Path]) -> Iterator[str]:
        """Tell how a cell went; one that failed is named, and the others go on: they do not need it."""
        try:
            path = result()
        except LikewiseError as error:
            line = f"{cell.setting} seed {cell.seed}: {error}"
            self._tell(f"FAILED {line}")
            yield line
            return
        self._finished(cell, path)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _finished(self, cell: Cell, path: Path) -> None:
        found = json.loads(path.read_text(encoding="utf8"))
        results = found.get("results", {})
        averages = {s: round(r["average"], 2) for s, r in results.items() if r["average"] is not None}
        dev = "–" if found["dev"] is None else f"{found['dev']:.4f}"
        self._tell(
            f"{cell.setting} seed {cell.seed} {cell.overrides}: dev {dev} {averages} {found['seconds']:.0f} s"
        )
        if self._progress is not None:
            self._progress(1)

    def read(self, cell: Cell) -> dict[str, Any]:
        """What a finished cell wrote."""
        document: dict[str, Any] = json.loads(self._file(cell.key).read_text(encoding="utf8"))
        return document
