"""A model on a suite, whatever kind of model it is: which task asks it for what, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import COSINE, MATCHER, Answering, Progress
from likewise.errors import UsageError
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import SuiteResult
from likewise.evaluation.suites import Suite, run_suite
from likewise.evaluation.tasks import Task
from likewise.records import Relation

_TEXTS = {1: "single texts", 2: "pairs of texts"}


@dataclass(frozen=True, slots=True)
class Assigned:
    """The part of a suite that a model is asked, by which source, and for which of its relations.

    `asked` maps a task's own name for what it asks to the relation that answers it; where that is a Relation,
    the model never saw its labels and reads them.
    """

    suite: Suite
    left_out: tuple[str, ...]
    source: str
    asked: Mapping[str, str | Relation]


def measure(
    answering: Answering,
    suite: Suite,
    *,
    source: str = COSINE,
    aggregation: str = "all",
    metric: str | None = None,
    data_dir: Path | None = None,
    keep_predictions: bool = False,
    progress: Progress | None = None,
) -> SuiteResult:
    """Measure a model on a suite; the result is filed under the source that answered."""
    assigned = assign(suite, answering, source)
    fallback = metric or ("accuracy" if assigned.source == MATCHER else "spearman")
    protocol = Protocol(metric=fallback, aggregation=aggregation, source=assigned.source)  # type: ignore[arg-type]

    def scorer(rows: list[tuple[str, ...]], names: list[str]) -> NDArray[Any]:
        return _answers(answering, assigned, rows, names, progress)

    result = run_suite(assigned.suite, scorer, protocol=protocol, data_dir=data_dir, keep_predictions=True)
    notes = () if assigned.source == COSINE else _unseen_labels(assigned, answering, result)
    kept = result.predictions if keep_predictions else {}
    return replace(result, left_out=assigned.left_out, notes=notes, predictions=kept)


def assign(suite: Suite, answering: Answering, source: str) -> Assigned:
    """Which tasks a model answers and how: by the relation's name, by its first relation, or by label texts.

    A suite that asks by name is asked only for what the model has a relation of; the cosine, only for
    numbers. Any other suite asks every model for its own relation. Tasks that cannot be answered are left
    out.
    """
    read = [task for task in suite.tasks if task.texts in answering.texts]
    if not read:
        asks = " and ".join(_TEXTS[n] for n in sorted({task.texts for task in suite.tasks}))
        raise UsageError(f"suite {suite.name} asks about {asks}; this model answers {_reads(answering)}")
    used = answered_source(answering, source)
    found: list[tuple[Task, str | Relation | None]]
    found = [(task, _relation_for(task, suite, answering, used)) for task in read]
    if answering.reads_labels and all(relation is None for _, relation in found):
        found = [(task, task.labels()) for task in read]
    kept = {task.name: (task, relation) for task, relation in found if relation is not None}
    if not kept:
        wanted = ", ".join(dict.fromkeys(task.asked for task in suite.tasks))
        known = ", ".join(relation.name for relation in answering.relations)
        raise UsageError(
            f"suite {suite.name} asks for {wanted}; this model answers {known} of {_reads(answering)}"
        )
    others = tuple(task.name for task in suite.tasks if task.name not in kept)
    tasks = tuple(task for task, _ in kept.values())
    asked = {task.asked: relation for task, relation in kept.values()}
    return Assigned(replace(suite, tasks=tasks), others, used, asked)


def _reads(answering: Answering) -> str:
    return " and ".join(_TEXTS[number] for number in sorted(answering.texts))


def answered_source(answering: Answering, source: str) -> str:
    """The source that answers where this one is asked for: a model without pair vectors has its own."""
    offered = [name for relation in answering.relations for name in answering.sources(relation.name)]
    return source if COSINE in offered else (offered or [MATCHER])[0]


def _relation_for(task: Task, suite: Suite, answering: Answering, source: str) -> str | None:
    """The relation of a model that answers a task; None if none does."""
    if source == COSINE:
        return task.asked if not suite.by_name or _compares_numbers(task) else None
    known = [relation.name for relation in answering.relations]
    if task.asked in known:
        return task.asked
    if suite.by_name or answering.reads_labels:
        return None
    _refuse_other_name(task, known)
    return known[0]


def _compares_numbers(task: Task) -> bool:
    return not task.metric or not get_metric(task.metric).compares_labels


def _refuse_other_name(task: Task, known: list[str]) -> None:
    """Refuse a relation that a user's own suite names and the model does not answer: likely a slip.

    Tasks on named corpora may have another name for the same thing (SICK's relatedness).
    """
    if isinstance(task.relation, Relation):
        raise UsageError(
            f"task {task.name!r} asks for {task.relation.name!r}, "
            f"the model's heads answer {', '.join(known)}; "
            "correct the suite's relation, or use --source cosine"
        )


def _answers(
    answering: Answering,
    assigned: Assigned,
    rows: list[tuple[str, ...]],
    names: list[str],
    progress: Progress | None,
) -> NDArray[Any]:
    """One answer per row: numbers, or labels where any task asks for them."""
    if assigned.source == COSINE:
        return answering.embedding().cosines([(a, b) for a, b in rows], progress=progress)
    wanted = [assigned.asked[name] for name in names]
    answers = np.empty(len(rows), dtype=object)
    for relation in dict.fromkeys(wanted):
        mine = [row for row, asked in enumerate(wanted) if asked == relation]
        found = answering.answer(
            [rows[row] for row in mine], relation, source=assigned.source, progress=progress
        )
        answers[mine] = found.values
    return answers if any(isinstance(answer, str) for answer in answers) else answers.astype(np.float64)


def _unseen_labels(assigned: Assigned, answering: Answering, result: SuiteResult) -> tuple[str, ...]:
    """A line for every task whose gold has labels that the model's relation does not."""
    known = {relation.name: relation.labels for relation in answering.relations if relation.labels}
    lines = []
    for task, measured in zip(assigned.suite.tasks, result.tasks, strict=True):
        gold = result.predictions[measured.name].gold
        relation = assigned.asked[task.asked]
        if relation not in known or gold.dtype.kind not in "UO":
            continue
        unseen = [str(label) for label in gold if str(label) not in known[str(relation)]]
        if unseen:
            named = ", ".join(map(repr, sorted(set(unseen))))
            lines.append(
                f"{measured.name}: {len(unseen):,} of {measured.n:,} rows have a label that the model "
                f"never saw ({named}); they count as wrong"
            )
    return tuple(lines)
