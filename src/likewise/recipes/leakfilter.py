"""Names of evaluation sets to their records, for the leak filter and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.data import load
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import load_task
from likewise.records import Record


def evaluation_sets(names: Sequence[str], *, data_dir: str | Path | None = None) -> dict[str, list[Record]]:
    """Records by set name; a suite's name (sts7) stands for all of its sets, others are corpora or files."""
    sets: dict[str, list[Record]] = {}
    for name in names:
        if name in SUITES:
            sets.update({task.name: load_task(task, data_dir=data_dir) for task in SUITES[name].tasks})
        else:
            sets[name] = load(name, relations=(), data_dir=data_dir)
    return sets
