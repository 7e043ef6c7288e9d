"""A recipe taken apart: some of its relations alone, for the settings that train fewer than all."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from likewise.errors import Problem, RecipeError
from likewise.schema.recipe import Recipe

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
    stages = tuple(stage.only(names, wanted) for stage in recipe.stage)
    used = {name for stage in stages for _, name in stage.named()}
    used |= {name for stage in stages for name in stage.rates(recipe.relation) if not list(stage.named())}
    relations = {key: spec for key, spec in recipe.relation.items() if key in used}
    return recipe.model_copy(update={"stage": stages, "relation": relations})


def with_fold(recipe: Recipe, fold: tuple[int, int]) -> Recipe:
    """The recipe whose last stage has part k of K of its training rows as dev, and trains on the rest."""
    return recipe.model_copy(update={"stage": (*recipe.stage[:-1], recipe.stage[-1].with_fold(fold))})


def learnt(recipe: Recipe) -> list[str]:
    """The relations of the last stage, each once."""
    return list(recipe.stage[-1].answers(recipe.relation))
