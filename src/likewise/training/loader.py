"""Records to batches: targets and tokens made once, every distinct text of a batch encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, Sampler

from likewise.data.batching import training_batches
from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts
from likewise.errors import DataError, Problem, UsageError
from likewise.methods.described import DESCRIBED
from likewise.methods.pairs import Objective
from likewise.records import Record
from likewise.schedules import relations_of_steps, steps_per_batch
from likewise.training.settings import FitSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# A row of a step: its number, the relations the step trains, and whether it only fills an empty rank.
Item = tuple[int, tuple[str, ...], bool]
# Chunks of one batch may differ this much in length before a new chunk is opened (CPU; a GPU takes one
# chunk).
_CHUNK_GROWTH = 1.3
_CHUNK_MINIMUM = 8


class PairDataset(Dataset[Item]):
    """Pairs with one target table per objective, held in memory; an item is only its own address."""

    def __init__(
        self,
        records: Sequence[Record],
        objectives: Sequence[Objective],
        *,
        groups: Sequence[int] | None = None,
    ) -> None:
        if not records:
            raise DataError(
                "no training pairs are left: check the files, the splits and the leak filter's report"
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

    def __getitem__(self, item: Item) -> Item:  # type: ignore[override]
        return item


def _check_spread(objectives: Sequence[Objective], records: Sequence[Record]) -> None:
    """Refuse relations that nothing can be learnt about: no rating at all, or one and the same everywhere."""
    files = list(dict.fromkeys(record.source.rpartition(":")[0] or "the table" for record in records))
    where = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    problems = []
    for name in dict.fromkeys(objective.relation.name for objective in objectives):
        values = [value for record in records if (value := record.values.get(name)) is not None]
        if not values:
            found = f"relation {name!r} has no rating in any of {len(records):,} training pairs"
            problems.append(Problem(where, found, "name its column, or drop the relation"))
        elif len(values) > 1 and len(set(values)) == 1:
            found = f"relation {name!r} is {values[0]} in all {len(values):,} rated training pairs"
            problems.append(Problem(where, found, "check the column, or drop the relation"))
    if problems:
        raise DataError(problems)


class StepSampler(Sampler[list[Item]]):
    """The steps of an epoch: global batches, repeated per relation for multi-task, sliced by rank."""

    def __init__(
        self,
        lengths: Sequence[int],
        relations: Sequence[str],
        settings: FitSettings,
        *,
        weights: Sequence[float] | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self._lengths = lengths
        self._relations = tuple(relations)
        self._settings = settings
        self._weights = weights
        self._rank, self._world = rank, world
        self._epoch = 0
        if settings.schedule == "multi-task" and settings.accumulation != 1:
            raise UsageError("schedule 'multi-task' takes one step per relation: accumulation must be 1")
        self._steps = len(self._batches(0)) * steps_per_batch(settings.schedule, self._relations)

    def _batches(self, epoch: int) -> list[list[int]]:
        return epoch_batches(self._lengths, self._settings, epoch, weights=self._weights)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration walks through."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[list[Item]]:
        chosen = self._settings
        for number, rows in enumerate(self._batches(self._epoch)):
            mine = rows[self._rank :: self._world]
            for active in relations_of_steps(
                chosen.schedule,
                self._relations,
                seed=chosen.seed,
                batch=self._epoch * self._steps + number,
                shuffle=chosen.shuffle_relations,
            ):
                yield [(row, active, False) for row in mine] or [(rows[0], active, True)]


def epoch_batches(
    lengths: Sequence[int], settings: FitSettings, epoch: int, *, weights: Sequence[float] | None = None
) -> list[list[int]]:
    """The batches of an epoch as a run's settings cut them."""
    return training_batches(
        lengths,
        batch_size=settings.batch_size,
        seed=settings.seed,
        epoch=epoch,
        order=settings.order,
        token_budget=settings.token_budget,
        weights=weights,
    )


class Anchors:
    """Vectors of all training texts before the first step, in half precision."""

    def __init__(self, encoder: SentenceTransformer, texts: Iterable[str], features: TextFeatures) -> None:
        distinct = list(dict.fromkeys(texts))
        self._place = {text: row for row, text in enumerate(distinct)}
        self._vectors = encode_texts(encoder, distinct, features=features).astype(np.float16)

    def take(self, texts: Sequence[str]) -> torch.Tensor:
        """Vectors of these texts, N×d."""
        return torch.from_numpy(self._vectors[[self._place[text] for text in texts]]).float()


class Collate:
    """Rows of a step → PairModel.forward's arguments."""

    def __init__(
        self, dataset: PairDataset, features: TextFeatures, *, chunked: bool, anchors: Anchors | None = None
    ) -> None:
        self._dataset = dataset
        self._features = features
        self._chunked = chunked
        self._anchors = anchors

    def __call__(self, items: Sequence[Item]) -> dict[str, Any]:
        rows = [row for row, _, _ in items]
        pairs = [self._dataset.texts[row] for row in rows]
        distinct = sorted(
            {text for pair in pairs for text in pair}, key=lambda text: (self._features.length(text), text)
        )
        place = {text: index for index, text in enumerate(distinct)}
        targets = {key: torch.from_numpy(table[rows]).float() for key, table in self._dataset.targets.items()}
        # On a GPU one chunk is faster.
        chunks = length_chunks(distinct, self._features) if self._chunked else [distinct]
        if items[0][2]:
            targets = {key: torch.full_like(target, torch.nan) for key, target in targets.items()}
        batch = {
            "chunks": [self._features.batch(chunk) for chunk in chunks],
            "a": torch.tensor([place[pair[0]] for pair in pairs]),
            "b": torch.tensor([place[pair[1]] for pair in pairs]),
            "targets": targets,
            "active": list(items[0][1]),
            "group": torch.from_numpy(self._dataset.groups[rows]),
            **self._descriptions(items[0][1]),
        }
        return batch if self._anchors is None else {**batch, "anchors": self._anchors.take(distinct)}

    def _descriptions(self, active: Sequence[str]) -> dict[str, Any]:
        """The descriptions of the step's relations, to be encoded with it."""
        said = {name: text for name, text in self._dataset.descriptions.items() if name in active}
        if not said:
            return {}
        return {"descriptions": self._features.batch(list(said.values())), "described": list(said)}


def length_chunks(distinct: Sequence[str], features: TextFeatures) -> Iterator[list[str]]:
    """Length-sorted texts, cut where padding would grow."""
    chunk: list[str] = []
    for text in distinct:
        longer = len(chunk) >= _CHUNK_MINIMUM and features.length(text) > _CHUNK_GROWTH * features.length(
            chunk[0]
        )
        if longer:
            yield chunk
            chunk = []
        chunk.append(text)
    yield chunk
