"""Labelled texts to steps: a step is a batch of one task, tasks take turns at random.

METHODS 3.4: every task is cut into batches; each step takes a random task and a batch of it that was not used
yet; an epoch ends when all are used. Batches hold texts of similar length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from likewise.data.batching import training_batches
from likewise.encoders.features import TextFeatures
from likewise.errors import DataError, Problem
from likewise.methods.label_embedding import LabelModel, shorten
from likewise.records import Record, Relation
from likewise.training.loader import length_chunks
from likewise.training.settings import FitSettings


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The texts of one task, their labels by number, how often each is drawn."""

    texts: list[str]
    labels: list[int]
    weights: list[float] | None


def rows_by_task(
    records: Sequence[Record],
    tasks: Sequence[Relation],
    *,
    weights: Sequence[float] | None = None,
    max_words: int | None = None,
) -> dict[str, TaskRows]:
    """Labelled texts per task; a text that several tasks label is in each of them."""
    found = {}
    for task in tasks:
        rows = [n for n, record in enumerate(records) if record.values.get(task.name) is not None]
        labels = [str(records[n].values[task.name]) for n in rows]
        _check(task, labels)
        found[task.name] = TaskRows(
            [shorten(records[n].texts[0], max_words) for n in rows],
            [task.labels.index(label) for label in labels],
            None if weights is None else [weights[n] for n in rows],
        )
    return found


def _check(task: Relation, labels: Sequence[str]) -> None:
    if not labels:
        raise DataError([Problem(task.name, "no training text has a label of this task", "name its column")])
    if len(set(labels)) == 1 and len(labels) > 1:
        found = f"all {len(labels):,} training texts are {labels[0]!r}"
        raise DataError([Problem(task.name, found, "check the column, or drop the task")])


class LabelDataset(Dataset[tuple[str, int]]):
    """Addresses of labelled texts: (task, row)."""

    def __init__(self, rows: Mapping[str, TaskRows]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return sum(len(part.texts) for part in self.rows.values())

    def __getitem__(self, item: tuple[str, int]) -> tuple[str, int]:  # type: ignore[override]
        return item


class LabelSampler(Sampler[list[tuple[str, int]]]):
    """The steps of an epoch, a function of (seed, epoch)."""

    def __init__(
        self,
        rows: Mapping[str, TaskRows],
        lengths: Mapping[str, Sequence[int]],
        settings: FitSettings,
        *,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self._rows, self._lengths, self._settings = rows, lengths, settings
        self._rank, self._world = rank, world
        self._epoch = 0
        self._steps = len(self._batches(0))

    def _batches(self, epoch: int) -> list[tuple[str, list[int]]]:
        chosen = self._settings
        waiting = {
            task: training_batches(
                self._lengths[task],
                batch_size=chosen.batch_size,
                seed=chosen.seed + number,
                epoch=epoch,
                order=chosen.order,
                token_budget=chosen.token_budget,
                weights=part.weights,
            )
            for number, (task, part) in enumerate(self._rows.items())
        }
        return list(take_turns(waiting, np.random.default_rng([chosen.seed, epoch, 3])))

    def set_epoch(self, epoch: int) -> None:
        """Walk the batches of this epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[list[tuple[str, int]]]:
        for task, batch in self._batches(self._epoch):
            mine = batch[self._rank :: self._world] or batch[:1]
            yield [(task, row) for row in mine]


def take_turns(
    waiting: Mapping[str, list[list[int]]], rng: np.random.Generator
) -> Iterator[tuple[str, list[int]]]:
    """A random task that still has batches, then its next batch, until none has any."""
    left = {task: list(reversed(batches)) for task, batches in waiting.items() if batches}
    while left:
        task = list(left)[int(rng.integers(len(left)))]
        yield task, left[task].pop()
        if not left[task]:
            del left[task]


class LabelCollate:
    """A step's rows → LabelModel.forward's arguments."""

    def __init__(
        self, model: LabelModel, dataset: LabelDataset, features: TextFeatures, *, chunked: bool
    ) -> None:
        self._dataset, self._features, self._chunked = dataset, features, chunked
        self._labels = label_inputs(model)

    def __call__(self, items: Sequence[tuple[str, int]]) -> dict[str, Any]:
        task = items[0][0]
        part = self._dataset.rows[task]
        texts = [part.texts[row] for _, row in items]
        distinct = sorted(set(texts), key=lambda text: (self._features.length(text), text))
        place = {text: index for index, text in enumerate(distinct)}
        chunks = length_chunks(distinct, self._features) if self._chunked else [distinct]
        return {
            "task": task,
            "chunks": [self._features.batch(chunk) for chunk in chunks],
            "rows": torch.tensor([place[text] for text in texts]),
            "targets": torch.tensor([part.labels[row] for _, row in items]),
            **self._labels.get(task, {}),
        }


def label_inputs(model: LabelModel) -> dict[str, dict[str, Any]]:
    """Per task the label texts as the label encoder reads them, and the label that each of them says."""
    if not model.reads_labels:
        return {}
    features = TextFeatures(model.label_encoder or model.encoder)
    made = {}
    for task in model.tasks:
        ways = [(way, number) for number, ways in enumerate(task.label_texts) for way in ways]
        owners = torch.tensor([number for _, number in ways])
        made[task.name] = {"labels": features.batch([way for way, _ in ways]), "owners": owners}
    return made
