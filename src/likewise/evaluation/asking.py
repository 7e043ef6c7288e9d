"""Measure any kind of model on a suite: which question each task asks of it, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import ANSWER, COSINE, MATCHER, Answering, Progress
from likewise.errors import UsageError
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import SuiteResult
from likewise.evaluation.suites import Suite, run_suite
from likewise.evaluation.tasks import Task
from likewise.records import Relation
from likewise.spelling import spelt

_TEXTS = {1: "single texts", 2: "pairs of texts"}


@dataclass(frozen=True, slots=True)
class Assigned:
    """The part of a suite that a model is measured on, the source of its answers, and the relations that
    answer.

    `asked` maps a task's name for its question to the relation that answers it. If that is a Relation, the
    model never saw its labels and reads them. `notes` say why tasks are left out.
    """

    suite: Suite
    left_out: tuple[str, ...]
    source: str
    asked: Mapping[str, str | Relation]
    notes: tuple[str, ...] = ()


def measure(
    answering: Answering,
    suite: Suite,
    *,
    source: str | None = None,
    aggregation: str = "all",
    metric: str | None = None,
    data_dir: Path | None = None,
    keep_predictions: bool = False,
    progress: Progress | None = None,
    tolerant: bool = False,
) -> SuiteResult:
    """Measure a model on a suite, by the source that the suite names unless another one is given.

    The result records the source that answered. A `tolerant` run continues after a task without a value.
    """
    assigned = assign(suite, answering, source or suite.source, metric)
    fallback = metric or ("accuracy" if assigned.source == MATCHER else "spearman")
    protocol = Protocol(metric=fallback, aggregation=aggregation, source=assigned.source)  # type: ignore[arg-type]

    def scorer(rows: list[tuple[str, ...]], names: list[str]) -> NDArray[Any]:
        return _answers(answering, assigned, rows, names, progress)

    cut = answering.cut_texts
    cut.clear()
    result = run_suite(
        assigned.suite,
        scorer,
        protocol=protocol,
        data_dir=data_dir,
        keep_predictions=True,
        tolerant=tolerant,
    )
    unseen = () if assigned.source == COSINE else _unseen_labels(assigned, answering, result)
    return replace(
        result,
        left_out=(*assigned.left_out, *result.left_out),
        notes=(*assigned.notes, *result.notes, *unseen),
        predictions=result.predictions if keep_predictions else {},
        cut=cut.found(),
    )


def assign(suite: Suite, answering: Answering, source: str, metric: str | None = None) -> Assigned:
    """Decide which tasks a model answers and how: by the relation's name, by its first relation, or by label
    texts.

    A suite that asks by name is measured only on relations that the model has, and by the cosine only on
    numbers. Any other suite takes the answers to each model's own relation. Tasks that cannot be answered are
    left out, with a note that says why.
    """
    read = [task for task in suite.tasks if task.texts in answering.texts]
    if not read:
        asks = " and ".join(_TEXTS[n] for n in sorted({task.texts for task in suite.tasks}))
        raise UsageError(
            f"suite {suite.name} asks about {asks}, but this model answers "
            f"{_reads(answering)}. Choose another suite or model."
        )
    used = answered_source(answering, source)
    found: list[tuple[Task, str | Relation | None]]
    found = [(task, _relation_for(task, suite, answering, used)) for task in read]
    if answering.reads_labels and all(relation is None for _, relation in found):
        found = [(task, task.labels()) for task in read]
    kept: dict[str, tuple[Task, str | Relation]] = {}
    notes = []
    for task, relation in found:
        why = None if relation is None else _misfit(task, relation, answering, used, metric)
        if why is not None:
            notes.append(f"{task.name} is left out: {why}")
        elif relation is not None:
            kept[task.name] = (task, relation)
    if not kept:
        raise UsageError(notes[0] if notes else _nothing_asked(suite, answering))
    others = tuple(task.name for task in suite.tasks if task.name not in kept)
    tasks = tuple(task for task, _ in kept.values())
    asked = {task.asked: relation for task, relation in kept.values()}
    return Assigned(replace(suite, tasks=tasks), others, used, asked, tuple(notes))


def _nothing_asked(suite: Suite, answering: Answering) -> str:
    wanted = ", ".join(dict.fromkeys(task.asked for task in suite.tasks))
    known = ", ".join(relation.name for relation in answering.relations)
    return (
        f"suite {suite.name} asks for {wanted}, but this model answers {known} of "
        f"{_reads(answering)}. Choose another suite or model."
    )


def _reads(answering: Answering) -> str:
    return " and ".join(_TEXTS[number] for number in sorted(answering.texts))


def answered_source(answering: Answering, source: str) -> str:
    """The source that answers if this one is asked for. A model without pair vectors has only its own source.

    A raw encoder answers by its cosine.
    """
    offered = [name for relation in answering.relations for name in answering.sources(relation.name)]
    if COSINE not in offered:
        return (offered or [MATCHER])[0]
    return COSINE if source == ANSWER and answering.about.get("raw") else source


def _relation_for(task: Task, suite: Suite, answering: Answering, source: str) -> str | None:
    """The relation of a model that answers a task, or None if none does."""
    if source == COSINE:
        return task.asked if not suite.by_name or _compares_numbers(task) else None
    known = [relation.name for relation in answering.relations]
    if task.asked in known:
        return task.asked
    return None if suite.by_name or answering.reads_labels else known[0]


def _misfit(
    task: Task, relation: str | Relation, answering: Answering, source: str, metric: str | None
) -> str | None:
    """The reason why a model's answers cannot be compared with a task's ratings or labels, or None if they
    can.
    """
    named = metric if not task.metric else task.metric
    measured = get_metric(named or task.default_metric or "spearman")
    if source == COSINE:
        if measured.compares_labels or measured.name in _RANKING:
            return None
        return (
            f"{measured.name} compares numbers on the scale of the ratings, which a cosine does not "
            f"have. Use {spelt('source', 'answer')}, or a correlation."
        )
    own = next((one for one in answering.relations if one.name == relation), None)
    if own is None:
        return None
    if isinstance(task.relation, Relation) and own.name != task.relation.name:
        # Tasks on named corpora may have another name for the same thing (SICK's relatedness).
        known = ", ".join(one.name for one in answering.relations)
        return (
            f"it asks for {task.relation.name!r}, but the model answers {known}. Correct the "
            f"suite's relation, or use {spelt('source', 'cosine')}."
        )
    if why := _other_scale(
        own, task, on_scale=measured.name not in _RANKING and not measured.compares_labels
    ):
        return why
    if measured.compares_labels and not own.labels:
        return f"{measured.name} compares labels, but the model answers {own.name} with a number"
    if not measured.compares_labels and own.kind == "classes":
        return f"{measured.name} compares numbers, but the model answers {own.name} with a label"
    return None


_RANKING = ("spearman", "pearson", "kendall")


def _other_scale(own: Relation, task: Task, *, on_scale: bool) -> str | None:
    """The reason why the numbers of a model and a task do not mean the same, or None if they do."""
    asked = task.labels()
    if on_scale and (own.lo, own.hi) != (asked.lo, asked.hi):
        return f"it is rated on {asked.scale}, but the model answers {own.name} on {own.scale}"
    if own.kind == asked.kind == "ordered" and own.labels != asked.labels:
        return f"its labels have the order {asked.scale}, but those of the model have the order {own.scale}"
    return None


def _compares_numbers(task: Task) -> bool:
    return not task.metric or not get_metric(task.metric).compares_labels


def _answers(
    answering: Answering,
    assigned: Assigned,
    rows: list[tuple[str, ...]],
    names: list[str],
    progress: Progress | None,
) -> NDArray[Any]:
    """One answer per row: numbers, or labels if any task asks for labels."""
    if assigned.source == COSINE:
        return answering.embedding().cosines([(a, b) for a, b in rows], progress=progress)
    wanted = [assigned.asked[name] for name in names]
    answers = np.empty(len(rows), dtype=object)
    for relation in dict.fromkeys(wanted):
        mine = [row for row, asked in enumerate(wanted) if asked == relation]
        source = None if assigned.source == ANSWER else assigned.source
        found = answering.answer([rows[row] for row in mine], relation, source=source, progress=progress)
        answers[mine] = found.values
    return answers if any(isinstance(answer, str) for answer in answers) else answers.astype(np.float64)


def _unseen_labels(assigned: Assigned, answering: Answering, result: SuiteResult) -> tuple[str, ...]:
    """A line for every task that has labels which the model's relation does not have."""
    known = {relation.name: relation.labels for relation in answering.relations if relation.labels}
    lines = []
    tasks = {task.name: task for task in assigned.suite.tasks}
    for measured in result.tasks:
        task = tasks[measured.name]
        gold = result.predictions[measured.name].gold
        relation = assigned.asked[task.asked]
        if relation not in known or gold.dtype.kind not in "UO":
            continue
        unseen = [str(label) for label in gold if str(label) not in known[str(relation)]]
        if unseen:
            named = ", ".join(map(repr, sorted(set(unseen))))
            lines.append(
                f"{measured.name}: {len(unseen):,} of {measured.n:,} rows have a label that the "
                f"model never saw ({named}). They count as wrong."
            )
    return tuple(lines)
