"""Check a source for all its problems at once. A source without problems here is accepted by `read`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from likewise.data.columns import missing_column
from likewise.data.corpora import verify
from likewise.data.dialects import filled_rows
from likewise.data.findings import CheckReport, Summary
from likewise.data.parallel.checking import check_parallel
from likewise.data.paraphrases import check_paraphrases
from likewise.data.reading import Opened, find_named_corpus, no_rows, open_source
from likewise.data.repeats import Repeat, Repeats
from likewise.data.rows import Row, Table, ignore
from likewise.data.values import MAX_CHARS, find_fault, is_written_nan, to_value
from likewise.errors import DataError, Problem, ValueRangeError
from likewise.records import Relation, Value
from likewise.spelling import spelt

_LONGEST = 10_000_000


def check(
    source: object,
    *,
    relations: Sequence[Relation | str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    max_chars: int = MAX_CHARS,
    strict: bool = False,
    shown: int = 10,
    pairs: bool | None = None,
) -> CheckReport:
    """Go through a source and collect every problem and warning, the first `shown` of each kind in words.

    Relations that are not declared are inferred, and so is whether a row holds two texts or one
    (`pairs=None`). `strict` counts conflicting ratings as problems. For a corpus of translations or
    paraphrases the report says which pairs are dropped on reading.
    """
    report = CheckReport(str(source) if isinstance(source, str | Path) else "rows", strict, shown)
    named = find_named_corpus(source, split)
    if named is not None and named[0].kind != "rated":
        if relations or text_a or text_b:
            named[0].require("rated")
        check_split = check_parallel if named[0].kind == "translations" else check_paraphrases
        return check_split(report, *named, data_dir=data_dir, max_chars=max_chars)
    try:
        opened = open_source(source, split=split, data_dir=data_dir, fail=ignore)
    except DataError as error:
        return _stop(report, "unreadable", error)
    report.name = opened.table.name
    if opened.corpus is not None and opened.split is not None:
        for problem in verify(opened.corpus, opened.split, data_dir):
            report.add("other version", problem)
    try:
        report.texts = opened.find_texts(text_a, text_b, pairs=pairs)
        report.relations = [
            Summary(relation, inferred=not relations and opened.corpus is None)
            for relation in _find_relations(opened, report, relations)
        ]
    except DataError as error:
        return _stop(report, "missing column", error)
    repeats = Repeats([summary.relation for summary in report.relations])
    try:
        for row in filled_rows(opened.table, lambda problem: report.add("malformed row", problem)):
            _check_row(row, report, repeats, max_chars)
    except DataError as error:
        _stop(report, "unreadable", error)
    if report.rows == 0 and not report.counts:
        report.add("no rows", no_rows(opened.table))
    _add_repeats(report, repeats)
    return report


def _stop(report: CheckReport, kind: str, error: DataError) -> CheckReport:
    for problem in error.problems:
        report.add(kind, problem)
    return report


def _find_relations(opened: Opened, report: CheckReport, wanted: Sequence[Relation | str]) -> list[Relation]:
    table = opened.table
    declared = [relation for relation in wanted if isinstance(relation, str)]
    names = [r.partition(":")[0] if isinstance(r, str) else r.name for r in wanted]
    for name in names:
        if name not in table.columns:
            remedy = f"name an existing column: {spelt('relations', 'NAME:lo..hi')}"
            report.add("missing column", missing_column(name, table.columns, table.name, remedy))
    ready = [r for r in wanted if isinstance(r, Relation) and r.name in table.columns]
    present = [text for text in declared if text.partition(":")[0] in table.columns]
    if wanted and not present:
        return ready
    return ready + opened.find_relations(report.texts, present, _readable(table))


def _readable(table: Table) -> Iterator[Row]:
    """The rows up to the place where the file breaks off. That problem is reported when the rows are
    checked.
    """
    try:
        yield from table.scan(ignore)
    except DataError:
        return


def _check_row(row: Row, report: CheckReport, repeats: Repeats, max_chars: int) -> None:
    fields, source = row
    report.rows += 1
    faulty = False
    for column in report.texts:
        cell = fields.get(column)
        fault = find_fault(cell, column=column, source=source, max_chars=max_chars)
        if isinstance(cell, str):
            report.lengths[min(len(cell), _LONGEST)] += 1
        if fault is not None:
            report.add(fault.kind, fault.problem)
            faulty = True
    values = [_check_value(summary, row, report) for summary in report.relations]
    if faulty:
        return
    texts = tuple(str(fields[column]) for column in report.texts)
    cells = [fields.get(summary.relation.name) for summary in report.relations]
    same = repeats.add(texts, cells, values, int(source.rpartition(":")[2]))
    if same and len(texts) == 2:
        _check_identical(values, source, report)


def _check_value(summary: Summary, row: Row, report: CheckReport) -> Value | None:
    relation = summary.relation
    cell = row.fields.get(relation.name)
    try:
        value = to_value(relation, cell, row.source)
    except ValueRangeError as error:
        kind = "out of range" if relation.kind == "graded" else "unknown label"
        report.add(kind, error.problems[0])
        return None
    except DataError as error:
        report.add("NaN" if is_written_nan(cell) else "not a number", error.problems[0])
        return None
    summary.add(value)
    return value


def _check_identical(values: Sequence[Value | None], source: str, report: CheckReport) -> None:
    low = [
        f"{summary.relation.name} {value:g}"
        for summary, value in zip(report.relations, values, strict=True)
        if isinstance(value, float) and value < (summary.relation.lo + summary.relation.hi) / 2
    ]
    if low:
        found = f"the two texts are the same but have a low rating ({', '.join(low)})"
        report.add("same text rated low", Problem(source, found, "check the rating"))


def _add_repeats(report: CheckReport, repeats: Repeats) -> None:
    for repeat in repeats.duplicates():
        found = f"this row repeats line {repeat.first_line}"
        remedy = "remove it, unless it is a second rating"
        report.add("duplicate row", Problem(f"{report.name}:{repeat.line}", found, remedy))
    for repeat in repeats.conflicts():
        report.add("conflicting ratings", _conflict(report, repeat))


def _conflict(report: CheckReport, repeat: Repeat) -> Problem:
    name = repeat.relation.name if repeat.relation is not None else ""
    now, before = (f"{v:g}" if isinstance(v, float) else str(v) for v in (repeat.now, repeat.before))
    found = f"{name} is {now} here, but {before} for the same pair on line {repeat.first_line}"
    return Problem(f"{report.name}:{repeat.line}", found, "keep one of the two ratings, or their mean")
