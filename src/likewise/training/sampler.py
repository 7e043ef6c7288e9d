"""Batches: all that training knows of rows. StepSampler: the steps of an epoch, one process's share of each.

The batches of an epoch are a function of (seed, epoch) alone, so that a resumed run sees what an undisturbed
one would have seen. They are formed for all processes together; each process takes its slice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader, Dataset, Sampler

from likewise.data.batching import training_batches
from likewise.errors import UsageError
from likewise.training.settings import FitSettings


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of every batch a process computes, and on what."""

    rank: int
    world: int
    chunked: bool  # whether a batch is cut into chunks of similar length: on a GPU one chunk is faster


@dataclass(frozen=True, slots=True)
class Batches:
    """Rows as steps: an item is whatever `collate` understands, an address mostly.

    `rows` counts the training rows, `steps` the batches of an epoch, the same in every epoch. `filler` gives
    the items of a process that has no row of a batch: they are computed, since all processes step together,
    and must weigh nothing. A batch that cannot be sliced by rows goes to one process whole (`sliced` False),
    and each process gets another one.
    """

    rows: int
    steps: int
    of_epoch: Callable[[int], Iterable[Sequence[Any]]]
    collate: Callable[[Sequence[Any]], dict[str, Any]]
    filler: Callable[[Sequence[Any]], Sequence[Any]]
    sliced: bool = True


class StepSampler(Sampler[list[Any]]):
    """The steps of an epoch as one process takes them."""

    def __init__(self, batches: Batches, share: Share) -> None:
        self._batches, self._share = batches, share
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration walks through."""
        self._epoch = epoch

    def __len__(self) -> int:
        steps = self._batches.steps
        return steps if self._batches.sliced else math.ceil(steps / self._share.world)

    def __iter__(self) -> Iterator[list[Any]]:
        batches, rank, world = self._batches, self._share.rank, self._share.world
        waiting = list(batches.of_epoch(self._epoch))
        if len(waiting) != batches.steps:
            raise UsageError(
                f"epoch {self._epoch} has {len(waiting)} batches and {batches.steps} were announced: "
                "every epoch must have the same number (Batches.steps)"
            )
        if batches.sliced:
            for items in waiting:
                yield list(items[rank::world]) or list(batches.filler(items))
            return
        for start in range(0, len(waiting), world):
            mine = start + rank
            yield list(waiting[mine] if mine < len(waiting) else batches.filler(waiting[start]))


class _Addresses(Dataset[Any]):
    """Items are their own addresses: what they stand for is looked up when a batch is put together."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, item: Any) -> Any:
        return item


def make_loader(batches: Batches, share: Share) -> tuple[DataLoader[Any], StepSampler]:
    """The batches as torch takes them, and what decides their order."""
    sampler = StepSampler(batches, share)
    loader = DataLoader(
        _Addresses(batches.rows),
        batch_sampler=sampler,
        collate_fn=batches.collate,  # type: ignore[arg-type]
    )
    return loader, sampler


def epoch_batches(
    lengths: Sequence[int], settings: FitSettings, epoch: int, *, weights: Sequence[float] | None = None
) -> list[list[int]]:
    """The batches of an epoch as a run's settings cut them, as row numbers."""
    return training_batches(
        lengths,
        batch_size=settings.batch_size,
        seed=settings.seed,
        epoch=epoch,
        order=settings.order,
        token_budget=settings.token_budget,
        weights=weights,
    )
