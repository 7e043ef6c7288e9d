"""Stage kind `labels`: one model learns tasks whose labels are texts (`methods.label_embedding`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.encoders.features import TextFeatures
from likewise.errors import DataError, Problem, RecipeError
from likewise.kinds.base import (
    Carried,
    DevSet,
    Job,
    Place,
    Plan,
    Runner,
    Shared,
    StageData,
    by_seed,
    course_of,
    run_options,
    stage_report,
)
from likewise.kinds.chunks import Anchors, DistinctTexts, cut_notes
from likewise.kinds.devscore import Measured, dev_scorer
from likewise.kinds.leaks import LeakFilter
from likewise.kinds.reading import RatedSpec, merged, read_stage
from likewise.methods.label_embedding import ONE_HOT, LabelModel, check_tasks, printed_form_warning, shorten
from likewise.methods.label_texts import find_label_faults
from likewise.predict.labels import Classifier
from likewise.records import Record, Relation
from likewise.schema.labels import LabelsStage
from likewise.spelling import spelt_call
from likewise.training.sampler import Batches, Share, epoch_batches
from likewise.training.settings import FitSettings
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from likewise.training.sampler import Batches, Share

# A rehearsed update of a sentence encoder: the recipe's rate times this, and a running mean of the weights.
_GENTLE_RATE, _GENTLE_MEAN = 0.2, 0.99


class LabelsRunner(Runner[LabelsStage]):
    """Runs the stages that train on labelled texts."""

    def check(self, job: Job[LabelsStage]) -> None:
        """Raise an error for tasks that have no labels or cannot be told apart."""
        check_tasks(list(job.relations.values()))

    def read(self, job: Job[LabelsStage], shared: Shared) -> StageData:
        """Read labelled texts, one in each row."""
        stage = job.stage
        leaks = LeakFilter.of(stage, job.context.data_dir, pairs=False)
        wanted = RatedSpec(
            stage.data,
            stage.dev,
            leaks,
            stage.dev_share,
            stage.fold,
            pairs=lambda spec: False,
            by=stage.dev_by,
        )
        return read_stage(job, wanted)

    def verify(
        self, job: Job[LabelsStage], data: StageData, encoder: Callable[[], SentenceTransformer]
    ) -> None:
        """Raise an error for labels that the encoder cannot read and for rows without anything to learn."""
        tasks = job.relations
        if job.stage.matcher != ONE_HOT:
            check_label_texts(tasks, encoder(), tell=job.context.tell)
        rows_by_task(data.rows.train, list(tasks.values()))
        rows = [record for entry in data.dev for record in entry.records]
        if rows and all(record.values.get(name) is None for record in rows for name in tasks):
            names = ", ".join(entry.name for entry in data.dev)
            raise DataError([Problem(names, "no dev text has a label of any task", "use other dev texts")])

    def start(self, job: Job[LabelsStage], data: StageData, former: Carried) -> Carried:
        """The model with this stage's tasks."""
        stage, tasks = job.stage, list(job.relations.values())
        with by_seed(job):
            if former.gives == stage.gives:
                model = _model(former)
                model.set_tasks(tasks, stage.weights)
            else:
                model = self._begun(stage, tasks, former.encoder())
        # Its tokens are those of the plan and of training.
        return Carried(stage.gives, lambda: model.encoder, lambda: model, TextFeatures(model.encoder))

    def _begun(
        self, stage: LabelsStage, tasks: Sequence[Relation], encoder: SentenceTransformer
    ) -> LabelModel:
        # Label texts that nobody reads need no encoder.
        own = stage.label_encoder == "own" and stage.matcher != ONE_HOT
        return LabelModel(
            encoder,
            tasks,
            matcher=stage.matcher,
            hidden=stage.hidden,
            loss=stage.loss,
            label_encoder=copy.deepcopy(encoder) if own else None,
            weights=stage.weights,
            max_words=stage.max_words,
            templates=stage.templates,
        )

    def plan(self, job: Job[LabelsStage], data: StageData, carried: Carried) -> Plan:
        """Texts, tasks, steps, and a warning about a form that learns nothing."""
        stage, model = job.stage, _model(carried)
        texts = rows_by_task(
            data.rows.train, model.learnt, weights=data.rows.weights, max_words=model.max_words
        )
        sizes = {task: [len(text) for text in part.texts] for task, part in texts.items()}
        tasks = ", ".join(f"{task.name} ({counted(len(task.labels), 'label')})" for task in model.tasks)
        notes = [printed_form_warning(stage.matcher, stage.loss), _without_dev(stage, data, model)]
        return Plan(
            f"{counted(sum(map(len, sizes.values())), 'text')}; dev set: {data.dev_sizes()}",
            f"learns {tasks} with matcher {stage.matcher} and loss {stage.loss}",
            course_of(job, LabelSteps(texts, sizes, job.settings()).count()),
            [
                *data.notes,
                *cut_notes(carried.state, (text for part in texts.values() for text in part.texts)),
                *filter(None, notes),
            ],
        )

    def fit(self, job: Job[LabelsStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Train on batches that hold one task each."""
        from likewise.training.fit import fit

        model, rows, options = _model(carried), data.rows, run_options(job, place)
        model.contrast, model.hold = job.stage.contrast, job.stage.hold
        features: TextFeatures = carried.state or TextFeatures(model.encoder)  # an update has no plan
        options["evaluate"] = self.scorer(job, data.dev) if data.dev else None

        def prepare(share: Share) -> Batches:
            settings = options["settings"]
            return label_batches(model, rows.train, settings, share, weights=rows.weights, features=features)

        report = fit(model, prepare, **options)
        features.forget()
        return stage_report(job, report, data)

    def compared(self, job: Job[LabelsStage], data: StageData) -> list[Measured]:
        """Every task, by accuracy."""
        return [Measured(task, "accuracy") for task in job.relations.values()]

    def untrained(self, job: Job[LabelsStage], data: StageData, former: Carried) -> nn.Module:
        """The raw encoder, which compares texts with label texts by the cosine."""
        encoder = former.encoder()
        check_label_texts(job.relations, encoder, tell=job.context.tell)
        tasks = list(job.relations.values())
        stage = job.stage
        return LabelModel(
            encoder, tasks, matcher="cosine", max_words=stage.max_words, templates=stage.templates
        )

    def settings_for(
        self, job: Job[LabelsStage], rows: int, *, rehearsed: bool, fixed: Sequence[str]
    ) -> LabelsStage:
        """For a rehearsed update, use a fifth of the learning rate and a running mean of the weights.

        The old tasks then lose nothing. The values were chosen on dev for sentence encoders
        (docs/methods/label_embedding.md). Other encoders keep the recipe's rate, and so does an update that
        sets a rate or a mean itself.
        """
        stage = job.stage
        if (
            not rehearsed
            or job.recipe.encoder.kind != "pretrained"
            or {"learning_rate", "average"} & set(fixed)
        ):
            return stage
        return stage.model_copy(
            update={"learning_rate": stage.learning_rate * _GENTLE_RATE, "average": _GENTLE_MEAN}
        )

    def scorer(
        self, job: Job[LabelsStage], sets: Sequence[DevSet]
    ) -> Callable[[LabelModel], dict[str, float]]:
        """Each task's accuracy on each dev set; tokens of dev texts are kept between evaluation steps."""
        kept: list[Classifier] = []

        def answering(model: LabelModel) -> Classifier:
            if not kept:
                kept.append(Classifier(model, precision=job.context.precision, cache=10**9, keep_tokens=True))
            kept[0].forget()
            return kept[0]

        return dev_scorer(answering, sets, lambda model: [Measured(task, "accuracy") for task in model.tasks])

    def merge(self, fresh: StageData, known: StageData, again: Sequence[int]) -> StageData:
        """The new texts and some of the old ones."""
        return merged(fresh, known, again)


def _without_dev(stage: LabelsStage, data: StageData, model: LabelModel) -> str | None:
    """What a user should know of a training without a dev set."""
    if stage.dev_share or stage.dev or stage.fold:
        return None
    column = stage.data[-1].text_a
    named = {"text_a": column} if column else {}
    # Another file with the columns of this one.
    told = spelt_call("evaluate", "MODEL", data="FILE", **named, relations=f"{model.tasks[-1].name}:classes")
    return (
        f"all {counted(len(data.rows.train), 'text')} are trained on, because a dev set would take too many "
        f"of them; measure the model on other labelled texts ({told})"
    )


def _model(carried: Carried) -> LabelModel:
    model: LabelModel = carried.model()  # type: ignore[assignment]
    return model


def check_label_texts(
    tasks: Mapping[str, Relation], encoder: SentenceTransformer, *, tell: Callable[[str], None]
) -> None:
    """Raise one error for all labels that the encoder cannot read or tell apart."""
    problems: list[Problem] = []
    for name, task in tasks.items():
        faults = find_label_faults(
            encoder,
            task,
            place=f"relation.{name}",
            remedy=f"use other words (relation.{name}.texts) or word vectors that have one of these words",
        )
        problems += faults.problems
        for note in faults.notes:
            tell(note)
    if problems:
        raise RecipeError(problems)


# A row of a step: its task, its number among the task's texts, and whether it only fills an empty rank.
LabelItem = tuple[str, int, bool]


@dataclass(frozen=True, slots=True)
class TaskTexts:
    """The texts of one task, the numbers of their labels, and how often each text is drawn."""

    texts: list[str]
    labels: list[int]
    weights: list[float] | None


def rows_by_task(
    records: Sequence[Record],
    tasks: Sequence[Relation],
    *,
    weights: Sequence[float] | None = None,
    max_words: int | None = None,
) -> dict[str, TaskTexts]:
    """The labelled texts of each task; a text with labels of several tasks is in each of them."""
    found = {}
    for task in tasks:
        rows = [n for n, record in enumerate(records) if record.values.get(task.name) is not None]
        labels = [str(records[n].values[task.name]) for n in rows]
        _check(task, labels)
        found[task.name] = TaskTexts(
            [shorten(records[n].texts[0], max_words) for n in rows],
            [task.labels.index(label) for label in labels],
            None if weights is None else [weights[n] for n in rows],
        )
    return found


def _check(task: Relation, labels: Sequence[str]) -> None:
    if not labels:
        found = "no training text has a label of this task"
        raise DataError([Problem(task.name, found, "name its column in the data entry (columns)")])
    if len(set(labels)) == 1 and len(labels) > 1:
        found = f"all {len(labels):,} training texts have the label {labels[0]!r}"
        raise DataError([Problem(task.name, found, "check the column, or drop the task")])


@dataclass(frozen=True, slots=True)
class LabelSteps:
    """The steps of an epoch, which depend on (seed, epoch): each is a batch of one random task."""

    rows: Mapping[str, TaskTexts]
    lengths: Mapping[str, Sequence[int]]
    settings: FitSettings

    def count(self) -> int:
        """The number of steps in an epoch."""
        return sum(1 for _ in self.of_epoch(0))

    def of_epoch(self, epoch: int) -> Iterator[list[LabelItem]]:
        """The steps of one epoch."""
        chosen = self.settings
        waiting = {
            task: epoch_batches(
                self.lengths[task], replace(chosen, seed=chosen.seed + number), epoch, weights=part.weights
            )
            for number, (task, part) in enumerate(self.rows.items())
        }
        for task, batch in take_turns(waiting, np.random.default_rng([chosen.seed, epoch, 3])):
            yield [(task, row, False) for row in batch]


def idle_text(items: Sequence[LabelItem]) -> list[LabelItem]:
    """The row that an idle process computes; it has no weight."""
    task, row, _ = items[0]
    return [(task, row, True)]


def label_batches(
    model: LabelModel,
    records: Sequence[Record],
    settings: FitSettings,
    share: Share,
    *,
    weights: Sequence[float] | None = None,
    features: TextFeatures | None = None,
) -> Batches:
    """The batches of labelled texts."""
    rows = rows_by_task(records, model.learnt, weights=weights, max_words=model.max_words)
    features = features or TextFeatures(model.encoder)
    features.add(text for part in rows.values() for text in part.texts)
    lengths = {task: [features.length(text) for text in part.texts] for task, part in rows.items()}
    steps = LabelSteps(rows, lengths, settings)
    texts = (text for part in rows.values() for text in part.texts)
    before = Anchors(model.encoder, texts, features) if model.hold else None
    collate = LabelCollate(model, rows, features, chunked=share.chunked, before=before)
    return Batches(len(records), steps.count(), steps.of_epoch, collate, idle_text)


def take_turns(
    waiting: Mapping[str, list[list[int]]], rng: np.random.Generator
) -> Iterator[tuple[str, list[int]]]:
    """Yield a random task that still has batches, and its next batch, until no batches are left."""
    left = {task: list(reversed(batches)) for task, batches in waiting.items() if batches}
    while left:
        task = list(left)[int(rng.integers(len(left)))]
        yield task, left[task].pop()
        if not left[task]:
            del left[task]


class LabelCollate:
    """Turn the rows of a step into the arguments of LabelModel.forward."""

    def __init__(
        self,
        model: LabelModel,
        rows: Mapping[str, TaskTexts],
        features: TextFeatures,
        *,
        chunked: bool,
        before: Anchors | None = None,
    ) -> None:
        self._rows, self._before = rows, before
        self._distinct = partial(DistinctTexts, features=features, chunked=chunked)
        self._labels = label_inputs(model)

    def __call__(self, items: Sequence[LabelItem]) -> dict[str, Any]:
        task, _, idle = items[0]
        part = self._rows[task]
        texts = [part.texts[row] for _, row, _ in items]
        distinct = self._distinct(texts)
        return {
            "task": task,
            "chunks": distinct.chunks,
            "rows": distinct.rows(texts),
            "targets": torch.tensor([part.labels[row] for _, row, _ in items]),
            "idle": idle,
            **self._labels.get(task, {}),
            **({} if self._before is None else {"before": self._before.take(distinct.texts)}),
        }


def label_inputs(model: LabelModel) -> dict[str, dict[str, Any]]:
    """For each task, its label texts as input of the label encoder, and the label of each text."""
    if not model.reads_labels:
        return {}
    features = TextFeatures(model.label_encoder or model.encoder)
    made = {}
    for task in model.tasks:
        ways = model.ways(task)
        owners = torch.tensor([number for _, number in ways])
        made[task.name] = {"labels": features.batch([way for way, _ in ways]), "owners": owners}
    return made
