"""How a delimited file is written: the character between its fields, decimal commas in its numbers, and rows
that hold nothing.
"""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from likewise.data.rows import MAX_COLUMNS, Fail, Row, Table, refuse
from likewise.errors import UsageError
from likewise.wording import counted, quoted

_log = logging.getLogger("likewise")

# The delimiters that are recognised, with their names in messages.
DELIMITERS: Mapping[str, str] = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NAMES = {
    **{mark: mark for mark in DELIMITERS},
    **{"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|"},
}
_LONG_HEADER = 2**17
# What a spreadsheet reads in a first line of its own.
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?\n?')


def read_delimiter(text: str) -> str:
    """The delimiter that a user named: one of , ; | or a tab, which may be written as `tab`."""
    if text.casefold() not in _NAMES:
        raise UsageError(
            f"the delimiter is {quoted(text)}, but it can be a comma, a semicolon, a bar or a tab. "
            "Choose ',' or ';' or '|' or tab."
        )
    return _NAMES[text.casefold()]


# The delimiters that were named, by the source that each belongs to.
_named: ContextVar[Mapping[str, str] | None] = ContextVar("delimiters", default=None)


def name_delimiter(sources: Iterable[object], delimiter: str | None) -> None:
    """Read these files with a delimiter from now on, or with None by the one that is recognised.

    A folder stands for its files and "-" for standard input.
    """
    mark = None if delimiter is None else read_delimiter(delimiter)
    known = dict(_named.get() or {})
    for source in sources:
        if isinstance(source, str | os.PathLike):
            key = _key(os.fspath(source))
            if mark is None:
                known.pop(key, None)
            else:
                known[key] = mark
        elif source is not None and mark is not None:
            raise UsageError("delimiter belongs to a file, but the rows come from memory. Leave it out.")
    _named.set(known)


@contextmanager
def delimited_by(sources: Iterable[object], delimiter: str | None) -> Iterator[None]:
    """Read these files with a delimiter inside the block. None changes nothing."""
    before = _named.get()
    if delimiter is not None:
        name_delimiter(sources, delimiter)
    try:
        yield
    finally:
        _named.set(before)


def named_delimiter(source: str | Path) -> str | None:
    """The delimiter that was named for a file, or for a folder that holds it."""
    known = _named.get()
    if not known:
        return None
    key = _key(os.fspath(source))
    return next((known[place] for place in (key, *map(str, Path(key).parents)) if place in known), None)


def named_delimiters() -> dict[str, str]:
    """All delimiters that were named, by the real path of their file or folder."""
    return dict(_named.get() or {})


def _key(source: str) -> str:
    return source if source == "-" else os.path.realpath(source)


def separator_line(line: str) -> str | None:
    """The delimiter that a line such as `sep=;` names, or None if it is another line."""
    found = _SEPARATOR.fullmatch(line)
    return found[1] if found is not None and found[1] in DELIMITERS else None


def sniff_delimiter(lines: Sequence[str], own: str) -> str:
    """The delimiter of a file by its first lines: `own`, unless only another one gives rows like the header.

    A delimiter counts only if it separates the header.
    """
    if not lines or len(lines[0]) > _LONG_HEADER:
        return own
    if (whole := _fit(lines, own))[0] == 1 and whole[1] > 1:
        return own
    fits = {mark: _fit(lines, mark) for mark in dict.fromkeys((own, *DELIMITERS)) if mark in lines[0]}
    several = {mark: fit for mark, fit in fits.items() if fit[1] > 1}
    return max(several, key=lambda mark: several[mark]) if several else own


def _fit(lines: Sequence[str], mark: str) -> tuple[float, int]:
    """The share of rows with as many fields as the header, and how many fields that is."""
    # The last line that was looked at may open a field that goes on after it.
    reader = csv.reader(iter(lines), delimiter=mark)
    widths = []
    try:
        widths = [min(len(fields), MAX_COLUMNS) for fields in reader if fields]
    except csv.Error:
        widths = [len(line.split(mark)) for line in lines if line.strip()]
    if not widths:
        return 0.0, 0
    rows = widths[1:] or widths
    return sum(width == widths[0] for width in rows) / len(rows), widths[0]


# Numbers in the cells of delimited files and spreadsheets.

_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
# Either 1.234 or 1234: the one form in which a comma may separate thousands.
_UNSURE = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_POINT = re.compile(r"[+-]?\d*\.\d+", re.ASCII)
# The same with a point: 1.234 where a comma is the decimal mark, or may be.
_UNSURE_POINT = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
_LONGEST = 24


class CommaNumber(str):
    """A number with a decimal comma, such as 3,5. As a text it stays as it was written."""

    __slots__ = ()

    @property
    def number(self) -> float:
        """Its value."""
        return float(self.replace(",", "."))

    @property
    def is_unsure(self) -> bool:
        """Whether the comma may separate thousands."""
        return bool(_UNSURE.fullmatch(self))


class PointNumber(str):
    """A number such as 1.234 in a file between semicolons, whose point may separate thousands."""

    __slots__ = ()


class ClashingNumber(str):
    """A number in a column where a mark may separate thousands, since the column has another decimal mark.

    Either commas that may: 12.5 and 1,234. Or points that may: 3,5 and 1.234. `unsure` is the number that can
    be read in two ways.
    """

    unsure: str = ""

    @property
    def readings(self) -> str:
        """What the number can mean, in words."""
        plain = self.unsure.replace(",", ".")
        return f"{self.unsure} can mean {float(plain):g} or {int(plain.replace('.', ''))}"


class WrittenNumber(str):
    """A number that a spreadsheet holds as a number. Its point is a decimal point."""

    __slots__ = ()


class CommaMarker:
    """Finds the numbers with a decimal comma in the rows of one pass over a file, column by column.

    The comma of `3,5` is a decimal comma. That of `1,234` is read as one too, unless the column has numbers
    with a decimal point. Then nobody can tell what it means, and whichever comes later is no number. The same
    holds for the point of `1.234` in a column with numbers such as `3,5`. With `semicolons`, as files are
    written where the comma is the decimal mark, such a point is marked even without them.
    """

    def __init__(self, width: int, *, semicolons: bool = False) -> None:
        self._sure, self._unsure, self._point = [False] * width, [""] * width, [False] * width
        self._unsure_point = [""] * width
        self._semicolons = semicolons

    def mark(self, fields: Sequence[str]) -> list[str]:
        """The fields of a row, with those numbers marked that are written with a comma."""
        return [
            self._marked(place, text)
            if len(text) < _LONGEST and ("," in text or "." in text) and text[-1:].isdigit()
            else text
            for place, text in enumerate(fields)
        ]

    def _marked(self, place: int, text: str) -> str:
        bare = text.strip()
        if _COMMA.fullmatch(bare):
            if not _UNSURE.fullmatch(bare):
                self._sure[place] = True
                if self._unsure_point[place]:
                    return _clashing(bare, self._unsure_point[place])
            elif self._point[place] and not self._sure[place]:
                return _clashing(bare, bare)
            else:
                self._unsure[place] = "" if self._sure[place] else bare
            return CommaNumber(text)
        if _POINT.fullmatch(bare):
            return self._pointed(place, text, bare)
        return text

    def _pointed(self, place: int, text: str, bare: str) -> str:
        may_separate = not isinstance(text, WrittenNumber) and bool(_UNSURE_POINT.fullmatch(bare))
        only_such = may_separate and (self._unsure_point[place] or not self._point[place])
        self._point[place] = True
        if self._sure[place]:
            return _clashing(bare, bare) if may_separate else text
        if self._unsure[place]:
            return _clashing(bare, self._unsure[place])
        # A number such as 2.5 shows what the points of its column are.
        self._unsure_point[place] = bare if only_such else ""
        return PointNumber(text) if only_such and self._semicolons else text


def _clashing(number: str, unsure: str) -> ClashingNumber:
    found = ClashingNumber(number)
    found.unsure = unsure
    return found


def filled_rows(table: Table, fail: Fail = refuse) -> Iterator[Row]:
    """The rows of a table, without those of a delimited file whose cells are all empty.

    Spreadsheets write such rows below a table. Where rows are answered, they keep their place.
    """
    empty = 0
    for row in table.scan(fail):
        if table.delimiter and not any(
            not isinstance(cell, str) or cell.strip() for cell in row.fields.values()
        ):
            empty += 1
        else:
            yield row
    if empty:
        verb = "is" if empty == 1 else "are"
        line = f"{table.name}: {counted(empty, 'row')} without any text or value {verb} left out"
        tell_once(line, table.name, "empty rows", empty)


_told: set[tuple[object, ...]] = set()


def tell_once(line: str, *key: object) -> None:
    """Warn of something that was guessed, once for a key: a file may be opened several times."""
    if key not in _told:
        _told.add(key)
        _log.warning("%s", line)
