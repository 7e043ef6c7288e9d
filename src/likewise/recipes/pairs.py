"""Stages of pairs: those over a frozen encoder first, then those that train it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from likewise.encoders.cache import EmbeddingCache, Identity, identify, remembered_identity
from likewise.errors import Problem, RecipeError
from likewise.heads import CosineHead
from likewise.losses import LOSSES
from likewise.methods.pairs import PairModel
from likewise.recipes.build import build_objectives, encoder_files
from likewise.recipes.context import RunContext
from likewise.recipes.devscore import DevSet, check_dev, dev_scorer, settle_cosines, warn_if_falling
from likewise.recipes.frozen import Frozen, run_parallel, run_refine
from likewise.recipes.plans import frozen_plan_lines, plan_lines
from likewise.recipes.runfiles import Place, kept_stage, stage_report
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import ParallelStageSpec, RefineStageSpec, StageSpec
from likewise.recipes.stages import StageData, stage_relations
from likewise.recipes.starting import pair_stages
from likewise.training.state import FitEvent
from likewise.versions import versions

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def run_pairs(
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


def frozen_stages(recipe: Recipe) -> list[tuple[int, ParallelStageSpec | RefineStageSpec]]:
    """The stages that learn on vectors of the frozen encoder, numbered; they come first."""
    return [
        (n, stage)
        for n, stage in enumerate(recipe.stage)
        if isinstance(stage, ParallelStageSpec | RefineStageSpec)
    ]


def check_trainable(recipe: Recipe, context: RunContext) -> None:
    """Refuse stages that would train an encoder which is a function, and objectives that cannot be."""
    for number, _ in pair_stages(recipe):
        build_objectives(recipe, number)
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
    settings = context.settings(recipe, stage)
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
    warn_if_falling(report.best_value, model.relations)
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
