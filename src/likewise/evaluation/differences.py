"""Compare two systems on one test set: is one better? For every metric, on rows that may share texts.

The difference of the two values is divided by its standard error and compared with Student's t. The error
comes from the influence of each row on the difference, added up over rows that share a text. The test needs
no resampling, so it is fast and gives the same answer every time. `benchmarks/simulations.py` measures how
often it errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError
from likewise.evaluation.estimates import (
    CORRELATIONS,
    Estimate,
    MeasuredPart,
    assemble,
    average_estimate,
    check_level,
    subset_rows,
    t_quantile,
    takes_part,
)
from likewise.evaluation.influence import metric_influence
from likewise.evaluation.inputs import Values
from likewise.evaluation.intervals import Interval
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.protocol import Aggregation
from likewise.evaluation.results import SuiteResult, TaskResult
from likewise.evaluation.sharing import GroupKeys, Sharing, Texts, row_sharing
from likewise.evaluation.tables import p_value
from likewise.records import Array
from likewise.wording import counted

Verdict = Literal["better", "worse", "no difference shown", "cannot tell"]
# Thirty texts that recur unevenly, 2 to 10 times, count as about 24 independent rows.
TESTED_ROWS, TESTED_GROUPS = 30, 20


@dataclass(frozen=True, slots=True)
class Difference:
    """System a compared with system b on one test set, on the metric's own scale. `difference` is a − b.

    `groups` is the number of independent rows that the rows are worth; it is smaller if texts recur. If
    nothing can be said, `p` and `interval` are None and `reason` says why. p is two-sided.
    """

    metric: str
    a: float
    b: float
    difference: float
    interval: Interval | None
    p: float | None
    statistic: float | None
    rows: int
    groups: float
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the test says about system a, at the level of the interval."""
        if self.p is None:
            return "cannot tell"
        if self.interval is None or self.interval.low <= 0 <= self.interval.high:
            return "no difference shown"
        return "better" if (self.difference > 0) == get_metric(self.metric).higher_is_better else "worse"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {**asdict(self), "verdict": self.verdict}

    def __str__(self) -> str:
        metric = get_metric(self.metric)
        digits = 2 if metric.scale == 100 else 4
        a, b = (f"{metric.scale * one:.{digits}f}" for one in (self.a, self.b))
        text = f"{metric.unit} {a} against {b}, difference {metric.scale * self.difference:+.{digits}f}"
        if self.p is None:
            return f"{text}: cannot tell, because {self.reason}"
        if self.interval is None:
            return f"{text}: {self.verdict}, because {self.reason}"
        low, high = (f"{metric.scale * end:+.{digits}f}" for end in (self.interval.low, self.interval.high))
        level = f"{100 * self.interval.level:g} % interval"
        return f"{text} ({level} {low} to {high}, p {p_value(self.p)}): {self.verdict}"


def compare_systems(
    metric: str,
    gold: Values,
    a: Values,
    b: Values,
    *,
    texts: Texts | None = None,
    groups: GroupKeys | None = None,
    subsets: Sequence[str] = (),
    aggregation: Aggregation = "all",
    level: float = 0.95,
) -> Difference:
    """Test metric(a) − metric(b) on one test set of n rows, for every metric, on rows that may share texts.

    `texts` are the one or two texts of each row (or numbers that stand for them). `groups` gives one key per
    row instead. Without either, rows count as independent. `subsets` and `aggregation` are as in a protocol.
    With fewer than 30 rows, or with rows that are worth fewer than 20 independent ones, the answer is "cannot
    tell".
    """
    check_level(level)
    found, value_a, value_b = _estimate(metric, gold, a, b, subsets=subsets, aggregation=aggregation)
    sharing = row_sharing(len(found.moves), texts=texts, groups=groups)
    return decide(found, value_a, value_b, sharing=sharing, level=level)


def difference_and_error(
    metric: str,
    gold: Values,
    a: Values,
    b: Values,
    *,
    texts: Texts | None = None,
    subsets: Sequence[str] = (),
    aggregation: Aggregation = "all",
) -> tuple[float, float]:
    """metric(a) − metric(b) and its standard error. There is no test, so few rows are enough."""
    found, _, _ = _estimate(metric, gold, a, b, subsets=subsets, aggregation=aggregation)
    return found.value, found.error(row_sharing(len(found.moves), texts=texts))[0]


def compare_results(a: SuiteResult, b: SuiteResult, *, level: float = 0.95) -> dict[str, Difference]:
    """Compare two models on one suite, task by task, and on their "average" if all tasks share a metric.

    Both results need their predictions (`keep_predictions=True`). Tasks that only one model answers, or whose
    rows, metric or aggregation differ, are left out, and so is the average then.
    """
    shared = [task for task in a.tasks if _comparable_tasks(task, a, b)]
    if not shared:
        raise EvaluationError(
            f"the results of {a.suite} and {b.suite} share no task with the same rows and metric "
            "and with predictions. Evaluate both on one suite with keep_predictions=True."
        )
    found: dict[str, Difference] = {}
    parts, texts = [], []
    for task in shared:
        one, other = a.predictions[task.name], b.predictions[task.name]
        part = _estimate(
            task.metric,
            one.gold,
            one.predicted if one.compared is None else one.compared,
            other.predicted if other.compared is None else other.compared,
            subsets=one.subsets,
            aggregation=a.protocol.aggregation,
        )
        sharing = row_sharing(len(one.gold), texts=one.texts)
        found[task.name] = decide(*part, sharing=sharing, level=level)
        parts.append(part)
        texts += list(one.texts or ())
    whole = len(shared) == len(a.tasks) == len(b.tasks) > 1
    if whole and len({task.metric for task in shared}) == 1 and len(texts) == sum(task.n for task in shared):
        means = [float(np.mean([part[at] for part in parts])) for at in (1, 2)]
        joined = average_estimate([part[0] for part in parts])
        sharing = row_sharing(len(texts), texts=texts)
        found["average"] = decide(joined, means[0], means[1], sharing=sharing, level=level)
    return found


def _comparable_tasks(task: TaskResult, a: SuiteResult, b: SuiteResult) -> bool:
    """Whether both results hold predictions of the same rows for a task, by the same metric."""
    same = [one for one in b.tasks if one.name == task.name]
    kept = task.name in a.predictions and task.name in b.predictions
    alike = same and (same[0].fingerprint, same[0].metric) == (task.fingerprint, task.metric)
    return bool(kept and alike and a.protocol.aggregation == b.protocol.aggregation)


def decide(found: Estimate, a: float, b: float, *, sharing: Sharing, level: float = 0.95) -> Difference:
    """The test of a difference, given how far each row moves it."""
    from scipy import special

    n = sharing.n
    if not np.any(found.moves):
        same = "both systems do equally well on every row"
        return Difference(found.metric, a, b, found.value, None, 1.0, 0.0, n, float(n), same)
    amount = float(sharing.effective(found.moves, found.scale))
    if reason := _too_few(found, sharing, amount):
        return Difference(found.metric, a, b, found.value, None, None, None, n, amount, reason)
    error, _ = found.error(sharing)
    statistic = found.value / error
    p = 2 * float(special.stdtr(amount - 1, -abs(statistic)))
    half = t_quantile(level, amount - 1) * error
    kind = f"{n:,} rows" if sharing.independent else f"{n:,} rows that share texts"
    interval = Interval(
        found.value, found.value - half, found.value + half, level, f"t over {amount:,.0f} of {kind}"
    )
    return Difference(found.metric, a, b, found.value, interval, p, statistic, n, amount)


def _too_few(found: Estimate, sharing: Sharing, amount: float) -> str:
    """The reason why a test would not be valid, or an empty text if it would."""
    carrying = int(np.count_nonzero(found.scale))
    if carrying < TESTED_ROWS:
        which = counted(carrying, "row") if carrying == sharing.n else f"{carrying} of {sharing.n:,} rows"
        role = "are there" if carrying == sharing.n else f"have a part in {found.metric}"
        return f"only {which} {role}, but at least {TESTED_ROWS} are needed"
    if amount < TESTED_GROUPS:
        return (
            f"the {sharing.n:,} rows share texts and are worth about {max(amount, 1):.0f} "
            f"independent ones, but at least {TESTED_GROUPS} are needed. Add rows with other texts."
        )
    return ""


def _estimate(
    metric: str, gold: Values, a: Values, b: Values, *, subsets: Sequence[str], aggregation: Aggregation
) -> tuple[Estimate, float, float]:
    x, first, second = np.asarray(gold), np.asarray(a), np.asarray(b)
    if not len(x) == len(first) == len(second):
        raise EvaluationError(
            f"there are {len(x)} ratings or labels, but {len(first)} and {len(second)} predictions. "
            "Give one prediction per row."
        )
    parts, values = [], np.zeros(2)
    for rows, weight in subset_rows(subsets, len(x), aggregation):
        value_a, value_b, influence, active = _compared(metric, x[rows], first[rows], second[rows])
        values += weight * np.array([value_a, value_b])
        parts.append(MeasuredPart(rows, weight * influence / len(rows), active))
    value_a, value_b = map(float, values)
    return assemble(metric, value_a - value_b, parts, x), value_a, value_b


def _compared(
    metric: str, gold: NDArray[Any], a: NDArray[Any], b: NDArray[Any]
) -> tuple[float, float, Array, NDArray[np.bool_]]:
    """Both values, each row's influence on their difference in a form that holds in small samples, and its
    part.

    Correlations are transformed by Fisher's z and back.
    """
    value_a, moved_a = metric_influence(metric, gold, a)
    value_b, moved_b = metric_influence(metric, gold, b)
    if metric in CORRELATIONS and max(abs(value_a), abs(value_b)) < 1 - 1e-12:
        influence = _through_z(value_a, value_b, moved_a, moved_b)
    else:
        influence = moved_a - moved_b
    return value_a, value_b, influence, takes_part(metric, moved_a, moved_b)


def _through_z(r_a: float, r_b: float, moved_a: Array, moved_b: Array) -> Array:
    """Influence on r(a) − r(b), computed from atanh r(a) − atanh r(b) and put back on the scale of r;
    shape (n,).
    """
    gap = math.atanh(r_a) - math.atanh(r_b)
    back = (r_a - r_b) / gap if abs(gap) > 1e-9 else 1 - r_a * r_b
    return np.asarray(back * (moved_a / (1 - r_a**2) - moved_b / (1 - r_b**2)))
