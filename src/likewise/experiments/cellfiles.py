"""The files of a cell, each whole or not there, and known for damaged when they are.

CELLS/KEY.json    what a cell was and measured, with a checksum of all of it
CELLS/KEY.npz     its predictions and their gold (no pickle), by the sha256 that stands in the JSON
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from likewise.data.filecache import content_key
from likewise.disk import path_aside, to_json, write_json_aside
from likewise.errors import DataError, Problem
from likewise.experiments.related import Arrays
from likewise.files import file_sha256

_CHECKSUM, _ARRAYS = "sha256", "predictions_sha256"
# What every cell says; a file without it is none of ours.
_NEEDED = ("setting", "seed", "dev", "stages", "recipe", "versions", "seconds", "train_seconds")


class DamagedCellError(DataError):
    """The files of a cell are not what was written."""


def write_cell(folder: Path, key: str, document: Mapping[str, Any], arrays: Arrays | None = None) -> Path:
    """Keep what a cell measured; the JSON is written last, so that a cell that was stopped leaves none."""
    said = dict(document)
    if arrays is not None:
        with path_aside(folder / f"{key}.npz", ".npz", ours=True) as path:
            np.savez_compressed(path, **dict[str, Any](arrays))
            said[_ARRAYS] = file_sha256(path)
    return _write_document(folder / f"{key}.json", said)


def read_cell(folder: Path, key: str) -> dict[str, Any]:
    """What a finished cell wrote; DamagedCellError if it is not that any more, or its predictions are not."""
    path = folder / f"{key}.json"
    document = _read_json(path)
    if document.pop(_CHECKSUM, None) != _checksum(document):
        raise _damaged(path, "has changed since it was written: its checksum is another one")
    _check_needed(path, document)
    if digest := document.get(_ARRAYS):
        arrays = folder / f"{key}.npz"
        try:
            found = file_sha256(arrays)
        except OSError as error:
            raise _damaged(arrays, f"cannot be read ({error.strerror})") from error
        if found != digest:
            raise _damaged(arrays, "has changed since it was written: its checksum is another one")
    return document


def read_arrays(folder: Path, key: str) -> Arrays:
    """The predictions that a finished cell left, and their gold."""
    return _load(folder / f"{key}.npz")


def _load(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file.items())
    except Exception as error:  # zipfile, zlib and numpy have a class each for what may be wrong
        raise _damaged(path, f"cannot be read ({type(error).__name__}: {error})") from error


def _write_document(path: Path, document: Mapping[str, Any]) -> Path:
    # As it will be read: numbers that are none become null on the way.
    plain = json.loads(to_json(document))
    write_json_aside(path, {**plain, _CHECKSUM: _checksum(plain)}, ours=True)
    return path


def _checksum(document: Mapping[str, Any]) -> str:
    return content_key(document, length=64)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except OSError as error:
        raise _damaged(path, f"cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise _damaged(path, "is not the result of a cell")
    return found


def _check_needed(path: Path, document: Mapping[str, Any]) -> None:
    missing = [name for name in _NEEDED if name not in document]
    if missing:
        raise _damaged(path, f"is not the result of a cell: it does not say {', '.join(missing)}")


def _damaged(path: Path, found: str) -> DamagedCellError:
    return DamagedCellError([Problem(str(path), found, "remove it, and run the same command again")])
