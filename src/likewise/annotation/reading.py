"""Read an export: find out its form and its texts, and collect the answers of all annotators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.annotation.argilla import (
    ArgillaClassification,
    ArgillaColumns,
    ArgillaRecords,
    find_questions,
)
from likewise.annotation.judgements import ExportForm, Judgement, Tally, text_of, unpacked
from likewise.annotation.labelstudio import LabelStudioTasks, OneAnswerPerRow, find_annotator_column
from likewise.annotation.wide import Groups, OneColumnPerAnnotator, find_groups
from likewise.data.columns import find_any_texts
from likewise.data.compression import STREAM_ERRORS, cut_short, open_bytes, split_endings
from likewise.data.formats import check_columns
from likewise.data.reading import no_rows
from likewise.data.rows import MAX_COLUMNS, Fail, Row, Table, Unquoted
from likewise.data.tables import open_table
from likewise.data.values import MAX_CHARS, to_text
from likewise.errors import DataError, FormatError, Problem
from likewise.files import is_there
from likewise.spelling import spelt
from likewise.wording import clipped, listed

# A JSON array is parsed as a whole; larger exports come as JSON lines, CSV or parquet.
MAX_JSON = 512 * 2**20
# Columns of an export that are kept beside texts and ratings.
KEPT = ("id", "subset", "language")


@dataclass(frozen=True, slots=True)
class Judged:
    """The answers to one pair in one task, with the task's own place."""

    texts: tuple[str, ...]
    answers: tuple[Judgement, ...]
    source: str
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Export:
    """An export as it was read. `columns` are the names of its text columns, and `groups` those of the
    columns of annotators, if there are any.
    """

    name: str
    form: str
    columns: tuple[str, ...]
    tasks: tuple[Judged, ...]
    tally: Tally
    groups: Groups = field(default_factory=dict)


def read_export(
    source: object,
    *,
    relations: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    annotators: Sequence[str] = (),
) -> Export:
    """Read an export of Label Studio or Argilla, or a table with one column or one row per annotator.

    `relations` are the names of the declared relations and `annotators` the columns of annotators; both help
    to find the columns of a plain table.
    """
    json_file = _json_file(source)
    table = open_table(source) if json_file is None else _json_table(json_file)
    rows = iter(table)
    first = next(rows, None)
    if first is None:
        raise DataError([no_rows(table)])
    layout = _find_layout(table, first, relations, annotators, (text_a, text_b))
    names = find_any_texts(list(layout.data(first.fields)), text_a, text_b, source=first.source)
    tally = Tally()
    tasks = []
    for row in _chain(first, rows):
        data = layout.data(row.fields)
        texts = tuple(
            to_text(data.get(name), column=name, source=row.source, max_chars=MAX_CHARS) for name in names
        )
        kept = {name: data.get(name, row.fields.get(name)) for name in KEPT}
        answers = tuple(layout.answers(row, tally))
        tasks.append(
            Judged(texts, answers, row.source, {k: text_of(v) for k, v in kept.items() if text_of(v)})
        )
    groups = layout.groups if isinstance(layout, OneColumnPerAnnotator) else {}
    return Export(table.name, layout.name, names, tuple(tasks), tally, groups)


def _find_layout(
    table: Table,
    first: Row,
    relations: Sequence[str],
    annotators: Sequence[str],
    texts: tuple[str | None, str | None],
) -> ExportForm:
    """The form of an export by its first row and its columns."""
    fields = first.fields
    if annotators:
        return _wide(table, first, relations, annotators, texts)
    if isinstance(unpacked(fields.get("data")), dict) and (
        "annotations" in fields or "completions" in fields
    ):
        return LabelStudioTasks()
    if isinstance(unpacked(fields.get("fields")), dict) and "responses" in fields:
        return ArgillaRecords()
    if {"annotation", "annotation_agent"} <= fields.keys():
        return ArgillaClassification()
    questions, listed_ = find_questions(fields)
    if not questions and listed_:
        # The answers of the first record may be missing; the names of the other columns tell.
        questions = tuple(name.removesuffix("-suggestion") for name in fields if name.endswith("-suggestion"))
    if questions:
        return ArgillaColumns(questions, listed=listed_)
    who = find_annotator_column(table.columns)
    if who is not None:
        return OneAnswerPerRow(who, minimal="annotation_id" in fields)
    return _wide(table, first, relations, annotators, texts)


def _wide(
    table: Table,
    first: Row,
    relations: Sequence[str],
    annotators: Sequence[str],
    texts: tuple[str | None, str | None],
) -> ExportForm:
    names = find_any_texts(table.columns, *texts, source=table.name)
    others = [column for column in table.columns if column not in names]
    groups = find_groups(others, relations, annotators, source=table.name)
    if not groups:
        found = "this is no export of Label Studio or Argilla, and no columns of annotators were found. "
        found += f"The columns are {listed(table.columns)}"
        remedy = f"name the columns of the annotators: {spelt('annotators', ['NAME', 'NAME'])}"
        raise DataError([Problem(table.name, found, remedy)])
    return OneColumnPerAnnotator(groups)


def _chain(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _json_file(source: object) -> Path | None:
    """The path of a JSON file that exists, or None if the source is another kind of table."""
    if not isinstance(source, str | Path) or split_endings(Path(source))[0] != ".json":
        return None
    return Path(source) if is_there(source) else None


def _json_table(path: Path) -> Table:
    """A JSON file as a table: an array of objects, an object of objects, or an object of columns."""
    text = _read_text(path)
    start = len(text) - len(text.lstrip())
    rows = list(
        _array(text, start, path.name) if text[start : start + 1] == "[" else _object(text, path.name)
    )
    columns = check_columns(list(dict.fromkeys(name for row in rows for name in row.fields)), path.name)

    def scan(fail: Fail) -> Iterator[Row]:
        yield from rows

    return Table(path.name, columns, scan, size=len(rows))


def _read_text(path: Path) -> str:
    with open_bytes(path) as stream:
        try:
            content = stream.read(MAX_JSON + 1)
        except STREAM_ERRORS as error:
            raise FormatError([cut_short(path.name, error)]) from None
    if len(content) > MAX_JSON:
        found = f"this has more than {MAX_JSON // 2**20} MB, but a JSON file is read as a whole"
        raise FormatError([Problem(path.name, found, "export it as JSON lines, CSV or parquet")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte 0x{content[error.start]:02x} at offset {error.start} is not UTF-8"
        raise FormatError([Problem(path.name, found, "save it as UTF-8")]) from None


def _array(text: str, start: int, name: str) -> Iterator[Row]:
    """The objects of an array, each with the line on which it starts."""
    decoder = json.JSONDecoder(parse_constant=Unquoted)
    place, line, counted_to = _skip(text, start + 1), 1, 0
    while text[place : place + 1] != "]":
        line += text.count("\n", counted_to, place)
        counted_to = place
        source = f"{name}:{line}"
        try:
            fields, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise FormatError([_not_json(source, error)]) from None
        if not isinstance(fields, dict):
            found = f"this is a JSON {type(fields).__name__}, but an object is expected"
            raise FormatError([Problem(source, found, "export one object per task")])
        yield Row(fields, source)
        place = _skip(text, end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != "]":
            raise FormatError([_not_json(source, ValueError("a comma or ] is expected after this object"))])


def _skip(text: str, place: int) -> int:
    """The place of the next character that is not white space."""
    while text[place : place + 1].isspace():
        place += 1
    return place


def _object(text: str, name: str) -> Iterator[Row]:
    """The rows of an object: of columns ("a": [1, 2]), or of rows by their ids ("17": {…})."""
    try:
        found = json.loads(text, parse_constant=Unquoted)
    except (ValueError, RecursionError) as error:
        raise FormatError([_not_json(name, error)]) from None
    values = list(found.values()) if isinstance(found, dict) else []
    if values and all(isinstance(value, list) for value in values):
        if len(values) > MAX_COLUMNS or len({len(value) for value in values}) != 1:
            raise FormatError(
                [Problem(name, "its columns have different lengths", "export the records again")]
            )
        for number, cells in enumerate(zip(*values, strict=True), 1):
            yield Row(dict(zip(found, cells, strict=True)), f"{name}:record {number}")
    elif values and all(isinstance(value, dict) for value in values):
        for key, fields in found.items():
            yield Row(fields, f"{name}:record {clipped(key, most=40)}")
    else:
        said = "this JSON is neither a list of tasks nor an object of records or columns"
        raise FormatError([Problem(name, said, "export the project or the records again as JSON")])


def _not_json(source: str, error: Exception) -> Problem:
    found = f"this is not valid JSON ({clipped(str(error))})"
    return Problem(source, found, "export it again, or check whether the file is complete")
