"""The settings of a training run. `kinds.building` makes them from a recipe; nothing here reads a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from likewise.data.batching import Order
from likewise.methods.pairs import Weighting
from likewise.schedules import ScheduleName

RateSchedule = Literal["linear", "constant", "cosine", "paper", "code", "infersent"]


@dataclass(frozen=True, slots=True)
class FitSettings:
    """The optimisation settings of one stage; every field means the same as its recipe key."""

    epochs: float = 1.0
    batch_size: int = 16
    learning_rate: float = 2e-5
    head_learning_rate: float | None = None
    optimiser: Literal["adamw", "sgd", "exact"] = "adamw"
    momentum: float = 0.0
    weight_decay: float = 0.01
    layer_decay: float = 1.0
    rate_schedule: RateSchedule = "linear"
    warmup: float = 0.1
    clip: float = 1.0
    anchor: float = 0.0
    average: float = 0.0
    accumulation: int = 1
    order: Order = "length"
    token_budget: int | None = None
    schedule: ScheduleName = "multi-label"
    shuffle_relations: bool = False
    weighting: Weighting = "sum"
    freeze: tuple[str, ...] = ()
    evaluate_every: int | None = None
    save_every: int | None = None
    patience: int | None = None
    stop_after: int | None = None
    select: bool = True
    keep_start: bool = True
    max_steps: int | None = None
    seed: int = 1
    precision: str = "fp32"
    device: str | None = None
    trackers: tuple[str, ...] = ()
