"""The verbs as Python functions: `likewise.score`, `train`, `update` and `evaluate`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise import ranks
from likewise.answering import CUT, Answering, Long, check_long
from likewise.arguments import (
    listed_names,
    require_count,
    require_device,
    require_flag,
    require_folder_name,
    require_function,
    require_mapping,
    require_number,
    require_path,
    require_seed,
    require_text,
)
from likewise.data.own import OwnTable, open_own_table
from likewise.disk import UnwritableError
from likewise.errors import UsageError
from likewise.files import is_there, remembering_inputs
from likewise.folders import document_of, has_pair_vectors
from likewise.kinds.context import RunContext
from likewise.naming import settled_name
from likewise.predict import Answerer, Scores, load, load_classifier
from likewise.recipes.calibrate import CalibrationReport, calibrate_model
from likewise.recipes.export import DELTA, ExportReport, export_delta
from likewise.recipes.own import LabelTexts, recipe_for_table, with_label_texts, with_own_table
from likewise.recipes.reading import Overrides, named_document, parse_override, recipe_from
from likewise.recipes.run import RunReport, dry_run, run_recipe
from likewise.recipes.update import Mode, UpdateReport, update_model
from likewise.schema.base import Addition
from likewise.schema.recipe import Recipe
from likewise.schema.shipped import shipped_recipes
from likewise.spelling import spelt
from likewise.training.state import FitEvent
from likewise.wording import sentence

if TYPE_CHECKING:
    from likewise.encoders.external import TextFunction
    from likewise.evaluation.challenge_result import ChallengeResult
    from likewise.evaluation.crosslingual import CrosslingualResult
    from likewise.evaluation.results import SuiteResult
    from likewise.evaluation.suites import Suite

MEMORY = "table"


def score(
    pairs: Any,
    b: Any = None,
    *,
    model: str | os.PathLike[str] | Answerer = "default",
    long: Long = CUT,
    **options: Any,
) -> Scores:
    """Score pairs with a model.

    Pairs are a list of (a, b), two texts, two lists, a file, a frame or a dataset. For a model of single
    texts they are texts. With long="chunk", texts that are longer than the encoder's limit are read whole.
    The other options are those of the `score` method of a loaded model.
    """
    if isinstance(b, Answerer | os.PathLike):
        raise UsageError("the second argument holds the second texts. Name the model with model=….")
    _check_long(model, long)
    loaded = model if isinstance(model, Answerer) else load(model, long=long)
    return loaded.score(pairs, b, **options)


def evaluate(
    model: str | os.PathLike[str] | Answering = "default",
    suite: str | Path | Suite | None = None,
    *,
    data: Any = None,
    relations: str | Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    source: str | None = None,
    aggregation: str = "all",
    metric: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    keep_predictions: bool = False,
    long: Long = CUT,
    log: bool = True,
    quiet: bool = False,
    progress: Callable[[int], None] | None = None,
) -> SuiteResult | CrosslingualResult | ChallengeResult:
    """Measure a model on a suite or on rows of your own. The result carries its protocol.

    A suite is a name such as `sts7` (the default) or a FILE.toml. Rows of your own are `data`: a file, a
    frame, a dataset or a list. `relations` declare the columns to measure, such as `similarity:0..5`, and
    `text_a` and `text_b` name those of the texts; without them they are guessed.

    `source` says where scores come from: the model's own `answer`, which `score` gives, the `cosine` of the
    vectors, or its `head`. It defaults to the suite's own source, which is the cosine for sts7 and the answer
    for most other suites. A model without pair vectors always answers from its own source. `metric` applies
    to tasks that name none; it defaults to the relation's metric (spearman, or accuracy for classes). A task
    that the model cannot answer, or that has no value, is left out with a note. The suite `crosslingual` is
    measured by `evaluate_crosslingual` and takes none of these options. The suite `challenge` takes `source`
    and `keep_predictions`. With long="chunk", texts that are longer than the encoder's limit are read whole.

    A progress bar is shown on standard error. `quiet` stops that. `progress` is a function of yours that is
    told the number of texts instead.
    """
    from likewise.evaluation.suites import CHALLENGE, CROSSLINGUAL, Suite, get_suite

    _check_measuring(source, aggregation, metric, keep_predictions, quiet, progress)
    _check_places(model, device, precision, data_dir)
    _check_long(model, long)
    if data is not None:
        if suite is not None:
            raise UsageError("suite and data are both given. Name a suite, or pass rows of your own as data.")
        suite = own_suite(data, relations, text_a, text_b, data_dir)
    elif relations or text_a or text_b:
        raise UsageError("relations, text_a and text_b describe rows of your own. Pass the rows as data.")
    suite = "sts7" if suite is None else suite
    if not isinstance(suite, Suite):
        _check_suite(suite)
    shared: dict[str, Any] = {"device": device, "precision": precision, "long": long, "log": log}
    shared |= {"quiet": quiet, "progress": progress}
    if suite == CROSSLINGUAL:
        return evaluate_crosslingual(model, data_dir=data_dir, **shared)
    if suite == CHALLENGE:
        return _evaluate_challenge(model, source, keep_predictions=keep_predictions, **shared)
    chosen = get_suite(suite) if isinstance(suite, str | Path) else suite
    with _counted_texts(model, quiet, progress) as counting:
        loaded = _opened(model, chosen, device, precision, long)
        result = evaluate_suite(
            loaded,
            chosen,
            source=source,
            aggregation=aggregation,
            metric=metric,
            data_dir=data_dir,
            keep_predictions=keep_predictions,
            log=log,
            progress=counting,
            tolerant=True,
        )
    if result.cut is not None:
        logging.getLogger("likewise").warning("%s", result.cut)
    return result


def _check_measuring(
    source: object, aggregation: object, metric: object, keep: object, quiet: object, progress: object
) -> None:
    """Check the arguments that say how a model is measured."""
    require_text(source, "source")
    require_text(aggregation, "aggregation", optional=False)
    require_text(metric, "metric")
    require_function(progress, "progress")
    require_flag(keep, "keep_predictions")
    require_flag(quiet, "quiet")


def _check_suite(suite: object) -> None:
    """Refuse what cannot name a suite."""
    if not isinstance(suite, str | os.PathLike):
        raise UsageError(f"suite is a {type(suite).__name__}. Pass rows of your own as data=….")
    require_path(suite, "suite")


def _counted_texts(
    model: str | os.PathLike[str] | Answering, quiet: bool, progress: Callable[[int], None] | None
) -> AbstractContextManager[Callable[[int], None] | None]:
    """The caller's function, or else a bar that counts the texts of a measurement."""
    from likewise.progress import asked_progress

    if not isinstance(model, Answering):
        require_path(model, "model")
    name = model.about.get("name", "") if isinstance(model, Answering) else settled_name(os.fspath(model))
    label = " ".join(["evaluating", *filter(None, [Path(str(name)).name])])
    return asked_progress(progress, quiet=quiet, label=label, unit="texts")


def own_suite(
    data: Any,
    relations: str | Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    tell: Callable[[str], None] | None = None,
) -> Suite:
    """The suite over rows of one's own; what was guessed about the columns is told."""
    from likewise.evaluation.own import table_suite

    for name, value in (("text_a", text_a), ("text_b", text_b)):
        require_text(value, name)
    declared = listed_names(relations, "relations")
    folder = None if data_dir is None else Path(data_dir)
    suite, table = table_suite(data, relations=declared, text_a=text_a, text_b=text_b, data_dir=folder)
    for line in table.guesses:
        (tell or logging.getLogger("likewise").warning)(line)
    return suite


def evaluate_suite(
    model: Answering,
    suite: Suite,
    *,
    metric: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    log: bool = True,
    **options: Any,
) -> SuiteResult:
    """Measure a loaded model on a list of tasks. The options are those of `evaluate`."""
    from likewise.evaluation.asking import measure

    chosen = suite if metric else suite.with_default_metrics()
    folder = None if data_dir is None else Path(data_dir)
    result = measure(model, chosen, metric=metric, data_dir=folder, **options)
    if log:
        _log(model, result)
    return result


def _opened(
    model: str | os.PathLike[str] | Answering, suite: Suite, device: str | None, precision: str, long: Long
) -> Answering:
    """The loaded model. An encoder that reads pairs is loaded as a classifier if the suite asks for one."""
    if isinstance(model, Answering):
        return model
    document = document_of(model)
    compares = document is None or has_pair_vectors(document)
    opening = load_classifier if suite.texts == 1 and compares else load
    return opening(model, device=device, precision=precision, long=long)


def evaluate_crosslingual(
    model: str | os.PathLike[str] | Answering = "default",
    *,
    languages: Sequence[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    long: Long = CUT,
    seed: int = 1,
    log: bool = True,
    quiet: bool = False,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> CrosslingualResult:
    """Measure how well meaning survives a change of language: translated pairs, retrieval, probes and spread.

    A model on a frozen encoder is compared with that encoder. `languages` are the languages of the retrieval
    test; None takes all languages in the data folder. `quiet` and `progress` are those of `evaluate`, and
    `tell` takes a line for each part that is done. `long` is that of
    `load`.
    """
    from likewise.evaluation.crosslingual import run_crosslingual

    _check_places(model, device, precision, data_dir)
    require_seed(seed)
    languages = None if languages is None else listed_names(languages, "languages")
    _check_long(model, long)
    with _counted_texts(model, quiet, progress) as counting:
        answering: Answering
        answering = (
            model
            if isinstance(model, Answering)
            else load(model, device=device, precision=precision, long=long)
        )
        embedding = answering.embedding()
        with answering.cut_texts.telling(logging.getLogger("likewise").warning):
            result = run_crosslingual(
                lambda texts: embedding.views(texts, progress=counting),
                data_dir=None if data_dir is None else Path(data_dir),
                retrieval_languages=languages,
                trained_pairs=embedding.languages.rated_pairs,
                seen_languages=embedding.languages.seen,
                seed=seed,
                progress=tell or (lambda line: None),
            )
    if log:
        _log(answering, result)
    return result


def _evaluate_challenge(
    model: str | os.PathLike[str] | Answering,
    source: str | None,
    *,
    keep_predictions: bool,
    device: str | None,
    precision: str,
    long: Long,
    log: bool,
    quiet: bool,
    progress: Callable[[int], None] | None,
) -> ChallengeResult:
    """Measure a model on the challenge set that comes with the package."""
    from likewise.evaluation.challenge import measure_challenge

    with _counted_texts(model, quiet, progress) as counting:
        loaded: Answering
        loaded = (
            model
            if isinstance(model, Answering)
            else load(model, device=device, precision=precision, long=long)
        )
        result = measure_challenge(
            loaded, source=source, keep_predictions=keep_predictions, progress=counting
        )
    if log:
        _log(loaded, result)
    if result.cut is not None:
        logging.getLogger("likewise").warning("%s", result.cut)
    return result


def _log(answering: Answering, result: SuiteResult | CrosslingualResult | ChallengeResult) -> None:
    from likewise.evaluation.runlog import log_test_run

    recipe = str((answering.about.get("recipe") or {}).get("name", ""))
    try:
        log_test_run(result, model=str(answering.about.get("name", "")), recipe=recipe)
    except UnwritableError as error:
        # The work is done and its result is worth more than the line about it.
        logging.getLogger("likewise").warning("this test run could not be added to the log: %s", error)


def train(
    source: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    encoder: str | os.PathLike[str] | TextFunction | None = None,
    data: Any = None,
    relations: str | Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    text: str | None = None,
    label: str | Sequence[str] = (),
    labels: LabelTexts | None = None,
    templates: str | Sequence[str] = (),
    overrides: Overrides = (),
    seed: int | None = None,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | os.PathLike[str] | None = None,
    trackers: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    tell: Callable[[str], None] | None = None,
    emit: Callable[[FitEvent], None] | None = None,
) -> Answerer:
    """Train by a recipe (a file or a shipped name) or on a table (file, frame, dataset or list) of rated
    pairs or of labelled texts.

    The result is a loaded model, as from `likewise.load`. Without `output` the model stays in memory.
    `relations` declare what a table of pairs rates, one or several: "similarity:0..5", "verdict:classes". In
    a table of single texts, `text` names the column of the text and `label` the columns of labels. `labels`
    says labels in words: {"acq": "mergers and acquisitions"}. `templates` are sentences around them, such as
    "This text is about {}.". `overrides` are recipe paths: {"stage.0.learning_rate": 3e-5}. `encoder`
    replaces the recipe's encoder: it is a name or, for stages over a frozen encoder, any function texts →
    N×d.

    The plan, a progress bar and the dev scores are shown on standard error, as in the terminal. `quiet` stops
    that. `tell` (lines) and `emit` (events) are functions of yours that take the reports instead.
    """
    require_folder_name(output, "output", optional=True)
    for name, flag in (("resume", resume), ("overwrite", overwrite), ("quiet", quiet)):
        require_flag(flag, name)
    with _reports(quiet, tell, emit) as (telling, emitting):
        training = prepare_training(
            source,
            encoder=encoder,
            data=data,
            relations=relations,
            text_a=text_a,
            text_b=text_b,
            text=text,
            label=label,
            labels=labels,
            templates=templates,
            overrides=overrides,
            seed=seed,
            device=device,
            precision=precision,
            data_dir=data_dir,
            trackers=trackers,
            tell=telling,
            emit=emitting,
        )
        target = None if output is None else Path(output)
        return training.run(target, resume=resume, overwrite=overwrite).predictor


def _reports(
    quiet: bool, tell: Callable[[str], None] | None, emit: Callable[[FitEvent], None] | None
) -> AbstractContextManager[tuple[Callable[[str], None], Callable[[FitEvent], None]]]:
    """Where a training reports: to the caller's functions, nowhere, or to the view of the terminal."""
    from likewise.progress import viewed

    for name, function in (("tell", tell), ("emit", emit)):
        require_function(function, name)
    return viewed(tell, emit, quiet=quiet, shown=ranks.is_first())


@dataclass(frozen=True, slots=True)
class Training:
    """A training that is ready to start: its recipe, and where it reads, computes and reports."""

    recipe: Recipe
    context: RunContext

    def plan(self) -> list[str]:
        """The plan in lines of text. Nothing is trained or written."""
        return dry_run(self.recipe, context=self.context)

    def run(self, output: Path | None, *, resume: bool = False, overwrite: bool = False) -> RunReport:
        """Train, and write the model to a folder, or keep it in memory if `output` is None."""
        require_folder_name(output, "output", optional=True)
        with remembering_inputs():
            return run_recipe(self.recipe, output, context=self.context, resume=resume, overwrite=overwrite)


def prepare_training(
    source: Any,
    *,
    encoder: str | os.PathLike[str] | TextFunction | None = None,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | os.PathLike[str] | None = None,
    trackers: Sequence[str] = (),
    tell: Callable[[str], None] = lambda line: None,
    emit: Callable[[FitEvent], None] = lambda event: None,
    **described: Any,
) -> Training:
    """Prepare everything that `train` does before training. `described` holds the arguments of
    `make_recipe`.
    """
    _check_places(None, device, precision, data_dir)
    trackers = listed_names(trackers, "trackers")
    for reporter, function in (("tell", tell), ("emit", emit)):
        require_function(function, reporter, optional=False)
    name = os.fspath(encoder) if isinstance(encoder, str | os.PathLike) else None
    recipe, tables = make_recipe(source, encoder=name, data_dir=data_dir, tell=tell, **described)
    context = RunContext(
        data_dir=None if data_dir is None else Path(data_dir),
        device=device,
        precision=precision,
        trackers=tuple(trackers),
        tables=tables,
        encoder=_function(encoder, recipe) if name is None else None,
        inputs=tuple(os.fspath(one) for one in (source,) if isinstance(one, str | os.PathLike)),
        tell=tell,
        emit=emit,
    )
    return Training(recipe, context)


def _function(encoder: Any, recipe: Recipe) -> TextFunction | None:
    """An encoder that is a function. Anything that would be ignored is refused, such as a trained model."""
    if encoder is None:
        return None
    from torch import nn

    takes = all(stage.takes_functions for stage in recipe.stage)
    if callable(encoder) and not isinstance(encoder, nn.Module) and takes:
        function: TextFunction = encoder
        return function
    remedy = "give the name of a folder or a hub id" + (", or a function texts → N×d" if takes else "")
    raise UsageError(f"encoder is a {type(encoder).__name__}, which cannot be used here. {sentence(remedy)}")


def make_recipe(
    source: Any,
    *,
    encoder: str | None = None,
    data: Any = None,
    relations: str | Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    text: str | None = None,
    label: str | Sequence[str] = (),
    labels: LabelTexts | None = None,
    templates: str | Sequence[str] = (),
    overrides: Overrides = (),
    seed: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Recipe, dict[str, object]]:
    """The recipe that `train` would run, and the tables in memory that its entries name."""
    tables: dict[str, object] = {}
    changes = _changes(overrides)
    for column, value in (("text_a", text_a), ("text_b", text_b), ("text", text)):
        require_text(value, column)
    single = _single_texts(text, label, labels, templates, pairs=bool(text_a or text_b))
    if seed is not None:
        require_seed(seed)
        changes["seed"] = seed
    declared = listed_names(relations, "relations")
    columns = listed_names(label, "label")

    def own(table: Any) -> OwnTable:
        name = table if isinstance(table, str) else _remember(table, tables)
        return open_own_table(
            tables.get(name, name),
            name=name,
            declared=[*declared, *(f"{column}:classes" for column in columns)],
            text_a=text or text_a,
            text_b=text_b,
            data_dir=None if data_dir is None else Path(data_dir),
            pairs=False if single else None,
        )

    if isinstance(source, str | os.PathLike) and is_recipe(os.fspath(source)):
        document, where = named_document(os.fspath(source))
        if data is not None:
            document = with_own_table(document, where, own(data), changes=changes, tell=tell)
        elif declared or text_a or text_b or text or columns:
            raise UsageError(
                f"{spelt('relations')}, {spelt('label')} and the options that name text columns describe "
                f"your own table ({spelt('data', 'FILE')}). For a recipe's data, set them in its data "
                "entries."
            )
        document = with_label_texts(document, labels, templates)
        return recipe_from(document, where, overrides=changes, encoder=encoder), tables
    if data is not None:
        raise UsageError(
            f"{spelt('data')} replaces the training data of a recipe, but the first argument is a table "
            f"already. Leave {spelt('data')} out."
        )
    table = own(os.fspath(source) if isinstance(source, str | os.PathLike) else source)
    document = with_label_texts(recipe_for_table(table), labels, templates)
    return recipe_from(document, f"recipe for {table.name}", overrides=changes, encoder=encoder), tables


def _single_texts(text: object, label: object, labels: object, templates: object, *, pairs: bool) -> bool:
    """Whether the arguments describe a table of single texts; raises an error for those that do not fit."""
    require_mapping(labels, "labels")
    columns = listed_names(label, "label")
    listed_names(templates, "templates")
    if pairs and (text or columns):
        raise UsageError(
            f"{spelt('text')} and {spelt('label')} describe a table of single texts, {spelt('text_a')} and "
            f"{spelt('text_b')} one of pairs. Leave out one or the other. The labels of pairs are declared "
            f"with {spelt('relations', 'NAME:classes')}."
        )
    return bool(text or columns)


def _changes(overrides: Overrides) -> dict[str, Any]:
    """Overrides as a mapping, from a mapping or from texts `PATH=VALUE`."""
    if isinstance(overrides, Mapping):
        require_mapping(overrides, "overrides")
        return dict(overrides)
    return dict(map(parse_override, listed_names(overrides, "overrides")))


def calibrate(
    model: str | os.PathLike[str] | Answerer,
    data: Any,
    output: str | os.PathLike[str],
    *,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    labels: LabelTexts | None = None,
    templates: str | Sequence[str] = (),
    use: int | None = None,
    seed: int = 1,
    overwrite: bool = False,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> CalibrationReport:
    """Fit the probabilities of a label model to labelled texts that it was not trained on.

    `data` is a file, a frame, a dataset or a list of dicts. `text` is its column of texts, and `label` the
    column of labels, which defaults to the name of the `task`. `use` draws so many texts. An encoder that was
    not trained gets the task and its labels, which `labels` says in words. The calibrated model is written to
    `output`; the old one stays.
    """
    _check_places(model, device, precision, data_dir)
    require_folder_name(output, "output")
    for name, value in (("task", task), ("text", text), ("label", label)):
        require_text(value, name)
    require_mapping(labels, "labels")
    require_seed(seed)
    require_flag(overwrite, "overwrite")
    if use is not None:
        require_count(use, "use", most=10**9)
    with remembering_inputs():
        opened = (
            model
            if isinstance(model, Answerer)
            else load_classifier(model, device=device, precision=precision)
        )
        return calibrate_model(
            opened,
            os.fspath(data) if isinstance(data, os.PathLike) else data,
            os.fspath(output),
            task=task,
            text=text,
            column=label,
            labels=labels,
            templates=listed_names(templates, "templates"),
            use=use,
            seed=seed,
            data_dir=None if data_dir is None else Path(data_dir),
            overwrite=overwrite,
            tell=tell,
        )


def export(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    to: str = "delta",
    base: str | os.PathLike[str] | None = None,
    rank: int = 32,
    storage: str = "float16",
    overwrite: bool = False,
    tell: Callable[[str], None] | None = None,
) -> ExportReport:
    """Write a trained model as a delta: a small folder with the change of its encoder's weights.

    The change of each weight matrix is cut to a `rank` and stored as `float16` or `int8`. `base` is the
    encoder that the model was trained from, which its recipe names. `load` joins the two again, so the base
    must be on the machine that loads the folder. The report says how large the folder is and how much of the
    change it keeps. `tell` receives a note if the base would not be found by its name.
    """
    require_path(model, "model")
    require_folder_name(output, "output")
    require_path(base, "base", optional=True)
    require_text(storage, "storage", optional=False)
    require_flag(overwrite, "overwrite")
    if to != DELTA:
        raise UsageError(f"{spelt('to')} {to!r} is unknown. The only form is {DELTA}.")
    with remembering_inputs():
        return export_delta(
            os.fspath(model),
            os.fspath(output),
            base=None if base is None else os.fspath(base),
            rank=rank,
            storage=storage,
            overwrite=overwrite,
            tell=tell or logging.getLogger("likewise").warning,
        )


def _check_places(model: object, device: object, precision: object, data_dir: object) -> None:
    """Check the arguments that many verbs share: the model, the device and precision, and the data folder."""
    if not isinstance(model, Answering):
        require_path(model, "model", optional=model is None)
    require_device(device)
    require_text(precision, "precision", optional=False)
    require_path(data_dir, "data_dir", optional=True)


def _check_long(model: object, long: object) -> None:
    """Check `long`, which only a model that is not loaded yet can follow."""
    check_long(long)
    if long != CUT and isinstance(model, Answering):
        raise UsageError(
            "this model is loaded already. Set long where it is loaded: likewise.load(…, long=…)."
        )


def is_recipe(name: str) -> bool:
    """Whether a name is a recipe file or a shipped recipe, and not a table."""
    return (
        name.endswith(".toml")
        or name in shipped_recipes()
        or ("." not in Path(name).name and not is_there(name) and "/" not in name)
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
    mode: Mode | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    add_labels: LabelTexts | None = None,
    describe: str | None = None,
    scale: str | None = None,
    text: str | None = None,
    text_a: str | None = None,
    text_b: str | None = None,
    column: str | None = None,
    rehearse: float | None = None,
    overrides: Mapping[str, Any] | None = None,
    device: str | None = None,
    precision: str = "fp32",
    data_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    tell: Callable[[str], None] | None = None,
    emit: Callable[[FitEvent], None] | None = None,
) -> UpdateReport:
    """Add a task or labels to a model with label texts, or a relation to a model whose head reads
    descriptions.

    `add_labels` adds labels to a task that the model has: {"gift card": "a question about gift cards"}. With
    `data`, the model is trained on the texts in it and on the old ones.

    A new task has labelled texts in `data`. It may give its `labels` (name → label texts) and the column of
    the `text`. A relation is given by `describe`, its question in words, and by its `scale` ("0..4"). It may
    have rated pairs in `data`, in the columns `text_a` and `text_b`.

    `mode` is zero (no training), hot (train on the data and a share `rehearse` of the old rows) or cold
    (train on everything from the beginning). It is hot by default, and zero for labels without data.
    `overrides` are keys of the last stage: {"epochs": 3, "freeze": ["encoder"]}. `resume` continues an
    interrupted update. `quiet`, `tell` and `emit` are those of `train`.
    """
    _check_places(model, device, precision, data_dir)
    require_path(model, "model")
    require_folder_name(output, "output")
    require_path(data, "data", optional=True)
    require_text(task, "task", optional=False)
    require_text(mode, "mode")
    require_mapping(add_labels, "add_labels")
    if mode is None:
        mode = "zero" if add_labels and data is None else "hot"
    said = {"describe": describe, "scale": scale, "text": text, "text_a": text_a, "text_b": text_b}
    for name, value in {**said, "column": column}.items():
        require_text(value, name)
    require_mapping(labels, "labels")
    require_mapping(overrides, "overrides")
    require_number(rehearse, "rehearse", low=0, high=1, optional=True)
    added = None
    if add_labels:
        added = {
            label: listed_names(words, f"the label texts of {label!r}") for label, words in add_labels.items()
        }
    for flag, given in (("overwrite", overwrite), ("resume", resume), ("quiet", quiet)):
        require_flag(given, flag)
    source = None if data is None else os.fspath(data)
    with _reports(quiet, tell, emit) as (telling, emitting), remembering_inputs():
        context = RunContext(
            data_dir=None if data_dir is None else Path(data_dir),
            device=device,
            precision=precision,
            tell=telling,
            emit=emitting,
        )
        return update_model(
            os.fspath(model),
            Addition(task, source, text, text_a, text_b, column, labels, describe, scale, added),
            Path(output),
            mode=mode,
            context=context,
            rehearse=rehearse,
            overrides=overrides,
            resume=resume,
            overwrite=overwrite,
        )
