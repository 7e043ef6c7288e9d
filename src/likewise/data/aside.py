"""Files that are either whole or not there: written under another name in the same folder, then renamed."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import BinaryIO

from likewise.errors import DataError, Problem

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class UnwritableError(DataError):
    """A file could not be written: there is no room, or no permission."""


@contextmanager
def open_aside(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its name when the block ends well and vanishes when it does not.

    Missing folders are made. A name that is a device or a pipe (/dev/stdout) is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise DataError([Problem(str(path), "is a folder, expected the name of a file", "name a file in it")])
    if target.exists() and not target.is_file():
        with target.open("wb") as device:
            yield device
        return
    with path_aside(path) as partial, _create(partial, path) as handle:
        yield handle
        handle.flush()


@contextmanager
def path_aside(path: str | Path, suffix: str = ".partial") -> Iterator[Path]:
    """A path in the same folder, ending in `suffix`, for whoever writes files by name.

    The file takes the name `path` when the block ends well and vanishes when it does not.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{suffix}")
    try:
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(target)
    except OSError as error:
        if error.errno in _FULL:
            raise UnwritableError([_unwritable(path, error)]) from None
        raise
    finally:
        with suppress(OSError):
            partial.unlink()


def write_text_aside(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file that is either whole or not there."""
    with open_aside(path) as handle:
        handle.write(text.encode("utf-8"))


def write_json_aside(path: str | Path, value: object) -> None:
    """Write a JSON file that is either whole or not there; NaN and infinities become null."""
    write_text_aside(path, to_json(value, indent=2) + "\n")


def to_json(value: object, *, indent: int | None = None) -> str:
    """JSON of plain values, dataclasses, paths, numpy numbers and arrays; NaN and infinities become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain)
    except ValueError:
        loose = json.loads(
            json.dumps(value, ensure_ascii=False, default=_plain), parse_constant=lambda name: None
        )
        return json.dumps(loose, ensure_ascii=False, allow_nan=False, indent=indent)


def _create(partial: Path, path: str | Path) -> BinaryIO:
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        return partial.open("xb")
    except OSError as error:
        raise UnwritableError([_unwritable(path, error)]) from None


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _unwritable(path: str | Path, error: OSError) -> Problem:
    found = f"cannot be written ({error.strerror or error})"
    return Problem(str(path), found, "check the folder, its permissions and the space left")
