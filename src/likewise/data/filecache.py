"""Files that are made once and found again by what they were made of.

    HOME/NAME/KEY.SUFFIX    HOME is LIKEWISE_CACHE, or the user's cache; KEY is a `content_key`

A file is whole or not there, and its folder is the user's alone (mode 700): some hold texts of the user's.
`likewise cache info` counts and `likewise cache clear` removes every NAME of `KEPT`, whoever wrote it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from likewise.data.aside import UnwritableError, path_aside

CACHE_VARIABLE = "LIKEWISE_CACHE"
# Every cache of files by name, with what it keeps: one that did not stand here would not be cleared.
KEPT = {
    "identities": "what the weights of encoders hash to",
    "prepared": "rows that recipes read",
    "alignments": "phrase links of paraphrases",
}


def cache_home() -> Path:
    """Where everything is kept unless a recipe or LIKEWISE_CACHE says otherwise."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(CACHE_VARIABLE) or Path(home) / "likewise" / "vectors")


def content_key(*parts: object, length: int = 24) -> str:
    """A hash of all parts, the same for parts of the same content: hexadecimal, `length` digits."""
    digest = hashlib.sha256()
    for number, part in enumerate(parts):
        digest.update(b", " if number else b"[")
        digest.update(json.dumps(part, sort_keys=True, default=str).encode())
    digest.update(b"]" if parts else b"[]")
    return digest.hexdigest()[:length]


def file_digest(source: str) -> str:
    """A hash of what a file holds; nothing where a name leads to no file, such as that of a corpus."""
    try:
        found = Path(source).stat()
    except (OSError, ValueError):
        return ""
    if not Path(source).is_file():
        return ""
    return _digest_of(str(Path(source).resolve()), found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest_of(path: str, size: int, changed: int) -> str:
    """The hash of a file as it was when it had this size and time; large files are read once."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# What files of a cache are called: a key in hexadecimal digits; while they are written, with a dot before it.
_OURS = re.compile(r"\.?[0-9a-f]{16,}\.")


class FileCache:
    """Files of one kind by key; the oldest beyond `keep` are dropped when another is written."""

    def __init__(self, name: str, suffix: str, *, keep: int | None = None) -> None:
        if name not in KEPT:
            raise ValueError(f"no cache is named {name!r}; add it to likewise.data.filecache.KEPT")
        if keep is not None and keep < 1:
            raise ValueError(f"a cache keeps at least one file, not {keep}")
        self.name, self.suffix, self.keep = name, suffix, keep

    @property
    def folder(self) -> Path:
        """Where the files lie, as the environment says now."""
        return cache_home() / self.name

    def path(self, key: str) -> Path:
        """Where the file of a key lies, or would."""
        return self.folder / f"{key}{self.suffix}"

    def find(self, key: str) -> Path | None:
        """The file of a key, None if there is none."""
        path = self.path(key)
        return path if path.is_file() else None

    def write(self, key: str, writer: Callable[[Path], None], *, optional: bool = False) -> None:
        """Keep what `writer` writes to the path it is given; in case of an error there is no new file.

        The path has the cache's suffix. With `optional` a file that cannot be written, on a full disk or in a
        folder of somebody else's, is not kept, and nobody is told: it is made again.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path_aside(self.path(key), self.suffix) as path:
                writer(path)
        except (OSError, UnwritableError):
            if not optional:
                raise
        else:
            self._drop_old(self.path(key))

    def _drop_old(self, newest: Path) -> None:
        if self.keep is None:
            return
        aged = []
        for path in self.folder.glob(f"*{self.suffix}"):
            # Another process may remove it at any time, and what starts with a dot is being written.
            with contextlib.suppress(OSError):
                if path != newest and not path.name.startswith("."):
                    aged.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(aged, reverse=True)[self.keep - 1 :]:
            with contextlib.suppress(OSError):
                path.unlink()


def kept_bytes(home: Path | None = None) -> int:
    """The room that the files of all caches take."""
    return sum(file.stat().st_size for file in _kept_files(home))


def clear_kept(home: Path | None = None) -> None:
    """Remove the files of all caches, and their folders unless something else lies in them."""
    for file in _kept_files(home):
        file.unlink(missing_ok=True)
    for name in KEPT:
        with contextlib.suppress(OSError):  # not there, or somebody else's files are in it
            ((home or cache_home()) / name).rmdir()


def _kept_files(home: Path | None) -> list[Path]:
    """The files that are ours, called by a key or on the way to it; the folder may be a user's own."""
    found = (file for name in KEPT for file in ((home or cache_home()) / name).glob("*"))
    return [file for file in found if file.is_file() and _OURS.match(file.name)]
