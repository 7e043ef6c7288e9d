"""Stage kind `pairs`: train one encoder and a head for each relation on rated pairs (`methods.pairs`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from likewise.encoders.features import TextFeatures
from likewise.errors import Problem, RecipeError
from likewise.heads import answering_by_share, label_shares
from likewise.kinds.answers import cosine_baseline, pair_scorer
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
from likewise.kinds.building import build_objectives
from likewise.kinds.chunks import cut_notes
from likewise.kinds.devscore import Measured, check_dev, rates_another, warn_if_falling
from likewise.kinds.leaks import LeakFilter
from likewise.kinds.pair_steps import PairSteps, learnt_names, pair_batches, row_lengths
from likewise.kinds.reading import RatedRows, RatedSpec, merged, pack_rated, read_stage, unpack_rated
from likewise.methods.described import DESCRIBED
from likewise.methods.pairs import PairModel
from likewise.predict.pairs import check_description_words
from likewise.records import Record, Relation
from likewise.schema.pairs import PairsStage, settings_for_few
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from likewise.training.sampler import Batches, Share

_EXACT = "exact"
# What solving heads has no use for: told if a recipe sets it.
_UNUSED_WHEN_SOLVED = (
    *("epochs", "max_steps", "batch_size", "order", "token_budget", "accumulation", "learning_rate"),
    *("head_learning_rate", "momentum", "weight_decay", "layer_decay", "rate_schedule", "warmup", "clip"),
    *("average", "freeze", "evaluate_every", "save_every", "patience", "stop_after", "anchor", "schedule"),
)


class PairsRunner(Runner[PairsStage]):
    """Runs the stages that train the encoder on rated pairs."""

    def check(self, job: Job[PairsStage]) -> None:
        """Raise an error for impossible objectives and for an encoder that is a function without weights."""
        build_objectives(job.recipe, job.number, job.stage.objective)
        if job.context.encoder is not None or job.recipe.encoder.kind == "vectors":
            found = "this stage trains the encoder, but the encoder is a function and cannot be trained"
            remedy = 'use stages of kind "parallel" and "refine"'
            raise RecipeError([Problem(f"stage.{job.number}", found, remedy)])

    def read(self, job: Job[PairsStage], shared: Shared) -> StageData:
        """Read rated pairs."""
        stage = job.stage
        leaks = LeakFilter.of(stage, job.context.data_dir)
        wanted = RatedSpec(stage.data, stage.dev, leaks, stage.dev_share, stage.fold, by=stage.dev_by)
        return read_stage(job, wanted)

    def verify(
        self, job: Job[PairsStage], data: StageData, encoder: Callable[[], SentenceTransformer]
    ) -> None:
        """Raise an error for descriptions that the encoder cannot read."""
        for name in dict.fromkeys(one.relation for one in job.stage.objective if one.head == DESCRIBED):
            check_description_words(encoder(), job.relations[name], job.context.tell)
        super().verify(job, data, encoder)

    def start(self, job: Job[PairsStage], data: StageData, former: Carried) -> Carried:
        """Make this stage's heads; a head of an earlier stage is kept if its key and shape are the same."""
        objectives = build_objectives(job.recipe, job.number, job.stage.objective)
        with by_seed(job):
            if former.gives == job.stage.gives:
                model = _model(former)
                model.set_objectives(objectives)
            else:
                model = PairModel(former.encoder(), objectives)
        # Its tokens are those of the plan and of training.
        return Carried(job.stage.gives, lambda: model.encoder, lambda: model, TextFeatures(model.encoder))

    def plan(self, job: Job[PairsStage], data: StageData, carried: Carried) -> Plan:
        """Pairs, objectives, steps."""
        stage, model, rows = job.stage, _model(carried), data.rows
        if data.dev:
            check_dev(data.dev, _measured(stage, model.relations, data.dev))
        objectives = ", ".join(
            f"{o.relation} ({o.head} head, {o.loss} loss"
            + (f", weight {o.weight:g})" if o.weight != 1 else ")")
            for o in stage.objective
        )
        return Plan(
            f"{counted(len(rows.train), 'pair')}; dev set: {data.dev_sizes()}",
            f"learns {objectives}; {stage.schedule} schedule",
            self._course(job, model, rows, carried.state),
            [*data.notes, *cut_notes(carried.state, (t for record in rows.train for t in record.texts))],
        )

    def _course(self, job: Job[PairsStage], model: PairModel, rows: RatedRows, features: TextFeatures) -> str:
        stage = job.stage
        if stage.optimiser == _EXACT:
            unused = [
                key for key in _UNUSED_WHEN_SOLVED if key in stage.model_fields_set and _differs(stage, key)
            ]
            without = f"; ignores {', '.join(unused)}" if unused else ""
            return f"solves linear heads exactly and leaves the encoder unchanged{without}"
        settings = job.settings()
        measure = features.length if settings.token_budget is not None else len
        steps = PairSteps(row_lengths(rows.train, measure), learnt_names(model), settings, rows.weights)
        return course_of(job, steps.count())

    def fit(self, job: Job[PairsStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Train the model or solve the heads, then choose the source of each relation on dev."""
        from likewise.kinds.exact import fit_exact
        from likewise.training.fit import fit

        stage, model, rows = job.stage, _model(carried), data.rows
        features: TextFeatures = carried.state or TextFeatures(model.encoder)  # an update has no plan
        options = run_options(job, place)
        options["evaluate"] = self.scorer(job, data.dev) if data.dev else None
        options["at_start"] = lambda: answering_by_majority(model, rows.train)
        last = job.number == len(job.recipe.stage) - 1
        if last and any(rates_another(one, data.dev) for one in model.relations):
            # Dev sees the cosine alone. The model is asked for what its heads learn, and at the start they
            # know nothing; a stage that follows has heads of its own.
            options["settings"] = replace(options["settings"], keep_start=False)
        if stage.optimiser == _EXACT:
            options.pop("resumable")
            options.pop("at_start")
            report = fit_exact(model, rows.train, features=features, **options)
        else:

            def prepare(share: Share) -> Batches:
                settings = options["settings"]
                return pair_batches(
                    model,
                    rows.train,
                    settings,
                    share,
                    weights=rows.weights,
                    groups=rows.groups,
                    features=features,
                )

            report = fit(model, prepare, **options)
        features.forget()
        warn_if_falling(report.best_value, model.relations)
        if options["evaluate"] is not None:
            options["evaluate"](model)  # what answers is chosen for the weights that are kept
        return stage_report(job, report, data)

    def compared(self, job: Job[PairsStage], data: StageData) -> list[Measured]:
        """The relations that the stage's dev rows rate."""
        return _measured(job.stage, list(job.relations.values()), data.dev)

    def untrained(self, job: Job[PairsStage], data: StageData, former: Carried) -> nn.Module:
        """The raw encoder, which answers every relation by its cosine, put on the scale with the dev rows."""
        return cosine_baseline(
            former.encoder(),
            list(job.relations.values()),
            data.dev,
            lambda model: _measured(job.stage, model.relations, data.dev),
            job.context.precision,
        )

    def settings_for(
        self, job: Job[PairsStage], rows: int, *, rehearsed: bool, fixed: Sequence[str]
    ) -> PairsStage:
        """Use smaller batches and more epochs for few pairs."""
        few = {key: value for key, value in settings_for_few(rows).items() if key not in fixed}
        stage = job.stage.model_copy(update=few)
        job.context.tell(f"training for {stage.epochs:g} epochs with batch size {stage.batch_size}")
        return stage

    def scorer(self, job: Job[PairsStage], sets: Sequence[DevSet]) -> Callable[[PairModel], dict[str, float]]:
        """The metric of each relation on each dev set, by its best source, which the model then uses."""
        return pair_scorer(
            sets,
            lambda model: _measured(job.stage, model.relations, sets),
            precision=job.context.precision,
            only=job.stage.select_source,
            moves_encoder=job.stage.optimiser != _EXACT,
        )

    def pack(self, data: StageData, numbers: Callable[[Sequence[str]], list[int]]) -> dict[str, Any] | None:
        """Rated rows and translations."""
        return pack_rated(data, numbers)

    def unpack(self, job: Job[PairsStage], kept: Mapping[str, Any], texts: Sequence[str]) -> StageData:
        """The inverse."""
        return unpack_rated(job, kept, texts)

    def merge(self, fresh: StageData, known: StageData, again: Sequence[int]) -> StageData:
        """The new rows and some of the old ones."""
        return merged(fresh, known, again)


@contextmanager
def answering_by_majority(model: PairModel, records: Sequence[Record]) -> Iterator[None]:
    """Let untrained heads of classes answer by how often each class occurs in the training rows."""
    with ExitStack() as stack:
        for one in model.objectives:
            if one.head == "classes" and one.head_key in model.fresh:
                labels = one.relation.labels
                given = [record.values.get(one.relation.name) for record in records]
                shares = label_shares([str(label) for label in given if label is not None], labels)
                stack.enter_context(answering_by_share(model.heads[one.head_key], shares))
        yield


def _differs(stage: PairsStage, key: str) -> bool:
    return bool(getattr(stage, key) != type(stage).model_fields[key].default)


def _model(carried: Carried) -> PairModel:
    model: PairModel = carried.model()  # type: ignore[assignment]
    return model


def _measured(stage: PairsStage, relations: Sequence[Relation], sets: Sequence[DevSet]) -> list[Measured]:
    return [
        Measured(one, stage.select_metric or one.metric, borrowed=rates_another(one, sets))
        for one in relations
    ]
