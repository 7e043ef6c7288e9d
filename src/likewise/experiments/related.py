"""Correlations between relations: of ratings, of the joint model's answers, and across single models.

gold         Spearman between the ratings of two relations, on the test pairs
joint        the same between the joint model's answers; shows whether it separates relations as people do
learnt from  Spearman between the answers of a model that was trained on the row's relation alone and the
             ratings of the column's relation; shows how much of the one is learnt from the other
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError
from likewise.evaluation.metrics import spearman
from likewise.evaluation.tables import align

Arrays = Mapping[str, NDArray[Any]]
# Per cell of a run what it wrote, and the predictions and ratings it left.
Run = Sequence[tuple[dict[str, Any], Arrays]]
Correlations = list[list[float | None]]


@dataclass(frozen=True, slots=True)
class RelatedReport:
    """Three matrices of Spearman correlations between the relations of the same pairs; None if undefined."""

    start: str
    names: tuple[str, ...]
    pairs: int
    gold: Correlations
    joint: Correlations
    learnt_from: Correlations | None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The matrices as aligned text."""
        shown = [("ratings", self.gold), ("answers of the joint model", self.joint)]
        if self.learnt_from is not None:
            shown.append(("answers after training on row, ratings of column", self.learnt_from))
        made = [f"{self.start} correlations of relations (Spearman), {self.pairs:,} test pairs".strip()]
        for title, matrix in shown:
            rows = [
                (name, *("–" if value is None else f"{value:.2f}" for value in row))
                for name, row in zip(self.names, matrix, strict=True)
            ]
            made += ["", *align((title, *self.names), rows)]
        return made


def relate(start: str, joint: Run, single: Run) -> list[RelatedReport]:
    """A report for each set of test pairs for which two or more graded relations were answered.

    `joint` is one run of the joint setting. `single` is one run with a model per relation; it may be empty.
    """
    answers, alone = _answers(joint), _answers(single)
    found = []
    for digest in dict.fromkeys(digest for digest, _ in answers):
        names = tuple(name for where, name in answers if where == digest)
        if len(names) < 2:
            continue
        gold = [answers[digest, name][0] for name in names]
        given = [answers[digest, name][1] for name in names]
        own = [alone[digest, name][1] for name in names if (digest, name) in alone]
        cross = _matrix(own, gold) if len(own) == len(names) else None
        found.append(
            RelatedReport(start, names, len(gold[0]), _matrix(gold, gold), _matrix(given, given), cross)
        )
    return found


def _answers(run: Run) -> dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]]:
    """Ratings and the head's answers by (pairs, task), for the tasks whose answers are numbers."""
    found = {}
    for cell, kept in run:
        for task in cell["results"].get("head", {"tasks": []})["tasks"]:
            name = task["name"]
            gold, given = kept[f"gold/{name}"], kept[f"head/{name}"]
            if gold.dtype.kind == "f" and given.dtype.kind == "f":
                found[task["pairs"], name] = (gold, given)
    return found


def _matrix(rows: Sequence[NDArray[Any]], columns: Sequence[NDArray[Any]]) -> Correlations:
    return [[_spearman(row, column) for column in columns] for row in rows]


def _spearman(x: NDArray[Any], y: NDArray[Any]) -> float | None:
    try:
        return spearman(x.astype(np.float64), y.astype(np.float64))
    except EvaluationError:
        return None
