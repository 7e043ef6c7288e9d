"""The plan of one experiment file: the cells it needs, the grid points it chooses, and its table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.errors import EvaluationError, Problem, RecipeError
from likewise.evaluation.suites import get_suite, suite_files
from likewise.experiments.cell import Cell
from likewise.experiments.parts import one_by_one, only, task_sets, with_fold
from likewise.experiments.predictions import gather
from likewise.experiments.related import Arrays, RelatedReport, relate
from likewise.experiments.rows import ResultRow, make_row, whole
from likewise.experiments.schema import Experiment, Setting, Start
from likewise.experiments.summary import ExperimentResult
from likewise.recipes.contents import Files, digest_files, encoder_place, recipe_files, source_files
from likewise.recipes.reading import named_document, recipe_from
from likewise.schema.recipe import Recipe
from likewise.wording import listed, quoted

Read = Callable[[Cell], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Line:
    """One future row: a setting from a start, with its `tasks` if the setting is run as every set of them."""

    start: Start
    setting: Setting
    tasks: tuple[str, ...] = ()

    @property
    def name(self) -> tuple[str, str]:
        """The start and setting that name the row."""
        tasks = f": {' + '.join(self.tasks)}" if self.tasks else ""
        return self.start.name, self.setting.name + tasks


class ExperimentPlan:
    """The plan of one experiment file: the cells it needs, the grid points it chose, and its table."""

    def __init__(self, plan: Experiment, device: str | None, precision: str, data_dir: str | None) -> None:
        self._plan = plan
        self._device, self._precision, self._data_dir = device, precision, data_dir
        self._grid: list[dict[str, Any]] = []
        # What files hold, read once: many cells read the same ones.
        self._digests: dict[Path, str] = {}
        # Read once: a recipe that somebody edits during a long run must not change what its cells are called.
        names = {setting.recipe or plan.recipe for setting in plan.setting}
        self._documents = {name: named_document(name) for name in names}
        self._lines = [
            line for start in plan.start for setting in plan.setting for line in self._expand(start, setting)
        ]
        self._chosen = {line.name: plan.points(line.setting)[0] for line in self._lines}

    def _expand(self, start: Start, setting: Setting) -> list[Line]:
        """The rows of a setting: one, or one for each set of tasks."""
        if setting.each != "subset":
            return [Line(start, setting)]
        recipe = self._recipe(start, setting, self._plan.points(setting)[0], self._plan.seeds[0])
        return [Line(start, setting, tasks) for tasks in task_sets(recipe)]

    def _recipe(self, start: Start, setting: Setting, point: dict[str, Any], seed: int) -> Recipe:
        """The recipe of a setting at a grid point with a seed, all relations together."""
        document, where = self._documents[setting.recipe or self._plan.recipe]
        changes = {**self._plan.base, **start.set, **setting.set, **point, "seed": seed}
        recipe = recipe_from(copy.deepcopy(document), where, overrides=changes)
        if setting.stages != 0:
            self._refuse_unknown_checks(recipe)
        if setting.stages:
            recipe = recipe.model_copy(update={"stage": recipe.stage[: setting.stages]})
        return recipe

    def _refuse_unknown_checks(self, recipe: Recipe) -> None:
        """Raise an error for checks of relations that no model will have, before anything is trained."""
        known = listed(recipe.relation)
        unknown = [
            Problem(
                f"check.{number}.relation",
                f"{quoted(check.relation)} is not a relation of the recipe ({known})",
            )
            for number, check in enumerate(self._plan.check)
            if check.relation not in recipe.relation
        ]
        if unknown:
            raise RecipeError(unknown)

    def _cells(
        self,
        line: Line,
        point: dict[str, Any],
        seed: int,
        *,
        measure: bool = True,
        fold: tuple[int, int] | None = None,
    ) -> list[Cell]:
        """The cells of a row at a grid point with a seed: one, or one for each relation.

        Grid cells are not measured on test data. With `fold`, that part of the training rows is the dev set.
        """
        start, setting = line.start, line.setting
        recipe = self._recipe(start, setting, point, seed)
        recipe = recipe if fold is None else with_fold(recipe, fold)
        name = f"{line.name[1]} {start.name}".strip()
        parts = {name: only(recipe, line.tasks) if line.tasks else recipe}
        if setting.each == "relation":
            parts = {
                f"{name} ({relation})": part
                for relation, part in one_by_one(recipe, self._plan.relations).items()
            }
        return [
            Cell(
                part,
                one.model_dump(mode="json"),
                {**start.set, **setting.set, **point, **({} if fold is None else {"fold": list(fold)})},
                seed,
                self._plan.suite,
                self._plan.sources or (get_suite(self._plan.suite).source,),
                tuple(check.model_dump() for check in self._plan.check),
                measure,
                self._device,
                self._precision,
                self._data_dir,
                raw=setting.stages == 0,
                add=None if setting.add is None else setting.add.model_dump(exclude_defaults=True),
                **self._content(one),
            )
            for part, one in parts.items()
        ]

    def inputs(self) -> list[Path]:
        """The files that the cells read, and the folders of their encoders."""
        first, suite = self._plan.seeds[0], self._plan.suite
        names = [suite, *(one.source for one in self._plan.check)]
        found: list[Path | None] = list(suite_files(suite, self._data_dir))
        found += _flat(source_files(names, self._data_dir))
        for line in self._lines:
            for point in self._plan.points(line.setting):
                recipe = self._recipe(line.start, line.setting, point, first)
                found += [encoder_place(recipe.encoder), *_flat(recipe_files(recipe, self._data_dir))]
        return [path for path in dict.fromkeys(found) if path is not None]

    def _content(self, recipe: Recipe) -> dict[str, Any]:
        """Hashes of the files that a cell reads: its encoder, its data, its suite and its checks."""
        suite = self._plan.suite
        own = [str(task.file) for task in get_suite(suite).tasks if task.file is not None]
        names = [suite, *own, *(one.source for one in self._plan.check)]
        files = {**recipe_files(recipe, self._data_dir), **source_files(names, self._data_dir)}
        # A file's name may stand in a key, a place in the data folder may not: it differs between machines.
        corpora = [file for file in suite_files(suite, self._data_dir) if str(file) not in own]
        if corpora and Path(suite).is_file():
            files[f"the corpora of {suite}"] = corpora
        plain, beside = {}, {}
        for name, found in files.items():
            if Path(name).is_file():
                plain[name] = digest_files([Path(name)], self._digests)
            else:
                beside[name] = digest_files(found, self._digests, name=name)
        everything = {
            str(file): self._digests[file]
            for found in files.values()
            for file in found
            if file in self._digests  # not a folder, whose files are here
        }
        return {"content": plain, "beside": beside, "files": everything}

    def _tried(self) -> list[tuple[Line, dict[str, Any], list[list[Cell]]]]:
        """Every grid point of the rows that have several, with its cells."""
        seeds = self._plan.grid_seeds or self._plan.seeds[:1]
        count = self._plan.folds
        folds = [(number, count) for number in range(1, count + 1)] if count else [None]
        return [
            (
                line,
                point,
                [self._cells(line, point, s, measure=False, fold=fold) for s in seeds for fold in folds],
            )
            for line in self._lines
            for point in self._plan.points(line.setting)
            if self._has_grid(line.setting)
        ]

    def _has_grid(self, setting: Setting) -> bool:
        return len(self._plan.points(setting)) > 1

    def grid_cells(self) -> list[Cell]:
        """The cells of the grid search; they are measured on dev and never on test data."""
        return [cell for *_, runs in self._tried() for run in runs for cell in run]

    def settled_cells(self) -> list[Cell]:
        """The final cells of the rows that have only one grid point."""
        rows = zip(self._lines, self.final_cells(), strict=True)
        settled = [runs for line, runs in rows if not self._has_grid(line.setting)]
        return [cell for runs in settled for run in runs for cell in run]

    def final_cells(self) -> list[list[list[Cell]]]:
        """For each row and seed, the cells of that run at the chosen grid point."""
        return [
            [self._cells(line, self._chosen[line.name], seed) for seed in self._plan.seeds]
            for line in self._lines
        ]

    def choose(self, read: Read) -> None:
        """Choose the grid point with the best mean dev score for each row, and record the whole search.

        The mean is over seeds and, if the experiment has folds, over the folds of each seed.
        """
        best: dict[tuple[str, str], float] = {}
        for line, point, runs in self._tried():
            dev = [_mean([_dev(cell, read(cell)) for cell in run]) for run in runs]
            mean = _mean(dev)
            start, setting = line.name
            tried = {"start": start, "setting": setting, "point": point, "dev": dev}
            self._grid.append(tried | ({"folds": self._plan.folds} if self._plan.folds else {}))
            if mean > best.get(line.name, float("-inf")):
                best[line.name], self._chosen[line.name] = mean, point

    def result(
        self, read: Read, arrays: Callable[[Cell], Arrays], *, keep_predictions: bool = False
    ) -> ExperimentResult:
        """The result, from the files of the final cells; with their predictions if `keep_predictions`."""
        plan, final = self._plan, self.final_cells()
        first = {line.name: runs[0] for line, runs in zip(self._lines, final, strict=True)}
        made = tuple(
            make_row(
                *line.name,
                self._chosen[line.name],
                [[read(cell) for cell in run] for run in runs],
                family=line.setting.name if line.tasks else "",
                tasks=line.tasks,
            )
            for line, runs in zip(self._lines, final, strict=True)
        )
        sample = max((read(runs[0][0]) for runs in final), key=lambda cell: len(cell["stages"]))
        about = {
            "versions": sample["versions"],
            "device": sample["device"],
            "matmul": sample["matmul"],
            "precision": self._precision,
            "fingerprints": {s["name"]: s["fingerprints"] for s in sample["stages"]},
            "suite": plan.suite,
            "base": plan.base,
            **_origin([read(cell) for runs in final for run in runs for cell in run]),
        }
        kept = None
        if keep_predictions:
            kept = gather(
                (*line.name, run[0].seed, [(read(cell), arrays(cell)) for cell in run])
                for line, runs in zip(self._lines, final, strict=True)
                for run in runs
            )
        related = self._related(first, made, read, arrays)
        return ExperimentResult(
            plan.name,
            plan.description,
            plan.recipe,
            self._baseline(),
            made,
            self._grid,
            about,
            related,
            plan.margin,
            kept,
        )

    def _baseline(self) -> str:
        """The baseline row; of a setting with many rows, the row with all tasks together."""
        named = self._plan.baseline or self._plan.setting[0].name
        lines = [line for line in self._lines if line.setting.name == named]
        return max(lines, key=lambda line: len(line.tasks)).name[1]

    def _related(
        self,
        first: dict[tuple[str, str], list[Cell]],
        rows: Sequence[ResultRow],
        read: Read,
        arrays: Callable[[Cell], Arrays],
    ) -> tuple[RelatedReport, ...]:
        """Correlations between relations, from the first seed of each start's joint and single settings."""
        found: list[RelatedReport] = []
        for start in self._plan.start:
            here = [row for row in whole(rows) if row.start == start.name]
            chosen = [
                next((row for row in here if (row.models > 1) == alone), None) for alone in (False, True)
            ]
            joint, single = (
                [(read(cell), arrays(cell)) for cell in first[start.name, row.setting]] if row else []
                for row in chosen
            )
            found += relate(start.name, joint, single)
        return tuple(found)


def _flat(files: Files) -> list[Path]:
    return [file for found in files.values() for file in found]


def _dev(cell: Cell, document: dict[str, Any]) -> float:
    """The dev number that a grid point is chosen by."""
    if document["dev"] is None:
        raise EvaluationError(
            f"{cell.setting} seed {cell.seed} {cell.overrides}: no evaluation on dev gave a number, so no "
            "grid point can be chosen. Give the last stage dev rows, or lower learning_rate."
        )
    return float(document["dev"])


def _origin(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The origin of the numbers: what made the cells, and the data that they read and were measured on.

    Cells that earlier versions wrote do not record their commit and machine.
    """
    told = ("commit", "versions", "machine", "device")
    makers: list[dict[str, Any]] = []
    for cell in cells:
        maker = {key: cell.get(key, "") for key in told}
        known = next((one for one in makers if {key: one[key] for key in told} == maker), None)
        if known is None:
            makers.append(maker | {"cells": 1})
        else:
            known["cells"] += 1
    tests = {
        task["name"]: {key: task[key] for key in ("n", "fingerprint", "pairs") if key in task}
        for cell in cells
        for result in cell.get("results", {}).values()
        for task in result["tasks"]
    }
    content = {name: digest for cell in cells for name, digest in cell.get("content", {}).items()}
    return {"made_by": makers, "test_rows": tests, "content": content}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
