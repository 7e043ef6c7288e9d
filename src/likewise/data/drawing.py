"""Parts of a corpus that are drawn by chance, the same on every machine and by every version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from likewise.data.catalogue import SeededDraw
from likewise.data.keys import connected_rows
from likewise.data.rows import Fail, Row, Table, ignore
from likewise.data.values import to_label
from likewise.errors import DataError, Problem


def drawn_table(table: Table, draw: SeededDraw, texts: Sequence[str] = ()) -> Table:
    """The drawn rows of a table, in the table's own order. A table of another length is an error.

    The table is read twice, and its texts, in the columns `texts`, are held in memory only for a draw by
    text.
    """

    def scan(fail: Fail) -> Iterator[Row]:
        if draw.apart:
            told = [[str(row.fields.get(text) or "") for text in texts] for row in table.scan(fail)]
            order = apart_order(told, draw.seed)
        else:
            order = drawn_order([to_label(row.fields.get(draw.by)) for row in table.scan(fail)], draw.seed)
        if len(order) != draw.of:
            raise DataError([_other_length(table, draw, len(order))])
        chosen = set(order[draw.start : draw.stop])
        # The first pass has told every problem: none is told twice.
        yield from (row for number, row in enumerate(table.scan(ignore)) if number in chosen)

    return Table(table.name, table.columns, scan, size=draw.stop - draw.start)


def drawn_order(groups: Sequence[str], seed: int) -> list[int]:
    """The numbers of all rows, counted from 0, in the order in which a seed draws them.

    The rows of a group are sorted by the sha256 of "SEED:NUMBER", which no version of Python or numpy can
    change. Row k of a group of n then stands at (k + 1/2) / n; rows at the same place are ordered by the name
    of their group. Every stretch therefore has about the groups' shares, and groups of the same size
    alternate.
    """
    members: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    standing: dict[int, tuple[float, str]] = {}
    for group, numbers in members.items():
        numbers.sort(key=lambda number: hashlib.sha256(f"{seed}:{number}".encode()).digest())
        standing.update((number, ((k + 0.5) / len(numbers), group)) for k, number in enumerate(numbers))
    return sorted(standing, key=standing.__getitem__)


def apart_order(rows: Sequence[Sequence[str]], seed: int) -> list[int]:
    """The numbers of all rows in the order in which a seed draws them, rows that share texts side by side.

    Groups of connected rows are sorted by the sha256 of "SEED:NUMBER", with the number of their first row.
    Two stretches share no text if the end of the first is the end of a group.
    """
    groups = connected_rows(rows)
    groups.sort(key=lambda group: hashlib.sha256(f"{seed}:{group[0]}".encode()).digest())
    return [row for group in groups for row in group]


def _other_length(table: Table, draw: SeededDraw, rows: int) -> Problem:
    found = f"the file has {rows:,} rows, but {draw.of:,} are expected to draw from"
    remedy = "copy or download it again; from other rows another part would be drawn"
    return Problem(table.name, found, remedy)
