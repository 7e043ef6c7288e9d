"""A stage that fine-tunes a joint encoder on rated or labelled rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.errors import DataError, EvaluationError, Problem, RecipeError
from likewise.evaluation.metrics import compute
from likewise.methods.joint import JointModel, load_joint
from likewise.predict import JointPredictor
from likewise.recipes.build import build_relations, build_settings
from likewise.recipes.devscore import DevSet, tells_models_apart, warn_if_falling
from likewise.recipes.runfiles import Place, stage_report
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import JointStageSpec
from likewise.recipes.stages import StageData, stage_relations
from likewise.records import Record, Relation
from likewise.wording import WORST, counted

if TYPE_CHECKING:
    from likewise.recipes.context import RunContext


def start_joint(recipe: Recipe, stage: JointStageSpec, data: StageData, *, device: str | None) -> JointModel:
    """The model before its first step; it reads as many texts as the rows hold."""
    [relation] = stage_relations(recipe, stage).values()
    texts = len(data.train[0].texts)
    if recipe.encoder.kind != "pretrained":
        found = f"kind {recipe.encoder.kind!r} is no transformer, which alone reads two texts as one"
        raise RecipeError([Problem("encoder.kind", found, "name a checkpoint (encoder.name)")])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return load_joint(
            recipe.encoder.name, relation, texts=texts, max_length=stage.max_length, device=device
        )


def joint_plan_lines(
    recipe: Recipe, number: int, stage: JointStageSpec, model: JointModel, data: StageData
) -> list[str]:
    """What the stage will do, said before it does it."""
    from likewise.training.preparing import plan

    steps = plan(model, data.train, build_settings(stage, seed=recipe.seed), data.weights)
    dev = ", ".join(f"{entry.name} {len(entry.records):,}" for entry in data.dev) or "none"
    capped = model.max_length < stage.max_length
    rows = counted(steps.pairs, "text" if model.texts == 1 else "pair")
    form = "" if model.texts == 1 else " read as one input"
    return [
        f"stage {number} {stage.name}".rstrip() + f": {rows}{form}, dev {dev}",
        f"  learns {model.relation.name} ({model.relation.scale})",
        f"  {counted(steps.steps, 'step')}, {steps.steps_per_epoch:,} an epoch, batch {stage.batch_size}, "
        f"{stage.optimiser} at {stage.learning_rate:g}, seed {recipe.seed}",
        *([f"  cut at {model.max_length} pieces, all that the encoder reads"] if capped else []),
        *(f"  {line}" for line in data.leakage),
    ]


def run_joint(
    recipe: Recipe, stage: JointStageSpec, data: StageData, place: Place, context: RunContext
) -> tuple[JointModel, list[dict[str, Any]]]:
    """Fine-tune on a stage's rows."""
    from likewise.training.fit import fit

    model = start_joint(recipe, stage, data, device=context.device)
    if model.relation.kind == "graded" and stage.targets == "standardised":
        model.standardise([model.target(value) for value in _values(data.train, model.relation)])
    for line in joint_plan_lines(recipe, 0, stage, model, data):
        context.tell(line)
    report = fit(
        model,
        data.train,
        settings=context.settings(recipe, stage),
        weights=data.weights,
        evaluate=_measured_by(stage, data.dev, model.relation, context),
        metric="score",
        emit=context.emit,
        resumable=place.resumable,
        **place.options(0),
    )
    warn_if_falling(report.best_value, model.relations)
    model.settle()
    return model, [stage_report(stage.name or "stage 0", report, data)]


def _measured_by(
    stage: JointStageSpec, sets: Sequence[DevSet], relation: Relation, context: RunContext
) -> Callable[[JointModel], dict[str, float]] | None:
    """What looks at dev; rows that tell no model from another are refused where dev selects, else left."""
    rated = [DevSet(entry.name, _rated(entry.records, relation)) for entry in sets]
    useful = [one for one in rated if tells_models_apart(relation.metric, _values(one.records, relation))]
    if useful or not sets:
        return joint_scorer(useful, relation, precision=context.precision) if useful else None
    names = ", ".join(entry.name for entry in sets)
    found = f"too few values of {relation.name}, or all of them the same"
    if stage.select:
        remedy = "give more dev rows (stage.0.dev), or a larger stage.0.dev_share"
        raise DataError([Problem(names, found, remedy)])
    context.tell(f"  {names} is not measured: {found}")
    return None


def _rated(records: Sequence[Record], relation: Relation) -> list[Record]:
    return [record for record in records if record.values.get(relation.name) is not None]


def _values(records: Sequence[Record], relation: Relation) -> list[object]:
    return [record.values[relation.name] for record in _rated(records, relation)]


def joint_scorer(
    sets: Sequence[DevSet], relation: Relation, *, precision: str
) -> Callable[[JointModel], dict[str, float]]:
    """A function of the model that gives its metric on each dev set, and their mean as `score`."""

    def evaluate(model: JointModel) -> dict[str, float]:
        training = model.training
        predictor = JointPredictor(model, precision=precision)
        numbers = {}
        for entry in sets:
            found = predictor.answer([record.texts for record in entry.records], relation.name).values
            name = f"{relation.metric} {relation.name} {entry.name}"
            try:
                numbers[name] = compute(relation.metric, _values(entry.records, relation), found)  # type: ignore[arg-type]
            except EvaluationError:
                numbers[name] = WORST
        model.train(training)
        return {"score": float(np.mean(list(numbers.values()))), **numbers}

    return evaluate


def check_joint(recipe: Recipe) -> None:
    """Refuse a relation that a joint encoder cannot answer, before anything is read."""
    for name, relation in build_relations(recipe).items():
        if relation.kind == "ordered":
            raise RecipeError(
                [Problem(f"relation.{name}.kind", "labels with an order", 'use "graded" or "classes"')]
            )
