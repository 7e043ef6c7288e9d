"""Find the columns that hold ratings, and their scales."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from likewise.data.columns import missing_column, require_single
from likewise.data.rows import Row
from likewise.data.values import is_missing, to_label, to_number
from likewise.errors import DataError, Problem, UsageError
from likewise.records import MAX_LABELS, Relation
from likewise.spelling import spelt

_log = logging.getLogger("likewise")

# Tried from the narrowest; among equally wide ones, the range whose ends were seen wins, then this order.
RANGES = ((0, 1), (0, 5), (1, 5), (0, 4), (-2, 2), (-1, 1), (0, 10), (1, 7), (0, 100))
_SCORE_WORDS = (
    *("score", "similarity", "relatedness", "rating", "label", "gold", "grade", "relevance", "agreement"),
    *("distance", "entailment"),
)
_SHORT_WORDS = {"sim", "rel", "sts"}
_CLASS_NAMES = (
    *("label", "gold_label", "gold", "class", "category", "relation", "judgment", "judgement", "target", "y"),
    *("entailment", "entailment_judgment", "entailment_label", "paraphrase", "duplicate", "is_duplicate"),
)
_ID_NAMES = (
    *("id", "qid", "pid", "sid", "uid", "guid", "docid", "idx", "index", "key", "number", "no", "nr"),
    *("line", "row", "year", "column ", "unnamed: "),
)
_MOST_LABELS = 20
_LARGEST = 1e15
_WORDS = re.compile(r"[a-z]+")
# `similarity@anna` holds what one annotator said, and `similarity@raters` how many rated, if there is a
# column `similarity`. `data import` writes such columns.
ANNOTATOR_MARK, COUNT_NAME = "@", "raters"


@dataclass(slots=True)
class Profile:
    """The values that were seen in one column."""

    present: int = 0
    numbers: int = 0
    lo: float = math.inf
    hi: float = -math.inf
    whole: bool = True
    increasing: bool = True
    labels: set[str] = field(default_factory=set)
    # So many labels are told apart: a column with more is no column of labels, unless it was declared.
    most: int = _MOST_LABELS

    def add(self, cell: object) -> None:
        """Add one cell to the profile."""
        if is_missing(cell):
            return
        self.present += 1
        if len(self.labels) <= self.most:
            self.labels.add(to_label(cell))
        number = to_number(cell)
        if number is None or not math.isfinite(number):
            return
        self.numbers += 1
        self.whole = self.whole and number.is_integer()
        self.increasing = self.increasing and number > self.hi
        self.lo, self.hi = min(self.lo, number), max(self.hi, number)


def find_relations(
    rows: Iterable[Row],
    columns: Sequence[str],
    texts: Sequence[str],
    declared: Sequence[str] = (),
    *,
    source: str = "table",
) -> list[Relation]:
    """The relations of a table: the declared ones, or else every column that looks like a rating.

    A relation is declared as `NAME:lo..hi`, `NAME:a|b`, `NAME:a<b<c` or `NAME:classes`. The labels of
    `NAME:classes`, and the ranges of columns that were not declared, are collected from the rows. The choices
    are logged.
    """
    wanted = columns_to_profile(columns, texts, declared, source=source)
    profiles = {} if wanted is None else _profile(rows, wanted, most_labels(declared))
    return relations_of(profiles, declared, source=source)


def columns_to_profile(
    columns: Sequence[str], texts: Sequence[str], declared: Sequence[str] = (), *, source: str = "table"
) -> list[str] | None:
    """The columns that must be read to find the relations, or None if the declarations are complete.

    A relation that is declared twice, or whose column is missing, is an error.
    """
    names = [text.partition(":")[0] for text in declared]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        named = ", ".join(map(repr, twice))
        raise UsageError(f"{source}: relation {named} is declared twice. Keep one of them.")
    absent = [
        missing_column(
            name, columns, source, f"name an existing column with {spelt('relations', 'NAME:lo..hi')}"
        )
        for name in names
        if name not in columns
    ]
    if absent:
        raise DataError(absent)
    for name in names:
        require_single(name, columns, source)
    if declared and not any(text.endswith(":classes") for text in declared):
        return None
    return names or [
        column for column in columns if column not in texts and not is_of_annotator(column, columns)
    ]


def is_of_annotator(column: str, columns: Sequence[str]) -> bool:
    """Whether a column belongs to an annotator of another column: `similarity@anna` beside `similarity`.

    Such a column is a relation only if it is declared.
    """
    return column.rpartition(ANNOTATOR_MARK)[0] in columns


def relations_of(
    profiles: Mapping[str, Profile], declared: Sequence[str] = (), *, source: str = "table"
) -> list[Relation]:
    """The declared relations, or else the relations that the profiles of columns suggest."""
    if declared:
        return [_declared(text, profiles, source) for text in declared]
    declare = spelt("relations", "NAME:lo..hi")
    remedy = f"rename one of them, or declare the relations to read: {declare}"
    found = []
    for column, profile in profiles.items():
        relation = _nameable(column, profile)
        if relation is not None:
            require_single(column, [column], source, remedy)
            found.append(relation)
    return found


def find_label_columns(rows: Iterable[Row], columns: Sequence[str]) -> dict[str, list[str]]:
    """Columns with so few different words that they may be labels, by the words they hold."""
    return label_columns(_profile(rows, columns))


def label_columns(profiles: Mapping[str, Profile]) -> dict[str, list[str]]:
    """The same for columns that have been read already."""
    return {
        column: sorted(profile.labels)
        for column, profile in profiles.items()
        if not profile.numbers and 2 <= len(profile.labels) <= min(_MOST_LABELS, profile.present // 2)
    }


def find_range(lo: float, hi: float) -> tuple[float, float]:
    """The narrowest conventional range that contains lo..hi, or else lo..hi rounded outward."""
    fits = [(low, high) for low, high in RANGES if low <= lo and hi <= high and (low >= 0 or lo < 0)]
    if fits:
        return min(fits, key=lambda ends: (ends[1] - ends[0], -((ends[0] == lo) + (ends[1] == hi))))
    low, high = math.floor(lo), math.ceil(hi)
    return low, high if high > low else low + 1


def most_labels(declared: Sequence[str]) -> int:
    """How many labels of a column are counted. If relations were declared, as many as a relation may have."""
    return MAX_LABELS if declared else _MOST_LABELS


def _profile(rows: Iterable[Row], columns: Sequence[str], most: int = _MOST_LABELS) -> dict[str, Profile]:
    profiles = {column: Profile(most=most) for column in columns}
    for row in rows:
        for column, profile in profiles.items():
            profile.add(row.fields.get(column))
    return profiles


def _declared(text: str, profiles: Mapping[str, Profile], source: str) -> Relation:
    name, _, form = text.partition(":")
    if form != "classes":
        return Relation.parse(text)
    labels = profiles[name].labels
    if len(labels) < 2:
        seen = f"only the label {next(iter(labels))!r}" if labels else "no label at all"
        found = f"relation {name!r} has {seen}, but two or more are needed"
        declared = spelt("relations", f"{name}:yes|no")
        raise DataError([Problem(source, found, f"declare the labels ({declared}), or drop the relation")])
    return Relation.classes(name, sorted(labels))


def _nameable(column: str, profile: Profile) -> Relation | None:
    """The relation that a column suggests. A column whose name cannot be a relation's name is skipped with
    a warning.
    """
    try:
        return _infer(column, profile)
    except UsageError as error:
        _log.warning("%s Until then this column is ignored.", error)
        return None


def _infer(column: str, profile: Profile) -> Relation | None:
    name = column.casefold()
    telling = any(word in name for word in _SCORE_WORDS) or not _SHORT_WORDS.isdisjoint(_WORDS.findall(name))
    graded = profile.numbers == profile.present or (telling and profile.numbers * 2 > profile.present)
    if profile.numbers and graded and not _is_index(name, profile, telling) and _is_on_a_scale(profile):
        lo, hi = find_range(profile.lo, profile.hi)
        seen = f"{profile.lo:g} to {profile.hi:g}"
        _log.info(
            "column %r: read as a scale of %g..%g (found %s). To declare another scale, write %s:lo..hi.",
            column,
            lo,
            hi,
            seen,
            column,
        )
        return Relation.graded(column, lo, hi)
    if name in _CLASS_NAMES and not graded and 2 <= len(profile.labels) <= _MOST_LABELS:
        _log.info("column %r: read as the labels %s", column, ", ".join(sorted(profile.labels)))
        return Relation.classes(column, sorted(profile.labels))
    return None


def _is_on_a_scale(profile: Profile) -> bool:
    """Whether the numbers may be ratings. Keys of twenty digits and failed computations are not."""
    return max(abs(profile.lo), abs(profile.hi)) < _LARGEST


def _is_index(name: str, profile: Profile, telling: bool) -> bool:
    if telling:
        return False
    stem = name.rstrip("0123456789").rstrip("_")
    if stem in _ID_NAMES or stem.endswith(("_id", "_idx", "_index", "_no")):
        return True
    if profile.whole and profile.lo >= 1900 and profile.hi <= 2100:
        return True
    return profile.whole and profile.increasing and profile.present > 1
