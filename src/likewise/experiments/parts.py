"""A recipe taken apart: some of its relations alone, for the settings that train fewer than all."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from likewise.errors import Problem, RecipeError
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import (
    AnyStage,
    JointStageSpec,
    LabelStageSpec,
    StageSpec,
    TrainedStageSpec,
)
from likewise.recipes.stages import rating

# 63 models per seed; every further relation doubles them.
MOST_TASKS = 6


def one_by_one(recipe: Recipe, names: Collection[str] = ()) -> dict[str, Recipe]:
    """Per relation of the last stage, or of these, a recipe that learns it alone."""
    known = _several(recipe, "relation")
    if unknown := [name for name in names if name not in known]:
        found = f"{unknown[0]!r} is not one of {', '.join(known)}"
        raise RecipeError([Problem(f"{recipe.name}: relations", found)])
    return {name: only(recipe, [name]) for name in names or known}


def task_sets(recipe: Recipe) -> list[tuple[str, ...]]:
    """Every non-empty set of the last stage's relations, small ones first; `only` gives their recipes."""
    wanted = _several(recipe, "subset")
    if len(wanted) > MOST_TASKS:
        found = f'each = "subset" of {len(wanted)} relations would train {2 ** len(wanted) - 1} models a seed'
        raise RecipeError([Problem(recipe.name, found, f"take a recipe of at most {MOST_TASKS} relations")])
    sizes = range(1, len(wanted) + 1)
    return [names for size in sizes for names in itertools.combinations(wanted, size)]


def _several(recipe: Recipe, each: str) -> list[str]:
    wanted = learnt(recipe)
    if len(wanted) < 2:
        found = "learns one relation: there is nothing to take apart"
        raise RecipeError([Problem(recipe.name, found, f'drop each = "{each}"')])
    return wanted


def only(recipe: Recipe, names: Collection[str]) -> Recipe:
    """The recipe of some relations of the last stage; stages about other relations stay.

    A stage that learns several relations keeps those asked for; one without any is pre-training and stays.
    All of them are the recipe itself: it is the same training, and its cells are called the same.
    """
    wanted = learnt(recipe)
    if set(wanted) <= set(names):
        return recipe
    stages = tuple(_part(stage, names, wanted) for stage in recipe.stage)
    used = {o.relation for stage in stages if isinstance(stage, StageSpec) for o in stage.objective}
    used |= {task for stage in stages if isinstance(stage, LabelStageSpec) for task in stage.task}
    used |= {stage.relation for stage in stages if isinstance(stage, JointStageSpec)}
    relations = {key: spec for key, spec in recipe.relation.items() if key in used}
    return recipe.model_copy(update={"stage": stages, "relation": relations})


def with_fold(recipe: Recipe, fold: tuple[int, int]) -> Recipe:
    """The recipe whose last stage has part k of K of its training rows as dev, and trains on the rest."""
    last = recipe.stage[-1]
    if not isinstance(last, TrainedStageSpec):
        found = f"a stage of kind {last.kind!r} has no folds"
        raise RecipeError([Problem(recipe.name, found, "drop folds, or take a recipe of pairs or labels")])
    held = last.model_copy(update={"fold": fold})
    return recipe.model_copy(update={"stage": (*recipe.stage[:-1], held)})


def learnt(recipe: Recipe) -> list[str]:
    """The relations of the last stage, each once."""
    last = recipe.stage[-1]
    if isinstance(last, LabelStageSpec):
        return list(last.task or recipe.relation)
    if isinstance(last, JointStageSpec):
        return [last.relation] if last.relation else list(recipe.relation)
    objectives = last.objective if isinstance(last, StageSpec) else ()
    return list(dict.fromkeys(objective.relation for objective in objectives))


def _part(stage: AnyStage, names: Collection[str], wanted: Collection[str]) -> AnyStage:
    if isinstance(stage, LabelStageSpec):
        return _some_tasks(stage, names, wanted)
    if isinstance(stage, JointStageSpec):
        [name] = names
        return stage.model_copy(
            update={"relation": name, "data": rating(stage.data, names), "dev": rating(stage.dev, names)}
        )
    if not isinstance(stage, StageSpec) or not any(o.relation in names for o in stage.objective):
        return stage
    kept = tuple(o for o in stage.objective if o.relation in names or o.relation not in wanted)
    if len(kept) > 1:
        return stage.model_copy(update={"objective": kept})
    # A weight is a share against the others; alone it would only rescale the loss.
    alone = kept[0].model_copy(update={"weight": 1.0})
    return stage.model_copy(update={"objective": (alone,), "schedule": "single"})


def _some_tasks(stage: LabelStageSpec, names: Collection[str], wanted: Collection[str]) -> LabelStageSpec:
    """Some tasks, and of the data what may label them."""
    tasks = tuple(name for name in wanted if name in names)
    weights = {name: weight for name, weight in stage.weights.items() if len(tasks) > 1 and name in tasks}
    return stage.model_copy(
        update={
            "task": tasks,
            "weights": weights,
            "data": rating(stage.data, names),
            "dev": rating(stage.dev, names),
        }
    )
