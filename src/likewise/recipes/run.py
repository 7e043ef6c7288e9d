"""Run a recipe: per stage data → leak filter → plan → fit → next stage; then save and evaluate.

The run folder `OUTPUT.run/` holds checkpoints and is removed when the model folder is complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from likewise import ranks
from likewise.data import write_text_aside
from likewise.encoders.words import split_words
from likewise.errors import UsageError
from likewise.methods.pairs import PairModel
from likewise.predict import Predictor
from likewise.recipes.build import build_encoder, build_objectives, build_settings
from likewise.recipes.devscore import DevSet, check_dev, dev_scorer, settle_cosines
from likewise.recipes.schema import Recipe
from likewise.recipes.stages import StageData, load_stage
from likewise.store import save_model
from likewise.training.callbacks import FitEvent
from likewise.training.exact import fit_exact
from likewise.training.fit import FitReport, check_trackers, fit, plan


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run reads, computes and reports; of it only device and precision touch what is learnt."""

    data_dir: Path | str | None = None
    device: str | None = None
    precision: str = "fp32"
    trackers: tuple[str, ...] = ()
    tables: Mapping[str, object] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda line: None
    emit: Callable[[FitEvent], None] = lambda event: None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run left behind."""

    output: Path | None
    stages: list[dict[str, Any]]
    predictor: Predictor


def run_recipe(
    recipe: Recipe,
    output: str | Path | None,
    *,
    context: RunContext,
    resume: bool = False,
    overwrite: bool = False,
) -> RunReport:
    """Train every stage and write the model folder; `output` None keeps the model in memory only."""
    check_trackers(context.trackers)
    ranks.join(context.device)
    if output is None:
        with tempfile.TemporaryDirectory(prefix="likewise-run-") as own:
            work = Path(ranks.from_first(own)) / "run"
            return _run_in(recipe, None, work, context, resume=False, overwrite=False)
    folder, work = _folders(Path(output), resume=resume, overwrite=overwrite)
    return _run_in(recipe, folder, work, context, resume=resume, overwrite=overwrite)


def _run_in(
    recipe: Recipe, folder: Path | None, work: Path, context: RunContext, *, resume: bool, overwrite: bool
) -> RunReport:
    stages = [load_stage(recipe, number, context=context) for number in range(len(recipe.stage))]
    model = start_model(recipe, stages, context)
    ranks.wait()  # all have looked at the folders before the first one writes
    if ranks.is_first():
        _open_run(work, recipe, resume=resume)
    ranks.wait()
    reports: list[dict[str, Any]] = []
    for number, data in enumerate(stages):
        if number:
            model.set_objectives(build_objectives(recipe, number))
        reports.append(
            _run_stage(
                recipe,
                number,
                model,
                data,
                work=work,
                context=context,
                resume=resume,
                resumable=folder is not None,  # a run in memory cannot be found again
            )
        )
    about = {
        "recipe": recipe.model_dump(mode="json"),
        "method": recipe.method,
        "name": recipe.name,
        "stages": reports,
    }
    if ranks.is_first():
        if folder is not None:
            save_model(model, folder, about=about, overwrite=overwrite)
        shutil.rmtree(work, ignore_errors=True)
    ranks.wait()
    return RunReport(folder, reports, Predictor(model, about, precision=context.precision))


def dry_run(recipe: Recipe, *, context: RunContext) -> list[str]:
    """The plan of a recipe in lines, without training: data, leak filter, steps per stage."""
    lines: list[str] = []
    stages = [load_stage(recipe, number, context=context) for number in range(len(recipe.stage))]
    model = start_model(recipe, stages, context)
    for number, data in enumerate(stages):
        model.set_objectives(build_objectives(recipe, number))
        lines += plan_lines(recipe, number, model, data, context)
    return lines


def start_model(recipe: Recipe, stages: Sequence[StageData], context: RunContext) -> PairModel:
    """The model before its first step."""
    texts = (text for data in stages for record in data.all_records() for text in record.texts)
    words = (
        split_words(texts) if recipe.encoder.kind != "pretrained" and recipe.encoder.words == "data" else None
    )
    encoder = build_encoder(recipe.encoder, device=context.device, seed=recipe.seed, words=words)
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return PairModel(encoder, build_objectives(recipe, 0))


def plan_lines(
    recipe: Recipe, number: int, model: PairModel, data: StageData, context: RunContext
) -> list[str]:
    """What stage `number` will do, said before it does it."""
    stage = recipe.stage[number]
    settings = build_settings(stage, seed=recipe.seed)
    steps = plan(model, data.train, settings, data.weights)
    course = (
        "  linear heads solved exactly, the encoder stays as it is"
        if stage.optimiser == "exact"
        else f"  {steps.steps:,} steps, {steps.steps_per_epoch:,} an epoch, batch {stage.batch_size}, "
        f"{stage.optimiser} at {stage.learning_rate:g}, seed {recipe.seed}"
    )
    dev = ", ".join(f"{entry.name} {len(entry.records):,}" for entry in data.dev)
    objectives = "; ".join(
        f"{o.relation} by {o.head} + {o.loss}" + (f" ×{o.weight:g}" if o.weight != 1 else "")
        for o in stage.objective
    )
    return [
        f"stage {number} {stage.name or ''}: {steps.pairs:,} pairs, dev {dev}".replace("  ", " "),
        f"  learns {objectives} ({stage.schedule})",
        course,
        *(f"  {line}" for line in data.leakage),
    ]


def _run_stage(
    recipe: Recipe,
    number: int,
    model: PairModel,
    data: StageData,
    *,
    work: Path,
    context: RunContext,
    resume: bool,
    resumable: bool,
) -> dict[str, Any]:
    for line in plan_lines(recipe, number, model, data, context):
        context.tell(line)
    stage = recipe.stage[number]
    if data.dev:
        check_dev(stage, data.dev, model.relations)
    settings = build_settings(
        stage, seed=recipe.seed, device=context.device, precision=context.precision, trackers=context.trackers
    )
    shared: dict[str, Any] = {
        "settings": settings,
        "run": work / f"stage-{number}",
        "evaluate": dev_scorer(stage, data.dev, precision=context.precision) if data.dev else None,
        "metric": "score",
        "resume": resume,
        "emit": context.emit,
    }
    if stage.optimiser == "exact":
        report = fit_exact(model, data.train, **shared)
    else:
        report = fit(
            model, data.train, weights=data.weights, groups=data.groups, resumable=resumable, **shared
        )
    settle_cosines(model, data.dev, precision=context.precision)
    return _stage_report(stage.name or f"stage {number}", report, data)


def _stage_report(name: str, report: FitReport, data: StageData) -> dict[str, Any]:
    prints = {entry.name: _fingerprint(entry) for entry in (DevSet("train", data.train), *data.dev)}
    return {"name": name, **asdict(report), "leakage": data.leakage, "fingerprints": prints}


def _fingerprint(entry: DevSet) -> str:
    digest = hashlib.sha256()
    for record in entry.records:
        digest.update(json.dumps([record.texts, dict(record.values)], ensure_ascii=False).encode("utf8"))
    return f"{len(entry.records)} rows sha256:{digest.hexdigest()[:16]}"


def _folders(folder: Path, *, resume: bool, overwrite: bool) -> tuple[Path, Path]:
    """The model folder and the run folder; nothing is written yet, so bad data leaves no trace."""
    work = folder.with_name(folder.name + ".run")
    if folder.exists() and not overwrite:
        raise UsageError(f"{folder} exists already; choose another --output or pass --overwrite")
    if work.exists() and not resume and not overwrite:
        raise UsageError(
            f"{work} holds an unfinished run; go on with --resume or start over with --overwrite"
        )
    if resume and not work.exists():
        raise UsageError(f"{work} does not exist: there is no run to resume; leave --resume out")
    return folder, work


def _open_run(work: Path, recipe: Recipe, *, resume: bool) -> None:
    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    _same_recipe(work / "recipe.json", recipe)


def _same_recipe(path: Path, recipe: Recipe) -> None:
    """A run is resumed with the recipe it was started with, or not at all."""
    text = json.dumps(recipe.model_dump(mode="json"), sort_keys=True)
    if path.is_file() and path.read_text(encoding="utf8") != text:
        raise UsageError(
            f"{path.parent} was started with another recipe or other overrides; resume with the same ones"
        )
    write_text_aside(path, text)
