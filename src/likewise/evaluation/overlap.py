"""What an audit found: the overlap of one training set with each evaluation set, as text, table or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from likewise.evaluation.tables import align
from likewise.wording import counted

# Why a filter drops a training row; a row counts once, by the first of these that holds.
PAIR, TEXT, NEAR_COPY = "pair", "text", "near-copy"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap of the training data with one evaluation set, or with one subset of it.

    rows         rows of the evaluation set
    shared       rows whose pair (unordered, by `text_key`) is a training pair
    distinct     different pairs among them
    train_rows   training rows that hold one of those pairs
    some_texts   rows of which at least one text occurs in the training data
    all_texts    rows of which every text does
    near         rows with a near-duplicate in the training data that are no training pair; 0 if not counted
    """

    name: str
    subset: str
    rows: int
    shared: int
    distinct: int
    train_rows: int
    some_texts: int
    all_texts: int
    near: int = 0

    @property
    def share(self) -> float:
        """Share of the evaluation rows that are training pairs, in 0..1."""
        return self.shared / self.rows


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Overlap per evaluation set (`sets`) and per subset. `examples` are (training, evaluation) sources.

    shared_train_rows   training rows that are an evaluation pair
    text_train_rows     training rows with a text of an evaluation set, in any pair
    near                the threshold of near-duplicates, in 0..1; None if they were not looked for
    near_train_rows     training rows that are near-duplicates of an evaluation row, and no evaluation pair
    strict_train_rows   training rows that the strict filter drops: all of the above
    """

    train_rows: int
    shared_train_rows: int
    sets: tuple[Overlap, ...]
    subsets: tuple[Overlap, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    text_train_rows: int = 0
    near: float | None = None
    near_train_rows: int = 0
    strict_train_rows: int = 0
    near_examples: tuple[tuple[str, str], ...] = ()

    @property
    def train_share(self) -> float:
        """Share of the training rows that are pairs of any evaluation set, in 0..1."""
        return self.shared_train_rows / self.train_rows if self.train_rows else 0.0

    @property
    def worst(self) -> Overlap:
        """The evaluation set with the largest share of its rows in the training data."""
        return max(self.sets, key=lambda overlap: overlap.share)

    @property
    def dropped(self) -> dict[str, int]:
        """How many training rows the strict filter drops by pair, by text and as near-duplicates. Each row
        counts once.
        """
        return {
            PAIR: self.shared_train_rows,
            TEXT: self.text_train_rows - self.shared_train_rows,
            NEAR_COPY: self.strict_train_rows - self.text_train_rows,
        }

    def note(self) -> str:
        """One line to stand under a result."""
        worst = self.worst
        if not worst.shared:
            return f"training overlap: none of {self.train_rows:,} training rows is an evaluation pair"
        return (
            f"training overlap: {self.shared_train_rows:,} of {self.train_rows:,} training rows are "
            f"evaluation pairs. The set with the largest share is {worst.name}, with "
            f"{worst.share:.1%} of its rows."
        )

    def text_note(self) -> str:
        """One line about single texts that are shared, in any pair."""
        if not self.text_train_rows:
            return f"shared texts: none of {self.train_rows:,} training rows has a text of an evaluation row"
        rows = sum(overlap.rows for overlap in self.sets)
        some = sum(overlap.some_texts for overlap in self.sets)
        every = sum(overlap.all_texts for overlap in self.sets)
        return (
            f"shared texts: {self.text_train_rows:,} of {self.train_rows:,} training rows hold a "
            f"text of an evaluation row. {some:,} of {rows:,} evaluation rows ({some / rows:.1%}) "
            f"have at least one text in the training data, and {every:,} have all of their texts "
            "there."
        )

    def near_note(self) -> str:
        """One line about near-duplicates. Empty if they were not looked for."""
        if self.near is None:
            return ""
        rows = sum(overlap.rows for overlap in self.sets)
        found = sum(overlap.near for overlap in self.sets)
        what = f"near-duplicates (word Jaccard of {self.near:g} or more, text by text)"
        if not found and not self.near_train_rows:
            return f"{what}: none in {self.train_rows:,} training rows"
        return (
            f"{what}: {self.near_train_rows:,} of {self.train_rows:,} training rows. {found:,} of "
            f"{rows:,} evaluation rows have one in the training data."
        )

    def strict_note(self) -> str:
        """One line about the rows that the strict filter drops, and why."""
        kept, dropped = self.train_rows - self.strict_train_rows, self.dropped
        return (
            f"strict filter: kept {kept:,} of {self.train_rows:,} training rows and dropped "
            f"{counted(dropped[PAIR], 'evaluation pair')}, "
            f"{counted(dropped[TEXT], 'row')} with a text of an evaluation row and "
            f"{counted(dropped[NEAR_COPY], 'near-duplicate')}"
        )

    def to_lines(self) -> list[str]:
        """An aligned table with subsets indented under their set, and the notes below it."""
        header = (
            "evaluation set",
            "rows",
            "in training",
            "share",
            "distinct",
            "training rows",
            "some texts",
            "all texts",
            *([] if self.near is None else ["near-duplicates"]),
        )
        rows = []
        for overlap in self.sets:
            rows.append(self._cells(overlap.name, overlap))
            parts = [part for part in self.subsets if part.name == overlap.name]
            rows += [self._cells(f"  {part.subset}", part) for part in parts]
        same = [f"e.g. {train} = {evaluation}" for train, evaluation in self.examples]
        near = [f"e.g. {train} ≈ {evaluation}" for train, evaluation in self.near_examples]
        notes = [self.note(), *same, self.text_note(), self.near_note(), *near]
        return [*align(header, rows), *(note for note in notes if note)]

    def to_text(self) -> str:
        """The lines of `to_lines` as one text."""
        return "\n".join(self.to_lines())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "train_rows": self.train_rows,
            "shared_train_rows": self.shared_train_rows,
            "sets": [self._as_dict(overlap) for overlap in self.sets],
            "subsets": [self._as_dict(overlap) for overlap in self.subsets],
            "examples": [list(example) for example in self.examples],
            "text_train_rows": self.text_train_rows,
            **({} if self.near is None else self._near_dict()),
        }

    def _as_dict(self, overlap: Overlap) -> dict[str, Any]:
        found = {**asdict(overlap), "share": overlap.share}
        if self.near is None:
            del found["near"]
        return found

    def _near_dict(self) -> dict[str, Any]:
        return {
            "near": self.near,
            "near_train_rows": self.near_train_rows,
            "near_examples": [list(example) for example in self.near_examples],
            "strict_train_rows": self.strict_train_rows,
            "dropped": self.dropped,
        }

    def _cells(self, name: str, overlap: Overlap) -> tuple[str, ...]:
        counts = [overlap.distinct, overlap.train_rows, overlap.some_texts, overlap.all_texts]
        counts += [] if self.near is None else [overlap.near]
        return (
            name,
            f"{overlap.rows:,}",
            f"{overlap.shared:,}",
            f"{overlap.share:.1%}",
            *(f"{n:,}" for n in counts),
        )
