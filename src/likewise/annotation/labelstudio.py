"""The exports of Label Studio: JSON, JSON-MIN and CSV; and any other table with one answer per row.

JSON       one task per object: `data` with the texts, `annotations` with one answer per annotator (before
           version 1.0 `completions`), each with a `result` per question
JSON-MIN   one answer per object: texts, questions, `annotator`, `annotation_id`, times
CSV        the same as a table; answers that are not plain texts are JSON in a cell: [{"rating": 4}]

Predictions are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from likewise.annotation.judgements import SEVERAL, Judgement, Tally, is_true, text_of, unpacked
from likewise.data.rows import Row
from likewise.errors import DataError, Problem

# The keys of a value in a result, one for each kind of question.
_KEYS = ("rating", "number", "choices", "taxonomy", "text", "selected")
# Columns that say who answered, compared without case; and columns of the tools that are no answers.
ANNOTATORS = (
    *("annotator", "annotator_id", "annotatorid", "annotator_name", "rater", "rater_id", "worker"),
    *("worker_id", "workerid", "completed_by", "user_id", "judge", "judge_id", "coder", "coder_id"),
)
_OWN = frozenset(
    {
        *("id", "annotation_id", "created_at", "updated_at", "lead_time", "was_cancelled", "agreement"),
        *("project", "subset", "language", "status", "inner_id", "sentiment_agreement"),
    }
)


class LabelStudioTasks:
    """One task per row, with all its annotations."""

    name = "Label Studio (JSON)"

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The task's data."""
        found = fields.get("data")
        return found if isinstance(found, dict) else {}

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The annotations of a task that were not cancelled."""
        annotations = _list(row.fields.get("annotations", row.fields.get("completions")))
        for one in annotations:
            if not isinstance(one, dict):
                found = "the annotations of this task are only numbers, but whole annotations are expected"
                problem = Problem(
                    row.source, found, "export the project again as JSON, not as a snapshot of ids"
                )
                raise DataError([problem])
            if is_true(one.get("was_cancelled")) or is_true(one.get("skipped")):
                tally.add("cancelled")
                continue
            when = text_of(one.get("updated_at")) or text_of(one.get("created_at"))
            values = _by_question(_list(one.get("result")))
            yield Judgement(annotator_of(one.get("completed_by")), values, when)
        if not annotations:
            tally.add("unrated")


class OneAnswerPerRow:
    """One answer per row; the column `who` names the annotator."""

    def __init__(self, who: str, *, minimal: bool) -> None:
        self.who = who
        self.name = "Label Studio (JSON-MIN or CSV)" if minimal else f"one answer per row, by {who}"

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """All columns."""
        return fields

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The answer in a row."""
        if is_true(row.fields.get("was_cancelled")):
            tally.add("cancelled")
            return
        when = text_of(row.fields.get("updated_at")) or text_of(row.fields.get("created_at"))
        values = {
            column: plain_value(unpacked(cell))
            for column, cell in row.fields.items()
            if column != self.who and column.casefold() not in _OWN
        }
        yield Judgement(annotator_of(unpacked(row.fields.get(self.who))), values, when)


def find_annotator_column(columns: Sequence[str]) -> str | None:
    """The column that names annotators, or None."""
    by_name = {column.casefold(): column for column in reversed(columns)}
    return next((by_name[name] for name in ANNOTATORS if name in by_name), None)


def annotator_of(said: object) -> str:
    """The name of an annotator: a number, a name, or an object with an id or an e-mail address."""
    if isinstance(said, dict):
        keys = ("id", "username", "email")
        return next((name for key in keys if (name := text_of(said.get(key)))), "unknown")
    return text_of(said) or "unknown"


def plain_value(said: object) -> Any:
    """The number or label in an answer as Label Studio writes it, SEVERAL, or None if there is neither."""
    if isinstance(said, list):
        if len(said) == 1:
            return plain_value(said[0])
        return SEVERAL if said else None
    if isinstance(said, dict):
        key = next((key for key in _KEYS if said.get(key) is not None), None)
        return None if key is None else plain_value(said[key])
    return said


def _by_question(results: Sequence[Any]) -> dict[str, Any]:
    """The values of an annotation by question. A question that is answered twice has several values."""
    values: dict[str, Any] = {}
    for result in results:
        question = text_of(result.get("from_name")) if isinstance(result, dict) else ""
        if question:
            values[question] = SEVERAL if question in values else plain_value(result.get("value"))
    return values


def _list(cell: object) -> list[Any]:
    found = unpacked(cell)
    return found if isinstance(found, list) else []
