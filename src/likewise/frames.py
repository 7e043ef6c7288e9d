"""Answers as a pandas frame, with the column names that `likewise score` and `classify` write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from likewise.errors import MissingExtraError, UsageError
from likewise.wording import counted

if TYPE_CHECKING:
    from pandas import DataFrame

_ONE, _TWO = ("text",), ("text_a", "text_b")


def answer_frame(columns: Mapping[str, Any], *, index: Any = None, rows: Any = None) -> DataFrame:
    """Columns of answers as a frame. If the `rows` that were asked about are given, they come first.

    The rows are a frame, whose index is kept, or texts or pairs as they were passed. An answer whose name is
    that of a column of the rows gets the prefix `predicted_`.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "tables") from None
    size = len(next(iter(columns.values()), ()))
    if rows is None:
        return pandas.DataFrame(dict(columns), index=index)
    asked = rows if isinstance(rows, pandas.DataFrame) else pandas.DataFrame(_text_columns(rows), index=index)
    if len(asked) != size and index is not None and asked.index.is_unique and set(index) <= set(asked.index):
        asked = asked.loc[index]  # the rows that were not left out
    if len(asked) != size:
        raise UsageError(
            f"there are answers for {counted(size, 'row')}, but {counted(len(asked), 'row')} were passed. "
            "Pass the rows that were asked about."
        )
    found = asked.copy()
    for name, values in columns.items():
        while name in found.columns:
            name = f"predicted_{name}"
        found[name] = values
    return found


def index_of(given: Any) -> Any:
    """The index of a frame or Series, or None for anything else."""
    return given.index if hasattr(given, "iloc") else None


def _text_columns(rows: Any) -> dict[str, list[str]]:
    """The texts of rows by column: `text`, or `text_a` and `text_b`."""
    listed = [rows] if isinstance(rows, str) else list(rows)
    if all(isinstance(row, str) for row in listed):
        return {_ONE[0]: listed}
    pairs: Sequence[Any] = [tuple(row) for row in listed]
    if any(len(pair) != len(_TWO) for pair in pairs):
        raise UsageError("the rows are neither texts nor pairs of texts. Pass them as they were asked about.")
    return {name: [str(pair[side]) for pair in pairs] for side, name in enumerate(_TWO)}
