"""What `score` and `classify` share: they read a file and write the same rows with answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from likewise.cli.console import counting, note, printable, printable_json
from likewise.errors import DataError
from likewise.files import is_there, refuse_output_into_input
from likewise.wording import counted

if TYPE_CHECKING:
    from likewise.answering import Answering
    from likewise.data.rows import Row, Table
    from likewise.data.sinks import Sink

WINDOW = 4096
# Rows of long texts are held fewer at a time.
WINDOW_CHARS = 16_000_000
# A window of rows → the answers of each, by column.
Answer = Callable[[list["Row"]], Iterator[dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Written:
    """Where answers go: to a file, or to standard output as CSV or JSON lines. `safe` is `--safe-csv` and
    `replace` is `--overwrite`.
    """

    output: Path | None
    as_json: bool = False
    safe: bool = False
    replace: bool = False


def names_file(text: str) -> bool:
    """Whether an argument names a file, existing or mistyped, or is - for standard input, and so is not a
    text.
    """
    from likewise.data.tables import is_table_name

    return text == "-" or is_table_name(text) or (bool(text.strip()) and is_there(text))


def first_rows(table: Table) -> tuple[list[Row], Iterator[Row]]:
    """The first window of a table's rows, and the rows after it. An empty table is an error before a model
    loads.
    """
    from likewise.data.reading import no_rows

    rows = iter(table)
    first = _window(rows)
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
    written: Written,
    words: tuple[str, str, str],
    model: Answering,
) -> None:
    """Answer the rows window by window and show progress. `words` belong to the verb: ("scoring", "pairs",
    "scored"). What `model` cut off is told once, at the end.
    """
    from likewise.data import TableWriter, count_rows

    (doing, things, done_word), output = words, written.output
    columns = [*table.columns, *added]
    with ExitStack() as stack:
        stack.enter_context(model.cut_texts.telling(note))
        advance = stack.enter_context(counting(doing, things, count_rows(name)))
        if output is None:
            write = _line_writer(columns, as_json=written.as_json, safe=written.safe)
        else:
            table_writer = TableWriter(output, columns, safe=written.safe, replace=written.replace)
            write = stack.enter_context(table_writer).write_row
        done = 0
        for window in _windows(*opened):
            for row, answers in zip(window, answer(window), strict=True):
                write({**row.fields, **answers})
            done += len(window)
            advance(len(window))
    if output is not None:
        note(
            f"{counted(done, things.removesuffix('s'))} {done_word} and written to {output} (added "
            f"columns: {', '.join(added)})"
        )


def texts_of(window: list[Row], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The texts of rows, checked."""
    from likewise.data.values import to_text
    from likewise.encoders.inputs import MAX_CHARS

    return [
        tuple(to_text(row.fields.get(c), column=c, source=row.source, max_chars=MAX_CHARS) for c in columns)
        for row in window
    ]


def answer_columns(names: Sequence[str], present: Sequence[str]) -> dict[str, str]:
    """Map each answer to the name of its new column. A column of the input is never overwritten."""
    found: dict[str, str] = {}
    for name in names:
        wanted = name
        while wanted in present or wanted in found.values():
            wanted = f"predicted_{wanted}"
        found[name] = wanted
    return found


def _windows(first: list[Row], rows: Iterator[Row]) -> Iterator[list[Row]]:
    window = first
    while window:
        yield window
        window = _window(rows)


def _window(rows: Iterator[Row]) -> list[Row]:
    """The next rows: as many as are answered at once, or fewer if their texts are long."""
    found: list[Row] = []
    size = 0
    for row in islice(rows, WINDOW):
        found.append(row)
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str))
        if size > WINDOW_CHARS:
            break
    return found


class _Shown:
    """A terminal to write rows to. Control characters in the rows are escaped, so the terminal does not
    act on them.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._convert = printable_json if as_json else printable

    def write(self, line: bytes) -> None:
        """Show a line."""
        sys.stdout.write(self._convert(line.decode("utf-8")))


def _line_writer(columns: list[str], *, as_json: bool, safe: bool) -> Callable[[dict[str, object]], None]:
    """Write rows to standard output as they would stand in a file: in UTF-8, whatever the terminal's
    encoding.
    """
    from likewise.data.sinks import CsvSink, JsonlSink

    stream = cast(BinaryIO, _Shown(as_json=as_json) if sys.stdout.isatty() else sys.stdout.buffer)
    sinks: list[Sink] = []
    refuse_output_into_input()

    def write(row: dict[str, object]) -> None:
        if not sinks:
            # With the first answer: a run that fails before it leaves no file of a header alone.
            named = tuple(columns)
            sinks.append(JsonlSink(stream, named) if as_json else CsvSink(stream, named, safe=safe))
        sinks[0].write(row)

    return write
