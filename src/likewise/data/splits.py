"""Splitting rows so that no text stands on both sides.

Pairs that share a text (by the audit's key) hang together; whole groups go to one side. Where one group
holds most rows, as in data made by recombining a few sentences, rows are split at random instead and the
caller is told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.data.keys import text_key
from likewise.errors import DataError
from likewise.records import Record

_LARGEST_GROUP = 0.5


def split_rows(records: Sequence[Record], share: float, seed: int) -> tuple[set[int], bool]:
    """Row numbers of a split-off part of about `share`, and whether no text of it stands among the rest."""
    if len(records) < 10:
        raise DataError(
            f"{len(records)} pairs are too few to split off a dev set; name one in the recipe (stage.0.dev)"
        )
    rng = np.random.default_rng([seed, len(records)])
    groups = text_groups(records)
    wanted = max(1, round(len(records) * share))
    if max(map(len, groups)) > _LARGEST_GROUP * len(records):
        return set(rng.permutation(len(records))[:wanted].tolist()), False
    chosen: set[int] = set()
    for index in rng.permutation(len(groups)):
        if len(chosen) + len(groups[index]) <= wanted or not chosen:
            chosen.update(groups[index])
        if len(chosen) >= wanted:
            break
    return chosen, True


def text_groups(records: Sequence[Record]) -> list[list[int]]:
    """Rows that hang together through shared texts, as lists of row numbers, in order of first appearance."""
    parent = list(range(len(records)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[str, int] = {}
    for row, record in enumerate(records):
        for text in record.texts:
            other = first.setdefault(text_key(text), row)
            low, high = sorted((root(row), root(other)))
            parent[high] = low
    groups: dict[int, list[int]] = {}
    for row in range(len(records)):
        groups.setdefault(root(row), []).append(row)
    return list(groups.values())
