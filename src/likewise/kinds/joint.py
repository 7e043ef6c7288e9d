"""Stage kind `joint`: fine-tune a transformer, which reads one text or two as one input, on one relation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.data import open_table
from likewise.data.columns import find_any_texts
from likewise.data.reading import find_named_corpus
from likewise.errors import DataError, Problem, RecipeError
from likewise.heads import answering_by_share, label_shares
from likewise.kinds.answers import let_dev_choose
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
from likewise.kinds.chunks import cut_note
from likewise.kinds.context import RunContext
from likewise.kinds.devscore import Measured, dev_scorer, tells_models_apart, warn_if_falling
from likewise.kinds.leaks import LeakFilter
from likewise.kinds.pair_steps import PairItem, PairSteps, idle_pair, row_lengths
from likewise.kinds.reading import RatedSpec, rated_data, read_rated
from likewise.methods.joint import JointModel, load_joint
from likewise.predict.joint import JointPredictor
from likewise.predict.pairs import Predictor, cosine_model
from likewise.records import Record, Relation
from likewise.schema.joint import JointStage
from likewise.schema.parts import DataSpec
from likewise.training.sampler import Batches
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from likewise.training.sampler import Share
    from likewise.training.settings import FitSettings

# The inputs of rows that were tokenized for the plan, by their texts.
TokenRows = dict[tuple[str, ...], dict[str, list[int]]]


class JointRunner(Runner[JointStage]):
    """Runs the single stage of a recipe that fine-tunes a transformer."""

    def check(self, job: Job[JointStage]) -> None:
        """Raise an error for a relation or an encoder that this kind of stage cannot train."""
        for name, relation in job.relations.items():
            if relation.kind == "ordered":
                remedy = 'use "graded" or "classes"'
                found = "a joint encoder cannot learn ordered labels"
                raise RecipeError([Problem(f"relation.{name}.kind", found, remedy)])
        if job.recipe.encoder.kind != "pretrained":
            kind = job.recipe.encoder.kind
            found = f"kind {kind!r} is not a transformer, so it cannot read two texts as one input"
            remedy = 'set it to "pretrained" and name a checkpoint (encoder.name)'
            raise RecipeError([Problem("encoder.kind", found, remedy)])

    def verify(
        self, job: Job[JointStage], data: StageData, encoder: Callable[[], SentenceTransformer]
    ) -> None:
        """Nothing to check: the stage opens its checkpoint itself, as a classifier."""

    def read(self, job: Job[JointStage], shared: Shared) -> StageData:
        """Read the rated or labelled rows of the relation, with one text or two."""
        stage = job.stage.settled(job.recipe.relation)
        [relation] = job.relations
        context = job.context
        leaks = LeakFilter.of(stage, context.data_dir, asked=[relation])
        wanted = RatedSpec(
            stage.data,
            stage.dev,
            leaks,
            stage.dev_share,
            stage.fold,
            pairs=lambda spec: _holds_pairs(spec, context),
            keep=lambda records, notes: _only_rated(records, relation, notes),
            by=stage.dev_by,
        )
        notes: list[str] = []
        rows, dev = read_rated(job, wanted, notes)
        if stage.sample is not None:
            count = len(rows.train)
            drawn = np.random.default_rng([job.recipe.seed, count]).permutation(count).tolist()
            rows = rows.take(sorted(drawn[: stage.sample]))
        return rated_data(job, rows, dev, notes)

    def start(self, job: Job[JointStage], data: StageData, former: Carried) -> Carried:
        """The checkpoint with a head for the relation; it reads as many texts as a row holds."""
        [relation] = job.relations.values()
        texts = len(data.rows.train[0].texts)
        with by_seed(job):
            model = load_joint(
                job.recipe.encoder.name,
                relation,
                texts=texts,
                max_length=job.stage.max_length,
                device=job.context.device,
            )
        if relation.kind == "graded" and job.stage.targets == "standardised":
            model.standardise([model.target(value) for value in _values(data.rows.train, relation)])
        known: TokenRows = {}
        return Carried(job.stage.gives, lambda: model.encoder, lambda: model, known)

    def plan(self, job: Job[JointStage], data: StageData, carried: Carried) -> Plan:
        """Rows, the relation, steps, and the length at which inputs are cut."""
        model, rows, settings = _model(carried), data.rows, job.settings()
        measure = (lambda text: len(model.tokenizer(text)["input_ids"])) if settings.token_budget else len
        steps = _steps(model, row_lengths(rows.train, measure), settings, rows.weights)
        form = "" if model.texts == 1 else ", each read as one input"
        capped = model.max_length < job.stage.max_length
        cut = [f"inputs are cut at {model.max_length} tokens, the encoder's maximum"] if capped else []
        return Plan(
            counted(len(rows.train), "text" if model.texts == 1 else "pair")
            + f"{form}; dev set: {data.dev_sizes()}",
            f"learns {model.relation.name} ({model.relation.scale})",
            course_of(job, steps.count()),
            [*cut, *data.notes, *_cut_notes(model, rows.train, carried.state)],
        )

    def fit(self, job: Job[JointStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Fine-tune, then put the last layer on the relation's own scale."""
        from likewise.training.fit import fit

        model, rows, options = _model(carried), data.rows, run_options(job, place)
        options["evaluate"] = _scorer(job, data.dev, model.relation)

        def prepare(share: Share) -> Batches:
            return joint_batches(
                model, rows.train, options["settings"], weights=rows.weights, known=carried.state
            )

        if model.begun and model.relation.kind != "graded":
            given = [str(value) for value in _values(rows.train, model.relation)]
            shares = label_shares(given, model.relation.labels)
            options["at_start"] = lambda: answering_by_share(model.encoder, shares)
        report = fit(model, prepare, **options)
        warn_if_falling(report.best_value, model.relations)
        model.settle()
        return stage_report(job, report, data)

    def compared(self, job: Job[JointStage], data: StageData) -> list[Measured]:
        """The stage's relation, by its own metric."""
        return [Measured(one, one.metric) for one in job.relations.values()]

    def untrained(self, job: Job[JointStage], data: StageData, former: Carried) -> nn.Module:
        """The checkpoint as a text encoder that answers by its cosine; there is no head before training."""
        model = cosine_model(former.encoder(), list(job.relations.values()))
        measured = [one for one in self.compared(job, data) if one.relation in model.relations]
        let_dev_choose(Predictor(model, precision=job.context.precision), data.dev, measured)
        return model


def _model(carried: Carried) -> JointModel:
    model: JointModel = carried.model()  # type: ignore[assignment]
    return model


def _holds_pairs(spec: DataSpec, context: RunContext) -> bool:
    """Whether a row of a data entry holds two texts."""
    named = find_named_corpus(spec.source)
    if named is not None:
        return len(named[0].texts) == 2
    if spec.text_a or spec.text_b:
        return bool(spec.text_b)
    table = open_table(context.tables.get(spec.source, spec.source))
    return len(find_any_texts(table.columns, source=table.name)) == 2


def _only_rated(records: list[Record], relation: str, notes: list[str]) -> list[Record]:
    """The rows that rate the stage's only relation."""
    rated = [record for record in records if record.values.get(relation) is not None]
    if len(rated) < len(records):
        notes.append(f"left out {counted(len(records) - len(rated), 'row')} without a value for {relation}")
    return rated


def _scorer(
    job: Job[JointStage], sets: Sequence[DevSet], relation: Relation
) -> Callable[[JointModel], dict[str, float]] | None:
    """A function that measures the model on dev; dev rows that cannot tell models apart are not measured.

    They are an error if dev selects the model.
    """
    rated = [replace(entry, records=_rated(entry.records, relation)) for entry in sets]
    useful = [one for one in rated if tells_models_apart(relation.metric, _values(one.records, relation))]
    if useful:
        precision = job.context.precision
        return dev_scorer(
            lambda model: JointPredictor(model, precision=precision),
            useful,
            lambda model: [Measured(relation, relation.metric)],
        )
    if sets:
        names = ", ".join(entry.name for entry in sets)
        found = f"it has too few values of {relation.name}, or they are all the same"
        if job.stage.select:
            remedy = "add dev rows (stage.0.dev) or raise stage.0.dev_share"
            raise DataError([Problem(names, found, remedy)])
        job.context.tell(f"  not measured on {names}: {found}")
    return None


def _rated(records: Sequence[Record], relation: Relation) -> list[Record]:
    return [record for record in records if record.values.get(relation.name) is not None]


def _values(records: Sequence[Record], relation: Relation) -> list[object]:
    return [record.values[relation.name] for record in _rated(records, relation)]


def _steps(
    model: JointModel, lengths: Sequence[int], settings: FitSettings, weights: Sequence[float] | None
) -> PairSteps:
    return PairSteps(lengths, (model.relation.name,), settings, weights)


def joint_batches(
    model: JointModel,
    records: Sequence[Record],
    settings: FitSettings,
    *,
    weights: Sequence[float] | None = None,
    known: TokenRows | None = None,
) -> Batches:
    """The batches of rated rows, each read as one input; `known` are inputs that were made for the plan."""
    rated = _rated(records, model.relation)
    _check_rows(rated, model)
    known = {} if known is None else known
    new = list(dict.fromkeys(record.texts for record in rated if record.texts not in known))
    made = {**known, **dict(zip(new, model.cut(new), strict=True))}
    inputs = [made[record.texts] for record in rated]
    targets = [model.target(record.values[model.relation.name]) for record in rated]
    steps = _steps(model, [len(one["input_ids"]) for one in inputs], settings, weights)
    return Batches(
        len(inputs), steps.count(), steps.of_epoch, _JointCollate(model, inputs, targets), idle_pair
    )


def _cut_notes(model: JointModel, records: Sequence[Record], known: TokenRows) -> list[str]:
    """A line of the plan about training rows that are cut; their inputs are kept for training."""
    distinct = list(dict.fromkeys(record.texts for record in records))
    # A token is at least one byte of its text.
    long = [texts for texts in distinct if sum(len(text.encode()) for text in texts) > model.max_length - 8]
    inputs, cut = model.inputs_of(long)
    known.update(zip(long, inputs, strict=True))
    return cut_note(sum(cut), len(distinct), model.max_length, "text" if model.texts == 1 else "pair")


def _check_rows(rated: Sequence[Record], model: JointModel) -> None:
    name = model.relation.name
    if not rated:
        found = "no training row has a value for this relation"
        raise DataError([Problem(name, found, "name its column in the data entry (columns)")])
    if odd := next((r for r in rated if len(r.texts) != model.texts), None):
        found = f"this row has {counted(len(odd.texts), 'text')}, but the first row has {model.texts}"
        raise DataError([Problem(odd.source, found, "train on pairs only or on single texts only")])
    values = {record.values[name] for record in rated}
    if len(rated) > 1 and len(values) == 1:
        found = f"{name!r} is {values.pop()} in all {len(rated):,} training rows, so nothing can be learnt"
        raise DataError([Problem(rated[0].source, found, "check the column")])


@dataclass(frozen=True, slots=True)
class _JointCollate:
    """Turn the rows of a step into the arguments of JointModel.forward."""

    model: JointModel
    inputs: Sequence[dict[str, list[int]]]
    targets: Sequence[float]

    def __call__(self, items: Sequence[PairItem]) -> dict[str, Any]:
        rows = [row for row, _, _ in items]
        targets = np.array([self.targets[row] for row in rows], dtype=np.float32)
        return {
            "inputs": self.model.batch([self.inputs[row] for row in rows]),
            "targets": torch.from_numpy(targets),
            "idle": items[0][2],
        }
