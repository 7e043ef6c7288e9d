"""Kind `labels`: labelled texts whose labels are texts too; every relation is a task (label embedding)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from likewise.arguments import listed_names
from likewise.data import infer_relations
from likewise.data.own import OwnTable
from likewise.data.reading import find_named_corpus
from likewise.errors import DataError, UsageError
from likewise.records import Relation
from likewise.schema.base import (
    Addition,
    Adopted,
    TrainedStage,
    left_out,
    own_entry,
    own_relations,
    rating,
    unrated,
)
from likewise.schema.parts import MAX_WIDTH


class LabelsStage(TrainedStage):
    """Labelled texts: every relation it names is a task, every label a text."""

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})
    gives: ClassVar[str] = "labels"
    place: ClassVar[str] = "stands alone or follows labels: train the encoder by another recipe first"
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"task"}
    texts: ClassVar[frozenset[int]] = frozenset({1})
    kind: Literal["labels"]
    head_learning_rate: float | None = Field(
        default=None, gt=0, description="of the heads; learning_rate if empty"
    )
    task: tuple[str, ...] = Field(default=(), description="relations that are learnt; all if empty")
    weights: dict[str, float] = Field(default_factory=dict, description="λ of a task; 1 if left out")
    matcher: Literal[
        "concat-mlp", "bilinear", "dot", "cosine", "euclid", "interaction", "concat-linear", "one-hot"
    ] = Field(default="concat-mlp", description="one-hot: a linear layer per task, label texts unread")
    hidden: int | None = Field(
        default=None, gt=0, le=MAX_WIDTH, description="of concat-mlp; the vector's width if empty"
    )
    loss: Literal["softmax", "bce", "positive"] = "softmax"
    label_encoder: Literal["shared", "own"] = Field(
        default="shared", description="own: labels have an encoder of their own, begun like the texts'"
    )
    max_words: int | None = Field(
        default=None, gt=1, description="longer texts keep their first and last words"
    )

    def named(self) -> Iterator[tuple[str, str]]:
        """Its tasks, and those that are given a weight."""
        for task in (*self.task, *self.weights):
            yield "task", task

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """Its tasks."""
        return tuple(self.task or known)

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """Some tasks, and of the data what may label them."""
        tasks = tuple(name for name in learnt if name in names)
        weights = {name: one for name, one in self.weights.items() if len(tasks) > 1 and name in tasks}
        data, dev = rating(self.data, names), rating(self.dev, names)
        return self.model_copy(update={"task": tasks, "weights": weights, "data": data, "dev": dev})

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Labelled single texts: each column of labels is a task."""
        if len(table.texts) != 1:
            return f"it learns labels of single texts, and {table.name} holds pairs"
        relations = own_relations(table, known, ("classes", "ordered"))
        if not relations:
            return unrated(table, "labels")
        told = left_out(table, relations, [name for name in self.rates(known) if name not in relations])
        changed = {"data": [own_entry(table)], "dev": [], "filter_against": [], "task": None, "weights": None}
        return Adopted(changed, relations, told)

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """A task with the labels that were named, a corpus's, or those that its rows hold."""
        if addition.describe is not None or addition.scale is not None:
            raise UsageError(f"{model} classifies texts: name the labels of the task (--labels), not a scale")
        if addition.source is None:
            raise UsageError(f"task {addition.name!r} has no texts: name a file or a corpus that labels some")
        if addition.labels:
            return new_task(addition.name, addition.labels)
        named = find_named_corpus(addition.source)
        if named is not None:
            own = {one.name: one for one in named[0].relations}[_column(addition)]
            return Relation.classes(addition.name, own.labels, texts=own.label_texts)
        declared = [f"{_column(addition)}:classes"]
        try:
            [found] = infer_relations(addition.source, declared=declared, text_a=addition.text, pairs=False)
        except DataError as error:
            # The reader speaks of options that an update does not have.
            remedy = "name the column by --column, or its labels by --labels 'one, other'"
            told = [replace(p, remedy=remedy) if "--relation" in p.remedy else p for p in error.problems]
            raise (DataError(told) if told else error) from None
        return Relation.classes(addition.name, found.labels)

    def extendable(self) -> bool:
        """Unless each task has a fixed layer."""
        return self.matcher != "one-hot"

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """One more task and its texts."""
        stage = self.model_dump(mode="json")
        columns = {relation.name: _column(addition)}
        entry = {"source": addition.source, "text_a": addition.text, "columns": columns}
        changed: dict[str, Any] = {"data": [*stage["data"], entry]}
        return changed | ({"task": [*self.task, relation.name]} if self.task else {})

    def alone(self, relation: Relation) -> Self:
        """The new task's own texts, dev split off; what is filtered stays filtered."""
        changed = {"data": self.data[-1:], "dev": (), "task": (relation.name,), "weights": {}}
        return self.model_copy(update=changed)


def new_task(name: str, labels: Sequence[str] | Mapping[str, str | Sequence[str]]) -> Relation:
    """A task from labels that were never seen: names, or names with the ways they are said."""
    if isinstance(labels, Mapping):
        ways = {
            label: tuple(listed_names(said, f"what is said of label {label!r}"))
            for label, said in labels.items()
        }
    else:
        names = listed_names(labels, "labels")
        ways = {label: (label,) for label in names}
        if len(ways) < len(names):
            raise UsageError("a label is given twice")
    return Relation.classes(name, list(ways), texts=tuple(ways.values()))


def _column(addition: Addition) -> str:
    """Where the labels stand: the column of the task's name, or the only relation of a corpus."""
    named = find_named_corpus(addition.source)
    known = [] if named is None else [one.name for one in named[0].relations]
    column = addition.column or (known[0] if len(known) == 1 else addition.name)
    if known and column not in known:
        raise UsageError(f"{addition.source} has no relation {column!r}; it has {', '.join(known)}")
    return column
