"""K folds of rows: each is held out once, the others are trained on.

Rows that share a text (by the audit's key) stay in one fold. Where such a group is larger than a fold, as in
data made by recombining a few sentences, only repeats of the same pair are kept together and the caller is
told. Labels and sources are spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.data.keys import text_key
from likewise.data.splits import text_groups
from likewise.errors import DataError
from likewise.records import Record


def fold_rows(
    records: Sequence[Record], count: int, seed: int, sources: Sequence[int] | None = None
) -> tuple[list[int], bool]:
    """The fold of each row, 0 to count−1, and whether no text stands in two folds.

    A function of the rows and the seed alone. `sources` says which data entry each row comes from.
    """
    groups, apart = text_groups(records), True
    if max(map(len, groups), default=0) > len(records) / count:
        groups, apart = _repeats(records), False
    if len(groups) < count:
        raise DataError(
            f"{len(groups)} different rows are too few for {count} folds; give more rows, or fewer folds"
        )
    strata: dict[str, list[list[int]]] = {}
    for group in groups:
        first = group[0]
        strata.setdefault(_stratum(records[first], sources[first] if sources else 0), []).append(group)
    rng = np.random.default_rng([seed, len(records), count])
    folds, sizes = [0] * len(records), [0] * count
    for name in sorted(strata):
        _deal([strata[name][n] for n in rng.permutation(len(strata[name]))], folds, sizes)
    return folds, apart


def _deal(groups: Sequence[Sequence[int]], folds: list[int], sizes: list[int]) -> None:
    """Give each group, the largest first, to the fold with the fewest rows of its kind, then of any."""
    own = [0] * len(sizes)
    for group in sorted(groups, key=len, reverse=True):
        fold = min(range(len(sizes)), key=lambda n: (own[n], sizes[n]))
        own[fold] += len(group)
        sizes[fold] += len(group)
        for row in group:
            folds[row] = fold


def _stratum(record: Record, source: int) -> str:
    """Rows that are alike: from one source, with the same labels; numbers count by the nearest whole one."""
    values = [
        (name, value if isinstance(value, str) else round(value))
        for name, value in sorted(record.values.items())
        if value is not None
    ]
    return repr((source, values))


def _repeats(records: Sequence[Record]) -> list[list[int]]:
    """Rows that hold the same texts, in either order."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, record in enumerate(records):
        groups.setdefault(tuple(sorted(map(text_key, record.texts))), []).append(row)
    return list(groups.values())
