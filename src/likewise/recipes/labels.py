"""Stages of labelled texts: tasks whose labels are texts, learnt by one model (`methods.label_embedding`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.errors import DataError, Problem, RecipeError
from likewise.evaluation.metrics import compute
from likewise.methods.label_embedding import ONE_HOT, LabelModel, check_tasks, printed_form_warning
from likewise.methods.label_texts import find_label_faults
from likewise.predict import Classifier
from likewise.recipes.devscore import DevSet
from likewise.recipes.plans import label_plan_lines
from likewise.recipes.runfiles import Place, stage_report
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import LabelStageSpec
from likewise.recipes.stages import StageData, stage_relations
from likewise.records import Relation

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.recipes.context import RunContext


def label_stages(recipe: Recipe) -> list[tuple[int, LabelStageSpec]]:
    """The stages of labelled texts, numbered."""
    return [(n, stage) for n, stage in enumerate(recipe.stage) if isinstance(stage, LabelStageSpec)]


def check_label_stages(
    recipe: Recipe,
    encoder: SentenceTransformer,
    stages: Sequence[StageData],
    *,
    tell: Callable[[str], None],
) -> None:
    """Refuse tasks, labels and rows that nothing can be learnt from, before anything is written.

    Words of labels that the encoder does not know are told.
    """
    from likewise.training.label_steps import rows_by_task

    read: dict[str, Relation] = {}
    for _, stage in label_stages(recipe):
        tasks = stage_relations(recipe, stage)
        check_tasks(list(tasks.values()))
        read |= tasks if stage.matcher != ONE_HOT else {}
    check_label_texts(read, encoder, tell=tell)
    for number, stage in label_stages(recipe):
        tasks = stage_relations(recipe, stage)
        rows_by_task(stages[number].train, list(tasks.values()))
        rows = [record for entry in stages[number].dev for record in entry.records]
        if rows and all(record.values.get(name) is None for record in rows for name in tasks):
            raise _no_dev_label(stages[number].dev)


def check_label_texts(
    tasks: Mapping[str, Relation], encoder: SentenceTransformer, *, tell: Callable[[str], None]
) -> None:
    """Refuse labels that the encoder cannot read or tell apart: every problem at once."""
    problems: list[Problem] = []
    for name, task in tasks.items():
        faults = find_label_faults(
            encoder,
            task,
            place=f"relation.{name}",
            remedy=f"say it in other words (relation.{name}.texts), or take vectors that have one of them",
        )
        problems += faults.problems
        for note in faults.notes:
            tell(note)
    if problems:
        raise RecipeError(problems)


def _no_dev_label(sets: Sequence[DevSet]) -> DataError:
    names = ", ".join(entry.name for entry in sets)
    return DataError([Problem(names, "no dev text has a label of any task", "give other dev texts")])


def start_label_model(recipe: Recipe, stage: LabelStageSpec, encoder: SentenceTransformer) -> LabelModel:
    """The model before its first step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return LabelModel(
            encoder,
            list(stage_relations(recipe, stage).values()),
            matcher=stage.matcher,
            hidden=stage.hidden,
            loss=stage.loss,
            # Label texts that nobody reads need no encoder.
            label_encoder=copy.deepcopy(encoder)
            if stage.label_encoder == "own" and stage.matcher != ONE_HOT
            else None,
            weights=stage.weights,
            max_words=stage.max_words,
        )


def run_labels(
    recipe: Recipe,
    encoder: SentenceTransformer,
    stages: Sequence[StageData],
    place: Place,
    context: RunContext,
) -> tuple[LabelModel, list[dict[str, Any]]]:
    """Train the stages of labelled texts, one after the other, on one model."""
    from likewise.training.fit import fit

    reports = []
    model = start_label_model(recipe, label_stages(recipe)[0][1], encoder)
    for number, stage in label_stages(recipe):
        data = stages[number]
        model.set_tasks(list(stage_relations(recipe, stage).values()), stage.weights)
        for line in label_plan_lines(recipe, number, stage, model, data):
            context.tell(line)
        if warning := printed_form_warning(stage.matcher, stage.loss):
            context.tell(f"  {warning}")
        settings = context.settings(recipe, stage)
        report = fit(
            model,
            data.train,
            settings=settings,
            weights=data.weights,
            evaluate=label_scorer(data.dev, precision=context.precision) if data.dev else None,
            metric="score",
            emit=context.emit,
            resumable=place.resumable,
            **place.options(number),
        )
        reports.append(stage_report(stage.name or f"stage {number}", report, data))
    return model, reports


def label_scorer(
    sets: Sequence[DevSet], *, precision: str = "fp32"
) -> Callable[[LabelModel], dict[str, float]]:
    """A function of the model that gives each task's accuracy on each dev set, and their mean as `score`."""

    def evaluate(model: LabelModel) -> dict[str, float]:
        classifier = Classifier(model, precision=precision, cache=10**9)
        numbers = {}
        for entry in sets:
            for task in model.tasks:
                rows = [r for r in entry.records if r.values.get(task.name) is not None]
                if rows:
                    found = classifier.classify([r.texts[0] for r in rows], task=task.name).best
                    gold = [str(r.values[task.name]) for r in rows]
                    numbers[f"accuracy {task.name} {entry.name}"] = compute("accuracy", gold, found)
        if not numbers:
            raise _no_dev_label(sets)
        return {"score": float(np.mean(list(numbers.values()))), **numbers}

    return evaluate
