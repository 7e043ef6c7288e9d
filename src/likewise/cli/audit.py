"""`likewise audit`: find evaluation pairs in training data, and write the training data without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from likewise.cli import options
from likewise.cli.completion import corpora, offering, suites
from likewise.cli.console import out
from likewise.errors import DataError
from likewise.outputs import check_output_file

if TYPE_CHECKING:
    from likewise.data.catalogue import Corpus
    from likewise.data.rows import Table
    from likewise.evaluation.leakage import OverlapIndex
    from likewise.records import Record

_MAX_CHARS = 1_000_000
# `likewise.evaluation.copies.NEAR`, which is not loaded for --help.
_NEAR = "0.9"
Fields = Mapping[str, object]


class AuditCommand(TyperCommand):
    """Let `--against A B` stand for `--against A --against B`, and `--near` without a number for `--near
    0.9`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each further value, up to the next option, and fill in a number that is
        left out.
        """
        return super().parse_args(ctx, with_number("--near", spread_option("--against", args), _NEAR))


def audit(
    train: Annotated[
        list[str],
        typer.Argument(
            metavar="TRAIN",
            help="Training data: files, or named corpora such as stsb/train.",
            autocompletion=offering(corpora),
        ),
    ],
    against: Annotated[
        list[str],
        typer.Option(
            "--against",
            metavar="TEST",
            help="Evaluation data: files, named corpora such as sts14/test, or a suite such as sts7.",
            autocompletion=offering(corpora, suites),
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", help="File for the training rows that are not evaluation pairs."),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            "--near",
            metavar=f"[{_NEAR}]",
            help=(
                "Also count near-duplicates: pairs whose texts have at least this Jaccard "
                "similarity of words."
            ),
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help=(
                "Also drop rows that share a single text with TEST or are near-duplicates of its "
                "rows (see --near)."
            ),
        ),
    ] = False,
    overwrite: options.Overwrite = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder that holds the named corpora.")
    ] = None,
    text_a: Annotated[
        str | None,
        typer.Option(
            "--text-a", help="Column of the first text. Test files without this column use their own."
        ),
    ] = None,
    text_b: Annotated[
        str | None,
        typer.Option(
            "--text-b", help="Column of the second text. Test files without this column use their own."
        ),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            "--limit",
            help="Fail if more than this share (0 to 1) of an evaluation set is in the training data.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    safe_csv: options.SafeCsv = False,
) -> None:
    """Find evaluation pairs in training data, in either order and whatever their case and punctuation.

    Example: likewise audit train.csv --against test.csv --output clean.csv

    Example: likewise audit train.csv --against test.csv --near --strict --output clean.csv
    """
    from likewise.data.dialects import name_delimiter
    from likewise.disk import to_json
    from likewise.evaluation.copies import require_near
    from likewise.evaluation.leakage import OverlapIndex, require_below

    if near is not None or strict:
        near = require_near(float(_NEAR) if near is None else near)
    if output is not None:
        inputs = _input_files([*train, *against], data_dir)
        check_output_file(output, inputs=inputs, overwrite=overwrite)
    name_delimiter(train, delimiter)
    places = _Places(text_a, text_b, data_dir)
    sources = [places.open(name) for name in train]
    index = OverlapIndex(_evaluations(against, places), near=near)
    kept = _go_through(sources, index, output, strict=strict, safe=safe_csv, replace=overwrite)
    report = index.report()
    if json:
        said = {"strict": strict, "kept_rows": kept, "output": output}
        out.print_json(to_json({**report.to_dict(), **said}))
    else:
        out.print(report.to_text(), markup=False)
        if strict:
            out.print(report.strict_note(), markup=False)
        if output is not None:
            out.print(f"{output}: {kept:,} of {report.train_rows:,} training rows written", markup=False)
    if limit is not None:
        require_below(report, limit)


def _input_files(names: Sequence[str], data_dir: Path | None) -> list[str | Path]:
    """The files that are read, including those of corpora and suites."""
    from likewise.data.corpora import split_files
    from likewise.data.reading import find_named_corpus
    from likewise.evaluation.suites import suite_files

    found: list[str | Path] = []
    for name in names:
        named = find_named_corpus(name)
        found += [name, *suite_files(name, data_dir)]
        found += [] if named is None else split_files(*named, data_dir)
    return found


def spread_option(option: str, args: Sequence[str]) -> list[str]:
    """The arguments with `option` before each value that follows it, up to the next option."""
    found: list[str] = []
    inside = fresh = False
    for arg in args:
        if arg.startswith("-") and arg != "-":
            inside = fresh = arg == option
        elif inside and not fresh:
            found.append(option)
        else:
            fresh = False
        found.append(arg)
    return found


def with_number(option: str, args: Sequence[str], number: str) -> list[str]:
    """The arguments with a number after each `option` that has none."""
    found: list[str] = []
    for place, arg in enumerate(args):
        found.append(arg)
        if arg == option and not _is_number(args[place + 1 : place + 2]):
            found.append(number)
    return found


def _is_number(args: Sequence[str]) -> bool:
    try:
        return [float(arg) for arg in args] != []
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Source:
    """A source of rows: its columns, the text columns among them, and its rows."""

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    rows: Callable[[], Iterator[tuple[Fields, str]]]

    def records(self) -> Iterator[tuple[Record, Fields]]:
        """Each row as a record without values, together with all its fields. An empty text is an error."""
        from likewise.data.values import to_text
        from likewise.records import Record

        for fields, source in self.rows():
            texts = (
                to_text(fields.get(name), column=name, source=source, max_chars=_MAX_CHARS)
                for name in self.texts
            )
            yield Record(tuple(texts), source=source, subset=str(fields.get("subset") or "")), fields


@dataclass(frozen=True, slots=True)
class _Places:
    """Where to look for rows: the text columns that were named, and the folder of the corpora."""

    text_a: str | None
    text_b: str | None
    data_dir: Path | None

    def open(self, name: str, *, test: bool = False) -> _Source:
        """Open a file by its name, or a corpus by "corpus/split". A test file may have other text columns."""
        from likewise.data import open_table
        from likewise.data.columns import find_any_texts
        from likewise.data.reading import find_named_corpus

        named = find_named_corpus(name)
        if named is not None:
            return self._corpus(name, named[0])
        table = open_table(name)
        known = not test or bool({self.text_a, self.text_b} & set(table.columns))
        named_texts = (self.text_a, self.text_b) if known else (None, None)
        texts = find_any_texts(table.columns, *named_texts, source=table.name)
        return _Source(table.columns, texts, lambda: _rows(table))

    def _corpus(self, name: str, corpus: Corpus) -> _Source:
        from likewise.data import read

        texts = _text_names(len(corpus.texts))

        def rows() -> Iterator[tuple[Fields, str]]:
            for record in read(name, data_dir=self.data_dir):
                fields = dict(zip(texts, record.texts, strict=True))
                yield {**fields, **record.values, "subset": record.subset}, record.source

        return _Source((*texts, *(relation.name for relation in corpus.relations), "subset"), texts, rows)


def _rows(table: Table) -> Iterator[tuple[Fields, str]]:
    """The rows of a file. A file without rows is an error, since its report would look like that of a
    clean set.
    """
    from likewise.data.dialects import filled_rows
    from likewise.data.reading import no_rows

    empty = True
    for row in filled_rows(table):
        empty = False
        yield row
    if empty:
        raise DataError([no_rows(table)])


def _text_names(count: int) -> tuple[str, ...]:
    return ("text_a", "text_b") if count == 2 else ("text",)


def _evaluations(against: Sequence[str], places: _Places) -> dict[str, Iterator[Record]]:
    from likewise.evaluation.suites import SUITES, get_suite
    from likewise.evaluation.tasks import load_task

    found: dict[str, Iterator[Record]] = {}
    for name in against:
        if name in SUITES or name.endswith(".toml"):
            for task in get_suite(name).tasks:
                found[task.name] = iter(load_task(task, data_dir=places.data_dir))
        else:
            found[name] = (record for record, _ in places.open(name, test=True).records())
    return found


def _go_through(
    sources: Sequence[_Source],
    index: OverlapIndex,
    output: Path | None,
    *,
    strict: bool,
    safe: bool,
    replace: bool,
) -> int:
    """Show every training row to the index and write the rows that the filter keeps. Returns their number."""
    from likewise.data import TableWriter

    kept = 0
    with ExitStack() as stack:
        columns = _output_columns(sources)
        writer = TableWriter(output, columns, safe=safe, replace=replace) if output else None
        if writer is not None:
            stack.enter_context(writer)
        for source in sources:
            rename = _renamed(source, len(sources))
            for record, fields in source.records():
                if index.compare(record.texts, record.source).reason(strict=strict):
                    continue
                kept += 1
                if writer is not None:
                    writer.write_row({rename.get(column, column): cell for column, cell in fields.items()})
    return kept


def _output_columns(sources: Sequence[_Source]) -> list[str]:
    names = (
        (_renamed(source, len(sources)).get(name, name) for name in source.columns) for source in sources
    )
    return list(dict.fromkeys(name for columns in names for name in columns))


def _renamed(source: _Source, count: int) -> dict[str, str]:
    # One file keeps its columns; several become one table, whose text columns need common names.
    if count == 1:
        return {}
    return dict(zip(source.texts, _text_names(len(source.texts)), strict=True))
