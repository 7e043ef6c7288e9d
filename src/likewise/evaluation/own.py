"""A suite over a table of your own: one task for each relation that its columns rate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from likewise.data import load_records
from likewise.data.own import OwnTable, open_own_table
from likewise.errors import DataError, Problem, UsageError
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.files import is_there
from likewise.records import Record, Relation
from likewise.spelling import spelt
from likewise.wording import listed


def table_suite(
    source: object,
    *,
    relations: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    data_dir: str | Path | None = None,
) -> tuple[Suite, OwnTable]:
    """The suite over a file, a frame, a list or a corpus, and what was found out about the table.

    `relations` declare the columns to measure, such as `similarity:0..5`; without any, they are guessed.
    """
    named = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if named == "-":
        raise UsageError("standard input can be read only once. Save it to a file, and name that file.")
    table = open_own_table(
        source if named is None else named,
        name=named or "table",
        declared=relations,
        text_a=text_a,
        text_b=text_b,
        data_dir=data_dir,
    )
    if not table.relations:
        numbers, labels = spelt("relations", "NAME:lo..hi"), spelt("relations", "NAME:classes")
        found = f"no column holds ratings or labels. The columns are {listed(table.columns)}"
        raise DataError(
            [Problem(table.name, found, f"name a column with {numbers}, or {labels} if it holds labels")]
        )
    records = load_records(
        table.source,
        relations=table.relations,
        text_a=text_a,
        text_b=text_b,
        pairs=len(table.texts) == 2,
        data_dir=data_dir,
    )
    file = Path(named) if named is not None and is_there(named) else None
    tasks = [_task(relation, tuple(records), file, len(table.texts)) for relation in table.relations]
    return Suite(named or "table", tuple(tasks)), table


def _task(relation: Relation, records: tuple[Record, ...], file: Path | None, texts: int) -> Task:
    return Task(relation.name, relation=relation, file=file, records=records, texts=texts)
