"""Add a task after training, as `likewise update` does: a model is first trained without it.

Settings that add the same task to the same training share the model before the update, which is trained once.
"""

from __future__ import annotations

from pathlib import Path

from likewise.data.filecache import content_key
from likewise.disk import folder_aside, own_turn
from likewise.errors import EvaluationError, Problem, RecipeError
from likewise.experiments.parts import learnt, only
from likewise.experiments.schema import Added
from likewise.kinds.base import RULES
from likewise.kinds.building import build_relations
from likewise.kinds.context import RunContext
from likewise.predict import load
from likewise.recipes.contents import digest_files, recipe_files
from likewise.recipes.run import RunReport, run_recipe
from likewise.recipes.update import extend, train_on
from likewise.schema.recipe import Recipe

# The model in its folder, which takes its name only after the files that it was made from were checked again.
_MODEL = "model"
# What an experiment says of a hot update stands in its file, so nothing is chosen for it.
_FIXED = ("learning_rate", "average", "batch_size", "epochs")


def run_with_added(recipe: Recipe, added: Added, models: Path, *, context: RunContext) -> RunReport:
    """Train the recipe without a task, then add the task; `models` keeps the models before updates."""
    _check(recipe, added)
    old = only(recipe, [name for name in learnt(recipe) if name != added.task])
    answerer = load(_trained(old, models, context), device=context.device, precision=context.precision)
    stages = list(answerer.about["stages"])
    if added.mode != "before":
        relation = build_relations(recipe)[added.task]
        extend(answerer, relation, context)
        if added.mode == "hot":
            own = _changed(only(recipe, [added.task]), added)
            trained = train_on(
                answerer, relation, own, old, rehearse=added.rehearse, fixed=_FIXED, context=context
            )
            stages.append(dict(trained.report))
    return RunReport(None, stages, answerer)


def _check(recipe: Recipe, added: Added) -> None:
    tasks = learnt(recipe)
    if not recipe.stage[-1].extendable():
        found = "the recipe trains a fixed head for each relation, so no task can be added"
        raise RecipeError([Problem(recipe.name, found, "remove add, or use a matcher or a described head")])
    if added.task not in tasks or len(tasks) < 2:
        found = f"{added.task!r} is not one of two or more tasks of the recipe ({', '.join(tasks)})"
        raise RecipeError([Problem(f"{recipe.name}: add", found, "name a task of a recipe with several")])


def _trained(old: Recipe, models: Path, context: RunContext) -> Path:
    """The model without the task; the first process that needs it trains it."""
    content = _content(old, context)
    document = old.model_dump(mode="json", exclude_defaults=True)
    folder = models / f"{old.name}-{content_key(document, context.precision, content, RULES, length=12)}"
    with own_turn(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            with folder_aside(folder) as place:
                run_recipe(old, place / _MODEL, context=context)
                if _content(old, context) != content:
                    found = "a file has changed since the experiment began, so the model is not kept"
                    raise EvaluationError(f"{found}. Run the same command again.")
    return folder / _MODEL


def _content(recipe: Recipe, context: RunContext) -> dict[str, str]:
    """Hashes of the files that a recipe reads."""
    known: dict[Path, str] = {}
    files = recipe_files(recipe, context.data_dir)
    return {name: digest_files(found, known, name=name) for name, found in files.items()}


def _changed(own: Recipe, added: Added) -> Recipe:
    """The new task's recipe with the keys that are set for the update."""
    stage = own.stage[-1]
    changed = type(stage).model_validate({**stage.model_dump(), **added.set})
    return own.model_copy(update={"stage": (*own.stage[:-1], changed)})
