"""Read a user's own table once and find out everything that must be known before its rows are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from likewise.data.catalogue import Corpus
from likewise.data.ratings import Profile, columns_to_profile, label_columns, most_labels, relations_of
from likewise.data.reading import no_rows, open_source
from likewise.data.rows import Table
from likewise.data.tables import is_countable
from likewise.data.values import is_missing, to_number
from likewise.errors import DataError
from likewise.records import Relation
from likewise.spelling import spelt
from likewise.wording import shortened

# So many rows are looked through for labels that are not learnt, and for scales that may be labels.
_LOOKED_AT = 10_000
# Beyond so many rated rows no setting depends on how many there are.
MOST_RATED = 3000
# 0 and 1 mostly mean no and yes, 0 to 2 the classes of NLI.
_LIKE_LABELS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A user's table, opened once: its columns, its texts, what it rates, and how much of it there is.

    `name` is the table's name in a recipe, and `source` is what `open_table` takes. `corpus` is set if the
    source names one. `named` are the text columns as the caller gave them. `declared` says whether the caller
    declared the relations.

    `rated` counts the rows with a rating of one of the relations, up to `most`. `rows` counts all rows; if
    relations were declared with their ranges or labels, the count stops where `rated` stops. Both are None
    for a corpus and for a source that `count_rows` does not count.

    `guesses` are sentences for the user: about labels that are not learnt, and about scales that may be
    labels.
    """

    name: str
    source: object
    corpus: Corpus | None
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    named: tuple[str | None, str | None]
    relations: tuple[Relation, ...]
    rated: int | None
    rows: int | None
    guesses: tuple[str, ...]
    declared: bool = False


def open_own_table(
    source: object,
    *,
    name: str,
    declared: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    data_dir: str | Path | None = None,
    pairs: bool | None = None,
    most: int = MOST_RATED,
) -> OwnTable:
    """Open a table or a named corpus and find out what it holds, in at most one pass over its rows.

    `pairs` says whether a row holds two texts or one; None decides by the columns. A table without rows is an
    error, unless its relations are declared.
    """
    opened = open_source(source, data_dir=data_dir)
    table, corpus = opened.table, opened.corpus
    # A caller who knows that the texts are single ones has an option of its own for their column.
    option = "text" if pairs is False else "text_a"
    shown = name if corpus is None else None
    texts = opened.find_texts(text_a, text_b, pairs=pairs, name=shown, option=option)
    named = (text_a, text_b)
    made = OwnTable(name, source, corpus, table.columns, texts, named, (), None, None, (), bool(declared))
    if corpus is not None and not declared:
        return replace(made, relations=corpus.relations)
    forms = opened.find_forms(declared)
    wanted = columns_to_profile(table.columns, texts, forms, source=table.name)
    counted = corpus is None and _is_counted(source, table)
    if wanted is None:
        relations = relations_of({}, forms, source=table.name)
        rated, rows = _count(table, relations, most) if counted else (None, None)
        return replace(made, relations=tuple(relations), rated=rated, rows=rows)
    seen = _Seen.of(table, wanted, most, most_labels(forms))
    relations = relations_of(seen.profiles, forms, source=table.name)
    if not seen.rows and not declared:
        raise DataError([no_rows(table)])
    return replace(
        made,
        relations=tuple(relations),
        rated=seen.rated(relations, most) if counted else None,
        rows=seen.rows if counted else None,
        guesses=() if declared else _guesses(seen, relations),
    )


def relation_option(name: str, scale: str) -> str:
    """The option that declares a relation, so that it can be copied into a shell or a program."""
    return spelt("relations", f"{name}:{scale}")


def _is_counted(source: object, table: Table) -> bool:
    if isinstance(source, str | Path):
        return is_countable(Path(source))
    return table.size is not None


def _count(table: Table, relations: Sequence[Relation], most: int) -> tuple[int, int]:
    """The number of rows with a rating, up to `most`, and the number of rows. No more rows are read than
    needed.
    """
    names = [relation.name for relation in relations]
    rated = rows = 0
    for row in table:
        rows += 1
        rated += any(not is_missing(row.fields.get(name)) for name in names)
        if rated >= most:
            break
    return rated, rows if table.size is None else table.size


@dataclass(slots=True)
class _Column:
    """The values of one column: in all rows, its numbers in the first rows, and the rows that it rates, up
    to `most`.
    """

    profile: Profile = field(default_factory=Profile)
    numbers: set[float | None] = field(default_factory=set)
    rated: list[int] = field(default_factory=list)

    def add(self, cell: object, number: int, most: int) -> None:
        if is_missing(cell):
            return
        self.profile.add(cell)
        if number <= _LOOKED_AT and len(self.numbers) <= len(_LIKE_LABELS):
            self.numbers.add(to_number(cell))
        if len(self.rated) < most:
            self.rated.append(number)


@dataclass(slots=True)
class _Seen:
    """What one pass over a table found. `first` holds the profiles as they were after the first rows."""

    columns: Mapping[str, _Column]
    first: Mapping[str, Profile]
    rows: int

    @classmethod
    def of(cls, table: Table, wanted: Sequence[str], most: int, labels: int) -> _Seen:
        columns = {name: _Column(Profile(most=labels)) for name in wanted}
        first: dict[str, Profile] = {}
        number = 0
        for number, row in enumerate(table, 1):
            for name, column in columns.items():
                column.add(row.fields.get(name), number, most)
            if number == _LOOKED_AT:
                first = {
                    name: replace(column.profile, labels=set(column.profile.labels))
                    for name, column in columns.items()
                }
        seen = cls(columns, first, number)
        return seen if first else replace(seen, first=seen.profiles)

    @property
    def profiles(self) -> dict[str, Profile]:
        return {name: column.profile for name, column in self.columns.items()}

    def rated(self, relations: Sequence[Relation], most: int) -> int:
        # Exact: a column that has more rated rows than it remembers has as many as are counted.
        rows = {number for relation in relations for number in self.columns[relation.name].rated}
        return min(most, len(rows))


def _guesses(seen: _Seen, relations: Sequence[Relation]) -> tuple[str, ...]:
    """Sentences about labels that are not used, and about numbers that are read as a scale but may be
    labels.
    """
    if not relations:
        return ()
    learnt = {relation.name for relation in relations}
    others = {name: profile for name, profile in seen.first.items() if name not in learnt}
    found = []
    for column, labels in label_columns(others).items():
        shown = ", ".join(labels[:3]) + (", …" if len(labels) > 3 else "")
        option = relation_option(column, "classes")
        found.append(f"column {column!r} ({shown}) is not used. If it holds labels, declare it: {option}")
    for relation in relations:
        values = seen.columns[relation.name].numbers
        if relation.kind == "graded" and values and values <= set(_LIKE_LABELS):
            shown = ", ".join(f"{value:g}" for value in _LIKE_LABELS if value in values)
            said = (
                f"column {relation.name!r} holds only {shown}. It is read as a scale "
                f"{relation.scale} on which"
            )
            found.append(
                f"{said} higher means more similar. If these are labels, declare them: "
                f"{relation_option(relation.name, 'classes')}"
            )
    return shortened(found)
