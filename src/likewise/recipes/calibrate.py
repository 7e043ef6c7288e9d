"""Fit the probabilities of a label model to labelled texts that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Numbers, find_relation
from likewise.data import load_records, text_key
from likewise.data.own import OwnTable, open_own_table
from likewise.errors import DataError, LikewiseError, Problem, UsageError
from likewise.kinds.context import RunContext
from likewise.methods.label_embedding import Calibration, fit_calibration
from likewise.outputs import check_model_folder
from likewise.predict import Answerer
from likewise.predict.families import family_of_model
from likewise.recipes.prepared import read_stages
from likewise.recipes.run import Target, jobs_of
from likewise.recipes.seen import SEEN, training_data
from likewise.records import Relation
from likewise.schema.labels import new_task, words_of
from likewise.schema.recipe import parse_recipe
from likewise.spelling import spelt, spelt_call
from likewise.wording import counted

# With fewer texts the fit says more about them than about the model.
FEWEST = 20
# The reported error is measured on texts that the fit left out, in so many parts.
_PARTS = 5
_BINS = 15
_KEPT = ("recipe", "method", "name", "stages", "update", "run", "seen")


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A calibration: its texts, and the expected calibration error before and after it, by cross-validation.

    `model` answers with the new probabilities.
    """

    output: Path
    task: str
    texts: int
    before: float
    after: float
    temperature: float
    model: Answerer


def calibrate_model(
    answerer: Answerer,
    source: object,
    output: str | Path,
    *,
    task: str | None = None,
    text: str | None = None,
    column: str | None = None,
    labels: Any = None,
    templates: Sequence[str] = (),
    use: int | None = None,
    seed: int = 1,
    data_dir: Path | None = None,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> CalibrationReport:
    """Calibrate a task of a model, or a raw encoder on labels that it reads, and write the new model.

    `use` draws so many of the texts. The model's folder stays as it is.
    """
    check_model_folder(Path(output), overwrite=overwrite)
    target = Target.of(Path(output), overwrite)
    name = _task_name(answerer, task, column)
    table = open_own_table(
        source,
        name=source if isinstance(source, str) else "table",
        declared=[f"{column or name}:classes"],
        text_a=text,
        data_dir=data_dir,
        pairs=False,
    )
    relation = _relation_of(answerer, name, table, labels, templates, tell)
    texts, gold = _rows(table, relation, column or name, text, data_dir)
    texts, gold = _without(_trained_on(answerer, data_dir, tell), texts, gold, tell)
    if use is not None and use < len(texts):
        chosen = np.random.default_rng(seed).permutation(len(texts))[:use]
        texts, gold = [texts[place] for place in chosen], gold[chosen]
    if len(texts) < FEWEST:
        found = f"has {counted(len(texts), 'labelled text')}, but {FEWEST} or more are needed"
        raise DataError([Problem(table.name, found, "label more texts that the model was not trained on")])
    before = np.asarray(answerer.answer([(text,) for text in texts], relation).probabilities)
    after = _cross_validated(answerer.label_scores(relation, texts), gold, seed)
    if _cross_entropy(after, gold) >= _cross_entropy(before, gold):
        found = (
            f"{counted(len(texts), 'text')} did not make the probabilities better (calibration error "
            f"{calibration_error(before, gold):.3f} before, {calibration_error(after, gold):.3f} after, "
            "cross-validated), so no model was written"
        )
        raise DataError([Problem(table.name, found, "label more texts; about 100 are mostly enough")])
    temperature = answerer.calibrate(relation, texts, [relation.labels[number] for number in gold])
    about = {key: value for key, value in answerer.about.items() if key in _KEPT}
    if answerer.about.get("raw") and (seen := training_data(answerer.about["name"])):
        about[SEEN] = seen  # the encoder of a model of pairs, which was trained before
    target.save(answerer.model, about)
    return CalibrationReport(
        target.folder,
        name,
        len(texts),
        calibration_error(before, gold),
        calibration_error(after, gold),
        temperature,
        answerer,
    )


def _trained_on(answerer: Answerer, data_dir: Path | None, tell: Callable[[str], None]) -> set[str]:
    """The keys of the texts that a model was trained on, as far as its data can be read again."""
    if "recipe" not in answerer.about:
        return set()
    try:
        recipe = parse_recipe(dict(answerer.about["recipe"]), "model.json")
        stages = read_stages(jobs_of(recipe, RunContext(data_dir=data_dir)))
    except LikewiseError as error:
        tell(f"whether the model was trained on some of these texts was not checked: {error}")
        return set()
    return {text_key(text) for data in stages for text in data.texts()}


def _without(
    known: set[str], texts: list[str], gold: NDArray[np.int64], tell: Callable[[str], None]
) -> tuple[list[str], NDArray[np.int64]]:
    """The texts that the model was not trained on: on the others it is surer than on new ones."""
    new = [place for place, text in enumerate(texts) if text_key(text) not in known]
    if len(new) < len(texts):
        told = counted(len(texts) - len(new), "text")
        tell(f"{told} left out, because the model was trained on them")
    return [texts[place] for place in new], gold[new]


def _cross_entropy(probabilities: Numbers, gold: NDArray[np.int64]) -> float:
    """The mean of −log p of the right label."""
    return -float(np.log(probabilities[np.arange(len(gold)), gold] + 1e-12).mean())


def calibration_error(probabilities: Numbers, gold: NDArray[np.int64]) -> float:
    """The expected calibration error over 15 bins of equal width: N×C and N to 0..1.

    Source: Guo et al. 2017, equation 3.
    """
    sure = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == gold
    places = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    parts = [places == place for place in range(_BINS) if (places == place).any()]
    return float(sum(mine.mean() * abs(right[mine].mean() - sure[mine].mean()) for mine in parts))


def _task_name(answerer: Answerer, task: str | None, column: str | None) -> str:
    """The task to calibrate: the named one, the only one, or a new one of a raw encoder."""
    known = [relation.name for relation in answerer.relations]
    if not known:
        if task is None and column is None:
            raise UsageError(
                f"this encoder has no task yet. Name one with {spelt('task', 'NAME')}, and its column with "
                f"{spelt('label', 'COLUMN')} if the column has another name."
            )
        return task or str(column)
    if task is None and len(known) > 1:
        raise UsageError(
            f"the model has the tasks {', '.join(known)}. Name one with {spelt('task', 'NAME')}."
        )
    return find_relation(answerer, task or known[0]).name


def _relation_of(
    answerer: Answerer,
    name: str,
    table: OwnTable,
    labels: Any,
    templates: Sequence[str],
    tell: Callable[[str], None],
) -> Relation:
    """The task as the model answers it. A raw encoder gets it now, with the labels of the column."""
    if answerer.relations:
        if labels or templates:
            raise UsageError(
                f"the model has its own words for the labels of {name!r}. Leave {spelt('labels')} and "
                f"{spelt('templates')} out."
            )
        return find_relation(answerer, name)
    [found] = table.relations
    said = {label: [words_of(label)] for label in found.labels} | dict(labels or {})
    extra = [label for label in said if label not in found.labels]
    if extra:
        raise UsageError(
            f"{extra[0]!r} is not in column {found.name!r} ({', '.join(found.labels)}). Write "
            f"{spelt('labels', 'NAME = WORDS')} with a name that is in the column."
        )
    relation = new_task(name, said)
    if templates:
        answerer.keep_templates(templates)
    family_of_model(answerer.model).extend(answerer.model, relation, tell)
    return relation


def _rows(
    table: OwnTable, relation: Relation, column: str, text: str | None, data_dir: Path | None
) -> tuple[list[str], NDArray[np.int64]]:
    records = load_records(
        table.source, relations=table.relations, text_a=text, pairs=False, data_dir=data_dir
    )
    [found] = [one.name for one in table.relations if one.name == column]
    rows = [(record, record.values.get(found)) for record in records]
    add = spelt_call("update", "MODEL", task="NAME", add_labels="LABEL = WORDS", output="FOLDER")
    unknown = [
        Problem(
            record.source,
            f"label {value!r} is not one of the task's ({', '.join(relation.labels)})",
            f"correct it, or add the label to the task first ({add})",
        )
        for record, value in rows
        if value is not None and value not in relation.labels
    ]
    if unknown:
        raise DataError(unknown)
    rated = [
        (record.texts[0], relation.labels.index(str(value))) for record, value in rows if value is not None
    ]
    return [one for one, _ in rated], np.array([number for _, number in rated], dtype=np.int64)


def _cross_validated(scores: Numbers, gold: NDArray[np.int64], seed: int) -> Numbers:
    """Probabilities of texts by calibrations that were fitted without them."""
    made = np.empty_like(scores)
    order = np.random.default_rng(seed).permutation(len(gold))
    for part in range(_PARTS):
        left_out = order[part::_PARTS]
        others = np.setdiff1d(order, left_out)
        made[left_out] = _probabilities(scores[left_out], fit_calibration(scores[others], gold[others]))
    return made


def _probabilities(scores: Numbers, fitted: Calibration) -> Numbers:
    from scipy.special import softmax

    found: Numbers = softmax(scores / fitted.temperature + np.array(fitted.offsets), axis=1)
    return found
