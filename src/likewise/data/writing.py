"""Write rows to a file that is either complete or absent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from likewise.data.compression import COMPRESSION_ENDINGS, compress, split_endings
from likewise.data.sinks import SINKS, SPREADSHEETS, CsvSink, Sink
from likewise.disk import open_aside, to_json, write_json_aside, write_text_aside
from likewise.errors import UsageError

__all__ = ["TableWriter", "open_aside", "to_json", "write_json_aside", "write_text_aside"]


class TableWriter:
    """Write rows to a csv, tsv, jsonl or parquet file, plain or compressed as its ending says, in a `with`
    block.

    The file appears under its name only when the block succeeds. The columns are the given ones, or those of
    the first row. A key that a row lacks is left empty. CSV and TSV cannot hold a NUL character, and TSV,
    which has no quoting, no tab or line break either; each becomes a blank. With `safe`, a text in a CSV or
    TSV file that a spreadsheet would run as a formula (=, +, -, @) gets a single quote in front; numbers stay
    as they are. Without `replace`, a file that appears under the name in the meantime is kept. `delimiter`
    stands between the fields of a CSV file, which begins with a byte-order mark with `bom`. `before_naming`
    is called with the complete file just before it takes its name.
    """

    def __init__(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        *,
        safe: bool = False,
        replace: bool = True,
        delimiter: str = ",",
        bom: bool = False,
        before_naming: Callable[[Path], None] | None = None,
    ) -> None:
        self._path, self._replace = Path(path), replace
        ending, self._compression = split_endings(self._path)
        if ending not in SINKS:
            expected = f"{', '.join(SINKS)}, plain or with {COMPRESSION_ENDINGS}"
            raise UsageError(
                f"{path}: the ending {ending!r} is not a format that can be written. Choose {expected}."
            )
        make: Callable[..., Sink] = SINKS[ending]
        self._make = partial(make, safe=True) if safe and make in SPREADSHEETS else make
        if make is CsvSink:
            self._make = partial(self._make, delimiter=delimiter, bom=bom)
        self._before_naming = before_naming
        self._columns = None if columns is None else tuple(columns)
        self._sink: Sink | None = None
        self._stream: BinaryIO | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            handle = stack.enter_context(
                open_aside(self._path, replace=self._replace, before_naming=self._before_naming)
            )
            stream = compress(handle, self._compression)
            if stream is not handle:
                stack.enter_context(stream)
            if self._columns is not None:
                self._sink = self._make(stream, self._columns)
            self._stream = stream
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream = None
        if self._sink is not None and error is not None:
            self._sink.drop()
        elif self._sink is not None:
            try:
                self._sink.close()
            except BaseException:
                self._sink.drop()
                self._stack.__exit__(*sys.exc_info())
                raise
        self._stack.__exit__(kind, error, trace)

    def write_row(self, row: Mapping[str, object]) -> None:
        """Write one row. A key that is not a column is an error."""
        if self._stream is None:
            raise UsageError(
                "a TableWriter writes only inside its `with` block. Open it with "
                "`with TableWriter(…) as writer:`."
            )
        if self._sink is None:
            self._sink = self._make(self._stream, tuple(row))
        self._sink.write(row)
