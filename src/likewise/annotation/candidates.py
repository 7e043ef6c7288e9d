"""The candidates of a pool: distinct pairs without a rating, drawn at random in one pass.

Each pair has a random place in the order, computed from the seed and its texts. The pairs with the first
places are the candidates, whatever the order of the file. A pass keeps 8 bytes of each distinct pair (about
100 bytes in Python) and the rows of the candidates.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Progress
from likewise.data.columns import find_text_columns
from likewise.data.dialects import filled_rows
from likewise.data.keys import pair_key
from likewise.data.reading import no_rows
from likewise.data.tables import open_table
from likewise.data.values import MAX_CHARS, to_text
from likewise.errors import DataError

# Candidates with more characters than this in all are fewer.
_MOST_CHARS = 200_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """One pair of a pool, with its row."""

    texts: tuple[str, str]
    keys: tuple[str, str]
    fields: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates in random order, the columns of the pool, and what was left out of it.

    `distinct` counts the pairs that might have been drawn. `alike` counts rows whose two texts are the same,
    `repeated` rows that repeat a pair, and `rated` rows whose pair is rated. `delimiter` and `bom` are those
    of a CSV file that is made from the pool.
    """

    columns: tuple[str, ...]
    texts: tuple[str, str]
    pairs: tuple[Candidate, ...]
    rows: int
    distinct: int
    alike: int
    repeated: int
    rated: int
    delimiter: str = ","
    bom: bool = False

    def numbers(self) -> NDArray[np.int64]:
        """The texts of the candidates by number, N×2. Texts with the same key have the same number."""
        known: dict[str, int] = {}
        found = [[known.setdefault(key, len(known)) for key in pair.keys] for pair in self.pairs]
        return np.asarray(found, dtype=np.int64).reshape(-1, 2)


@dataclass(slots=True)
class _Drawn:
    """The candidates so far: a heap whose first entry is the one that goes first."""

    most: int
    heap: list[tuple[int, int, Candidate]] = field(default_factory=list)
    chars: int = 0

    def offer(self, place: int, number: int, candidate: Candidate) -> None:
        """Add a candidate, and drop those with the last places if there are too many."""
        if len(self.heap) >= self.most and place >= -self.heap[0][0]:
            return
        heapq.heappush(self.heap, (-place, -number, candidate))
        self.chars += _size(candidate)
        while len(self.heap) > self.most or (self.chars > _MOST_CHARS and len(self.heap) > 1):
            self.chars -= _size(heapq.heappop(self.heap)[2])


def draw_candidates(
    pool: object,
    *,
    most: int,
    seed: int,
    rated: Iterable[tuple[str, str]] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    progress: Progress | None = None,
) -> Candidates:
    """Draw up to `most` candidates from a pool. The pairs `rated` are left out, in either order."""
    known = {_mark(pair_key(*pair)) for pair in rated}
    table = open_table(pool)
    names = find_text_columns(table.columns, text_a, text_b, source=table.name)
    drawn, seen = _Drawn(most), set[int]()
    rows = alike = repeated = left_out = 0
    for row in filled_rows(table):
        rows += 1
        if progress is not None:
            progress(1)
        a, b = (
            to_text(row.fields.get(name), column=name, source=row.source, max_chars=MAX_CHARS)
            for name in names
        )
        keys = pair_key(a, b)
        mark = _mark(keys)
        if keys[0] == keys[1]:
            alike += 1
        elif mark in known:
            left_out += 1
        elif mark in seen:
            repeated += 1
        else:
            seen.add(mark)
            drawn.offer(_mark(keys, seed), rows, Candidate((a, b), keys, row.fields, row.source))
    if not rows:
        raise DataError([no_rows(table)])
    pairs = tuple(candidate for _, _, candidate in sorted(drawn.heap, key=lambda one: (-one[0], -one[1])))
    counts = (rows, len(seen), alike, repeated, left_out)
    return Candidates(table.columns, names, pairs, *counts, table.csv_delimiter, table.csv_bom)


def read_pairs(
    source: object, text_a: str | None = None, text_b: str | None = None
) -> Iterator[tuple[str, str]]:
    """The texts of a table of rated pairs. Its text columns may have other names than those of the pool."""
    table = open_table(source)
    named = [name if name in table.columns else None for name in (text_a, text_b)]
    names = find_text_columns(table.columns, *named, source=table.name)
    for row in filled_rows(table):
        a, b = (str(row.fields.get(name) or "") for name in names)
        yield a, b


def _mark(keys: Sequence[str], seed: int | None = None) -> int:
    """A number of 64 bits for a pair of keys; with a seed, its random place in the order."""
    salt = b"" if seed is None else str(seed).encode("ascii")
    digest = blake2b("\0".join(keys).encode("utf-8", "surrogatepass"), digest_size=8, key=salt)
    return int.from_bytes(digest.digest(), "big")


def _size(candidate: Candidate) -> int:
    return sum(len(cell) for cell in candidate.fields.values() if isinstance(cell, str))
