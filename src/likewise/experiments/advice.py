"""Advice from an experiment over schedules: for each relation, a joint model or its own, and the cost.

A joint model for all relations is cheaper, so it is advised if it is shown not to lose more than a margin:
the confidence interval of the difference must exclude a larger loss. A difference that is not significant
does not show this, because with few seeds even a large difference is rarely significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.evaluation.estimates import t_quantile
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.tables import p_value
from likewise.experiments.compare import ALPHA, Comparison, compare
from likewise.experiments.rows import ResultRow, whole

# What one model may lose: points of a metric that is shown ×100, or percent of an error.
MARGIN = 0.5
# A plan that rests on the spread of fewer seeds is a guess.
_FEWEST_SEEDS, _MOST_SEEDS = 5, 1000


@dataclass(frozen=True, slots=True)
class Advice:
    """The choice for one relation: "joint", "single" or "cannot tell"; `difference` is joint − single."""

    start: str
    column: str
    choice: str
    difference: float
    interval: tuple[float, float]
    p_holm: float
    reason: str

    def __str__(self) -> str:
        low, high = self.interval
        test = f"{self.difference:+.2f} [{low:+.2f}, {high:+.2f}], p {p_value(self.p_holm)}"
        return f"{self.start} {self.column}: {self.choice} ({self.reason}; difference {test})".strip()


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a setting: the time of its last stage, compared with that of one relation alone."""

    start: str
    setting: str
    models: int
    steps: int
    seconds: float
    ratio: float

    def __str__(self) -> str:
        count = f"{self.models} models" if self.models > 1 else "1 model"
        where = f"{self.start} {self.setting}".strip()
        time = f"{self.seconds:.1f} s, {self.ratio:.2f}× the time of one relation alone"
        return f"{where}: {count}, {self.steps:,} steps, {time}"


def advise(rows: Sequence[ResultRow], margin: float = MARGIN) -> list[Advice]:
    """Advice for each start and relation; empty if the experiment lacks a joint or a single setting.

    `margin` is the loss that a joint model may have: points of a metric that is shown ×100, or percent of an
    error (mse, mae).
    """
    found: list[Advice] = []
    for start in dict.fromkeys(row.start for row in rows):
        here = [row for row in whole(rows) if row.start == start]
        joint = next((row for row in here if row.models == 1 and row.schedule == "multi-label"), None)
        single = next((row for row in here if row.models > 1), None)
        if joint is not None and single is not None:
            compared = {c.column: c for c in compare([joint, single], joint.setting)}
            for column in [one for one in joint.metrics if one in single.metrics]:
                if column in compared:
                    found.append(_choose(compared[column], joint, single, margin=margin))
                elif min(len(joint.seeds), len(single.seeds)) > 1:
                    found.append(_without_spread(column, joint, single))
    return found


def _without_spread(column: str, joint: ResultRow, single: ResultRow) -> Advice:
    """No advice where every seed gives the same number, for example because the starting model was kept."""
    difference = joint.mean(column) - single.mean(column)
    reason = "every seed gives the same number, so the spread of the seeds is not known"
    return Advice(joint.start, column, "cannot tell", difference, (difference, difference), 1.0, reason)


def _choose(found: Comparison, joint: ResultRow, single: ResultRow, *, margin: float) -> Advice:
    metric = get_metric(joint.metrics[found.column])
    if metric.scale == 100:
        allowed, said = margin, f"{margin:g} points"
    else:
        allowed, said = margin / 100 * abs(single.mean(found.column)), f"{margin:g} % of the error"
    gain, ends = found.difference, found.interval
    if not metric.higher_is_better:
        gain, ends = -gain, (-ends[1], -ends[0])
    cheaper = f"and needs one model instead of {single.models}"
    if found.p_holm < ALPHA and gain > 0:
        choice, reason = "joint", "better when learnt with the others"
    elif ends[0] > -allowed:
        choice, reason = "joint", f"loses less than {said} {cheaper}"
    elif found.p_holm < ALPHA:
        choice, reason = "single", "better when learnt alone"
    else:
        seeds = _seeds_needed(gain, (ends[1] - ends[0]) / 2, allowed, len(joint.seeds))
        count = f"about {seeds}" if seeds else f"more than {_MOST_SEEDS:,}"
        reason = f"a loss of more than {said} is not ruled out; that would take {count} seeds"
        choice = "cannot tell"
    return Advice(found.start, found.column, choice, found.difference, found.interval, found.p_holm, reason)


def _seeds_needed(gain: float, half: float, margin: float, seeds: int) -> int | None:
    """The seeds that each setting needs until the interval around the same gain excludes one of both."""
    enough = max(gain + margin, -gain)
    spread = half / t_quantile(0.95, 2 * seeds - 2) * math.sqrt(seeds / 2)
    wanted = range(max(seeds + 1, _FEWEST_SEEDS), _MOST_SEEDS + 1)
    return next((n for n in wanted if t_quantile(0.95, 2 * n - 2) * spread * math.sqrt(2 / n) < enough), None)


def costs(rows: Sequence[ResultRow]) -> list[Cost]:
    """The time of every setting; seconds can be compared only if runs did not share the machine."""
    found: list[Cost] = []
    for start in dict.fromkeys(row.start for row in rows):
        here = [row for row in rows if row.start == start]
        single = next((row for row in here if row.models > 1), None)
        if single is None:
            continue
        alone = _mean(single.fit_seconds) / single.models
        found += [
            Cost(
                start,
                row.setting,
                row.models,
                row.steps,
                _mean(row.fit_seconds),
                _mean(row.fit_seconds) / alone,
            )
            for row in here
        ]
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
