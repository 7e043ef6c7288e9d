"""A file in, the same rows with answers out: what `score` and `classify` share."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.cli.console import counting, note
from likewise.errors import DataError, UsageError

if TYPE_CHECKING:
    from likewise.data.rows import Row, Table

WINDOW = 4096
# A window of rows → the answers of each, by column.
Answer = Callable[[list["Row"]], Iterator[dict[str, object]]]


def names_file(text: str) -> bool:
    """Whether an argument is a file, there or mistyped, or - for standard input, rather than a text."""
    from likewise.data.tables import is_table_name

    there = bool(text.strip()) and len(text) < 256 and Path(text).exists()
    return text == "-" or is_table_name(text) or there


def first_rows(table: Table) -> tuple[list[Row], Iterator[Row]]:
    """The first window of a table and those after it; without any it is refused, before a model loads."""
    from likewise.data.reading import no_rows

    rows = iter(table)
    first = list(islice(rows, WINDOW))
    if not first:
        raise DataError([no_rows(table)])
    return first, rows


def write_answers(
    name: str,
    table: Table,
    opened: tuple[list[Row], Iterator[Row]],
    added: Sequence[str],
    answer: Answer,
    *,
    output: Path | None,
    as_json: bool,
    words: tuple[str, str, str],
) -> None:
    """Answer window by window, with progress; `words` are the verb's: ("scoring", "pairs", "scored")."""
    from likewise.data import TableWriter, count_rows

    doing, things, done_word = words
    if output is not None and output.exists() and name != "-" and output.samefile(name):
        raise UsageError(f"{output} is the file that is read: write the answers to another one")
    columns = [*table.columns, *added]
    with ExitStack() as stack:
        advance = stack.enter_context(counting(doing, things, count_rows(name)))
        if output is None:
            write = _line_writer(columns, as_json=as_json)
        else:
            write = stack.enter_context(TableWriter(output, columns)).write_row
        done = 0
        for window in _windows(*opened):
            for row, answers in zip(window, answer(window), strict=True):
                write({**row.fields, **answers})
            done += len(window)
            advance(len(window))
    if output is not None:
        note(f"{done:,} {things} {done_word}: {output} (added {', '.join(added)})")


def texts_of(window: list[Row], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The text cells of rows, checked."""
    from likewise.data.values import to_text
    from likewise.encoders.inputs import MAX_CHARS

    return [
        tuple(to_text(row.fields.get(c), column=c, source=row.source, max_chars=MAX_CHARS) for c in columns)
        for row in window
    ]


def answer_columns(names: Sequence[str], present: Sequence[str]) -> dict[str, str]:
    """Answer → name of its new column; a column that the input already has is never overwritten."""
    return {name: name if name not in present else f"predicted_{name}" for name in names}


def _windows(first: list[Row], rows: Iterator[Row]) -> Iterator[list[Row]]:
    window = first
    while window:
        yield window
        window = list(islice(rows, WINDOW))


def _line_writer(columns: list[str], *, as_json: bool) -> Any:
    if as_json:
        return lambda row: sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    writer = csv.DictWriter(sys.stdout, fieldnames=columns, lineterminator="\n")
    header = iter([writer.writeheader])

    def write(row: dict[str, object]) -> None:
        # With the first answer: a run that fails before it leaves no file of a header alone.
        for begin in header:
            begin()
        writer.writerow(row)

    return write
