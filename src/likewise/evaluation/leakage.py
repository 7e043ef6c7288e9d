"""Leakage: which evaluation pairs stand in the training data, and the training data without them.

Two pairs are the same if their unordered text keys are (`data.keys`).
Only the evaluation sets are held in memory; the training data is gone through once and may be a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from likewise.arguments import require_mapping
from likewise.data.keys import text_key
from likewise.errors import EvaluationError, LeakageError, UsageError
from likewise.evaluation.overlap import AuditReport, Overlap
from likewise.records import Record

_EXAMPLES = 3


class OverlapIndex:
    """The pairs and texts of evaluation sets, and which of them the training rows shown to it hold."""

    def __init__(self, evaluations: Mapping[str, Iterable[Record]]) -> None:
        self._rows: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._pairs: dict[tuple[str, ...], int] = {}
        self._texts: dict[str, bool] = {}
        self._sources: dict[tuple[str, ...], str] = {}
        self._examples: list[tuple[str, str]] = []
        self._seen = self._shared = 0
        require_mapping(evaluations, "evaluations", optional=False)
        for name, records in evaluations.items():
            self._rows[name] = [(self._add(record), record.subset) for record in _records(records, name)]
            if not self._rows[name]:
                raise EvaluationError(
                    f"the evaluation set {name} holds no rows: there is nothing to audit against"
                )
        if not self._rows:
            raise UsageError("an audit needs at least one evaluation set")

    def see(self, texts: Sequence[str], source: str = "") -> bool:
        """Count one training row; whether its pair is an evaluation pair."""
        keys = [text_key(text) for text in texts]
        for key in keys:
            if key in self._texts:
                self._texts[key] = True
        pair = tuple(sorted(keys))
        self._seen += 1
        if pair not in self._pairs:
            return False
        if self._pairs[pair] == 0 and len(self._examples) < _EXAMPLES and source:
            self._examples.append((source, self._sources[pair]))
        self._pairs[pair] += 1
        self._shared += 1
        return True

    def report(self) -> AuditReport:
        """What the training rows seen so far share with each evaluation set and subset."""
        sets, subsets = [], []
        for name, rows in self._rows.items():
            sets.append(self._measure(name, "", [pair for pair, _ in rows]))
            parts: dict[str, list[tuple[str, ...]]] = {}
            for pair, subset in rows:
                parts.setdefault(subset, []).append(pair)
            if len(parts) > 1:
                subsets += [self._measure(name, subset, pairs) for subset, pairs in parts.items()]
        return AuditReport(self._seen, self._shared, tuple(sets), tuple(subsets), tuple(self._examples))

    def _add(self, record: Record) -> tuple[str, ...]:
        pair = tuple(sorted(text_key(text) for text in record.texts))
        self._pairs.setdefault(pair, 0)
        self._sources.setdefault(pair, record.source)
        self._texts.update(dict.fromkeys(pair, False))
        return pair

    def _measure(self, name: str, subset: str, pairs: list[tuple[str, ...]]) -> Overlap:
        shared = [pair for pair in pairs if self._pairs[pair]]
        distinct = set(shared)
        return Overlap(
            name=name,
            subset=subset,
            rows=len(pairs),
            shared=len(shared),
            distinct=len(distinct),
            train_rows=sum(self._pairs[pair] for pair in distinct),
            some_texts=sum(any(self._texts[key] for key in pair) for pair in pairs),
            all_texts=sum(all(self._texts[key] for key in pair) for pair in pairs),
        )


def audit(train: Iterable[Record], evaluations: Mapping[str, Iterable[Record]]) -> AuditReport:
    """Overlap of the training rows with every evaluation set, by name; one pass over the training rows."""
    index = OverlapIndex(evaluations)
    for record in _records(train, "train"):
        index.see(record.texts, record.source)
    return index.report()


def _records(rows: object, what: str) -> Iterator[Record]:
    """Records as they come; whatever else is handed over is refused with the way to get them."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise UsageError(f"{what} is a {type(rows).__name__}, expected records: likewise.data.read(file)")
    for row in rows:
        if not isinstance(row, Record):
            raise UsageError(
                f"{what} holds a {type(row).__name__}, expected records: likewise.data.read(file)"
            )
        yield row


def filter_overlap(
    train: Iterable[Record], evaluations: Mapping[str, Iterable[Record]]
) -> tuple[list[Record], AuditReport]:
    """The training rows whose pair is in no evaluation set, in their order, and the report of all rows."""
    index = OverlapIndex(evaluations)
    kept = [record for record in _records(train, "train") if not index.see(record.texts, record.source)]
    return kept, index.report()


def require_below(report: AuditReport, limit: float) -> None:
    """Raise unless at most `limit` (0..1) of the rows of every evaluation set are training pairs."""
    if not 0 <= limit <= 1:
        raise UsageError(f"the overlap limit {limit:g} is not a share between 0 and 1")
    above = [overlap for overlap in report.sets if overlap.share > limit]
    if above:
        found = "; ".join(f"{o.name}: {o.shared:,} of {o.rows:,} pairs ({o.share:.1%})" for o in above)
        raise LeakageError(
            f"evaluation pairs stand in the training data ({found}), at most {limit:.1%} are allowed; "
            "filter it (likewise audit TRAIN --against TEST --output FILE) or raise the limit"
        )
