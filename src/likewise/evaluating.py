"""A model on a suite: `likewise.evaluate`, whichever way the model answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from likewise.errors import UsageError
from likewise.evaluation.crosslingual import CrosslingualResult
from likewise.evaluation.crosslingual import evaluate_crosslingual as measure_languages
from likewise.evaluation.crosslingual.views import TextVectors
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import SuiteResult
from likewise.evaluation.runlog import log_test_run
from likewise.evaluation.suites import Suite, get_suite, run_suite
from likewise.folders import kind_of
from likewise.predict import Classifier, JointPredictor, Predictor, load, load_classifier
from likewise.records import Relation

Answering = Predictor | JointPredictor | Classifier


def evaluate(
    model: str | os.PathLike[str] | Answering = "default",
    suite: str | Path | Suite = "sts7",
    *,
    source: str = "cosine",
    aggregation: str = "all",
    metric: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    keep_predictions: bool = False,
    log: bool = True,
    progress: Callable[[int], None] | None = None,
) -> SuiteResult:
    """Measure a model on a suite (`sts7`, or a FILE.toml of your own); the result carries its protocol.

    `source` is where scores come from: `cosine` of the vectors, or the model's `head`. A suite of texts to be
    classified is answered by the matcher, and a joint encoder answers by its head whatever is asked. `metric`
    is for tasks that name none: if left out, their relation's own (spearman; accuracy for classes).
    """
    chosen = get_suite(suite) if isinstance(suite, str | Path) else suite
    chosen = chosen if metric else chosen.with_default_metrics()
    predictor = _opened(model, chosen, device, precision)
    shared: dict[str, Any] = {
        "data_dir": data_dir,
        "keep_predictions": keep_predictions,
        "log": log,
        "progress": progress,
    }
    if isinstance(predictor, Classifier):
        return _evaluate_classes(predictor, chosen, aggregation, **shared)
    if isinstance(predictor, JointPredictor):
        return _evaluate_joint(predictor, chosen, aggregation, metric, **shared)
    protocol = Protocol(metric=metric or "spearman", aggregation=aggregation, source=source)  # type: ignore[arg-type]

    folder = None if data_dir is None else Path(data_dir)
    chosen, left_out = chosen.answerable([relation.name for relation in predictor.relations], source)
    if source == "head":
        _require_relations(predictor, chosen)

    def scorer(rows: list[tuple[str, ...]], relations: list[str]) -> Any:
        pairs = [(a, b) for a, b in rows]
        if source == "cosine":
            return _cosines(predictor, pairs, progress)
        return _head_answers(predictor, pairs, relations, progress)

    result = run_suite(chosen, scorer, protocol=protocol, data_dir=folder, keep_predictions=True)
    notes = _unseen_labels(predictor, result) if source == "head" else ()
    kept = result.predictions if keep_predictions else {}
    result = replace(result, left_out=left_out, notes=notes, predictions=kept)
    if log:
        _log(predictor, result)
    return result


def _opened(
    model: str | os.PathLike[str] | Answering, suite: Suite, device: str | None, precision: str
) -> Answering:
    """The model, loaded as what the suite asks for."""
    if isinstance(model, str | os.PathLike):
        if suite.texts == 1 and kind_of(model) != "joint":
            classifier: Answering = load_classifier(model, device=device, precision=precision)
            return classifier
        loaded: Answering = load(model, device=device, precision=precision)
        return loaded
    if suite.texts == 1 and isinstance(model, Predictor):
        raise UsageError("this model answers pairs of texts and has no matcher for labels")
    if suite.texts == 2 and isinstance(model, Classifier):
        raise UsageError(f"suite {suite.name} asks about pairs of texts; this model classifies single ones")
    return model


def _log(predictor: Answering, result: SuiteResult | CrosslingualResult) -> None:
    recipe = str((predictor.about.get("recipe") or {}).get("name", ""))
    log_test_run(result, model=str(predictor.about.get("name", "")), recipe=recipe)


def _evaluate_joint(
    predictor: JointPredictor,
    suite: Suite,
    aggregation: str,
    metric: str | None,
    *,
    data_dir: Any,
    keep_predictions: bool,
    log: bool,
    progress: Callable[[int], None] | None,
) -> SuiteResult:
    """The tasks that ask for the one relation a joint encoder answers, of as many texts as it reads."""
    name, texts = predictor.model.relation.name, predictor.model.texts
    # A suite that does not ask by name asks every model for its own relation.
    asked = [
        task for task in suite.tasks if task.texts == texts and (task.asked == name or not suite.by_name)
    ]
    if not asked:
        raise UsageError(
            f"suite {suite.name} asks for {', '.join(dict.fromkeys(task.asked for task in suite.tasks))}; "
            f"this model answers {name} of {'pairs' if texts == 2 else 'single texts'}"
        )

    def scorer(rows: list[tuple[str, ...]], _: list[str]) -> Any:
        found = predictor.answers(rows, progress=progress)
        return np.asarray(found, dtype=object) if isinstance(found, list) else found

    fallback = metric or predictor.model.relation.metric
    protocol = Protocol(metric=fallback, aggregation=aggregation, source="head")  # type: ignore[arg-type]
    folder = None if data_dir is None else Path(data_dir)
    chosen = replace(suite, tasks=tuple(asked))
    result = run_suite(chosen, scorer, protocol=protocol, data_dir=folder, keep_predictions=keep_predictions)
    result = replace(result, left_out=tuple(task.name for task in suite.tasks if task not in asked))
    if log:
        _log(predictor, result)
    return result


def _evaluate_classes(
    classifier: Classifier,
    suite: Suite,
    aggregation: str,
    *,
    data_dir: Any,
    keep_predictions: bool,
    log: bool,
    progress: Callable[[int], None] | None,
) -> SuiteResult:
    """The tasks that a classifier was taught; all of them, by their label texts, where it was taught none."""
    taught = {task.name: task for task in classifier.tasks}
    kept = tuple(task for task in suite.tasks if task.asked in taught) or suite.tasks
    asked = {task.asked: taught.get(task.asked) or task.labels() for task in kept}

    def scorer(rows: list[tuple[str, ...]], tasks: list[str]) -> Any:
        x = torch.from_numpy(np.asarray(classifier.encode([text for (text,) in rows], progress=progress)))
        answers = np.empty(len(rows), dtype=object)
        for name in dict.fromkeys(tasks):
            mine = [row for row, task in enumerate(tasks) if task == name]
            best = classifier.probabilities(asked[name], x[mine]).argmax(axis=1)
            answers[mine] = [asked[name].labels[int(place)] for place in best]
        return answers

    protocol = Protocol(metric="accuracy", aggregation=aggregation, source="matcher")  # type: ignore[arg-type]
    chosen = replace(suite, tasks=kept)
    folder = None if data_dir is None else Path(data_dir)
    result = run_suite(chosen, scorer, protocol=protocol, data_dir=folder, keep_predictions=keep_predictions)
    result = replace(result, left_out=tuple(task.name for task in suite.tasks if task not in kept))
    if log:
        _log(classifier, result)
    return result


def evaluate_crosslingual(
    model: str | os.PathLike[str] | Predictor = "default",
    *,
    languages: Sequence[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    seed: int = 1,
    log: bool = True,
    tell: Callable[[str], None] = lambda line: None,
    progress: Callable[[int], None] | None = None,
) -> CrosslingualResult:
    """What is left of meaning when the language changes: translated pairs, retrieval, probes, spread.

    A model grown on a frozen encoder is compared with that encoder. `languages` are those of the retrieval
    test; None takes all that the data folder has.
    """
    predictor = model if isinstance(model, Predictor) else load(model, device=device, precision=precision)
    part = predictor.model.frozen
    result = measure_languages(
        lambda texts: predictor.views(texts, progress=progress),
        data_dir=None if data_dir is None else Path(data_dir),
        retrieval_languages=languages,
        trained_pairs=part.pairs if part else (),
        seen_languages=part.languages if part else (),
        seed=seed,
        progress=tell,
    )
    if log:
        _log(predictor, result)
    return result


def _require_relations(predictor: Predictor, suite: Suite) -> None:
    """Refuse a relation that a user's own suite names and the model does not answer: likely a slip.

    Tasks on named corpora may have another name for the same thing (SICK's relatedness).
    """
    known = [relation.name for relation in predictor.relations]
    for task in suite.tasks:
        if isinstance(task.relation, Relation) and task.relation.name not in known:
            raise UsageError(
                f"task {task.name!r} asks for {task.relation.name!r}, "
                f"the model's heads answer {', '.join(known)}; "
                "correct the suite's relation, or use --source cosine"
            )


def _unseen_labels(predictor: Predictor, result: SuiteResult) -> tuple[str, ...]:
    """A line for every task whose gold has labels that the model's relation does not."""
    known = {relation.name: relation.labels for relation in predictor.relations if relation.labels}
    lines = []
    for task in result.tasks:
        gold = result.predictions[task.name].gold
        if task.relation not in known or gold.dtype.kind not in "UO":
            continue
        unseen = [str(label) for label in gold if str(label) not in known[task.relation]]
        if unseen:
            named = ", ".join(map(repr, sorted(set(unseen))))
            lines.append(
                f"{task.name}: {len(unseen):,} of {task.n:,} rows have a label that the model never saw "
                f"({named}); they count as wrong"
            )
    return tuple(lines)


def _cosines(
    predictor: Predictor, pairs: list[tuple[str, str]], progress: Callable[[int], None] | None
) -> Any:
    """Cosines of pairs; over a frozen encoder from its cached vectors, which many models share."""
    if predictor.model.frozen is None:
        return predictor.cosines(pairs, progress=progress)
    texts = TextVectors(lambda new: predictor.views(new, progress=progress), [t for p in pairs for t in p])
    return texts.cosines("model", pairs)


def _head_answers(
    predictor: Predictor,
    pairs: list[tuple[str, str]],
    relations: list[str],
    progress: Callable[[int], None] | None,
) -> Any:
    """Each pair's answer by the head of the relation asked.

    One the model does not know goes to its first relation.
    """
    known = [relation.name for relation in predictor.relations]
    asked = [name if name in known else known[0] for name in relations]
    answers = np.empty(len(pairs), dtype=object)
    for name in dict.fromkeys(asked):
        rows = [row for row, wanted in enumerate(asked) if wanted == name]
        found = predictor.score(
            [pairs[row] for row in rows], relation=name, source="head", progress=progress
        )[name]
        answers[rows] = found
    return answers if any(isinstance(answer, str) for answer in answers) else answers.astype(np.float64)
