"""Cross-lingual pairs of a translated corpus: the first text in one language, the second in another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from likewise.data.catalogue import Corpus, Split
from likewise.data.rows import Fail, Row, Table
from likewise.data.values import to_number
from likewise.errors import DataError, Problem

_REMEDY = "take both files whole from one release"


def crossed_table(corpus: Corpus, split: Split, first: Table, second: Table) -> Table:
    """Row by row the first text of one table and the other text of its translation.

    Both must have the same rows with the same ratings; the first row that differs is an error.
    """
    name = f"{first.name} + {Path(second.name).name}"

    def scan(_: Fail) -> Iterator[Row]:
        # No malformed row is stepped over: all that follow it would meet the translation of another row.
        for row, translated in zip_longest(first, second):
            if row is None or translated is None:
                raise DataError([_unmatched(translated, first) if row is None else _unmatched(row, second)])
            _check_ratings(corpus, row, translated)
            texts = {column: translated.fields[column] for column in corpus.texts[1:]}
            line = row.source.rpartition(":")[2]
            yield Row({**row.fields, **texts, "language": split.language}, f"{name}:{line}")

    return Table(name, first.columns, scan, size=split.rows)


def _unmatched(row: Row, shorter: Table) -> Problem:
    return Problem(row.source, f"has no translation in {shorter.name}, which ends before this row", _REMEDY)


def _check_ratings(corpus: Corpus, row: Row, translated: Row) -> None:
    for relation in corpus.relations:
        cell, other = row.fields[relation.name], translated.fields[relation.name]
        if not _is_same(cell, other):
            found = f"{relation.name} is {cell!r}, but {other!r} in its translation at {translated.source}"
            raise DataError([Problem(row.source, found, _REMEDY)])


def _is_same(cell: object, other: object) -> bool:
    number = to_number(cell)
    return cell == other or (number is not None and number == to_number(other))
