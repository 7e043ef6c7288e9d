"""Checksums over the rows of a corpus file, and not over its bytes.

A corpus that is converted from its published form cannot have the bytes of our copy: spaces, quoting, the
columns beside the texts and the writing of numbers differ. Its rows can be the same. Three checksums tell how
much is the same. Each is over the columns that the catalogue reads, in their order:

    exact   cells in NFC with every run of white space as one blank; numbers with ten digits; rows in order
    keys    the same over `loose_key`, which ignores case, punctuation and brackets; rows in order
    bag     the same over keys, whatever the order of the rows

checksums.toml has them for every file that we had. `benchmarks/row_checksums.py` writes it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from likewise.data.compression import split_endings
from likewise.data.keys import text_key
from likewise.data.values import to_number

# How alike two files are, from the same rows in the same order to other rows.
Likeness = Literal["same", "respelt", "reordered", "other"]

_FORMAT = b"likewise-rows-1"
_CELL, _ROW, _ITEM = "\x1f", "\x1e", "\x1d"
_DIGITS = 32
_NUMBER = ":number"
# How treebanks write brackets; they have no letters that the text had.
_BRACKET = re.compile(r"-[lr][rsc]b-", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RowChecksums:
    """The checksums of a file's rows. A column that ends in ":number" is compared as a number."""

    columns: tuple[str, ...]
    rows: int
    exact: str
    keys: str
    bag: str

    def likeness(self, other: RowChecksums) -> Likeness:
        """How alike the rows of another file are."""
        if self.exact == other.exact:
            return "same"
        if self.keys == other.keys:
            return "respelt"
        return "reordered" if self.bag == other.bag else "other"


class RowDigest:
    """Computes the checksums of rows, one row at a time."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._named = [(name.removesuffix(_NUMBER), name.endswith(_NUMBER)) for name in columns]
        head = _FORMAT + _CELL.join(self._columns).encode()
        self._exact, self._keys = hashlib.sha256(head), hashlib.sha256(head)
        self._sum = self._rows = 0

    def add(self, row: Mapping[str, object]) -> None:
        """Take in the next row. A cell may be a list of texts."""
        exact = [_cell(row.get(name), number=number) for name, number in self._named]
        self._exact.update((_CELL.join(exact) + _ROW).encode("utf-8", "surrogatepass"))
        key = row_key(row, self._columns)
        self._keys.update(key)
        self._sum += int.from_bytes(hashlib.sha256(key).digest(), "big")
        self._rows += 1

    def result(self) -> RowChecksums:
        """The checksums of all rows so far."""
        bag = f"{self._rows}:{self._sum % 2**256}".encode()
        found = (one.hexdigest()[:_DIGITS] for one in (self._exact, self._keys, hashlib.sha256(bag)))
        return RowChecksums(self._columns, self._rows, *found)


def row_key(row: Mapping[str, object], columns: Sequence[str]) -> bytes:
    """What identifies a row: the loose keys of its cells."""
    cells = []
    for column in columns:
        name = column.removesuffix(_NUMBER)
        cell = _cell(row.get(name), number=column.endswith(_NUMBER))
        cells.append(cell if column.endswith(_NUMBER) else _ITEM.join(map(loose_key, cell.split(_ITEM))))
    return (_CELL.join(cells) + _ROW).encode("utf-8", "surrogatepass")


def loose_key(text: str) -> str:
    """The `text_key` of a text, in which brackets written as -LRB- do not count either."""
    return text_key(_BRACKET.sub(" ", text) if "-" in text else text)


def stored_checksums(file: str) -> RowChecksums | None:
    """The checksums of our copy of a corpus file, by its path in the data folder, or None if we had none."""
    entry = _stored().get(plain_name(file))
    if entry is None:
        return None
    return RowChecksums(tuple(entry["columns"]), entry["rows"], entry["exact"], entry["keys"], entry["bag"])


def plain_name(file: str) -> str:
    """The path of a corpus file without the ending of its compression."""
    return file.removesuffix(split_endings(Path(file))[1])


@cache
def _stored() -> dict[str, dict[str, Any]]:
    text = resources.files("likewise.data").joinpath("checksums.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _cell(cell: object, *, number: bool) -> str:
    if number:
        value = to_number(cell)
        return "" if value is None else format(value, ".10g")
    if isinstance(cell, list | tuple):
        return _ITEM.join(_plain(str(item)) for item in cell)
    return "" if cell is None else _plain(str(cell))


def _plain(text: str) -> str:
    text = " ".join(text.split())
    return text if text.isascii() else unicodedata.normalize("NFC", text)
