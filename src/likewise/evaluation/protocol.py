"""The protocol of a number: what it means. It stands beside every number that is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

from likewise.errors import UsageError
from likewise.evaluation.metrics import get_metric

Aggregation = Literal["all", "mean", "wmean"]
ScoreSource = Literal["answer", "cosine", "head", "mean", "matcher"]

# The metric of a result whose tasks do not share one; each task names its own.
BY_TASK = "by task"

_AGGREGATIONS = {
    "all": "subsets pooled (all)",
    "mean": "plain mean over subsets (mean)",
    "wmean": "mean over subsets weighted by size (wmean)",
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """Metric, aggregation over subsets, and the source of the scores.

    Before tasks are measured, `metric` applies to tasks that name none. In a result it is the metric that was
    used.

        all    subsets are pooled, then measured (SimCSE's reading of STS12–16)
        mean   subsets are measured, then averaged
        wmean  the same, weighted by subset size
    """

    metric: str = "spearman"
    aggregation: Aggregation = "all"
    source: ScoreSource = "cosine"

    def __post_init__(self) -> None:
        if self.metric != BY_TASK:
            get_metric(self.metric)
        if self.aggregation not in _AGGREGATIONS:
            raise UsageError(f"aggregation {self.aggregation!r} is not one of {', '.join(_AGGREGATIONS)}")
        if self.source not in get_args(ScoreSource):
            raise UsageError(f"score source {self.source!r} is not one of {', '.join(get_args(ScoreSource))}")

    def __str__(self) -> str:
        by_task = "metric by task (correlations and shares ×100)"
        metric = by_task if self.metric == BY_TASK else get_metric(self.metric).unit
        scores = "scores from the model's answer" if self.source == "answer" else f"scores from {self.source}"
        return f"protocol: {metric}, {_AGGREGATIONS[self.aggregation]}, {scores}"

    def measured_by(self, metrics: Iterable[str]) -> Protocol:
        """The protocol of a result whose tasks were measured by these metrics, one or more."""
        used = set(metrics)
        return replace(self, metric=used.pop() if len(used) == 1 else BY_TASK)

    def to_dict(self) -> dict[str, str]:
        """A JSON-ready form. `Protocol(**data)` reads it back as an equal protocol."""
        return asdict(self)
