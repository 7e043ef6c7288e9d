"""Which rows share a batch: sorted by length, within a token budget, and a pure function of (seed, epoch).

The order is computed from (seed, epoch) and never stored, so a resumed run sees exactly the batches of an
uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from likewise.errors import UsageError

Order = Literal["length", "random", "fixed"]


def token_budget_batches(lengths: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Indices in batches of similar length, longest first. Each batch has at most `budget` tokens after
    padding.
    """
    if budget < 1:
        raise UsageError(f"a token budget of {budget} has no room for a text. Choose a budget of 1 or more.")
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def training_batches(
    lengths: Sequence[int],
    *,
    batch_size: int,
    seed: int,
    epoch: int,
    order: Order = "length",
    token_budget: int | None = None,
    weights: Sequence[float] | None = None,
) -> list[list[int]]:
    """All batches of one epoch, as lists of row numbers.

        length  rows sorted by length (ties shuffled) and cut into batches, which are shuffled: little padding
        random  rows shuffled, then cut
        fixed   like random, but with the same order in every epoch (as in the code of Zhang & Li 2024)

    `token_budget` closes a batch early when (rows × 2 × longest) would exceed it. `weights` repeats a row
    that many times on average: 2.5 means two or three times, drawn anew in each epoch, while the total stays
    the same.
    """
    if batch_size < 1:
        raise UsageError(
            f"batch_size is {batch_size}, but a batch needs at least one pair. Choose 1 or more."
        )
    if token_budget is not None and order != "length":
        raise UsageError(
            f"token_budget needs order 'length', because with {order!r} the number of batches "
            "changes in every epoch. Change one of the two."
        )
    rng = np.random.default_rng([seed, 0 if order == "fixed" else epoch])
    # Under a token budget the drawn rows decide the number of batches, which must not change between epochs.
    draw = rng if token_budget is None else np.random.default_rng([seed])
    rows = _weighted_rows(len(lengths), weights, draw)
    size = np.asarray(lengths, dtype=np.int64)[rows]
    shuffled = rng.permutation(len(rows))
    if order == "length":
        shuffled = shuffled[np.argsort(size[shuffled], kind="stable")]
    batches = _cut(rows[shuffled].tolist(), size[shuffled].tolist(), batch_size, token_budget)
    if order == "length":
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches


def _weighted_rows(count: int, weights: Sequence[float] | None, rng: np.random.Generator) -> NDArray[np.intp]:
    if weights is None:
        return np.arange(count)
    share = np.asarray(weights, dtype=np.float64)
    # Systematic sampling: the total is fixed, so the number of steps does not change between epochs.
    total = round(float(share.sum()))
    points = (np.arange(total) + rng.random()) * (share.sum() / total)
    drawn: NDArray[np.intp] = np.searchsorted(np.cumsum(share), points, side="right")
    return np.minimum(drawn, count - 1)


def _cut(rows: list[int], sizes: list[int], batch_size: int, token_budget: int | None) -> list[list[int]]:
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for row, size in zip(rows, sizes, strict=True):
        over = token_budget is not None and 2 * (len(batch) + 1) * max(longest, size) > token_budget
        if batch and (len(batch) == batch_size or over):
            batches.append(batch)
            batch, longest = [], 0
        batch.append(row)
        longest = max(longest, size)
    if batch:
        batches.append(batch)
    return batches
