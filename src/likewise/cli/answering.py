"""What `score` and `classify` share: they read a file and write the same rows with answers.

Answers go to a file in two passes. The first one answers the rows, section by section, and keeps what is
finished beside the output. The second one reads the rows again and writes them with their answers. A run that
was killed goes on at the first section that is missing, and its output is the same to the byte.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from likewise.cli.console import counting, note, printable, printable_json
from likewise.data.asked import BLANK, SKIP, AskedRow, BadRows, ask_rows
from likewise.errors import DataError, Interrupted, Problem, UsageError
from likewise.files import is_there, refuse_output_into_input
from likewise.outputs import check_output_file
from likewise.wording import counted

if TYPE_CHECKING:
    from likewise.data.journal import Answered, Journal
    from likewise.data.rows import Row, Table
    from likewise.data.sinks import Sink
    from likewise.predict import Answerer

WINDOW = 4096
# Rows of long texts are held fewer at a time.
WINDOW_CHARS = 16_000_000
# A section ends with the window in which so many distinct texts, or rows, are reached. The model then
# forgets the vectors of its texts, so that the next section has the same answers if a run begins with it.
SECTION_TEXTS, SECTION_ROWS = 16_000, 65_536
# The texts of rows → the values of the new columns of each.
Answer = Callable[[list[tuple[str, ...]]], Iterable[list[object]]]


@dataclass(frozen=True, slots=True)
class Written:
    """Where answers go: to a file, or to standard output as CSV or JSON lines. `safe` is `--safe-csv`,
    `replace` is `--overwrite`, and `on_bad` says what happens to rows that cannot be answered.
    """

    output: Path | None
    as_json: bool = False
    safe: bool = False
    replace: bool = False
    on_bad: str = BLANK
    resume: bool = False

    def check(self, inputs: Sequence[object]) -> None:
        """Check the options before anything is loaded."""
        from likewise.data.journal import is_done

        BadRows(self.on_bad)
        if self.resume and (self.output is None or inputs[0] == "-"):
            raise UsageError(
                "--resume continues a file of answers to a file. Name the file with --output, or leave "
                "--resume out."
            )
        if self.output is None or (self.resume and is_done(self.output)):
            return
        check_output_file(self.output, inputs=inputs, overwrite=self.replace)


@dataclass(frozen=True, slots=True)
class Work:
    """A table to answer: its text columns, the columns that are added, and who answers.

    `options` are those that decide the answers. `predictor` is the model behind `answer`. `words` belong to
    the verb: ("scoring", "pairs", "scored").
    """

    source: str
    table: Table
    columns: Sequence[str]
    model: str
    added: Sequence[str]
    answer: Answer
    predictor: Answerer
    options: Mapping[str, object]
    words: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Begun:
    """The first window of the rows of a table, the rows after it, and the count of bad ones."""

    first: list[AskedRow]
    rest: Iterator[AskedRow]
    bad: BadRows


def names_file(text: str) -> bool:
    """Whether an argument names a file, existing or mistyped, or is - for standard input, and so is not a
    text.
    """
    from likewise.data.tables import is_table_name, names_sheet

    return text == "-" or is_table_name(text) or names_sheet(text) or (bool(text.strip()) and is_there(text))


def first_rows(table: Table) -> tuple[list[Row], Iterator[Row]]:
    """The first row of a table, and the rows after it. An empty table is an error before a model loads."""
    from likewise.data.reading import no_rows

    rows = iter(table)
    first = list(islice(rows, 1))
    if not first:
        raise DataError([no_rows(table)])
    return first, rows


def begin_rows(table: Table, columns: Sequence[str], on_bad: str) -> Begun:
    """Read the first window of a table. An empty table is an error before a model loads."""
    from likewise.data.reading import no_rows

    _return_memory()
    bad = BadRows(on_bad)
    rows = ask_rows(table, columns, bad)
    first = _window(rows)
    if not first:
        raise DataError([no_rows(table)])
    return Begun(first, rows, bad)


# What glibc calls the size from which memory is taken from the system and given back when it is free.
_M_MMAP_THRESHOLD, _THRESHOLD = -3, 2**20


def _return_memory() -> None:
    """Give the memory of large tensors back at once, which keeps the process as small as its first batch.

    Otherwise they leave holes between the vectors that are kept, and a long run grows by hundreds of
    megabytes.
    """
    with suppress(OSError, AttributeError):  # a system with another allocator
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)


def write_answers(work: Work, begun: Begun, written: Written) -> None:
    """Answer the rows window by window, show progress, and tell which rows could not be answered."""
    _, things, done_word = work.words
    with work.predictor.cut_texts.telling(note):
        if written.output is None or work.table.once:
            answered = _pass_on(work, begun, written)
        else:
            found = _FileOfAnswers(work, begun, written, written.output).write()
            if found is None:
                note(f"{written.output} is complete already")
                return
            answered = found
    for line in begun.bad.told(answered + begun.bad.count):
        note(line)
    if written.output is not None:
        count = counted(answered, things.removesuffix("s"))
        note(f"{count} {done_word} and written to {written.output} (added columns: {', '.join(work.added)})")


def _pass_on(work: Work, begun: Begun, written: Written) -> int:
    """Write each window as soon as it is answered. Returns the number of rows that were answered."""
    from likewise.data import count_rows

    with ExitStack() as stack:
        advance = stack.enter_context(counting(*work.words[:2], count_rows(work.source)))
        if written.output is None:
            columns = [*work.table.columns, *work.added]
            write = _line_writer(columns, as_json=written.as_json, safe=written.safe)
        else:
            write = stack.enter_context(_writer(work, written, written.output)).write_row
        answered = 0
        for window in _windows(begun):
            for asked, answers in zip(window, _answered(window, work), strict=True):
                _write_row(write, asked.row, answers, work, begun.bad)
            answered += _count_read(window)
            advance(len(window))
        _refuse_all_bad(begun.bad, answered, work)
    return answered


class _FileOfAnswers:
    """Writes the answers to a file into another one, so that a run that was killed can be resumed."""

    def __init__(self, work: Work, begun: Begun, written: Written, output: Path) -> None:
        from likewise.data.journal import Journal

        self._work, self._begun, self._written, self._output = work, begun, written, output
        self._stamp = _stamp(work.source)
        self._journal: Journal = Journal(output, self._mark)

    def write(self) -> int | None:
        """Answer all rows and write them. Returns the number of rows that were answered, or None if a run is
        resumed whose output is complete.
        """
        from likewise.data.journal import is_done

        journal, written = self._journal, self._written
        complete = written.resume and is_done(self._output)
        journal.begin(resume=written.resume, overwrite=written.replace)
        if complete:
            journal.remove()
            return None
        try:
            last, answered = self._answer()
            self._compose(last)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted. {self._kept()}") from None
        except BaseException:
            if journal.sections:
                note(self._kept())
            raise
        finally:
            journal.close()
        if journal.folder.is_dir():
            journal.remove()
        return answered

    def _kept(self) -> str:
        if not self._journal.sections:
            return "No answers were kept."
        return (
            f"The answers so far are kept in {self._journal.folder.name}. To continue, repeat the command "
            "with --resume."
        )

    def _answer(self) -> tuple[list[Answered], int]:
        """Answer the rows and keep every section but the last one, which is returned with the number of rows
        that were answered.
        """
        from likewise.data import count_rows

        work, journal, windows = self._work, self._journal, _windows(self._begun)
        section: list[Answered] = []
        texts: set[str] = set()
        with counting(*work.words[:2], count_rows(work.source)) as advance:
            answered = self._pass_over(windows, advance)
            for window in windows:
                section += _answered(window, work)
                texts.update(text for asked in window for text in asked.texts or ())
                answered += _count_read(window)
                advance(len(window))
                if len(texts) >= SECTION_TEXTS or len(section) >= SECTION_ROWS:
                    journal.keep(section)
                    work.predictor.forget()
                    section, texts = [], set()
        _refuse_all_bad(self._begun.bad, answered, work)
        return section, answered

    def _pass_over(self, windows: Iterator[list[AskedRow]], advance: Callable[[int], object]) -> int:
        """Pass over the rows of finished sections, which end with a window, and count the answered ones."""
        done = kept = answered = 0
        for number in range(self._journal.sections):
            kept += sum(1 for _ in self._journal.read(number))
        while done < kept:
            window = next(windows, [])
            done, answered = done + len(window), answered + _count_read(window)
            if not window or done > kept:
                raise DataError([self._changed()])
        if kept:
            note(f"resuming after {counted(kept, 'row')}")
            advance(kept)
        elif self._written.resume:
            note("there are no answers to resume from, so the first row is the first one answered")
        return answered

    def _compose(self, last: list[Answered]) -> None:
        """Read the rows again and write them with their answers."""
        work, journal, bad = self._work, self._journal, BadRows(self._begun.bad.policy)
        answers = chain(*(journal.read(number) for number in range(journal.sections)), last)
        with _writer(work, self._written, self._output, journal.note_done) as writer:
            rows = ask_rows(work.table, work.columns, bad)
            for asked in rows:
                found = next(answers, "")
                if found == "" or (found is None) != (asked.texts is None):
                    raise DataError([self._changed()])
                _write_row(writer.write_row, asked.row, found, work, bad)  # type: ignore[arg-type]
            if next(answers, "") != "" or _stamp(work.source) != self._stamp:
                raise DataError([self._changed()])

    def _changed(self) -> Problem:
        return Problem(self._work.source, "this has changed while it was answered", "repeat the command")

    def _mark(self) -> dict[str, object]:
        """What decides the answers: the input and the model by their hashes, the options and the versions."""
        from likewise import __version__
        from likewise.data.filecache import content_digests
        from likewise.encoders.resolve import local_folder

        work = self._work
        file, hash_mark, sheet = work.source.rpartition("#")
        place = Path(work.source if is_there(work.source) or not hash_mark else file)
        digests = content_digests(place)
        if _stamp(work.source) != self._stamp:
            raise DataError([self._changed()])
        return {
            "likewise": "answers",
            "version": __version__,
            "windows": [WINDOW, WINDOW_CHARS, SECTION_TEXTS, SECTION_ROWS],
            "input": sorted(digests.values()),
            "table": [list(work.columns), list(work.table.columns), work.table.delimiter, sheet],
            "model": content_digests(local_folder(work.model)),
            "options": {**work.options, "added": list(work.added)},
        }


def _stamp(source: str) -> object:
    """The size and time of a file that is answered, or None if it is no single file."""
    from likewise.data.opened import stamp

    for name in (source, source.rpartition("#")[0]):
        if name and is_there(name):
            return stamp(name)
    return None


def _writer(
    work: Work, written: Written, output: Path, before_naming: Callable[[Path], None] | None = None
) -> Any:
    """The writer of a file of answers. A CSV file gets the delimiter of the input."""
    from likewise.data import TableWriter

    return TableWriter(
        output,
        [*work.table.columns, *work.added],
        safe=written.safe,
        replace=written.replace,
        delimiter=work.table.csv_delimiter,
        bom=work.table.csv_bom,
        before_naming=before_naming,
    )


def _answered(window: list[AskedRow], work: Work) -> list[Answered]:
    """The answers to a window of rows, None for a row that cannot be answered."""
    texts = [asked.texts for asked in window if asked.texts is not None]
    found = iter(work.answer(texts) if texts else ())
    return [None if asked.texts is None else next(found) for asked in window]


def _write_row(
    write: Callable[[dict[str, object]], None], row: Row, answers: Answered, work: Work, bad: BadRows
) -> None:
    if answers is None and bad.policy == SKIP:
        return
    values = [None] * len(work.added) if answers is None else answers
    write({**row.fields, **dict(zip(work.added, values, strict=True))})


def _count_read(window: list[AskedRow]) -> int:
    return sum(asked.texts is not None for asked in window)


def _refuse_all_bad(bad: BadRows, answered: int, work: Work) -> None:
    """Refuse a table in which no row can be answered: the wrong column, most likely."""
    if bad.count and not answered:
        told = f"{work.table.name}: none of {counted(bad.count, 'row')} can be answered"
        note(f"{told} (columns: {', '.join(work.columns)})")
        raise DataError(bad.first[:1])


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


def _windows(begun: Begun) -> Iterator[list[AskedRow]]:
    window = begun.first
    while window:
        yield window
        window = _window(begun.rest)


def _window(rows: Iterator[AskedRow]) -> list[AskedRow]:
    """The next rows: as many as are answered at once, or fewer if their texts are long."""
    found: list[AskedRow] = []
    size = 0
    for asked in islice(rows, WINDOW):
        found.append(asked)
        size += sum(len(cell) for cell in asked.row.fields.values() if isinstance(cell, str))
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
