"""Run a recipe: per stage data → leak filter → plan → fit → next stage; then save and evaluate.

The run folder `OUTPUT.run/` holds checkpoints and is removed when the model folder is complete.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise import ranks
from likewise.classify import Classifier
from likewise.encoders.cache import EmbeddingCache, Identity, identify, remembered_identity
from likewise.encoders.sentence import with_prompt
from likewise.errors import Problem, RecipeError
from likewise.heads import CosineHead
from likewise.losses import LOSSES
from likewise.methods.described import DESCRIBED
from likewise.methods.injection import InjectionModel
from likewise.methods.joint import JointModel
from likewise.methods.label_embedding import LabelModel
from likewise.methods.pairs import PairModel
from likewise.predict import JointPredictor, Predictor
from likewise.recipes.build import (
    build_encoder,
    build_objectives,
    build_relations,
    build_settings,
    encoder_files,
)
from likewise.recipes.devscore import DevSet, check_dev, dev_scorer, settle_cosines
from likewise.recipes.frozen import Frozen, run_parallel, run_refine
from likewise.recipes.injection import injection_plan_lines, run_injection
from likewise.recipes.joint import check_joint, joint_plan_lines, run_joint, start_joint
from likewise.recipes.labels import (
    check_label_stages,
    check_label_texts,
    label_stages,
    run_labels,
    start_label_model,
)
from likewise.recipes.plans import frozen_plan_lines, label_plan_lines, plan_lines
from likewise.recipes.prepared import prepared_stages
from likewise.recipes.runfiles import Place, kept_stage, open_run, run_folders, stage_report
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_parts import WORD_KINDS, Word2VecSpec
from likewise.recipes.schema_stages import (
    InjectStageSpec,
    JointStageSpec,
    ParallelStageSpec,
    RefineStageSpec,
    StageSpec,
)
from likewise.recipes.stages import StageData, stage_relations
from likewise.training.state import FitEvent
from likewise.versions import versions

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.external import TextFunction
    from likewise.encoders.words import WordTable
    from likewise.store import AnyModel


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run reads, computes and reports; of it only device and precision touch what is learnt."""

    data_dir: Path | str | None = None
    device: str | None = None
    precision: str = "fp32"
    trackers: tuple[str, ...] = ()
    tables: Mapping[str, object] = field(default_factory=dict)
    encoder: TextFunction | None = None
    # Where finished stages over a frozen encoder are kept, for runs that begin with the same ones.
    kept_stages: Path | None = None
    tell: Callable[[str], None] = lambda line: None
    emit: Callable[[FitEvent], None] = lambda event: None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run left behind."""

    output: Path | None
    stages: list[dict[str, Any]]
    predictor: Any  # a Predictor, or a Classifier where labels are texts


def run_recipe(
    recipe: Recipe,
    output: str | Path | None,
    *,
    context: RunContext,
    resume: bool = False,
    overwrite: bool = False,
) -> RunReport:
    """Train every stage and write the model folder; `output` None keeps the model in memory only."""
    if context.trackers:
        from likewise.training.fit import check_trackers

        check_trackers(context.trackers)
    ranks.join(context.device)
    if output is None:
        with tempfile.TemporaryDirectory(prefix="likewise-run-") as own:
            work = Path(ranks.from_first(own)) / "run"
            return _run_in(recipe, None, work, context, resume=False, overwrite=False)
    folder, work = run_folders(Path(output), resume=resume, overwrite=overwrite)
    return _run_in(recipe, folder, work, context, resume=resume, overwrite=overwrite)


def _run_in(
    recipe: Recipe, folder: Path | None, work: Path, context: RunContext, *, resume: bool, overwrite: bool
) -> RunReport:
    stages = prepared_stages(recipe, context=context)
    check_trainable(recipe, context)
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
    return RunReport(folder, reports, ready(model, about, context.precision))


def _run_stages(
    recipe: Recipe,
    open_encoder: Callable[[], SentenceTransformer],
    stages: Sequence[StageData],
    place: Place,
    context: RunContext,
) -> tuple[AnyModel, list[dict[str, Any]]]:
    """Train by whatever kinds of stages a recipe has."""
    first = recipe.stage[0]
    if isinstance(first, JointStageSpec):
        return run_joint(recipe, first, stages[0], place, context)
    if isinstance(first, InjectStageSpec):
        return run_injection(recipe, first, open_encoder(), stages[0], place, context)
    if label_stages(recipe):
        return run_labels(recipe, open_encoder(), stages, place, context)
    return _run_pairs(recipe, open_encoder, stages, place, context)


def ready(model: AnyModel, about: dict[str, Any], precision: str) -> Predictor | JointPredictor | Classifier:
    """A model that answers; an encoder that was taught phrases answers by the cosine."""
    if isinstance(model, LabelModel):
        return Classifier(model, about, precision=precision)
    if isinstance(model, JointModel):
        return JointPredictor(model, about, precision=precision)
    if isinstance(model, InjectionModel):
        from likewise.store import raw_model

        return Predictor(raw_model(model.encoder), about, precision=precision)
    return Predictor(model, about, precision=precision)


def _run_pairs(
    recipe: Recipe,
    open_encoder: Callable[[], SentenceTransformer],
    stages: Sequence[StageData],
    place: Place,
    context: RunContext,
) -> tuple[PairModel, list[dict[str, Any]]]:
    """Train the stages that leave the encoder as it is, then those of rated pairs."""
    frozen, reports = _run_frozen_stages(recipe, open_encoder, stages, place, context)
    first = len(reports)
    if frozen is None:
        model = start_model(recipe, open_encoder())
    elif first == len(stages):
        model = settled_model(frozen, stages[-1].dev, precision=context.precision)
    else:
        model = start_model(recipe, frozen.finished(), first)
    for number, stage in pair_stages(recipe):
        if number > first:
            model.set_objectives(build_objectives(recipe, number))
        reports.append(_run_stage(recipe, number, stage, model, stages[number], place, context))
    return model, reports


def dry_run(recipe: Recipe, *, context: RunContext) -> list[str]:
    """The plan of a recipe in lines, without training: data, leak filter, steps per stage."""
    lines: list[str] = []
    stages = prepared_stages(recipe, context=context)
    first = recipe.stage[0]
    if isinstance(first, InjectStageSpec):
        return injection_plan_lines(0, first, stages[0])
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
        return RunReport(None, [], ready(model, {"name": recipe.name}, context.precision))
    frozen = start_frozen(recipe, cache(lambda: start_encoder(recipe, [], context)), context)
    settled = settled_model(frozen, (), precision=context.precision)
    return RunReport(None, [], ready(settled, {"name": recipe.name}, context.precision))


def frozen_stages(recipe: Recipe) -> list[tuple[int, ParallelStageSpec | RefineStageSpec]]:
    """The stages that learn on vectors of the frozen encoder, numbered; they come first."""
    return [
        (n, stage)
        for n, stage in enumerate(recipe.stage)
        if isinstance(stage, ParallelStageSpec | RefineStageSpec)
    ]


def pair_stages(recipe: Recipe) -> list[tuple[int, StageSpec]]:
    """The stages that train the encoder itself, numbered."""
    return [(n, stage) for n, stage in enumerate(recipe.stage) if isinstance(stage, StageSpec)]


def start_encoder(recipe: Recipe, stages: Sequence[StageData], context: RunContext) -> SentenceTransformer:
    """The encoder before the first step: the recipe's, or a function that was handed over."""
    if context.encoder is not None:
        from likewise.encoders.external import external_encoder

        encoder = external_encoder(context.encoder)
        return with_prompt(encoder, recipe.encoder.prompt) if recipe.encoder.prompt else encoder
    from likewise.encoders.words import split_words

    table = _learn_words(recipe, stages, context) if recipe.encoder.word2vec else None
    from_data = recipe.encoder.kind in WORD_KINDS and recipe.encoder.words == "data" and table is None
    words = split_words(_all_texts(recipe, stages)) if from_data else None
    return build_encoder(recipe.encoder, device=context.device, seed=recipe.seed, words=words, table=table)


def _learn_words(recipe: Recipe, stages: Sequence[StageData], context: RunContext) -> WordTable:
    """Word vectors from the training texts, each once, and from labels in words; dev texts are not seen."""
    from likewise.encoders.word2vec import Word2VecSettings, train_word2vec

    chosen = recipe.encoder.word2vec or Word2VecSpec()
    texts = list(dict.fromkeys(text for data in stages for record in data.train for text in record.texts))
    context.tell(f"word2vec: vectors of width {chosen.width} from {len(texts):,} training texts")
    settings = Word2VecSettings(**chosen.model_dump())
    return train_word2vec(texts, list(_own_texts(recipe)), settings, seed=recipe.seed)


def _all_texts(recipe: Recipe, stages: Sequence[StageData]) -> Iterator[str]:
    """Every text that a run may show its encoder: rows, labels in words, descriptions that are read."""
    for data in stages:
        for record in data.all_records():
            yield from record.texts
    yield from _own_texts(recipe)


def _own_texts(recipe: Recipe) -> Iterator[str]:
    """What the recipe itself says: labels in words, descriptions that are read."""
    for relation in build_relations(recipe).values():
        for ways in relation.label_texts:
            yield from ways
    for number, _ in pair_stages(recipe):
        yield from (o.relation.description for o in build_objectives(recipe, number) if o.head == DESCRIBED)


def check_trainable(recipe: Recipe, context: RunContext) -> None:
    """Refuse stages that would train an encoder which is a function, and objectives that cannot be."""
    for number, _ in pair_stages(recipe):
        build_objectives(recipe, number)
    if isinstance(recipe.stage[0], JointStageSpec):
        check_joint(recipe)
    if (context.encoder is not None or recipe.encoder.kind == "vectors") and pair_stages(recipe):
        number = pair_stages(recipe)[0][0]
        raise RecipeError(
            [
                Problem(
                    f"stage.{number}",
                    "trains the encoder, which is a function and cannot be trained",
                    'use stages of kind "parallel" and "refine"',
                )
            ]
        )


def start_model(recipe: Recipe, encoder: SentenceTransformer, number: int = 0) -> PairModel:
    """An encoder with fresh heads for stage `number`."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return PairModel(encoder, build_objectives(recipe, number))


def start_frozen(
    recipe: Recipe, open_encoder: Callable[[], SentenceTransformer], context: RunContext
) -> Frozen:
    """The frozen encoder that the first stages learn on."""
    [relation] = stage_relations(recipe, recipe.stage[0]).values()

    def find() -> Identity:
        return identify(open_encoder(), precision=context.precision)

    files = None if context.encoder is not None else encoder_files(recipe.encoder)
    key = [recipe.encoder.model_dump(mode="json"), files, context.precision, versions()]
    identity = remembered_identity(key, find) if files else find()
    return Frozen(
        EmbeddingCache(open_encoder, identity, name=recipe.encoder.name, precision=context.precision),
        relation,
        open_encoder=open_encoder,
        progress=lambda done, total: context.emit(FitEvent("encode", done, total)),
    )


def settled_model(frozen: Frozen, dev: Sequence[DevSet], *, precision: str) -> PairModel:
    """The model of a recipe whose encoder never moved: it answers by the cosine."""
    model = PairModel(frozen.finished(), [frozen.objective])
    model.frozen = frozen.part()
    settle_cosines(model, dev, precision=precision)
    head = model.heads[frozen.objective.head_key]
    if isinstance(head, CosineHead) and not LOSSES[frozen.objective.loss].ranks:
        head.set_line(*frozen.line)
    return model


def _run_stage(
    recipe: Recipe,
    number: int,
    stage: StageSpec,
    model: PairModel,
    data: StageData,
    place: Place,
    context: RunContext,
) -> dict[str, Any]:
    for line in plan_lines(recipe, number, stage, model, data):
        context.tell(line)
    if data.dev:
        check_dev(stage, data.dev, model.relations)
    settings = build_settings(
        stage, seed=recipe.seed, device=context.device, precision=context.precision, trackers=context.trackers
    )
    shared: dict[str, Any] = {
        "settings": settings,
        "evaluate": dev_scorer(stage, data.dev, precision=context.precision) if data.dev else None,
        "metric": "score",
        "emit": context.emit,
        **place.options(number),
    }
    from likewise.training.exact import fit_exact
    from likewise.training.fit import fit

    if stage.optimiser == "exact":
        report = fit_exact(model, data.train, **shared)
    else:
        report = fit(
            model, data.train, weights=data.weights, groups=data.groups, resumable=place.resumable, **shared
        )
    settle_cosines(model, data.dev, precision=context.precision)
    return stage_report(stage.name or f"stage {number}", report, data)


def _run_frozen_stages(
    recipe: Recipe,
    open_encoder: Callable[[], SentenceTransformer],
    stages: Sequence[StageData],
    place: Place,
    context: RunContext,
) -> tuple[Frozen | None, list[dict[str, Any]]]:
    """Train the stages that leave the encoder as it is; None where a recipe has none."""
    wanted = frozen_stages(recipe)
    if not wanted:
        return None, []
    frozen, reports = start_frozen(recipe, open_encoder, context), []
    for number, stage in wanted:
        data = stages[number]
        for line in frozen_plan_lines(recipe, number, stage, data):
            context.tell(line)
        shared: dict[str, Any] = {"seed": recipe.seed, "tell": context.tell, "emit": context.emit}
        known = frozen.cache.fingerprint
        with kept_stage(recipe, stages[: number + 1], place, context, encoder=known) as options:
            if isinstance(stage, ParallelStageSpec):
                report = run_parallel(frozen, stage, data, **shared, **options)
            else:
                report = run_refine(frozen, stage, data, **shared, **options)
        reports.append(stage_report(stage.name or f"stage {number}", report, data))
    return frozen, reports
