"""A task that comes later: a model is trained without it, then given it, as `likewise update` does.

Settings that add the same task to the same training share the model before it: it is trained once and kept.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from filelock import FileLock

from likewise.errors import Problem, RecipeError
from likewise.experiments.parts import learnt, only
from likewise.experiments.schema import Added
from likewise.predict import load_classifier
from likewise.recipes.context import RunContext
from likewise.recipes.labels import label_stages
from likewise.recipes.run import RunReport, run_recipe
from likewise.recipes.schema import Recipe
from likewise.recipes.stages import stage_relations
from likewise.recipes.update import add_labels, train_on


def run_with_added(recipe: Recipe, added: Added, models: Path, *, context: RunContext) -> RunReport:
    """Train the recipe without a task, then add it; models before the update are kept in `models`."""
    _check(recipe, added)
    old = only(recipe, [name for name in learnt(recipe) if name != added.task])
    classifier = load_classifier(
        _trained(old, models, context), device=context.device, precision=context.precision
    )
    stages = list(classifier.about["stages"])
    if added.mode != "before":
        relation = stage_relations(recipe, label_stages(recipe)[-1][1])[added.task]
        add_labels(classifier, relation)
        if added.mode == "hot":
            own = _changed(only(recipe, [added.task]), added)
            trained = train_on(classifier, relation, own, old, rehearse=added.rehearse, context=context)
            stages.append(dict(trained.report))
    return RunReport(None, stages, classifier)


def _check(recipe: Recipe, added: Added) -> None:
    tasks = learnt(recipe)
    if not label_stages(recipe):
        raise RecipeError([Problem(recipe.name, "learns no labels: a task cannot be added", "drop add")])
    if added.task not in tasks or len(tasks) < 2:
        found = f"{added.task!r} is not one of several tasks: {', '.join(tasks)}"
        raise RecipeError([Problem(f"{recipe.name}: add", found, "name a task of the recipe")])


def _trained(old: Recipe, models: Path, context: RunContext) -> Path:
    """The model without the task, trained by whoever comes first."""
    document = json.dumps(
        [old.model_dump(mode="json", exclude_defaults=True), context.precision], sort_keys=True
    )
    folder = models / f"{old.name}-{hashlib.sha256(document.encode()).hexdigest()[:12]}"
    models.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            run_recipe(old, folder, context=context, overwrite=True)
    return folder


def _changed(own: Recipe, added: Added) -> Recipe:
    """The new task's recipe with what is set for the update."""
    stage = own.stage[-1]
    changed = type(stage).model_validate({**stage.model_dump(), **added.set})
    return own.model_copy(update={"stage": (*own.stage[:-1], changed)})
