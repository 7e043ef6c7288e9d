"""Rows for a joint encoder: texts cut once, targets beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from likewise.errors import DataError, Problem
from likewise.methods.joint import JointModel
from likewise.records import Record
from likewise.training.loader import Item


class JointDataset(Dataset[Item]):
    """Inputs and targets of rated rows; an item is only its own address."""

    def __init__(self, records: Sequence[Record], model: JointModel) -> None:
        rated = [r for r in records if r.values.get(model.relation.name) is not None]
        _check(rated, model)
        self.inputs = model.cut([record.texts for record in rated])
        self.targets = [model.target(record.values[model.relation.name]) for record in rated]

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, item: Item) -> Item:  # type: ignore[override]
        return item

    @property
    def lengths(self) -> list[int]:
        """How many pieces each row has."""
        return [len(one["input_ids"]) for one in self.inputs]


def _check(rated: Sequence[Record], model: JointModel) -> None:
    name = model.relation.name
    if not rated:
        raise DataError([Problem(name, "no training row has a value for it", "name its column")])
    if odd := next((r for r in rated if len(r.texts) != model.texts), None):
        found = f"has {len(odd.texts)} text(s), the first row has {model.texts}"
        raise DataError([Problem(odd.source, found, "train on pairs, or on single texts")])
    values = {record.values[name] for record in rated}
    if len(rated) > 1 and len(values) == 1:
        found = f"{name!r} is {values.pop()} in all {len(rated):,} training rows"
        raise DataError([Problem(rated[0].source, found, "check the column")])


class JointCollate:
    """Rows of a step → JointModel.forward's arguments."""

    def __init__(self, dataset: JointDataset, model: JointModel) -> None:
        self._dataset, self._model = dataset, model

    def __call__(self, items: Sequence[Item]) -> dict[str, Any]:
        rows = [row for row, _, _ in items]
        targets = np.array([self._dataset.targets[row] for row in rows], dtype=np.float32)
        return {
            "inputs": self._model.batch([self._dataset.inputs[row] for row in rows]),
            "targets": torch.from_numpy(targets),
        }
