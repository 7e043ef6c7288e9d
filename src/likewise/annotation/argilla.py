"""The exports of Argilla, versions 1 and 2, as JSON, JSON lines, parquet or a folder of `datasets`.

    to_json, to_dict (2)      `fields`, and `responses`: a list of answers for each question
    to_datasets, flatten (2)  columns QUESTION.responses, QUESTION.responses.users, QUESTION.responses.status
    FeedbackDataset (1)       `fields`, and `responses`: a list with one entry per annotator
    format_as (1)             a column per question: a list of answers, or lists of users and values
    text classification (1)   `annotation` and `annotation_agent`

Only submitted responses are ratings. Suggestions are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from likewise.annotation.judgements import SEVERAL, Judgement, Tally, text_of, unpacked
from likewise.data.rows import Row

_RESPONSES, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_LEFT_OUT = {"discarded": "cancelled", "draft": "draft", "pending": "draft"}


class ArgillaRecords:
    """Records with `fields` and `responses`."""

    name = "Argilla (records)"

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a record."""
        found = unpacked(fields.get("fields"))
        return found if isinstance(found, dict) else {}

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The submitted responses of a record."""
        responses = unpacked(row.fields.get("responses"))
        found = list(_by_user(responses) if isinstance(responses, list) else _by_question(responses))
        yield from _submitted(found, tally)


class ArgillaColumns:
    """Records as a flat table. `questions` are the questions that have columns."""

    name = "Argilla (table)"

    def __init__(self, questions: tuple[str, ...], *, listed: bool) -> None:
        self._questions, self._listed = questions, listed

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """All columns."""
        return fields

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The submitted responses of a record."""
        found: list[tuple[str, str, dict[str, Any]]] = []
        for question in self._questions:
            if self._listed:
                found += _by_question({question: unpacked(row.fields.get(question))})
                continue
            values, users, states = (
                unpacked(row.fields.get(question + end)) for end in (_RESPONSES, _USERS, _STATUS)
            )
            found += _by_question({question: {"value": values, "user_id": users, "status": states}})
        yield from _submitted(found, tally)


class ArgillaClassification:
    """Records of text classification in version 1: one annotator, one label."""

    name = "Argilla (text classification)"

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The inputs of a record."""
        found = unpacked(fields.get("inputs"))
        return found if isinstance(found, dict) else fields

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The annotation of a record."""
        said = row.fields.get("annotation")
        found = []
        if said is not None:
            agent = text_of(row.fields.get("annotation_agent"))
            status = "discarded" if text_of(row.fields.get("status")).casefold() == "discarded" else ""
            found = [(agent, status, {"annotation": _value(said)})]
        yield from _submitted(found, tally)


def find_questions(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The questions of a flat table, and whether each is one column of listed answers (version 1)."""
    flat = tuple(name.removesuffix(_RESPONSES) for name in fields if name.endswith(_RESPONSES))
    if flat:
        return flat, False
    return tuple(name for name, cell in fields.items() if _is_listed(unpacked(cell))), True


def _is_listed(cell: object) -> bool:
    if isinstance(cell, list):
        return bool(cell) and all(isinstance(one, dict) and "user_id" in one for one in cell)
    return isinstance(cell, dict) and {"user_id", "value"} <= cell.keys()


Response = tuple[str, str, dict[str, Any]]


def _by_user(responses: list[Any]) -> Iterator[Response]:
    """The responses of version 1: an entry per annotator with values by question."""
    for one in responses:
        values = one.get("values") if isinstance(one, dict) else None
        if isinstance(values, dict):
            said = {text_of(name): _value(value) for name, value in values.items()}
            yield text_of(one.get("user_id")), text_of(one.get("status")), said


def _by_question(responses: object) -> Iterator[Response]:
    """The responses of version 2: a list per question, of answers or as lists of users and values."""
    for question, listed in responses.items() if isinstance(responses, dict) else ():
        for one in _entries(listed):
            said = {text_of(question): _value(one.get("value"))}
            yield text_of(one.get("user_id")), text_of(one.get("status")), said


def _entries(listed: object) -> list[dict[str, Any]]:
    if isinstance(listed, dict):
        values = listed.get("value")
        if not isinstance(values, list):
            return [] if values is None else [listed]
        columns = {key: listed.get(key) for key in ("user_id", "status")}
        return [
            {"value": value, **{key: _at(column, place) for key, column in columns.items()}}
            for place, value in enumerate(values)
        ]
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _at(column: object, place: int) -> object:
    if isinstance(column, list):
        return column[place] if place < len(column) else None
    return column


def _value(said: object) -> Any:
    """The number or label in a response; SEVERAL for a multi-label question with more than one."""
    if isinstance(said, dict):
        return _value(said.get("value"))
    if isinstance(said, list):
        return _value(said[0]) if len(said) == 1 else SEVERAL if said else None
    return said


def _submitted(responses: list[Response], tally: Tally) -> Iterator[Judgement]:
    for user, status, values in responses:
        kind = _LEFT_OUT.get(status.casefold().rpartition(".")[2])
        if kind is not None:
            tally.add(kind)
        else:
            yield Judgement(user or "unknown", values)
    if not responses:
        tally.add("unrated")
