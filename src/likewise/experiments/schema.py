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
    """Unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Added(ExperimentPart):
    """A task of the recipe that is left out at first, and how the trained model is given it."""

    task: str
    mode: Literal["before", "zero", "hot"] = Field(description="before: not at all")
    rehearse: float = Field(default=0.0, ge=0, le=1, description="share of the old texts shown again (hot)")
    set: dict[str, Any] = Field(default_factory=dict, description="key of the stage → value while it is hot")


class Setting(ExperimentPart):
    """One row of the table: a name and what it changes in the recipe."""

    name: Title
    recipe: str | None = Field(default=None, description="another recipe than the experiment's")
    set: dict[str, Any] = Field(default_factory=dict, description="recipe path → value")
    grid: dict[str, _Values] | None = Field(
        default=None, description="its own grid instead of the experiment's"
    )
    stages: int | None = Field(
        default=None, ge=0, description="only the recipe's first stages; 0: the encoder as it is"
    )
    each: Literal["relation", "subset"] | None = Field(
        default=None,
        description="'relation': one model per relation instead of one for all; 'subset': every set of them",
    )
    add: Added | None = Field(default=None, description="a task that comes later, for label recipes")


class Start(ExperimentPart):
    """Where training starts from: every setting is run from every start."""

    name: Title
    set: dict[str, Any] = Field(default_factory=dict, description="recipe path → value, usually encoder.…")


class Check(ExperimentPart):
    """A further number per cell: the model's answer for a relation on some rated pairs."""

    name: Title
    source: str
    relation: str
    metric: str = "accuracy"

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, metric: str) -> str:
        if metric not in METRICS:
            raise ValueError(f"it is not one of {', '.join(METRICS)}")
        return metric


class Experiment(ExperimentPart):
    """A whole experiment."""

    name: FileName
    description: str = ""
    recipe: str
    seeds: tuple[Seed, ...] = Field(default=(1, 2, 3), min_length=1)
    relations: tuple[str, ...] = Field(
        default=(), description="those that each = 'relation' trains; all of the recipe's if empty"
    )
    base: dict[str, Any] = Field(default_factory=dict, description="recipe path → value, for every setting")
    start: tuple[Start, ...] = Field(default=(Start(name=""),), min_length=1)
    setting: tuple[Setting, ...] = Field(min_length=1)
    grid: dict[str, _Values] = Field(
        default_factory=dict, description="recipe path → values; best on dev wins"
    )
    grid_seeds: tuple[Seed, ...] = Field(
        default=(), description="seeds of the grid search; the first seed if empty"
    )
    folds: int | None = Field(
        default=None,
        ge=2,
        le=1000,
        description="the grid is chosen by the mean over so many folds of the training rows",
    )
    suite: str = "sts7"
    sources: tuple[Literal["answer", "cosine", "head", "mean", "matcher"], ...] = Field(
        default=(), min_length=1, description="where scores come from; what the suite names if left out"
    )
    check: tuple[Check, ...] = ()
    baseline: str = Field(
        default="", description="setting that the others are tested against; the first if empty"
    )
    margin: float = Field(
        default=0.5,
        gt=0,
        description="what one model may lose against many and still be advised: points, or % of an error",
    )

    def points(self, setting: Setting) -> list[dict[str, Any]]:
        """All grid points of a setting, as recipe overrides; one empty point without a grid."""
        grid = self.grid if setting.grid is None else setting.grid
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def read_experiment(path: Path) -> Experiment:
    """Read and validate an experiment file; every problem at once."""
    experiment = validate(Experiment, read_toml(path, "experiment"), str(path))
    names = [setting.name for setting in experiment.setting]
    if len(set(names)) != len(names):
        raise RecipeError([Problem(f"{path}: setting", "two settings share a name", "name them differently")])
    if experiment.baseline and experiment.baseline not in names:
        raise RecipeError(
            [Problem(f"{path}: baseline", f"{experiment.baseline!r} is not one of {', '.join(names)}")]
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
    """Grids and lists of seeds that nobody means."""
    problems = []
    for key, seeds in (("seeds", experiment.seeds), ("grid_seeds", experiment.grid_seeds)):
        if len(seeds) > _MOST_SEEDS:
            found = f"has {len(seeds):,} seeds, at most {_MOST_SEEDS:,} are run"
            problems.append(Problem(f"{where}: {key}", found, "name fewer"))
    for number, setting in enumerate(experiment.setting):
        grid = experiment.grid if setting.grid is None else setting.grid
        points = math.prod(len(values) for values in grid.values())
        if points > _MOST_POINTS:
            place = "grid" if setting.grid is None else f"setting.{number}.grid"
            found = f"has {points:,} points, at most {_MOST_POINTS:,} are tried"
            problems.append(Problem(f"{where}: {place}", found, "name fewer values"))
    if not problems and (trainings := _trainings(experiment)) > _MOST_TRAININGS:
        found = f"asks for {trainings:,} trainings, at most {_MOST_TRAININGS:,} are run"
        problems.append(Problem(where, found, "name fewer settings, seeds, folds or grid values"))
    return problems


def _trainings(experiment: Experiment) -> int:
    """How many models a file asks for, grid points and folds included."""
    total = 0
    for setting in experiment.setting:
        points = len(experiment.points(setting))
        tried = points * max(1, len(experiment.grid_seeds)) * (experiment.folds or 1) if points > 1 else 0
        total += tried + len(experiment.seeds)
    return total * len(experiment.start)


def _repeat_problems(experiment: Experiment, where: str) -> list[Problem]:
    """Numbers that are named twice: the same training would be counted as two, and spread look smaller."""
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
            found = f"{twice[0]!r} stands there twice, and would be counted twice"
            problems.append(Problem(f"{where}: {key}", found, "name each once"))
    return problems


def _fold_problems(experiment: Experiment, where: str) -> list[Problem]:
    """Folds choose grid points: without any they would be trained for nothing, or silently left out."""
    if experiment.folds and all(len(experiment.points(one)) < 2 for one in experiment.setting):
        return [
            Problem(f"{where}: folds", "no setting has a grid to choose from", "add [grid], or drop folds")
        ]
    return []


def _subset_problems(experiment: Experiment, where: str) -> list[Problem]:
    """What cannot stand beside `each = "subset"`: it would fail after hours, or say nothing."""
    problems = []
    for number, setting in enumerate(experiment.setting):
        if setting.each != "subset":
            continue
        path = f"{where}: setting.{number}.each"
        if setting.stages == 0:
            problems.append(Problem(path, "nothing is trained, so every set is the same", "drop stages = 0"))
        if setting.add is not None:
            problems.append(Problem(path, "sets of tasks and a task that comes later", "drop one of the two"))
        if experiment.check:
            problems.append(Problem(path, "a check asks models for relations they never learnt", "drop it"))
    return problems
