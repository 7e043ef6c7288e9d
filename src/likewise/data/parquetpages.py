"""How much memory the pages of a parquet file take: read from their headers, before anything is unpacked.

A file of a kilobyte may unpack to gigabytes, and the totals in its footer may say otherwise. What a page
unpacks to stands in the page's own header, without which it cannot be unpacked. Headers and footer are
written in Thrift's compact protocol; pyarrow shows no page headers, and of some damaged files its way to the
footer's columns ends the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

# A header is tens of bytes; statistics in it may be as long as texts are.
_HEADER_BYTES, _LONGEST_HEADER = 2**12, 2**24
_LONGEST_FOOTER = 2**26
_DEEPEST = 16
_DICTIONARY_PAGE, _PREFIXED = 2, 7
# Fields of the structures, by their numbers in parquet's definition.
_ROW_GROUPS, _COLUMNS, _ROWS, _METADATA, _PATH = 4, 1, 3, 3, 3
_VALUES, _PACKED, _DATA_AT, _DICTIONARY_AT = 5, 7, 9, 11
_KIND, _PAGE_UNPACKED, _PAGE_PACKED, _HEADERS = 1, 2, 3, {5: 2, 7: 2, 8: 4}


@dataclass(frozen=True, slots=True)
class ColumnMemory:
    """What one column of a row group needs: bytes and values.

    largest     the largest page, unpacked
    shared      the bytes that every row may repeat: of the dictionary, or of a page whose texts share
                beginnings
    density     the most bytes per value of any page
    values      the values of all pages, and `most` of one page; more than rows where cells are lists
    """

    name: str
    largest: int
    shared: int
    density: float
    values: int
    most: int


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """What one row group needs."""

    rows: int
    columns: Sequence[ColumnMemory]


class NotParquetError(ValueError):
    """Bytes that are no header of parquet."""


def group_memory(stream: BinaryIO) -> Iterator[GroupMemory]:
    """What each row group of a file needs; the stream is left where it stood after each of them."""
    for group in _footer(stream).get(_ROW_GROUPS, []):
        place = stream.tell()
        columns = [_column(stream, chunk.get(_METADATA, {})) for chunk in group.get(_COLUMNS, [])]
        stream.seek(place)
        yield GroupMemory(int(group.get(_ROWS, 0)), columns)


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
    name = ".".join(part.decode("utf8", "replace") for part in about.get(_PATH, []))
    largest = shared = values = most = 0
    density = 0.0
    for kind, unpacked, count, encoding in _pages(stream, start, start + about.get(_PACKED, 0)):
        largest = max(largest, unpacked)
        if kind == _DICTIONARY_PAGE or encoding == _PREFIXED:
            shared = max(shared, unpacked)
        if kind != _DICTIONARY_PAGE:
            density = max(density, unpacked / max(1, count))
            values, most = values + count, max(most, count)
    return ColumnMemory(name, largest, shared, density, values, most)


def _pages(stream: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Kind, unpacked bytes, values and encoding of the pages between two places."""
    while 0 < start < end:
        header, length = _header(stream, start)
        unpacked, packed = header.get(_PAGE_UNPACKED, -1), header.get(_PAGE_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise NotParquetError(f"the page at byte {start:,} has no size")
        count = encoding = 0
        for field, place in _HEADERS.items():
            if isinstance(inner := header.get(field), dict):
                count, encoding = inner.get(1, 0), inner.get(place, 0)
        yield header.get(_KIND, 0), unpacked, count, encoding
        start += length + packed


def _header(stream: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """The page header at a place, and how many bytes it has."""
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
        self._held, self.place = held, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The structure that begins here."""
        if depth > _DEEPEST:
            raise NotParquetError("it is nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            found[field] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
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
        raise NotParquetError(f"it holds a value of kind {kind}")

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
