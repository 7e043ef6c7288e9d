"""The seven STS tasks, the clean dev rows that settings are chosen on, and relatedness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import ANSWER
from likewise.evaluation.asking import measure
from likewise.evaluation.differences import compare_results
from likewise.evaluation.results import SuiteResult
from likewise.evaluation.suites import run_suite, run_tasks
from shipping.asked import Asked
from shipping.parts import NO_VECTORS
from shipping.rows import PROTOCOL, Rows, measured, pairs_of, texts_of, valued

SIMILARITY, RELATEDNESS = "similarity", "relatedness"


class Sts7:
    """Spearman of the seven tasks, each year pooled: by the cosine, and by the answer to `similarity`."""

    name = "sts7"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """All sentences of the seven test sets."""
        return (text for task in rows.sts7.tasks for text in texts_of(task.records or ()))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows of each task."""
        return {task.name: {"rows": len(task.records or ())} for task in rows.sts7.tasks}

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """Both sources, and the difference of the cosine from the raw encoder's."""
        found: dict[str, Any] = {}
        if asked.has_vectors:
            cosine = self.by_cosine(asked, rows)
            asked.outcomes[self.name] = cosine
            found["cosine"] = shown(cosine)
            if raw is not None and self.name in raw.outcomes:
                found["against_raw"] = differences(cosine, raw.outcomes[self.name])
        if asked.relation(SIMILARITY) is not None and not asked.untrained:
            # SICK-R too is answered as similarity: relatedness is a part of its own.
            tasks = tuple(replace(task, asks=SIMILARITY) for task in rows.sts7.tasks)
            answer = measure(asked.model, replace(rows.sts7, tasks=tasks), source=ANSWER)
            found["answer"] = {**shown(answer), "source": asked.model.source(SIMILARITY)}
        return found or f"{NO_VECTORS}, and it answers no relation {SIMILARITY!r}"

    def by_cosine(self, asked: Asked, rows: Rows) -> SuiteResult:
        """The suite by the cosine of the vectors; the cosines are kept for means of several models."""
        cosines: list[NDArray[Any]] = []

        def scored(pairs: list[tuple[str, ...]], names: list[str]) -> NDArray[Any]:
            cosines.append(asked.cosines(pairs))
            return cosines[-1]

        result = run_suite(rows.sts7, scored, protocol=PROTOCOL, keep_predictions=True)
        [asked.outcomes["sts7 cosines"]] = cosines
        return result


class Dev:
    """Spearman on the clean dev rows, by the cosine. Settings and seeds are chosen on the average."""

    name = "dev"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The sentences of the 849 rows."""
        return (text for _, records in rows.clean_dev for text in texts_of(records))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows of each set."""
        return {task.name: {"rows": len(records)} for task, records in rows.clean_dev}

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """Both sets and their average."""
        if not asked.has_vectors:
            return NO_VECTORS
        cosines = asked.cosines([pair for _, records in rows.clean_dev for pair in pairs_of(records)])
        asked.outcomes["dev cosines"] = cosines
        return {"cosine": shown(on_dev(rows, cosines))}


class Relatedness:
    """SICK relatedness on test: Spearman and Pearson of the model's answer, and of its cosine."""

    name = "relatedness"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The sentences of SICK test."""
        return texts_of(rows.of("sick"))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows of the test set."""
        return {"rows": len(rows.of("sick"))}

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The cosine, and the relation if the model answers it."""
        records, found = rows.of("sick"), dict[str, Any]()
        if asked.has_vectors:
            found["cosine"] = correlations(rows, asked.cosines(pairs_of(records)))
        if asked.relation(RELATEDNESS) is not None:
            answers = asked.answer(RELATEDNESS, pairs_of(records))
            found["answer"] = {**correlations(rows, answers.values), "source": answers.source}
        return found or f"{NO_VECTORS}, and it answers no relation {RELATEDNESS!r}"


def correlations(rows: Rows, said: Any) -> dict[str, Any]:
    """Spearman and Pearson with the ratings of SICK test."""
    records = rows.of("sick")
    return {metric: measured(metric, RELATEDNESS, records, said) for metric in ("spearman", "pearson")}


def on_dev(rows: Rows, scores: NDArray[np.float64]) -> SuiteResult:
    """The clean dev rows by given scores."""
    return run_tasks("clean dev", rows.clean_dev, score=lambda pairs, names: scores, protocol=PROTOCOL)


def shown(result: SuiteResult) -> dict[str, Any]:
    """The numbers of a suite: each task with its interval over rows, and their average."""
    average = valued(float(result.average or 0.0), result.average_interval)
    return {"tasks": {t.name: valued(t.value, t.interval) for t in result.tasks}, "average": average}


def differences(ours: SuiteResult, raw: SuiteResult) -> dict[str, Any]:
    """Each task and the average minus those of the raw encoder, × 100, by `compare_results`."""
    return {
        name: {
            **valued(100 * one.difference),
            "interval": None if one.interval is None else [100 * one.interval.low, 100 * one.interval.high],
            "p": one.p,
        }
        for name, one in compare_results(ours, raw).items()
    }
