"""What a run remembers, tells and leaves behind, whichever loop it runs in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from likewise.training.checkpoints import load_weights


@dataclass(frozen=True, slots=True)
class FitEvent:
    """Something a caller may show: a step, an evaluation, a checkpoint, a run that goes on (`resume`)."""

    kind: str
    step: int
    total: int
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class RunState:
    """What selection and early stopping remember."""

    best_step: int = -1
    best_value: float = -math.inf
    since_best: int = 0
    not_better: int = 0
    stopped: bool = False
    shrinks: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FitReport:
    """What a run did."""

    steps: int
    pairs: int
    seconds: float
    best_step: int
    best_value: float | None
    history: list[dict[str, float]]


def finished_report(model: nn.Module, run: Path) -> FitReport | None:
    """The report of a run that is done, its weights loaded; None if it is not."""
    if not (run / "done.json").is_file():
        return None
    load_weights(model, run / "final.safetensors")
    return FitReport(**json.loads((run / "done.json").read_text(encoding="utf8")))


def best_file(run: Path, step: int) -> Path:
    """Where the weights of the best dev step lie."""
    return run / f"best-{step:08d}.safetensors"
