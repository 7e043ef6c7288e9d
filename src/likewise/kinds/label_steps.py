"""Labelled texts to steps: a step is a batch of one task, tasks take turns at random.

Every task is cut into batches; each step takes a random task and a batch of it that was not used
yet; an epoch ends when all are used. Batches hold texts of similar length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from likewise.encoders.features import TextFeatures
from likewise.errors import DataError, Problem
from likewise.kinds.chunks import DistinctTexts
from likewise.methods.label_embedding import LabelModel, shorten
from likewise.records import Record, Relation
from likewise.training.sampler import Batches, Share, epoch_batches
from likewise.training.settings import FitSettings

# A row of a step: its task, its number among the task's texts, and whether it only fills an empty rank.
LabelItem = tuple[str, int, bool]


@dataclass(frozen=True, slots=True)
class TaskTexts:
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
) -> dict[str, TaskTexts]:
    """Labelled texts per task; a text that several tasks label is in each of them."""
    found = {}
    for task in tasks:
        rows = [n for n, record in enumerate(records) if record.values.get(task.name) is not None]
        labels = [str(records[n].values[task.name]) for n in rows]
        _check(task, labels)
        found[task.name] = TaskTexts(
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


@dataclass(frozen=True, slots=True)
class LabelSteps:
    """The steps of an epoch, a function of (seed, epoch): a batch of one task each, tasks in random turns."""

    rows: Mapping[str, TaskTexts]
    lengths: Mapping[str, Sequence[int]]
    settings: FitSettings

    def count(self) -> int:
        """Steps an epoch."""
        return sum(1 for _ in self.of_epoch(0))

    def of_epoch(self, epoch: int) -> Iterator[list[LabelItem]]:
        """The steps of one epoch."""
        chosen = self.settings
        waiting = {
            task: epoch_batches(
                self.lengths[task], replace(chosen, seed=chosen.seed + number), epoch, weights=part.weights
            )
            for number, (task, part) in enumerate(self.rows.items())
        }
        for task, batch in take_turns(waiting, np.random.default_rng([chosen.seed, epoch, 3])):
            yield [(task, row, False) for row in batch]


def idle_text(items: Sequence[LabelItem]) -> list[LabelItem]:
    """What an idle process computes: a row that weighs nothing."""
    task, row, _ = items[0]
    return [(task, row, True)]


def label_batches(
    model: LabelModel,
    records: Sequence[Record],
    settings: FitSettings,
    share: Share,
    *,
    weights: Sequence[float] | None = None,
) -> Batches:
    """The batches of labelled texts."""
    rows = rows_by_task(records, model.learnt, weights=weights, max_words=model.max_words)
    features = TextFeatures(model.encoder)
    features.add(text for part in rows.values() for text in part.texts)
    lengths = {task: [features.length(text) for text in part.texts] for task, part in rows.items()}
    steps = LabelSteps(rows, lengths, settings)
    collate = LabelCollate(model, rows, features, chunked=share.chunked)
    return Batches(len(records), steps.count(), steps.of_epoch, collate, idle_text)


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
        self, model: LabelModel, rows: Mapping[str, TaskTexts], features: TextFeatures, *, chunked: bool
    ) -> None:
        self._rows = rows
        self._distinct = partial(DistinctTexts, features=features, chunked=chunked)
        self._labels = label_inputs(model)

    def __call__(self, items: Sequence[LabelItem]) -> dict[str, Any]:
        task, _, idle = items[0]
        part = self._rows[task]
        texts = [part.texts[row] for _, row, _ in items]
        distinct = self._distinct(texts)
        return {
            "task": task,
            "chunks": distinct.chunks,
            "rows": distinct.rows(texts),
            "targets": torch.tensor([part.labels[row] for _, row, _ in items]),
            "idle": idle,
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
