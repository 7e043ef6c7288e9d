"""What a model's steps are made of: its rows as a loader and a sampler, or only counted.

Every method has rows of its own; `fit` does not know which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from likewise import ranks
from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts
from likewise.errors import UsageError
from likewise.methods.injection import InjectionModel
from likewise.methods.joint import JointModel
from likewise.methods.label_embedding import LabelModel
from likewise.methods.pairs import PairModel
from likewise.phrases.joined import Joiner
from likewise.records import Record
from likewise.training.injection_steps import PhraseCollate, PhraseDataset, PhraseRows, PhraseSampler
from likewise.training.joint_steps import JointCollate, JointDataset
from likewise.training.label_steps import LabelCollate, LabelDataset, LabelSampler, rows_by_task
from likewise.training.loader import Anchors, Collate, PairDataset, StepSampler
from likewise.training.settings import FitSettings

Model = PairModel | LabelModel | JointModel | InjectionModel
# What a model learns from: rated or labelled rows, or aligned paraphrases.
Rows = Sequence[Record] | PhraseRows
AnySampler = StepSampler | LabelSampler | PhraseSampler
# Heads that scale measure their features on about so many pairs.
_MEASURED_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of every batch a process computes, and on what."""

    rank: int
    world: int
    chunked: bool  # whether a batch is cut into chunks of similar length: on a GPU one chunk is faster


@dataclass(frozen=True, slots=True)
class FitPlan:
    """What a run will do, known before its first step."""

    pairs: int
    steps_per_epoch: int
    steps: int
    relations: tuple[str, ...]


def plan(model: Model, rows: Rows, settings: FitSettings, weights: Sequence[float] | None = None) -> FitPlan:
    """Count steps without training: what is printed before step 0 and by --dry-run."""
    steps, count, names = _count(model, rows, settings, weights)
    updates = math.ceil(steps / settings.accumulation)
    return FitPlan(count, updates, settings.max_steps or math.ceil(updates * settings.epochs), names)


def _count(
    model: Any, rows: Rows, settings: FitSettings, weights: Sequence[float] | None
) -> tuple[int, int, tuple[str, ...]]:
    """Steps an epoch, rows, and what is learnt."""
    if isinstance(rows, PhraseRows):
        return len(PhraseSampler(rows.pairs, settings, random=model.draws_random)), len(rows), (model.learns,)
    if isinstance(model, LabelModel):
        by_task = rows_by_task(rows, model.learnt, weights=weights, max_words=model.max_words)
        sizes = {task: [len(text) for text in part.texts] for task, part in by_task.items()}
        names = tuple(task.name for task in model.tasks)
        return len(LabelSampler(by_task, sizes, settings)), sum(map(len, sizes.values())), names
    lengths = [max(len(text) for text in record.texts) for record in rows]
    if settings.token_budget is not None:
        measure = _measure(model)
        lengths = [max(measure(text) for text in record.texts) for record in rows]
    names = tuple(r.name for r in model.relations) if isinstance(model, JointModel) else _learnt_names(model)
    return len(StepSampler(lengths, names, settings, weights=weights)), len(rows), names


def _measure(model: PairModel | JointModel) -> Callable[[str], int]:
    """How many pieces a text has."""
    if isinstance(model, JointModel):
        return lambda text: len(model.tokenizer(text)["input_ids"])
    return TextFeatures(model.encoder).length


def _learnt_names(model: PairModel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(objective.relation.name for objective in model.learnt))


def make_loader(
    model: Model,
    rows: Rows,
    settings: FitSettings,
    share: Share,
    *,
    weights: Sequence[float] | None = None,
    groups: Sequence[int] | None = None,
) -> tuple[DataLoader[Any], AnySampler]:
    """The batches of a model's rows, and what decides their order."""
    if isinstance(model, InjectionModel) and isinstance(rows, PhraseRows):
        return _phrase_loader(model, rows, settings, share)
    if isinstance(model, InjectionModel) or isinstance(rows, PhraseRows):
        raise UsageError(
            "aligned paraphrases are learnt by an InjectionModel, and an InjectionModel learns them"
        )
    if isinstance(model, LabelModel):
        return _label_loader(model, rows, settings, share, weights)
    if isinstance(model, JointModel):
        return _joint_loader(model, rows, settings, share, weights)
    return _pair_loader(model, rows, settings, share, weights, groups)


def _phrase_loader(
    model: InjectionModel, rows: PhraseRows, settings: FitSettings, share: Share
) -> tuple[DataLoader[Any], PhraseSampler]:
    sampler = PhraseSampler(
        rows.pairs, settings, random=model.draws_random, rank=share.rank, world=share.world
    )
    anchors = None
    if model.two_tower and settings.anchor:
        model.anchor = settings.anchor
        texts = [text for pair in rows.pairs for text in (pair.a.text, pair.b.text)]
        features = TextFeatures(model.encoder)
        features.add(texts)
        anchors = Anchors(model.encoder, texts, features)
    collate = PhraseCollate(rows, Joiner(model.encoder.tokenizer), model, anchors)
    return DataLoader(PhraseDataset(rows), batch_sampler=sampler, collate_fn=collate), sampler


def _joint_loader(
    model: JointModel,
    records: Sequence[Record],
    settings: FitSettings,
    share: Share,
    weights: Sequence[float] | None,
) -> tuple[DataLoader[Any], StepSampler]:
    dataset = JointDataset(records, model)
    sampler = StepSampler(
        dataset.lengths,
        (model.relation.name,),
        settings,
        weights=weights,
        rank=share.rank,
        world=share.world,
    )
    return DataLoader(dataset, batch_sampler=sampler, collate_fn=JointCollate(dataset, model)), sampler


def _label_loader(
    model: LabelModel,
    records: Sequence[Record],
    settings: FitSettings,
    share: Share,
    weights: Sequence[float] | None,
) -> tuple[DataLoader[Any], LabelSampler]:
    dataset = LabelDataset(rows_by_task(records, model.learnt, weights=weights, max_words=model.max_words))
    features = TextFeatures(model.encoder)
    features.add(text for part in dataset.rows.values() for text in part.texts)
    lengths = {task: [features.length(text) for text in part.texts] for task, part in dataset.rows.items()}
    sampler = LabelSampler(dataset.rows, lengths, settings, rank=share.rank, world=share.world)
    collate = LabelCollate(model, dataset, features, chunked=share.chunked)
    return DataLoader(dataset, batch_sampler=sampler, collate_fn=collate), sampler


def _pair_loader(
    model: PairModel,
    records: Sequence[Record],
    settings: FitSettings,
    share: Share,
    weights: Sequence[float] | None,
    groups: Sequence[int] | None,
) -> tuple[DataLoader[Any], StepSampler]:
    dataset = PairDataset(records, model.learnt, groups=groups)
    features = TextFeatures(model.encoder)
    features.add(text for pair in dataset.texts for text in pair)
    lengths = [max(features.length(text) for text in pair) for pair in dataset.texts]
    sampler = StepSampler(
        lengths,
        _learnt_names(model),
        settings,
        weights=weights,
        rank=share.rank,
        world=share.world,
    )
    model.anchor = settings.anchor
    model.set_weighting(settings.weighting)
    _scale_features(model, dataset, features)
    anchors = (
        Anchors(model.encoder, (t for pair in dataset.texts for t in pair), features)
        if settings.anchor
        else None
    )
    collate = Collate(dataset, features, chunked=share.chunked, anchors=anchors)
    return DataLoader(dataset, batch_sampler=sampler, collate_fn=collate), sampler


def _scale_features(model: PairModel, dataset: PairDataset, features: TextFeatures) -> None:
    """Let heads that want it measure their features on pairs spread evenly over the data."""
    waiting = model.to_scale()
    if not waiting:
        return
    every = math.ceil(len(dataset) / _MEASURED_PAIRS)
    pairs = dataset.texts[::every]
    vectors = encode_texts(model.encoder, [text for pair in pairs for text in pair], features=features)
    u, v = (torch.from_numpy(vectors[side::2]) for side in (0, 1))
    for key, layer in waiting.items():
        layer.measure(ranks.from_first(model.pairings[key].split(u, v)))
