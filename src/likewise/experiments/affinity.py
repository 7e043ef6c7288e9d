"""The gain of tasks from each other, from a setting that trains every set of tasks (`each = "subset"`).

matrix     the row's task learnt together with the column's, minus the row's task learnt alone
together   the numbers of 1, 2, … tasks in one model; a task's number is the mean over all sets that hold it
sets       every set by itself
pairs      the paper's form: mean gain of two tasks over the baseline; on the diagonal, of one task alone

Seeds are paired: a difference is taken within a seed, and its confidence interval and test are over seeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from likewise.errors import EvaluationError
from likewise.evaluation.intervals import mean_interval
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.significance import holm, paired_t
from likewise.experiments.rows import ResultRow
from likewise.records import Array

AVERAGE = "average"
Key = TypeVar("Key", bound=Hashable)
Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Number:
    """The mean of a number over seeds and its 95 % t interval, which needs at least two seeds."""

    values: tuple[float, ...]
    mean: float
    interval: Bounds | None


@dataclass(frozen=True, slots=True)
class Gain:
    """A paired difference over seeds; positive is better for every metric.

    `p_holm` is corrected over all gains of a kind. There is no p if the difference does not vary.
    """

    values: tuple[float, ...]
    mean: float
    interval: Bounds | None
    p: float | None
    p_holm: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True, slots=True)
class TaskSet:
    """One set of tasks in one model: each task's number, and its gain over the baseline or the task alone."""

    tasks: tuple[str, ...]
    numbers: dict[str, Number]
    gains: dict[str, Gain]


@dataclass(frozen=True, slots=True)
class Together:
    """The results of a number of tasks in one model: each task's mean over all sets of that size.

    `average` is the mean over tasks.
    """

    number: int
    numbers: dict[str, Number]
    over_one: dict[str, Gain]
    over_baseline: dict[str, Gain]


@dataclass(frozen=True, slots=True)
class AffinityReport:
    """Gains between the tasks of one setting from one start; the module's docstring explains the parts.

    `tasks` are all tasks that are learnt. `metrics` names the tasks that the suite measures, which are the
    rows of the matrix. Without a baseline, `baseline` is empty and gains of sets are over the task alone.
    """

    start: str
    setting: str
    baseline: str
    seeds: int
    tasks: tuple[str, ...]
    metrics: dict[str, str]
    baseline_numbers: dict[str, Number]
    matrix: list[list[Gain | None]]
    together: tuple[Together, ...]
    sets: tuple[TaskSet, ...]
    pairs: list[list[Gain | None]]


def affinities(rows: Sequence[ResultRow], baseline: str) -> list[AffinityReport]:
    """A report for each start and setting that was run as every set of tasks."""
    found = []
    for start, family in dict.fromkeys((row.start, row.family) for row in rows if row.tasks):
        mine = [row for row in rows if (row.start, row.family) == (start, family)]
        others = [row for row in rows if row.start == start and row.family != family]
        measured = _Measured(mine, next((row for row in others if row.setting == baseline), None))
        if measured.metrics:
            found.append(_report(measured, mine[0]))
    return found


def own_columns(alone: Mapping[str, ResultRow]) -> dict[str, tuple[str, ...]]:
    """The columns that measure each task, found from the rows of the tasks alone.

    They are the columns that only the task's own model answers. If every model answers every column, as with
    the cosine, they are the columns whose ratings or labels are of the relation with the task's name.
    """
    found = {}
    for task, row in alone.items():
        others = {column for name, other in alone.items() if name != task for column in other.metrics}
        sole = tuple(column for column in row.metrics if column not in others)
        found[task] = sole or tuple(c for c in row.metrics if row.relations.get(c) == task)
    return {task: columns for task, columns in found.items() if columns}


class _Measured:
    """The numbers of tasks in sets, seed by seed."""

    def __init__(self, rows: Sequence[ResultRow], base: ResultRow | None) -> None:
        self._rows = {frozenset(row.tasks): row for row in rows}
        self.tasks = max((row.tasks for row in rows), key=len)
        self.sets = [row.tasks for row in rows]
        self._columns = own_columns({task: self._rows[frozenset([task])] for task in self.tasks})
        self.metrics = {task: self._metric(task) for task in self.tasks if task in self._columns}
        known = base is not None and all(c in base.metrics for cs in self._columns.values() for c in cs)
        self._base = base if known else None
        self.baseline = self._base.setting if self._base is not None else ""

    def _metric(self, task: str) -> str:
        return self._rows[frozenset([task])].metrics[self._columns[task][0]]

    @property
    def shared_metric(self) -> bool:
        """Whether the tasks share a metric, so that they can be averaged."""
        return len(set(self.metrics.values())) == 1

    def values(self, task: str, tasks: Collection[str]) -> Array:
        """A task's number in a set of tasks; shape (seeds,). Several columns of a task are averaged."""
        return self._of(self._rows[frozenset(tasks)], task)

    def base(self, task: str) -> Array | None:
        """A task's number by the baseline, if there is one."""
        return None if self._base is None else self._of(self._base, task)

    def _of(self, row: ResultRow, task: str) -> Array:
        found: Array = np.mean([row.numbers[column] for column in self._columns[task]], axis=0)
        return found

    def gain(self, task: str, ours: Array, theirs: Array) -> Gain:
        """Ours minus theirs, negated for metrics that are better when low."""
        sign = 1.0 if get_metric(self.metrics[task]).higher_is_better else -1.0
        return _gain(sign * ours, sign * theirs)


def _report(measured: _Measured, row: ResultRow) -> AffinityReport:
    base = {task: values for task in measured.metrics if (values := measured.base(task)) is not None}
    return AffinityReport(
        row.start,
        row.family,
        measured.baseline,
        len(row.seeds),
        measured.tasks,
        measured.metrics,
        {name: _number(values) for name, values in _with_average(measured, base).items()},
        _matrix(measured),
        _together(measured, base),
        _sets(measured, base),
        _pairs(measured, base),
    )


def _matrix(measured: _Measured) -> list[list[Gain | None]]:
    """The gains of the row's task with the column's task in the same model."""
    gains = {
        (task, beside): measured.gain(
            task, measured.values(task, [task, beside]), measured.values(task, [task])
        )
        for task in measured.metrics
        for beside in measured.tasks
        if beside != task
    }
    return _grid(_corrected(gains), measured.metrics, measured.tasks)


def _together(measured: _Measured, base: Mapping[str, Array]) -> tuple[Together, ...]:
    sizes = range(1, len(measured.tasks) + 1)
    levels = {size: _with_average(measured, _level(measured, size)) for size in sizes}
    against = _with_average(measured, base)
    over_one = _corrected(_gains(measured, levels, levels[1], sizes[1:]))
    over_base = _corrected(_gains(measured, levels, against, sizes))
    return tuple(
        Together(
            size,
            {name: _number(values) for name, values in levels[size].items()},
            {name: gain for (number, name), gain in over_one.items() if number == size},
            {name: gain for (number, name), gain in over_base.items() if number == size},
        )
        for size in sizes
    )


def _level(measured: _Measured, size: int) -> dict[str, Array]:
    """The mean of each task over all sets of a size that hold it."""
    return {
        task: np.mean(
            [measured.values(task, tasks) for tasks in measured.sets if len(tasks) == size and task in tasks],
            axis=0,
        )
        for task in measured.metrics
    }


def _gains(
    measured: _Measured,
    levels: Mapping[int, Mapping[str, Array]],
    against: Mapping[str, Array],
    sizes: Iterable[int],
) -> dict[tuple[int, str], Gain]:
    # Tasks are averaged only where they share a metric, so that any of them tells which way is better.
    first = next(iter(measured.metrics))
    return {
        (size, name): measured.gain(first if name == AVERAGE else name, levels[size][name], theirs)
        for size in sizes
        for name, theirs in against.items()
    }


def _sets(measured: _Measured, base: Mapping[str, Array]) -> tuple[TaskSet, ...]:
    gains = {
        (tasks, task): measured.gain(
            task, measured.values(task, tasks), base.get(task, measured.values(task, [task]))
        )
        for tasks in measured.sets
        for task in tasks
        if task in measured.metrics and (base or len(tasks) > 1)
    }
    corrected = _corrected(gains)
    return tuple(
        TaskSet(
            tasks,
            {task: _number(measured.values(task, tasks)) for task in tasks if task in measured.metrics},
            {task: gain for (owner, task), gain in corrected.items() if owner == tasks},
        )
        for tasks in measured.sets
    )


def _pairs(measured: _Measured, base: Mapping[str, Array]) -> list[list[Gain | None]]:
    """The last graph of the paper's Figure 4; a pair is tested once, although the matrix shows it twice."""
    if not base or not measured.shared_metric:
        return []
    names = list(measured.metrics)
    cells = {}
    for at, task in enumerate(names):
        for other in names[at:]:
            both = list(dict.fromkeys([task, other]))
            ours = np.mean([measured.values(one, both) for one in both], axis=0)
            cells[task, other] = measured.gain(task, ours, np.mean([base[one] for one in both], axis=0))
    corrected = _corrected(cells)
    mirrored = {(other, task): gain for (task, other), gain in corrected.items()}
    return _grid(corrected | mirrored, names, names)


def _grid(
    cells: Mapping[tuple[str, str], Gain], rows: Iterable[str], columns: Sequence[str]
) -> list[list[Gain | None]]:
    return [[cells.get((row, column)) for column in columns] for row in rows]


def _with_average(measured: _Measured, numbers: Mapping[str, Array]) -> dict[str, Array]:
    """The tasks and, if they share a metric, their average."""
    if not numbers or not measured.shared_metric:
        return dict(numbers)
    return {**numbers, AVERAGE: np.mean(list(numbers.values()), axis=0)}


def _number(values: Array) -> Number:
    row = tuple(float(value) for value in values)
    return Number(row, float(np.mean(values)), _bounds(row))


def _gain(ours: Array, theirs: Array) -> Gain:
    values = tuple(float(value) for value in ours - theirs)
    p = None
    with contextlib.suppress(EvaluationError):  # one seed, or the same difference in all: no test
        p = paired_t(ours, theirs).p
    return Gain(values, float(np.mean(values)), _bounds(values), p)


def _bounds(values: Sequence[float]) -> Bounds | None:
    if len(values) < 2:
        return None
    interval = mean_interval(values)
    return interval.low, interval.high


def _corrected(gains: Mapping[Key, Gain]) -> dict[Key, Gain]:
    """The same gains, with p corrected over all of them."""
    tested = {key: gain.p for key, gain in gains.items() if gain.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True)) if tested else {}
    return {key: replace(gain, p_holm=corrected.get(key)) for key, gain in gains.items()}
