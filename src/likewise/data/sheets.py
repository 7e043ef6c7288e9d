"""The reader for .xlsx files. It takes (stream, name, fail) and returns what `formats` describes.

The first sheet is read, or the one that `book.xlsx#Sheet` names. Formulas are not computed: their cells have
the values that the spreadsheet saved. Cells become texts, as a CSV file would hold them, and dates their ISO
form. A file from a stranger may unpack to far more than it seems to hold, so that every part of it is
measured before openpyxl reads it.
"""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from functools import partial
from typing import Any, BinaryIO
from xml.parsers import expat

from likewise.data.delimited import name_columns, ragged
from likewise.data.dialects import CommaMarker
from likewise.data.formats import Parsed, Parser
from likewise.data.lines import MAX_LINE
from likewise.data.rows import MAX_COLUMNS, Fail, Row
from likewise.errors import FormatError, MissingExtraError, Problem
from likewise.wording import clipped, listed, quoted

# What stands between the name of a file and that of its sheet.
SHEET_MARK = ".xlsx#"
# Unpacked bytes of the parts that are held in memory as a whole, of the shared texts, and of a sheet, which
# is read row by row.
_PART_BYTES, _TEXT_BYTES, _SHEET_BYTES = 2**24, 2**28, 2**31
_MOST_PARTS, _MOST_ROWS = 10_000, 2**20
# Elements of one row or text: a cell has a few.
_ROW_ELEMENTS, _DEPTH = 5 * MAX_COLUMNS, 50
# What a damaged file raises in zipfile, the XML parser and openpyxl.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError, expat.ExpatError, SyntaxError, ValueError),
    *(KeyError, IndexError, TypeError, AttributeError, OverflowError, NotImplementedError, RuntimeError),
)


def parse_sheet(stream: BinaryIO, name: str, fail: Fail, named: str | None = None) -> Parsed:
    """The rows of the first sheet. The number of a row is its number in the sheet."""
    return _parse(stream, name, fail, named)


def named_sheet(sheet: str) -> Parser:
    """A reader for the sheet of this name."""
    return partial(_parse, sheet=sheet)


def _parse(stream: BinaryIO, name: str, fail: Fail, named: str | None, *, sheet: str | None = None) -> Parsed:
    with _saying_where(name):
        found = _open_sheet(stream, name, sheet)
        rows = _filled_rows(found, name)
        number, header = next(rows, (1, []))
    columns, notes = name_columns(header, name, number)
    return Parsed(columns, _rows(rows, columns, name, fail), "", notes)


def _rows(
    filled: Iterator[tuple[int, list[str]]], columns: Sequence[str], name: str, fail: Fail
) -> Iterator[Row]:
    width, numbers = len(columns), CommaMarker(len(columns))
    with _saying_where(name):
        for number, cells in filled:
            source = f"{name}:{number}"
            if len(cells) > width:
                fail(ragged(source, cells, columns, "give every column a name in the first row"))
                continue
            cells += [""] * (width - len(cells))
            yield Row(dict(zip(columns, numbers.mark(cells), strict=True)), source)


def _filled_rows(sheet: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows with a value in them, each with its number, up to its last value."""
    for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
        if number > _MOST_ROWS:
            found = f"the sheet has more than {_MOST_ROWS:,} rows, which no spreadsheet writes"
            raise FormatError([Problem(name, found, "save it as CSV")])
        cells = [_said(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if len(cells) > MAX_COLUMNS:
            found = f"there are {len(cells):,} columns, but at most {MAX_COLUMNS:,} are read"
            raise FormatError([Problem(f"{name}:{number}", found, "keep only the columns that you need")])
        if any(cells):
            yield number, cells


def _said(value: object) -> str:
    """The text that a CSV file would hold for a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def _open_sheet(stream: BinaryIO, name: str, sheet: str | None) -> Any:
    try:
        import defusedxml  # noqa: F401  (openpyxl uses it if it is there)
        import openpyxl
    except ImportError as error:
        raise MissingExtraError(str(error.name or "openpyxl").partition(".")[0], "excel") from None
    _check_parts(stream, name)
    with warnings.catch_warnings():
        # About styles and forms, which are not read.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    names = [one.title for one in book.worksheets]
    if not names:
        found = "this has no sheet with cells, but a table is expected"
        raise FormatError([Problem(name, found, "save the table as a sheet")])
    if sheet is not None and sheet not in names:
        found = f"there is no sheet {quoted(sheet)}. The sheets are {listed(names)}"
        raise FormatError([Problem(name, found, "name one of them: FILE.xlsx#SHEET")])
    chosen = book.worksheets[0 if sheet is None else names.index(sheet)]
    # What a sheet says about its own size may be wrong, and would be filled with empty cells.
    chosen.reset_dimensions()
    return chosen


def _check_parts(stream: BinaryIO, name: str) -> None:
    """Refuse a file whose parts do not fit into memory once they are unpacked."""
    stream.seek(0)
    with zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS:
            found = f"it holds {len(parts):,} parts, but at most {_MOST_PARTS:,} are read"
            raise FormatError([Problem(name, found, "save it again")])
        for part in parts:
            path = part.filename.lower()
            if not path.endswith((".xml", ".rels")):
                continue  # pictures and macros, which are not opened
            is_sheet, is_texts = "worksheets/sheet" in path, path.endswith("sharedstrings.xml")
            most = _SHEET_BYTES if is_sheet else _TEXT_BYTES if is_texts else _PART_BYTES
            if part.file_size > most:
                found = f"{quoted(part.filename)} unpacks to {part.file_size / 2**20:,.0f} MB, "
                found += f"but at most {most // 2**20:,} MB are read"
                raise FormatError([Problem(name, found, "keep only the table, or save it as CSV")])
            with archive.open(part) as content:
                _Measure(name, part.filename, 3 if is_sheet else 2 if is_texts else 0).read(content)
    stream.seek(0)


class _Measure:
    """Reads a part of the file and refuses what would take much memory: rows and texts without an end.

    A row of a sheet is an element at depth 3 and a shared text one at depth 2. With depth 0 the part is small
    and only its entities and its nesting are refused.
    """

    def __init__(self, name: str, part: str, depth: int) -> None:
        self._name, self._part, self._unit = name, part, depth
        self._depth = self._elements = self._length = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        if depth:
            self._parser.CharacterDataHandler = self._text

    def read(self, content: Any) -> None:
        """Go through the part."""
        while block := content.read(2**16):
            self._parser.Parse(block, False)
        self._parser.Parse(b"", True)

    def _start(self, tag: str, attributes: object) -> None:
        self._depth += 1
        if self._depth <= self._unit:
            self._elements = self._length = 0
        self._elements += 1
        if self._depth > _DEPTH or (self._unit and self._elements > _ROW_ELEMENTS):
            self._refuse("is nested or filled far beyond what a spreadsheet writes")

    def _end(self, tag: str) -> None:
        self._depth -= 1

    def _text(self, text: str) -> None:
        self._length += len(text)
        if self._length > MAX_LINE:
            self._refuse(f"holds a row or a text of more than {MAX_LINE // 2**20} MB")

    def _doctype(self, *about: object) -> None:
        self._refuse("declares entities, which no spreadsheet writes")

    def _refuse(self, found: str) -> None:
        problem = Problem(self._name, f"{quoted(self._part)} {found}", "save it again, or save it as CSV")
        raise FormatError([problem])


@contextmanager
def _saying_where(name: str) -> Iterator[None]:
    """Turn what a damaged file raises into a message."""
    try:
        yield
    except _DAMAGE as error:
        reason = clipped((str(error) or type(error).__name__).splitlines()[0])
        found = f"this is not a whole .xlsx file ({reason})"
        remedy = "save it again as .xlsx, or save the sheet as CSV"
        raise FormatError([Problem(name, found, remedy)]) from None
