"""Names of evaluation sets to their records, for the leak filter and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.data import corpus_names, find_corpus, load, text_key
from likewise.data.parallel import parallel_names, read_parallel
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import load_task
from likewise.records import Record


def evaluation_sets(
    names: Sequence[str], *, data_dir: str | Path | None = None, pairs: bool = True
) -> dict[str, list[Record]]:
    """Records by set name; a suite's name (sts7) stands for all of its sets, others are corpora or files."""
    sets: dict[str, list[Record]] = {}
    for name in names:
        if name in SUITES:
            sets.update({task.name: load_task(task, data_dir=data_dir) for task in SUITES[name].tasks})
        else:
            sets[name] = load(name, relations=(), data_dir=data_dir, pairs=pairs)
    return sets


def is_parallel(name: str) -> bool:
    """Whether an evaluation set is parallel text: translations are filtered against such, rated pairs not."""
    head = name.partition("/")[0]
    return head in corpus_names() and find_corpus(head).kind == "parallel"


def parallel_keys(names: Sequence[str], *, data_dir: Path | str | None) -> set[str]:
    """Overlap keys of all texts of the parallel sets among these; a corpus without a split is all of it."""
    keys: set[str] = set()
    for name in filter(is_parallel, names):
        for part in [name] if "/" in name else parallel_names(name):
            text = read_parallel(part, data_dir=data_dir)
            keys.update(text_key(line) for line in (*text.a, *text.b))
    return keys
