"""The files of a cell. Each is written whole or not at all, and checksums detect damage.

CELLS/KEY.json    the cell's settings and results, with a checksum
CELLS/KEY.npz     its predictions with ratings or labels (no pickle); the JSON holds the file's sha256
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
_CHANGED = "this file has changed since it was written (its checksum is different)"
# What every cell says; a file without it is none of ours.
_NEEDED = ("setting", "seed", "dev", "stages", "recipe", "versions", "seconds", "train_seconds")


class DamagedCellError(DataError):
    """A file of a cell is missing or has changed since it was written."""


def write_cell(folder: Path, key: str, document: Mapping[str, Any], arrays: Arrays | None = None) -> Path:
    """Write a cell's results; the JSON is written last, so that a stopped cell leaves none."""
    said = dict(document)
    if arrays is not None:
        with path_aside(folder / f"{key}.npz", ".npz", ours=True) as path:
            np.savez_compressed(path, **dict[str, Any](arrays))
            said[_ARRAYS] = file_sha256(path)
    return _write_document(folder / f"{key}.json", said)


def read_cell(folder: Path, key: str) -> dict[str, Any]:
    """Read a finished cell; raises DamagedCellError if its JSON or its predictions have changed."""
    path = folder / f"{key}.json"
    document = _read_json(path)
    if document.pop(_CHECKSUM, None) != _checksum(document):
        raise _damaged(path, _CHANGED)
    _check_needed(path, document)
    if digest := document.get(_ARRAYS):
        arrays = folder / f"{key}.npz"
        try:
            found = file_sha256(arrays)
        except OSError as error:
            raise _damaged(arrays, f"this file cannot be read ({error.strerror})") from error
        if found != digest:
            raise _damaged(arrays, _CHANGED)
    return document


def read_arrays(folder: Path, key: str) -> Arrays:
    """The predictions of a finished cell, with the ratings or labels."""
    return _load(folder / f"{key}.npz")


def _load(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file.items())
    except Exception as error:  # zipfile, zlib and numpy have a class each for what may be wrong
        raise _damaged(path, f"this file cannot be read ({type(error).__name__}: {error})") from error


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
        raise _damaged(path, f"this file cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"this file is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise _damaged(path, "this file is not the result of a run")
    return found


def _check_needed(path: Path, document: Mapping[str, Any]) -> None:
    missing = [name for name in _NEEDED if name not in document]
    if missing:
        raise _damaged(path, f"this file is not the result of a run: it lacks {', '.join(missing)}")


def _damaged(path: Path, found: str) -> DamagedCellError:
    return DamagedCellError([Problem(str(path), found, "remove it and run the same command again")])
