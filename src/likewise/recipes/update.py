"""A task is added to a trained label model: without training, by training on it, or on everything.

zero   the labels are named, no parameter changes
hot    training goes on with the new task's texts, and a share of the old ones if they are to be rehearsed
cold   all tasks are trained again, from the start of the recipe

`update_pairs` adds a relation to a model of pairs in the same three ways; what both share is here.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise.data import infer_relations
from likewise.data.reading import find_named_corpus
from likewise.errors import DataError, ModelError, UsageError
from likewise.methods.label_embedding import LabelModel
from likewise.methods.pairs import PairModel
from likewise.predict import Answerer, load_classifier, new_task
from likewise.predict.families import family_of_model
from likewise.recipes.build import build_settings
from likewise.recipes.context import RunContext
from likewise.recipes.labels import label_scorer, label_stages
from likewise.recipes.run import run_recipe
from likewise.recipes.runfiles import stage_report
from likewise.recipes.schema import Recipe, parse_recipe
from likewise.recipes.schema_stages import LabelStageSpec, TrainedStageSpec
from likewise.recipes.sources import load_source
from likewise.recipes.stages import StageData, load_stages
from likewise.records import Record, Relation

if TYPE_CHECKING:
    from likewise.training.callbacks import Evaluate

Mode = Literal["zero", "hot", "cold"]
_GENTLE_RATE, _GENTLE_MEAN = 0.2, 0.99
MODES = ("zero", "hot", "cold")


@dataclass(frozen=True, slots=True)
class NewTask:
    """What is added: its name, its labelled texts and their columns, and its labels in words.

    The labels stand in the column of its name, unless `column` says another; a named corpus's are known.
    """

    name: str
    source: str
    text: str | None = None
    column: str | None = None
    labels: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update left behind: dev numbers of all that is answered, before and after, where measured."""

    output: Path
    mode: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    model: Answerer


@dataclass(frozen=True, slots=True)
class Trained:
    """Dev numbers of old and new before and after training on the new, and what the training reports."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    report: Mapping[str, Any]


def update_model(
    model: str | Path,
    task: NewTask,
    output: str | Path,
    *,
    mode: Mode,
    context: RunContext,
    rehearse: float = 0.0,
    overrides: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> UpdateReport:
    """Add a task to a model and write the new model; the old folder stays as it is.

    `rehearse` is the share of the old tasks' training texts that are shown again (hot); `overrides` are paths
    of the stage: {"learning_rate": 1e-4, "freeze": ["encoder"]}.
    """
    target = check_update(output, mode, overwrite=overwrite)
    classifier = load_classifier(model, device=context.device, precision=context.precision)
    old = _recipe_of(classifier, model)
    relation = _relation(task, classifier)
    recipe = _with_task(old, relation, task, overrides or {})
    if mode == "cold":
        anew = run_recipe(recipe, target, context=context, overwrite=overwrite)
        return UpdateReport(target, mode, {}, dev_numbers(anew.stages), anew.predictor)
    add_labels(classifier, relation)
    found = Trained({}, {}, {})
    if mode == "zero":
        # Not learnt from now, but by later updates: rows that cannot be read are better known at once.
        load_source(
            recipe.stage[-1].data[-1],  # type: ignore[union-attr, arg-type]
            {relation.name: relation},
            data_dir=context.data_dir,
            tables=context.tables,
            pairs=False,
        )
    if mode == "hot":
        own = _alone(recipe, relation, label_stages(recipe)[-1][1])
        own = _gentle(own, overrides or {}) if rehearse else own
        found = train_on(classifier, relation, own, old, rehearse=rehearse, context=context)
    return keep_updated(classifier, recipe, found, target, mode=mode, overwrite=overwrite)


def _gentle(own: Recipe, overrides: Mapping[str, Any]) -> Recipe:
    """A rehearsed update at a fifth of the rate, with a running mean: the old tasks then lose nothing.

    Chosen by dev for sentence encoders (docs/methods/label_embedding.md); others keep the recipe's rate, and
    so does whoever sets one.
    """
    if own.encoder.kind != "pretrained" or {"learning_rate", "average"} & set(overrides):
        return own
    stage = own.stage[-1]
    rate = getattr(stage, "learning_rate", 0.0) * _GENTLE_RATE
    slower = stage.model_copy(update={"learning_rate": rate, "average": _GENTLE_MEAN})
    return own.model_copy(update={"stage": (*own.stage[:-1], slower)})


def check_update(output: str | Path, mode: str, *, overwrite: bool) -> Path:
    """The folder of the new model; a mode that there is not, or a folder that exists, is refused."""
    if mode not in MODES:
        raise UsageError(f"--mode {mode!r} is not one of {', '.join(MODES)}")
    target = Path(output)
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another --output or pass --overwrite")
    return target


def keep_updated(
    ready: Any,
    recipe: Recipe,
    found: Trained,
    target: Path,
    *,
    mode: Mode,
    overwrite: bool,
) -> UpdateReport:
    """Write an updated model, with the recipe of all that it answers now."""
    from likewise.store import save_model

    about = {**ready.about, "recipe": recipe.model_dump(mode="json"), "update": mode}
    save_model(
        ready.model,
        target,
        about={k: v for k, v in about.items() if k in ("recipe", "method", "name", "stages", "update")},
        overwrite=overwrite,
    )
    return UpdateReport(target, mode, found.before, found.after, ready)


def _recipe_of(classifier: Any, model: str | Path) -> Recipe:
    if "recipe" not in classifier.about:
        raise ModelError(
            f"{model} was not trained on labelled texts by likewise: there is nothing to update; "
            "train it first (likewise train RECIPE), or name labels to it (likewise classify --labels)"
        )
    return parse_recipe(dict(classifier.about["recipe"]), f"{model}/likewise/model.json")


def _relation(task: NewTask, classifier: Any) -> Relation:
    if any(known.name == task.name for known in classifier.relations):
        raise UsageError(f"the model has a task {task.name!r} already; choose another --task NAME")
    if not classifier.model.reads_labels:
        name = classifier.about.get("name", "this model")
        raise UsageError(f"{name} has a fixed layer per task and reads no labels; train it with a matcher")
    if task.labels:
        return new_task(task.name, task.labels)
    named = find_named_corpus(task.source)
    if named is not None:
        own = {one.name: one for one in named[0].relations}[_column(task)]
        return Relation.classes(task.name, own.labels, texts=own.label_texts)
    declared = [f"{_column(task)}:classes"]
    try:
        [found] = infer_relations(task.source, declared=declared, text_a=task.text, pairs=False)
    except DataError as error:
        # The reader speaks of options that an update does not have.
        remedy = "name the column by --column, or its labels by --labels 'one, other'"
        told = [replace(p, remedy=remedy) if "--relation" in p.remedy else p for p in error.problems]
        raise (DataError(told) if told else error) from None
    return Relation.classes(task.name, found.labels)


def _column(task: NewTask) -> str:
    """Where the labels stand: the column of the task's name, or the only relation of a corpus."""
    named = find_named_corpus(task.source)
    known = [] if named is None else [one.name for one in named[0].relations]
    column = task.column or (known[0] if len(known) == 1 else task.name)
    if known and column not in known:
        raise UsageError(f"{task.source} has no relation {column!r}; it has {', '.join(known)}")
    return column


def _with_task(old: Recipe, relation: Relation, task: NewTask, overrides: Mapping[str, Any]) -> Recipe:
    """The recipe of all tasks: the old one's data and the new texts, in its last stage."""
    document = old.model_dump(mode="json")
    document["relation"][relation.name] = {
        "kind": "classes",
        "labels": list(relation.labels),
        "texts": dict(zip(relation.labels, relation.label_texts, strict=True)),
    }
    stage = document["stage"][-1]
    entry = {"source": task.source, "text_a": task.text, "columns": {relation.name: _column(task)}}
    stage["data"] = [*stage["data"], entry]
    if stage["task"]:
        stage["task"] = [*stage["task"], relation.name]
    stage |= overrides
    return parse_recipe(document, "update")


def add_labels(classifier: Any, relation: Relation) -> None:
    """Name a task's labels to a model that can read them; no parameter changes."""
    family_of_model(classifier.model).extend(classifier.model, relation, lambda line: None)


def train_on(
    classifier: Any,
    relation: Relation,
    own: Recipe,
    old: Recipe,
    *,
    rehearse: float,
    context: RunContext,
) -> Trained:
    """Go on training with a task whose labels were named; `own` is its recipe, `old` that of the model.

    The old tasks' dev texts are looked at too: what is forgotten counts when the epoch is chosen.
    """
    stage = label_stages(own)[-1][1]
    known = load_stages(old, context=context)[-1]
    fresh = load_stages(own, context=context)[-1]
    score = label_scorer((*known.dev, *fresh.dev), precision=context.precision)
    return go_on(
        classifier.model,
        relation.name,
        stage,
        fresh,
        known,
        score=score,
        seed=own.seed,
        rehearse=rehearse,
        context=context,
    )


def go_on(
    model: LabelModel | PairModel,
    added: str,
    stage: TrainedStageSpec,
    fresh: StageData,
    known: StageData,
    *,
    score: Evaluate,
    seed: int,
    rehearse: float,
    context: RunContext,
) -> Trained:
    """Train on the rows of what was added and a share of the old ones; `score` gives all dev numbers."""
    from likewise.training.fit import fit

    again = _rehearsed(known, rehearse, seed)
    train = [*fresh.train, *(known.train[row] for row in again)]
    groups = [0] * len(fresh.train) + [1 + (known.groups[row] if known.groups else 0) for row in again]
    model.learning = _rated_names(model, train) if again else (added,)
    before = score(model)
    context.tell(f"{len(fresh.train):,} rows of {added}, {len(again):,} rehearsed")
    settings = build_settings(
        stage, seed=seed, device=context.device, precision=context.precision, trackers=context.trackers
    )
    with tempfile.TemporaryDirectory(prefix="likewise-update-") as run:
        report = fit(
            model,
            train,
            settings=settings,
            groups=groups,
            evaluate=score,
            metric="score",
            emit=context.emit,
            resumable=False,
            run=Path(run),
        )
    model.learning = ()
    return Trained(before, score(model), stage_report(f"hot {added}", report, fresh))


def _alone(recipe: Recipe, relation: Relation, stage: LabelStageSpec) -> Recipe:
    """The new task's own data, dev split off; what is filtered stays filtered."""
    own = stage.model_copy(
        update={"data": stage.data[-1:], "dev": (), "task": (relation.name,), "weights": {}}
    )
    return recipe.model_copy(update={"stage": (own,)})


def _rehearsed(known: StageData, share: float, seed: int) -> list[int]:
    """Numbers of a sample of the old training rows."""
    count = round(share * len(known.train))
    return sorted(random.Random(seed).sample(range(len(known.train)), count))


def _rated_names(model: LabelModel | PairModel, rows: Sequence[Record]) -> tuple[str, ...]:
    """What of a model the rows say anything about: not what was added without rows."""
    names = [relation.name for relation in model.relations]
    return tuple(name for name in names if any(row.values.get(name) is not None for row in rows))


def dev_numbers(stages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The dev numbers of the epoch that was kept."""
    last = stages[-1]
    kept = [entry for entry in last["history"] if entry["step"] == last["best_step"]]
    return {name: value for name, value in (kept or [{}])[0].items() if name != "step"}
