"""The rows that models are measured on. Every corpus is read once, whatever the number of models."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.data import find_corpus, load_corpus
from likewise.data.corpora import paraphrase_table
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.sts7 import clean_dev_tasks
from likewise.evaluation.suites import Suite, get_suite
from likewise.evaluation.tasks import Task, TaskRows, load_task
from likewise.records import Record

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = Protocol(metric="spearman", aggregation="all", source="cosine")


def find_data(named: Path | None) -> Path | None:
    """The folder of the corpora: the named one, LIKEWISE_DATA, or `shared/data` in or beside the checkout."""
    if named is not None or os.environ.get("LIKEWISE_DATA"):
        return named
    beside = (ROOT / "shared" / "data", ROOT.parent / "shared" / "data")
    return next((folder for folder in beside if folder.is_dir()), None)


class Rows:
    """The records of named corpora, kept in memory after the first reading."""

    def __init__(self, data_dir: Path | None) -> None:
        self.data_dir = data_dir
        self._known: dict[tuple[str, str], list[Record]] = {}

    def of(self, corpus: str, split: str = "test") -> list[Record]:
        """The records of a split."""
        if (corpus, split) not in self._known:
            self._known[corpus, split] = load_corpus(corpus, split, data_dir=self.data_dir)
        return self._known[corpus, split]

    @cached_property
    def sts7(self) -> Suite:
        """The seven-task suite with its records in memory."""
        suite = get_suite("sts7")
        known = ((task, load_task(task, data_dir=self.data_dir)) for task in suite.tasks)
        return replace(suite, tasks=tuple(replace(task, records=tuple(records)) for task, records in known))

    @cached_property
    def clean_dev(self) -> list[tuple[Task, list[Record]]]:
        """The 363 + 486 rows of STS-B dev and SICK trial that are in none of the seven test sets."""
        return clean_dev_tasks(self.data_dir)

    @cached_property
    def paraphrases(self) -> list[tuple[str, str]]:
        """The 9,999 pairs of English sentences in the test split of Tatoeba."""
        corpus = find_corpus("tatoeba_paraphrases")
        table = paraphrase_table(corpus, corpus.find_split("test"), data_dir=self.data_dir)
        first, second = corpus.texts
        return [(str(row.fields[first]), str(row.fields[second])) for row in table]


def texts_of(records: Iterable[Record]) -> Iterator[str]:
    """All texts of records."""
    for record in records:
        yield from record.texts


def pairs_of(records: Iterable[Record]) -> list[tuple[str, ...]]:
    """The texts of records, row by row."""
    return [record.texts for record in records]


def gold_of(records: Iterable[Record], relation: str) -> NDArray[Any]:
    """The ratings or labels of records."""
    return np.asarray([record.values[relation] for record in records])


def measured(metric: str, relation: str, records: Sequence[Record], predicted: Any) -> dict[str, Any]:
    """A metric of predictions, ×100, with its 95 % interval over rows."""
    rows = TaskRows(Task(relation, relation=relation, metric=metric), records, PROTOCOL)
    found = rows.measure(np.asarray(predicted))
    return valued(found.value, found.interval)


def valued(value: float, interval: Any = None, **more: Any) -> dict[str, Any]:
    """A number of a result, with the ends of its interval if it has one."""
    ends = {} if interval is None else {"interval": [interval.low, interval.high]}
    return {"value": value, **ends, **more}


def commonest(labels: Iterable[Any]) -> Any:
    """The label that occurs most often."""
    return Counter(labels).most_common(1)[0][0]
