"""The processes of one run under `torchrun`: which of them writes, and how they wait for each other.

All processes read the same files and take the same decisions. Only the first writes, prints and evaluates.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from likewise.arguments import whole_number

if TYPE_CHECKING:
    from torch import Tensor

_Value = TypeVar("_Value")


def world_size() -> int:
    """The number of processes that share the run; 1 without torchrun."""
    return whole_number("WORLD_SIZE", least=1) if "LOCAL_RANK" in os.environ else 1


def is_first() -> bool:
    """Whether this process writes and prints."""
    return world_size() == 1 or whole_number("RANK", least=0) == 0


def join(device: str | None) -> None:
    """Connect to the other processes. The Trainer would do so too, but only after the run folder is
    opened.
    """
    if world_size() > 1 and not _together():
        from accelerate import PartialState

        PartialState(cpu=device == "cpu")


def leave() -> None:
    """Disconnect from the other processes at the end of a program."""
    if _together():
        import torch

        torch.distributed.destroy_process_group()


def wait() -> None:
    """Wait until every process has reached this point."""
    if _together():
        import torch

        torch.distributed.barrier()


def from_first(value: _Value) -> _Value:
    """The first process's value, in all processes, so that rounding cannot make their decisions differ."""
    if not _together():
        return value
    import torch

    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


def summed(count: Tensor) -> Tensor:
    """The sum of a count over all processes."""
    if _together():
        import torch

        torch.distributed.all_reduce(count)
    return count


def weight_of(count: int, like: Tensor) -> Tensor | float:
    """The weight of this process's mean over `count` rows, such that the weighted means add up to the mean
    over all rows.

    All processes must call it together. `like` is a tensor on the device that they compute on.
    """
    if not _together():
        return 1.0
    total = summed(like.new_tensor(float(count)))
    return count * world_size() / total.clamp(min=1.0)


def _together() -> bool:
    if world_size() == 1:
        return False
    import torch

    return torch.distributed.is_available() and torch.distributed.is_initialized()
