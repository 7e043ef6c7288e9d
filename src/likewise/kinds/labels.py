"""Kind `labels`: tasks whose labels are texts, learnt by one model (`methods.label_embedding`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    course_of,
    run_options,
    seeded,
    stage_report,
)
from likewise.kinds.devscore import Measured, dev_scorer
from likewise.kinds.label_steps import LabelSteps, label_batches, rows_by_task
from likewise.kinds.leaks import LeakFilter
from likewise.kinds.reading import RatedSpec, merged, read_stage
from likewise.methods.label_embedding import ONE_HOT, LabelModel, check_tasks, printed_form_warning
from likewise.methods.label_texts import find_label_faults
from likewise.predict.labels import Classifier
from likewise.records import Relation
from likewise.schema.labels import LabelsStage
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from likewise.training.sampler import Batches, Share

# A rehearsed update of a sentence encoder: the recipe's rate times this, and a running mean of the weights.
_GENTLE_RATE, _GENTLE_MEAN = 0.2, 0.99


class LabelsRunner(Runner[LabelsStage]):
    """Stages of labelled texts."""

    def check(self, job: Job[LabelsStage]) -> None:
        """Refuse tasks that cannot be told apart or have no labels."""
        check_tasks(list(job.relations.values()))

    def read(self, job: Job[LabelsStage], shared: Shared) -> StageData:
        """Labelled texts, one a row."""
        stage = job.stage
        leaks = LeakFilter(stage.filter_against, stage.allow_leak, job.context.data_dir, pairs=False)
        wanted = RatedSpec(
            stage.data, stage.dev, leaks, stage.dev_share, stage.fold, pairs=lambda spec: False
        )
        return read_stage(job, wanted)

    def verify(
        self, job: Job[LabelsStage], data: StageData, encoder: Callable[[], SentenceTransformer]
    ) -> None:
        """Refuse labels that the encoder cannot read, and rows that nothing can be learnt from."""
        tasks = job.relations
        if job.stage.matcher != ONE_HOT:
            check_label_texts(tasks, encoder(), tell=job.context.tell)
        rows_by_task(data.rows.train, list(tasks.values()))
        rows = [record for entry in data.dev for record in entry.records]
        if rows and all(record.values.get(name) is None for record in rows for name in tasks):
            names = ", ".join(entry.name for entry in data.dev)
            raise DataError([Problem(names, "no dev text has a label of any task", "give other dev texts")])

    def start(self, job: Job[LabelsStage], data: StageData, former: Carried) -> Carried:
        """The model with this stage's tasks."""
        stage, tasks = job.stage, list(job.relations.values())
        with seeded(job):
            if former.gives == stage.gives:
                model = _model(former)
                model.set_tasks(tasks, stage.weights)
            else:
                model = self._begun(stage, tasks, former.encoder())
        return Carried(stage.gives, lambda: model.encoder, lambda: model)

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
        )

    def plan(self, job: Job[LabelsStage], data: StageData, carried: Carried) -> Plan:
        """Texts, tasks, steps; a form that learns nothing is named."""
        stage, model = job.stage, _model(carried)
        texts = rows_by_task(
            data.rows.train, model.learnt, weights=data.rows.weights, max_words=model.max_words
        )
        sizes = {task: [len(text) for text in part.texts] for task, part in texts.items()}
        tasks = "; ".join(f"{task.name} ({counted(len(task.labels), 'label')})" for task in model.tasks)
        warning = printed_form_warning(stage.matcher, stage.loss)
        return Plan(
            f"{counted(sum(map(len, sizes.values())), 'text')}, dev {data.dev_sizes()}",
            f"learns {tasks} by {stage.matcher} + {stage.loss}",
            course_of(job, LabelSteps(texts, sizes, job.settings()).count()),
            [*data.notes, *([warning] if warning else [])],
        )

    def fit(self, job: Job[LabelsStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Train on batches of one task each."""
        from likewise.training.fit import fit

        model, rows, options = _model(carried), data.rows, run_options(job, place)
        options["evaluate"] = self.scorer(job, data.dev) if data.dev else None

        def prepare(share: Share) -> Batches:
            return label_batches(model, rows.train, options["settings"], share, weights=rows.weights)

        return stage_report(job, fit(model, prepare, **options), data)

    def untrained(self, job: Job[LabelsStage], data: StageData, former: Carried) -> nn.Module:
        """The encoder as it is, texts and labels compared by the cosine."""
        encoder = former.encoder()
        check_label_texts(job.relations, encoder, tell=job.context.tell)
        tasks = list(job.relations.values())
        return LabelModel(encoder, tasks, matcher="cosine", max_words=job.stage.max_words)

    def settings_for(
        self, job: Job[LabelsStage], rows: int, *, rehearsed: bool, fixed: Sequence[str]
    ) -> LabelsStage:
        """A rehearsed update at a fifth of the rate, with a running mean: the old tasks then lose nothing.

        Chosen by dev for sentence encoders (docs/methods/label_embedding.md); others keep the recipe's rate,
        and so does whoever sets one.
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
        """Each task's accuracy on each dev set; tokens of dev texts are kept between two looks."""
        kept: list[Classifier] = []

        def answering(model: LabelModel) -> Classifier:
            if not kept:
                kept.append(Classifier(model, precision=job.context.precision, cache=10**9, keep_tokens=True))
            kept[0].forget()
            return kept[0]

        return dev_scorer(answering, sets, lambda model: [Measured(task, "accuracy") for task in model.tasks])

    def merge(self, fresh: StageData, known: StageData, again: Sequence[int]) -> StageData:
        """New texts and some of the old."""
        return merged(fresh, known, again)


def _model(carried: Carried) -> LabelModel:
    model: LabelModel = carried.model()  # type: ignore[assignment]
    return model


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
