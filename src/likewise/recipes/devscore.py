"""The dev number a stage is selected by: each relation's metric on each dev set, then the plain mean."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from likewise.answering import Vectors
from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts
from likewise.errors import DataError, EvaluationError, Problem
from likewise.evaluation.metrics import compute, get_metric
from likewise.heads import CosineHead
from likewise.losses import LOSSES
from likewise.methods.pairs import PairModel
from likewise.recipes.schema_stages import StageSpec
from likewise.records import Record, Relation, nearest_labels
from likewise.wording import WORST

if TYPE_CHECKING:
    from torch import Tensor

_log = logging.getLogger("likewise")

CORRELATIONS = ("spearman", "pearson")
# A best correlation on dev below this is no chance: answers fall where ratings rise.
_FALLING = -0.2


@dataclass(frozen=True, slots=True)
class DevSet:
    """A named list of rated pairs."""

    name: str
    records: Sequence[Record]


def warn_if_falling(best: float | None, relations: Sequence[Relation]) -> None:
    """A model that learnt the wrong way round is not handed over without a word."""
    correlations = all(relation.metric in CORRELATIONS for relation in relations)
    if correlations and best is not None and WORST < best < _FALLING:
        _log.warning(
            "the best dev score is %.2f: answers fall where ratings rise. Turn a scale round on which low "
            "means alike; if its numbers are labels: --relation NAME:classes",
            best,
        )


def dev_scorer(
    stage: StageSpec, sets: Sequence[DevSet], *, precision: str = "fp32"
) -> Callable[[PairModel], dict[str, float]]:
    """A function of the model that gives every dev number, and their mean as `score`.

    Where heads are solved over an encoder that stays as it is, dev texts are encoded once.
    """
    texts = list(dict.fromkeys(text for entry in sets for record in entry.records for text in record.texts))
    features: list[TextFeatures] = []
    kept: list[Vectors] = []

    def evaluate(model: PairModel) -> dict[str, float]:
        if not features:
            features.append(TextFeatures(model.encoder))
        if not kept or stage.optimiser != "exact":
            kept[:] = [encode_texts(model.encoder, texts, precision=precision, features=features[0])]
        vectors = kept[0]
        said = model.describe(partial(encode_texts, model.encoder, precision=precision, features=features[0]))
        place = {text: row for row, text in enumerate(texts)}
        numbers: dict[str, float] = {}
        for entry in sets:
            rows = [(place[record.a], place[record.b]) for record in entry.records]
            u, v = vectors[[a for a, _ in rows]], vectors[[b for _, b in rows]]
            numbers |= _set_numbers(model, stage, entry, u, v, said)
        signs = {
            name: value if get_metric(name.split(" ")[0]).higher_is_better else -value
            for name, value in numbers.items()
        }
        return {"score": float(np.mean(list(signs.values()))), **numbers}

    return evaluate


def check_dev(stage: StageSpec, sets: Sequence[DevSet], relations: Sequence[Relation]) -> None:
    """Refuse dev pairs that cannot tell a good model from a bad one, before anything is trained."""
    for entry in sets:
        for relation in relations:
            gold = [value for r in entry.records if (value := r.values.get(relation.name)) is not None]
            if tells_models_apart(stage.select_metric or relation.metric, gold):
                return
    names = ", ".join(entry.name for entry in sets)
    learnt = ", ".join(relation.name for relation in relations)
    found = f"too few ratings of {learnt} to select by, or all of them the same"
    raise DataError(
        [Problem(names, found, "give more dev pairs (stage.N.dev), or a larger stage.N.dev_share")]
    )


def tells_models_apart(metric: str, gold: Sequence[object]) -> bool:
    """Whether a metric has a value on these ratings: a correlation needs three, not all the same."""
    return bool(gold) and (metric not in CORRELATIONS or (len(gold) > 2 and len(set(gold)) > 1))


def settle_cosines(model: PairModel, sets: Sequence[DevSet], *, precision: str = "fp32") -> None:
    """Fit the line from cosine to rating (least squares on dev) for heads whose loss only ranks.

    Ranks do not change, so no number on dev or test does; answers land on the relation's own scale.
    """
    free = {o.relation.name: o for o in reversed(model.objectives) if o.head in ("cosine", "contrast")}
    for objective in free.values():
        head = model.heads[objective.head_key]
        if isinstance(head, CosineHead):
            head.set_line(1.0, 0.0)  # a line of an earlier stage no longer holds
        # Ordered relations may be selected on ratings borrowed from another scale: those are no labels of it.
        rated = int | float if objective.relation.kind == "graded" else str
        rows = [
            r
            for entry in sets
            for r in entry.records
            if isinstance(r.values.get(objective.relation.name), rated)
        ]
        if not LOSSES[objective.loss].ranks or len(rows) < 3 or not isinstance(head, CosineHead):
            continue
        gold = objective.codec().encode_many([r.values[objective.relation.name] for r in rows])[:, 0]
        u, v = (
            encode_texts(model.encoder, [r.texts[side] for r in rows], precision=precision) for side in (0, 1)
        )
        cosine = (u * v).sum(1) / np.maximum(np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1), 1e-12)
        slope = float(np.cov(cosine, gold)[0, 1] / max(float(cosine.var(ddof=1)), 1e-12))
        if slope > 0:
            head.set_line(slope, float(gold.mean() - slope * cosine.mean()))


def _set_numbers(
    model: PairModel,
    stage: StageSpec,
    entry: DevSet,
    u: np.ndarray,
    v: np.ndarray,
    said: Mapping[str, Tensor],
) -> dict[str, float]:
    """Each relation's number on a dev set; `said` are descriptions as vectors, by relation."""
    numbers = {}
    for relation in model.relations:
        gold = [record.values.get(relation.name) for record in entry.records]
        seen = [row for row, value in enumerate(gold) if value is not None]
        metric = stage.select_metric or relation.metric
        if not tells_models_apart(metric, [gold[row] for row in seen]):
            continue
        try:
            numbers[f"{metric} {relation.name} {entry.name}"] = _number(
                model,
                relation,
                metric,
                stage.select_source,
                [gold[row] for row in seen],
                u[seen],
                v[seen],
                said,
            )
        except EvaluationError:
            numbers[f"{metric} {relation.name} {entry.name}"] = WORST
    return numbers


def _number(
    model: PairModel,
    relation: Relation,
    metric: str,
    source: str | None,
    gold: list[object],
    u: np.ndarray,
    v: np.ndarray,
    said: Mapping[str, Tensor],
) -> float:
    import torch

    left, right = (torch.from_numpy(x).to(model.encoder.device) for x in (u, v))
    labels = get_metric(metric).kind == "labels"
    if source == "cosine" and not labels:
        predicted: object = torch.nn.functional.cosine_similarity(left, right, dim=-1).double().cpu().numpy()
    else:
        objective = model.answering(relation.name, source)
        predicted = model.answer(objective, left, right, description=said.get(relation.name))
    if relation.kind == "ordered":
        if labels and not isinstance(predicted, list):
            predicted = nearest_labels(relation, np.asarray(predicted))
        elif not labels:
            # A dev set may rate the pairs on another, graded scale (NLI selected on STS): numbers stay as
            # they are.
            gold = [
                relation.positions[relation.labels.index(value)] if isinstance(value, str) else value
                for value in gold
            ]
    return compute(metric, gold, predicted)  # type: ignore[arg-type]
