"""The readers for delimited files. Each takes (stream, name, fail) and returns what `formats` describes.

csv   quoted by `"`, one header line; commas, or semicolons, tabs or bars if the first lines show it
tsv   tab separated, without quoting (a `"` is a character), one header line

A file of the one kind that is plainly written like the other is read as the other.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from likewise.data.dialects import DELIMITERS, CommaMarker, separator_line, sniff_delimiter
from likewise.data.formats import Parsed, check_columns
from likewise.data.lines import MAX_LINE, Lines
from likewise.data.rows import MAX_COLUMNS, Fail, Repeated, Row, ShortRow
from likewise.errors import FormatError, Problem
from likewise.spelling import ANY, spelt
from likewise.wording import listed, quoted

_TAB = "\t"


def parse_csv(stream: BinaryIO, name: str, fail: Fail, named: str | None = None) -> Parsed:
    """The rows of a file with quoted fields. The number of a row is the line on which it starts."""
    lines = Lines(stream, name, fail)
    return _quoted(lines, name, fail, *_delimiter(lines, named, ","))


def parse_tsv(stream: BinaryIO, name: str, fail: Fail, named: str | None = None) -> Parsed:
    """The rows of a tab-separated file without quoting: a `"` is a character.

    A file without tabs is read as a CSV file, and so is one in UTF-16, which only spreadsheets write.
    """
    lines = Lines(stream, name, fail)
    mark, told = _delimiter(lines, named, _TAB)
    if mark == _TAB and not lines.utf16:
        return _unquoted(lines, name, fail)
    return _quoted(lines, name, fail, mark, told)


def _delimiter(lines: Lines, named: str | None, own: str) -> tuple[str, bool]:
    """The delimiter, and whether it is to be told because it was guessed. A line `sep=;` is passed over."""
    first = lines.ahead()
    said = separator_line(first[0]) if first else None
    if said is not None:
        next(lines)
        return named or said, named is None and said != own
    if own == _TAB and first and _TAB in first[0]:
        return named or own, False
    mark = named or sniff_delimiter(first, own)
    return mark, named is None and mark != own


def _quoted(lines: Lines, name: str, fail: Fail, mark: str, told: bool) -> Parsed:
    # The limit belongs to the whole process: it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    reader = csv.reader(lines, strict=True, delimiter=mark)
    line, header = next(_csv_records(reader, lines, name, fail), (1, []))
    columns, notes = name_columns(header, name, line)
    if told:
        notes = (
            f"{name}: the fields are separated by {DELIMITERS[mark]} (to choose: {spelt('delimiter', ANY)})",
            *notes,
        )
    remedy = f'put a field that holds a {_ONE[mark]} in double quotes (")'

    def records() -> Iterator[tuple[str, list[str]]]:
        for start, fields in _csv_records(reader, lines, name, fail):
            yield f"{name}:{start}", fields

    rows = _rows(columns, records(), fail, remedy, semicolons=mark == ";")
    return Parsed(columns, rows, mark, notes, lines.bom)


_ONE = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def _unquoted(lines: Lines, name: str, fail: Fail) -> Parsed:
    parts = ((lines.source, fields) for line in lines if (fields := line.rstrip("\r\n").split(_TAB)) != [""])
    source, header = next(parts, (f"{name}:1", []))
    columns, notes = name_columns(header, name, int(source.rpartition(":")[2]))
    if len(columns) == 1:
        found = (
            f"the header has no tab: there is one column ({quoted(columns[0])}), but two or more are expected"
        )
        raise FormatError(
            [Problem(f"{name}:1", found, "separate the fields with tabs, or save the file as .csv")]
        )
    remedy = "replace each tab or line break inside a text with a blank"
    return Parsed(columns, _rows(columns, parts, fail, remedy), _TAB, notes, lines.bom)


def _rows(
    columns: tuple[str, ...],
    records: Iterator[tuple[str, list[str]]],
    fail: Fail,
    remedy: str,
    *,
    semicolons: bool = False,
) -> Iterator[Row]:
    width, numbers = len(columns), CommaMarker(len(columns), semicolons=semicolons)
    for source, fields in records:
        if len(fields) == width:
            yield Row(dict(zip(columns, numbers.mark(fields), strict=True)), source)
        elif not any(map(str.strip, fields)):
            yield Row(dict.fromkeys(columns, ""), source)
        else:
            fail(ragged(source, fields, columns, remedy))


def _csv_records(reader: Any, lines: Lines, name: str, fail: Fail) -> Iterator[tuple[int, list[str]]]:
    while True:
        start = lines.number + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = 'close every quoted field, and double a quote inside one ("")'
            if "new-line character" in str(error):
                remedy = "save it with line feeds at the line ends (it has lone carriage returns)"
            fail(Problem(f"{name}:{start}", f"this row is not valid CSV ({error})", remedy))
            continue
        if fields and (len(fields) > 1 or fields[0].strip()):
            yield start, fields


def name_columns(header: Sequence[str], name: str, line: int = 1) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the columns that a header holds, and sentences about those that were renamed.

    A column without a name is called by its number. Of columns with the same name the first keeps it but
    cannot be asked for, and the others get a number.
    """
    if not header:
        found = "this is empty, but a header line and rows are expected"
        raise FormatError([Problem(name, found, "write a header with column names")])
    if len(header) > MAX_COLUMNS:
        check_columns(header, f"{name}:{line}")
    wanted = [column.strip() or f"column {number}" for number, column in enumerate(header, 1)]
    taken = set(wanted)
    seen: dict[str, list[str]] = {}
    columns: list[str] = []
    for column in wanted:
        others = seen.setdefault(column, [])
        others.append(column if not others else _free(column, taken, len(others) + 1))
        taken.add(others[-1])
        columns.append(others[-1])
    repeated = {column: others for column, others in seen.items() if len(others) > 1}
    notes = tuple(
        f"{name}: {len(others)} columns are called {quoted(column)}. The later ones are read as "
        f"{listed(map(quoted, others[1:]))}"
        for column, others in repeated.items()
    )
    named = [Repeated(column) if column in repeated else column for column in columns]
    check_columns(named, f"{name}:{line}")
    return tuple(named), notes


def _free(column: str, taken: set[str], number: int) -> str:
    while f"{column}_{number}" in taken:
        number += 1
    return f"{column}_{number}"


def ragged(source: str, fields: Sequence[str], columns: Sequence[str], remedy: str) -> Problem:
    """The problem of a row with too few or too many fields."""
    counted = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    verb = "is" if len(fields) == 1 else "are"
    found = f"there {verb} {counted}, but {len(columns)} are expected ({listed(columns)})"
    if len(fields) > len(columns):
        return Problem(source, found, remedy)
    there = dict(zip(columns, [*fields, *[""] * (len(columns) - len(fields))], strict=True))
    return ShortRow(source, found, remedy, there)
