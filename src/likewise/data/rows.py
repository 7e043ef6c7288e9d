"""Row and Table: the form in which every source of data reaches the rest of Likewise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from likewise.errors import FormatError, Problem

Fail = Callable[[Problem], None]

# More than any table of rated texts has: what goes beyond is a file without line ends, or a matrix.
MAX_COLUMNS = 10_000


class Row(NamedTuple):
    """One row: its fields by column name, and its place ("pairs.csv:812")."""

    fields: dict[str, object]
    source: str


class Unquoted(str):
    """NaN or Infinity in a JSON file: a word that is neither a number to train on nor a text."""

    __slots__ = ()


class Repeated(str):
    """The name of a column that the header holds several times. Such a column cannot be asked for."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ShortRow(Problem):
    """A row with too few fields. `fields` are those that are there; the others are empty."""

    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spoilt(Problem):
    """Bytes that are not text. The row that holds them is given all the same, with marks in their place."""


def refuse(problem: Problem) -> None:
    """Stop at a problem that a reader could also have skipped."""
    raise FormatError([problem])


def ignore(problem: Problem) -> None:
    """Skip a problem that is reported elsewhere."""


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and a way to read the rows, one at a time.

    `scan(fail)` reads the rows and passes each problem that it can skip (a ragged row, a malformed line) to
    `fail`. Plain iteration stops at the first problem. `once` marks a source that cannot be read twice.
    `size` is the number of rows if it is known without reading them. `delimiter` is the character between the
    fields of a delimited file, and empty for every other source. `bom` says whether a text file begins with a
    byte-order mark of UTF-8.
    """

    name: str
    columns: tuple[str, ...]
    scan: Callable[[Fail], Iterator[Row]]
    once: bool = False
    size: int | None = None
    delimiter: str = ""
    bom: bool = False

    @property
    def csv_delimiter(self) -> str:
        """The delimiter of a CSV file that is made from this table: its own, but no tab."""
        return self.delimiter if self.delimiter not in ("", "\t") else ","

    @property
    def csv_bom(self) -> bool:
        """Whether a CSV file that is made from this table gets a byte-order mark: spreadsheets that separate
        fields by semicolons write one, and without it they read no UTF-8.
        """
        return self.bom and self.csv_delimiter != ","

    def __iter__(self) -> Iterator[Row]:
        return self.scan(refuse)
