"""A recipe taken apart: one recipe per relation, for the settings that train each relation alone."""

from __future__ import annotations

from likewise.errors import Problem, RecipeError
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_parts import DataSpec
from likewise.recipes.schema_stages import AnyStage, LabelStageSpec, StageSpec


def one_by_one(recipe: Recipe) -> dict[str, Recipe]:
    """Per relation of the last stage a recipe that learns it alone; stages about other relations stay.

    A stage that learns several relations keeps the one asked for; one without it is pre-training and stays.
    """
    wanted = _learnt(recipe)
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
    made = {}
    for name in wanted:
        stages = tuple(_alone(stage, name, wanted) for stage in recipe.stage)
        used = {o.relation for stage in stages if isinstance(stage, StageSpec) for o in stage.objective}
        used |= {task for stage in stages if isinstance(stage, LabelStageSpec) for task in stage.task}
        relations = {key: spec for key, spec in recipe.relation.items() if key in used}
        made[name] = recipe.model_copy(update={"stage": stages, "relation": relations})
    return made


def _learnt(recipe: Recipe) -> list[str]:
    """The relations of the last stage, each once."""
    last = recipe.stage[-1]
    if isinstance(last, LabelStageSpec):
        return list(last.task or recipe.relation)
    objectives = last.objective if isinstance(last, StageSpec) else ()
    return list(dict.fromkeys(objective.relation for objective in objectives))


def _one_task(stage: LabelStageSpec, name: str) -> LabelStageSpec:
    """One task, and of the data what may label it."""

    def mine(specs: tuple[DataSpec, ...]) -> tuple[DataSpec, ...]:
        return tuple(spec for spec in specs if not spec.columns or name in spec.columns)

    return stage.model_copy(
        update={"task": (name,), "weights": {}, "data": mine(stage.data), "dev": mine(stage.dev)}
    )


def _alone(stage: AnyStage, name: str, wanted: list[str]) -> AnyStage:
    if isinstance(stage, LabelStageSpec):
        return _one_task(stage, name)
    if not isinstance(stage, StageSpec) or not any(
        objective.relation == name for objective in stage.objective
    ):
        return stage
    kept = tuple(o for o in stage.objective if o.relation == name or o.relation not in wanted)
    if len(kept) == 1:  # a weight is a share against the others; alone it would only rescale the loss
        kept = (kept[0].model_copy(update={"weight": 1.0}),)
    return stage.model_copy(update={"objective": kept, "schedule": "single"})
