"""One writer per file format; each takes (stream, columns) and is written to row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from likewise.data.aside import to_json
from likewise.errors import DataError, Problem, UsageError

_BATCH = 1024
_BREAKS = str.maketrans({"\t": " ", "\n": " ", "\r": " ", "\0": " "})


class Sink(Protocol):
    """Where rows of one format go."""

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""

    def close(self) -> None:
        """Write what is left."""

    def drop(self) -> None:
        """Let go of what is left: the file will be removed."""


class CsvSink:
    """Comma separated, quoted where needed; a NUL character becomes a blank."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...]) -> None:
        self._stream, self._columns = stream, columns
        self._put(columns)

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""
        _check_keys(row, self._columns)
        self._put([row.get(column) for column in self._columns])

    def close(self) -> None:
        """Nothing is held back."""

    def drop(self) -> None:
        """Nothing is held back."""

    def _put(self, cells: Sequence[object]) -> None:
        line = ",".join(_quoted(_text(cell)) for cell in cells)
        self._stream.write(((line or '""') + "\n").encode("utf-8"))


class TsvSink(CsvSink):
    """Tab separated without quoting; a tab, line break or NUL inside a field becomes a blank."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...]) -> None:
        if len(columns) < 2:
            raise UsageError("a TSV file has two columns or more; write one column as .csv or .jsonl")
        super().__init__(stream, columns)

    def _put(self, cells: Sequence[object]) -> None:
        line = "\t".join(_text(cell).translate(_BREAKS) for cell in cells)
        self._stream.write((line + "\n").encode("utf-8"))


class JsonlSink:
    """One JSON object a line; rows may differ in their keys."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...]) -> None:
        self._stream = stream

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""
        self._stream.write((to_json(dict(row)) + "\n").encode("utf-8"))

    def close(self) -> None:
        """Nothing is held back."""

    def drop(self) -> None:
        """Nothing is held back."""


class ParquetSink:
    """Parquet in batches; the first batch fixes each column's type."""

    def __init__(self, stream: BinaryIO, columns: tuple[str, ...]) -> None:
        self._stream, self._columns = stream, columns
        self._rows: list[dict[str, object]] = []
        self._writer: Any = None

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row."""
        _check_keys(row, self._columns)
        self._rows.append({column: _scalar(row.get(column)) for column in self._columns})
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
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
            problem = Problem(
                "parquet", f"a column changed its type ({error})", "write .jsonl, or one type a column"
            )
            raise DataError([problem]) from None
        self._rows = []


SINKS: dict[str, Callable[[BinaryIO, tuple[str, ...]], Sink]] = {
    ".csv": CsvSink,
    ".tsv": TsvSink,
    ".jsonl": JsonlSink,
    ".ndjson": JsonlSink,
    ".parquet": ParquetSink,
}


def _check_keys(row: Mapping[str, object], columns: tuple[str, ...]) -> None:
    unknown = row.keys() - set(columns)
    if unknown:
        raise UsageError(
            f"no column is named {', '.join(sorted(unknown))}; the columns are {', '.join(columns)}"
        )


def _quoted(text: str) -> str:
    text = text.replace("\0", " ")
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _text(cell: object) -> str:
    cell = _scalar(cell)
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return to_json(cell) if isinstance(cell, list | tuple | dict) else str(cell)


def _scalar(cell: object) -> object:
    return cell.tolist() if hasattr(cell, "tolist") else cell
