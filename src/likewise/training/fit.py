"""`fit()`, the training loop of every method: transformers' Trainer over one nn.Module, with exact resume.

Only the Trainer's public `get_train_dataloader` is overridden. Its own checkpoints contain pickles and are
switched off; `callbacks.SelectAndSave` writes ours. The run folder holds checkpoint-*, best-*.safetensors,
final.safetensors and done.json.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainingArguments

from likewise import ranks
from likewise.disk import make_folder, saying_why
from likewise.errors import UsageError
from likewise.training.callbacks import Evaluate, SeedSteps, SelectAndSave
from likewise.training.checkpoints import Checkpoint, best_file, load_weights, newest_whole
from likewise.training.optimiser import make_optimiser, make_rate_schedule
from likewise.training.runstate import RunState
from likewise.training.sampler import Batches, Share, make_loader
from likewise.training.settings import FitSettings
from likewise.training.state import FitEvent, FitReport, finish, finished_report


class _StepTrainer(Trainer):
    """The Trainer with our data loader."""

    def __init__(self, *, loader: DataLoader[Any], **rest: Any) -> None:
        super().__init__(**rest)
        self._loader = loader

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Our batches, without accelerate, which would split them among processes a second time."""
        return self._loader


def fit(
    model: nn.Module,
    prepare: Callable[[Share], Batches],
    *,
    settings: FitSettings,
    run: Path,
    evaluate: Evaluate | None = None,
    metric: str = "",
    resume: bool = False,
    resumable: bool = True,
    emit: Callable[[FitEvent], None] = lambda event: None,
    at_start: Callable[[], AbstractContextManager[None]] = nullcontext,
    settle: Callable[[nn.Module], None] | None = None,
) -> FitReport:
    """Train a model on batches and leave its best (or last) weights in it.

    The best weights may be those of the starting model, unless `keep_start` is off in the settings.
    The model has an `encoder`, whose layers may have their own learning rates. Parameters whose names begin
    with `heads.`, `matcher.` or `balance.` use the heads' rate. Its `forward` takes what `Batches.collate`
    returns, returns {"loss": …}, and weights a mean over rows by `ranks.weight_of`, so that several processes
    count each row once.

    `prepare` makes the batches after the model has been moved to its device. `evaluate` returns the model's
    dev numbers; `metric` names the one to maximise. `run` is the folder of checkpoints, which are written if
    `resumable`. With `resume`, training continues from the newest undamaged checkpoint; a finished run is not
    repeated, but its weights are loaded. `at_start` is a context in which the untrained model answers as well
    as it can without training; the first evaluation takes place in it. `settle` may change the weights that
    are kept; the model is then measured again, and the report has the new value.
    """
    with saying_why(run):
        make_folder(run)
    if resume and (done := finished_report(model, run)):
        return done
    started = time.monotonic()
    arguments = _arguments(settings, run)
    model.to(arguments.device)
    share = Share(arguments.process_index, arguments.world_size, chunked=arguments.device.type == "cpu")
    batches = prepare(share)
    loader, sampler = make_loader(batches, share)
    updates = math.ceil(len(sampler) / settings.accumulation)
    total = settings.max_steps or math.ceil(updates * settings.epochs)
    found = newest_whole(run) if resume else None
    keeper = SelectAndSave(
        model,
        run,
        settings,
        total=total,
        evaluate_every=settings.evaluate_every or updates,
        save_every=(settings.save_every or min(updates, 500)) if resumable else None,
        evaluate=evaluate,
        metric=metric,
        resume=found,
        writes=arguments.process_index == 0,
        emit=emit,
        at_start=at_start,
    )
    finished = _already_stopped(found)
    if finished is None:
        seeder = SeedSteps(sampler, settings, updates, arguments.process_index)
        _train(model, loader, arguments, settings, total, updates, seeder, keeper, found)
        finished = keeper.state
        if keeper.average is not None:
            keeper.average.leave()
    if finished.best_step >= 0 and settings.select:
        ranks.wait()
        load_weights(model, best_file(run, finished.best_step), finished.best_sha256)
    report = _report(finished, total, batches.rows, time.monotonic() - started)
    if settle is not None:
        settle(model)
        report = _measured_again(model, report, evaluate if settings.select else None, metric, total, emit)
    finish(model, run, report)
    return report


def _report(state: RunState, total: int, rows: int, seconds: float) -> FitReport:
    return FitReport(
        steps=total if not state.stopped else int(state.history[-1]["step"]),
        pairs=rows,
        seconds=seconds,
        best_step=state.best_step,
        best_value=state.best_value if state.best_step >= 0 else None,
        history=state.history,
    )


def _measured_again(
    model: nn.Module,
    report: FitReport,
    evaluate: Evaluate | None,
    metric: str,
    total: int,
    emit: Callable[[FitEvent], None],
) -> FitReport:
    """The report with the dev value of weights that were changed after the best ones were chosen."""
    if evaluate is None or report.best_value is None:
        return report
    found = evaluate(model) if ranks.is_first() else {}
    values = ranks.from_first({name: float(value) for name, value in found.items()})
    emit(FitEvent("evaluate", report.best_step, total, values))
    return replace(report, best_value=values[metric])


def check_trackers(trackers: Sequence[str]) -> None:
    """Raise an error for a tracker that the Trainer does not know, before anything is written."""
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for name in trackers:
        if name not in INTEGRATION_TO_CALLBACK:
            known = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
            raise UsageError(f"tracker {name!r} is unknown. Choose one of {known}.")


def _arguments(settings: FitSettings, run: Path) -> TrainingArguments:
    if "tensorboard" in settings.trackers:
        # Beside the run folder, which is removed when the model is complete.
        name = f"{run.parent.name.removesuffix('.run')}-{run.name}"
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(Path("runs") / "tensorboard" / name))
    on_cpu = settings.device == "cpu" or not torch.accelerator.is_available()
    if on_cpu and settings.precision == "fp16":
        raise UsageError("precision fp16 needs a GPU. Use bf16 or fp32 on a CPU.")
    arguments = TrainingArguments(
        output_dir=str(run),
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        max_grad_norm=settings.clip,
        save_strategy="no",
        eval_strategy="no",
        logging_steps=10,
        logging_nan_inf_filter=False,
        report_to=list(settings.trackers) or "none",
        seed=settings.seed,
        bf16=settings.precision == "bf16",
        fp16=settings.precision == "fp16",
        use_cpu=on_cpu,
        remove_unused_columns=False,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    # One process uses one GPU: torchrun is the way to many, nn.DataParallel cannot split our batches.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def _train(
    model: nn.Module,
    loader: DataLoader[Any],
    arguments: TrainingArguments,
    settings: FitSettings,
    total: int,
    updates: int,
    seeder: SeedSteps,
    keeper: SelectAndSave,
    found: Checkpoint | None,
) -> None:
    optimiser = make_optimiser(model, settings)
    rates = make_rate_schedule(
        optimiser, settings, total, steps_per_epoch=updates, shrinks=lambda: keeper.state.shrinks
    )
    trainer = _StepTrainer(
        loader=loader,
        model=model,
        args=arguments,
        optimizers=(optimiser, rates),
        callbacks=[seeder, keeper],
    )
    trainer.remove_callback(PrinterCallback)
    keeper.log = trainer.log
    with warnings.catch_warnings():
        # LambdaLR cannot know that the optimiser's own state was restored before its first step.
        warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step", category=UserWarning)
        trainer.train(resume_from_checkpoint=None if found is None else str(found.folder))


def _already_stopped(found: Checkpoint | None) -> RunState | None:
    """The state of a checkpoint, if the step that wrote it stopped the run early."""
    if found is None:
        return None
    state = RunState.read(found.state["run"])
    return state if state.stopped else None
