"""Task: one evaluation set and the relation asked of it. TaskRows: its rows, ready to be measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.data import find_corpus, load_corpus, load_records
from likewise.data.corpora import split_files
from likewise.errors import EvaluationError
from likewise.evaluation.aggregate import Aggregate, aggregate
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import TaskResult
from likewise.evaluation.sharing import row_sharing
from likewise.records import Record, Relation, nearest_labels


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation set and the relation asked of it: a named corpus, or a file of the user's own.

    `relation` is a name that the corpus knows, or a whole Relation for a file, in the column of that name or
    in `column`. `subsets` are the parts that mean and wmean average over: those that are named (other rows
    are left out), True for all that the rows name, False for none. An empty `metric` leaves the choice to the
    protocol. `asks` is the name that a model uses for the relation, if it is another one. `texts` is 2 for
    pairs and 1 for single texts that are classified. `records` are its rows, if they are in memory already.
    """

    name: str
    corpus: str = ""
    split: str = "test"
    relation: str | Relation = "similarity"
    subsets: bool | tuple[str, ...] = False
    metric: str = ""
    file: Path | None = None
    text_a: str | None = None
    text_b: str | None = None
    column: str | None = None
    asks: str = ""
    texts: int = 2
    records: tuple[Record, ...] | None = None

    @property
    def asked(self) -> str:
        """The model's name for the relation: its own name, unless corpora share one name for it."""
        return self.asks or self.relation_name

    def labels(self) -> Relation:
        """The relation itself, with its labels and label texts."""
        if isinstance(self.relation, Relation):
            return self.relation
        return next(one for one in find_corpus(self.corpus).relations if one.name == self.relation)

    @property
    def default_metric(self) -> str:
        """The default metric: the relation's own, if its kind is known."""
        known = [self.relation] if isinstance(self.relation, Relation) else find_corpus(self.corpus).relations
        return next((one.metric for one in known if one.name == self.relation_name), "")

    @property
    def relation_name(self) -> str:
        """The name under which records hold the rating or label."""
        return self.relation if isinstance(self.relation, str) else self.relation.name


def load_task(task: Task, *, data_dir: Path | str | None = None) -> list[Record]:
    """The records of a task, without the rows of subsets that it does not name."""
    if task.records is not None:
        records = list(task.records)
    elif task.file is not None:
        wanted = [task.relation] if isinstance(task.relation, Relation) else None
        columns = {task.relation_name: task.column} if task.column else None
        records = load_records(
            task.file,
            relations=wanted,
            text_a=task.text_a,
            text_b=task.text_b,
            columns=columns,
            pairs=task.texts == 2,
        )
    else:
        records = load_corpus(task.corpus, task.split, data_dir=data_dir)
    if isinstance(task.subsets, bool):
        return records
    present = {record.subset for record in records}
    absent = [subset for subset in task.subsets if subset not in present]
    if absent:
        raise EvaluationError(
            f"{task.name} has no subset {', '.join(absent)}. Its subsets are: {', '.join(sorted(present))}."
        )
    return [record for record in records if record.subset in task.subsets]


def task_files(task: Task, *, data_dir: Path | str | None = None) -> list[Path]:
    """The existing files that hold the rows of a task."""
    if task.file is not None:
        return [Path(task.file)]
    if task.records is not None:
        return []
    corpus = find_corpus(task.corpus)
    return split_files(corpus, corpus.find_split(task.split), data_dir)


class TaskRows:
    """The rows of a task that have a rating or label, and how to measure predictions for them."""

    def __init__(self, task: Task, records: Sequence[Record], protocol: Protocol) -> None:
        self.task, self.protocol = task, protocol
        self.metric = get_metric(task.metric or protocol.metric)
        name = task.relation_name
        self.records = [record for record in records if record.values.get(name) is not None]
        self.missing = len(records) - len(self.records)
        if not self.records:
            raise EvaluationError(
                f"{task.name}: none of {len(records)} rows has a value for "
                f"{name}. Check the relation's column."
            )
        if any(len(record.texts) != task.texts for record in self.records):
            wanted = (
                "two texts, but this task is about pairs"
                if task.texts == 2
                else "one text, but this task classifies single texts"
            )
            raise EvaluationError(f"{task.name}: some rows do not hold {wanted}.")
        self.gold = self._gold()
        self.subsets = tuple(record.subset if task.subsets else "" for record in self.records)

    def measure(self, predicted: NDArray[Any]) -> TaskResult:
        """The task's result for one prediction per row, shape (n,)."""
        return self.shown(self.measured(predicted))

    def measured(self, predicted: NDArray[Any]) -> Aggregate:
        """The task's value for one prediction per row, with each row's part in it."""
        predicted = self.comparable(predicted)
        metric, how = self.metric.name, self.protocol.aggregation
        sharing = row_sharing(len(self.records), texts=[record.texts for record in self.records])
        try:
            return aggregate(
                metric, how, gold=self.gold, predicted=predicted, subsets=self.subsets, sharing=sharing
            )
        except EvaluationError as error:
            raise EvaluationError(f"{self.task.name}: {error}") from error

    def shown(self, found: Aggregate) -> TaskResult:
        """A measured value as a result."""
        return TaskResult.shown(
            self.task.name,
            self.task.relation_name,
            metric=self.metric.name,
            found=found,
            n=len(self.records),
            fingerprint=fingerprint(self.records, self.task.relation_name),
            missing=self.missing,
            pairs=fingerprint(self.records),
        )

    def comparable(self, predicted: NDArray[Any]) -> NDArray[Any]:
        """Answers in the form that the metric compares. A number on an ordered scale becomes its nearest
        label.
        """
        if predicted.dtype.kind == "O":
            predicted = np.asarray(predicted.tolist())
        relation = self.task.relation
        numbers = self.metric.compares_labels and predicted.dtype.kind == "f"
        if numbers and isinstance(relation, Relation) and relation.kind == "ordered":
            return np.asarray(nearest_labels(relation, predicted))
        return predicted

    def _gold(self) -> NDArray[Any]:
        values = [record.values[self.task.relation_name] for record in self.records]
        if self.metric.compares_labels or not isinstance(values[0], str):
            return np.asarray(values)
        relation = self.task.relation
        if isinstance(relation, Relation) and relation.kind == "ordered":
            return np.asarray([relation.positions[relation.labels.index(str(value))] for value in values])
        raise EvaluationError(
            f"{self.task.name}: {self.task.relation_name} holds labels such as {values[0]!r}, but "
            f"{self.metric.name} compares numbers. Use accuracy, f1, f1-macro or matthews."
        )


def fingerprint(records: Sequence[Record], relation: str | None = None) -> str:
    """The sha256 of texts and ratings or labels, row by row. Two numbers with equal fingerprints are on the
    same data.

    Without a relation, it is the sha256 of the texts alone.
    """
    digest = hashlib.sha256()
    for record in records:
        gold = [] if relation is None else [record.values.get(relation)]
        digest.update(json.dumps([*record.texts, *gold]).encode() + b"\n")
    return digest.hexdigest()
