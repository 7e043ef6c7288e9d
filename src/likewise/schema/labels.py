"""Kind `labels`: classification with label texts, where every relation is a task (label embedding)."""

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
    HEAD_RATE,
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
from likewise.spelling import spelt


class LabelsStage(TrainedStage):
    """Labelled texts: every relation that it names is a task, and every label has a label text."""

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})
    gives: ClassVar[str] = "labels"
    place: ClassVar[str] = (
        "must come first or follow another stage of kind labels; train the encoder by another recipe first"
    )
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"task"}
    texts: ClassVar[frozenset[int]] = frozenset({1})
    kind: Literal["labels"]
    head_learning_rate: float | None = Field(default=None, gt=0, description=HEAD_RATE)
    task: tuple[str, ...] = Field(
        default=(), description="Relations that are learnt, each as a task; all of the recipe's if empty."
    )
    weights: dict[str, float] = Field(
        default_factory=dict, description="Factor on the loss of a task (the paper's λ), by default 1."
    )
    matcher: Literal[
        "concat-mlp", "bilinear", "dot", "cosine", "euclid", "interaction", "concat-linear", "one-hot"
    ] = Field(
        default="concat-mlp",
        description=(
            "How the vectors of a text and a label text are compared; `one-hot` has a layer per task instead "
            "and reads no label texts."
        ),
    )
    hidden: int | None = Field(
        default=None,
        gt=0,
        le=MAX_WIDTH,
        description="Width of the hidden layer of `concat-mlp`, by default the width of the vectors.",
    )
    loss: Literal["softmax", "bce", "positive"] = Field(
        default="softmax",
        description=(
            "Cross-entropy over the labels of a task, one decision for each label (`bce`), or the form that "
            "the paper prints (`positive`)."
        ),
    )
    label_encoder: Literal["shared", "own"] = Field(
        default="shared",
        description="Encode label texts by the encoder of the texts, or by one that starts as a copy of it.",
    )
    max_words: int | None = Field(
        default=None,
        gt=1,
        description="Number of words that a text may have; a longer one keeps its first and last words.",
    )

    def named(self) -> Iterator[tuple[str, str]]:
        """Its tasks, and those that have a weight."""
        for task in (*self.task, *self.weights):
            yield "task", task

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """Its tasks."""
        return tuple(self.task or known)

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """Some tasks, and the data entries that may label them."""
        tasks = tuple(name for name in learnt if name in names)
        weights = {name: one for name, one in self.weights.items() if len(tasks) > 1 and name in tasks}
        data, dev = rating(self.data, names), rating(self.dev, names)
        return self.model_copy(update={"task": tasks, "weights": weights, "data": data, "dev": dev})

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Labelled single texts: each column of labels is a task."""
        if len(table.texts) != 1:
            return f"it learns labels of single texts, but {table.name} holds pairs"
        relations = own_relations(table, known, ("classes", "ordered"))
        if not relations:
            return unrated(table, "labels")
        told = left_out(table, relations, [name for name in self.rates(known) if name not in relations])
        changed = {"data": [own_entry(table)], "dev": [], "filter_against": [], "task": None, "weights": None}
        return Adopted(changed, relations, told)

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """A task with the labels that the user names, those of a corpus, or those in its rows."""
        if addition.describe is not None or addition.scale is not None:
            raise UsageError(
                f"{model} classifies texts, so a new task needs labels and no description or scale. Name "
                f"the labels with {spelt('labels', '…')}."
            )
        if addition.source is None:
            raise UsageError(
                f"task {addition.name!r} has no labelled texts, from which its labels would be learnt. "
                "Name a file or a corpus that has some."
            )
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
            # The reader's remedies name options that an update does not have.
            remedy = f"name the column with {spelt('column', '…')}, or the labels with {spelt('labels', '…')}"
            told = [
                replace(p, remedy=remedy) if spelt("relations") in p.remedy else p for p in error.problems
            ]
            raise (DataError(told) if told else error) from None
        return Relation.classes(addition.name, found.labels)

    def extendable(self) -> bool:
        """True unless each task has a layer of its own."""
        return self.matcher != "one-hot"

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """One more task and its texts."""
        stage = self.model_dump(mode="json")
        columns = {relation.name: _column(addition)}
        entry = {"source": addition.source, "text_a": addition.text, "columns": columns}
        changed: dict[str, Any] = {"data": [*stage["data"], entry]}
        return changed | ({"task": [*self.task, relation.name]} if self.task else {})

    def alone(self, relation: Relation) -> Self:
        """Only the new task's texts, with a split-off dev set; the leak filter stays."""
        changed = {"data": self.data[-1:], "dev": (), "task": (relation.name,), "weights": {}}
        return self.model_copy(update=changed)


def new_task(name: str, labels: Sequence[str] | Mapping[str, str | Sequence[str]]) -> Relation:
    """A task from new labels: names, or names with their label texts."""
    if isinstance(labels, Mapping):
        ways = {
            label: tuple(listed_names(said, f"the label texts of {label!r}"))
            for label, said in labels.items()
        }
    else:
        names = listed_names(labels, "labels")
        ways = {label: (label,) for label in names}
        if len(ways) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise UsageError(f"label {twice!r} is named twice, but labels must differ. Name each label once.")
    return Relation.classes(name, list(ways), texts=tuple(ways.values()))


def _column(addition: Addition) -> str:
    """The place of the labels: the column of the task's name, or the only relation of a corpus."""
    named = find_named_corpus(addition.source)
    known = [] if named is None else [one.name for one in named[0].relations]
    column = addition.column or (known[0] if len(known) == 1 else addition.name)
    if known and column not in known:
        raise UsageError(
            f"{addition.source} has no relation {column!r}, but {', '.join(known)}. Name one of them with "
            f"{spelt('column', '…')}."
        )
    return column
