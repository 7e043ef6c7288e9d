"""Something is added to a trained model: a task whose labels are texts, or a relation that is said in words.

zero   it is named or described, no parameter changes
hot    training goes on with its rows, and a share of the old ones if they are to be rehearsed
cold   everything is trained again, from the start of the recipe

What can be added is the business of the recipe's last stage (`Stage.new_relation`, `adding`) and of the
model's family (`Family.extend`); how it is trained, of the stage's runner.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from likewise.disk import scratch_folder
from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.resolve import resolve
from likewise.errors import DataError, ModelError, UsageError
from likewise.folders import stage_reports
from likewise.kinds.base import Carried, StageData, runner_of
from likewise.kinds.building import start_digests
from likewise.kinds.context import RunContext
from likewise.outputs import check_beside_inputs
from likewise.predict import Answerer, load
from likewise.predict.families import family_of_model
from likewise.recipes.prepared import read_stages
from likewise.recipes.run import jobs_of, run_recipe, sources_of
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
from likewise.schema.base import Addition
from likewise.schema.recipe import Recipe, parse_recipe

Mode = Literal["zero", "hot", "cold"]
MODES = ("zero", "hot", "cold")
_RELATION_KEYS = ("kind", "lo", "hi", "step", "labels", "positions", "description")


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update left behind: dev numbers of all that is answered, before and after, where measured."""

    output: Path
    mode: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    model: Answerer


@dataclass(frozen=True, slots=True)
class Continued:
    """Dev numbers of old and new before and after training on the new, and what the training reports."""

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
    rehearse: float = 0.0,
    overrides: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> UpdateReport:
    """Add to a model and write the new model; the old folder stays as it is.

    `rehearse` is the share of the old training rows that are shown again (hot); `overrides` are keys of the
    last stage: {"learning_rate": 1e-4, "freeze": ["encoder"]}. With `resume` an update goes on that was
    stopped while it trained.
    """
    target = _check_mode(output, mode, resume=resume)
    if is_finished(target, run_folder(target)):
        # Stopped after its model was complete: what is left to do is done again, over its own result.
        overwrite = overwrite or resume
        if not resume:
            remove_run(run_folder(target))
    inputs = [model, addition.source, *context.inputs]
    run_folders(target, inputs=inputs, resume=resume, overwrite=overwrite)
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
    extend(answerer, relation, context)
    recipe = with_relation(old, relation, addition, changes)
    found = Continued({}, {}, {})
    if mode == "zero" and addition.source is not None:
        # Not learnt from now, but by later updates: rows that cannot be read are better known at once.
        read_stages(jobs_of(_whole(_alone(recipe, relation)), context))
    if mode == "hot":
        own = _alone(recipe, relation)
        check_beside_inputs(target, sources_of(old))
        place = UpdatePlace(
            target, resume=resume, start=start_digests(Path(resolve(model))), precision=context.precision
        )
        found = train_on(
            answerer,
            relation,
            own,
            old,
            rehearse=rehearse,
            fixed=tuple(changes),
            context=context,
            place=place,
        )
    report = _keep(answerer, recipe, found, target, mode=mode, overwrite=overwrite)
    if mode == "hot":
        remove_run(run_folder(target))
    return report


@dataclass(frozen=True, slots=True)
class UpdatePlace:
    """Where the training of an update may be found again: beside its output, begun on a certain model."""

    target: Path
    resume: bool
    start: Mapping[str, str]
    precision: str

    @contextmanager
    def open(self, own: Recipe, rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[RunPlace, str]]:
        """Its run folder, locked, and the id of the run."""
        work = run_folder(self.target)
        mark = RunMark(own, rows, self.start, self.precision)
        with working_in(work, mark, resume=self.resume) as run:
            yield RunPlace(work, resume=self.resume, resumable=True), run


def _check_mode(output: str | Path, mode: str, *, resume: bool) -> Path:
    """The folder of the new model; a mode that there is not, or that has nothing to resume, is refused."""
    if mode not in MODES:
        raise UsageError(f"--mode {mode!r} is not one of {', '.join(MODES)}")
    if mode == "zero" and resume:
        raise UsageError("--mode zero trains nothing, so there is nothing to resume; leave --resume out")
    return Path(output)


def _recipe_of(answerer: Answerer, model: str | Path) -> Recipe:
    if "recipe" not in answerer.about:
        raise ModelError(
            f"{model} was not trained by likewise: there is nothing to update; train it first "
            "(likewise train RECIPE), or name labels to it (likewise classify --labels)"
        )
    path = Path(model) / DOCUMENT
    stage_reports(answerer.about, path)  # told again by the new model's card, after all the training
    return parse_recipe(dict(answerer.about["recipe"]), str(path))


def _new_relation(
    old: Recipe, addition: Addition, answerer: Answerer, model: str | Path, mode: Mode
) -> Relation:
    """What is added, as far as it can be checked before the model is touched."""
    stage = old.stage[-1]
    if any(known.name == addition.name for known in answerer.relations):
        raise UsageError(f"the model answers {addition.name!r} already; choose another --task NAME")
    relation = stage.new_relation(addition, str(model))
    stage.check_addition(addition, mode)
    return relation


def _refuse_to_lose(answerer: Answerer, old: Recipe) -> None:
    """Training again gives what the recipe has rows of, and nothing else."""
    trained = set(old.stage[-1].rates(old.relation))
    lost = [relation.name for relation in answerer.relations if relation.name not in trained]
    if lost:
        raise UsageError(
            f"{', '.join(lost)} was added without ratings, and --mode cold would lose it: use --mode hot, "
            "or update the model that was there before"
        )


def with_relation(
    old: Recipe, relation: Relation, addition: Addition, overrides: Mapping[str, Any]
) -> Recipe:
    """The recipe of all that is answered: the old one's data and the new rows, if any, in its last stage."""
    document = old.model_dump(mode="json")
    entry = {key: getattr(relation, key) for key in _RELATION_KEYS}
    if relation.kind == "classes":
        said = dict(zip(relation.labels, relation.label_texts, strict=True))
        entry = {"kind": relation.kind, "labels": list(relation.labels), "texts": said}
    document["relation"][relation.name] = entry
    document["stage"][-1] |= {**old.stage[-1].adding(addition, relation), **overrides}
    return parse_recipe(document, "update")


def _alone(recipe: Recipe, relation: Relation) -> Recipe:
    """The recipe of what was added alone."""
    return recipe.model_copy(update={"stage": (recipe.stage[-1].alone(relation),)})


def _whole(own: Recipe) -> Recipe:
    """The same rows, all of them: where nothing is learnt, none are split off and none filtered."""
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
    """Go on training with a relation that was added; `own` is its recipe, `old` that of the model.

    The old relations' dev rows are looked at too: what is forgotten counts when the epoch is chosen. Without
    a `place` nothing is left that could be gone on with.
    """
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
    context.tell(f"{len(fresh.rows.train):,} rows of {relation.name}, {len(again):,} rehearsed")
    score = runner.scorer(job, merged.dev)
    before = score(model)
    carried = Carried(stage.gives, lambda: model.encoder, lambda: model)
    recipe = own.model_copy(update={"stage": (stage,)})
    prints = [fresh.prints, known.prints, {"rehearsed": str(len(again))}]
    with _nowhere() if place is None else place.open(recipe, prints) as (found, run):
        report = runner.fit(job, replace(merged, prints=fresh.prints), carried, found)
    model.learning = ()
    return Continued(before, score(model), report, run)


def _read_known(old: Recipe, context: RunContext) -> StageData:
    """The rows that the model was trained on, which are measured before and after."""
    try:
        return read_stages(jobs_of(old, context))[-1]
    except DataError as error:
        raise DataError(
            "the data that the model was trained on is read again, to see what the update forgets, and that "
            f"failed ({error}); run the command where those files are"
        ) from error


@contextmanager
def _nowhere() -> Iterator[tuple[RunPlace, str]]:
    """A place that nobody finds again."""
    with scratch_folder() as run:
        yield RunPlace(run, resume=False, resumable=False), ""


def _rehearsed(rows: int, share: float, seed: int) -> list[int]:
    """Numbers of a sample of the old training rows."""
    return sorted(random.Random(seed).sample(range(rows), round(share * rows)))


def _rated_names(answerer: Answerer, rows: Sequence[Record]) -> tuple[str, ...]:
    """What of a model the rows say anything about: not what was added without rows."""
    names = [relation.name for relation in answerer.relations]
    return tuple(name for name in names if any(row.values.get(name) is not None for row in rows))


def _keep(
    answerer: Answerer, recipe: Recipe, found: Continued, target: Path, *, mode: Mode, overwrite: bool
) -> UpdateReport:
    """Write an updated model, with the recipe of all that it answers now."""
    from likewise.store import save_model

    about = {**answerer.about, "recipe": recipe.model_dump(mode="json"), "update": mode}
    about["run"] = found.run
    kept = ("recipe", "method", "name", "stages", "update", "run")
    save_model(
        answerer.model,
        target,
        about={key: value for key, value in about.items() if key in kept},
        overwrite=overwrite,
    )
    return UpdateReport(target, mode, found.before, found.after, answerer)


def dev_numbers(stages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The dev numbers of the epoch that was kept."""
    last = stages[-1]
    kept = [entry for entry in last["history"] if entry["step"] == last["best_step"]]
    return {name: value for name, value in (kept or [{}])[0].items() if name != "step"}
