"""Row and Table: what every source of data looks like to the rest of Likewise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from likewise.errors import FormatError, Problem

Fail = Callable[[Problem], None]

# More than any table of rated texts has: what goes beyond is a file without line ends, or a matrix.
MAX_COLUMNS = 10_000


class Row(NamedTuple):
    """One row: its fields by column name, and where it stands ("pairs.csv:812")."""

    fields: dict[str, object]
    source: str


class Unquoted(str):
    """NaN or Infinity as JSON files hold it: a word that is neither a number to train on nor a text."""

    __slots__ = ()


def refuse(problem: Problem) -> None:
    """Stop at a problem that a reader could also have stepped over."""
    raise FormatError([problem])


def ignore(problem: Problem) -> None:
    """Step over a problem that is reported elsewhere."""


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and a way to go through the rows, one at a time.

    `scan(fail)` goes through the rows and hands `fail` each problem it can step over (a ragged row, a
    malformed line); plain iteration stops at the first one. `once` marks a source that cannot be read twice,
    and `size` is the number of rows where it is known without reading them.
    """

    name: str
    columns: tuple[str, ...]
    scan: Callable[[Fail], Iterator[Row]]
    once: bool = False
    size: int | None = None

    def __iter__(self) -> Iterator[Row]:
        return self.scan(refuse)
