"""A folder of tables as one table: files of the formats that Likewise reads, in splits by their names.

    FOLDER/train.csv  FOLDER/test.csv              the split is a word of the file's name
    FOLDER/train/part-0.parquet                    or of the folder that it lies in
    FOLDER/data/pairs-00000-of-00002.parquet       a file without such a word belongs to `train`

Only names decide. Settings in the folder, such as the header of a README, are not read: they could lead to
files outside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from likewise.data.memory import choose_split
from likewise.data.rows import Fail, Row, Table
from likewise.errors import FormatError, Problem
from likewise.wording import listed

OpenFile = Callable[[Path, str, Fail], Table]
# The names that `datasets` gives its splits.
_SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_MOST_FILES = 10_000


def data_files(folder: Path, is_data: Callable[[Path], bool]) -> dict[str, list[Path]]:
    """The files of a folder and of its subfolders by split, in the order of their names."""
    found: dict[str, list[Path]] = {}
    seen: dict[str, Path] = {}
    paths = sorted(path for pattern in ("*", "*/*") for path in folder.glob(pattern))
    for path in (path for path in paths if not _is_hidden(path, folder) and is_data(path)):
        first = seen.setdefault(os.path.realpath(path), path)
        if first is not path:
            told = f"{path.relative_to(folder)} is the same file as {first.relative_to(folder)}"
            raise FormatError([Problem(str(folder), told, "remove the link")])
        found.setdefault(_split_of(path, folder), []).append(path)
    if len(seen) > _MOST_FILES:
        told = f"the folder holds more than {_MOST_FILES:,} files of rows"
        raise FormatError([Problem(str(folder), told, "join them into fewer files")])
    return found


def folder_table(
    files: Mapping[str, list[Path]], folder: Path, open_file: OpenFile, *, split: str | None, name: str | None
) -> Table:
    """The rows of one split of a folder. Every row keeps the name of its file and its line."""
    chosen = choose_split(files, split, str(folder))
    names = [f"{folder.name}/{path.relative_to(folder)}" for path in chosen]
    first = open_file(chosen[0], names[0], _later)
    columns = first.columns

    def scan(fail: Fail) -> Iterator[Row]:
        for path, place in zip(chosen, names, strict=True):
            table = open_file(path, place, _later)
            if table.columns != columns:
                found = f"the columns are {listed(table.columns)}, but those of {names[0]} are "
                raise FormatError([Problem(place, found + listed(columns), "name one of the files instead")])
            yield from table.scan(fail)

    return Table(name or folder.name, columns, scan, delimiter=first.delimiter, bom=first.bom)


def _later(problem: Problem) -> None:
    """Leave a problem to whoever reads the rows, because every reader is told of it again."""


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _split_of(path: Path, folder: Path) -> str:
    """The split that a file's name, or else its folder's name, holds as a word."""
    for part in reversed(path.relative_to(folder).parts):
        words = set(re.split(r"[^a-z]+", part.lower()))
        for split, names in _SPLITS.items():
            if words & set(names):
                return split
    return "train"
