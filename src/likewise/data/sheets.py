"""The reader for .xlsx files. It takes (stream, name, fail) and returns what `formats` describes.

The sheet that was open when the file was saved is read, or the one that `book.xlsx#Sheet` names. A hidden
sheet is read only if it is named. Formulas are not computed: their cells have
the values that the spreadsheet saved. Cells become texts, as a CSV file would hold them, and dates their ISO
form. A file from a stranger may unpack to far more than it seems to hold, so that every part of it is
measured before openpyxl reads it.
"""

from __future__ import annotations

import re
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
from likewise.data.dialects import CommaMarker, WrittenNumber
from likewise.data.formats import Parsed, Parser
from likewise.data.lines import MAX_LINE
from likewise.data.rows import MAX_COLUMNS, Fail, Row
from likewise.errors import FormatError, MissingExtraError, Problem
from likewise.wording import clipped, listed, quoted

# What stands between the name of a file and that of its sheet.
SHEET_MARK = ".xlsx#"
# Unpacked bytes of the parts that are held in memory as a whole, of the shared texts and pictures, and of all
# parts together, most of which a sheet may take, which is read row by row.
_PART_BYTES, _TEXT_BYTES, _ALL_BYTES = 2**24, 2**28, 2**31
_MOST_PARTS, _MOST_ROWS = 10_000, 2**20
# Elements of one row or text: a cell has a few. Elements of all shared texts, and of a part held as a whole.
_ROW_ELEMENTS, _DEPTH = 5 * MAX_COLUMNS, 50
_TEXT_ELEMENTS, _PART_ELEMENTS = 6 * 2**20, 2**20
# A row is filled up to its last cell: so many cells may come of it, or so many for each cell that is there.
_GRID, _GRID_GROWTH = 2**24, 64
_TYPES, _TEXTS_TYPE = "[Content_Types].xml", "sharedStrings"
_CELL = re.compile(r"\$?([A-Z]{1,8})\$?(\d{1,10})", re.ASCII | re.IGNORECASE)
# What a damaged file raises in zipfile, the XML parser and openpyxl.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError, expat.ExpatError, SyntaxError, ValueError),
    *(KeyError, IndexError, TypeError, AttributeError, OverflowError, NotImplementedError, RuntimeError),
)


def parse_sheet(stream: BinaryIO, name: str, fail: Fail, named: str | None = None) -> Parsed:
    """The rows of the sheet that was open. The number of a row is its number in the sheet."""
    return _parse(stream, name, fail, named)


def named_sheet(sheet: str) -> Parser:
    """A reader for the sheet of this name."""
    return partial(_parse, sheet=sheet)


def _parse(stream: BinaryIO, name: str, fail: Fail, named: str | None, *, sheet: str | None = None) -> Parsed:
    with _saying_where(name):
        found, told = _open_sheet(stream, name, sheet)
        rows = _filled_rows(found, name)
        number, header = next(rows, (1, []))
    columns, notes = name_columns(header, name, number)
    return Parsed(columns, _rows(rows, columns, name, fail), "", (*told, *notes))


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
    if isinstance(value, float):
        return WrittenNumber(value)
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def _open_sheet(stream: BinaryIO, name: str, sheet: str | None) -> tuple[Any, tuple[str, ...]]:
    """The sheet to read, and a sentence about it if it was chosen among several."""
    try:
        import defusedxml  # noqa: F401  (openpyxl uses it if it is there)
        import openpyxl
    except ImportError as error:
        raise MissingExtraError(str(error.name or "openpyxl").partition(".")[0], "excel") from None
    measured = _check_parts(stream, name)
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
    chosen = _shown_sheet(book) if sheet is None else book.worksheets[names.index(sheet)]
    if chosen._worksheet_path not in measured:
        raise ValueError(f"the part {quoted(chosen._worksheet_path)} is no sheet")
    # What a sheet says about its own size may be wrong, and would be filled with empty cells.
    chosen.reset_dimensions()
    if sheet is not None or len(names) == 1:
        return chosen, ()
    other = next(one for one in names if one != chosen.title)
    told = f"{name}: the sheet {quoted(chosen.title)} is read, one of {len(names):,} "
    return chosen, (f"{told}(to choose: {quoted(f'{name}#{other}')})",)


def _shown_sheet(book: Any) -> Any:
    """The sheet that was open when the file was saved, or the first one that is not hidden."""
    shown = [one for one in book.worksheets if one.sheet_state == "visible"]
    place = book._active_sheet_index  # of all sheets, those with charts too
    active = book._sheets[place] if 0 <= place < len(book._sheets) else None
    return active if active in shown else (shown or book.worksheets)[0]


def _check_parts(stream: BinaryIO, name: str) -> set[str]:
    """Refuse a file whose parts do not fit into memory once they are unpacked, whatever they are called.
    The answer is the parts that may be read as sheets.
    """
    stream.seek(0)
    with zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS:
            found = f"it holds {len(parts):,} parts, but at most {_MOST_PARTS:,} are read"
            raise FormatError([Problem(name, found, "save it again")])
        _refuse_size("it", sum(part.file_size for part in parts), _ALL_BYTES, name)
        about = [part for part in parts if part.filename == _TYPES]
        for part in about:
            _measure_part(archive, part, name, is_texts=False)
        texts = _text_parts(archive) if about else set()
        roots = [
            (part.filename, _measure_part(archive, part, name, is_texts=part.filename in texts))
            for part in parts
            if part.filename != _TYPES
        ]
    stream.seek(0)
    others = {path for path, root in roots if root != _SHEET}
    return {path for path, root in roots if root == _SHEET} - others


def _text_parts(archive: zipfile.ZipFile) -> set[str]:
    """The parts that are declared as tables of shared texts."""
    from openpyxl.xml.functions import fromstring

    declared = fromstring(archive.read(_TYPES))
    return {
        one.get("PartName", "")[1:] for one in declared.iter() if _TEXTS_TYPE in one.get("ContentType", "")
    }


_SHEET, _TEXTS, _OTHER = "worksheet", "sst", ""


def _measure_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, name: str, *, is_texts: bool) -> str:
    """Go through a part, and say as what it may be read."""
    with archive.open(part) as content:
        first = content.read(2**16)
        if not first.strip():  # blanks: only a small part may begin with so many
            _refuse_size(quoted(part.filename), part.file_size, _PART_BYTES, name)
        elif not _is_xml(first):
            # A picture, or macros. If it is declared as another part, it is read no further than here.
            _refuse_size(quoted(part.filename), part.file_size, _TEXT_BYTES, name)
            return _OTHER
        measure = _Measure(name, part.filename, is_texts=is_texts, size=part.file_size)
        measure.read(first, content)
    return measure.kind


def _is_xml(first: bytes) -> bool:
    """Whether a part may be XML, in any encoding that the parser knows."""
    return first.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xfe\xff \t\r\n").startswith(b"<")


def _refuse_size(what: str, size: int, most: int, name: str) -> None:
    if size > most:
        found = f"{what} unpacks to {size / 2**20:,.0f} MB, but at most {most // 2**20:,} MB are read"
        raise FormatError([Problem(name, found, "keep only the table, or save it as CSV")])


class _Measure:
    """Reads a part of the file and refuses what would take much memory: rows and texts without an end.

    A row of a sheet is an element at depth 3 and a shared text one at depth 2. Any other part is small, and
    only its elements, its entities and its nesting are refused. `kind` is what the part turned out to be.
    """

    def __init__(self, name: str, part: str, *, is_texts: bool, size: int) -> None:
        self._name, self._part, self._size = name, part, size
        self.kind, self._unit = (_TEXTS, 2) if is_texts else (_OTHER, 0)
        self._depth = self._elements = self._length = self._all = 0
        self._row = self._column = self._cells = self._grid = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def read(self, first: bytes, content: Any) -> None:
        """Go through the part, whose first bytes have been read."""
        block, given = first, 0
        while block:
            self._parser.Parse(block, False)
            given += len(block)
            # The parser holds a tag or a comment until it ends.
            if given - self._parser.CurrentByteIndex > MAX_LINE:
                self._refuse(f"holds a tag or a comment of more than {MAX_LINE // 2**20} MB")
            block = content.read(2**16)
        self._parser.Parse(b"", True)

    def _begin(self, tag: str) -> None:
        """Find out by the outermost element what the part is, and how large it may be."""
        if not self._unit and tag.rpartition(":")[2] == _SHEET:
            self.kind, self._unit = _SHEET, 3
        if self._unit:
            self._parser.CharacterDataHandler = self._text
        most = {_SHEET: _ALL_BYTES, _TEXTS: _TEXT_BYTES, _OTHER: _PART_BYTES}[self.kind]
        _refuse_size(quoted(self._part), self._size, most, self._name)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._depth:
            self._begin(tag)
        self._depth += 1
        if self._depth <= self._unit:
            self._elements = self._length = 0
        self._elements += 1
        self._all += 1
        most = {_SHEET: self._all, _TEXTS: _TEXT_ELEMENTS, _OTHER: _PART_ELEMENTS}[self.kind]
        if self._depth > _DEPTH or self._all > most or (self._unit and self._elements > _ROW_ELEMENTS):
            self._refuse("is nested or filled far beyond what a spreadsheet writes")
        if self.kind == _SHEET:
            local = tag.rpartition(":")[2]
            if local == "row":
                self._start_row(attributes.get("r", ""))
            elif local == "c":
                self._start_cell(attributes.get("r", ""))

    def _start_row(self, place: str) -> None:
        """Refuse a row that stands after a later one, which openpyxl would leave out."""
        row = int(place) if place.isdecimal() and len(place) < 10 else self._row + 1
        if row <= self._row:
            self._refuse(f"has row {row:,} after row {self._row:,}")
        self._row, self._column = row, 0

    def _start_cell(self, place: str) -> None:
        """Refuse a cell that stands after a later one, and rows that would be filled with empty cells."""
        found = _CELL.fullmatch(place)
        column = self._column + 1
        if found is not None:
            column = 0
            for letter in found[1].upper():
                column = column * 26 + ord(letter) - 64
        if column <= self._column:
            self._refuse(f"has the cell {quoted(place)} after a later one of its row")
        self._grid += column - self._column
        self._cells += 1
        self._column = column
        if self._grid > max(_GRID, _GRID_GROWTH * self._cells):
            self._refuse("has few cells far apart, and would be filled with empty ones")

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
