"""Published files as one set of members: archives, folders and single files, read in place under limits.

Nothing is ever unpacked to disk, so no member can land anywhere. A member is found by its path or the end of
it, such as `trees/train.txt`, whatever folder the archive puts around it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from likewise.data.compression import COMPRESSIONS, STREAM_ERRORS, open_bytes, split_endings
from likewise.data.lines import MAX_LINE
from likewise.errors import FormatError, Problem
from likewise.files import note_input, refuse_endless
from likewise.wording import listed

# What no published corpus has: more members, a larger member, or one that shrank more in its archive.
MOST_MEMBERS = 250_000
LARGEST_MEMBER = 16 * 2**30
_MOST_GROWTH = 200
_SMALL = 64 * 2**20
# Bytes of one header of a tar, with a long name or properties, and of all of them. They are held in memory.
_HEADER_BYTES, _ALL_HEADER_BYTES = 2**20, 2**27
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tbz2", ".txz")
_BAD_ARCHIVE = (zipfile.BadZipFile, tarfile.TarError, *STREAM_ERRORS, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Member:
    """A published file: its path inside the archive or folder, where that is, and a way to open it."""

    name: str
    place: str
    start: Callable[[], BinaryIO]


class Bundle:
    """The members of files, archives and folders, in a `with` block.

    In a folder, an archive counts as its members if its name is one of `archives`, or if no file has such a
    name. `limit` is the largest number of bytes that a member may have.
    """

    def __init__(
        self, places: Sequence[Path], *, archives: Sequence[str] = (), limit: int = LARGEST_MEMBER
    ) -> None:
        self._places, self._archives, self._limit = places, archives, limit
        self._members: dict[str, Member] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            for place in self._places:
                self._add(place)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def named(self) -> str:
        """The places in words."""
        return listed([place.name for place in self._places], most=3)

    def find(self, pattern: str) -> Member | None:
        """The member whose path ends in a pattern, of several the one with the shortest path, or None."""
        found = [member for member in self._members.values() if _matches(member.name, pattern)]
        return min(found, key=lambda member: (len(member.name), member.name), default=None)

    def find_all(self, pattern: str) -> list[Member]:
        """The members whose paths end in a pattern, in the order of the archive."""
        return [member for member in self._members.values() if _matches(member.name, pattern)]

    def require(self, pattern: str) -> Member:
        """The member whose path ends in a pattern. The error lists what is there instead."""
        member = self.find(pattern)
        if member is None:
            names = listed(sorted(self._members), most=8) or "nothing"
            found = f"there is no {pattern} in it. It holds {names}"
            raise FormatError([Problem(self.named, found, "name the files as they were published")])
        return member

    def open(self, member: Member) -> BinaryIO:
        """Open a member for reading its bytes, decompressed if its name says that it is compressed."""
        try:
            stream = member.start()
        except _BAD_ARCHIVE as error:
            raise FormatError([_damaged(member.place, error)]) from error
        return cast(BinaryIO, io.BufferedReader(_Bounded(stream, member, self._limit)))

    def lines(self, pattern: str, *, encoding: str = "utf-8", errors: str = "strict") -> Iterator[str]:
        """The lines of a member without their ends."""
        member = self.require(pattern)
        with self.open(member) as stream:
            number = 0
            while raw := stream.readline(MAX_LINE + 1):
                number += 1
                if len(raw) > MAX_LINE:
                    found = f"this line has more than {MAX_LINE // 2**20} MB, which no published line has"
                    raise FormatError([Problem(f"{member.name}:{number}", found, "download it again")])
                raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                try:
                    yield raw.decode(encoding, errors).rstrip("\r\n")
                except UnicodeDecodeError as error:
                    found = f"this is not {encoding.upper()} ({error.reason})"
                    raise FormatError(
                        [Problem(f"{member.name}:{number}", found, "download it again")]
                    ) from None

    def _add(self, place: Path) -> None:
        if place.is_dir():
            self._add_folder(place)
        elif _is_archive(place):
            self._add_archive(place)
        else:
            self._add_file(place, place.name)

    def _add_folder(self, folder: Path) -> None:
        files = []
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                files.append(path)
            if len(files) > MOST_MEMBERS:
                raise FormatError([_too_many(folder.name)])
        known = [path for path in files if path.relative_to(folder).as_posix() in self._archives]
        for path in files:
            chosen = path in known if known else path.parent == folder
            if chosen and _is_archive(path):
                self._add_archive(path)
            else:
                self._add_file(path, path.relative_to(folder).as_posix())

    def _add_file(self, path: Path, name: str) -> None:
        refuse_endless(path)
        note_input(path)
        inner = name.removesuffix(_compression(name))
        self._keep(Member(inner, path.name, partial(open_bytes, path)))

    def _add_archive(self, path: Path) -> None:
        refuse_endless(path)
        note_input(path)
        try:
            members = self._zipped(path) if path.suffix.lower() == ".zip" else self._tarred(path)
            for member in members:
                self._keep(member)
        except _BAD_ARCHIVE as error:
            raise FormatError([_damaged(path.name, error)]) from error

    def _zipped(self, path: Path) -> Iterator[Member]:
        archive = self._stack.enter_context(zipfile.ZipFile(path))
        for info in archive.infolist():
            if info.is_dir():
                continue
            self._check(info.filename, path.name, info.file_size, info.compress_size)
            yield Member(info.filename, path.name, partial(_unzipped, archive, info))

    def _tarred(self, path: Path) -> Iterator[Member]:
        stream = self._stack.enter_context(_decompressed(path))
        headers = _Headers(stream, path.name)
        archive = self._stack.enter_context(tarfile.open(fileobj=cast(BinaryIO, headers), mode="r:"))
        total, most = 0, max(_MOST_GROWTH * path.stat().st_size, _SMALL)
        for number, info in enumerate(archive, 1):
            total += info.size
            if number > MOST_MEMBERS:
                raise FormatError([_too_many(path.name)])
            if total > most:
                raise FormatError([_too_large(info.name, path.name, total)])
            # Links and devices are no members: they could lead anywhere.
            if not info.isreg():
                continue
            self._check(info.name, path.name, info.size, info.size)
            yield Member(info.name, path.name, partial(_extracted, archive, info))
        headers.ended = True

    def _check(self, name: str, place: str, size: int, packed: int) -> None:
        plain = name.replace("\\", "/")
        if plain.startswith("/") or ".." in plain.split("/") or "\0" in name:
            found = f"its member {name!r} leads out of the archive"
            raise FormatError([Problem(place, found, "do not use this file; get it from its publisher")])
        if size > self._limit or (size > _SMALL and size > _MOST_GROWTH * max(packed, 1)):
            raise FormatError([_too_large(name, place, size)])

    def _keep(self, member: Member) -> None:
        parts = member.name.split("/")
        if "__MACOSX" in parts or parts[-1].startswith("._"):
            return
        self._members.setdefault(member.name, member)
        if len(self._members) > MOST_MEMBERS:
            raise FormatError([_too_many(member.place)])


class _Headers:
    """A tar whose headers are read: tarfile would hold one of any size in memory.

    Once `ended` is set, the members are read, which are bounded elsewhere.
    """

    def __init__(self, stream: BinaryIO, place: str) -> None:
        self.ended = False
        self._stream, self._place, self._read = stream, place, 0
        self.seek, self.tell, self.close = stream.seek, stream.tell, stream.close

    def read(self, size: int) -> bytes:
        """Read at most so many bytes, unless no header has so many."""
        if not self.ended:
            self._read += size
            if not 0 <= size <= _HEADER_BYTES or self._read > _ALL_HEADER_BYTES:
                found = f"it has headers of {max(size, self._read) // 2**20:,} MiB or more, "
                remedy = "do not use this file; get it from its publisher"
                raise FormatError([Problem(self._place, f"{found}which no published corpus has", remedy)])
        return self._stream.read(size)


def _decompressed(path: Path) -> BinaryIO:
    """The bytes of a tar, decompressed as its first bytes say, which its name need not."""
    with path.open("rb") as file:
        first = file.read(6)
    for magic, start in _DECOMPRESSORS.items():
        if first.startswith(magic):
            return start(path)
    return path.open("rb")


_DECOMPRESSORS: Mapping[bytes, Callable[[Path], BinaryIO]] = {
    b"\x1f\x8b": lambda path: cast(BinaryIO, gzip.GzipFile(path)),
    b"BZh": lambda path: cast(BinaryIO, bz2.BZ2File(path)),
    b"\xfd7zXZ\0": lambda path: cast(BinaryIO, lzma.LZMAFile(path)),
}


class _Bounded(io.RawIOBase):
    """A stream that stops at a limit, since the size that an archive states may be false."""

    def __init__(self, stream: BinaryIO, member: Member, limit: int) -> None:
        super().__init__()
        self._stream, self._member, self._limit = stream, member, limit
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        try:
            block = self._stream.read(len(cast(bytes, buffer)))
        except _BAD_ARCHIVE as error:
            raise FormatError([_damaged(self._member.place, error)]) from error
        self._read += len(block)
        if self._read > self._limit:
            raise FormatError([_too_large(self._member.name, self._member.place, self._read)])
        cast(bytearray, buffer)[: len(block)] = block
        return len(block)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _unzipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BinaryIO:
    return cast(BinaryIO, archive.open(info))


def _extracted(archive: tarfile.TarFile, info: tarfile.TarInfo) -> BinaryIO:
    return cast(BinaryIO, archive.extractfile(info))


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}")


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(_ARCHIVES)


def _compression(name: str) -> str:
    ending = split_endings(Path(name))[1]
    return name[-len(ending) :] if ending in COMPRESSIONS else ""


def _damaged(place: str, error: Exception) -> Problem:
    found = f"the archive is cut short, damaged or encrypted ({str(error) or type(error).__name__})"
    return Problem(place, found, "download it again")


def _too_large(name: str, place: str, size: int) -> Problem:
    found = f"its member {name!r} unpacks to {size // 2**20:,} MiB or more, which no published corpus does"
    return Problem(place, found, "do not use this file; get it from its publisher")


def _too_many(place: str) -> Problem:
    found = f"there are more than {MOST_MEMBERS:,} files, which no published corpus has"
    return Problem(place, found, "name the file or the folder of the corpus alone")
