"""Cells of earlier versions: taken over where they are surely the same training, named as stale otherwise.

v2-KEY    knew what data files hold, and not the encoder's files nor those of named corpora
KEY       knew neither

What such a file does not say, the file system does: a file whose inode has not changed since the cell was
written is the one that it was trained on. One that has, or that was copied here since, may be another.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from likewise.errors import LikewiseError
from likewise.experiments.cell import Cell
from likewise.experiments.cellfiles import DamagedCellError, copy_cell
from likewise.schema.recipe import parse_recipe


def take_former(cell: Cell, folder: Path) -> str | None:
    """Take over what a cell left under a former key.

    None if it left nothing, "" if it was taken over, and otherwise the file and why it is not used.
    """
    for key in (cell.second_key, cell.first_key):
        former = folder / f"{key}.json"
        if former.is_file():
            why = _difference(cell, former)
            if not why:
                why = _copy(folder, key, cell.key)
            return f"{former.name}: {why}" if why else ""
    return None


def _difference(cell: Cell, former: Path) -> str:
    """Why a former cell is another training than a cell, or may be; nothing if it is the same."""
    try:
        kept: Any = json.loads(former.read_text(encoding="utf8"))
        same = parse_recipe(kept["recipe"], former.name) == parse_recipe(dict(cell.recipe), cell.setting)
        written = former.stat().st_mtime_ns
    except (OSError, ValueError, KeyError, TypeError, RecursionError, LikewiseError) as error:
        return f"cannot be read ({error})"
    if not same:
        return "a default of its recipe has changed since"
    for file in cell.files:
        try:
            if os.stat(file).st_ctime_ns > written:
                return f"{file} was changed, or copied here, after it was trained"
        except OSError:
            continue  # it is no longer here, and training will say so if it is needed
    return ""


def _copy(folder: Path, former: str, key: str) -> str:
    try:
        copy_cell(folder, former, key)
    except DamagedCellError as error:
        return str(error)
    return ""
