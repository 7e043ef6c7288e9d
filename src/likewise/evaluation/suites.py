"""Suites: named lists of tasks that are measured in one call.

A suite only declares its tasks. `run_suite` reads the data, asks the scorer once for the pairs of all tasks
(so that each distinct text can be encoded once), measures, and states the protocol beside the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import ANSWER, COSINE
from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.overlap import AuditReport
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import NOT_AUDITED, Predictions, SuiteResult, average_interval
from likewise.evaluation.sharing import text_fingerprints, text_numbers
from likewise.evaluation.tasks import Task, TaskRows, load_task, task_files
from likewise.records import Record
from likewise.wording import sentence

# (the texts of each row, the relation asked of it) → one answer per row: numbers, or labels.
Scorer = Callable[[list[tuple[str, ...]], list[str]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of tasks.

    With `by_name`, a head answers only the relation with its own name. Tasks that a model cannot answer are
    left out. `source` is the default source of the scores.
    """

    name: str
    tasks: tuple[Task, ...]
    by_name: bool = False
    source: str = ANSWER

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if not names or len(set(names)) != len(names):
            raise UsageError(
                f"suite {self.name!r} has the tasks {names}, but it needs one or more with different names."
            )

    @property
    def texts(self) -> int:
        """1 if every task is about single texts that are classified, 2 if some or all are about pairs."""
        return max(task.texts for task in self.tasks)

    def with_default_metrics(self) -> Suite:
        """The same suite, where every task that names no metric gets the metric of its relation."""
        tasks = (replace(task, metric=task.metric or task.default_metric) for task in self.tasks)
        return replace(self, tasks=tuple(tasks))


def _activity(name: str, relation: str) -> Task:
    return Task(name, "human_activity_phrases", relation=relation, metric="spearman")


# Not lists of tasks: translated pairs, retrieval, probes and spread, measured by `evaluation.crosslingual`;
# and items with two pairs each, measured by `evaluation.challenge`. What to use in their place:
CROSSLINGUAL, CHALLENGE = "crosslingual", "challenge"
NOT_TASKS = {
    CROSSLINGUAL: "use the suite language-pairs, which holds its translated pairs alone",
    CHALLENGE: "only `evaluate` can measure it",
}

SUITES: dict[str, Suite] = {
    "sts7": Suite(
        "sts7",
        (
            Task("STS12", "sts12", subsets=("MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews")),
            Task("STS13", "sts13", subsets=("FNWN", "headlines", "OnWN")),
            Task(
                "STS14",
                "sts14",
                subsets=("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
            ),
            Task(
                "STS15",
                "sts15",
                subsets=("answers-forums", "answers-students", "belief", "headlines", "images"),
            ),
            Task(
                "STS16",
                "sts16",
                subsets=("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
            ),
            Task("STS-B", "stsb"),
            Task("SICK-R", "sick", relation="relatedness"),
        ),
        source=COSINE,
    ),
    "relations": Suite(
        "relations",
        (
            _activity("HAP similarity", "sim"),
            _activity("HAP relatedness", "rel"),
            _activity("HAP motivational alignment", "ma"),
            _activity("HAP perceived actor congruence", "pac"),
            Task("SICK relatedness", "sick", relation="relatedness", metric="pearson"),
            Task("SICK entailment", "sick", relation="entailment", metric="accuracy"),
        ),
        by_name=True,
    ),
}


# Language pairs: six of them rated in the training data of the shipped recipes, the others held out.
LANGUAGE_PAIRS = (
    *("en-en", "en-de", "en-es", "en-fr", "en-it", "en-nl", "en-pl", "en-pt", "en-ru"),
    *("fr-de", "ru-de", "fr-es", "es-zh", "zh-ru", "pt-pl"),
)
SUITES["language-pairs"] = Suite(
    "language-pairs",
    tuple(Task(pair, "stsb_multi_mt", f"{pair}_test", metric="pearson") for pair in LANGUAGE_PAIRS),
    source=COSINE,
)


def _labelled(name: str, asks: str, corpus: str, split: str = "test", relation: str = "sentiment") -> Task:
    return Task(name, corpus, split, relation=relation, metric="accuracy", asks=asks, texts=1)


# The nine sets of Zhang, Xiao, Chen, Wang & Jin 2017; its three scenarios share IMDB.
SUITES["classification"] = Suite(
    "classification",
    (
        _labelled("SST-1", "sst1", "sst1"),
        _labelled("SST-2", "sst2", "sst2_sentences"),
        _labelled("IMDB", "imdb", "imdb"),
        _labelled("Books", "books", "mdsd_split", "books_test"),
        _labelled("DVDs", "dvds", "mdsd_split", "dvd_test"),
        _labelled("Electronics", "electronics", "mdsd_split", "electronics_test"),
        _labelled("Kitchen", "kitchen", "mdsd_split", "kitchen_test"),
        _labelled("Reuters", "reuters", "reuters46", relation="topic"),
        _labelled("Questions", "questions", "trec_qc", relation="question_type"),
    ),
    by_name=True,
)


def _acceptable(domain: str) -> Task:
    split = f"dev_{domain.replace('-', '_')}"
    return Task(
        f"CoLA {domain}", "cola", split, relation="acceptability", metric="matthews", asks="cola", texts=1
    )


# Arase & Tsujii 2019 measure on GLUE's server. Here stand tests whose labels are public, dev sets elsewhere.
SUITES["paraphrase"] = Suite(
    "paraphrase",
    (
        Task("MRPC", "mrpc", relation="paraphrase", metric="f1", asks="mrpc"),
        Task("STS-B", "stsb", metric="pearson", asks="stsb"),
        Task("QQP", "qqp", relation="paraphrase", metric="f1", asks="qqp"),
        Task("MNLI", "mnli", "dev", relation="entailment", metric="accuracy", asks="mnli"),
        Task("RTE", "rte", "dev", relation="entailment", metric="accuracy", asks="rte"),
        _labelled("SST-2", "sst2", "sst2"),
        _acceptable("in-domain"),
        _acceptable("out-of-domain"),
    ),
    by_name=True,
)


def get_suite(name: str | Path) -> Suite:
    """The suite with this name, or the one that a FILE.toml describes."""
    if str(name) in SUITES:
        return SUITES[str(name)]
    if str(name).endswith(".toml"):
        from likewise.evaluation.suite_files import read_suite

        return read_suite(name)
    if str(name) in NOT_TASKS:
        raise UsageError(
            f"suite {str(name)!r} is not a list of tasks that an experiment or an audit could "
            f"use. {sentence(NOT_TASKS[str(name)])}"
        )
    raise UsageError(
        f"suite {str(name)!r} is not one of {', '.join((*SUITES, *NOT_TASKS))}, and not a FILE.toml."
    )


def suite_files(name: str, data_dir: Path | str | None = None) -> list[Path]:
    """The files that hold the rows of a suite's tasks: a user's own files, and those of named corpora."""
    if name not in SUITES and (not name.endswith(".toml") or not Path(name).is_file()):
        return []
    found = [file for task in get_suite(name).tasks for file in task_files(task, data_dir=data_dir)]
    return list(dict.fromkeys(found))


def run_suite(
    suite: Suite | str | Path,
    score: Scorer,
    *,
    protocol: Protocol,
    data_dir: Path | str | None = None,
    keep_predictions: bool = False,
    audit: AuditReport | None = None,
    tolerant: bool = False,
) -> SuiteResult:
    """Measure a scorer on all tasks of a suite. `score` is called once, with the pairs of all tasks.

    A `tolerant` run notes a task that has no value, such as a correlation of constants, and continues.
    """
    suite = suite if isinstance(suite, Suite) else get_suite(suite)
    loaded = [(task, load_task(task, data_dir=data_dir)) for task in suite.tasks]
    return run_tasks(
        suite.name,
        loaded,
        score=score,
        protocol=protocol,
        keep_predictions=keep_predictions,
        audit=audit,
        tolerant=tolerant,
    )


def run_tasks(
    name: str,
    tasks: Sequence[tuple[Task, Sequence[Record]]],
    *,
    score: Scorer,
    protocol: Protocol,
    keep_predictions: bool = False,
    audit: AuditReport | None = None,
    tolerant: bool = False,
) -> SuiteResult:
    """The same for records that are already in memory, such as the clean dev rows during training."""
    parts = [TaskRows(task, records, protocol) for task, records in tasks]
    pairs = [record.texts for part in parts for record in part.records]
    relations = [part.task.asked for part in parts for _ in part.records]
    texts = text_numbers(pairs)
    scores = np.asarray(score(pairs, relations))
    if scores.shape != (len(pairs),):
        raise EvaluationError(
            f"the scorer gave shape {scores.shape} for {len(pairs)} pairs, but one score per pair "
            "is expected."
        )
    results, kept, measured, start, failed = [], {}, [], 0, {}
    for part in parts:
        predicted = scores[start : start + len(part.records)]
        start += len(part.records)
        try:
            found = part.measured(predicted)
        except EvaluationError as error:
            if not tolerant:
                raise
            failed[part.task.name] = error
            continue
        results.append(part.shown(found))
        measured.append(found.estimate)
        numbers, compared = tuple(texts[start - len(part.records) : start]), part.comparable(predicted)
        rows = text_fingerprints([record.texts for record in part.records]) if keep_predictions else None
        kept[part.task.name] = Predictions(part.gold, predicted, part.subsets, numbers, compared, rows)
    if failed and not results:
        raise next(iter(failed.values()))
    note = audit.note() if audit else NOT_AUDITED
    used = protocol.measured_by(result.metric for result in results)
    return SuiteResult(
        name,
        used,
        tuple(results),
        note,
        kept if keep_predictions else {},
        left_out=tuple(failed),
        notes=tuple(f"not measured: {error}" for error in failed.values()),
        average_interval=average_interval(measured, texts),
    )
