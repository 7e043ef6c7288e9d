"""The shape of an experiment file: one recipe, named settings, seeds, an optional grid chosen on dev."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from likewise.documents import FileName, Seed, Title, read_toml, validate
from likewise.errors import Problem, RecipeError
from likewise.evaluation.metrics import METRICS

# What a grid tries for one path: without a value it would have no point at all.
_Values = Annotated[list[Any], Field(min_length=1)]


class ExperimentPart(BaseModel):
    """Base of all parts of an experiment file: unknown keys are errors, and values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Added(ExperimentPart):
    """A task that is left out of training, and how it is added to the trained model."""

    task: str
    mode: Literal["before", "zero", "hot"] = Field(description="before: the task is not added")
    rehearse: float = Field(default=0.0, ge=0, le=1, description="share of old texts trained on again (hot)")
    set: dict[str, Any] = Field(default_factory=dict, description="key of the stage → value (hot)")


class Setting(ExperimentPart):
    """One row of the table: a name and the changes that it makes in the recipe."""

    name: Title
    recipe: str | None = Field(default=None, description="another recipe than the experiment's")
    set: dict[str, Any] = Field(default_factory=dict, description="recipe path → value")
    grid: dict[str, _Values] | None = Field(
        default=None, description="its own grid instead of the experiment's"
    )
    stages: int | None = Field(
        default=None, ge=0, description="train only the recipe's first stages; 0: measure the raw encoder"
    )
    each: Literal["relation", "subset"] | None = Field(
        default=None,
        description="'relation': one model for each relation; 'subset': one for every set of relations",
    )
    add: Added | None = Field(default=None, description="a task that is added after training")


class Start(ExperimentPart):
    """A starting point of training; every setting is run from every start."""

    name: Title
    set: dict[str, Any] = Field(default_factory=dict, description="recipe path → value, usually encoder.…")


class Check(ExperimentPart):
    """An additional number of each run: how well the model answers a relation on some rated pairs."""

    name: Title
    source: str
    relation: str
    metric: str = "accuracy"

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, metric: str) -> str:
        if metric not in METRICS:
            raise ValueError(f"it is not one of the metrics {', '.join(METRICS)}")
        return metric


class Experiment(ExperimentPart):
    """A whole experiment file."""

    name: FileName
    description: str = ""
    recipe: str
    seeds: tuple[Seed, ...] = Field(default=(1, 2, 3), min_length=1)
    relations: tuple[str, ...] = Field(
        default=(), description="relations that each = 'relation' trains; all of the recipe's if empty"
    )
    base: dict[str, Any] = Field(default_factory=dict, description="recipe path → value, for every setting")
    start: tuple[Start, ...] = Field(default=(Start(name=""),), min_length=1)
    setting: tuple[Setting, ...] = Field(min_length=1)
    grid: dict[str, _Values] = Field(
        default_factory=dict, description="recipe path → values; the best on dev is chosen"
    )
    grid_seeds: tuple[Seed, ...] = Field(
        default=(), description="seeds of the grid search; the first seed if empty"
    )
    folds: int | None = Field(
        default=None,
        ge=2,
        le=1000,
        description="number of folds of the training rows over which the grid's dev score is averaged",
    )
    suite: str = "sts7"
    sources: tuple[Literal["answer", "cosine", "head", "mean", "matcher"], ...] = Field(
        default=(), min_length=1, description="sources of scores; the suite's source if left out"
    )
    check: tuple[Check, ...] = ()
    baseline: str = Field(
        default="", description="setting with which the others are compared; the first if empty"
    )
    margin: float = Field(
        default=0.5,
        gt=0,
        description="loss that a joint model may have and still be advised: points, or % of an error",
    )

    def points(self, setting: Setting) -> list[dict[str, Any]]:
        """All grid points of a setting as recipe overrides; without a grid, one empty point."""
        grid = self.grid if setting.grid is None else setting.grid
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def read_experiment(path: Path) -> Experiment:
    """Read and validate an experiment file; an error names all problems at once."""
    experiment = validate(Experiment, read_toml(path, "experiment"), str(path))
    names = [setting.name for setting in experiment.setting]
    if len(set(names)) != len(names):
        same = Problem(f"{path}: setting", "two settings have the same name", "name them differently")
        raise RecipeError([same])
    if experiment.baseline and experiment.baseline not in names:
        raise RecipeError(
            [Problem(f"{path}: baseline", f"{experiment.baseline!r} is not a setting ({', '.join(names)})")]
        )
    where = str(path)
    if problems := _size_problems(experiment, where):
        raise RecipeError(problems)
    found = (_repeat_problems, _subset_problems, _fold_problems)
    if problems := [problem for find in found for problem in find(experiment, where)]:
        raise RecipeError(problems)
    return experiment


# Trainings of one file: nobody waits for more, and a mistyped grid would fill the memory with their list.
_MOST_POINTS, _MOST_SEEDS, _MOST_TRAININGS = 2_000, 1_000, 20_000


def _size_problems(experiment: Experiment, where: str) -> list[Problem]:
    """Problems of grids and lists of seeds that are too large."""
    problems = []
    for key, seeds in (("seeds", experiment.seeds), ("grid_seeds", experiment.grid_seeds)):
        if len(seeds) > _MOST_SEEDS:
            found = f"there are {len(seeds):,} seeds, but at most {_MOST_SEEDS:,} are allowed"
            problems.append(Problem(f"{where}: {key}", found, "name fewer seeds"))
    for number, setting in enumerate(experiment.setting):
        grid = experiment.grid if setting.grid is None else setting.grid
        points = math.prod(len(values) for values in grid.values())
        if points > _MOST_POINTS:
            place = "grid" if setting.grid is None else f"setting.{number}.grid"
            found = f"the grid has {points:,} points, but at most {_MOST_POINTS:,} are allowed"
            problems.append(Problem(f"{where}: {place}", found, "name fewer values"))
    if not problems and (trainings := _trainings(experiment)) > _MOST_TRAININGS:
        found = f"the experiment needs {trainings:,} runs, but at most {_MOST_TRAININGS:,} are allowed"
        problems.append(Problem(where, found, "name fewer settings, seeds, folds or grid values"))
    return problems


def _trainings(experiment: Experiment) -> int:
    """The number of models that a file trains, including grid points and folds."""
    total = 0
    for setting in experiment.setting:
        points = len(experiment.points(setting))
        tried = points * max(1, len(experiment.grid_seeds)) * (experiment.folds or 1) if points > 1 else 0
        total += tried + len(experiment.seeds)
    return total * len(experiment.start)


def _repeat_problems(experiment: Experiment, where: str) -> list[Problem]:
    """Problems of repeated values: the same run would count twice, and the spread would look smaller."""
    named: list[tuple[str, list[Any]]] = [
        ("seeds", list(experiment.seeds)),
        ("grid_seeds", list(experiment.grid_seeds)),
        ("sources", list(experiment.sources)),
        ("start", [start.name for start in experiment.start]),
        ("check", [check.name for check in experiment.check]),
    ]
    named += [(f"grid.{key}", values) for key, values in experiment.grid.items()]
    for number, setting in enumerate(experiment.setting):
        named += [(f"setting.{number}.grid.{key}", values) for key, values in (setting.grid or {}).items()]
    problems = []
    for key, values in named:
        twice = [value for place, value in enumerate(values) if value in values[:place]]
        if twice:
            found = f"{twice[0]!r} is named twice and would count twice"
            problems.append(Problem(f"{where}: {key}", found, "name each value once"))
    return problems


def _fold_problems(experiment: Experiment, where: str) -> list[Problem]:
    """The problem of folds without a grid, which they are meant to choose from."""
    if experiment.folds and all(len(experiment.points(one)) < 2 for one in experiment.setting):
        return [
            Problem(f"{where}: folds", "no setting has a grid to choose from", "add [grid] or remove folds")
        ]
    return []


def _subset_problems(experiment: Experiment, where: str) -> list[Problem]:
    """Problems of keys that cannot be combined with `each = "subset"`."""
    problems = []
    for number, setting in enumerate(experiment.setting):
        if setting.each != "subset":
            continue
        path = f"{where}: setting.{number}.each"
        if setting.stages == 0:
            found = "with stages = 0 nothing is trained, so all sets of tasks are the same"
            problems.append(Problem(path, found, "remove stages = 0"))
        if setting.add is not None:
            found = 'each = "subset" cannot be combined with add'
            problems.append(Problem(path, found, "remove one of the two"))
        if experiment.check:
            found = "a check would ask models for relations that they did not learn"
            problems.append(Problem(path, found, "remove the check"))
    return problems
