"""Convert cells to texts and values, and a row to a record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from likewise.data.dialects import ClashingNumber, CommaNumber, PointNumber, tell_once
from likewise.data.rows import Row, Unquoted
from likewise.errors import DataError, Problem
from likewise.records import Record, Relation, Value
from likewise.spelling import spelt_together
from likewise.wording import has_half_character, quoted

MAX_CHARS = 100_000
# Compared without case. A cell that is one of the relation's own labels is never missing.
MISSING = frozenset({"", "na", "n/a", "null", "-"})

# Each relation by name, with the column that holds it.
Places = Mapping[str, tuple[Relation, str]]


class Fault(NamedTuple):
    """A problem with a text: a kind to count by, and the located problem."""

    kind: str
    problem: Problem


def is_missing(cell: object) -> bool:
    """Whether a cell holds no answer: it is absent, empty, NA, null, a lone dash, or a table's float NaN."""
    if isinstance(cell, str):
        return cell.strip().casefold() in MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def is_written_nan(cell: object) -> bool:
    """Whether a text file spells NaN.

    In tables (pandas, parquet) NaN means "missing"; in a text file it is more often a failed computation.
    """
    return isinstance(cell, str) and cell.strip().casefold() == "nan"


def to_number(cell: object) -> float | None:
    """The number in a cell, or None if it holds none."""
    if isinstance(cell, CommaNumber):
        return cell.number
    if isinstance(cell, ClashingNumber):
        return None
    if isinstance(cell, str) and "_" in cell:  # float() takes 1_000
        return None
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def to_label(cell: object) -> str:
    """The label in a cell. JSON's true, 1 and 1.0 become "true", "1" and "1"."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    try:
        return str(cell).strip()
    except (ValueError, RecursionError):  # a number of thousands of digits; a list nested too deeply
        return quoted(cell)


def to_value(relation: Relation, cell: object, source: str) -> Value | None:
    """The relation's value in a cell, or None if it is missing. A value outside the relation's range is an
    error.
    """
    if relation.labels and cell is not None:
        label = to_label(cell)
        if label in relation.labels:
            return label
    if is_missing(cell):
        return None
    if is_written_nan(cell):
        found = f"{relation.name} is NaN, but a value on {relation.scale} is expected"
        raise DataError([Problem(source, found, "leave it empty if it is missing, or correct it")])
    if relation.kind == "classes":
        return relation.check(cell, source)
    number = to_number(cell)
    if isinstance(cell, CommaNumber | PointNumber):
        _tell_mark(relation, cell, number, source)
    if isinstance(cell, ClashingNumber):
        found = f"{relation.name} is {quoted(cell)}, but the column has commas and points in its numbers, "
        found += f"and one of them may separate thousands: {cell.readings}"
        raise DataError([Problem(source, found, "write all numbers of the column in the same way")])
    if relation.kind == "ordered":
        return relation.check(cell if number is None else number, source)
    if number is None:
        found = f"{relation.name} is {quoted(cell)}, which is not a number"
        raise DataError([Problem(source, found, "correct the value, or leave it empty")])
    return relation.check(number, source)


def _tell_mark(
    relation: Relation, cell: CommaNumber | PointNumber, number: float | None, source: str
) -> None:
    name, mark = source.rpartition(":")[0], "comma" if isinstance(cell, CommaNumber) else "point"
    line = f"{name}: the {mark} in {relation.name} is read as a decimal {mark} ({cell} is {number:g})"
    if isinstance(cell, PointNumber) or cell.is_unsure:
        line += ". If it separates thousands, write the numbers without it"
    tell_once(line, name, relation.name, mark)


def find_fault(cell: object, *, column: str, source: str, max_chars: int) -> Fault | None:
    """The reason why a cell is not a text: it is empty, too long, or of another type. None if it is a
    text.
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        cell = ""
    if isinstance(cell, Unquoted):
        found = f"{column} is {cell} without quotes, but a text is expected"
        return Fault("not a text", Problem(source, found, "fill it in, or remove the row"))
    if not isinstance(cell, str):
        found = f"{column} is {quoted(cell)} ({type(cell).__name__}), but a text is expected"
        remedy = (
            f"write it as a string, or name the text columns: {spelt_together(text_a='NAME', text_b='NAME')}"
        )
        return Fault("not a text", Problem(source, found, remedy))
    if not cell or cell.isspace():
        problem = Problem(
            source, f"{column} is empty, but a text is expected", "fill it in, or remove the row"
        )
        return Fault("empty text", problem)
    if len(cell) > max_chars:
        found = f"{column} has {len(cell):,} characters, which is more than the limit of {max_chars:,}"
        remedy = "shorten or split the text, or raise max_chars"
        return Fault("over-long text", Problem(source, found, remedy))
    if has_half_character(cell):
        found = f"{column} holds half of a surrogate pair, which is not a character"
        return Fault("not a text", Problem(source, found, "write the text as UTF-8"))
    return None


def to_text(cell: object, *, column: str, source: str, max_chars: int = MAX_CHARS) -> str:
    """The text in a cell. An empty cell, a text that is too long, or another type is an error."""
    fault = find_fault(cell, column=column, source=source, max_chars=max_chars)
    if fault is not None:
        raise DataError([fault.problem])
    return str(cell)


def to_record(row: Row, texts: Sequence[str], places: Places, *, max_chars: int = MAX_CHARS) -> Record:
    """The record in a row. A text or a value that is not allowed is an error."""
    fields, source = row
    return Record(
        tuple(to_text(fields.get(name), column=name, source=source, max_chars=max_chars) for name in texts),
        {name: to_value(relation, fields.get(column), source) for name, (relation, column) in places.items()},
        source,
        str(fields.get("subset") or ""),
        str(fields.get("language") or ""),
    )
