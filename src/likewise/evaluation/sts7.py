"""The seven-task STS benchmark: its test sets, and the train and dev rows that are in none of them.

82.8 % of STS-B train and 75.4 % of STS-B dev are pairs of the STS12–16 tests. "Clean" means here that a row
of STS-B train or dev, or of SICK train or trial, is dropped if its pair is in any of the seven test sets.
This leaves 951 + 4,367 = 5,318 rows to train on and 363 + 486 = 849 to select on. Filtering against STS12–16
alone drops 4,760 of 5,749 train rows and 1,131 of 1,500 dev rows; STS-B and SICK test drop 38 and 6 more.
Train and dev are not cleaned of each other: 8 + 4 of the dev rows are also train rows. "Strict" also drops
rows that share one text with a test set, and near-duplicates of test pairs.
"""

from __future__ import annotations

from pathlib import Path

from likewise.data import load_corpus
from likewise.evaluation.leakage import filter_overlap
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import Task, load_task
from likewise.records import Record

_OWN = {"STS-B": Task("STS-B", "stsb"), "SICK-R": Task("SICK-R", "sick", relation="relatedness")}


def sts7_evaluation_sets(data_dir: Path | str | None = None) -> dict[str, list[Record]]:
    """The test records of the seven tasks by name: STS12 … STS16, STS-B, SICK-R."""
    return {task.name: load_task(task, data_dir=data_dir) for task in SUITES["sts7"].tasks}


def clean_train(data_dir: Path | str | None = None, *, strict: bool = False) -> dict[str, list[Record]]:
    """The 951 STS-B and 4,367 SICK training rows that are no test pair; with `strict`, 688 and 60."""
    return _clean({"STS-B": "train", "SICK-R": "train"}, data_dir, strict)


def clean_dev(data_dir: Path | str | None = None, *, strict: bool = False) -> dict[str, list[Record]]:
    """The 363 STS-B dev and 486 SICK trial rows that are no test pair, to select on; with `strict`, 306
    and 10.
    """
    return _clean({"STS-B": "dev", "SICK-R": "trial"}, data_dir, strict)


def clean_dev_tasks(data_dir: Path | str | None = None) -> list[tuple[Task, list[Record]]]:
    """The same rows as tasks for `run_tasks`. Select on their average, the mean of the two Spearman
    correlations.
    """
    return [(_OWN[name], records) for name, records in clean_dev(data_dir).items()]


def _clean(splits: dict[str, str], data_dir: Path | str | None, strict: bool) -> dict[str, list[Record]]:
    tests = sts7_evaluation_sets(data_dir)
    return {
        name: filter_overlap(load_corpus(_OWN[name].corpus, split, data_dir=data_dir), tests, strict=strict)[
            0
        ]
        for name, split in splits.items()
    }
