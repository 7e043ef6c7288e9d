"""What an experiment over schedules advises: per relation, one model for all or its own, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from likewise.evaluation.tables import p_value
from likewise.experiments.compare import ALPHA, Comparison, compare
from likewise.experiments.rows import ResultRow, whole


@dataclass(frozen=True, slots=True)
class Advice:
    """Joint or single for one relation, with the test behind it; `difference` is joint − single."""

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
        return f"{self.start} {self.column}: {self.choice} ({self.reason}: {test})".strip()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a setting costs: time of its last stage against the time of one relation alone."""

    start: str
    setting: str
    models: int
    steps: int
    seconds: float
    ratio: float

    def __str__(self) -> str:
        count = f"{self.models} models" if self.models > 1 else "1 model"
        where = f"{self.start} {self.setting}".strip()
        time = f"{self.seconds:.1f} s, {self.ratio:.2f}× one relation alone"
        return f"{where}: {count}, {self.steps:,} steps, {time}"


def advise(rows: Sequence[ResultRow]) -> list[Advice]:
    """Per start and relation; nothing where the experiment has no joint or no single setting."""
    found: list[Advice] = []
    for start in dict.fromkeys(row.start for row in rows):
        here = [row for row in whole(rows) if row.start == start]
        joint = next((row for row in here if row.models == 1 and row.schedule == "multi-label"), None)
        single = next((row for row in here if row.models > 1), None)
        if joint is not None and single is not None:
            found += [_choose(c, single.models) for c in compare([joint, single], joint.setting)]
    return found


def _choose(found: Comparison, models: int) -> Advice:
    if found.p_holm >= ALPHA:
        choice, reason = "joint", f"no difference seen, and one model instead of {models}"
    elif found.difference > 0:
        choice, reason = "joint", "learns more with the others"
    else:
        choice, reason = "single", "learns more alone"
    return Advice(found.start, found.column, choice, found.difference, found.interval, found.p_holm, reason)


def costs(rows: Sequence[ResultRow]) -> list[Cost]:
    """Every setting's time; seconds mean something only where cells did not share the machine."""
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
