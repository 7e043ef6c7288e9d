"""Find repeated and conflicting rows, with a few numbers per row instead of its texts."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from likewise.data.keys import pair_key
from likewise.records import Relation, Value


class Repeat(NamedTuple):
    """A later row that repeats an earlier one. `before` and `now` are its ratings if they conflict."""

    relation: Relation | None
    first_line: int
    line: int
    before: Value | None = None
    now: Value | None = None


class Repeats:
    """Remember rows by 8-byte hashes: 24 bytes per row and 8 for each relation."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        self._relations = tuple(relations)
        self._pairs = array("q")
        self._rows = array("q")
        self._lines = array("q")
        self._ratings = [array("d") for _ in self._relations]

    def add(
        self, texts: tuple[str, ...], cells: Sequence[object], values: Sequence[Value | None], line: int
    ) -> bool:
        """Add one row, and return whether its texts are the same."""
        key = pair_key(texts[0], texts[-1])
        self._pairs.append(hash(key))
        self._rows.append(hash((texts, tuple(map(str, cells)))))
        self._lines.append(line)
        for relation, ratings, value in zip(self._relations, self._ratings, values, strict=True):
            ratings.append(_code(relation, value))
        return key[0] == key[1]

    def duplicates(self) -> list[Repeat]:
        """Rows that repeat an earlier row exactly, by line."""
        found = [
            Repeat(None, self._lines[group[0]], self._lines[index])
            for group in _groups(self._rows)
            for index in group[1:]
        ]
        return sorted(found, key=lambda repeat: repeat.line)

    def conflicts(self) -> list[Repeat]:
        """Rows that rate the pair of an earlier row differently, by line."""
        return sorted(self._find_conflicts(), key=lambda repeat: repeat.line)

    def _find_conflicts(self) -> Iterator[Repeat]:
        for group in _groups(self._pairs):
            for relation, ratings in zip(self._relations, self._ratings, strict=True):
                rated = [index for index in group if not math.isnan(ratings[index])]
                for index in rated[1:]:
                    before, now = ratings[rated[0]], ratings[index]
                    if before != now:
                        lines = self._lines[rated[0]], self._lines[index]
                        yield Repeat(relation, *lines, _decode(relation, before), _decode(relation, now))


def _groups(hashes: array[int]) -> Iterator[list[int]]:
    """The indices of equal hashes, in order, where there are two or more."""
    import numpy as np

    keys = np.frombuffer(hashes, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    group: list[int] = []
    last = -2
    for place in same.tolist():
        if place != last + 1:
            if group:
                yield group
            group = [int(order[place])]
        group.append(int(order[place + 1]))
        last = place
    if group:
        yield group


def _code(relation: Relation, value: Value | None) -> float:
    if value is None:
        return math.nan
    return float(relation.labels.index(str(value))) if relation.labels else float(value)


def _decode(relation: Relation, code: float) -> Value:
    return relation.labels[int(code)] if relation.labels else code
