"""The verbs as Python functions: `likewise.score`, `train`, `update`, `evaluate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.classify import Classifier, load_classifier
from likewise.errors import UsageError
from likewise.evaluation.crosslingual import CrosslingualResult
from likewise.evaluation.crosslingual import evaluate_crosslingual as measure_languages
from likewise.evaluation.crosslingual.views import TextVectors
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import SuiteResult
from likewise.evaluation.runlog import log_test_run
from likewise.evaluation.suites import Suite, get_suite, run_suite
from likewise.predict import Predictor, Scores, load
from likewise.recipes.infer import infer_document
from likewise.recipes.reading import Overrides, parse_override, read_recipe, recipe_from, shipped_recipes
from likewise.recipes.run import RunContext, run_recipe
from likewise.recipes.schema import Recipe
from likewise.recipes.update import Mode, NewTask, UpdateReport, update_model
from likewise.recipes.update_pairs import NewRelation, add_relation
from likewise.records import Relation
from likewise.training.state import FitEvent

if TYPE_CHECKING:
    from likewise.encoders.external import TextFunction

MEMORY = "table"


def score(pairs: Any, model: str | os.PathLike[str] | Predictor = "default", **options: Any) -> Scores:
    """Score pairs with a model: a list of (a, b), a file, a frame or a dataset.

    Options are `Predictor.score`'s.
    """
    predictor = model if isinstance(model, Predictor) else load(model)
    return predictor.score(pairs, **options)


def train(
    source: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    encoder: str | TextFunction | None = None,
    data: Any = None,
    relations: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    overrides: Overrides = (),
    seed: int | None = None,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | os.PathLike[str] | None = None,
    trackers: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda line: None,
    emit: Callable[[FitEvent], None] = lambda event: None,
) -> Any:
    """Train by a recipe (file or shipped name) or on a table of rated pairs (file, frame, dataset, list).

    What comes back answers: a Predictor, or a Classifier where labels are texts. Without `output` the model
    stays in memory. `overrides` are recipe paths: {"stage.0.learning_rate": 3e-5}.
    `encoder` replaces the recipe's: a name, or for stages over a frozen encoder any function texts → N×d.
    """
    recipe, tables = make_recipe(
        source,
        encoder=encoder if isinstance(encoder, str) else None,
        data=data,
        relations=relations,
        text_a=text_a,
        text_b=text_b,
        overrides=overrides,
        seed=seed,
        data_dir=data_dir,
    )
    context = RunContext(
        data_dir=None if data_dir is None else Path(data_dir),
        device=device,
        precision=precision,
        trackers=tuple(trackers),
        tables=tables,
        encoder=encoder if callable(encoder) else None,
        tell=tell,
        emit=emit,
    )
    target = None if output is None else Path(output)
    return run_recipe(recipe, target, context=context, resume=resume, overwrite=overwrite).predictor


def make_recipe(
    source: Any,
    *,
    encoder: str | None = None,
    data: Any = None,
    relations: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    overrides: Overrides = (),
    seed: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> tuple[Recipe, dict[str, object]]:
    """The recipe that `train` would run, and the in-memory tables its entries name."""
    tables: dict[str, object] = {}
    changes = dict(overrides) if isinstance(overrides, Mapping) else dict(map(parse_override, overrides))
    if seed is not None:
        changes["seed"] = seed
    named = data if data is None or isinstance(data, str) else _remember(data, tables)
    if isinstance(source, str | os.PathLike) and is_recipe(os.fspath(source)):
        if relations or text_a or text_b:
            raise UsageError(
                "--relation, --text-a and --text-b describe a table; a recipe names them in its data entries"
            )
        return read_recipe(os.fspath(source), overrides=changes, encoder=encoder, data=named), tables
    if data is not None:
        raise UsageError(
            "--data replaces a recipe's training data; here the first argument already is the data"
        )
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else _remember(source, tables)
    document = infer_document(
        tables.get(name, name), name=name, declared=relations, text_a=text_a, text_b=text_b
    )
    return recipe_from(document, f"recipe for {name}", overrides=changes, encoder=encoder), tables


def is_recipe(name: str) -> bool:
    """Whether a name is a recipe file or a shipped recipe rather than a table."""
    return (
        name.endswith(".toml")
        or name in shipped_recipes()
        or ("." not in Path(name).name and not Path(name).exists() and "/" not in name)
    )


def _remember(table: object, tables: dict[str, object]) -> str:
    if isinstance(table, os.PathLike):
        return str(os.fspath(table))
    tables[MEMORY] = table
    return MEMORY


def update(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    task: str,
    data: str | os.PathLike[str] | None = None,
    mode: Mode = "hot",
    labels: Mapping[str, Sequence[str]] | None = None,
    describe: str | None = None,
    scale: str | None = None,
    text: str | None = None,
    text_a: str | None = None,
    text_b: str | None = None,
    column: str | None = None,
    rehearse: float = 0.0,
    overrides: Mapping[str, Any] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda line: None,
    emit: Callable[[FitEvent], None] = lambda event: None,
) -> UpdateReport:
    """Add a task to a model whose labels are texts, or a relation to one whose head reads descriptions.

    A task has `data`, labelled texts; it may say its `labels` (name → the ways it is said) and the column of
    the `text`. A relation is said by `describe`, what it asks in words, and its `scale` ("0..4"); it may have
    `data`, rated pairs in the columns `text_a` and `text_b`. `mode` is zero (nothing is trained), hot (on the
    data and a share `rehearse` of the old rows) or cold (everything again). `overrides` are keys of the last
    stage: {"epochs": 3, "freeze": ["encoder"]}.
    """
    from likewise.store import kind_of

    context = RunContext(
        data_dir=None if data_dir is None else Path(data_dir),
        device=device,
        precision=precision,
        tell=tell,
        emit=emit,
    )
    shared: dict[str, Any] = {
        "mode": mode,
        "context": context,
        "rehearse": rehearse,
        "overrides": overrides,
        "overwrite": overwrite,
    }
    name, source, kind = os.fspath(model), None if data is None else os.fspath(data), kind_of(model)
    if kind == "pairs" or (kind == "raw" and describe is not None):
        if labels is not None or text is not None:
            raise UsageError(f"{name} answers pairs: describe the relation (--describe, --scale), not labels")
        relation = NewRelation(task, describe or "", scale or "", source, text_a, text_b, column)
        return add_relation(name, relation, Path(output), **shared)
    if describe is not None or scale is not None:
        raise UsageError(f"{name} classifies texts: name the labels of the task (--labels), not a scale")
    if source is None:
        raise UsageError(f"task {task!r} has no texts: name a file or a corpus that labels some")
    return update_model(name, NewTask(task, source, text, column, labels), Path(output), **shared)


def evaluate(
    model: str | os.PathLike[str] | Predictor | Classifier = "default",
    suite: str | Path | Suite = "sts7",
    *,
    source: str = "cosine",
    aggregation: str = "all",
    metric: str = "spearman",
    data_dir: str | os.PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    keep_predictions: bool = False,
    log: bool = True,
    progress: Callable[[int], None] | None = None,
) -> SuiteResult:
    """Measure a model on a suite (`sts7`, or a FILE.toml of your own); the result carries its protocol.

    `source` is where scores come from: `cosine` of the vectors, or the model's `head`. A suite of texts to be
    classified is answered by the matcher.
    """
    chosen = get_suite(suite) if isinstance(suite, str | Path) else suite
    if chosen.texts == 1:
        return _evaluate_classes(
            _as_classifier(model, device, precision),
            chosen,
            aggregation,
            data_dir=data_dir,
            keep_predictions=keep_predictions,
            log=log,
            progress=progress,
        )
    if isinstance(model, Classifier):
        raise UsageError(f"suite {chosen.name} asks about pairs of texts; this model classifies single ones")
    predictor = model if isinstance(model, Predictor) else load(model, device=device, precision=precision)
    protocol = Protocol(metric=metric, aggregation=aggregation, source=source)  # type: ignore[arg-type]

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
        recipe = str((predictor.about.get("recipe") or {}).get("name", ""))
        log_test_run(result, model=str(predictor.about.get("name", "")), recipe=recipe)
    return result


def _as_classifier(
    model: str | os.PathLike[str] | Predictor | Classifier, device: str | None, precision: str
) -> Classifier:
    if isinstance(model, Classifier):
        return model
    if isinstance(model, Predictor):
        raise UsageError("this model answers pairs of texts and has no matcher for labels")
    return load_classifier(model, device=device, precision=precision)


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
        recipe = str((classifier.about.get("recipe") or {}).get("name", ""))
        log_test_run(result, model=str(classifier.about.get("name", "")), recipe=recipe)
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
        recipe = str((predictor.about.get("recipe") or {}).get("name", ""))
        log_test_run(result, model=str(predictor.about.get("name", "")), recipe=recipe)
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
