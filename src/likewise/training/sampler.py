"""Batches: the training rows as steps. StepSampler: the steps of an epoch and one process's share of each.

The batches of an epoch depend only on (seed, epoch), so a resumed run sees the same batches as an
uninterrupted one. They are formed for all processes together, and each process takes its slice.
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
    """The part of every batch that a process computes, and its device."""

    rank: int
    world: int
    chunked: bool  # whether a batch is cut into chunks of similar length: on a GPU one chunk is faster


@dataclass(frozen=True, slots=True)
class Batches:
    """Training rows as steps. An item is anything that `collate` understands, usually an address of a row.

    `rows` is the number of training rows, `steps` the number of batches in every epoch. `filler` gives items
    to a process that has no row of a batch; because all processes step together, they are computed, and they
    must have no weight. With `sliced` False, a batch cannot be divided by rows: each process gets a whole
    batch of its own.
    """

    rows: int
    steps: int
    of_epoch: Callable[[int], Iterable[Sequence[Any]]]
    collate: Callable[[Sequence[Any]], dict[str, Any]]
    filler: Callable[[Sequence[Any]], Sequence[Any]]
    sliced: bool = True


class StepSampler(Sampler[list[Any]]):
    """The steps of an epoch for one process."""

    def __init__(self, batches: Batches, share: Share) -> None:
        self._batches, self._share = batches, share
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next iteration."""
        self._epoch = epoch

    def __len__(self) -> int:
        steps = self._batches.steps
        return steps if self._batches.sliced else math.ceil(steps / self._share.world)

    def __iter__(self) -> Iterator[list[Any]]:
        batches, rank, world = self._batches, self._share.rank, self._share.world
        waiting = list(batches.of_epoch(self._epoch))
        if len(waiting) != batches.steps:
            raise UsageError(
                f"epoch {self._epoch} has {len(waiting)} batches, but Batches.steps is {batches.steps}. "
                "Make the same number of batches in every epoch."
            )
        if batches.sliced:
            for items in waiting:
                yield list(items[rank::world]) or list(batches.filler(items))
            return
        for start in range(0, len(waiting), world):
            mine = start + rank
            yield list(waiting[mine] if mine < len(waiting) else batches.filler(waiting[start]))


class _Addresses(Dataset[Any]):
    """A dataset whose items are their own addresses; `collate` looks up the rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, item: Any) -> Any:
        return item


def make_loader(batches: Batches, share: Share) -> tuple[DataLoader[Any], StepSampler]:
    """A DataLoader over the batches, and the sampler that decides their order."""
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
    """The batches of an epoch as row numbers, by a run's settings."""
    return training_batches(
        lengths,
        batch_size=settings.batch_size,
        seed=settings.seed,
        epoch=epoch,
        order=settings.order,
        token_budget=settings.token_budget,
        weights=weights,
    )
