"""`import_annotations`: from an export of an annotation tool to a file of ratings, with the agreement."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.annotation.judgements import COUNTED
from likewise.annotation.merging import (
    Rated,
    RatedPair,
    Ties,
    annotator_columns,
    count_column,
    merge,
    most_chosen,
    most_disputed,
    rating_of,
)
from likewise.annotation.reading import KEPT, Export, read_export
from likewise.arguments import listed_names, require_flag, require_path, require_text
from likewise.data.columns import find_any_texts
from likewise.data.writing import TableWriter
from likewise.errors import UsageError
from likewise.evaluation.agreement import METRIC_OF, RELIABLE, Agreement, describe, measure_agreement
from likewise.files import remembering_inputs
from likewise.outputs import check_output_file
from likewise.records import Relation, Value
from likewise.spelling import spelt_call
from likewise.wording import counted, listed, quoted

_MARKS_OF_FORMS = ("|", "<", "..")
_TIES = ("empty", "first")
_SHOWN = 12
# So many of the pairs on which annotators differ most are shown.
_DISPUTED = 3


@dataclass(frozen=True, slots=True)
class ImportedRelation:
    """One relation of an import: its annotators, how many pairs they rated, and how far they agree.

    `several` counts the pairs with two or more ratings. `ties` counts the pairs whose most frequent labels
    are equally frequent. `disputed` are the pairs on which annotators differ most.
    """

    relation: Relation
    annotators: tuple[str, ...]
    rated: int
    several: int
    ties: int
    agreement: Agreement
    disputed: tuple[RatedPair, ...]

    @property
    def declared(self) -> str:
        """What declares the relation, such as similarity:0..5."""
        return f"{self.relation.name}:{_form(self.relation)}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "relation": self.relation.to_dict(),
            "annotators": list(self.annotators),
            "pairs": self.rated,
            "pairs_with_several_ratings": self.several,
            "ties": self.ties,
            "agreement": self.agreement.to_dict(),
            "disputed": [
                {"texts": list(pair.texts), "ratings": pair.ratings[self.relation.name]}
                for pair in self.disputed
            ],
        }

    def disputes(self) -> list[str]:
        """A line for each disputed pair, if agreement is not good."""
        value = self.agreement.value
        if value is None or value >= RELIABLE:
            return []
        return [
            f"  differ on {' / '.join(quoted(text, most=60) for text in pair.texts)}: "
            + listed(
                (f"{name} {_shown(said)}" for name, said in pair.ratings[self.relation.name].items()), most=9
            )
            for pair in self.disputed
        ]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported. `counts` says what was left out or joined, by the kinds of `COUNTED`."""

    output: Path
    form: str
    texts: tuple[str, ...]
    tasks: int
    pairs: int
    relations: tuple[ImportedRelation, ...]
    counts: Mapping[str, int]
    notes: tuple[str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands, or the calls in Python, that use the file of ratings."""
        file, relations = str(self.output), [one.declared for one in self.relations]
        return tuple(spelt_call(verb, file, relations=relations) for verb in ("data check", "train"))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "output": str(self.output),
            "form": self.form,
            "texts": list(self.texts),
            "tasks": self.tasks,
            "pairs": self.pairs,
            "relations": [one.to_dict() for one in self.relations],
            "left_out": {kind: self.counts.get(kind, 0) for kind in COUNTED},
            "notes": list(self.notes),
            "commands": list(self.commands),
        }

    def lines(self) -> list[str]:
        """The report in lines of text."""
        found = [f"{self.form}: {counted(self.tasks, 'task')}, texts in {listed(self.texts)}", *self.notes]
        for one in self.relations:
            mean = f", {one.several:,} of them by two or more"
            who = f"{counted(len(one.annotators), 'annotator')} ({listed(one.annotators, most=_SHOWN)})"
            found.append(
                f"{one.relation.name} {one.relation.scale}: {who}, {counted(one.rated, 'pair')}{mean}"
            )
            found.append(f"  {describe(one.relation.name, one.agreement)}")
            found += one.disputes()
        found.append(f"{self.output}: {counted(self.pairs, 'rated pair')}")
        return found


def import_annotations(
    export: object,
    output: str | os.PathLike[str],
    *,
    relations: str | Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    annotators: str | Sequence[str] = (),
    ties: Ties = "empty",
    pseudonyms: bool = False,
    safe: bool = False,
    overwrite: bool = False,
    seed: int = 1,
) -> ImportReport:
    """Read the annotations of people and write a file of ratings that `train` takes.

    `export` is a file of Label Studio (JSON, JSON-MIN, CSV) or Argilla (JSON, JSON lines, parquet, a folder
    of `datasets`), a table with one column (`annotators`) or one row per annotator, or such a table in
    memory. The output has the columns text_a and text_b, one for each relation, NAME@ANNOTATOR for each
    annotator, and NAME@raters with the number of ratings. `ties` says what a tie of labels becomes: empty, or
    the label that is declared first. `pseudonyms` calls the annotators r1, r2, …
    """
    declared, columns = listed_names(relations, "relations"), listed_names(annotators, "annotators")
    require_path(output, "output")
    for name, value in (("text_a", text_a), ("text_b", text_b)):
        require_text(value, name)
    for name, flag in (("pseudonyms", pseudonyms), ("safe", safe), ("overwrite", overwrite)):
        require_flag(flag, name)
    if ties not in _TIES:
        raise UsageError(f"ties is {ties!r}. Choose {' or '.join(_TIES)}.")
    target = Path(output)
    check_output_file(target, inputs=[export], overwrite=overwrite)
    with remembering_inputs():
        names = [text.partition(":")[0] for text in declared]
        read = read_export(export, relations=names, text_a=text_a, text_b=text_b, annotators=columns)
        rated = merge(read, declared, pseudonyms=pseudonyms)
        found = [_measured(rated, relation, seed) for relation in rated.relations]
        _write(target, rated.pairs, found, ties=ties, safe=safe, replace=overwrite)
    notes = (*_told(read), *rated.guesses, *(line for one in found for line in _rule(one, ties)))
    return ImportReport(
        target, read.form, read.columns, len(read.tasks), len(rated.pairs), tuple(found),
        dict(read.tally.counts), notes,
    )  # fmt: skip


def _measured(rated: Rated, relation: Relation, seed: int) -> ImportedRelation:
    asked = [pair.ratings[relation.name] for pair in rated.pairs if pair.ratings.get(relation.name)]
    tied = (len(most_chosen(ratings)) > 1 for ratings in asked)
    return ImportedRelation(
        relation,
        rated.raters(relation),
        len(asked),
        sum(len(ratings) > 1 for ratings in asked),
        sum(tied) if relation.kind == "classes" else 0,
        measure_agreement(rated.ratings(relation), metric=METRIC_OF[relation.kind], seed=seed),
        most_disputed(rated, relation, most=_DISPUTED),
    )


def _told(read: Export) -> list[str]:
    """What was left out, and which columns are those of annotators."""
    found = [
        f"columns {listed(columns.values(), most=_SHOWN)} hold the ratings of {name!r}, one annotator each"
        for name, columns in read.groups.items()
    ]
    return [*found, *read.tally.lines()]


def _rule(one: ImportedRelation, ties: Ties) -> list[str]:
    """How ratings that differ became one."""
    if one.relation.kind == "ordered" and one.several:
        return [f"{one.relation.name}: the median label is the rating, the lower one of two"]
    if one.ties:
        rule = (
            "left empty"
            if ties == "empty"
            else f"given to the label that comes first in {one.relation.scale}"
        )
        return [f"{one.relation.name}: {counted(one.ties, 'tie')} between labels {rule}"]
    return []


def _write(
    target: Path,
    pairs: Sequence[RatedPair],
    found: Sequence[ImportedRelation],
    *,
    ties: Ties,
    safe: bool,
    replace: bool,
) -> None:
    """Write the file of ratings."""
    texts = ("text_a", "text_b") if len(pairs[0].texts) == 2 else ("text",)
    kept = [name for name in KEPT if any(name in pair.kept for pair in pairs)]
    own = {one.relation.name: annotator_columns(one.relation, one.annotators) for one in found}
    rated = [
        column
        for one in found
        for column in (one.relation.name, *own[one.relation.name].values(), count_column(one.relation))
    ]
    _check_columns([*texts, *kept, *rated], texts)
    with TableWriter(target, [*texts, *kept, *rated], safe=safe, replace=replace) as writer:
        for pair in pairs:
            row: dict[str, object] = {**dict(zip(texts, pair.texts, strict=True)), **pair.kept}
            for one in found:
                relation = one.relation
                ratings = pair.ratings.get(relation.name, {})
                row[relation.name] = rating_of(relation, ratings, ties=ties)
                row |= {column: ratings.get(name) for name, column in own[relation.name].items()}
                row[count_column(relation)] = len(ratings)
            writer.write_row(row)


def _check_columns(columns: Sequence[str], texts: Sequence[str]) -> None:
    """Refuse a relation whose name is that of another column, or that hides the texts from other commands."""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice or find_any_texts(columns) != tuple(texts):
        raise UsageError(
            f"the relation {listed(map(repr, twice)) or 'names'} cannot stand beside the columns "
            f"{listed(texts)}. Rename the question in the export."
        )


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _form(relation: Relation) -> str:
    """The scale as --relation takes it: lo..hi, labels, or `classes` if the labels hold marks of the form."""
    if relation.kind == "graded":
        return relation.scale
    joined = ("<" if relation.kind == "ordered" else "|").join(relation.labels)
    plain = not any(mark in label for label in relation.labels for mark in _MARKS_OF_FORMS)
    return joined if plain else "classes"
