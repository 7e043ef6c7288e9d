"""Make training steps from rated pairs. Each distinct text of a batch is encoded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise import ranks
from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts
from likewise.errors import DataError, Problem, UsageError
from likewise.heads import ScalarHead
from likewise.kinds.chunks import Anchors, DistinctTexts
from likewise.methods.described import DESCRIBED
from likewise.methods.pairs import Objective, PairModel
from likewise.records import Record
from likewise.schedules import relations_of_steps, steps_per_batch
from likewise.training.sampler import Batches, Share, epoch_batches
from likewise.training.settings import FitSettings

# A row of a step: its number, the relations the step trains, and whether it only fills an empty rank.
PairItem = tuple[int, tuple[str, ...], bool]
# Heads that scale measure their features on about so many pairs.
_MEASURED_PAIRS = 1000
# With fewer rated pairs a line from cosine to rating says nothing.
_FEWEST_FOR_A_LINE = 3


class RatedPairs:
    """Pairs in memory, with a table of targets for each objective."""

    def __init__(
        self,
        records: Sequence[Record],
        objectives: Sequence[Objective],
        *,
        groups: Sequence[int] | None = None,
    ) -> None:
        if not records:
            raise DataError(
                "no training pairs are left. Check the files, the splits and what the leak filter dropped."
            )
        self.texts = [record.texts for record in records]
        self.groups = np.asarray(groups if groups is not None else [0] * len(records))
        self.targets: dict[str, NDArray[np.float64]] = {}
        sources = [record.source for record in records]
        for objective in objectives:
            values = [record.values.get(objective.relation.name) for record in records]
            self.targets[objective.target_key] = objective.codec().encode_many(values, sources)
        # Relation → what its head reads about it.
        self.descriptions = {
            o.relation.name: o.relation.description for o in objectives if o.head == DESCRIBED
        }
        _check_spread(objectives, records)

    def __len__(self) -> int:
        return len(self.texts)


def _check_spread(objectives: Sequence[Objective], records: Sequence[Record]) -> None:
    """Raise an error for relations that have no rating, or the same rating everywhere."""
    files = list(dict.fromkeys(record.source.rpartition(":")[0] or "the table" for record in records))
    where = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    problems = []
    # An objective without weight learns nothing: its relation is answered as the stage found it.
    for name in dict.fromkeys(one.relation.name for one in objectives if one.weight):
        values = [value for record in records if (value := record.values.get(name)) is not None]
        if not values:
            found = f"relation {name!r} has no rating in any of the {len(records):,} training pairs"
            problems.append(Problem(where, found, "name its column, or remove the relation"))
        elif len(values) > 1 and len(set(values)) == 1:
            found = f"relation {name!r} is {values[0]} in all {len(values):,} rated training pairs"
            problems.append(Problem(where, found, "check the column, or remove the relation"))
    if problems:
        raise DataError(problems)


def learnt_names(model: PairModel) -> tuple[str, ...]:
    """The names of the relations that are being trained, each once."""
    return tuple(dict.fromkeys(objective.relation.name for objective in model.learnt))


@dataclass(frozen=True, slots=True)
class PairSteps:
    """The steps of an epoch: batches of rows, repeated for each relation with the multi-task schedule."""

    lengths: Sequence[int]
    relations: tuple[str, ...]
    settings: FitSettings
    weights: Sequence[float] | None = None

    def count(self) -> int:
        """The number of steps in an epoch."""
        chosen = self.settings
        if chosen.schedule == "multi-task" and chosen.accumulation != 1:
            raise UsageError(
                f"accumulation is {self.settings.accumulation}, but schedule 'multi-task' takes one step per "
                "relation. Set accumulation to 1."
            )
        batches = epoch_batches(self.lengths, chosen, 0, weights=self.weights)
        return len(batches) * steps_per_batch(chosen.schedule, self.relations)

    def of_epoch(self, epoch: int) -> Iterator[list[PairItem]]:
        """The steps of one epoch."""
        chosen = self.settings
        batches = epoch_batches(self.lengths, chosen, epoch, weights=self.weights)
        # Every epoch has as many batches: the draw of relations goes by the number of steps before it.
        steps = len(batches) * steps_per_batch(chosen.schedule, self.relations)
        for number, rows in enumerate(batches):
            for active in relations_of_steps(
                chosen.schedule,
                self.relations,
                seed=chosen.seed,
                batch=epoch * steps + number,
                shuffle=chosen.shuffle_relations,
            ):
                yield [(row, active, False) for row in rows]


def idle_pair(items: Sequence[PairItem]) -> list[PairItem]:
    """The row that an idle process computes; its targets are hidden, so it has no weight."""
    row, active, _ = items[0]
    return [(row, active, True)]


def row_lengths(records: Sequence[Record], measure: Callable[[str], int] = len) -> list[int]:
    """The length of the longer text of each row, in characters or as `measure` counts."""
    return [max(measure(text) for text in record.texts) for record in records]


def pair_batches(
    model: PairModel,
    records: Sequence[Record],
    settings: FitSettings,
    share: Share,
    *,
    weights: Sequence[float] | None = None,
    groups: Sequence[int] | None = None,
    features: TextFeatures | None = None,
) -> Batches:
    """The batches of rated pairs; heads that scale their features are given the features' spread first."""
    rated = RatedPairs(records, model.learnt, groups=groups)
    features = features or TextFeatures(model.encoder)
    features.add(text for pair in rated.texts for text in pair)
    lengths = [max(features.length(text) for text in pair) for pair in rated.texts]
    steps = PairSteps(lengths, learnt_names(model), settings, weights)
    model.anchor = settings.anchor
    model.set_weighting(settings.weighting)
    _scale_features(model, rated, features)
    anchors = (
        Anchors(model.encoder, (t for pair in rated.texts for t in pair), features)
        if settings.anchor
        else None
    )
    collate = PairCollate(rated, features, chunked=share.chunked, anchors=anchors)
    return Batches(len(rated), steps.count(), steps.of_epoch, collate, idle_pair)


class PairCollate:
    """Turn the rows of a step into the arguments of PairModel.forward."""

    def __init__(
        self, rated: RatedPairs, features: TextFeatures, *, chunked: bool, anchors: Anchors | None = None
    ) -> None:
        self._rated, self._anchors = rated, anchors
        self._features = features
        self._distinct = partial(DistinctTexts, features=features, chunked=chunked)

    def __call__(self, items: Sequence[PairItem]) -> dict[str, Any]:
        rows = [row for row, _, _ in items]
        pairs = [self._rated.texts[row] for row in rows]
        distinct = self._distinct(text for pair in pairs for text in pair)
        targets = {key: torch.from_numpy(table[rows]).float() for key, table in self._rated.targets.items()}
        if items[0][2]:
            targets = {key: torch.full_like(target, torch.nan) for key, target in targets.items()}
        batch = {
            "chunks": distinct.chunks,
            "a": distinct.rows(pair[0] for pair in pairs),
            "b": distinct.rows(pair[1] for pair in pairs),
            "targets": targets,
            "active": list(items[0][1]),
            "group": torch.from_numpy(self._rated.groups[rows]),
            **self._descriptions(items[0][1]),
        }
        return batch if self._anchors is None else {**batch, "anchors": self._anchors.take(distinct.texts)}

    def _descriptions(self, active: Sequence[str]) -> dict[str, Any]:
        """The descriptions of the step's relations, which are encoded with it."""
        said = {name: text for name, text in self._rated.descriptions.items() if name in active}
        if not said:
            return {}
        return {"descriptions": self._features.batch(list(said.values())), "described": list(said)}


def _scale_features(model: PairModel, rated: RatedPairs, features: TextFeatures) -> None:
    """Let heads that scale their features measure them on pairs spread evenly over the data."""
    waiting = model.to_scale()
    if not waiting:
        return
    every = math.ceil(len(rated) / _MEASURED_PAIRS)
    pairs = rated.texts[::every]
    vectors = encode_texts(model.encoder, [text for pair in pairs for text in pair], features=features)
    u, v = (torch.from_numpy(vectors[side::2]) for side in (0, 1))
    for key, layer in waiting.items():
        parts = ranks.from_first(model.pairings[key].split(u, v))
        layer.measure(parts)
        _begin_at_cosine(model, key, parts, {name: table[::every] for name, table in rated.targets.items()})


def _begin_at_cosine(
    model: PairModel, key: str, parts: Sequence[Tensor], targets: Mapping[str, NDArray[np.float64]]
) -> None:
    """Start a linear head of one number that sees the cosine as the line from the cosine to the ratings.

    Before training it then ranks pairs as the cosine does, and learns only what the cosine leaves out.
    """
    head, names = model.heads[key], model.pairings[key].parts
    if not (isinstance(head, ScalarHead) and head.single and "cosine" in names):
        return
    place = names.index("cosine")
    cosine = parts[place][:, 0].double().numpy()
    rating = next(targets[o.target_key] for o in model.objectives if o.head_key == key)[:, 0]
    seen = ~np.isnan(rating)
    if seen.sum() < _FEWEST_FOR_A_LINE or np.ptp(cosine[seen]) == 0:
        return
    slope, offset = np.polyfit(cosine[seen], rating[seen], 1)
    column = sum(part.shape[1] for part in parts[:place])
    head.begin_on_line(column, float(slope), float(offset))
