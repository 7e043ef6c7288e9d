"""Decoded lines with their numbers, and clear messages for bytes that are not text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from likewise.data.compression import STREAM_ERRORS, cut_short
from likewise.data.rows import Fail
from likewise.errors import FormatError, Problem

MAX_LINE = 10 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_MAGIC = {
    b"\xff\xfe": ("UTF-16 text", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save it as UTF-8"),
    b"\x1f\x8b": ("gzip data", "add .gz to its name"),
    b"\xfd7zXZ": ("xz data", "add .xz to its name"),
    b"\x28\xb5\x2f\xfd": ("zstandard data", "add .zst to its name"),
    **{b"BZh%d1AY&SY" % level: ("bzip2 data", "add .bz2 to its name") for level in range(1, 10)},
    b"PAR1": ("a parquet file", "name it .parquet"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the sheet as UTF-8 CSV"),
}


class Lines:
    """The lines of a byte stream as text, with their line ends. `number` is the last line read, counted from
    1.

    Only a line feed ends a line. Other characters that Unicode calls line breaks stay inside their field.
    Memory is bounded by MAX_LINE, whatever the file holds.
    """

    def __init__(self, stream: BinaryIO, name: str, fail: Fail) -> None:
        self.number = 0
        self._stream = stream
        self._name = name
        self._fail = fail
        self._offset = 0

    @property
    def source(self) -> str:
        """The place of the last line read."""
        return f"{self._name}:{self.number}"

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._stream.readline(MAX_LINE + 1)
        except STREAM_ERRORS as error:
            raise FormatError([cut_short(f"{self._name}:{self.number + 1}", error)]) from None
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

    def _decode(self, line: bytes, start: int) -> str:
        if b"\0" in line:
            at = start + line.index(b"\0")
            found = f"there is a NUL byte at offset {at}, but text is expected"
            self._fail(Problem(self.source, found, "the file is damaged or not UTF-8; save it as UTF-8"))
            line = line.replace(b"\0", b" ")
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            at = start + error.start
            found = f"byte 0x{line[error.start]:02x} at offset {at} is not UTF-8"
            self._fail(Problem(self.source, found, "save it as UTF-8"))
            return line.decode("utf-8", "replace")

    def _too_long(self) -> Problem:
        found = f"this line has more than {MAX_LINE // 2**20} MB, but one row per line is expected"
        return Problem(self.source, found, "check the line ends, or split the text")


def _refuse_other_formats(line: bytes, name: str) -> None:
    for magic, (kind, remedy) in _MAGIC.items():
        if line.startswith(magic):
            raise FormatError([Problem(f"{name}:1", f"this is {kind}, but UTF-8 text is expected", remedy)])
