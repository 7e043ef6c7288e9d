"""From answers to ratings: one row per pair, with the rating of each annotator and one for all of them.

graded     the mean of the annotators, rounded to six digits
ordered    the median label, the lower one of two
classes    the label that most annotators chose; a tie is left empty, or goes to the label that is declared
           first (`ties="first"`)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median_low, pvariance
from typing import Any, Literal

from likewise.annotation.judgements import SEVERAL, Tally
from likewise.annotation.reading import Export, Judged
from likewise.data.ratings import (
    ANNOTATOR_MARK,
    COUNT_NAME,
    Profile,
    find_range,
    most_labels,
    relations_of,
)
from likewise.data.values import is_missing, to_label, to_value
from likewise.errors import DataError, Problem, UsageError
from likewise.evaluation.agreement import ItemRating
from likewise.records import MAX_NAME, Relation, Value
from likewise.spelling import spelt
from likewise.wording import listed, quoted

Ties = Literal["empty", "first"]
# A table may have so many columns of annotators in all; beyond, they come as rows.
MAX_ANNOTATORS = 1000
_MOST_PROBLEMS = 20
_FEWEST_LABELS = 2
_MOST_GUESSED = 20
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SHORT = 8


@dataclass(slots=True)
class RatedPair:
    """One pair with the rating of each annotator, by relation."""

    texts: tuple[str, ...]
    kept: Mapping[str, Any]
    ratings: dict[str, dict[str, Value]] = field(default_factory=dict)
    when: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rated:
    """All pairs of an export that have a rating, and the relations that were rated."""

    relations: tuple[Relation, ...]
    annotators: tuple[str, ...]
    pairs: tuple[RatedPair, ...]
    guesses: tuple[str, ...]

    def ratings(self, relation: Relation) -> Iterator[ItemRating]:
        """The ratings of a relation, as `measure_agreement` takes them."""
        place = {label: number for number, label in enumerate(relation.labels)}
        for number, pair in enumerate(self.pairs):
            for annotator, value in pair.ratings.get(relation.name, {}).items():
                yield number, annotator, place[value] if isinstance(value, str) else value

    def raters(self, relation: Relation) -> tuple[str, ...]:
        """The annotators who rated a relation."""
        seen = {name for pair in self.pairs for name in pair.ratings.get(relation.name, ())}
        return tuple(name for name in self.annotators if name in seen)


def merge(export: Export, declared: Sequence[str] = (), *, pseudonyms: bool = False) -> Rated:
    """Join the answers of an export by pair. What is left out is added to the export's tally.

    `declared` are relations such as "similarity:0..5". Without it, every question whose answers are numbers
    or a few labels becomes a relation.
    """
    names = _names(export, pseudonyms)
    relations, guesses = _relations(export, declared)
    found: dict[tuple[str, ...], RatedPair] = {}
    problems: list[Problem] = []
    for task in export.tasks:
        pair = found.get(task.texts)
        if pair is None:
            pair = found[task.texts] = RatedPair(task.texts, task.kept)
        else:
            export.tally.add("merged")
        problems += _add(pair, task, relations, names, export.tally)
    if problems:
        raise DataError(problems[:_MOST_PROBLEMS])
    rated = tuple(pair for pair in found.values() if any(pair.ratings.values()))
    export.tally.add("unused", len({task.texts for task in export.tasks if task.answers}) - len(rated))
    if not rated:
        said = f"no pair has a rating of {listed(relation.name for relation in relations)}"
        raise DataError([Problem(export.name, said, "export a project with submitted answers")])
    seen = {name for pair in rated for ratings in pair.ratings.values() for name in ratings}
    return Rated(tuple(relations), tuple(n for n in names.values() if n in seen), rated, tuple(guesses))


def rating_of(relation: Relation, ratings: Mapping[str, Value], *, ties: Ties = "empty") -> Value | None:
    """The one rating of all annotators. None without ratings, or at a tie that is left empty."""
    if not ratings:
        return None
    if relation.kind == "graded":
        return round(fmean(float(value) for value in ratings.values()), 6)
    place = {label: number for number, label in enumerate(relation.labels)}
    if relation.kind == "ordered":
        return relation.labels[median_low(place[str(value)] for value in ratings.values())]
    top = most_chosen(ratings)
    if len(top) > 1 and ties == "empty":
        return None
    return min(top, key=lambda label: place[label])


def most_chosen(ratings: Mapping[str, Value]) -> list[str]:
    """The labels that most annotators chose: one, or several at a tie."""
    counts = Counter(str(value) for value in ratings.values())
    most = max(counts.values())
    return [label for label, count in counts.items() if count == most]


def most_disputed(rated: Rated, relation: Relation, *, most: int) -> tuple[RatedPair, ...]:
    """The pairs on which annotators differ most: by the variance of numbers and of places of ordered labels,
    and by the share of annotators who did not choose the most frequent label. Pairs on which all agree are
    left out.
    """
    place = {label: float(number) for number, label in enumerate(relation.labels)}

    def spread(pair: RatedPair) -> float:
        said = list(pair.ratings.get(relation.name, {}).values())
        if len(said) < 2:
            return 0.0
        if relation.kind == "classes":
            return 1 - Counter(said).most_common(1)[0][1] / len(said)
        return pvariance([place[value] if isinstance(value, str) else value for value in said])

    found = sorted(rated.pairs, key=spread, reverse=True)[:most]
    return tuple(pair for pair in found if spread(pair) > 0)


def annotator_columns(relation: Relation, names: Sequence[str]) -> dict[str, str]:
    """The column of each annotator, such as similarity@anna. An annotator called "raters" gets a 2."""
    taken = {COUNT_NAME}
    columns = {}
    for name in names:
        made, number = name, 1
        while made in taken:
            number += 1
            made = f"{name}{number}"
        taken.add(made)
        columns[name] = f"{relation.name}{ANNOTATOR_MARK}{made}"
    return columns


def count_column(relation: Relation) -> str:
    """The column that holds how many annotators rated a pair."""
    return f"{relation.name}{ANNOTATOR_MARK}{COUNT_NAME}"


def _names(export: Export, pseudonyms: bool) -> dict[str, str]:
    """A name for each annotator: its own, the first digits of a UUID, or r1, r2, … as a pseudonym."""
    own = sorted({answer.annotator for task in export.tasks for answer in task.answers}, key=_by_number)
    if len(own) > MAX_ANNOTATORS:
        found = f"{len(own):,} annotators were found, but at most {MAX_ANNOTATORS:,} get a column each"
        raise DataError([Problem(export.name, found, "check which column names the annotators")])
    if pseudonyms:
        return {name: f"r{number}" for number, name in enumerate(own, 1)}
    short = {name: name[:_SHORT] if _UUID.fullmatch(name) else " ".join(name.split()) for name in own}
    short = {name: made[: MAX_NAME // 2].replace(ANNOTATOR_MARK, "_at_") for name, made in short.items()}
    unique = len(set(short.values())) == len(short)
    return short if unique else {name: f"r{number}" for number, name in enumerate(own, 1)}


def _by_number(name: str) -> tuple[int, str]:
    return (
        (int(name), name) if name.isascii() and name.isdigit() and len(name) < _SHORT * 2 else (10**16, name)
    )


def _relations(export: Export, declared: Sequence[str]) -> tuple[list[Relation], list[str]]:
    """The declared relations, or those that the answers suggest, with a sentence about each guess."""
    profiles = _profiles(export, declared)
    names = [text.partition(":")[0] for text in declared]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(f"relation {listed(map(repr, twice))} is declared twice. Keep one of them.")
    remedy = f"name a question of the export: {spelt('relations', 'NAME:lo..hi')}"
    questions = listed(profiles) or "none"
    absent = [
        Problem(
            export.name, f"no answer is to a question {quoted(name)}. The questions are {questions}", remedy
        )
        for name in names
        if name not in profiles
    ]
    if absent:
        raise DataError(absent)
    if declared:
        return relations_of({n: profiles[n] for n in names}, declared, source=export.name), []
    relations, guesses = [], []
    for name, profile in profiles.items():
        relation = _guess(name, profile)
        if relation is not None:
            relations.append(relation)
            guesses.append(f"question {name!r} is read as {relation.scale}")
        elif profile.present:
            guesses.append(f"question {name!r} is not used: its answers are neither numbers nor a few labels")
    if not relations:
        questions = listed(profiles) or "none"
        found = f"no question has numbers or a few labels as answers. The questions are {questions}"
        remedy = f"declare what was rated: {spelt('relations', 'NAME:lo..hi')}"
        raise DataError([Problem(export.name, found, remedy)])
    return relations, guesses


def _guess(name: str, profile: Profile) -> Relation | None:
    """Numbers make a graded relation, and a few labels one of classes."""
    if profile.numbers and profile.numbers == profile.present:
        return Relation.graded(name, *find_range(profile.lo, profile.hi))
    few = _FEWEST_LABELS <= len(profile.labels) <= min(_MOST_GUESSED, profile.present // 2 + 1)
    return Relation.classes(name, sorted(profile.labels)) if few else None


def _profiles(export: Export, declared: Sequence[str]) -> dict[str, Profile]:
    """What was answered to each question, in the order of the questions."""
    profiles: dict[str, Profile] = {}
    texts = set(export.columns)
    for task in export.tasks:
        for answer in task.answers:
            for question, value in answer.values.items():
                if question not in texts:
                    profile = profiles.setdefault(question, Profile(most=most_labels(declared)))
                    if isinstance(value, str | int | float):
                        # JSON's true is a label, and 1 in Python.
                        profile.add(to_label(value) if isinstance(value, bool) else value)
    return profiles


def _add(
    pair: RatedPair, task: Judged, relations: Sequence[Relation], names: Mapping[str, str], tally: Tally
) -> list[Problem]:
    """Add the answers of a task to its pair. Values that are not allowed are returned as problems."""
    problems: list[Problem] = []
    for answer in task.answers:
        annotator = names[answer.annotator]
        for relation in relations:
            said = answer.values.get(relation.name)
            if said is SEVERAL:
                tally.add("several")
                continue
            if isinstance(said, bool) and relation.kind == "graded":
                tally.add("boolean")
                continue
            try:
                value = None if is_missing(said) else to_value(relation, said, task.source)
            except DataError as error:
                problems += error.problems
                continue
            if value is not None:
                _rate(pair, relation.name, annotator, value, answer.when, tally)
    return problems


def _rate(pair: RatedPair, relation: str, annotator: str, value: Value, when: str, tally: Tally) -> None:
    """Add a rating. Of two ratings by one annotator the later one counts, by its time or its place."""
    ratings = pair.ratings.setdefault(relation, {})
    before = pair.when.get((relation, annotator), "")
    if annotator in ratings:
        tally.add("repeated")
        if before and when and when < before:
            return
    ratings[annotator] = value
    pair.when[relation, annotator] = when
