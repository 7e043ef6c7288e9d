"""Add something to a trained model: a task whose labels are texts, or a relation that is described in words.

zero   add it without data; no parameter changes
hot    continue training with its rows, and with a share of the old rows if they are to be rehearsed
cold   train everything again from the beginning of the recipe

The recipe's last stage (`Stage.new_relation`, `adding`) and the model's family (`Family.extend`) decide what
can be added. The stage's runner decides how it is trained.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from likewise.disk import scratch_folder
from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.resolve import resolve
from likewise.errors import DataError, ModelError, UsageError
from likewise.folders import stage_reports
from likewise.kinds.base import Carried, DevSet, Job, StageData, runner_of
from likewise.kinds.building import start_digests
from likewise.kinds.context import RunContext
from likewise.outputs import check_beside_inputs
from likewise.predict import Answerer, load
from likewise.predict.families import family_of_model
from likewise.recipes.prepared import read_stages
from likewise.recipes.run import Target, jobs_of, run_recipe, sources_of
from likewise.recipes.runfiles import (
    RunMark,
    RunPlace,
    is_finished,
    remove_run,
    run_folder,
    run_folders,
    working_in,
)
from likewise.records import Record, Relation
from likewise.schema.base import Addition, Stage
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.spelling import spelt, spelt_call
from likewise.wording import counted

Mode = Literal["zero", "hot", "cold"]
Score = Callable[[Any], dict[str, float]]
MODES = ("zero", "hot", "cold")
_RELATION_KEYS = ("kind", "lo", "hi", "step", "labels", "positions", "description")


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """The result of an update, with dev numbers of all relations before and after it, where measured."""

    output: Path
    mode: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    model: Answerer


@dataclass(frozen=True, slots=True)
class Continued:
    """Dev numbers of old and new relations before and after training on the new one, and its report."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    report: Mapping[str, Any]
    run: str = ""


def update_model(
    model: str | Path,
    addition: Addition,
    output: str | Path,
    *,
    mode: Mode,
    context: RunContext,
    rehearse: float | None = None,
    overrides: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> UpdateReport:
    """Add a relation or task to a model and write the new model; the old folder stays unchanged.

    `rehearse` is the share of the old training rows that are used again (hot). `overrides` are keys of the
    last stage: {"learning_rate": 1e-4, "freeze": ["encoder"]}. `resume` continues an update that was stopped
    while it trained.
    """
    target = _check_mode(output, mode, resume=resume)
    if is_finished(target, run_folder(target)):
        # Stopped after its model was complete: what is left to do is done again, over its own result.
        overwrite = overwrite or resume
        if not resume:
            remove_run(run_folder(target))
    inputs = [model, addition.source, *context.inputs]
    run_folders(target, inputs=inputs, resume=resume, overwrite=overwrite)
    place_of_model = Target.of(target, overwrite)
    answerer = load(model, device=context.device, precision=context.precision)
    old = _recipe_of(answerer, model)
    relation = _new_relation(old, addition, answerer, model, mode)
    changes = dict(overrides or {})
    if "epochs" in changes:
        changes.setdefault("max_steps", None)  # a number of steps in the old recipe would win
    if mode == "cold":
        _refuse_to_lose(answerer, old)
        recipe = with_relation(old, relation, addition, changes)
        anew = run_recipe(recipe, target, context=context, resume=resume, overwrite=overwrite)
        return UpdateReport(target, mode, {}, dev_numbers(anew.stages), anew.predictor)
    recipe = with_relation(old, relation, addition, changes)
    score = None if addition.new_labels is None else _score_of_old_texts(old, recipe, context)
    before = {} if score is None else score(answerer.model)
    extend(answerer, relation, context)
    found = Continued(before, score(answerer.model) if score is not None and mode == "zero" else {}, {})
    if mode == "zero" and addition.source is not None:
        # Not learnt from now, but by later updates: rows that cannot be read are better known at once.
        read_stages(jobs_of(_whole(_alone(recipe, relation)), context))
    if mode == "hot":
        check_beside_inputs(target, sources_of(old))
        place = UpdatePlace(
            target, resume=resume, start=start_digests(Path(resolve(model))), precision=context.precision
        )
        if addition.new_labels is not None:
            if rehearse is not None:
                out = f"Leave {spelt('rehearse')} out."
                raise UsageError(f"all old texts are trained on when a label is added. {out}")
            found = train_on_all(answerer, recipe, before, score, context=context, place=place)
        else:
            found = train_on(
                answerer,
                relation,
                _alone(recipe, relation),
                old,
                rehearse=rehearse or 0.0,
                fixed=tuple(changes),
                context=context,
                place=place,
            )
    report = _keep(answerer, recipe, found, place_of_model, mode=mode)
    if mode == "hot":
        remove_run(run_folder(target))
    return report


@dataclass(frozen=True, slots=True)
class UpdatePlace:
    """Where the training of an update can be resumed: beside its output, for the model it began on."""

    target: Path
    resume: bool
    start: Mapping[str, str]
    precision: str

    @contextmanager
    def open(self, own: Recipe, rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[RunPlace, str]]:
        """The locked run folder and the id of the run."""
        work = run_folder(self.target)
        mark = RunMark(own, rows, self.start, self.precision)
        with working_in(work, mark, resume=self.resume) as run:
            yield RunPlace(work, resume=self.resume, resumable=True), run


def _check_mode(output: str | Path, mode: str, *, resume: bool) -> Path:
    """The folder of the new model; raises an error for an unknown mode or one that cannot be resumed."""
    if mode not in MODES:
        raise UsageError(f"{spelt('mode')} {mode!r} is not one of {', '.join(MODES)}")
    if mode == "zero" and resume:
        found = f"{spelt('mode', 'zero')} trains nothing, so there is nothing to resume"
        raise UsageError(f"{found}. Leave {spelt('resume')} out.")
    return Path(output)


def _recipe_of(answerer: Answerer, model: str | Path) -> Recipe:
    if "recipe" not in answerer.about:
        raise ModelError(
            f"{model} was not trained by Likewise, so it cannot be updated. Train it first "
            f"({spelt_call('train', 'RECIPE')}), or classify with it and give {spelt('labels', '…')}."
        )
    path = Path(model) / DOCUMENT
    stage_reports(answerer.about, path)  # told again by the new model's card, after all the training
    return parse_recipe(dict(answerer.about["recipe"]), str(path))


def _new_relation(
    old: Recipe, addition: Addition, answerer: Answerer, model: str | Path, mode: Mode
) -> Relation:
    """The relation to add, checked as far as possible before the model changes."""
    stage = old.stage[-1]
    known = {relation.name: relation for relation in answerer.relations}
    if addition.new_labels is not None:
        return _with_new_labels(stage, known, addition, mode)
    if addition.name in known:
        another = f"Choose another {spelt('task', 'NAME')}."
        raise UsageError(f"the model already answers {addition.name!r}. {another}")
    relation = stage.new_relation(addition, str(model))
    stage.check_addition(addition, mode)
    return relation


def _with_new_labels(stage: Stage, known: Mapping[str, Relation], addition: Addition, mode: str) -> Relation:
    """A task of the model with the labels that are added to it."""
    if addition.name not in known:
        raise UsageError(
            f"the model has no task {addition.name!r}, to which a label could be added. Choose one of "
            f"{', '.join(known)}."
        )
    if mode == "zero" and addition.source is not None:
        raise UsageError(
            f"{spelt('mode', 'zero')} trains on no data, but {addition.source} is given. Leave it out, or "
            f"use {spelt('mode', 'hot')}."
        )
    if mode != "zero" and addition.source is None:
        raise UsageError(
            f"{spelt('mode', mode)} trains on texts with the new label, but no file is given. Name one, or "
            f"use {spelt('mode', 'zero')}."
        )
    return stage.widened(known[addition.name], addition)


def _refuse_to_lose(answerer: Answerer, old: Recipe) -> None:
    """Raise an error if training again would lose relations that were added without data."""
    trained = set(old.stage[-1].rates(old.relation))
    lost = [relation.name for relation in answerer.relations if relation.name not in trained]
    if lost:
        raise UsageError(
            f"{', '.join(lost)} was added without ratings, and {spelt('mode', 'cold')} would lose it. Use "
            f"{spelt('mode', 'hot')}, or update the model from before that addition."
        )


def with_relation(
    old: Recipe, relation: Relation, addition: Addition, overrides: Mapping[str, Any]
) -> Recipe:
    """The recipe of all relations: the old recipe's data, and the new rows, if any, in its last stage."""
    document = old.model_dump(mode="json")
    entry = {key: getattr(relation, key) for key in _RELATION_KEYS}
    if relation.kind == "classes":
        said = dict(zip(relation.labels, relation.label_texts, strict=True))
        entry = {"kind": relation.kind, "labels": list(relation.labels), "texts": said}
    document["relation"][relation.name] = entry
    document["stage"][-1] |= {**old.stage[-1].adding(addition, relation), **overrides}
    return parse_recipe(document, "update")


def _alone(recipe: Recipe, relation: Relation) -> Recipe:
    """The recipe of the added relation alone."""
    return recipe.model_copy(update={"stage": (recipe.stage[-1].alone(relation),)})


def _whole(own: Recipe) -> Recipe:
    """The recipe with all its rows: where nothing is learnt, no rows are split off or filtered."""
    stage: Any = own.stage[-1]
    whole = stage.model_copy(update={"dev": stage.data, "fold": None, "filter_against": ()})
    return own.model_copy(update={"stage": (whole,)})


def extend(answerer: Answerer, relation: Relation, context: RunContext) -> None:
    """Let a loaded model answer one more relation; no parameter changes."""
    family_of_model(answerer.model).extend(answerer.model, relation, context.tell)


def train_on(
    answerer: Answerer,
    relation: Relation,
    own: Recipe,
    old: Recipe,
    *,
    rehearse: float,
    context: RunContext,
    fixed: Sequence[str] = (),
    place: UpdatePlace | None = None,
) -> Continued:
    """Continue training with an added relation; `own` is its recipe, `old` that of the model.

    The old relations' dev rows are measured too, so that forgetting counts when the epoch is chosen. Without
    a `place` the training cannot be resumed.
    """
    _tell_of_rank(old, context)
    known = _read_known(old, context)
    [fresh] = read_stages(jobs_of(own, context))
    [job] = jobs_of(own, context)
    runner, seed = runner_of(job.stage), own.seed
    again = _rehearsed(len(known.rows.train), rehearse, seed)
    rows = len(fresh.rows.train) + len(again)
    stage = runner.settings_for(job, rows, rehearsed=bool(rehearse), fixed=fixed)
    job = replace(job, stage=stage, name=f"hot {relation.name}")
    merged = runner.merge(fresh, known, again)
    model: Any = answerer.model
    model.learning = _rated_names(answerer, merged.rows.train) if again else (relation.name,)
    context.tell(
        f"training on {counted(len(fresh.rows.train), 'row')} of {relation.name} and "
        f"{len(again):,} rehearsed rows"
    )
    recipe = own.model_copy(update={"stage": (stage,)})
    prints = [fresh.prints, known.prints, {"rehearsed": str(len(again))}]
    opened = _nowhere() if place is None else place.open(recipe, prints)
    found = _continued(answerer, job, replace(merged, prints=fresh.prints), opened)
    model.learning = ()
    return found


def train_on_all(
    answerer: Answerer,
    recipe: Recipe,
    before: Mapping[str, float],
    score: Score | None,
    *,
    context: RunContext,
    place: UpdatePlace,
) -> Continued:
    """Continue training on all rows of a recipe: a new label is learnt beside the old ones.

    `score` measures the old texts, which gave `before` without the new label.
    """
    _tell_of_rank(recipe, context)
    data = read_stages(jobs_of(recipe, context))[-1]
    job = jobs_of(recipe, context)[-1]
    context.tell(f"training on {counted(len(data.rows.train), 'row')} with old and new labels")
    found = _continued(answerer, job, data, place.open(recipe, [data.prints]))
    if score is None:
        return found
    return replace(found, before=before, after=score(answerer.model))


def _score_of_old_texts(old: Recipe, recipe: Recipe, context: RunContext) -> Score | None:
    """How many texts of a model's data get their label, before and after another label is added.

    The dev set is asked if there is one, and otherwise the training texts.
    """
    try:
        known = _read_known(old, context)
    except DataError as error:
        context.tell(f"what the new label costs the old ones was not measured: {error}")
        return None
    job = jobs_of(recipe, context)[-1]
    sets = known.dev or (DevSet("texts trained on", known.rows.train),)
    score: Score = runner_of(job.stage).scorer(job, sets)
    return score


def _continued(
    answerer: Answerer,
    job: Job[Any],
    data: StageData,
    opened: AbstractContextManager[tuple[RunPlace, str]],
) -> Continued:
    """Train a loaded model further, and measure it on the dev rows before and after."""
    model: Any = answerer.model
    runner, dev = runner_of(job.stage), data.dev
    score = runner.scorer(job, dev) if dev else lambda model: {}
    before = score(model)
    carried = Carried(job.stage.gives, lambda: model.encoder, lambda: model)
    with opened as (found, run):
        report = runner.fit(job, data, carried, found)
    return Continued(before, score(model), report, run)


def _read_known(old: Recipe, context: RunContext) -> StageData:
    """The rows that the model was trained on; they are measured before and after the update."""
    try:
        return read_stages(jobs_of(old, context))[-1]
    except DataError as error:
        raise DataError(
            "the data that the model was trained on could not be read again, which is needed to measure what "
            f"the update forgets ({error}). Run the command where those files are."
        ) from error


@contextmanager
def _nowhere() -> Iterator[tuple[RunPlace, str]]:
    """A temporary run folder, which cannot be resumed."""
    with scratch_folder() as run:
        yield RunPlace(run, resume=False, resumable=False), ""


def _tell_of_rank(recipe: Recipe, context: RunContext) -> None:
    """Say that a hot update trains all weights, though the model's change was kept at a low rank."""
    if recipe.update is not None:
        context.tell("the recipe's [update] is not applied here, so the change may have any rank")


def _rehearsed(rows: int, share: float, seed: int) -> list[int]:
    """The numbers of the old training rows that are rehearsed."""
    return sorted(random.Random(seed).sample(range(rows), round(share * rows)))


def _rated_names(answerer: Answerer, rows: Sequence[Record]) -> tuple[str, ...]:
    """The relations of a model that the rows rate; relations that were added without data are left out."""
    names = [relation.name for relation in answerer.relations]
    return tuple(name for name in names if any(row.values.get(name) is not None for row in rows))


def _keep(
    answerer: Answerer, recipe: Recipe, found: Continued, target: Target, *, mode: Mode
) -> UpdateReport:
    """Write an updated model, with the recipe of all relations that it now answers."""
    about = {**answerer.about, "recipe": recipe.model_dump(mode="json"), "update": mode}
    about["run"] = found.run
    kept = ("recipe", "method", "name", "stages", "update", "run", "seen")
    target.save(answerer.model, {key: value for key, value in about.items() if key in kept})
    return UpdateReport(target.folder, mode, found.before, found.after, answerer)


def dev_numbers(stages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The dev numbers of the step that was kept."""
    last = stages[-1]
    kept = [entry for entry in last["history"] if entry["step"] == last["best_step"]]
    return {name: value for name, value in (kept or [{}])[0].items() if name != "step"}
