"""Callbacks around the Trainer's steps: seeding, the epoch's batches, evaluation, checkpoints, progress.

All state that resuming needs is in `runstate.RunState`, which every checkpoint holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from likewise import ranks
from likewise.errors import EvaluationError
from likewise.methods.relations import SHRINK, infersent_stops
from likewise.training.averaging import WeightAverage
from likewise.training.checkpoints import (
    AVERAGE,
    Checkpoint,
    best_file,
    drop_old_bests,
    refuse_lost_weights,
    restore_optimiser,
    restoring,
    save_weights,
    write_checkpoint,
)
from likewise.training.runstate import RunState
from likewise.training.settings import FitSettings
from likewise.training.state import FitEvent

# Dev numbers of a model.
Evaluate = Callable[[Any], Mapping[str, float]]


class EpochSampler(Protocol):
    """A sampler whose batches depend on the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Use the batches of this epoch from now on."""


class SeedSteps(TrainerCallback):
    """Seeds every step with (seed, step, rank), so that a resumed step draws the same dropout."""

    def __init__(
        self, sampler: EpochSampler, settings: FitSettings, updates_per_epoch: int, rank: int
    ) -> None:
        self._sampler, self._settings, self._rank = sampler, settings, rank
        self._updates_per_epoch = updates_per_epoch

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Use the batches of this epoch."""
        self._sampler.set_epoch(state.global_step // self._updates_per_epoch)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Seed the step by its number."""
        words = np.random.SeedSequence([self._settings.seed, state.global_step, self._rank]).generate_state(1)
        torch.manual_seed(int(words[0]))


class SelectAndSave(TrainerCallback):
    """Evaluates on dev, keeps the best weights, stops early, writes checkpoints and restores them."""

    def __init__(
        self,
        model: nn.Module,
        run: Path,
        settings: FitSettings,
        *,
        total: int,
        evaluate_every: int,
        save_every: int | None,
        evaluate: Evaluate | None,
        metric: str,
        resume: Checkpoint | None,
        writes: bool,
        emit: Callable[[FitEvent], None],
        at_start: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.state = RunState()
        self._at_start = at_start
        self._model, self._run, self._settings = model, run, settings
        self._total, self._evaluate_every, self._save_every = total, evaluate_every, save_every
        self._evaluate, self._metric = evaluate, metric
        self._resume, self._writes, self._emit = resume, writes, emit
        self.average = WeightAverage(model, settings.average) if settings.average else None
        self.log: Callable[[dict[str, float]], None] = lambda values: None

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_: Any,
    ) -> None:
        """Evaluate before the first step, or restore what the Trainer does not restore.

        These are our optimiser file, the rate schedule, and the selection state.
        """
        if self._resume is None:
            if self._evaluate is not None:
                with self._at_start():
                    self._look_at_start()
            return
        saved, folder = self._resume.state, self._resume.folder
        with restoring(folder):
            restore_optimiser(optimizer, folder, saved["optimiser"])
            lr_scheduler.load_state_dict(saved["rate_schedule"])
            self.state = RunState.read(saved["run"])
        if self.average is not None:
            self.average.restore(load_file(folder / AVERAGE))
        self._emit(FitEvent("resume", state.global_step, self._total))

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_: Any,
    ) -> TrainerControl:
        """Evaluate and write a checkpoint when one is due."""
        step = state.global_step
        last = step >= self._total
        if self.average is not None:
            self.average.update(step)
        if self._evaluate is not None and (last or step % self._evaluate_every == 0):
            before, due = self.state.shrinks, control.should_log
            with nullcontext() if self.average is None else self.average.in_place():
                self._select(step)
            control.should_log = due  # logging the dev numbers took the step's own turn to log its loss
            if self.state.shrinks > before:
                self._shrink(optimizer)
            control.should_training_stop = control.should_training_stop or self.state.stopped
        if self._writes and self._save_every is not None and not last:
            if step % self._save_every == 0 or control.should_training_stop:
                self._checkpoint(state, optimizer, lr_scheduler)
        return control

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Any = None,
        **_: Any,
    ) -> None:
        """Report the loss; raise an error if it is not a finite number.

        The Trainer sums the losses of all steps on the device. Checking the sum every ten steps and at the
        end (`train_loss`) therefore checks each of them.
        """
        said = logs or {}
        loss = said.get("loss", said.get("train_loss"))
        if loss is None:
            return
        if not math.isfinite(float(loss)):
            raise EvaluationError(
                f"the loss became {loss} before step {state.global_step}. "
                "Lower learning_rate, set clip, or use precision fp32."
            )
        if "loss" not in said:
            return
        rate = float(said.get("learning_rate", 0.0))
        self._emit(
            FitEvent("step", state.global_step, self._total, {"loss": float(loss), "learning_rate": rate})
        )

    def _measure(self, step: int) -> float:
        """Measure the model on dev, report and record the numbers, and return the one that selects."""
        refuse_lost_weights(self._model, step)
        found = self._evaluate(self._model) if self._writes and self._evaluate else {}
        values = ranks.from_first({name: float(value) for name, value in found.items()})
        self.state.history.append({"step": step, **values})
        self.log({f"dev_{name}": value for name, value in values.items()})
        self._emit(FitEvent("evaluate", step, self._total, values))
        return values[self._metric]

    def _consider(self, value: float, step: int) -> None:
        """Save the weights if they are better than every candidate before."""
        if self.state.is_better(value):
            self.state.best_value, self.state.best_step = value, step
            if self._settings.select:
                self._keep_best()

    def _look_at_start(self) -> None:
        """Measure the starting model: it is a candidate, but does not affect patience or learning rates."""
        value = self._measure(0)
        if self._settings.select and self._settings.keep_start:
            self._consider(value, 0)

    def _select(self, step: int) -> None:
        run, value = self.state, self._measure(step)
        self._consider(value, step)
        if run.climbs(value):
            run.since_best = 0
        else:
            run.since_best += 1
            run.shrinks += self._settings.rate_schedule == "infersent"
            run.not_better += 1
            patience, most = self._settings.patience, self._settings.stop_after
            run.stopped = (patience is not None and run.since_best >= patience) or (
                most is not None and run.not_better >= most
            )

    def _keep_best(self) -> None:
        run, step = self.state, self.state.best_step
        digest = save_weights(self._model, best_file(self._run, step)) if self._writes else ""
        run.best_sha256 = ranks.from_first(digest)
        if self._writes and self._save_every is None:
            drop_old_bests(self._run, step)

    def _shrink(self, optimizer: Any) -> None:
        """Divide the learning rates now, because the schedule ran before this evaluation."""
        for group in optimizer.param_groups:
            group["lr"] /= SHRINK
        largest = max(group["lr"] for group in optimizer.param_groups)
        self.state.stopped = self.state.stopped or infersent_stops(largest)

    def _checkpoint(self, state: TrainerState, optimizer: Any, lr_scheduler: Any) -> None:
        refuse_lost_weights(self._model, state.global_step)
        optimiser = getattr(optimizer, "optimizer", optimizer)
        write_checkpoint(
            self._run,
            state.global_step,
            model=self._model,
            optimiser=optimiser,
            state={"run": asdict(self.state), "rate_schedule": lr_scheduler.state_dict()},
            trainer_state=lambda path: state.save_to_json(str(path)),
            average=None if self.average is None else self.average.state(),
        )
        drop_old_bests(self._run, self.state.best_step)
        self._emit(FitEvent("checkpoint", state.global_step, self._total))
