"""One writer per file format. Each takes (stream, columns) and is written to row by row.

Values that a format cannot hold are replaced, so that hours of work do not end in an error. Half of a
surrogate pair, which is not a character, becomes U+FFFD (in JSON it stays, escaped). Bytes become base64, and
dates their ISO form.
"""

from __future__ import annotations

import base64
import codecs
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO, Protocol
from uuid import UUID

from likewise.disk import to_json
from likewise.errors import DataError, Problem, UsageError
from likewise.wording import clipped, has_half_character, listed

_BATCH = 1024
# What formulas begin with, in their full-width forms too, and what begins so without being one: -0.5.
_STARTS = tuple("=+-@\t\r\n＝＋－＠")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_HALF = re.compile("[\ud800-\udfff]")
_BREAKS = str.maketrans({"\t": " ", "\n": " ", "\r": " ", "\0": " "})


class Sink(Protocol):
    """A writer for the rows of one format."""

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""

    def close(self) -> None:
        """Write the rest."""

    def drop(self) -> None:
        """Discard the rest, because the file will be removed."""


class CsvSink:
    """Fields between commas or another delimiter, quoted where needed. A NUL character becomes a blank.

    With `safe`, a text that a spreadsheet would run as a formula gets a single quote in front.
    """

    def __init__(
        self,
        stream: BinaryIO,
        columns: tuple[str, ...],
        *,
        safe: bool = False,
        delimiter: str = ",",
        bom: bool = False,
    ) -> None:
        self._stream, self._columns, self._safe, self._delimiter = stream, columns, safe, delimiter
        self._known = frozenset(columns)
        if bom:
            stream.write(codecs.BOM_UTF8)
        self._put(columns)

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""
        _check_keys(row, self._known, self._columns)
        self._put([row.get(column) for column in self._columns])

    def close(self) -> None:
        """Do nothing, since no rows are held back."""

    def drop(self) -> None:
        """Do nothing, since no rows are held back."""

    def _put(self, cells: Sequence[object]) -> None:
        line = self._delimiter.join(_quoted(self._said(cell), self._delimiter) for cell in cells)
        self._stream.write(_whole((line or '""') + "\n").encode("utf-8"))

    def _said(self, cell: object) -> str:
        text = _text(cell)
        number = isinstance(_scalar(cell), int | float)
        return f"'{text}" if self._safe and not number and _is_formula(text) else text


class TsvSink(CsvSink):
    """Tab separated without quoting. A tab, line break or NUL inside a field becomes a blank."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...], *, safe: bool = False) -> None:
        if len(columns) < 2:
            raise UsageError("a TSV file needs two or more columns. Write one column as .csv or .jsonl.")
        super().__init__(stream, columns, safe=safe)

    def _put(self, cells: Sequence[object]) -> None:
        line = "\t".join(self._said(cell).translate(_BREAKS) for cell in cells)
        self._stream.write(_whole(line + "\n").encode("utf-8"))


class JsonlSink:
    """One JSON object per line. Rows may differ in their keys."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...]) -> None:
        self._stream = stream

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""
        self._stream.write((_json(dict(row)) + "\n").encode("utf-8"))

    def close(self) -> None:
        """Do nothing, since no rows are held back."""

    def drop(self) -> None:
        """Do nothing, since no rows are held back."""


class ParquetSink:
    """Parquet in batches. The first batch fixes each column's type."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...]) -> None:
        self._stream, self._columns, self._known = stream, columns, frozenset(columns)
        self._rows: list[dict[str, object]] = []
        self._writer: Any = None

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""
        _check_keys(row, self._known, self._columns)
        self._rows.append({column: _arrow(row.get(column)) for column in self._columns})
        if len(self._rows) >= _BATCH:
            self._flush()

    def close(self) -> None:
        """Write the last batch and the footer."""
        self._flush()
        self._writer.close()

    def drop(self) -> None:
        """Close pyarrow's writer, which would otherwise write again when it is collected."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()

    def _flush(self) -> None:
        import pyarrow
        import pyarrow.parquet

        try:
            if self._writer is None:
                first = pyarrow.table({c: [row[c] for row in self._rows] for c in self._columns})
                # A column without a value so far could hold anything later: text is the safest guess.
                types = [pyarrow.string() if t == pyarrow.null() else t for t in first.schema.types]
                schema = pyarrow.schema(list(zip(self._columns, types, strict=True)))
                self._writer = pyarrow.parquet.ParquetWriter(self._stream, schema)
            self._writer.write_table(pyarrow.Table.from_pylist(self._rows, schema=self._writer.schema))
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
            found = f"a column changes its type ({clipped(str(error))})"
            problem = Problem("parquet", found, "write .jsonl, or give each column one type")
            raise DataError([problem]) from None
        self._rows = []


SINKS: dict[str, Callable[[BinaryIO, tuple[str, ...]], Sink]] = {
    ".csv": CsvSink,
    ".tsv": TsvSink,
    ".jsonl": JsonlSink,
    ".ndjson": JsonlSink,
    ".parquet": ParquetSink,
}


# Formats that people open in spreadsheets.
SPREADSHEETS: tuple[Callable[..., Sink], ...] = (CsvSink, TsvSink)


def _check_keys(row: Mapping[str, object], known: frozenset[str], columns: tuple[str, ...]) -> None:
    unknown = row.keys() - known
    if unknown:
        raise UsageError(f"there is no column {listed(sorted(unknown))}. The columns are {listed(columns)}.")


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a text: it starts like a formula, apart from blanks, and is not a
    number.
    """
    return text.lstrip(" \0")[:1] in _STARTS and not _NUMBER.fullmatch(text)


def _whole(text: str) -> str:
    """A text in which half of a surrogate pair, which UTF-8 cannot write, becomes U+FFFD."""
    return _HALF.sub("\ufffd", text) if has_half_character(text) else text


def _json(value: object) -> str:
    try:
        text = to_json(_plain_cell(value))
    except RecursionError:
        raise DataError([Problem("row", "a cell is nested too deeply", "use fewer levels")]) from None
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text) if has_half_character(text) else text


def _quoted(text: str, delimiter: str) -> str:
    text = text.replace("\0", " ")
    marks = (delimiter, '"', "\r", "\n")
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in marks) else text


def _text(cell: object) -> str:
    cell = _scalar(cell)
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return _json(cell) if isinstance(cell, list | tuple | dict) else str(_plain_cell(cell))


def _scalar(cell: object) -> object:
    return cell.tolist() if hasattr(cell, "tolist") else cell


def _arrow(cell: object) -> object:
    cell = _scalar(cell)
    return _whole(cell) if isinstance(cell, str) else cell


def _plain_cell(cell: object) -> object:
    """A cell of a table in JSON's own types."""
    if isinstance(cell, str | int | float | None):
        return cell
    if isinstance(cell, dict):
        return {str(key): _plain_cell(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [_plain_cell(value) for value in cell]
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode("ascii")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, Decimal | timedelta | UUID) else cell
