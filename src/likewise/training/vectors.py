"""fit_vectors: train small layers on the cached vectors of a frozen encoder.

A step takes milliseconds, so the loop is plain torch: transformers' Trainer would cost as much per step as
the step itself. An epoch depends only on (seed, epoch), and a checkpoint is written after every epoch, so a
killed run continues exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from likewise import ranks
from likewise.disk import make_folder, saying_why
from likewise.errors import EvaluationError
from likewise.training.checkpoints import (
    best_file,
    drop_old_bests,
    load_weights,
    newest_whole,
    refuse_lost_weights,
    restore_optimiser,
    restoring,
    save_weights,
    write_checkpoint,
)
from likewise.training.runstate import RunState
from likewise.training.state import FitEvent, FitReport, finish, finished_report


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """The optimisation settings of one stage; every field means the same as its recipe key."""

    epochs: int = 1000
    min_epochs: int = 0
    patience: int | None = 10
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    seed: int = 1
    select: bool = True
    keep_start: bool = True


class VectorTask(Protocol):
    """What is learnt: the losses of an epoch's batches, and the dev numbers; `score` is maximised."""

    @property
    def pairs(self) -> int:
        """The number of training pairs."""

    def losses(self, epoch: int) -> Iterable[Tensor]:
        """The loss of each step of an epoch, computed on demand."""

    def evaluate(self) -> Mapping[str, float]:
        """The dev numbers; `score` chooses the epoch that is kept."""

    def at_start(self) -> Mapping[str, float]:
        """The dev numbers of the starting model, which the caller keeps if no epoch is better."""


def fit_vectors(
    module: nn.Module,
    task: VectorTask,
    settings: VectorSettings,
    *,
    run: Path,
    resume: bool = False,
    resumable: bool = True,
    emit: Callable[[FitEvent], None] = lambda event: None,
) -> FitReport:
    """Train a module on a task and leave its best (or last) weights in it.

    If no epoch is better than the starting model (`best_step` is 0), the weights stay as they were.
    Under torchrun every process does the same work, and only the first one writes.
    """
    with saying_why(run):
        make_folder(run)
    if resume and (done := finished_report(module, run)):
        return done
    started = time.monotonic()
    optimiser = torch.optim.Adam(
        [p for p in module.parameters() if p.requires_grad],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    state, epoch, step = _restore(module, optimiser, run) if resume else (RunState(), 0, 0)
    if step:
        if ranks.is_first():
            drop_old_bests(run, state.best_step)
        emit(FitEvent("resume", step, settings.epochs * step // epoch))
    else:
        module.eval()
        value = _measure(state, task.at_start(), settings, step=0, epoch=0, emit=emit)
        if settings.select and settings.keep_start:
            _consider(state, value, module, settings, run, step=0)
    while epoch < settings.epochs and not state.stopped:
        module.train()
        lost: Tensor | None = None
        for loss in task.losses(epoch):
            optimiser.zero_grad(set_to_none=True)
            lost = ~torch.isfinite(loss.detach()) | (False if lost is None else lost)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            step += 1
        _refuse_nan(lost, step)
        refuse_lost_weights(module, step)
        epoch += 1
        module.eval()
        _select(state, module, task, settings, run, step=step, epoch=epoch, emit=emit)
        if resumable and ranks.is_first():
            _checkpoint(run, step, module, optimiser, state, epoch)
        if ranks.is_first():
            drop_old_bests(run, state.best_step)
    if state.best_step >= 0 and settings.select:
        ranks.wait()
        load_weights(module, best_file(run, state.best_step), state.best_sha256)
    report = FitReport(
        step, task.pairs, time.monotonic() - started, state.best_step, state.best_value, state.history
    )
    finish(module, run, report)
    return report


def _select(
    state: RunState,
    module: nn.Module,
    task: VectorTask,
    settings: VectorSettings,
    run: Path,
    *,
    step: int,
    epoch: int,
    emit: Callable[[FitEvent], None],
) -> None:
    """Evaluate after an epoch: keep the weights if they are the best, stop if patience has run out."""
    value = _measure(state, task.evaluate(), settings, step=step, epoch=epoch, emit=emit)
    _consider(state, value, module, settings, run, step=step)
    if state.climbs(value):
        state.since_best = 0
        return
    state.since_best += 1
    enough = epoch >= settings.min_epochs
    state.stopped = enough and settings.patience is not None and state.since_best >= settings.patience


def _measure(
    state: RunState,
    found: Mapping[str, float],
    settings: VectorSettings,
    *,
    step: int,
    epoch: int,
    emit: Callable[[FitEvent], None],
) -> float:
    """Report and record the dev numbers, and return the one that selects."""
    values = {name: float(value) for name, value in found.items()}
    state.history.append({"step": step, "epoch": epoch, **values})
    emit(FitEvent("evaluate", step, settings.epochs * step // max(1, epoch), values))
    return values["score"]


def _consider(
    state: RunState, value: float, module: nn.Module, settings: VectorSettings, run: Path, *, step: int
) -> None:
    """Save the module's weights if they are better than every candidate before."""
    if not state.is_better(value):
        return
    if settings.select:
        digest = save_weights(module, best_file(run, step)) if ranks.is_first() else ""
        state.best_sha256 = ranks.from_first(digest)
    state.best_value, state.best_step = value, step


def _checkpoint(
    run: Path, step: int, module: nn.Module, optimiser: torch.optim.Optimizer, state: RunState, epoch: int
) -> None:
    write_checkpoint(
        run,
        step,
        model=module,
        optimiser=optimiser,
        state={"run": asdict(state), "epoch": epoch, "step": step},
    )


def _restore(module: nn.Module, optimiser: torch.optim.Optimizer, run: Path) -> tuple[RunState, int, int]:
    found = newest_whole(run)
    if found is None:
        return RunState(), 0, 0
    saved, folder = found.state, found.folder
    load_weights(module, folder / "model.safetensors")
    with restoring(folder):
        restore_optimiser(optimiser, folder, saved["optimiser"])
        return RunState.read(saved["run"]), int(saved["epoch"]), int(saved["step"])


def _refuse_nan(lost: Tensor | None, step: int) -> None:
    if lost is not None and bool(lost.any()):
        raise EvaluationError(f"the loss became infinite or NaN before step {step}. Lower learning_rate.")
