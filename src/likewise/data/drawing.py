"""Parts of a file without an official split: a seeded draw, balanced by a column, the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from likewise.data.catalogue import SeededDraw
from likewise.data.rows import Fail, Row, Table, ignore
from likewise.data.values import to_label
from likewise.errors import DataError, Problem


def drawn_table(table: Table, draw: SeededDraw) -> Table:
    """The drawn rows of a table, in the table's own order; a table of another length is an error.

    Goes through the table twice and holds no texts, so that a long file fits.
    """

    def scan(fail: Fail) -> Iterator[Row]:
        groups = [to_label(row.fields.get(draw.by)) for row in table.scan(fail)]
        if len(groups) != draw.of:
            raise DataError([_other_length(table, draw, len(groups))])
        chosen = set(drawn_order(groups, draw.seed)[draw.start : draw.stop])
        # The first pass has told every problem: none is told twice.
        yield from (row for number, row in enumerate(table.scan(ignore)) if number in chosen)

    return Table(table.name, table.columns, scan, size=draw.stop - draw.start)


def drawn_order(groups: Sequence[str], seed: int) -> list[int]:
    """The numbers of all rows, counted from 0, in the order in which a seed draws them.

    The rows of a group are sorted by the sha256 of "SEED:NUMBER", which no version of Python or numpy can
    change. Row k of a group of n then stands at (k + 1/2) / n, and at the same place groups go by name: every
    stretch has about the groups' shares, and groups of the same size take turns.
    """
    members: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    standing: dict[int, tuple[float, str]] = {}
    for group, numbers in members.items():
        numbers.sort(key=lambda number: hashlib.sha256(f"{seed}:{number}".encode()).digest())
        standing.update((number, ((k + 0.5) / len(numbers), group)) for k, number in enumerate(numbers))
    return sorted(standing, key=standing.__getitem__)


def _other_length(table: Table, draw: SeededDraw, rows: int) -> Problem:
    found = f"{rows:,} rows, expected {draw.of:,} to draw from"
    remedy = "copy or download it again: of other rows another part would be drawn"
    return Problem(table.name, found, remedy)
