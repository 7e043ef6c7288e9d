"""Run a recipe: read the data of every stage, train the stages one after the other, and save the model.

One loop serves all kinds of stages: the runner of each kind reads, starts and trains its stage. The run
folder `OUTPUT.run/` holds checkpoints and is removed when the model folder is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise import ranks
from likewise.disk import scratch_folder, sweep
from likewise.encoders.manifest import DOCUMENT
from likewise.errors import LikewiseError
from likewise.folders import stage_reports
from likewise.kinds.base import Carried, Job, StageData, runner_of
from likewise.kinds.building import start_encoder, start_of
from likewise.kinds.context import RunContext
from likewise.kinds.gains import Before, before_training
from likewise.outputs import model_print
from likewise.predict import Answerer, load, raw_model
from likewise.predict.families import Running, answerer_of
from likewise.recipes.lowrank import WholeUpdate, check_update, update_of
from likewise.recipes.prepared import prepared_stages
from likewise.recipes.runfiles import (
    RunMark,
    RunPlace,
    is_finished,
    remove_run,
    run_folder,
    run_folders,
    same_run,
    working_in,
)
from likewise.recipes.seen import SEEN, told_before, trained_before
from likewise.schema.recipe import Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

Jobs = Sequence[Job[Any]]


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run."""

    output: Path | None
    stages: list[dict[str, Any]]
    predictor: Answerer
    gains: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Target:
    """The folder for a model. With `overwrite`, it replaces the model that was there at the beginning."""

    folder: Path
    overwrite: bool
    former: str

    @classmethod
    def of(cls, folder: Path, overwrite: bool) -> Target:
        """The target of a command that begins now.

        If an earlier command was killed while it replaced the model, the model first gets its name back.
        """
        sweep(Path(os.path.realpath(folder)).parent)
        return cls(folder, overwrite, model_print(folder))

    def save(self, model: nn.Module, about: Mapping[str, Any]) -> None:
        """Write the model."""
        from likewise.store import save_model

        save_model(model, self.folder, about=about, overwrite=self.overwrite, former=self.former)


def run_recipe(
    recipe: Recipe,
    output: str | Path | None,
    *,
    context: RunContext,
    resume: bool = False,
    overwrite: bool = False,
) -> RunReport:
    """Train every stage and write the model folder; with `output` None the model is only kept in memory."""
    jobs = jobs_of(recipe, context)
    _check(jobs, context)
    ranks.join(context.device)
    if output is None:
        with scratch_folder() as own:
            work = Path(ranks.from_first(own)) / "run"
            return _run_in(jobs, None, work, resume=False)
    if is_finished(Path(output), run_folder(Path(output))):
        if resume:
            return _finish(jobs, Path(output))
        if ranks.is_first():
            remove_run(run_folder(Path(output)))
        ranks.wait()
    models = [name for stage in recipe.stage for name in stage.models()]
    inputs = [recipe.encoder.name, recipe.encoder.vectors, *models, *sources_of(recipe), *context.inputs]
    folder, work = run_folders(Path(output), inputs=inputs, resume=resume, overwrite=overwrite)
    return _run_in(jobs, Target.of(folder, overwrite), work, resume=resume)


def sources_of(recipe: Recipe) -> list[str]:
    """The files and corpora that a recipe reads."""
    return [source for stage in recipe.stage for source in stage.sources()]


def _finish(jobs: Jobs, folder: Path) -> RunReport:
    """Finish a run that was stopped after its model folder was complete."""
    context = jobs[0].context
    same_run(run_folder(folder), _mark(jobs, _read(jobs)[0]))
    answerer = load(folder, device=context.device, precision=context.precision)
    ranks.wait()
    if ranks.is_first():
        remove_run(run_folder(folder))
    ranks.wait()
    context.tell(f"{folder} was already complete when its run was stopped")
    told: Any = answerer.about.get("gains", [])
    return RunReport(folder, stage_reports(answerer.about, folder / DOCUMENT), answerer, told)


def jobs_of(recipe: Recipe, context: RunContext) -> list[Job[Any]]:
    """The stages of a recipe as jobs of a run."""
    return [Job(recipe, number, stage, context) for number, stage in enumerate(recipe.stage)]


def _check(jobs: Jobs, context: RunContext) -> None:
    """Raise an error for stages that cannot be trained, before anything is read."""
    if context.trackers:
        from likewise.training.fit import check_trackers

        check_trackers(context.trackers)
    check_update(jobs[0].recipe.update, moves=_moves(jobs))
    for job in jobs:
        runner_of(job.stage).check(job)


def _moves(jobs: Jobs) -> bool:
    """Whether a stage trains the encoder."""
    return any(runner_of(job.stage).moves_encoder for job in jobs)


def _read(jobs: Jobs) -> tuple[list[StageData], Callable[[], SentenceTransformer]]:
    """The rows of every stage, and a function that opens the encoder when it is first needed."""
    recipe, context = jobs[0].recipe, jobs[0].context
    stages = prepared_stages(jobs)
    open_encoder = cache(lambda: start_encoder(recipe, stages, context))
    for job, data in zip(jobs, stages, strict=True):
        runner_of(job.stage).verify(job, data, open_encoder)
    return stages, open_encoder


def _begin(open_encoder: Callable[[], SentenceTransformer]) -> Carried:
    """The recipe's encoder, on which the first stage begins."""
    return Carried("", open_encoder, lambda: raw_model(open_encoder()))


def _run_in(jobs: Jobs, target: Target | None, work: Path, *, resume: bool) -> RunReport:
    recipe, context = jobs[0].recipe, jobs[0].context
    stages, open_encoder = _read(jobs)
    ranks.wait()  # all have looked at the folders before the first one writes
    mark = _mark(jobs, stages)
    with ExitStack() as stack:
        own = stack.enter_context(working_in(work, mark, resume=resume)) if ranks.is_first() else ""
        ranks.wait()
        # A run in memory cannot be found again.
        update = update_of(jobs)
        settle = update.settling()
        place = RunPlace(work, resume=resume, resumable=target is not None, stages=stages, settle=settle)
        former = _begin(open_encoder)
        look = partial(_before, jobs[-1], stages[-1], former)
        # An encoder that stays as it is can be asked afterwards: a run over kept vectors opens it at its end.
        before = look() if context.compare and _moves(jobs) else None
        seen = trained_before(recipe, context)
        for line in told_before(recipe, seen):
            context.tell(line)
        model, reports = _train(jobs, stages, former, place, update)
        about: dict[str, Any] = {
            "recipe": recipe.model_dump(mode="json"),
            "method": recipe.method,
            "name": recipe.name,
            "stages": reports,
            "run": own,
            **({SEEN: seen} if seen else {}),
        }
        answerer = answerer_of(model, about, Running(precision=context.precision))
        if context.compare:
            about["gains"] = _gains(before or look(), answerer, about, context)
        if ranks.is_first():
            if target is not None:
                target.save(model, about)
            remove_run(work)
    ranks.wait()
    answerer = answerer_of(model, about, Running(precision=context.precision))
    return RunReport(None if target is None else target.folder, reports, answerer, about.get("gains", []))


def _before(job: Job[Any], data: StageData, former: Carried) -> Before:
    """The baselines' answers to the last stage's dev rows, before any training."""
    runner = runner_of(job.stage)
    measured = runner.compared(job, data) if data.dev else ()
    return before_training(data, measured, lambda: _untrained(job, data, former))


def _untrained(job: Job[Any], data: StageData, former: Carried) -> Answerer | None:
    """The recipe's raw encoder, which answers the stage's relations; None if it cannot answer them."""
    try:
        model = runner_of(job.stage).untrained(job, data, former)
    except LikewiseError:  # a checkpoint that is no encoder of texts by itself
        return None
    return answerer_of(model, {}, Running(precision=job.context.precision))


def _gains(
    before: Before, answerer: Answerer, about: Mapping[str, Any], context: RunContext
) -> list[dict[str, Any]]:
    """Compare the trained model with the baselines and report the result."""
    reports = about["stages"]
    kept_start = all(report["best_value"] is not None and report["best_step"] == 0 for report in reports)
    gains = before.gains(answerer, kept_start=kept_start, looks=_looks(about))
    if not gains:
        context.tell("the model was not compared with the encoder before training: no dev rows have ratings")
    for gain in gains:
        context.tell(gain.sentence())
    return [gain.to_dict() for gain in gains]


def _looks(about: Mapping[str, Any]) -> int:
    """The number of models that dev chose among, in all stages that keep the best one."""
    stages = zip(about["recipe"]["stage"], about["stages"], strict=True)
    return max(1, sum(len(report["history"]) for stage, report in stages if stage.get("select", True)))


def _mark(jobs: Jobs, stages: Sequence[StageData]) -> RunMark:
    """The mark of what the run begins with."""
    recipe, context = jobs[0].recipe, jobs[0].context
    prints = [data.prints for data in stages]
    return RunMark(recipe, prints, start_of(recipe.encoder, context), context.precision)


def _train(
    jobs: Jobs, stages: Sequence[StageData], carried: Carried, place: RunPlace, update: WholeUpdate
) -> tuple[nn.Module, list[dict[str, Any]]]:
    """Train the stages one after the other; each continues from the stage before it."""
    reports = []
    for job, data, started, lines in _started(jobs, stages, carried, update):
        for line in lines:
            job.context.tell(line)
        reports.append(runner_of(job.stage).fit(job, data, started, place))
        carried = started
    update.finish()
    return carried.model(), reports


def _started(
    jobs: Jobs, stages: Sequence[StageData], carried: Carried, update: WholeUpdate
) -> Iterator[tuple[Job[Any], StageData, Carried, list[str]]]:
    """Each stage with its starting model and its plan; the next one starts when this one is trained."""
    begun = False
    for job, data in zip(jobs, stages, strict=True):
        runner = runner_of(job.stage)
        carried = runner.start(job, data, carried)
        lines: list[str] = []
        if runner.moves_encoder and not begun:
            begun, lines = True, update.begin(job, carried)
        yield job, data, carried, [*lines, *runner.plan(job, data, carried).lines(job)]


def dry_run(recipe: Recipe, *, context: RunContext) -> list[str]:
    """The plan of a recipe in lines, without training: data, leak filter, steps of each stage.

    Errors that a run would raise before its first step are raised here too.
    """
    jobs = jobs_of(recipe, context)
    _check(jobs, context)
    stages, open_encoder = _read(jobs)
    carried, lines = _begin(open_encoder), told_before(recipe, trained_before(recipe, context))
    for _, _, _, planned in _started(jobs, stages, carried, update_of(jobs)):
        lines += planned
    return lines


def untrained(recipe: Recipe, context: RunContext) -> RunReport:
    """The baseline of a recipe's last stage: its raw encoder, without training."""
    jobs = jobs_of(recipe, context)
    stages = prepared_stages(jobs)
    former = _begin(cache(lambda: start_encoder(recipe, stages, context)))
    model = runner_of(jobs[-1].stage).untrained(jobs[-1], stages[-1], former)
    about = {"name": recipe.name}
    return RunReport(None, [], answerer_of(model, about, Running(precision=context.precision)))
