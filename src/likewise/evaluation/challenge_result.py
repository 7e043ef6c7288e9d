"""The result of the challenge set: shares by phenomenon, as text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from likewise.answering import COSINE, CutCount
from likewise.errors import EvaluationError
from likewise.evaluation.intervals import Interval
from likewise.evaluation.results import NOT_AUDITED
from likewise.evaluation.suites import CHALLENGE
from likewise.evaluation.tables import TextTable, align, markdown
from likewise.wording import counted

SIMILARITY, ENTAILMENT, PARAPHRASE = "similarity", "entailment", "paraphrase"
# The questions about the order of an item's two pairs; the others are about labels.
ORDERED = (SIMILARITY, COSINE)


@dataclass(frozen=True, slots=True)
class ChallengeShare:
    """A share in per cent of n items (order) or n pairs (labels), with its 95 % interval.

    `ties` are items whose two pairs got the same value. For labels, `majority` is the accuracy of always
    answering the label `most_frequent`.
    """

    value: float
    n: int
    interval: Interval | None
    ties: int = 0
    majority: float | None = None
    most_frequent: str = ""


@dataclass(frozen=True, slots=True)
class Phenomenon:
    """The shares of the items of one phenomenon, by question: similarity, cosine, entailment, paraphrase."""

    name: str
    items: int
    shares: Mapping[str, ChallengeShare]

    def __getitem__(self, measure: str) -> ChallengeShare:
        if measure not in self.shares:
            raise EvaluationError(
                f"{self.name} has no share of {measure!r}. Choose one of {', '.join(self.shares)}."
            )
        return self.shares[measure]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        shares = {measure: asdict(share) for measure, share in self.shares.items()}
        return {"name": self.name, "items": self.items, **shares}


@dataclass(frozen=True, slots=True)
class ChallengeResult:
    """All phenomena of the challenge set, and all items together (`overall`).

    `predictions` hold the answers to both pairs of each item, by its id, if they were kept.
    """

    phenomena: tuple[Phenomenon, ...]
    overall: Phenomenon
    protocol: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()
    overlap: str = NOT_AUDITED
    cut: CutCount | None = None
    predictions: dict[str, dict[str, Any]] | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Phenomenon:
        for found in (*self.phenomena, self.overall):
            if found.name == name:
                return found
        names = ", ".join(found.name for found in self.phenomena)
        raise EvaluationError(f"the challenge set has no phenomenon {name!r}. Choose one of {names}, all.")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form. Predictions are in it only if they were kept."""
        data: dict[str, Any] = {
            "suite": CHALLENGE,
            "protocol": list(self.protocol),
            "overall": self.overall.to_dict(),
            "phenomena": [found.to_dict() for found in self.phenomena],
            "fingerprint": self.fingerprint,
            "overlap": self.overlap,
            "notes": list(self.notes),
            "cut_texts": self.cut.to_dict() if self.cut else None,
        }
        if self.predictions is not None:
            data["predictions"] = self.predictions
        return data

    def to_text(self) -> str:
        """Aligned plain tables, with notes and protocol below."""
        parts = ["\n".join(align(*table)) for table in self._tables()]
        lines = [*self._ties(), *self.notes, *self.protocol, self.overlap]
        return "\n\n".join([*parts, "\n".join(lines)])

    def to_markdown(self) -> str:
        """The same in Markdown, for a README or a report."""
        parts = ["\n".join(markdown(*table)) for table in self._tables()]
        words = "; ".join([*self._ties(), *self.notes, *self.protocol, self.overlap])
        return "\n\n".join([*parts, words])

    def _tables(self) -> list[TextTable]:
        """One table of the questions about order, and one of those about labels, if there are any."""
        ordered = [measure for measure in self.overall.shares if measure in ORDERED]
        labelled = [measure for measure in self.overall.shares if measure not in ORDERED]
        titles = ((CHALLENGE, "items", ordered), ("labels", "pairs", labelled))
        return [self._table(title, unit, measures) for title, unit, measures in titles if measures]

    def _table(self, title: str, unit: str, measures: Sequence[str]) -> TextTable:
        header = [title, unit]
        for measure in measures:
            header += [measure, "95 % interval", *([] if measure in ORDERED else ["majority"])]
        rows = []
        for found in (*self.phenomena, self.overall):
            shares = [found.shares[measure] for measure in measures]
            cells = [found.name, f"{shares[0].n:,}"]
            for share in shares:
                cells += [f"{share.value:.1f}", _ends(share.interval)]
                cells += [] if share.majority is None else [f"{share.majority:.1f}"]
            rows.append(tuple(cells))
        return tuple(header), rows

    def _ties(self) -> list[str]:
        """A line for each question about order with ties."""
        return [
            f"{measure}: {counted(share.ties, 'tie')}"
            for measure, share in self.overall.shares.items()
            if share.ties
        ]


def _ends(interval: Interval | None) -> str:
    return f"{interval.low:.1f} – {interval.high:.1f}" if interval else "–"
