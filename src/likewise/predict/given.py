"""The texts and pairs that a caller passes in Python, in whatever form: lists, frames, arrays, generators.

    one text a row    a text · a list · a Series or array of texts · a generator · a frame, dataset or file
    two texts a row   pairs · two texts · two lists · an N×2 array · zip(a, b) · a frame, dataset or file

A frame, a dataset, a list of dicts and a file have columns; `text`, `text_a` and `text_b` name those to read.
What has no order (a set) or could be meant in two ways (a dict) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.data.asked import BLANK, BadRows, ask_rows
from likewise.data.columns import find_text_column, find_text_columns
from likewise.data.compression import split_endings
from likewise.data.rows import Table
from likewise.data.values import MAX_CHARS, find_fault
from likewise.errors import DataError, UsageError
from likewise.files import is_there
from likewise.wording import counted, quoted

Pair = tuple[str, str]
_TEXTS = "a text, a list of texts, a Series, an array, a frame with a column of texts, or a file"
_PAIRS = "pairs of texts, two lists of the same length, a frame with two columns of texts, or a file"


def given_texts(
    texts: Any, *, text: str | None = None, files: bool = False, option: str = "text"
) -> list[str]:
    """Single texts as a list. With `files`, a string is the name of a file, and otherwise it is a text.

    `option` is the keyword with which the caller names their column.
    """
    if isinstance(texts, str) and not files:
        return [texts]
    if isinstance(texts, str) and " " in texts.strip() and not is_there(texts):
        raise UsageError("a single text was passed instead of a list of texts or a file. Pass [text].")
    if _has_columns(texts) or isinstance(texts, str | Path):
        return _column(texts, text, option)
    rows = _listed(texts, _TEXTS)
    if rows and all(isinstance(one, Mapping) for one in rows):
        return _column(rows, text, option)
    if text is not None:
        raise UsageError(
            f"text={text!r} names a column, but {type(texts).__name__} has none. Leave text out."
        )
    if any(isinstance(one, list | tuple) for one in rows):
        raise UsageError("these are pairs, but this model reads single texts. Pass a list of texts.")
    return rows


def given_pairs(
    pairs: Any, b: Any = None, *, text_a: str | None = None, text_b: str | None = None
) -> list[Pair]:
    """Pairs of texts as a list, from one argument or from two."""
    if b is not None:
        return _side_by_side(pairs, b)
    _refuse_one_text(pairs)
    if _has_columns(pairs) or isinstance(pairs, str | Path):
        return _columns(pairs, text_a, text_b)
    rows = [_as_pair(row) for row in _listed(pairs, _PAIRS)]
    if all(_is_pair(row) for row in rows):
        return rows
    if any(isinstance(row, str) for row in rows):
        raise UsageError(
            "these are single texts, but this model reads pairs of texts. Pass (first, second) for each "
            "pair, or the first and the second texts as two lists."
        )
    return _columns(rows, text_a, text_b)


def asked_texts(
    texts: Any, bad: BadRows, *, text: str | None = None, files: bool = False, option: str = "text"
) -> list[tuple[str, ...] | None]:
    """Single texts as rows of one text. A row that cannot be read is None, or left out, as `bad` says."""

    def find(table: Table) -> tuple[str, ...]:
        return (find_text_column(table.columns, text, source=table.name, option=option),)

    if _has_columns(texts) or isinstance(texts, Path) or (isinstance(texts, str) and files):
        return _asked(texts, bad, find)
    rows = [texts] if isinstance(texts, str) else _listed(texts, _TEXTS)
    if rows and any(isinstance(one, Mapping) for one in rows):
        return _asked(rows, bad, find)
    if text is not None or any(isinstance(one, list | tuple) for one in rows):
        given_texts(rows, text=text, option=option)  # which says what is wrong
    return _readable([(one,) for one in rows], bad)


def asked_pairs(
    pairs: Any, b: Any, bad: BadRows, *, text_a: str | None = None, text_b: str | None = None
) -> list[tuple[str, ...] | None]:
    """Pairs of texts as rows. A row that cannot be read is None, or left out, as `bad` says."""
    if b is not None and isinstance(pairs, str) != isinstance(b, str):
        return [*given_pairs(pairs, b)]  # which says what is wrong
    if b is not None:
        sides = ([pairs], [b]) if isinstance(b, str) else (_listed(pairs, _TEXTS), _listed(b, _TEXTS))
        _refuse_unequal(*sides)
        return _readable(list(zip(*sides, strict=True)), bad)
    _refuse_one_text(pairs)
    if not (_has_columns(pairs) or isinstance(pairs, str | Path)):
        rows = [_as_pair(row) for row in _listed(pairs, _PAIRS)]
        if all(isinstance(row, tuple) and len(row) == 2 for row in rows):
            return _readable(rows, bad)
        if any(isinstance(row, str) for row in rows):
            return [*given_pairs(rows)]
        pairs = rows
    return _asked(
        pairs, bad, lambda table: find_text_columns(table.columns, text_a, text_b, source=table.name)
    )


def read_places(rows: Sequence[tuple[str, ...] | None], bad: BadRows) -> list[int]:
    """The places of the rows that could be read. If there are none, the first problem is an error."""
    places = [place for place, row in enumerate(rows) if row is not None]
    if not places and bad.count:
        raise DataError(bad.first[:1])
    return places


def _asked(
    source: Any, bad: BadRows, find: Callable[[Table], tuple[str, ...]]
) -> list[tuple[str, ...] | None]:
    from likewise.data import open_table

    table = open_table(_named(source))
    rows = ask_rows(table, find(table), bad)
    return [asked.texts for asked in rows if asked.texts is not None or bad.policy == BLANK]


def _readable(rows: Sequence[tuple[Any, ...]], bad: BadRows) -> list[tuple[str, ...] | None]:
    found: list[tuple[str, ...] | None] = []
    for number, row in enumerate(rows, 1):
        names = ("the text",) if len(row) == 1 else ("the first text", "the second text")
        faults = (
            find_fault(cell, column=name, source=f"rows:{number}", max_chars=MAX_CHARS)
            for name, cell in zip(names, row, strict=True)
        )
        fault = next((one for one in faults if one is not None), None)
        if fault is None:
            found.append(row)
            continue
        bad.add(fault.problem)
        if bad.policy == BLANK:
            found.append(None)
    return found


def _side_by_side(a: Any, b: Any) -> list[Pair]:
    """Two texts, or two lists of texts of the same length."""
    if isinstance(a, str) != isinstance(b, str):
        raise UsageError("one argument is a text and the other one is not. Pass two texts, or two lists.")
    first, second = given_texts(a), given_texts(b)
    _refuse_unequal(first, second)
    return list(zip(first, second, strict=True))


def _refuse_unequal(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise UsageError(
            f"there are {counted(len(first), 'first text')} and {counted(len(second), 'second text')}. "
            "Pass as many of each."
        )


def _has_columns(given: object) -> bool:
    """Whether this is a table: a frame, a dataset or its splits."""
    if isinstance(given, Mapping):
        return bool(given) and all(hasattr(part, "column_names") for part in given.values())
    return hasattr(given, "columns") or hasattr(given, "column_names")


def _listed(given: Any, expected: str) -> list[Any]:
    """The rows of anything that can be gone through in a fixed order."""
    shape = getattr(given, "shape", None)
    wrong_shape = isinstance(shape, tuple) and len(shape) not in ((1, 2) if expected is _PAIRS else (1,))
    without_order = isinstance(given, set | frozenset)
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable) or wrong_shape or without_order:
        what = f"an array of shape {shape}" if wrong_shape else type(given).__name__
        raise UsageError(f"{what} was passed, but {expected} is expected.")
    return list(given.tolist() if hasattr(given, "tolist") else given)


def _as_pair(row: Any) -> Any:
    return tuple(row) if isinstance(row, list | tuple) and len(row) == 2 else row


def _refuse_one_text(given: object) -> None:
    """Refuse a sentence that would be taken for the name of a file."""
    from likewise.data.tables import PARSERS

    if isinstance(given, str) and " " in given.strip() and not is_there(given):
        if split_endings(Path(given))[0] not in PARSERS:
            raise UsageError(
                f"{quoted(given)} is one text, but this model reads pairs of texts. Pass "
                "score(first, second), a list of pairs, or the name of a file."
            )


def _is_pair(row: object) -> bool:
    return isinstance(row, tuple) and len(row) == 2 and all(isinstance(text, str) for text in row)


def _column(source: Any, text: str | None, option: str) -> list[str]:
    from likewise.data.reading import open_source

    opened = open_source(_named(source))
    columns = opened.find_texts(text, None, pairs=False, option=option)
    return [record.texts[0] for record in opened.read(columns, ())]


def _columns(source: Any, text_a: str | None, text_b: str | None) -> list[Pair]:
    from likewise.data import read

    rows = read(_named(source), relations=(), text_a=text_a, text_b=text_b)
    return [(record.a, record.b) for record in rows]


def _named(source: Any) -> Any:
    return str(source) if isinstance(source, Path) else source
