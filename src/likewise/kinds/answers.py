"""Choose the source of a relation's answers on the dev set: the cosine, the head, or the mean of both.

A least-squares line from a source's outputs to the ratings of the dev pairs first puts each source on the
relation's scale. Neither the line nor the ends of the scale change ranks, and answers lie where the ratings
lie, whatever the loss.

The cosine stays the source unless another one is better on dev by more than a standard error. With few dev
pairs the best of three numbers is often luck, and the cosine is better than a head that saw few pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.answering import COSINE, HEAD, MEAN, Numbers
from likewise.errors import EvaluationError
from likewise.evaluation.differences import difference_and_error
from likewise.evaluation.metrics import get_metric
from likewise.kinds.base import DevSet
from likewise.kinds.devscore import Measured, comparable, dev_scorer, measured_parts, number_of
from likewise.methods.pairs import AnswerChoice, PairModel
from likewise.predict.pairs import Predictor, cosine_model
from likewise.records import Relation, Value
from likewise.wording import WORST

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# With fewer dev pairs a line says less about the scale than training did. A cosine has no scale of its own.
_FEWEST_FOR_A_HEAD, _FEWEST = 20, 3
_FLAT = 1e-12
# What each source says of all dev rows about a relation, before a line.
Sayings = Callable[[str], Mapping[str, Numbers]]


def choose_answers(
    sayings: Sayings,
    sets: Sequence[DevSet],
    measured: Sequence[Measured],
    *,
    only: str | None = None,
) -> dict[str, AnswerChoice]:
    """Choose the best source for each numeric relation by its metric on dev, with the lines to its scale.

    Relations that are answered by labels and relations without dev ratings stay as they were trained.
    `only` names a single source to use.
    """
    rows = [record.values for entry in sets for record in entry.records]
    found = {}
    for one in measured:
        relation = one.relation
        if relation.kind == "classes" or one.borrowed:
            continue
        said = sayings(relation.name)
        rated = _Rated.of(one, sets)
        if not said or not rated.gold:
            continue
        gold = [_as_number(relation, values.get(relation.name)) for values in rows]
        lines = {source: _line(values, gold, relation, source) for source, values in said.items()}
        candidates = _candidates(lines, only if only in said else None)
        found[relation.name] = _chosen(candidates, said, rated)
    return found


def let_dev_choose(
    predictor: Predictor, sets: Sequence[DevSet], measured: Sequence[Measured], *, only: str | None = None
) -> None:
    """Set each relation's source in a pair model to the one that is best on dev."""
    rows = [record.texts for entry in sets for record in entry.records]
    predictor.model.answers |= choose_answers(
        lambda relation: predictor.said(rows, relation), sets, measured, only=only
    )


def pair_scorer(
    sets: Sequence[DevSet],
    measured: Callable[[PairModel], Sequence[Measured]],
    *,
    precision: str,
    only: str | None = None,
    moves_encoder: bool = True,
) -> Callable[[PairModel], dict[str, float]]:
    """Each relation's metric on each dev set, by the source that is best there; the model then uses it.

    Tokens of dev texts are kept between evaluation steps. Their vectors are kept too if the encoder stays as
    it is.
    """
    kept: list[Predictor] = []

    def answering(model: PairModel) -> Predictor:
        if not kept:
            kept.append(Predictor(model, precision=precision, cache=10**9, keep_tokens=True))
        elif moves_encoder:
            kept[0].forget()
        let_dev_choose(kept[0], sets, measured(model), only=only)
        return kept[0]

    return dev_scorer(answering, sets, measured)


def cosine_baseline(
    encoder: SentenceTransformer,
    relations: Sequence[Relation],
    sets: Sequence[DevSet],
    measured: Callable[[PairModel], Sequence[Measured]],
    precision: str,
) -> PairModel:
    """The raw encoder, which answers every relation by its cosine, put on the scale with the dev rows."""
    model = cosine_model(encoder, relations)
    let_dev_choose(Predictor(model, precision=precision), sets, measured(model))
    return model


def _candidates(lines: Mapping[str, tuple[float, float]], only: str | None) -> list[AnswerChoice]:
    """The sources to choose from, the cosine first."""
    sources = [source for source in (COSINE, HEAD) if source in lines and only in (None, source)]
    found = [AnswerChoice(source, dict(lines)) for source in sources]
    return [*found, AnswerChoice(MEAN, dict(lines))] if len(found) == 2 else found


def _chosen(candidates: Sequence[AnswerChoice], said: Mapping[str, Numbers], rated: _Rated) -> AnswerChoice:
    """The first candidate, or the best of the others if that is better by more than a standard error."""
    values = [answer.values(said, rated.one.relation) for answer in candidates]
    if len(candidates) == 1:
        return candidates[0]
    best = 1 + int(np.argmax([rated.measure(one) for one in values[1:]]))
    return candidates[best] if rated.surely_better(values[best], values[0]) else candidates[0]


@dataclass(frozen=True, slots=True)
class _Rated:
    """The dev rows that have a value of a relation, in sets on which its metric has a value."""

    one: Measured
    places: list[int]
    gold: list[Any]
    texts: list[tuple[str, ...]]
    sets: list[str]

    @classmethod
    def of(cls, one: Measured, sets: Sequence[DevSet]) -> _Rated:
        found = cls(one, [], [], [], [])
        for part in measured_parts(one, sets):
            found.places.extend(part.places)
            found.gold.extend(part.gold)
            found.texts.extend(part.texts)
            found.sets.extend([part.name] * len(part.places))
        return found

    def measure(self, values: Numbers) -> float:
        """The relation's metric as a mean over dev sets; its sign is set so that higher is better."""
        numbers = []
        for name in dict.fromkeys(self.sets):
            mine = [row for row, other in enumerate(self.sets) if other == name]
            said = [values[self.places[row]] for row in mine]
            numbers.append(number_of(self.one, [self.gold[row] for row in mine], said))
        return self._sign * float(np.mean(numbers))

    def surely_better(self, a: Numbers, b: Numbers) -> bool:
        """Whether a is better than b by more than the standard error of the difference."""
        try:
            gold, said_a = comparable(self.one, self.gold, list(a[self.places]))
            _, said_b = comparable(self.one, self.gold, list(b[self.places]))
            several = len(set(self.sets)) > 1
            difference, error = difference_and_error(
                self.one.metric,
                gold,
                said_a,
                said_b,
                texts=self.texts,
                subsets=self.sets if several else (),
                aggregation="mean" if several else "all",
            )
        except EvaluationError:  # one of them answers all rows alike, or the rows are too few
            return self.measure(a) > self.measure(b) == WORST
        return self._sign * difference > error

    @property
    def _sign(self) -> float:
        return 1.0 if get_metric(self.one.metric).higher_is_better else -1.0


def _as_number(relation: Relation, value: Value | None) -> float:
    """A rating as a number on the relation's scale; nan where there is none."""
    if relation.kind == "graded":
        return float(value) if isinstance(value, int | float) else np.nan
    known = isinstance(value, str) and value in relation.labels
    return float(relation.positions[relation.labels.index(str(value))]) if known else np.nan


def _line(said: Numbers, gold: Sequence[float], relation: Relation, source: str) -> tuple[float, float]:
    """The least-squares line from a source's outputs to the ratings.

    If there are too few ratings or the line would fall, a head stays as it was trained and a cosine of 0 to 1
    is stretched over the scale.
    """
    as_trained = (relation.hi - relation.lo, relation.lo) if source == COSINE else (1.0, 0.0)
    ratings = np.asarray(gold)
    seen = ~np.isnan(ratings)
    x, y = said[seen], ratings[seen]
    if len(x) < (_FEWEST if source == COSINE else _FEWEST_FOR_A_HEAD) or float(np.var(x)) < _FLAT:
        return as_trained
    slope = float(np.mean((x - x.mean()) * (y - y.mean())) / np.var(x))
    return (slope, float(y.mean() - slope * x.mean())) if slope > _FLAT else as_trained
