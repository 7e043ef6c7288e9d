"""A cache of files that are found again by the content they were made from.

    HOME/NAME/KEY.SUFFIX    HOME is LIKEWISE_CACHE, or the user's cache; KEY is a `content_key`

A file is either complete or absent. Its folder is readable only by the user (mode 700), since some files hold
texts of the user. A JSON file has a checksum in its first line; a file with a wrong checksum counts as
absent. `likewise cache info` counts and `likewise cache clear` removes every NAME of `KEPT`, whoever wrote
it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from likewise.disk import UnwritableError, path_aside, saying_why, sweep, to_json
from likewise.errors import DataError, Problem, UsageError
from likewise.files import file_sha256

CACHE_VARIABLE = "LIKEWISE_CACHE"
# Every cache of files by name, with what it keeps: one that did not stand here would not be cleared.
KEPT = {
    "identities": "hashes of encoder weights",
    "prepared": "rows that recipes read",
    "alignments": "phrase links of paraphrases",
    "neighbours": "nearest neighbours of texts by their teachers",
}


def cache_home() -> Path:
    """The cache folder, unless a recipe or LIKEWISE_CACHE names another one."""
    if own := os.environ.get(CACHE_VARIABLE):
        return Path(own)
    return user_cache(CACHE_VARIABLE) / "vectors"


def user_cache(variable: str) -> Path:
    """The folder of Likewise in the user's cache. Without a home folder, the error names the variable that
    helps.
    """
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise UsageError(
            f"there is no home folder to keep a cache in. Name a folder with {variable}, or set HOME."
        ) from error
    return home / "likewise"


def content_key(*parts: object, length: int = 24) -> str:
    """A hash of all parts, in hexadecimal with `length` digits. Parts with the same content have the same
    hash.
    """
    digest = hashlib.sha256()
    for number, part in enumerate(parts):
        digest.update(b", " if number else b"[")
        digest.update(json.dumps(part, sort_keys=True, default=str).encode())
    digest.update(b"]" if parts else b"[]")
    return digest.hexdigest()[:length]


def content_digest(path: Path) -> str:
    """A hash of a file's content."""
    return file_sha256(path)[:16]


def content_digests(place: Path) -> dict[str, str]:
    """The `content_digest` of each file of a folder by its path inside, or of a single file by its name.

    The content decides, not size and time, which another file may share. If nothing exists there, the result
    is empty.
    """
    if place.is_file():
        return {place.name: content_digest(place)}
    return {file.relative_to(place).as_posix(): content_digest(file) for file in files_in(place)}


_MOST_FILES = 10_000


def files_in(place: Path) -> list[Path]:
    """The files in a folder and below it, in order. Links are followed, but not in a circle."""
    found: list[Path] = []
    waiting, seen = [place], set()
    while waiting:
        folder = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen or not folder.is_dir():
            continue
        seen.add(real)
        for path in folder.iterdir():
            if path.is_dir():
                waiting.append(path)
            elif path.is_file():
                found.append(path)
        if len(found) > _MOST_FILES:
            problem = f"the folder holds more than {_MOST_FILES:,} files, with links followed"
            raise DataError([Problem(str(place), problem, "remove links that lead out of the folder")])
    return sorted(found)


# What files of a cache are called: a key and its suffix; earlier versions wrote to .KEY.….partial first.
_OURS = re.compile(r"[0-9a-f]{24}(\.json|\.jsonl\.gz)|\.[0-9a-f]{24}\..*\.partial")


class FileCache:
    """A cache of files of one kind by key. When a file is written, the oldest files beyond `keep` are
    removed.
    """

    def __init__(self, name: str, suffix: str, *, keep: int | None = None) -> None:
        if name not in KEPT:
            raise ValueError(f"there is no cache {name!r}. Add it to likewise.data.filecache.KEPT.")
        if keep is not None and keep < 1:
            raise ValueError(f"keep is {keep}, but a cache must keep at least one file.")
        self.name, self.suffix, self.keep = name, suffix, keep

    @property
    def folder(self) -> Path:
        """The folder of the files, as the environment says at this moment."""
        return cache_home() / self.name

    def path(self, key: str) -> Path:
        """The path of the file with a key, whether it exists or not."""
        return self.folder / f"{key}{self.suffix}"

    def find(self, key: str) -> Path | None:
        """The file of a key, or None if there is none."""
        sweep(self.folder)
        path = self.path(key)
        return path if path.is_file() else None

    def write(self, key: str, writer: Callable[[Path], None], *, optional: bool = False) -> None:
        """Keep the file that `writer` writes to the path it is given. After an error there is no new file.

        The path has the cache's suffix. With `optional`, a file that cannot be written, such as on a full
        disk or in a folder of somebody else, is silently not kept; it is made again later.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path_aside(self.path(key), self.suffix, ours=True) as path:
                writer(path)
        except (OSError, UnwritableError):
            if not optional:
                raise
        else:
            self._drop_old(self.path(key))

    def write_json(self, key: str, value: object) -> None:
        """Keep a value with its checksum if possible. Otherwise it is computed again later."""
        content = to_json(value).encode("utf8")
        head = json.dumps({"sha256": hashlib.sha256(content).hexdigest()}).encode()
        self.write(key, lambda path: _write_bytes(path, head + b"\n" + content), optional=True)

    def read_json(self, key: str) -> Any:
        """The value that was kept, or None if there is none or if it has changed since it was written."""
        sweep(self.folder)
        try:
            head, _, content = self.path(key).read_bytes().partition(b"\n")
            if json.loads(head)["sha256"] != hashlib.sha256(content).hexdigest():
                return None
            return json.loads(content)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _drop_old(self, newest: Path) -> None:
        if self.keep is None:
            return
        aged = []
        for path in self.folder.glob(f"*{self.suffix}"):
            # Another process may remove it at any time, and what starts with a dot is being written. The
            # folder may be a user's own, with files that are none of ours.
            with contextlib.suppress(OSError):
                ours = _OURS.fullmatch(path.name) and not path.is_symlink() and _holds_ours(path)
                if path != newest and ours and not path.name.startswith("."):
                    aged.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(aged, reverse=True)[self.keep - 1 :]:
            with contextlib.suppress(OSError):
                path.unlink()


def kept_bytes(home: Path | None = None) -> int:
    """The disk space that the files of all caches take."""
    return sum(size for _, size in _kept_files(home))


def clear_kept(home: Path | None = None) -> int:
    """Remove the files of all caches, and their folders if nothing else is in them. Returns the bytes
    freed.
    """
    freed = 0
    for file, size in _kept_files(home):
        with saying_why(file):
            file.unlink(missing_ok=True)
        freed += size
    for name in KEPT:
        place = (home or cache_home()) / name
        sweep(place)
        with contextlib.suppress(OSError):  # not there, or somebody else's files are in it
            place.rmdir()
    return freed


def _kept_files(home: Path | None) -> Iterator[tuple[Path, int]]:
    """The files that are ours, named by a key or still being written, and their sizes.

    The folder may be a user's own, and another process may remove a file at any time.
    """
    for name in KEPT:
        place = (home or cache_home()) / name
        for file in sorted(place.glob("*")) if place.is_dir() and not place.is_symlink() else ():
            with contextlib.suppress(OSError):
                if _OURS.fullmatch(file.name) and not file.is_symlink() and _holds_ours(file):
                    yield file, file.stat().st_size


def _holds_ours(file: Path) -> bool:
    """Whether a file begins as ours do: JSON under its checksum, compressed lines, or an unfinished file."""
    if not file.is_file():
        return False
    begins = {".json": b'{"sha256": "', ".gz": b"\x1f\x8b"}.get(file.suffix, b"")
    with file.open("rb") as handle:
        # JSON of ours is two lines: the checksum, and all the rest.
        head = handle.readline(200) if begins.startswith(b"{") else handle.read(len(begins))
    return head.startswith(begins) and (not begins.startswith(b"{") or head.endswith(b'"}\n'))


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
