"""Tables with one column per annotator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from likewise.annotation.judgements import Judgement, Tally
from likewise.data.columns import missing_column
from likewise.data.ratings import ANNOTATOR_MARK, COUNT_NAME
from likewise.data.rows import Row
from likewise.data.values import is_missing
from likewise.errors import DataError, Problem, UsageError
from likewise.spelling import spelt
from likewise.wording import listed

# Words that say who rates and not what is rated.
_PEOPLE = ("annotator", "rater", "coder", "judge", "worker", "expert", "labeler", "labeller", "user", "ann")
_MARKS = "@._:- "
_NUMBERED = re.compile(r"(.*?)[@._:\- ]?(\d+)")
# What a relation is called if no column says it.
UNNAMED = "rating"

# By relation: the annotators and their columns.
Groups = Mapping[str, Mapping[str, str]]


class OneColumnPerAnnotator:
    """A table with the ratings of each annotator in a column."""

    name = "one column per annotator"

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """All columns."""
        return fields

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The ratings in a row."""
        rated = False
        for relation, columns in self.groups.items():
            for annotator, column in columns.items():
                cell = row.fields.get(column)
                if not is_missing(cell):
                    rated = True
                    yield Judgement(annotator, {relation: cell})
        if not rated:
            tally.add("unrated")


def find_groups(
    columns: Sequence[str], relations: Sequence[str], annotators: Sequence[str], *, source: str
) -> Groups:
    """The columns of each annotator by relation; {} if no columns look so.

    `columns` are those without texts. With `annotators`, these are their columns; with several `relations`,
    each column also names its relation: similarity_anna, topic_anna. Without them, the columns are found by
    the relation's name in front (similarity_anna, similarity@anna, similarity1), or by a common word with a
    number (rater1, rater2).
    """
    if annotators:
        return _named(columns, relations, annotators, source)
    if relations:
        found = {name: _beginning_with(name, columns, relations) for name in relations}
        complete = {name: group for name, group in found.items() if group}
        if complete:
            return complete
    return _numbered_columns(columns, relations)


def _named(
    columns: Sequence[str], relations: Sequence[str], annotators: Sequence[str], source: str
) -> dict[str, dict[str, str]]:
    if len(set(annotators)) != len(annotators):
        raise UsageError(f"an annotator is named twice. Name each column once with {spelt('annotators')}.")
    if len(relations) < 2:
        remedy = f"name an existing column with {spelt('annotators', 'NAME')}"
        absent = [missing_column(name, columns, source, remedy) for name in annotators if name not in columns]
        if absent:
            raise DataError(absent)
        return {relations[0] if relations else UNNAMED: {name: name for name in annotators}}
    groups: dict[str, dict[str, str]] = {}
    for relation in relations:
        for name in annotators:
            ways = [f"{a}{mark}{b}" for a, b in ((relation, name), (name, relation)) for mark in _MARKS]
            column = next((way for way in ways if way in columns), None)
            if column is not None:
                groups.setdefault(relation, {})[name] = column
    lacking = [relation for relation in relations if relation not in groups]
    if lacking:
        found = (
            f"no column holds {listed(lacking)} by {listed(annotators)}. The columns are {listed(columns)}"
        )
        remedy = f"name each column by relation and annotator, such as {lacking[0]}_{annotators[0]}"
        raise DataError([Problem(source, found, remedy)])
    return groups


def _beginning_with(name: str, columns: Sequence[str], relations: Sequence[str]) -> dict[str, str]:
    """Columns such as similarity_anna by "anna". A column of our own counts of raters is none."""
    found = {}
    for column in columns:
        rest = column.removeprefix(name)
        longer = any(
            len(other) > len(name) and column.startswith(other) for other in relations
        )  # topic_fit_anna belongs to topic_fit, not to topic
        if rest == column or not rest or longer or column in relations:
            continue
        annotator = rest[1:] if rest[0] in _MARKS else rest if rest.isdigit() else ""
        if annotator and not (rest[0] == ANNOTATOR_MARK and annotator == COUNT_NAME):
            found[annotator] = column
    return found


def _numbered_columns(columns: Sequence[str], relations: Sequence[str]) -> dict[str, dict[str, str]]:
    marked: dict[str, dict[str, str]] = {}
    numbered: dict[str, dict[str, str]] = {}
    for column in columns:
        stem, mark, annotator = column.rpartition(ANNOTATOR_MARK)
        if mark and stem in columns:
            if annotator != COUNT_NAME:
                marked.setdefault(stem, {})[annotator] = column
        elif (found := _NUMBERED.fullmatch(column)) and found[1]:
            numbered.setdefault(found[1], {})[column] = column
        else:
            word = next(
                (w for w in _PEOPLE if column.casefold().startswith(tuple(w + m for m in _MARKS))), None
            )
            if word is not None:
                numbered.setdefault(word, {})[column] = column
    if marked:
        return marked
    several = {stem: group for stem, group in numbered.items() if len(group) > 1}
    if len(relations) == 1 and len(several) == 1:
        return {relations[0]: next(iter(several.values()))}
    if relations:
        return {}
    people = {stem: group for stem, group in several.items() if stem.casefold() in _PEOPLE}
    return {UNNAMED if stem in people else stem: group for stem, group in (people or several).items()}
