"""Kind `labels`: classification with label texts, where every relation is a task (label embedding)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from likewise.arguments import listed_names
from likewise.data.columns import missing_column
from likewise.data.own import OwnTable
from likewise.data.reading import find_named_corpus, open_source
from likewise.documents import to_file_name
from likewise.errors import DataError, UsageError
from likewise.naming import RAW
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
from likewise.schema.parts import MAX_WIDTH, relation_table
from likewise.spelling import spelt

MOST_TEMPLATES = 50
# For encoders that were not trained on labels, and for `train FILE`. No single template is best everywhere;
# these were chosen on dev texts of several tasks (benchmarks/zero_shot.py).
DEFAULT_TEMPLATES = ("The topic is {}.", "It is {}.", "This text is about {}.")
# A table with fewer examples of a label on average has no dev set.
_EACH_FOR_DEV = 25
# Epochs of a small table: it is read until so many texts were seen, but not more often than this.
_TEXTS_SEEN, _MOST_EPOCHS = 12_000, 20
# How `train FILE` learns labels; chosen on dev texts of seven tasks (benchmarks/few_labels.py).
_FEW_LABELS: Mapping[str, Any] = {
    "matcher": "cosine",
    "templates": list(DEFAULT_TEMPLATES),
    "contrast": 1.0,
    "hold": 0.1,
    "learning_rate": 5e-5,
    "batch_size": 32,
    "order": "random",
    "epochs": 3,
}


class LabelsStage(TrainedStage):
    """Labelled texts: every relation that it names is a task, and every label has a label text."""

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})
    gives: ClassVar[str] = "labels"
    place: ClassVar[str] = (
        "must come first or follow another stage of kind labels; train the encoder by another recipe first"
    )
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"task"}
    texts: ClassVar[frozenset[int]] = frozenset({1})
    later: ClassVar[frozenset[str]] = TrainedStage.later | {"templates", "contrast", "hold"}
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

    dev_share: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description=(
            "Share of the training rows that is split off as the dev set if `dev` is empty; with 0 there is "
            "no dev set."
        ),
    )
    templates: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_TEMPLATES,
        description=(
            "Sentences into which every label text is put, such as `This text is about {}.`; the vectors of "
            "a label are averaged. Without any, a label text stands alone."
        ),
    )
    contrast: float = Field(
        default=0.0,
        ge=0,
        description=(
            "Weight of a contrastive loss over the texts and labels of a batch, which helps with few "
            "examples of a label; 0 switches it off."
        ),
    )
    hold: float = Field(
        default=0.0,
        ge=0,
        description=(
            "Weight of a loss that holds the vectors of training texts near those of the starting encoder; 0 "
            "switches it off."
        ),
    )

    @field_validator("templates")
    @classmethod
    def _with_one_blank(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if fault := template_fault(value):
            raise ValueError(fault)
        return value

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

    @classmethod
    def infer(cls, table: OwnTable) -> dict[str, Any] | str:
        """A classifier with label texts, one task for each column of labels."""
        if len(table.texts) != 1:
            return "it learns labels of single texts"
        tasks = [relation for relation in table.relations if relation.kind in ("classes", "ordered")]
        if not tasks:
            return unrated(table, "labels")
        most = max(len(task.labels) for task in tasks)
        settings = {**_FEW_LABELS, **label_settings(table.rated, most)}
        return {
            "name": to_file_name(Path(table.name).name.partition(".")[0], "labels"),
            "method": "labels",
            "encoder": {"name": RAW},
            "relation": {task.name: label_table(task) for task in tasks},
            "stage": [{"kind": "labels", "name": "labels", "data": [own_entry(table)], **settings}],
        }

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
            opened = open_source(addition.source)
            texts = opened.find_texts(addition.text, None, pairs=False, option="text")
            [found] = opened.find_relations(texts, declared)
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

    def widened(self, task: Relation, addition: Addition) -> Relation:
        """A task with more labels."""
        if not self.extendable():
            raise UsageError(
                f"task {task.name!r} has a fixed layer for its labels and cannot get another one. Train a "
                "model with a matcher."
            )
        added = addition.new_labels or {}
        known = [label for label in added if label in task.labels]
        if known:
            raise UsageError(f"task {task.name!r} has the label {known[0]!r} already. Add another one.")
        texts = [listed_names(said, f"the label texts of {label!r}") for label, said in added.items()]
        return replace(
            task,
            labels=(*task.labels, *added),
            texts=(*task.label_texts, *map(tuple, texts)),
        )

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """The texts of a task, if there are any, and the task itself unless the model has it."""
        stage = self.model_dump(mode="json")
        changed: dict[str, Any] = {}
        if addition.source is not None:
            _check_columns(addition.source, addition)
            columns = {relation.name: _column(addition)}
            entry = {"source": addition.source, "text_a": addition.text, "columns": columns}
            changed["data"] = [*stage["data"], entry]
        is_new = bool(self.task) and relation.name not in self.task
        return changed | ({"task": [*self.task, relation.name]} if is_new else {})

    def alone(self, relation: Relation) -> Self:
        """Only the new task's texts, with a split-off dev set; the leak filter stays."""
        changed = {"data": self.data[-1:], "dev": (), "task": (relation.name,), "weights": {}}
        return self.model_copy(update=changed)


def _check_columns(source: str, addition: Addition) -> None:
    """Raise an error for a column that the new file lacks, before the old data is read again."""
    if find_named_corpus(source) is not None:
        return
    opened, column = open_source(source), _column(addition)
    opened.find_texts(addition.text, None, pairs=False, option="text")
    if column not in opened.table.columns:
        remedy = f"name the column of the labels with {spelt('column', 'NAME')}"
        raise DataError([missing_column(column, opened.table.columns, opened.table.name, remedy)])


def template_fault(templates: Sequence[str]) -> str | None:
    """What is wrong with templates: each needs exactly one place for the label text."""
    for template in templates:
        if template.count("{}") != 1:
            return (
                f"template {template!r} needs {{}} exactly once, where the label text stands, such as "
                "'This text is about {}.'"
            )
    return None


def words_of(label: str) -> str:
    """A label's name as words: card_arrival and CardArrival become "card arrival"."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", re.sub(r"[_\-./:]+", " ", label))
    return " ".join(spaced.split()).lower() or label


def label_table(relation: Relation) -> dict[str, Any]:
    """A relation of a user's table as a recipe says it, with words for labels whose names are no words."""
    table = relation_table(relation)
    said = {label: words_of(label) for label in relation.labels}
    # Labels whose words would be the same keep their names.
    alike = {words for words in said.values() if list(said.values()).count(words) > 1}
    texts = {label: words for label, words in said.items() if words != label and words not in alike}
    return {**table, "texts": texts} if texts and relation.kind == "classes" else table


def label_settings(rows: int | None, labels: int) -> dict[str, Any]:
    """Epochs and dev share for a table of labelled texts, by its size; None counts as many rows.

    With few examples of a label, each one that is held out for dev costs more than a dev set so small tells.
    """
    if rows is None:
        return {}
    settings: dict[str, Any] = {"epochs": int(min(_MOST_EPOCHS, max(3, _TEXTS_SEEN // max(1, rows))))}
    if rows < _EACH_FOR_DEV * max(1, labels):
        settings |= {"dev_share": 0, "select": False}
    return settings


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
