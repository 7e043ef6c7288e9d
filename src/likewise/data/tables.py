"""Open any source of rows (file, standard input, frame, list, hub id) as one streaming Table."""

from __future__ import annotations

import difflib
import logging
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from likewise.data.compression import (
    COMPRESSION_ENDINGS,
    STREAM_ERRORS,
    open_bytes,
    open_seekable,
    split_endings,
)
from likewise.data.delimited import parse_csv, parse_tsv
from likewise.data.dialects import delimited_by, named_delimiter, tell_once
from likewise.data.folders import data_files, folder_table
from likewise.data.formats import Parser, parse_jsonl, parse_parquet
from likewise.data.hub import hub_table, is_hub_id
from likewise.data.lines import MAX_LINE
from likewise.data.memory import memory_table
from likewise.data.opened import Stamp, note_file, stamp
from likewise.data.rows import Fail, Row, Table, refuse
from likewise.data.saved import is_saved_dataset, saved_table
from likewise.data.sheets import SHEET_MARK, named_sheet, parse_sheet
from likewise.data.typed import is_typed_folder, typed_table
from likewise.errors import FormatError, Problem, UsageError
from likewise.files import STANDARD_INPUT, is_file_on, is_there, note_input, os_message
from likewise.spelling import spelt
from likewise.wording import clipped

__all__ = ["Row", "Table", "count_rows", "open_table"]

PARSERS: dict[str, Parser] = {
    ".csv": parse_csv,
    ".tsv": parse_tsv,
    ".tab": parse_tsv,
    ".txt": parse_tsv,
    ".jsonl": parse_jsonl,
    ".ndjson": parse_jsonl,
    ".parquet": parse_parquet,
    ".xlsx": parse_sheet,
}
_SEEKING: tuple[Parser, ...] = (parse_parquet, parse_sheet)
_DELIMITED: tuple[Parser, ...] = (parse_csv, parse_tsv)
_EXPECTED = f".csv, .tsv, .jsonl, .parquet or .xlsx, plain or with {COMPRESSION_ENDINGS}"
_COUNTED_BYTES = 64 * 2**20
_log = logging.getLogger("likewise")
# So many names of a folder are looked through for one that was meant.
_LOOKED_AT = 10_000


def open_table(
    source: object,
    *,
    split: str | None = None,
    name: str | None = None,
    delimiter: str | None = None,
    fail: Fail = refuse,
) -> Table:
    """Open a table. Rows are read on demand, in bounded memory.

    `source` is a path (csv, tsv, jsonl, parquet, xlsx; .gz, .xz, .zst, .bz2), "-" for standard input, a
    pandas frame, a datasets.Dataset, a list of dicts, a list of (a, b) or (a, b, score), or a hub id
    "owner/name". `book.xlsx#Sheet` names a sheet. `delimiter` separates the fields of a csv or tsv file; if
    it is left out, it is recognised.
    The place of a row is the file's name and the line on which it starts. `fail` receives the problems that
    can be skipped while the columns are read. An open Table is returned unchanged, so that code that has
    looked at its columns can pass it to `load` without opening the file again.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, str | Path):
        with delimited_by([source], delimiter):
            return _open_named(str(source), split, name, fail)
    if delimiter is not None:
        raise UsageError("delimiter belongs to a file, but the rows come from memory. Leave it out.")
    table = memory_table(source, split=split, name=name)
    if table is None:
        found = f"rows cannot be read from {type(source).__name__}"
        raise UsageError(f"{found}. Pass a path, a frame, a dataset, or a list of pairs or dicts.")
    return table


def is_table_name(text: str) -> bool:
    """Whether a text looks like the file name of a table: it has no blank and a known ending."""
    return not any(map(str.isspace, text)) and split_endings(Path(text))[0] in PARSERS


def names_sheet(text: str) -> bool:
    """Whether a text names a sheet of a spreadsheet that is there: `book.xlsx#Sheet`."""
    return SHEET_MARK in text and not is_there(text) and is_there(text.rpartition("#")[0])


def _open_named(source: str, split: str | None, name: str | None, fail: Fail) -> Table:
    if source == "-":
        return _stdin_table(name or "stdin", fail)
    path = Path(source)
    if _is_folder(path):
        if is_typed_folder(path):
            return typed_table(path, name)
        if is_saved_dataset(path):
            return saved_table(path, split=split, name=name)
        if files := data_files(path, _is_data):
            return folder_table(files, path, _open_file, split=split, name=name)
        raise FormatError(
            [
                Problem(
                    source,
                    "this is a folder without data files, but a file is expected",
                    f"name a file, or a folder with files: {_EXPECTED}",
                )
            ]
        )
    if names_sheet(source):
        book, _, sheet = source.rpartition("#")
        return _file_table(Path(book), name or Path(source).name, named_sheet(sheet), fail)
    if not is_there(path):
        if is_hub_id(source) and split_endings(path)[0] not in PARSERS:
            return hub_table(source, split=split, name=name)
        raise FormatError([_absent(path)])
    if split is not None:
        raise UsageError(f"{source} is one file and has no split {split!r}. Name the split's own file.")
    return _file_table(path, name or path.name, _parser_of(path), fail)


def _is_data(path: Path) -> bool:
    return split_endings(path)[0] in PARSERS and not path.is_dir()


def _open_file(path: Path, name: str, fail: Fail) -> Table:
    return _file_table(path, name, _parser_of(path), fail)


def _is_folder(path: Path) -> bool:
    return is_there(path) and path.is_dir()


def _file_table(path: Path, name: str, parse: Parser, fail: Fail) -> Table:
    delimiter = named_delimiter(path)
    if delimiter is not None and parse not in _DELIMITED:
        raise UsageError(f"{path} has no delimiter. Leave {spelt('delimiter')} out.")
    first = [_Begun(path, name, parse, delimiter, fail)]
    columns, mark, bom = first[0].columns, first[0].delimiter, first[0].bom
    for line in first[0].notes:
        tell_once(line, line, os.path.realpath(path), _stamp_of(path))

    def scan(fail: Fail) -> Iterator[Row]:
        # The first reader goes on where the columns ended; every other one opens the file anew.
        begun = first.pop() if first else None
        if begun is None or not begun.go_on(fail):
            begun = _Begun(path, name, parse, delimiter, fail)
        try:
            yield from begun.rows
        finally:
            begun.close()

    return Table(name, columns, scan, delimiter=mark, bom=bom)


class _Begun:
    """An open file whose columns have been read but not its rows. It is closed when it is no longer used."""

    def __init__(self, path: Path, name: str, parse: Parser, delimiter: str | None, fail: Fail) -> None:
        self._path, self._process, self._stamp = path, os.getpid(), _stamp_of(path)
        self._relay = _Relay(fail)
        self._stream = open_seekable(path) if _seeks(parse) else open_bytes(path)
        try:
            parsed = parse(self._stream, name, self._relay, delimiter)
            self.columns, self.rows, self.delimiter, self.notes, self.bom = parsed
        except BaseException:
            self._stream.close()
            raise
        self._relay.remembers = False

    def go_on(self, fail: Fail) -> bool:
        """Pass problems to `fail` from now on, the header's first. False if the file must be opened anew."""
        # The file may be another by now, and a forked process shares the place in the file with its parent.
        if self._process != os.getpid() or self._stamp is None or self._stamp != _stamp_of(self._path):
            return False
        note_file(self._path)
        self._relay.fail = fail
        for problem in self._relay.remembered:
            fail(problem)
        return True

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __del__(self) -> None:
        if hasattr(self, "_stream"):
            self._stream.close()


def _seeks(parse: Parser) -> bool:
    return parse in _SEEKING or parse not in PARSERS.values()


class _Relay:
    """Pass problems to the current reader. Those that are remembered are passed to the next reader too."""

    def __init__(self, fail: Fail) -> None:
        self.fail, self.remembers = fail, True
        self.remembered: list[Problem] = []

    def __call__(self, problem: Problem) -> None:
        if self.remembers:
            self.remembered.append(problem)
        self.fail(problem)


def _stamp_of(path: Path) -> Stamp | None:
    try:
        return stamp(path)
    except OSError:
        return None


def _stdin_table(name: str, fail: Fail) -> Table:
    stream = _Sniffed(_standard_input(name), name)
    start = stream.first.removeprefix(b"\xef\xbb\xbf")
    delimiter = named_delimiter("-")
    parse = parse_jsonl if start[:1] == b"{" else parse_tsv if b"\t" in start else parse_csv
    handler: list[Fail] = [fail]
    columns, rows, mark, notes, _ = parse(
        cast(BinaryIO, stream), name, lambda problem: handler[0](problem), delimiter
    )
    for line in notes:
        _log.warning("%s", line)

    def scan(fail: Fail) -> Iterator[Row]:
        if not handler:
            raise UsageError(f"{name} can be read only once. Save it to a file first.")
        handler[0] = fail
        yield from rows
        handler.clear()

    return Table(name, columns, scan, once=True, delimiter=mark, bom=stream.bom)


def _standard_input(name: str) -> BinaryIO:
    """Standard input, if rows can be read from it."""
    remedy = "pipe a file into it (< FILE), or name the file"
    if sys.stdin is None or sys.stdin.closed:
        raise FormatError([Problem(name, "standard input is closed, but - reads from it", remedy)])
    if sys.stdin.isatty():
        raise FormatError(
            [Problem(name, "standard input is a terminal, but - reads a table from it", remedy)]
        )
    if is_file_on(0):
        note_input(STANDARD_INPUT)
    return cast(BinaryIO, sys.stdin.buffer)


class _Sniffed:
    """A stream whose first line has been read ahead."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        try:
            self.first = stream.readline(MAX_LINE + 1)
        except OSError as error:
            found = f"this cannot be read ({os_message(error)})"
            raise FormatError(
                [Problem(name, found, "pipe a file into it (< FILE), or name the file")]
            ) from None
        self._stream, self.bom = stream, self.first.startswith(b"\xef\xbb\xbf")

    def readline(self, size: int) -> bytes:
        line, self.first = self.first, b""
        return line or self._stream.readline(size)


def _parser_of(path: Path) -> Parser:
    ending = split_endings(path)[0]
    if ending in PARSERS:
        return PARSERS[ending]
    found = (
        f"the ending {ending!r} is not known"
        if ending
        else "the file name has no ending that tells its format"
    )
    raise FormatError([Problem(str(path), found, f"rename or convert it to {_EXPECTED}")])


def _absent(path: Path) -> Problem:
    """The problem of a missing file."""
    if os.path.islink(path):
        found = "this is a link that leads nowhere, or in a circle"
        return Problem(str(path), found, "name the file itself")
    close = difflib.get_close_matches(path.name, _names_beside(path), n=1)
    remedy = f"did you mean {close[0]}?" if close else "check the path"
    return Problem(clipped(str(path), most=1000), "there is no such file", remedy)


def _names_beside(path: Path) -> list[str]:
    """The names in a file's folder, as far as the folder exists and can be read."""
    try:
        return [other.name for other in islice(path.parent.iterdir(), _LOOKED_AT)]
    except (OSError, ValueError):
        return []


def count_rows(source: object) -> int | None:
    """The number of rows if it is cheap to know, for progress bars; None otherwise.

    The count of a CSV with line breaks inside quotes is too high. Compressed files above 64 MB are not
    counted.
    """
    if not isinstance(source, str | Path):
        return open_table(source).size
    path = Path(source)
    if not is_countable(path):
        return None
    ending = split_endings(path)[0]
    if ending == ".parquet":
        return _parquet_size(path)
    if ending == ".xlsx":
        return None
    lines = _count_lines(path)
    return None if lines is None else max(0, lines - (0 if PARSERS[ending] is parse_jsonl else 1))


def is_countable(path: Path) -> bool:
    """Whether this is a file whose rows can be counted quickly."""
    ending, compression = split_endings(path)
    if ending not in PARSERS or not is_there(path) or not path.is_file():
        return False
    return not compression or (ending not in (".parquet", ".xlsx") and path.stat().st_size <= _COUNTED_BYTES)


def _parquet_size(path: Path) -> int | None:
    import pyarrow
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError, OverflowError):
        return None


def _count_lines(path: Path) -> int | None:
    """The lines of a file, or None if it unpacks to far more than its size suggests, as only malicious
    files do.
    """
    count, last, rest = 0, b"\n", path.stat().st_size + 32 * _COUNTED_BYTES
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(2**20):
                count += chunk.count(b"\n")
                last = chunk[-1:]
                rest -= len(chunk)
                if rest < 0:
                    return None
    except STREAM_ERRORS:
        return 0
    return count + (last != b"\n")
