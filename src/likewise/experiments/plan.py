"""One experiment file: which cells it needs, which grid points it chooses, what table comes out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from likewise.experiments.cell import Cell
from likewise.experiments.parts import one_by_one
from likewise.experiments.related import Arrays, RelatedReport, relate
from likewise.experiments.rows import Row, make_row
from likewise.experiments.schema import Experiment, Setting, Start
from likewise.experiments.summary import ExperimentResult
from likewise.recipes.reading import named_document, recipe_from

Read = Callable[[Cell], dict[str, Any]]


class Plan:
    """One experiment file: which cells it needs, which grid points it chose, what table comes out."""

    def __init__(self, plan: Experiment, device: str | None, precision: str, data_dir: str | None) -> None:
        self._plan = plan
        self._device, self._precision, self._data_dir = device, precision, data_dir
        self._rows = [(start, setting) for start in plan.start for setting in plan.setting]
        self._chosen = {_name(row): plan.points(row[1])[0] for row in self._rows}
        self._grid: list[dict[str, Any]] = []
        # Read once: a recipe that somebody edits during a long run must not change what its cells are called.
        names = {setting.recipe or plan.recipe for setting in plan.setting}
        self._documents = {name: named_document(name) for name in names}

    def _cells(
        self, start: Start, setting: Setting, point: dict[str, Any], seed: int, *, measure: bool = True
    ) -> list[Cell]:
        """The cells of a setting at a grid point with a seed: one, or one per relation.

        Grid cells are not measured on test data.
        """
        changes = {**start.set, **setting.set, **point}
        document, where = self._documents[setting.recipe or self._plan.recipe]
        recipe = recipe_from(
            copy.deepcopy(document), where, overrides={**self._plan.base, **changes, "seed": seed}
        )
        if setting.stages:
            recipe = recipe.model_copy(update={"stage": recipe.stage[: setting.stages]})
        name = f"{setting.name} {start.name}".strip()
        parts = {name: recipe}
        if setting.each == "relation":
            parts = {f"{name} ({relation})": part for relation, part in one_by_one(recipe).items()}
        return [
            Cell(
                part,
                # Without defaults: a recipe key that a later version adds leaves old cells valid.
                one.model_dump(mode="json", exclude_defaults=True),
                changes,
                seed,
                self._plan.suite,
                self._plan.sources,
                tuple(check.model_dump() for check in self._plan.check),
                measure,
                self._device,
                self._precision,
                self._data_dir,
                raw=setting.stages == 0,
                add=None if setting.add is None else setting.add.model_dump(exclude_defaults=True),
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

    def result(self, read: Read, arrays: Callable[[Cell], Arrays]) -> ExperimentResult:
        """The table, from the files of the final cells."""
        plan, final = self._plan, self.final_cells()
        first = {_name(row): runs[0] for row, runs in zip(self._rows, final, strict=True)}
        made = tuple(
            make_row(*_name(row), self._chosen[_name(row)], [[read(cell) for cell in run] for run in runs])
            for row, runs in zip(self._rows, final, strict=True)
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
        }
        baseline = plan.baseline or plan.setting[0].name
        related = self._related(first, made, read, arrays)
        return ExperimentResult(
            plan.name, plan.description, plan.recipe, baseline, made, self._grid, about, related
        )

    def _related(
        self,
        first: dict[tuple[str, str], list[Cell]],
        rows: Sequence[Row],
        read: Read,
        arrays: Callable[[Cell], Arrays],
    ) -> tuple[RelatedReport, ...]:
        """How relations hang together, by the first seed of each start's joint and single settings."""
        found: list[RelatedReport] = []
        for start in self._plan.start:
            here = [row for row in rows if row.start == start.name]
            chosen = [
                next((row for row in here if (row.models > 1) == alone), None) for alone in (False, True)
            ]
            joint, single = (
                [(read(cell), arrays(cell)) for cell in first[start.name, row.setting]] if row else []
                for row in chosen
            )
            found += relate(start.name, joint, single)
        return tuple(found)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _name(row: tuple[Start, Setting]) -> tuple[str, str]:
    return row[0].name, row[1].name
