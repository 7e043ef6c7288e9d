"""What an audit found: overlap between one training set and each evaluation set, as text, table or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from likewise.evaluation.tables import align


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap of the training data with one evaluation set, or with one subset of it.

    rows         rows of the evaluation set
    shared       those whose pair (unordered, by `text_key`) is a training pair
    distinct     different pairs among them
    train_rows   training rows that hold one of those pairs
    some_texts   rows of which at least one text stands somewhere in the training data
    all_texts    rows of which every text does
    """

    name: str
    subset: str
    rows: int
    shared: int
    distinct: int
    train_rows: int
    some_texts: int
    all_texts: int

    @property
    def share(self) -> float:
        """Share of the evaluation rows that are training pairs, in 0..1."""
        return self.shared / self.rows


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Overlap per evaluation set (`sets`) and per subset; `examples` are (training, evaluation) sources."""

    train_rows: int
    shared_train_rows: int
    sets: tuple[Overlap, ...]
    subsets: tuple[Overlap, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()

    @property
    def train_share(self) -> float:
        """Share of the training rows that are pairs of any evaluation set, in 0..1."""
        return self.shared_train_rows / self.train_rows if self.train_rows else 0.0

    @property
    def worst(self) -> Overlap:
        """The evaluation set with the largest share of its rows in the training data."""
        return max(self.sets, key=lambda overlap: overlap.share)

    def note(self) -> str:
        """One line to stand under a result."""
        worst = self.worst
        if not worst.shared:
            return f"training overlap: none of {self.train_rows:,} training rows is an evaluation pair"
        return (
            f"training overlap: {self.shared_train_rows:,} of {self.train_rows:,} training rows are "
            f"evaluation pairs; most in {worst.name}, {worst.share:.1%} of its rows"
        )

    def to_lines(self) -> list[str]:
        """An aligned table, subsets indented under their set, and the note under it."""
        header = (
            "evaluation set",
            "rows",
            "in training",
            "share",
            "distinct",
            "training rows",
            "some texts",
            "all texts",
        )
        rows = []
        for overlap in self.sets:
            rows.append(_cells(overlap.name, overlap))
            parts = [part for part in self.subsets if part.name == overlap.name]
            rows += [_cells(f"  {part.subset}", part) for part in parts]
        found = [f"e.g. {train} = {evaluation}" for train, evaluation in self.examples]
        return [*align(header, rows), self.note(), *found]

    def to_text(self) -> str:
        """The lines of `to_lines` as one text."""
        return "\n".join(self.to_lines())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "train_rows": self.train_rows,
            "shared_train_rows": self.shared_train_rows,
            "sets": [{**asdict(overlap), "share": overlap.share} for overlap in self.sets],
            "subsets": [{**asdict(overlap), "share": overlap.share} for overlap in self.subsets],
            "examples": [list(example) for example in self.examples],
        }


def _cells(name: str, overlap: Overlap) -> tuple[str, ...]:
    counts = (overlap.distinct, overlap.train_rows, overlap.some_texts, overlap.all_texts)
    return (
        name,
        f"{overlap.rows:,}",
        f"{overlap.shared:,}",
        f"{overlap.share:.1%}",
        *(f"{n:,}" for n in counts),
    )
