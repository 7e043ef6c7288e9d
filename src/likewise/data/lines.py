"""Decoded lines with their numbers, and clear messages for bytes that are not text."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, cast

from likewise.data.compression import STREAM_ERRORS, cut_short
from likewise.data.rows import Fail, Spoilt
from likewise.errors import FormatError, Problem

MAX_LINE = 10 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# So many lines, and bytes, are looked at before the first one is given.
_AHEAD, _AHEAD_BYTES = 50, 2**20
_MAGIC = {
    b"\xff\xfe\0\0": ("UTF-32 text", "save it as UTF-8"),
    b"\0\0\xfe\xff": ("UTF-32 text", "save it as UTF-8"),
    b"\x1f\x8b": ("gzip data", "add .gz to its name"),
    b"\xfd7zXZ": ("xz data", "add .xz to its name"),
    b"\x28\xb5\x2f\xfd": ("zstandard data", "add .zst to its name"),
    **{b"BZh%d1AY&SY" % level: ("bzip2 data", "add .bz2 to its name") for level in range(1, 10)},
    b"PAR1": ("a parquet file", "name it .parquet"),
    b"PK\x03\x04": (
        "a zip archive or a spreadsheet",
        "unpack it, name a spreadsheet .xlsx, or save the sheet as UTF-8 CSV",
    ),
}


class Lines:
    """The lines of a byte stream as text, with their line ends. `number` is the last line read, counted from
    1.

    Only a line feed ends a line. Other characters that Unicode calls line breaks stay inside their field.
    Memory is bounded by MAX_LINE, whatever the file holds. UTF-16 with a byte-order mark is read too, as
    spreadsheets write it; `utf16` says so once lines were looked at, and
    `bom` that they begin with the mark of UTF-8.
    """

    def __init__(self, stream: BinaryIO, name: str, fail: Fail) -> None:
        self.number = 0
        self._stream = stream
        self._name = name
        self._fail = fail
        self._offset = 0
        self._ahead: deque[bytes | FormatError] = deque()
        self._begun = self.utf16 = self.bom = False

    def ahead(self) -> list[str]:
        """The first lines, before any is given. They are given later all the same, with their problems."""
        size = 0
        while len(self._ahead) < _AHEAD and size < _AHEAD_BYTES:
            line = self._look()
            self._ahead.append(line)
            if not line or isinstance(line, FormatError):
                break
            size += len(line)
        read = [line for line in self._ahead if isinstance(line, bytes)]
        return [
            line.removeprefix(_BOM).decode("utf-8", "replace").replace("\0", " ") for line in read if line
        ]

    @property
    def source(self) -> str:
        """The place of the last line read."""
        return f"{self._name}:{self.number}"

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._ahead.popleft() if self._ahead else self._look()
        if isinstance(line, FormatError):
            raise line
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > MAX_LINE:
            raise FormatError([self._too_long()])
        start, self._offset = self._offset, self._offset + len(line)
        if self.number == 1:
            _refuse_other_formats(line, self._name)
            line = line.removeprefix(_BOM)
        return self._decode(line, start)

    def _look(self) -> bytes | FormatError:
        """The next line in bytes, empty at the end of the file, or the reason why there is none."""
        place = f"{self._name}:{self.number + 1 + len(self._ahead)}"
        try:
            line = self._stream.readline(MAX_LINE + 1)
            if not self._begun:
                self._begun, self.bom = True, line.startswith(_BOM)
                self.utf16 = line.startswith(_UTF_16) and line[2:4] != b"\0\0"
                if self.utf16:
                    self._stream = cast(BinaryIO, _Recoded(line, self._stream))
                    line = self._stream.readline(MAX_LINE + 1)
        except UnicodeDecodeError as error:
            found = f"this is UTF-16 text that is cut short or damaged here ({error.reason})"
            return FormatError([Problem(place, found, "save it as UTF-8")])
        except STREAM_ERRORS as error:
            return FormatError([cut_short(place, error)])
        return line

    def _decode(self, line: bytes, start: int) -> str:
        if b"\0" in line:
            at = start + line.index(b"\0")
            found = f"there is a NUL byte at offset {at}, but text is expected"
            self._fail(Spoilt(self.source, found, "the file is damaged or not UTF-8; save it as UTF-8"))
            line = line.replace(b"\0", b" ")
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            at = start + error.start
            found = f"byte 0x{line[error.start]:02x} at offset {at} is not UTF-8"
            self._fail(Spoilt(self.source, found, "save it as UTF-8"))
            return line.decode("utf-8", "replace")

    def _too_long(self) -> Problem:
        found = f"this line has more than {MAX_LINE // 2**20} MB, but one row per line is expected"
        return Problem(self.source, found, "check the line ends, or split the text")


class _Recoded:
    """A stream of UTF-16 as one of UTF-8. Its first line has been read already."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._ready = bytearray(self._decoder.decode(first).encode("utf-8"))
        self._looked, self._ended = 0, False

    def readline(self, size: int) -> bytes:
        """The next line, or its first `size` bytes."""
        while (end := self._ready.find(b"\n", self._looked)) < 0 and len(self._ready) < size:
            if self._ended:
                break
            self._looked = len(self._ready)
            # A line of these bytes ends at any byte 10, also in the middle of a character.
            chunk = self._stream.readline(2**16)
            self._ended = not chunk
            self._ready += self._decoder.decode(chunk, final=not chunk).encode("utf-8")
        length = min(size, len(self._ready) if end < 0 else end + 1)
        line = bytes(self._ready[:length])
        del self._ready[:length]
        self._looked = 0
        return line


def _refuse_other_formats(line: bytes, name: str) -> None:
    for magic, (kind, remedy) in _MAGIC.items():
        if line.startswith(magic):
            raise FormatError([Problem(f"{name}:1", f"this is {kind}, but UTF-8 text is expected", remedy)])
