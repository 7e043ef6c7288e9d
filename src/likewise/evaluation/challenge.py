"""The challenge set: sentences that differ in one respect, such as a negation, and what a model says of them.

An item is a text, a sentence that means the same, and another one that does not. Its two pairs are
(text, same) and (text, other). A model is asked:

    similarity   does the first pair get the higher answer? By the model's own answer to its relation
                 `similarity` (or else to its first graded relation)
    cosine       the same by the bare cosine of the two vectors
    entailment   are both pairs labelled rightly, entailment and the item's own label?
    paraphrase   is the first pair called a paraphrase, and the second not?
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import ANSWER, COSINE, Answering, Progress
from likewise.data import open_table
from likewise.data.rows import Row
from likewise.data.values import to_text
from likewise.errors import DataError, EvaluationError, ModelError, Problem, UsageError
from likewise.evaluation.challenge_result import (
    ENTAILMENT,
    ORDERED,
    PARAPHRASE,
    SIMILARITY,
    ChallengeResult,
    ChallengeShare,
    Phenomenon,
)
from likewise.evaluation.intervals import metric_interval, wilson_interval
from likewise.evaluation.protocol import Protocol
from likewise.records import Relation

COLUMNS = ("id", "phenomenon", "text", "same", "other", "other_label")
LABELS = ("contradiction", "neutral", "entailment")
PARAPHRASES = ("not_paraphrase", "paraphrase")

_REMEDY = "correct the file; likewise/samples/challenge.md says what each column holds"


@dataclass(frozen=True, slots=True)
class ChallengeItem:
    """A text, a sentence with the same meaning, and another one with the label of (text, other)."""

    id: str
    phenomenon: str
    text: str
    same: str
    other: str
    other_label: str


@dataclass(frozen=True, slots=True)
class _Answered:
    """A model's answers to one question: those to all pairs (text, same), then those to all (text, other)."""

    measure: str
    said: str
    values: NDArray[Any]


def read_challenge(path: Path | str | None = None) -> tuple[ChallengeItem, ...]:
    """The items of the challenge set that comes with the package, or those of a file of the same form."""
    if path is not None:
        return _read(Path(path))
    with resources.as_file(resources.files("likewise").joinpath("samples/challenge.csv")) as file:
        return _read(file)


def measure_challenge(
    answering: Answering,
    items: Sequence[ChallengeItem] | None = None,
    *,
    source: str | None = None,
    keep_predictions: bool = False,
    progress: Progress | None = None,
) -> ChallengeResult:
    """Measure a model on the challenge set: for each phenomenon, and over all items.

    `source` is that of the similarity, by default the one that the model answers from. With the source
    `cosine` nothing else is measured. A question that the model does not answer is left out with a note.
    """
    Protocol(source=source or ANSWER)  # type: ignore[arg-type]
    if 2 not in answering.texts:
        raise UsageError(
            "the challenge set asks about pairs of texts, but this model answers single texts. Choose a "
            "model of pairs."
        )
    items = read_challenge() if items is None else tuple(items)
    notes: list[str] = []
    cut = answering.cut_texts
    cut.clear()
    found = _answers(answering, items, source or ANSWER, notes, progress)
    if not found:
        raise UsageError(f"the challenge set asks nothing that this model answers. {' '.join(notes)}")
    names = dict.fromkeys(item.phenomenon for item in items)
    parts = [(name, [n for n, item in enumerate(items) if item.phenomenon == name]) for name in names]
    return ChallengeResult(
        tuple(_phenomenon(name, items, rows, found) for name, rows in parts),
        _phenomenon("all", items, range(len(items)), found),
        _protocol(found),
        _fingerprint(items),
        notes=tuple(notes),
        cut=cut.found(),
        predictions=_predictions(items, found) if keep_predictions else None,
    )


def _answers(
    answering: Answering,
    items: Sequence[ChallengeItem],
    source: str,
    notes: list[str],
    progress: Progress | None,
) -> list[_Answered]:
    """What the model answers to each question that it can be asked."""
    rows = [(item.text, item.same) for item in items] + [(item.text, item.other) for item in items]
    found = []

    def ask(measure: str, relation: Relation, by: str | None = None) -> None:
        said = answering.answer(rows, relation.name, source=by, progress=progress)
        named = f"relation {relation.name} ({said.relation.scale}), from the {said.source}"
        found.append(_Answered(measure, named, np.asarray(said.values)))

    graded = [relation for relation in answering.relations if relation.kind == "graded"]
    own = next((one for one in graded if one.name == SIMILARITY), graded[0] if graded else None)
    if own is None:
        notes.append("similarity is left out: the model has no graded relation")
    elif source != COSINE:
        ask(SIMILARITY, own, None if source == ANSWER else source)
    try:
        cosines = answering.embedding().cosines(rows, progress=progress)
        found.append(_Answered(COSINE, "of the model's two vectors", cosines))
    except (ModelError, UsageError) as error:
        notes.append(f"cosine is left out: {error}")
    for measure, labels in ((ENTAILMENT, LABELS), (PARAPHRASE, PARAPHRASES)):
        relation = next((one for one in answering.relations if one.name == measure), None)
        if relation is None or source == COSINE:
            continue
        if set(relation.labels) == set(labels):
            ask(measure, relation)
            continue
        notes.append(
            f"{measure} is left out: the model answers it on {relation.scale}, but the labels "
            f"{', '.join(labels)} are expected"
        )
    return found


def _phenomenon(
    name: str, items: Sequence[ChallengeItem], rows: Sequence[int], found: Sequence[_Answered]
) -> Phenomenon:
    """The shares of some items, by question."""
    shares = {}
    chosen = np.asarray(rows, dtype=np.intp)
    for answered in found:
        first, second = answered.values[chosen], answered.values[chosen + len(items)]
        if answered.measure in ORDERED:
            shares[answered.measure] = ordered_share(first, second)
        else:
            gold = _gold(answered.measure, [items[row] for row in rows])
            shares[answered.measure] = _labelled_share(gold, np.concatenate([first, second]), len(rows))
    return Phenomenon(name, len(rows), shares)


def ordered_share(same: NDArray[np.float64], other: NDArray[np.float64]) -> ChallengeShare:
    """The share of items whose first pair has the higher value, in per cent, where a tie counts as half."""
    ties = int(np.sum(same == other))
    share = float((np.sum(same > other) + ties / 2) / len(same))
    return ChallengeShare(100 * share, len(same), wilson_interval(share, len(same)).scaled(100), ties=ties)


def _labelled_share(gold: Sequence[str], said: NDArray[Any], items: int) -> ChallengeShare:
    """The accuracy over both pairs of each item in per cent, beside that of the most frequent label."""
    labels, counts = np.unique(gold, return_counts=True)
    right = float(np.mean(np.asarray(gold) == said))
    try:
        interval = metric_interval("accuracy", gold, said, groups=[*range(items), *range(items)])
    except EvaluationError:  # too few rows for an interval, though enough for a value
        interval = None
    return ChallengeShare(
        100 * right,
        len(gold),
        None if interval is None else interval.scaled(100),
        majority=100 * float(counts.max()) / len(gold),
        most_frequent=str(labels[counts.argmax()]),
    )


def _gold(measure: str, items: Sequence[ChallengeItem]) -> list[str]:
    """The right labels of all pairs (text, same), then of all pairs (text, other)."""
    if measure == ENTAILMENT:
        return [LABELS[2]] * len(items) + [item.other_label for item in items]
    return [PARAPHRASES[1]] * len(items) + [PARAPHRASES[0]] * len(items)


def _protocol(found: Sequence[_Answered]) -> tuple[str, ...]:
    lines = []
    measures = [answered.measure for answered in found]
    if set(measures) & set(ORDERED):
        lines.append(
            "protocol: the share of items whose pair with the same meaning gets the higher value, in %; a "
            "tie counts as half; 95 % Wilson interval"
        )
    if set(measures) - set(ORDERED):
        lines.append(
            "labels: accuracy over both pairs of each item, in %; the 95 % interval counts the two pairs of "
            "an item as one; majority is the accuracy of always answering the most frequent label"
        )
    return (*lines, *(f"{answered.measure}: {answered.said}" for answered in found))


def _fingerprint(items: Sequence[ChallengeItem]) -> str:
    """The sha256 of all items. Two numbers with equal fingerprints are on the same set."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(json.dumps(astuple(item)).encode() + b"\n")
    return digest.hexdigest()


def _predictions(items: Sequence[ChallengeItem], found: Sequence[_Answered]) -> dict[str, dict[str, Any]]:
    """By item and question, the answers to both pairs of the item."""
    return {
        item.id: {answered.measure: answered.values[[row, row + len(items)]].tolist() for answered in found}
        for row, item in enumerate(items)
    }


def _read(path: Path) -> tuple[ChallengeItem, ...]:
    """The items of a file. All problems of its columns are told at once, and those of a row one by one."""
    table = open_table(path)
    absent = [column for column in COLUMNS if column not in table.columns]
    if absent:
        found = f"there is no column {', '.join(absent)}, but {', '.join(COLUMNS)} are expected"
        raise DataError([Problem(table.name, found, _REMEDY)])
    items: dict[str, ChallengeItem] = {}
    for row in table:
        item = ChallengeItem(*(_cell(row, column) for column in COLUMNS))
        if item.id in items:
            raise DataError([Problem(row.source, f"another item has the id {item.id!r} too", _REMEDY)])
        if item.other_label not in LABELS:
            found = f"other_label is {item.other_label!r}, but one of {', '.join(LABELS)} is expected"
            raise DataError([Problem(row.source, found, _REMEDY)])
        items[item.id] = item
    if not items:
        raise DataError([Problem(table.name, "there are no items below the header", _REMEDY)])
    return tuple(items.values())


def _cell(row: Row, column: str) -> str:
    return to_text(row.fields.get(column), column=column, source=row.source).strip()
