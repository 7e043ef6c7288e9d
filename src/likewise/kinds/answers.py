"""What answers a relation: the cosine, the head, or the mean of both, whichever is best on dev pairs.

Each candidate is first put on the relation's scale by the line of least squares from what it says to what
people said of the dev pairs. No rank changes by it, and answers lie where ratings lie, whatever the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from likewise.answering import COSINE, HEAD, MEAN, Numbers
from likewise.evaluation.metrics import get_metric
from likewise.kinds.base import DevSet
from likewise.kinds.devscore import Measured, number_of, tells_models_apart
from likewise.methods.pairs import Answer
from likewise.predict.pairs import Predictor
from likewise.records import Relation, Value

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
) -> dict[str, Answer]:
    """The best source of each relation of numbers, by its own metric on dev, with the lines to its scale.

    Relations that are answered by labels stay as they were trained. `only` names the one source allowed.
    """
    rows = [record.values for entry in sets for record in entry.records]
    found = {}
    for one in measured:
        relation = one.relation
        if relation.kind == "classes":
            continue
        said = sayings(relation.name)
        if not said:
            continue
        gold = [_as_number(relation, values.get(relation.name)) for values in rows]
        lines = {source: _line(values, gold, relation, source) for source, values in said.items()}
        candidates = _candidates(lines, only if only in said else None)
        values = [_measure(answer.values(said, relation), one, sets) for answer in candidates]
        if values and not np.isnan(max(values)):
            found[relation.name] = candidates[int(np.argmax(values))]  # the first of equals
    return found


def let_dev_choose(
    predictor: Predictor, sets: Sequence[DevSet], measured: Sequence[Measured], *, only: str | None = None
) -> None:
    """Let a model of pairs answer from now on by what is best on dev."""
    rows = [record.texts for entry in sets for record in entry.records]
    predictor.model.answers |= choose_answers(
        lambda relation: predictor.said(rows, relation), sets, measured, only=only
    )


def _candidates(lines: Mapping[str, tuple[float, float]], only: str | None) -> list[Answer]:
    """What may answer, trained heads first."""
    sources = sorted(lines, key=lambda source: source == COSINE)
    found = [Answer(source, dict(lines)) for source in sources if only in (None, source)]
    if only is None and {COSINE, HEAD} <= set(lines):
        found.append(Answer(MEAN, dict(lines)))
    return found


def _measure(values: Numbers, one: Measured, sets: Sequence[DevSet]) -> float:
    """The mean over dev sets of a relation's metric, turned so that more is better; nan if it has none."""
    numbers, start = [], 0
    for entry in sets:
        gold = [record.values.get(one.relation.name) for record in entry.records]
        seen = [row for row, value in enumerate(gold) if value is not None]
        if tells_models_apart(one.metric, [gold[row] for row in seen]):
            numbers.append(number_of(one, [gold[row] for row in seen], [values[start + row] for row in seen]))
        start += len(entry.records)
    sign = 1.0 if get_metric(one.metric).higher_is_better else -1.0
    return sign * float(np.mean(numbers)) if numbers else float("nan")


def _as_number(relation: Relation, value: Value | None) -> float:
    """A rating as a number on the relation's scale; nan where there is none.

    Ordered relations may be selected on ratings that were borrowed from another scale, and those say nothing
    about theirs.
    """
    if relation.kind == "graded":
        return float(value) if isinstance(value, int | float) else np.nan
    known = isinstance(value, str) and value in relation.labels
    return float(relation.positions[relation.labels.index(str(value))]) if known else np.nan


def _line(said: Numbers, gold: Sequence[float], relation: Relation, source: str) -> tuple[float, float]:
    """The line of least squares from what a source says to what people said.

    Where there are too few ratings, or the line would fall, a head stays as it was trained and a cosine of
    0 to 1 is spread over the scale.
    """
    as_trained = (relation.hi - relation.lo, relation.lo) if source == COSINE else (1.0, 0.0)
    ratings = np.asarray(gold)
    seen = ~np.isnan(ratings)
    x, y = said[seen], ratings[seen]
    if len(x) < (_FEWEST if source == COSINE else _FEWEST_FOR_A_HEAD) or float(np.var(x)) < _FLAT:
        return as_trained
    slope = float(np.mean((x - x.mean()) * (y - y.mean())) / np.var(x))
    return (slope, float(y.mean() - slope * x.mean())) if slope > _FLAT else as_trained
