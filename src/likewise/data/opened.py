"""Record which files were read, for code that caches what was made from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from likewise.files import note_input

Stamp = tuple[int, int]


@dataclass(slots=True)
class Watch:
    """Files that were opened, each with its size and time. `complete` is False if something else was read
    too.
    """

    files: dict[str, Stamp] = field(default_factory=dict)
    complete: bool = True


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching() -> Iterator[Watch]:
    """Record what is read inside the block."""
    watch = Watch()
    before = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(before)


def note_file(path: Path) -> None:
    """Record that a file is read."""
    note_input(path)
    watch = _watch.get()
    if watch is not None:
        watch.files[str(path.resolve())] = stamp(path)


def note_elsewhere() -> None:
    """Record that something other than a file of ours is read: a table in memory, or the hub."""
    watch = _watch.get()
    if watch is not None:
        watch.complete = False


def stamp(path: str | Path) -> Stamp:
    """The size and time of change of a file, which show that an open file is being written."""
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns
