"""The report of a check: findings by kind, exact counts, and a summary of the data."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from likewise.errors import Problem
from likewise.records import Relation, Value

Severity = Literal["problem", "warning"]

# Each kind with its weight; strict checks take the second one.
KINDS: Mapping[str, tuple[Severity, Severity]] = {
    "unreadable": ("problem", "problem"),
    "other version": ("problem", "problem"),
    "missing column": ("problem", "problem"),
    "no rows": ("problem", "problem"),
    "malformed row": ("problem", "problem"),
    "empty text": ("problem", "problem"),
    "over-long text": ("problem", "problem"),
    "not a text": ("problem", "problem"),
    "not a number": ("problem", "problem"),
    "out of range": ("problem", "problem"),
    "unknown label": ("problem", "problem"),
    "NaN": ("problem", "problem"),
    "conflicting ratings": ("warning", "problem"),
    "duplicate row": ("warning", "warning"),
    "same text rated low": ("warning", "warning"),
    "empty side": ("warning", "warning"),
    "same text on both sides": ("warning", "warning"),
    "another language": ("warning", "warning"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem or warning, of one kind, at one place."""

    kind: str
    severity: Severity
    problem: Problem


@dataclass(slots=True)
class Summary:
    """The values of one relation, summarised."""

    relation: Relation
    inferred: bool = False
    rated: int = 0
    missing: int = 0
    lo: float | None = None
    hi: float | None = None
    total: float = 0.0
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, value: Value | None) -> None:
        """Add one value to the summary."""
        if value is None:
            self.missing += 1
            return
        self.rated += 1
        if isinstance(value, str):
            self.labels[value] += 1
            return
        self.total += value
        self.lo = value if self.lo is None else min(self.lo, value)
        self.hi = value if self.hi is None else max(self.hi, value)

    @property
    def mean(self) -> float | None:
        """The mean of a graded relation's values."""
        return self.total / self.rated if self.rated and self.lo is not None else None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "name": self.relation.name,
            "kind": self.relation.kind,
            "scale": self.relation.scale,
            "inferred": self.inferred,
            "rated": self.rated,
            "missing": self.missing,
            "min": self.lo,
            "max": self.hi,
            "mean": self.mean,
            "labels": dict(sorted(self.labels.items())),
        }


@dataclass(slots=True)
class CheckReport:
    """Everything that a check found in one source. `counts` is exact; `findings` holds the first of each
    kind.
    """

    name: str
    strict: bool = False
    shown: int = 10
    rows: int = 0
    texts: tuple[str, ...] = ()
    relations: list[Summary] = field(default_factory=list)
    lengths: Counter[int] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, problem: Problem, *, count: int = 1) -> None:
        """Count a finding that stands for `count` rows, and keep it if few of its kind were kept so far."""
        if self.counts[kind] < self.shown:
            self.findings.append(Finding(kind, self.severity(kind), problem))
        self.counts[kind] += count

    def severity(self, kind: str) -> Severity:
        """Whether a kind of finding is a problem or a warning in this check."""
        return KINDS[kind][self.strict]

    @property
    def problems(self) -> int:
        """The number of problems, shown or not."""
        return sum(n for kind, n in self.counts.items() if self.severity(kind) == "problem")

    @property
    def warnings(self) -> int:
        """The number of warnings, shown or not."""
        return sum(self.counts.values()) - self.problems

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return self.problems == 0

    @property
    def length_range(self) -> tuple[int, int, int] | None:
        """The fewest, median and most characters of a text."""
        if not self.lengths:
            return None
        lengths = sorted(self.lengths)
        seen = list(accumulate(self.lengths[length] for length in lengths))
        return lengths[0], lengths[bisect_left(seen, seen[-1] / 2)], lengths[-1]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        lengths = self.length_range
        return {
            "source": self.name,
            "ok": self.ok,
            "rows": self.rows,
            "texts": list(self.texts),
            "characters": None
            if lengths is None
            else dict(zip(("min", "median", "max"), lengths, strict=True)),
            "relations": [summary.to_dict() for summary in self.relations],
            "problems": self.problems,
            "warnings": self.warnings,
            "counts": dict(self.counts),
            "findings": [
                {
                    "kind": finding.kind,
                    "severity": finding.severity,
                    "source": finding.problem.source,
                    "message": finding.problem.message,
                    "remedy": finding.problem.remedy,
                }
                for finding in self.findings
            ],
        }
