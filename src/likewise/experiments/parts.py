"""Recipes of some of a recipe's relations, for settings that do not train all of them."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from likewise.errors import Problem, RecipeError
from likewise.schema.recipe import Recipe

# 63 models per seed; every further relation doubles them.
MOST_TASKS = 6


def one_by_one(recipe: Recipe, names: Collection[str] = ()) -> dict[str, Recipe]:
    """For each relation of the last stage, or each of `names`, a recipe that learns only this relation."""
    known = _several(recipe, "relation")
    if unknown := [name for name in names if name not in known]:
        found = f"{unknown[0]!r} is not a relation of the last stage ({', '.join(known)})"
        raise RecipeError([Problem(f"{recipe.name}: relations", found)])
    return {name: only(recipe, [name]) for name in names or known}


def task_sets(recipe: Recipe) -> list[tuple[str, ...]]:
    """Every non-empty set of the last stage's relations, small ones first; `only` makes their recipes."""
    wanted = _several(recipe, "subset")
    if len(wanted) > MOST_TASKS:
        models = 2 ** len(wanted) - 1
        found = f'each = "subset" with {len(wanted)} relations would train {models} models per seed'
        raise RecipeError([Problem(recipe.name, found, f"use a recipe of at most {MOST_TASKS} relations")])
    sizes = range(1, len(wanted) + 1)
    return [names for size in sizes for names in itertools.combinations(wanted, size)]


def _several(recipe: Recipe, each: str) -> list[str]:
    wanted = learnt(recipe)
    if len(wanted) < 2:
        found = "the recipe learns only one relation, so there are no parts to train"
        raise RecipeError([Problem(recipe.name, found, f'remove each = "{each}"')])
    return wanted


def only(recipe: Recipe, names: Collection[str]) -> Recipe:
    """The recipe of some relations of the last stage.

    A stage keeps only those of its relations that are in `names`; a stage without any of them is pre-training
    and stays as it is. With all relations, this is the recipe itself, so its cells have the same keys.
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
    """The recipe whose last stage uses part k of K of its training rows as dev and trains on the rest."""
    return recipe.model_copy(update={"stage": (*recipe.stage[:-1], recipe.stage[-1].with_fold(fold))})


def learnt(recipe: Recipe) -> list[str]:
    """The relations of the last stage, each once."""
    return list(recipe.stage[-1].answers(recipe.relation))
