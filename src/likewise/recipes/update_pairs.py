"""A relation is added to a trained model of pairs whose head reads descriptions (`methods.described`).

zero   the relation is described, no parameter changes
hot    training goes on with its rated pairs, and a share of the old ones if they are to be rehearsed
cold   all relations are trained again, from the start of the recipe
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from likewise.data import count_rows
from likewise.data.splits import FEWEST_TO_SPLIT
from likewise.encoders.vocabulary import find_vocabulary
from likewise.errors import DataError, ModelError, Problem, UsageError
from likewise.methods.described import DESCRIBED
from likewise.methods.pairs import Objective
from likewise.predict import load
from likewise.recipes.context import RunContext
from likewise.recipes.devscore import dev_scorer
from likewise.recipes.infer import settings_for_few
from likewise.recipes.run import run_recipe
from likewise.recipes.schema import Recipe, parse_recipe
from likewise.recipes.stages import load_stages
from likewise.recipes.starting import pair_stages
from likewise.recipes.update import (
    Mode,
    Trained,
    UpdateReport,
    check_update,
    dev_numbers,
    go_on,
    keep_updated,
)
from likewise.records import Relation


@dataclass(frozen=True, slots=True)
class NewRelation:
    """What is added: its name, what it asks in words, its scale, and its rated pairs if there are any.

    The scale is `lo..hi`, or labels from lowest to highest, `no<maybe<yes`. Ratings stand in the column of
    its name, unless `column` says another.
    """

    name: str
    description: str
    scale: str
    source: str | None = None
    text_a: str | None = None
    text_b: str | None = None
    column: str | None = None

    def relation(self) -> Relation:
        """The relation, checked."""
        if not self.description.strip():
            raise UsageError(f'say in words what {self.name} asks: --describe "…"')
        if ".." not in self.scale and "<" not in self.scale:
            found = f"--scale {self.scale!r} is no scale" if self.scale else f"{self.name} has no scale"
            raise UsageError(f"{found}: give --scale lo..hi, such as 0..4, or --scale 'low<middle<high'")
        return replace(Relation.parse(f"{self.name}:{self.scale}"), description=self.description.strip())


def add_relation(
    model: str | Path,
    added: NewRelation,
    output: str | Path,
    *,
    mode: Mode,
    context: RunContext,
    rehearse: float = 0.0,
    overrides: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> UpdateReport:
    """Add a relation to a model and write the new model; the old folder stays as it is.

    `rehearse` is the share of the old training pairs that are shown again (hot); `overrides` are paths of the
    stage: {"learning_rate": 1e-4, "freeze": ["encoder"]}.
    """
    target = check_update(output, mode, overwrite=overwrite)
    predictor = load(model, device=context.device, precision=context.precision)
    old = _recipe_of(predictor, model)
    template = _reading_objective(predictor, model)
    relation = _checked(added, predictor, mode)
    _check_words(relation, predictor, context)
    recipe = _with_relation(old, relation, added, overrides or {})
    if mode == "cold":
        _refuse_to_lose(predictor, old)
        anew = run_recipe(recipe, target, context=context, overwrite=overwrite)
        return UpdateReport(target, mode, {}, dev_numbers(anew.stages), anew.predictor)
    describe_relation(predictor, replace(template, relation=relation, weight=1.0))
    found = Trained({}, {}, {})
    if mode == "hot":
        own = _alone(recipe, relation)
        found = train_on_pairs(
            predictor, own, old, rehearse=rehearse, fixed=tuple(overrides or {}), context=context
        )
    return keep_updated(predictor, recipe, found, target, mode=mode, overwrite=overwrite)


def describe_relation(predictor: Any, objective: Objective) -> None:
    """Let a model answer a relation by its description; no parameter changes."""
    predictor.model.set_objectives([*predictor.model.objectives, objective])
    predictor.model.eval()


def train_on_pairs(
    predictor: Any,
    own: Recipe,
    old: Recipe,
    *,
    rehearse: float,
    context: RunContext,
    fixed: Collection[str] = (),
) -> Trained:
    """Go on training with a relation that was described; `own` is its recipe, `old` that of the model.

    The old relations' dev pairs are looked at too: what is forgotten counts when the epoch is chosen. Few
    pairs get smaller batches and more epochs, but for the keys in `fixed`.
    """
    [(_, stage)] = pair_stages(own)
    known = load_stages(old, context=context)[-1]
    [fresh] = load_stages(own, context=context)
    few = settings_for_few(len(fresh.train) + round(rehearse * len(known.train)))
    stage = stage.model_copy(update={key: value for key, value in few.items() if key not in fixed})
    context.tell(f"{stage.epochs:g} epochs in batches of {stage.batch_size}")
    score = dev_scorer(stage, (*known.dev, *fresh.dev), precision=context.precision)
    return go_on(
        predictor.model,
        stage.objective[0].relation,
        stage,
        fresh,
        known,
        score=score,
        seed=own.seed,
        rehearse=rehearse,
        context=context,
    )


def _recipe_of(predictor: Any, model: str | Path) -> Recipe:
    if "recipe" not in predictor.about:
        raise ModelError(
            f"{model} was not trained by likewise: there is nothing to update; "
            "train it first (likewise train relations-described)"
        )
    return parse_recipe(dict(predictor.about["recipe"]), f"{model}/likewise/model.json")


def _reading_objective(predictor: Any, model: str | Path) -> Objective:
    for objective in predictor.model.objectives:
        if objective.head == DESCRIBED:
            found: Objective = objective
            return found
    raise UsageError(
        f"{model} has one head per relation and none that reads descriptions: train it with "
        'head = "described" (recipe relations-described), then add relations'
    )


def _checked(added: NewRelation, predictor: Any, mode: Mode) -> Relation:
    if any(known.name == added.name for known in predictor.relations):
        raise UsageError(f"the model has a relation {added.name!r} already; choose another --task NAME")
    relation = added.relation()
    if mode == "zero" and added.source is not None:
        raise UsageError(f"--mode zero trains on nothing: leave {added.source} out, or use --mode hot")
    if mode != "zero" and added.source is None:
        raise UsageError(f"--mode {mode} trains on rated pairs: name a file of them, or use --mode zero")
    rows = None if added.source is None else count_rows(added.source)
    if mode == "hot" and rows is not None and 0 < rows < FEWEST_TO_SPLIT:
        found = f"{rows} rated pairs are too few to train on some and look at others"
        raise DataError(
            [Problem(str(added.source), found, f"give {FEWEST_TO_SPLIT} or more, or use --mode zero")]
        )
    return relation


def _check_words(relation: Relation, predictor: Any, context: RunContext) -> None:
    """Refuse a description that the encoder cannot read; name the words it does not know."""
    vocabulary = find_vocabulary(predictor.model.encoder)
    reading = None if vocabulary is None else vocabulary.read(relation.description)
    if reading is None or not reading.unknown:
        return
    words = ", ".join(dict.fromkeys(reading.unknown))
    if reading.says_nothing:
        raise UsageError(f"the encoder knows no word of --describe ({words}): say it in other words")
    context.tell(f"{relation.name}: the description has words that the encoder does not know: {words}")


def _refuse_to_lose(predictor: Any, old: Recipe) -> None:
    """Training again gives what the recipe has ratings of, and nothing else."""
    trained = {objective.relation for _, stage in pair_stages(old)[-1:] for objective in stage.objective}
    lost = [relation.name for relation in predictor.relations if relation.name not in trained]
    if lost:
        raise UsageError(
            f"{', '.join(lost)} was added without ratings, and --mode cold would lose it: use --mode hot, "
            "or update the model that was there before"
        )


def _with_relation(
    old: Recipe, relation: Relation, added: NewRelation, overrides: Mapping[str, Any]
) -> Recipe:
    """The recipe of all relations: the old one's data and the new pairs, if any, in its last stage."""
    document = old.model_dump(mode="json")
    keys = ("kind", "lo", "hi", "step", "labels", "positions", "description")
    document["relation"][relation.name] = {key: getattr(relation, key) for key in keys}
    stage = document["stage"][-1]
    if added.source is not None:
        template = next(objective for objective in stage["objective"] if objective["head"] == DESCRIBED)
        stage["objective"] = [*stage["objective"], {**template, "relation": relation.name, "weight": 1.0}]
        columns = {relation.name: added.column or relation.name}
        texts = {"text_a": added.text_a, "text_b": added.text_b}
        stage["data"] = [*stage["data"], {"source": added.source, **texts, "columns": columns}]
        stage["schedule"] = "multi-label" if stage["schedule"] == "single" else stage["schedule"]
    stage |= overrides
    return parse_recipe(document, "update")


def _alone(recipe: Recipe, relation: Relation) -> Recipe:
    """The new relation's own pairs, dev split off; what is filtered stays filtered."""
    _, stage = pair_stages(recipe)[-1]
    mine = tuple(objective for objective in stage.objective if objective.relation == relation.name)
    own = stage.model_copy(update={"data": stage.data[-1:], "dev": (), "objective": mine})
    return recipe.model_copy(update={"stage": (own,)})
