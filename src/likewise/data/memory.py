"""Tables that are already in memory: lists of dicts or tuples, pandas frames, datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.data.formats import check_columns
from likewise.data.opened import note_elsewhere
from likewise.data.rows import Fail, Row, Table
from likewise.errors import DataError, Problem, UsageError
from likewise.wording import listed

_TUPLE_COLUMNS = ("text_a", "text_b", "score")
_ABSENT = {"NAType", "NaTType"}


def memory_table(source: object, *, split: str | None, name: str | None) -> Table | None:
    """The table behind a Python object, or None if the object is of no known kind."""
    name = name or "rows"
    if not isinstance(source, str | Path):
        note_elsewhere()
    if isinstance(source, Mapping) and all(hasattr(part, "column_names") for part in source.values()):
        return memory_table(choose_split(source, split, name), split=None, name=name)
    if hasattr(source, "column_names") and hasattr(source, "features"):
        return _dataset_table(source, name)
    if hasattr(source, "itertuples") and hasattr(source, "columns"):
        columns = check_columns(list(source.columns), name)
        return _table(name, columns, lambda: source.itertuples(index=False, name=None), len(source))  # type: ignore[arg-type]
    if isinstance(source, list | tuple):
        return _list_table(source, name)
    return None


def choose_split(splits: Mapping[str, Any], split: str | None, name: str) -> Any:
    """The split with this name, or the only split."""
    found = ", ".join(splits)
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None:
        raise DataError(
            [Problem(name, f"this has several splits ({found})", "name one of them as the split")]
        )
    if split not in splits:
        raise DataError([Problem(name, f"there is no split {split!r}", f"choose one of {found}")])
    return splits[split]


def _dataset_table(source: Any, name: str) -> Table:
    columns = source.column_names
    if columns is None:
        columns = list(next(iter(source), {}))
    names = check_columns(columns, name)
    size = len(source) if hasattr(source, "__len__") else None
    return _table(name, names, lambda: ([fields.get(c) for c in names] for fields in source), size)


def _list_table(source: Sequence[Any], name: str) -> Table:
    if not source:
        raise DataError(
            [Problem(name, "the list is empty, but rows are expected", "pass (a, b), (a, b, score) or dicts")]
        )
    if isinstance(source[0], Mapping):
        columns = check_columns(list(source[0]), name)
        return Table(name, columns, lambda fail: _dict_rows(source, name), size=len(source))
    width = len(source[0]) if isinstance(source[0], list | tuple) else 0
    if width not in (2, 3):
        found = f"rows:1: found {type(source[0]).__name__}, but (a, b), (a, b, score) or a dict is expected"
        raise UsageError(f"{found}. Pass a list of pairs or of dicts.")
    return _table(name, _TUPLE_COLUMNS[:width], lambda: source, len(source))


def _dict_rows(source: Sequence[Mapping[str, Any]], name: str) -> Iterator[Row]:
    for number, fields in enumerate(source, 1):
        if not isinstance(fields, Mapping):
            found = f"found {type(fields).__name__}, but a dict as in the first row is expected"
            raise DataError([Problem(f"{name}:{number}", found, "give every row the same form")])
        yield Row({str(column): _plain(value) for column, value in fields.items()}, f"{name}:{number}")


def _table(
    name: str, columns: tuple[str, ...], rows: Callable[[], Iterable[Sequence[Any]]], size: int | None
) -> Table:
    def scan(fail: Fail) -> Iterator[Row]:
        for number, values in enumerate(rows(), 1):
            source = f"{name}:{number}"
            # A string has a length too, and is no pair of its two letters.
            many = len(values) if isinstance(values, list | tuple) else None
            if many == len(columns):
                yield Row(dict(zip(columns, map(_plain, values), strict=True)), source)
            else:
                counted = type(values).__name__ if many is None else f"{many} values"
                found = f"there are {counted}, but {len(columns)} are expected ({listed(columns)})"
                fail(Problem(source, found, "give every row the same form"))

    return Table(name, columns, scan, size=size)


def _plain(value: Any) -> object:
    """A Python value for a numpy scalar, and None for pandas' own missing values."""
    if type(value).__name__ in _ABSENT:
        return None
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    return value
