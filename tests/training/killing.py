"""Runs a training in a process of its own and kills it, for real, where it is told to."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any


def train_and_maybe_die(
    folder: str,
    recipe: dict[str, Any],
    data: str,
    *,
    resume: bool,
    die_in_step: int | None,
    die_in_save: int | None,
) -> None:
    """Train into folder/model; SIGKILL this process at the start of a step, or while writing a file."""
    import torch

    from likewise.api import train
    from likewise.methods.pairs import PairModel
    from likewise.training import checkpoints

    torch.set_num_threads(1)
    counts = {"steps": 0, "saves": 0}
    forward, save_file = PairModel.forward, checkpoints.save_file

    def counted_forward(self: PairModel, *args: Any, **options: Any) -> Any:
        counts["steps"] += 1
        if counts["steps"] == die_in_step:
            os.kill(os.getpid(), signal.SIGKILL)
        return forward(self, *args, **options)

    def torn_save(tensors: Any, path: Path, *args: Any) -> None:
        counts["saves"] += 1
        save_file(tensors, path, *args)
        if counts["saves"] == die_in_save:
            size = os.path.getsize(path)
            os.truncate(path, size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    PairModel.forward = counted_forward  # type: ignore[method-assign]
    checkpoints.save_file = torn_save
    train(
        data,
        Path(folder) / "model",
        overrides=recipe,
        relations=("similarity:0..5", "topic:-2..2"),
        encoder=recipe.get("encoder.name"),
        device="cpu",
        resume=resume,
    )
