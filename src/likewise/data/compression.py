"""Read and write the bytes of plain, .bz2, .gz, .xz and .zst files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from likewise.data.opened import note_file
from likewise.errors import FormatError, MissingExtraError, Problem
from likewise.files import refuse_endless

COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")
# The same in words, for messages.
COMPRESSION_ENDINGS = f"{', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}"
# What a truncated or damaged compressed stream raises while it is read; ours raises EOFError and OSError.
STREAM_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError)

_CHUNK = 16 * 1024


def split_endings(path: Path) -> tuple[str, str]:
    """The format ending and the compression ending of a file name, in lower case: (".tsv", ".xz")."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        return (suffixes[0] if len(suffixes) == 2 else "", suffixes[-1])
    return (suffixes[-1] if suffixes else "", "")


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading its decompressed bytes."""
    start = _OPENERS[split_endings(path)[1]]
    refuse_endless(path)
    try:
        note_file(path)
        return start(path)
    except OSError as error:
        problem = Problem(
            str(path),
            f"this cannot be opened ({error.strerror or error})",
            "check the path and its permissions",
        )
        raise FormatError([problem]) from None
    except ValueError as error:  # a NUL in the name
        raise FormatError(
            [Problem(str(path), f"this cannot be the name of a file ({error})", "check the path")]
        ) from None


# Parquet is compressed already: what shrinks a hundredfold again is no table.
MOST_GROWTH = 100


def open_seekable(path: Path) -> BinaryIO:
    """Open a file for reading its decompressed bytes in any order."""
    stream = open_bytes(path)
    if not split_endings(path)[1]:
        return stream
    # Decompressed bytes go through a file without a name, not through memory.
    whole = cast(BinaryIO, tempfile.TemporaryFile())
    try:
        with stream:
            _copy_bounded(stream, whole, path)
    except STREAM_ERRORS as error:
        whole.close()
        raise FormatError([cut_short(path.name, error)]) from None
    whole.seek(0)
    return whole


def _copy_bounded(stream: BinaryIO, whole: BinaryIO, path: Path) -> None:
    """Decompress a file, unless it grows larger than any real table and would fill the disk."""
    most = max(MOST_GROWTH * path.stat().st_size, 2**28)
    size = 0
    while block := stream.read(2**20):
        size += len(block)
        if size > most:
            found = f"the file decompresses to more than {most // 2**20:,} MiB, which no real table does"
            raise FormatError([Problem(path.name, found, "decompress it yourself and use the plain file")])
        whole.write(block)


def cut_short(source: str, error: Exception) -> Problem:
    """The problem of a file whose bytes end early or are damaged."""
    return Problem(source, f"the file is cut short or damaged here ({error})", "copy or download it again")


def compress(handle: BinaryIO, ending: str) -> BinaryIO:
    """Wrap an open file so that everything written to it is compressed as its ending says."""
    if ending == ".gz":
        # No name and no time inside: equal content gives equal bytes.
        return cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0))
    if ending == ".xz":
        return cast(BinaryIO, lzma.LZMAFile(handle, "wb"))
    if ending == ".bz2":
        return cast(BinaryIO, bz2.BZ2File(handle, "wb"))
    if ending == ".zst":
        return cast(BinaryIO, _zstandard().ZstdCompressor().stream_writer(handle, closefd=False))
    return handle


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "tables") from None
    return zstandard


class _ZstdReader(io.RawIOBase):
    """A zstandard reader that notices data that end early, which the package's own reader does not."""

    def __init__(self, handle: BinaryIO) -> None:
        super().__init__()
        self._handle = handle
        self._package = _zstandard()
        self._frame = self._package.ZstdDecompressor().decompressobj()
        self._ready = b""
        self._started = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            rest = self._frame.unused_data if self._frame.eof else b""
            chunk = rest or self._handle.read(_CHUNK)
            if not chunk:
                if self._started and not self._frame.eof:
                    raise EOFError("the zstandard data end too early")
                return 0
            if self._frame.eof:
                self._frame = self._package.ZstdDecompressor().decompressobj()
            self._started = True
            try:
                self._ready = self._frame.decompress(chunk)
            except self._package.ZstdError as error:
                raise OSError(f"the zstandard data are damaged: {error}") from None
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._handle.close()
        super().close()


def _open_zstd(path: Path) -> BinaryIO:
    _zstandard()  # if it is missing, no file is left open
    return cast(BinaryIO, io.BufferedReader(_ZstdReader(path.open("rb"))))


_OPENERS: Mapping[str, Callable[[Path], BinaryIO]] = {
    "": lambda path: path.open("rb"),
    ".gz": lambda path: cast(BinaryIO, gzip.GzipFile(path)),
    ".xz": lambda path: cast(BinaryIO, lzma.LZMAFile(path)),
    ".zst": _open_zstd,
    ".bz2": lambda path: cast(BinaryIO, bz2.BZ2File(path)),
}
