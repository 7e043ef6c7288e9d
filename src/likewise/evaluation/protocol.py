"""Protocol: what a number on an evaluation set means; it stands beside every number that is reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

from likewise.errors import UsageError
from likewise.evaluation.metrics import get_metric

Aggregation = Literal["all", "mean", "wmean"]
Source = Literal["cosine", "head", "matcher"]

_AGGREGATIONS = {
    "all": "subsets pooled (all)",
    "mean": "plain mean over subsets (mean)",
    "wmean": "mean over subsets weighted by size (wmean)",
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """Metric (where a task names none), aggregation over subsets, and where scores come from.

    all    subsets are put together, then measured (SimCSE's reading of STS12–16)
    mean   subsets are measured, then averaged
    wmean  the same, weighted by subset size
    """

    metric: str = "spearman"
    aggregation: Aggregation = "all"
    source: Source = "cosine"

    def __post_init__(self) -> None:
        get_metric(self.metric)
        if self.aggregation not in _AGGREGATIONS:
            raise UsageError(f"aggregation {self.aggregation!r} is not one of {', '.join(_AGGREGATIONS)}")
        if self.source not in get_args(Source):
            raise UsageError(f"score source {self.source!r} is not one of {', '.join(get_args(Source))}")

    def __str__(self) -> str:
        unit = get_metric(self.metric).unit
        return f"protocol: {unit}, {_AGGREGATIONS[self.aggregation]}, scores from {self.source}"

    def to_dict(self) -> dict[str, str]:
        """A JSON-ready form that `Protocol(**data)` reads back equal."""
        return asdict(self)
