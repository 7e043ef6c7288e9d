"""The memory that the pages of a parquet file take, read from their headers before anything is unpacked.

A file of a kilobyte may unpack to gigabytes, and the totals in its footer may be wrong. The unpacked size of
a page stands in its own header, without which it cannot be unpacked. Headers and footer are written in
Thrift's compact protocol. pyarrow does not show page headers, and some damaged footers make it end the
process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

# A header is tens of bytes; statistics in it may be as long as texts are.
_HEADER_BYTES, _LONGEST_HEADER = 2**12, 2**24
_LONGEST_FOOTER, _MOST_PARTS = 2**24, 2**21
_DEEPEST = 16
_DICTIONARY_PAGE, _PREFIXED, _BYTES, _FIXED_BYTES = 2, 7, 6, 7
# Texts stored as lengths and then as bytes, or as what differs from the text before.
_SHORTENED = {6, _PREFIXED}
# Fields of the structures, by their numbers in parquet's definition.
_ROW_GROUPS, _COLUMNS, _ROWS, _METADATA, _PATH = 4, 1, 3, 3, 3
_VALUES, _PACKED, _DATA_AT, _DICTIONARY_AT = 5, 7, 9, 11
_KIND, _PAGE_UNPACKED, _PAGE_PACKED = 1, 2, 3
# Kind of a page → the field with its own header, and where in it the encoding stands.
_HEADERS = {0: (5, 2), 2: (7, 2), 3: (8, 4)}


@dataclass(frozen=True, slots=True)
class ColumnMemory:
    """The memory that one column of a row group needs: bytes and values.

    largest     the largest page, unpacked
    unpacked    all of its pages
    shared      the bytes that every value may repeat: of a page whose texts share beginnings, or of the
                dictionary of a column that is not read as one
    density     the most bytes per value of any page
    texts       whether it holds texts or bytes
    values      the values of all pages, and `most` of one page; more than rows if cells are lists
    """

    name: str
    largest: int
    unpacked: int
    shared: int
    density: float
    values: int
    most: int
    texts: bool = False


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """The memory that one row group needs."""

    rows: int
    columns: Sequence[ColumnMemory]


class NotParquetError(ValueError):
    """The bytes are not a parquet header."""


def byte_columns(stream: BinaryIO) -> list[str]:
    """The columns of texts and bytes, by their paths, that may be read as a dictionary and its rows."""
    found: dict[str, bool] = {}
    for _, columns in _groups(stream):
        for about in columns:
            found[_name(about)] = found.get(_name(about), True) and _as_dictionary(about)
    return [name for name, fits in found.items() if fits]


def group_memory(stream: BinaryIO) -> Iterator[GroupMemory]:
    """The memory that each row group of a file needs. The stream ends where it was after each of them."""
    for rows, chunks in _groups(stream):
        place = stream.tell()
        columns = [_column(stream, about) for about in chunks]
        stream.seek(place)
        yield GroupMemory(rows, columns)


def _groups(stream: BinaryIO) -> Iterator[tuple[int, list[dict[int, Any]]]]:
    """The row groups of a footer: their rows, and the footer's entry for each column."""
    for group in _field(_footer(stream), _ROW_GROUPS, []):
        chunks = [_field(chunk, _METADATA, {}) for chunk in _field(group, _COLUMNS, [])]
        for about in chunks:
            for place in (_VALUES, _PACKED, _DATA_AT, _DICTIONARY_AT):
                _field(about, place, 0)
        yield _field(group, _ROWS, 0), chunks


def _field(held: Any, number: int, otherwise: Any) -> Any:
    """A field of a structure. It must have the type of `default`, which stands for a missing field."""
    found = held.get(number, otherwise) if isinstance(held, dict) else None
    if not isinstance(found, type(otherwise)):
        raise NotParquetError(f"field {number} of its footer has the wrong type")
    return found


def _footer(stream: BinaryIO) -> dict[int, Any]:
    place = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, end - 8))
    length = int.from_bytes(stream.read(4), "little")
    if not 0 < length <= min(_LONGEST_FOOTER, end - 8):
        raise NotParquetError(f"its footer has {length:,} bytes")
    stream.seek(end - 8 - length)
    found = _Compact(stream.read(length)).struct()
    stream.seek(place)
    return found


def _column(stream: BinaryIO, about: dict[int, Any]) -> ColumnMemory:
    start = about.get(_DATA_AT, 0)
    if 0 < about.get(_DICTIONARY_AT, 0) < start:
        start = about[_DICTIONARY_AT]
    largest = total = shared = values = most = 0
    density = 0.0
    for kind, unpacked, count, encoding in _pages(stream, start, start + about.get(_PACKED, 0)):
        largest, total = max(largest, unpacked), total + unpacked
        if encoding == _PREFIXED or (kind == _DICTIONARY_PAGE and not _as_dictionary(about)):
            shared = max(shared, unpacked)
        if kind != _DICTIONARY_PAGE:
            density = max(density, unpacked / max(1, count))
            values, most = values + count, max(most, count)
    texts = about.get(1) in (_BYTES, _FIXED_BYTES)
    return ColumnMemory(_name(about), largest, total, shared, density, values, most, texts)


def _as_dictionary(about: dict[int, Any]) -> bool:
    """Whether a column can be read as a dictionary, that is, its texts are stored whole, each with its
    length.
    """
    return about.get(1) == _BYTES and not any(one in _SHORTENED for one in _field(about, 2, []))


def _name(about: dict[int, Any]) -> str:
    parts = _field(about, _PATH, [])
    if not all(isinstance(part, bytes) for part in parts):
        raise NotParquetError("its footer has a column without a name")
    return ".".join(part.decode("utf8", "replace") for part in parts)


def _pages(stream: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Kind, unpacked bytes, values and encoding of the pages between two places."""
    while 0 < start < end:
        header, length = _header(stream, start)
        unpacked, packed = header.get(_PAGE_UNPACKED, -1), header.get(_PAGE_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise NotParquetError(f"the page at byte {start:,} has no size")
        kind = header.get(_KIND, -1)
        field, place = _HEADERS.get(kind, (0, 0))
        others = {own for own, _ in _HEADERS.values()} & set(header) - {field}
        inner = header.get(field)
        if others or (field and not isinstance(inner, dict)):
            raise NotParquetError(f"the page at byte {start:,} has a header of the wrong kind")
        told = inner if isinstance(inner, dict) else {}
        yield kind, unpacked, told.get(1, 0), told.get(place, 0)
        start += length + packed


def _header(stream: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """The page header at a place, and its length in bytes."""
    size = _HEADER_BYTES
    while True:
        stream.seek(place)
        held = stream.read(size)
        reader = _Compact(held)
        try:
            return reader.struct(), reader.place
        except NotParquetError:
            if len(held) < size or size >= _LONGEST_HEADER:
                raise
            size *= 16


class _Compact:
    """Bytes in Thrift's compact protocol, read from the beginning: structures as field number → value."""

    def __init__(self, held: bytes) -> None:
        self._held, self.place, self._left = held, 0, _MOST_PARTS

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The structure that begins here."""
        if depth > _DEEPEST:
            raise NotParquetError("it is nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            if field in found:  # readers differ in which of the two counts
                raise NotParquetError(f"it holds field {field} twice")
            found[field] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise NotParquetError(f"it has more than {_MOST_PARTS:,} parts")
        if kind in (4, 5, 6):
            return self._number()
        if kind == 8:
            return self._bytes(self._size())
        if kind in (9, 10):
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (1, 2, 3):
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        raise NotParquetError(f"it holds a value of the unknown kind {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = self._size() if head >> 4 == 15 else head >> 4
        if count > len(self._held) - self.place:
            raise NotParquetError(f"it holds a list of {count:,} values")
        return [self._value(head & 15, depth + 1) for _ in range(count)]

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, count: int) -> bytes:
        found = self._held[self.place : self.place + count]
        if len(found) < count:
            raise NotParquetError("it ends too early")
        self.place += count
        return found

    def _size(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise NotParquetError("it holds a number without an end")

    def _number(self) -> int:
        found = self._size()
        return (found >> 1) ^ -(found & 1)
