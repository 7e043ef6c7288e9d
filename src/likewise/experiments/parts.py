"""A recipe taken apart: some of its relations alone, for the settings that train fewer than all."""

from __future__ import annotations

from collections.abc import Collection

from likewise.errors import Problem, RecipeError
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_parts import DataSpec
from likewise.recipes.schema_stages import AnyStage, LabelStageSpec, StageSpec


def one_by_one(recipe: Recipe) -> dict[str, Recipe]:
    """Per relation of the last stage a recipe that learns it alone."""
    wanted = learnt(recipe)
    if len(wanted) < 2:
        raise RecipeError(
            [
                Problem(
                    recipe.name,
                    "learns one relation: there is nothing to take apart",
                    'drop each = "relation"',
                )
            ]
        )
    return {name: only(recipe, [name]) for name in wanted}


def only(recipe: Recipe, names: Collection[str]) -> Recipe:
    """The recipe of some relations of the last stage; stages about other relations stay.

    A stage that learns several relations keeps those asked for; one without any is pre-training and stays.
    """
    wanted = learnt(recipe)
    stages = tuple(_part(stage, names, wanted) for stage in recipe.stage)
    used = {o.relation for stage in stages if isinstance(stage, StageSpec) for o in stage.objective}
    used |= {task for stage in stages if isinstance(stage, LabelStageSpec) for task in stage.task}
    relations = {key: spec for key, spec in recipe.relation.items() if key in used}
    return recipe.model_copy(update={"stage": stages, "relation": relations})


def learnt(recipe: Recipe) -> list[str]:
    """The relations of the last stage, each once."""
    last = recipe.stage[-1]
    if isinstance(last, LabelStageSpec):
        return list(last.task or recipe.relation)
    objectives = last.objective if isinstance(last, StageSpec) else ()
    return list(dict.fromkeys(objective.relation for objective in objectives))


def _part(stage: AnyStage, names: Collection[str], wanted: Collection[str]) -> AnyStage:
    if isinstance(stage, LabelStageSpec):
        return _some_tasks(stage, names, wanted)
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

    def mine(specs: tuple[DataSpec, ...]) -> tuple[DataSpec, ...]:
        return tuple(spec for spec in specs if not spec.columns or not set(names).isdisjoint(spec.columns))

    tasks = tuple(name for name in wanted if name in names)
    weights = {name: weight for name, weight in stage.weights.items() if len(tasks) > 1 and name in tasks}
    return stage.model_copy(
        update={"task": tasks, "weights": weights, "data": mine(stage.data), "dev": mine(stage.dev)}
    )
