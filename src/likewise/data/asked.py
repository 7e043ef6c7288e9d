"""The rows of a table that are to be answered, and those among them whose texts cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from likewise.data.rows import Row, ShortRow, Spoilt, Table, refuse
from likewise.data.values import MAX_CHARS, find_fault
from likewise.errors import DataError, FormatError, Problem, UsageError
from likewise.spelling import spelt
from likewise.wording import counted

STOP, SKIP, BLANK = "stop", "skip", "blank"
_SHOWN = 3
# So many broken lines in a row are no accident.
_MOST_BROKEN = 10_000


class AskedRow(NamedTuple):
    """A row and its texts, or None if it cannot be answered."""

    row: Row
    texts: tuple[str, ...] | None


@dataclass(slots=True)
class BadRows:
    """What happens to rows that cannot be answered, how many there were, and the problems of the first ones.

    `stop` raises the first problem. With `blank` such a row keeps its place and has no answers. With `skip`
    it is left out.
    """

    policy: str = STOP
    count: int = 0
    first: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse a policy that does not exist."""
        if self.policy not in (STOP, SKIP, BLANK):
            raise UsageError(
                f"bad rows are to {self.policy!r}, which is not known. Choose {STOP}, {SKIP} or {BLANK}."
            )

    def add(self, problem: Problem) -> None:
        """Count a row that cannot be answered."""
        if self.policy == STOP:
            raise DataError([problem])
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(problem)

    def told(self, asked: int) -> list[str]:
        """Sentences about these rows, among so many that were asked. No sentence if there are none."""
        if not self.count:
            return []
        fate = "have no answers" if self.policy == BLANK else "are left out"
        if self.count == 1:
            fate = "has no answer" if self.policy == BLANK else "is left out"
        more = self.count - len(self.first)
        return [
            f"{self.count:,} of {counted(asked, 'row')} could not be read and {fate}:",
            *(f"  {problem.source}: {problem.message}" for problem in self.first),
            *([f"  … and {more:,} more"] if more else []),
        ]


def ask_rows(table: Table, columns: Sequence[str], bad: BadRows) -> Iterator[AskedRow]:
    """The rows of a table with their texts, checked. A row that `bad` leaves in place has no texts.

    A line that is no row, such as one with too many fields, has no place among the rows. It is left out with
    `skip` and otherwise an error.
    """
    waiting = _Waiting(bad)
    rows = table.scan(refuse if bad.policy == STOP else waiting)
    row: Row | None
    while True:
        row = next(rows, None)
        for short in waiting.short:
            bad.add(short)
            yield AskedRow(Row(dict(short.fields), short.source), None)
        waiting.short.clear()
        if row is None:
            return
        problem, waiting.spoilt = waiting.spoilt or _fault(row, columns), None
        if problem is not None:
            bad.add(problem)
            yield AskedRow(row, None)
        else:
            yield AskedRow(row, tuple(str(row.fields[column]) for column in columns))


class _Waiting:
    """Takes the problems that a reader meets before its next row."""

    def __init__(self, bad: BadRows) -> None:
        self._bad = bad
        self.short: list[ShortRow] = []
        self.spoilt: Problem | None = None

    def __call__(self, problem: Problem) -> None:
        """Keep a problem with its row, or count or raise it."""
        if isinstance(problem, Spoilt):
            self.spoilt = problem
            return
        self.spoilt = None
        if isinstance(problem, ShortRow):
            self.short.append(problem)
            if len(self.short) > _MOST_BROKEN:
                raise FormatError([problem])
        elif self._bad.policy == SKIP:
            self._bad.add(problem)
        else:
            remedy = f"{problem.remedy}, or leave such rows out: {spelt('on_bad', SKIP)}"
            raise FormatError([Problem(problem.source, problem.message, remedy)])


def _fault(row: Row, columns: Sequence[str]) -> Problem | None:
    """Why a row cannot be answered, or None if it can."""
    for column in columns:
        fault = find_fault(row.fields.get(column), column=column, source=row.source, max_chars=MAX_CHARS)
        if fault is not None:
            return fault.problem
    return None
