"""The dev score of a stage: the unweighted mean of each relation's metric on each dev set.

It is computed from the same `Answering` that users call, so a stage is selected by the answers it will give.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from likewise.answering import Answering, Numbers
from likewise.errors import DataError, EvaluationError, Problem
from likewise.evaluation.metrics import compute, get_metric
from likewise.kinds.base import FEWEST_BESIDE_OTHERS, DevSet
from likewise.records import Relation, nearest_labels
from likewise.spelling import spelt
from likewise.wording import WORST

if TYPE_CHECKING:
    from torch import nn

_log = logging.getLogger("likewise")

_Model = TypeVar("_Model", bound="nn.Module")

CORRELATIONS = ("spearman", "pearson")
# A best correlation on dev below this is no chance: answers fall where ratings rise.
_FALLING = -0.2


@dataclass(frozen=True, slots=True)
class Measured:
    """A relation that is measured on dev, and its metric.

    `borrowed` says that the dev ratings answer another question, such as STS ratings that select an NLI
    model. The cosine is measured against them; they do not show how well the relation itself is answered.
    """

    relation: Relation
    metric: str
    borrowed: bool = False

    @property
    def labels(self) -> bool:
        """Whether the metric compares labels."""
        return get_metric(self.metric).compares_labels


def dev_scorer(
    answering: Callable[[_Model], Answering],
    sets: Sequence[DevSet],
    measured: Callable[[_Model], Sequence[Measured]],
) -> Callable[[_Model], dict[str, float]]:
    """Make a function of the model that returns every dev number, and their mean as `score`.

    `answering` wraps the current model; it may keep tokens or vectors between two evaluation steps. All rows
    are asked for at once, so that each distinct text is encoded once.
    """
    rows = [record.texts for entry in sets for record in entry.records]

    def evaluate(model: _Model) -> dict[str, float]:
        training = model.training
        ready = answering(model.eval())
        found: dict[Measured, Numbers | list[str]] = {}
        for one in measured(model):
            if one.borrowed:
                found[one] = ready.embedding().cosines(rows)  # type: ignore[arg-type]
            else:
                found[one] = ready.answer(rows, one.relation.name).values
        model.train(training)
        return with_score(set_numbers(sets, found))

    return evaluate


def rates_another(relation: Relation, sets: Sequence[DevSet]) -> bool:
    """Whether dev has only numbers for a relation of labels; the numbers then rate another question."""
    values = [record.values.get(relation.name) for entry in sets for record in entry.records]
    given = [value for value in values if value is not None]
    return relation.kind == "ordered" and bool(given) and not any(isinstance(value, str) for value in given)


@dataclass(frozen=True, slots=True)
class DevPart:
    """The rated rows of one dev set for one relation: their places in the rows of all sets, their values."""

    name: str
    places: list[int]
    gold: list[Any]
    texts: list[tuple[str, ...]]


def measured_parts(one: Measured, sets: Sequence[DevSet]) -> list[DevPart]:
    """The dev sets on which a relation is measured.

    A small set is left out if there is a larger one: its number is mostly chance, and would weigh as much.
    """
    found, start = [], 0
    for entry in sets:
        values = [record.values.get(one.relation.name) for record in entry.records]
        seen = [row for row, value in enumerate(values) if value is not None]
        gold = [values[row] for row in seen]
        if tells_models_apart(one.metric, gold):
            texts = [entry.records[row].texts for row in seen]
            found.append(DevPart(entry.name, [start + row for row in seen], gold, texts))
        start += len(entry.records)
    large = [part for part in found if len(part.places) >= FEWEST_BESIDE_OTHERS]
    return large or found


def set_numbers(sets: Sequence[DevSet], answers: Mapping[Measured, Numbers | list[str]]) -> dict[str, float]:
    """Each relation's number on each dev set that rates it; `answers` cover the rows of all sets in order."""
    numbers: dict[str, float] = {}
    for one, values in answers.items():
        for part in measured_parts(one, sets):
            said = [values[place] for place in part.places]
            numbers[f"{one.metric} {one.relation.name} {part.name}"] = number_of(one, part.gold, said)
    return numbers


def with_score(numbers: Mapping[str, float]) -> dict[str, float]:
    """The numbers after their mean, `score`; for the mean, metrics that are better when low are negated."""
    signs = [
        value if get_metric(name.split(" ")[0]).higher_is_better else -value
        for name, value in numbers.items()
    ]
    if not signs:
        raise DataError("no dev row has a value for a relation that is learnt. Use other dev rows.")
    return {"score": float(np.mean(signs)), **numbers}


def comparable(one: Measured, gold: list[Any], said: list[Any]) -> tuple[list[Any], Any]:
    """The ratings and answers of the same rows, in the form that the metric compares."""
    relation = one.relation
    answers: Any = said if said and isinstance(said[0], str) else np.asarray(said, dtype=np.float64)
    if relation.kind == "ordered":
        if one.labels and not isinstance(answers, list):
            answers = nearest_labels(relation, answers)
        elif not one.labels:
            # Borrowed ratings are numbers already.
            gold = [
                relation.positions[relation.labels.index(value)] if isinstance(value, str) else value
                for value in gold
            ]
    return gold, answers


def number_of(one: Measured, gold: list[Any], said: list[Any]) -> float:
    """A relation's metric on rated rows; the worst value if all answers are alike."""
    try:
        return compute(one.metric, *comparable(one, gold, said))
    except EvaluationError:
        return WORST


def warn_if_falling(best: float | None, relations: Sequence[Relation]) -> None:
    """Warn if the answers fall where the ratings rise."""
    correlations = all(relation.metric in CORRELATIONS for relation in relations)
    if correlations and best is not None and WORST < best < _FALLING:
        _log.warning(
            "the best dev score is %.2f, so answers fall where ratings rise. If low ratings mean alike, "
            "reverse the scale. If the numbers are labels, declare them with %s.",
            best,
            spelt("relations", "NAME:classes"),
        )


def check_dev(sets: Sequence[DevSet], measured: Sequence[Measured]) -> None:
    """Raise an error if the dev rows cannot tell models apart, before anything is trained."""
    for entry in sets:
        for one in measured:
            gold = [v for r in entry.records if (v := r.values.get(one.relation.name)) is not None]
            if tells_models_apart(one.metric, gold):
                return
    names = ", ".join(entry.name for entry in sets)
    learnt = ", ".join(one.relation.name for one in measured)
    found = f"the dev set has too few ratings of {learnt} to select a model by, or they are all the same"
    raise DataError([Problem(names, found, "add dev pairs (stage.N.dev) or raise stage.N.dev_share")])


def tells_models_apart(metric: str, gold: Sequence[object]) -> bool:
    """Whether a metric is defined on these ratings: a correlation needs three that are not all the same."""
    return bool(gold) and (metric not in CORRELATIONS or (len(gold) > 2 and len(set(gold)) > 1))
