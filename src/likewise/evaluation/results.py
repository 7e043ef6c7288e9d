"""The result of a suite: a value per task with confidence interval, protocol and data fingerprint, as text
or JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import CutCount
from likewise.errors import EvaluationError
from likewise.evaluation.aggregate import Aggregate
from likewise.evaluation.estimates import Estimate, average_estimate
from likewise.evaluation.intervals import Interval, estimated_interval
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.sharing import Texts, row_sharing
from likewise.evaluation.tables import TextTable, align, markdown
from likewise.wording import counted

NOT_AUDITED = "training overlap: not audited"


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """A subset's value as shown (×100 for correlations), or None with the reason if there is none."""

    name: str
    n: int
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task's value and confidence interval as shown (×100 for correlations and shares).

    `n` rows were measured; `missing` rows had no rating or label. `fingerprint` is the sha256 of pairs and
    ratings, and `pairs` that of the pairs alone. The latter is equal if two relations are asked of the same
    pairs.
    """

    name: str
    relation: str
    metric: str
    value: float
    n: int
    interval: Interval | None
    subsets: tuple[SubsetResult, ...]
    fingerprint: str
    missing: int = 0
    pairs: str = ""

    @classmethod
    def shown(
        cls,
        name: str,
        relation: str,
        *,
        metric: str,
        found: Aggregate,
        n: int,
        fingerprint: str,
        missing: int,
        pairs: str,
    ) -> TaskResult:
        """A result from a measured value, put on the metric's display scale."""
        scale = get_metric(metric).scale
        subsets = tuple(
            SubsetResult(part.name, part.n, None if part.value is None else part.value * scale, part.reason)
            for part in found.subsets
        )
        interval = found.interval.scaled(scale) if found.interval else None
        shown = found.value * scale
        return cls(name, relation, metric, shown, n, interval, subsets, fingerprint, missing, pairs)


@dataclass(frozen=True, slots=True)
class Predictions:
    """The ratings or labels (`gold`), predictions and subset names of one task, row by row; shape (n,) each.

    `texts` holds a number for each text of each row, equal throughout a suite if two texts are the same;
    `compare_systems` needs these numbers. `compared` is what the metric compared with `gold`, if that is not
    the answer itself: the label nearest to a number. `rows` holds the texts' fingerprints, shape (n, 1) or
    (n, 2), which identify a row in another run.
    """

    gold: NDArray[Any]
    predicted: NDArray[Any]
    subsets: tuple[str, ...]
    texts: tuple[tuple[int, ...], ...] | None = None
    compared: NDArray[Any] | None = None
    rows: NDArray[np.uint64] | None = None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """All tasks of a suite. `average` is their plain mean, or None if their metrics differ.

    `average_interval` is the 95 % confidence interval of the average over rows, as shown. Rows that share a
    text, in one task or in two, count together. `cut` counts the texts of which the model read only the
    beginning.
    """

    suite: str
    protocol: Protocol
    tasks: tuple[TaskResult, ...]
    overlap: str = NOT_AUDITED
    predictions: dict[str, Predictions] = field(default_factory=dict, compare=False, repr=False)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    average_interval: Interval | None = None
    cut: CutCount | None = None

    @property
    def average(self) -> float | None:
        """Plain mean of the tasks' values."""
        if len({task.metric for task in self.tasks}) > 1:
            return None
        return float(np.mean([task.value for task in self.tasks]))

    def __getitem__(self, name: str) -> TaskResult:
        for task in self.tasks:
            if task.name == name:
                return task
        raise EvaluationError(
            f"suite {self.suite} has no task {name!r}. Choose one of {', '.join(t.name for t in self.tasks)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form. Predictions are in it only if they were kept."""
        data: dict[str, Any] = {
            "suite": self.suite,
            "protocol": self.protocol.to_dict(),
            "average": self.average,
            "average_interval": self.average_interval.to_dict() if self.average_interval else None,
            "overlap": self.overlap,
            "tasks": [asdict(task) for task in self.tasks],
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "cut_texts": self.cut.to_dict() if self.cut else None,
        }
        if self.predictions:
            data["predictions"] = {
                name: {
                    "gold": kept.gold.tolist(),
                    "predicted": kept.predicted.tolist(),
                    "subsets": list(kept.subsets),
                    "texts": None if kept.texts is None else [list(row) for row in kept.texts],
                }
                for name, kept in self.predictions.items()
            }
        return data

    def to_text(self) -> str:
        """An aligned plain table, with protocol and overlap below."""
        others = [f"not answered by this model: {', '.join(self.left_out)}"] if self.left_out else []
        others += [
            f"{task.name}: {counted(task.missing, 'row')} without {task.relation} left out"
            for task in self.tasks
            if task.missing
        ]
        return "\n".join([*align(*self._table()), *others, *self.notes, str(self.protocol), self.overlap])

    def to_markdown(self) -> str:
        """The same in Markdown, for a README or a report."""
        return "\n".join([*markdown(*self._table()), "", f"{self.protocol}; {self.overlap}"])

    def _table(self) -> TextTable:
        header = (self.suite, "metric", "value", "95 % interval", "rows")
        rows = [_cells(task) for task in self.tasks]
        if self.average is not None and len(self.tasks) > 1:
            metric = self.tasks[0].metric
            ends = _ends(metric, self.average_interval)
            count = f"{sum(task.n for task in self.tasks):,}"
            rows.append(("average", metric, _number(metric, self.average), ends, count))
        return header, rows


def average_interval(tasks: Sequence[Estimate], texts: Texts) -> Interval | None:
    """The 95 % confidence interval over rows of the plain mean of several tasks, as shown, with rows in the
    tasks' order.

    There is none if metrics differ or rows are too few.
    """
    if len({task.metric for task in tasks}) != 1:
        return None
    whole = average_estimate(tasks)
    try:
        found = estimated_interval(whole, row_sharing(len(whole.moves), texts=texts))
    except EvaluationError:  # too few rows for an interval, though enough for a value
        return None
    return found.scaled(get_metric(whole.metric).scale)


def _cells(task: TaskResult) -> tuple[str, ...]:
    ends = _ends(task.metric, task.interval)
    return (task.name, task.metric, _number(task.metric, task.value), ends, f"{task.n:,}")


def _ends(metric: str, interval: Interval | None) -> str:
    return f"{_number(metric, interval.low)} – {_number(metric, interval.high)}" if interval else "–"


def _number(metric: str, value: float) -> str:
    return f"{value:.2f}" if get_metric(metric).scale == 100 else f"{value:.4f}"
