"""Experiments: several settings with several seeds each, a grid that is chosen on dev, and exact resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from likewise.arguments import (
    require_count,
    require_device,
    require_flag,
    require_function,
    require_path,
    require_text,
)
from likewise.disk import make_folder, saying_why
from likewise.experiments.plan import ExperimentPlan
from likewise.experiments.runner import CellRunner
from likewise.experiments.schema import read_experiment
from likewise.experiments.summary import ExperimentResult
from likewise.outputs import check_outside_inputs
from likewise.progress import asked_progress, note


def experiment(file: str | Path, output: str | Path | None = None, **options: Any) -> ExperimentResult:
    """Run an experiment file: choose each setting's grid point on dev, then train it with all seeds.

    The options are those of `run_experiments`.
    """
    return run_experiments([file], output, **options)[0]


def read_inputs(files: Sequence[str | Path], data_dir: str | Path | None = None) -> list[Path]:
    """The files and encoder folders that experiment files name, before anything is run."""
    where = None if data_dir is None else str(data_dir)
    plans = [ExperimentPlan(read_experiment(Path(file)), None, "fp32", where) for file in files]
    return list(dict.fromkeys(path for plan in plans for path in plan.inputs()))


def run_experiments(
    files: Sequence[str | Path],
    output: str | Path | None = None,
    *,
    workers: int = 1,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | Path | None = None,
    keep_predictions: bool = False,
    quiet: bool = False,
    progress: Callable[[int], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[ExperimentResult]:
    """Run several experiment files with one pool of workers; a training that they share is run once.

    With `keep_predictions`, every result holds the predictions of its runs, and `write_summary` writes them
    beside the result. A bar and a line per run are shown on standard error. `quiet` stops that. `progress`
    (numbers of runs) and `tell` (lines) are functions of yours that take the reports instead.
    """
    for file in files:
        require_path(file, "file")
    require_path(output, "output", optional=True)
    require_path(data_dir, "data_dir", optional=True)
    require_count(workers, "workers", most=1024)
    require_device(device)
    require_text(precision, "precision", optional=False)
    require_function(progress, "progress")
    require_function(tell, "tell")
    require_flag(quiet, "quiet")
    folder = Path(output) if output is not None else Path("runs") / "cells"
    check_outside_inputs(folder, read_inputs(files, data_dir))
    with saying_why(folder):
        make_folder(folder)
    where = None if data_dir is None else str(data_dir)
    plans = [ExperimentPlan(read_experiment(Path(file)), device, precision, where) for file in files]
    own = progress is not None or tell is not None
    with asked_progress(progress, quiet=quiet or own, label="runs", unit="runs") as counting:
        runner = CellRunner(folder, workers, counting, tell or (_unheard if quiet or own else note))
        return _run(plans, runner, keep_predictions=keep_predictions)


def _run(
    plans: Sequence[ExperimentPlan], runner: CellRunner, *, keep_predictions: bool
) -> list[ExperimentResult]:
    # Rows without a grid need not wait for the grids of the others.
    runner.run([cell for plan in plans for cell in (*plan.grid_cells(), *plan.settled_cells())])
    for plan in plans:
        plan.choose(runner.read)
    runner.run([cell for plan in plans for runs in plan.final_cells() for run in runs for cell in run])
    return [plan.result(runner.read, runner.arrays, keep_predictions=keep_predictions) for plan in plans]


def _unheard(line: str) -> None:
    """Take a line and do nothing with it."""
