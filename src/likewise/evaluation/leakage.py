"""Leakage: find the evaluation pairs that are in the training data, and filter them out.

Two pairs are the same if their unordered text keys are (`data.keys`), and near-duplicates if both texts share
nearly all their words (`copies`). The filter by pair drops only evaluation pairs. The strict filter also
drops near-duplicates, and every row that shares a single text with an evaluation set. Only the evaluation
sets are held in memory. The training data is read once and may be a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from likewise.arguments import require_mapping
from likewise.data.keys import text_key
from likewise.errors import EvaluationError, LeakageError, UsageError
from likewise.evaluation.copies import NEAR, RowIndex, RowKey, require_near
from likewise.evaluation.overlap import NEAR_COPY, PAIR, TEXT, AuditReport, Overlap
from likewise.records import Record
from likewise.spelling import speaks_flags

_EXAMPLES = 3


class RowMatch(NamedTuple):
    """What a training row shares with the evaluation sets: its pair, a text, or nearly all words of a
    pair.
    """

    pair: bool
    text: bool
    near: bool

    def reason(self, *, strict: bool) -> str:
        """Why a filter drops the row: by pair, by text or as a near-duplicate. Empty if the filter keeps
        the row.
        """
        if self.pair:
            return PAIR
        if not strict:
            return ""
        return TEXT if self.text else NEAR_COPY if self.near else ""


class OverlapIndex:
    """The pairs and texts of evaluation sets, and which of them occur in the training rows shown to the
    index.

    With `near`, a Jaccard similarity above 0 and at most 1, it looks for near-duplicates too.
    """

    def __init__(self, evaluations: Mapping[str, Iterable[Record]], *, near: float | None = None) -> None:
        self._rows: dict[str, list[tuple[RowKey, str]]] = {}
        self._pairs: dict[RowKey, int] = {}
        self._texts: dict[str, bool] = {}
        self._sources: dict[RowKey, str] = {}
        self._examples: list[tuple[str, str]] = []
        self._near_examples: list[tuple[str, str]] = []
        self._seen = self._shared = self._with_text = self._near_rows = self._strict = 0
        self._near = None if near is None else require_near(near)
        self._copied: set[RowKey] = set()
        require_mapping(evaluations, "evaluations", optional=False)
        known: list[tuple[Sequence[str], RowKey]] = []
        for name, records in evaluations.items():
            self._rows[name] = []
            for record in _records(records, name):
                key = self._add(record)
                self._rows[name].append((key, record.subset))
                known += [] if near is None else [(record.texts, key)]
            if not self._rows[name]:
                raise EvaluationError(
                    f"the evaluation set {name} holds no rows, so there is nothing to audit "
                    "against. Name a set with rows."
                )
        if not self._rows:
            raise UsageError("an audit needs at least one evaluation set. Name one.")
        self._copies = None if near is None else RowIndex(known, near=near)

    def see(self, texts: Sequence[str], source: str = "") -> bool:
        """Count one training row, and return whether its pair is an evaluation pair."""
        return self.compare(texts, source).pair

    def compare(self, texts: Sequence[str], source: str = "") -> RowMatch:
        """Count one training row, and return what it shares with the evaluation sets."""
        keys = [text_key(text) for text in texts]
        known = [key for key in keys if key in self._texts]
        for key in known:
            self._texts[key] = True
        pair = tuple(sorted(keys))
        copied = set() if self._copies is None else self._copies.near(texts) - {pair}
        self._copied |= copied
        found = RowMatch(pair in self._pairs, bool(known), bool(copied) and pair not in self._pairs)
        self._seen += 1
        self._with_text += found.text
        self._near_rows += found.near
        self._strict += bool(found.reason(strict=True))
        if found.near and len(self._near_examples) < _EXAMPLES and source:
            self._near_examples.append((source, self._sources[min(copied)]))
        if found.pair:
            if self._pairs[pair] == 0 and len(self._examples) < _EXAMPLES and source:
                self._examples.append((source, self._sources[pair]))
            self._pairs[pair] += 1
            self._shared += 1
        return found

    def report(self) -> AuditReport:
        """What the training rows seen so far share with each evaluation set and subset."""
        sets, subsets = [], []
        for name, rows in self._rows.items():
            sets.append(self._measure(name, "", [pair for pair, _ in rows]))
            parts: dict[str, list[RowKey]] = {}
            for pair, subset in rows:
                parts.setdefault(subset, []).append(pair)
            if len(parts) > 1:
                subsets += [self._measure(name, subset, pairs) for subset, pairs in parts.items()]
        return AuditReport(
            self._seen,
            self._shared,
            tuple(sets),
            tuple(subsets),
            tuple(self._examples),
            text_train_rows=self._with_text,
            near=self._near,
            near_train_rows=self._near_rows,
            strict_train_rows=self._strict,
            near_examples=tuple(self._near_examples),
        )

    def _add(self, record: Record) -> RowKey:
        pair = tuple(sorted(text_key(text) for text in record.texts))
        self._pairs.setdefault(pair, 0)
        self._sources.setdefault(pair, record.source)
        self._texts.update(dict.fromkeys(pair, False))
        return pair

    def _measure(self, name: str, subset: str, pairs: list[RowKey]) -> Overlap:
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
            near=sum(pair in self._copied and not self._pairs[pair] for pair in pairs),
        )


def audit(
    train: Iterable[Record], evaluations: Mapping[str, Iterable[Record]], *, near: float | None = None
) -> AuditReport:
    """The overlap of the training rows with every evaluation set, by name. The training rows are read once.

    With `near`, such as 0.9, near-duplicates are counted too: pairs whose texts have sets of words with at
    least that Jaccard similarity, text by text, in one of the two orders.
    """
    index = OverlapIndex(evaluations, near=near)
    for record in _records(train, "train"):
        index.see(record.texts, record.source)
    return index.report()


def _records(rows: object, what: str) -> Iterator[Record]:
    """The records one by one. Anything else is an error that says how to get records."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise UsageError(
            f"{what} is a {type(rows).__name__}, but records are expected. Read them "
            "with likewise.data.read(file)."
        )
    for row in rows:
        if not isinstance(row, Record):
            raise UsageError(
                f"{what} holds a {type(row).__name__}, but records are expected. Read them with "
                "likewise.data.read(file)."
            )
        yield row


def filter_overlap(
    train: Iterable[Record], evaluations: Mapping[str, Iterable[Record]], *, strict: bool = False
) -> tuple[list[Record], AuditReport]:
    """The training rows whose pair is in no evaluation set, in their order, and the report on all rows.

    With `strict`, rows that share a text with an evaluation set, and near-duplicates of its rows, are dropped
    too.
    """
    index = OverlapIndex(evaluations, near=NEAR if strict else None)
    kept = [
        record
        for record in _records(train, "train")
        if not index.compare(record.texts, record.source).reason(strict=strict)
    ]
    return kept, index.report()


def require_below(report: AuditReport, limit: float) -> None:
    """Raise an error unless at most `limit` (0..1) of the rows of every evaluation set are training pairs."""
    if not 0 <= limit <= 1:
        raise UsageError(f"the overlap limit is {limit:g}, but it must be a share between 0 and 1.")
    above = [overlap for overlap in report.sets if overlap.share > limit]
    if above:
        filtering = (
            "likewise audit TRAIN --against TEST --output FILE"
            if speaks_flags()
            else "likewise.evaluation.filter_overlap"
        )
        found = "; ".join(f"{o.name}: {o.shared:,} of {o.rows:,} pairs ({o.share:.1%})" for o in above)
        raise LeakageError(
            f"evaluation pairs are in the training data ({found}), but at most {limit:.1%} are "
            f"allowed. Filter the data ({filtering}), or "
            "raise the limit."
        )
