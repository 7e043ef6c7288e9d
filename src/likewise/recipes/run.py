"""Run a recipe: per stage data → leak filter → plan → fit → next stage; then save and evaluate.

The run folder `OUTPUT.run/` holds checkpoints and is removed when the model folder is complete.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise import ranks
from likewise.methods.label_embedding import LabelModel
from likewise.predict import Answerer
from likewise.predict.families import Running, answerer_of
from likewise.recipes.build import build_objectives
from likewise.recipes.context import RunContext
from likewise.recipes.devscore import check_dev
from likewise.recipes.injection import injection_plan_lines, run_injection, start_injection
from likewise.recipes.joint import check_joint, joint_plan_lines, run_joint, start_joint
from likewise.recipes.labels import (
    check_label_stages,
    check_label_texts,
    label_stages,
    run_labels,
    start_label_model,
)
from likewise.recipes.pairs import (
    check_trainable,
    frozen_stages,
    run_pairs,
    settled_model,
    start_frozen,
    start_model,
)
from likewise.recipes.plans import frozen_plan_lines, label_plan_lines, plan_lines
from likewise.recipes.prepared import prepared_stages
from likewise.recipes.runfiles import Place, leaving_no_empty_run, open_run, run_folders
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import InjectStageSpec, JointStageSpec
from likewise.recipes.stages import StageData, stage_relations
from likewise.recipes.starting import pair_stages, start_encoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run left behind."""

    output: Path | None
    stages: list[dict[str, Any]]
    predictor: Answerer


def run_recipe(
    recipe: Recipe,
    output: str | Path | None,
    *,
    context: RunContext,
    resume: bool = False,
    overwrite: bool = False,
) -> RunReport:
    """Train every stage and write the model folder; `output` None keeps the model in memory only."""
    _check(recipe, context)
    ranks.join(context.device)
    if output is None:
        with tempfile.TemporaryDirectory(prefix="likewise-run-") as own:
            work = Path(ranks.from_first(own)) / "run"
            return _run_in(recipe, None, work, context, resume=False, overwrite=False)
    folder, work = run_folders(Path(output), resume=resume, overwrite=overwrite)
    return _run_in(recipe, folder, work, context, resume=resume, overwrite=overwrite)


def _check(recipe: Recipe, context: RunContext) -> None:
    """Refuse what cannot be trained, before anything is read."""
    if context.trackers:
        from likewise.training.fit import check_trackers

        check_trackers(context.trackers)
    check_trainable(recipe, context)
    if isinstance(recipe.stage[0], JointStageSpec):
        check_joint(recipe)


def _run_in(
    recipe: Recipe, folder: Path | None, work: Path, context: RunContext, *, resume: bool, overwrite: bool
) -> RunReport:
    stages = prepared_stages(recipe, context=context)
    # Over cached vectors the encoder itself is not needed before the end.
    open_encoder = cache(lambda: start_encoder(recipe, stages, context))
    if not frozen_stages(recipe) and not isinstance(recipe.stage[0], JointStageSpec):
        open_encoder()
    if label_stages(recipe):
        check_label_stages(recipe, open_encoder(), stages, tell=context.tell)
    ranks.wait()  # all have looked at the folders before the first one writes
    if ranks.is_first():
        open_run(work, recipe, resume=resume)
    ranks.wait()
    # A run in memory cannot be found again.
    place = Place(work, resume=resume, resumable=folder is not None)
    with leaving_no_empty_run(work):
        model, reports = _run_stages(recipe, open_encoder, stages, place, context)
    about = {
        "recipe": recipe.model_dump(mode="json"),
        "method": recipe.method,
        "name": recipe.name,
        "stages": reports,
    }
    if ranks.is_first():
        if folder is not None:
            from likewise.store import save_model

            save_model(model, folder, about=about, overwrite=overwrite)
        shutil.rmtree(work, ignore_errors=True)
    ranks.wait()
    return RunReport(folder, reports, answerer_of(model, about, Running(precision=context.precision)))


def _run_stages(
    recipe: Recipe,
    open_encoder: Callable[[], SentenceTransformer],
    stages: Sequence[StageData],
    place: Place,
    context: RunContext,
) -> tuple[nn.Module, list[dict[str, Any]]]:
    """Train by whatever kinds of stages a recipe has."""
    first = recipe.stage[0]
    if isinstance(first, JointStageSpec):
        return run_joint(recipe, first, stages[0], place, context)
    if isinstance(first, InjectStageSpec):
        return run_injection(recipe, first, open_encoder(), stages[0], place, context)
    if label_stages(recipe):
        return run_labels(recipe, open_encoder(), stages, place, context)
    return run_pairs(recipe, open_encoder, stages, place, context)


def dry_run(recipe: Recipe, *, context: RunContext) -> list[str]:
    """The plan of a recipe in lines, without training: data, leak filter, steps per stage.

    What a run would refuse is refused here, as far as that is known before the first step.
    """
    _check(recipe, context)
    lines: list[str] = []
    stages = prepared_stages(recipe, context=context)
    first = recipe.stage[0]
    if isinstance(first, InjectStageSpec):
        taught = start_injection(recipe, first, start_encoder(recipe, stages, context), stages[0])
        return injection_plan_lines(0, first, taught, stages[0])
    if isinstance(first, JointStageSpec):
        model = start_joint(recipe, first, stages[0], device=context.device)
        return joint_plan_lines(recipe, 0, first, model, stages[0])
    for number, frozen_stage in frozen_stages(recipe):
        lines += frozen_plan_lines(recipe, number, frozen_stage, stages[number])
    if label_stages(recipe):
        encoder = start_encoder(recipe, stages, context)
        check_label_stages(recipe, encoder, stages, tell=context.tell)
        labels = start_label_model(recipe, label_stages(recipe)[0][1], encoder)
    for number, label_stage in label_stages(recipe):
        labels.set_tasks(list(stage_relations(recipe, label_stage).values()), label_stage.weights)
        lines += label_plan_lines(recipe, number, label_stage, labels, stages[number])
    own = pair_stages(recipe)
    if own:
        pairs = start_model(recipe, start_encoder(recipe, stages, context), own[0][0])
    for number, stage in own:
        pairs.set_objectives(build_objectives(recipe, number))
        if stages[number].dev:
            check_dev(stage, stages[number].dev, pairs.relations)
        lines += plan_lines(recipe, number, stage, pairs, stages[number])
    return lines


def untrained(recipe: Recipe, context: RunContext) -> RunReport:
    """A recipe's encoder as it is, answering by the cosine."""
    if label_stages(recipe):
        encoder = start_encoder(recipe, prepared_stages(recipe, context=context), context)
        stage = label_stages(recipe)[-1][1]
        tasks = stage_relations(recipe, stage)
        check_label_texts(tasks, encoder, tell=context.tell)
        model = LabelModel(encoder, list(tasks.values()), matcher="cosine", max_words=stage.max_words)
        return RunReport(
            None, [], answerer_of(model, {"name": recipe.name}, Running(precision=context.precision))
        )
    frozen = start_frozen(recipe, cache(lambda: start_encoder(recipe, [], context)), context)
    settled = settled_model(frozen, (), precision=context.precision)
    return RunReport(
        None, [], answerer_of(settled, {"name": recipe.name}, Running(precision=context.precision))
    )
