"""Schedules: which relations a step trains. There is no torch here, because a schedule is a rule about
batches.

    single       one relation per model, and every step trains it
    multi-label  one step on the weighted sum over all relations
    multi-task   one step per relation on the same batch, in table order (or in random order per batch)

With one relation the three are the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from likewise.errors import UsageError

ScheduleName = Literal["single", "multi-label", "multi-task"]
SCHEDULES: tuple[ScheduleName, ...] = ("single", "multi-label", "multi-task")


def steps_per_batch(schedule: ScheduleName, relations: Sequence[str]) -> int:
    """The number of optimiser steps for one batch."""
    check_schedule(schedule, relations)
    return len(relations) if schedule == "multi-task" else 1


def relations_of_steps(
    schedule: ScheduleName, relations: Sequence[str], *, seed: int = 0, batch: int = 0, shuffle: bool = False
) -> list[tuple[str, ...]]:
    """For one batch, the relations that each of its steps trains."""
    check_schedule(schedule, relations)
    if schedule != "multi-task":
        return [tuple(relations)]
    order = list(relations)
    if shuffle:
        order = [order[i] for i in np.random.default_rng([seed, batch]).permutation(len(order))]
    return [(name,) for name in order]


def check_schedule(schedule: str, relations: Sequence[str]) -> None:
    """Refuse an unknown schedule, or `single` over several relations."""
    if schedule not in SCHEDULES:
        raise UsageError(f"schedule {schedule!r} is not one of {', '.join(SCHEDULES)}")
    if schedule == "single" and len(relations) != 1:
        raise UsageError(
            f"schedule 'single' trains one relation, but the stage has {len(relations)}: "
            f"{', '.join(relations)}. Choose multi-label or multi-task."
        )
