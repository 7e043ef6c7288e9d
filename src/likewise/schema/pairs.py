"""Kind `pairs`: rated pairs and one objective for each relation, trained together or in turn."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from likewise.data import count_rows
from likewise.data.own import OwnTable
from likewise.data.splits import FEWEST_TO_SPLIT
from likewise.documents import to_file_name
from likewise.errors import DataError, Problem, UsageError
from likewise.naming import RAW
from likewise.records import Relation
from likewise.schema.base import (
    HEAD_RATE,
    Addition,
    Adopted,
    TrainedStage,
    left_out,
    nothing_rated,
    own_entry,
    own_relations,
    unrated,
)
from likewise.schema.parts import MAX_WIDTH, EncoderSpec, Part, relation_table
from likewise.schema.shipped import shipped_document
from likewise.spelling import spelt, spelt_call, spelt_together

# With fewer rows than FEW, batches are small, and the epochs are enough for training to see about this many
# pairs.
FEW, _FEW_PAIRS_SEEN = 1000, 2500
MOST_EPOCHS = 20
_ENOUGH_FOR_A_TENTH, _MOST_FOR_DEV = 500, 0.25
_STAGE_KEYS = ("objective", "data", "dev", "filter_against", "name")
_DESCRIBED = "described"


class ObjectiveSpec(Part):
    """The head and the loss by which a stage learns one relation."""

    relation: str = Field(description="Relation that is learnt.")
    head: Literal["scalar", "distribution", "classes", "cosine", "contrast", "described"] = Field(
        default="cosine", description="Layers that turn the features of a pair into an answer."
    )
    loss: str = Field(default="mse", description="Loss, one of those that the head takes.")
    pairing: tuple[str, ...] = Field(
        default=("u", "v", "absdiff"),
        description="Pair features that the head sees: `u`, `v`, `absdiff`, `prod`, `cosine`, `euclid`.",
    )
    hidden: tuple[Annotated[int, Field(gt=0, le=MAX_WIDTH)], ...] = Field(
        default=(), description="Widths of hidden layers of the head; one layer may be given as a number."
    )
    activation: Literal["sigmoid", "tanh", "relu", "none"] = Field(
        default="sigmoid", description="Activation after each hidden layer."
    )
    scale_features: bool = Field(
        default=False,
        description="Divide each pair feature by its standard deviation, as measured before the first step.",
    )
    floor: float = Field(
        default=0.0,
        ge=-1,
        lt=1,
        description="Cosine that stands for the lowest rating (heads `cosine` and `contrast`): 0 or −1.",
    )
    weight: float = Field(
        default=1.0, ge=0, description="Factor on this loss before the losses of a step add up."
    )
    allow_blind: bool = Field(
        default=False,
        description="Allow, as an ablation, a linear head over features that cannot compare the two texts.",
    )
    within: Literal["data", "batch"] = Field(
        default="data",
        description="Let `pearson` and `cosent` compare pairs of the same data entry, or of the whole batch.",
    )
    k: float | None = Field(default=None, gt=0, description="Factor of `translated_relu` and `smooth_k2`.")
    x0: float | None = Field(
        default=None,
        ge=0,
        description="Error up to which `translated_relu` and `smooth_k2` are 0, in steps of the scale.",
    )
    boundary: Literal["safe", "paper-clamp", "code-mask", "none"] | None = Field(
        default=None,
        description="How `translated_relu` and `smooth_k2` treat predictions beyond the ends of the scale.",
    )
    temperature: float | None = Field(default=None, gt=0, description="Temperature of `infonce`.")
    scale: float | None = Field(default=None, gt=0, description="Factor on the cosines in `cosent`.")
    delta: float | None = Field(
        default=None, gt=0, description="Error up to which `huber` is quadratic; beyond it is linear."
    )
    positive: float | None = Field(
        default=None, description="Target cosine from which `infonce` counts a pair as a positive."
    )
    matcher: Literal["concat-mlp", "bilinear", "dot", "cosine", "interaction", "concat-linear"] = Field(
        default="concat-mlp",
        description="How a `described` head compares a pair with a description.",
    )

    @field_validator("hidden", mode="before")
    @classmethod
    def _one_layer_by_its_width(cls, value: Any) -> Any:
        return () if value == 0 else (value,) if isinstance(value, int) else value

    def options(self) -> dict[str, Any]:
        """The options of the loss that the recipe sets."""
        names = ("k", "x0", "boundary", "temperature", "scale", "delta", "positive")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class PairsStage(TrainedStage):
    """Rated pairs: the objectives and how a step combines them."""

    takes: ClassVar[frozenset[str]] = frozenset({"pairs", "frozen"})
    gives: ClassVar[str] = "pairs"
    place: ClassVar[str] = (
        "must come first or follow a stage of kind pairs, distil, parallel or refine; put it into a recipe "
        "of its own"
    )
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"objective"}
    # Its runner refuses a function with a message that names the kinds to use instead.
    takes_functions: ClassVar[bool] = True

    kind: Literal["pairs"] = "pairs"
    objective: tuple[ObjectiveSpec, ...] = Field(
        min_length=1, description="Objectives, each with a relation, a head and a loss."
    )
    optimiser: Literal["adamw", "sgd", "exact"] = Field(  # type: ignore[assignment]
        default="adamw",
        description=(
            "Algorithm that updates the weights; `exact` keeps the encoder and solves linear heads by ridge "
            "or logistic regression."
        ),
    )
    head_learning_rate: float | None = Field(default=None, gt=0, description=HEAD_RATE)
    select_source: Literal["cosine", "head"] | None = Field(
        default=None,
        description="The only source that may answer; by default, dev chooses among the sources.",
    )
    select_metric: str = Field(
        default="", description="Metric that selects on dev, by default the metric of each relation."
    )
    schedule: Literal["single", "multi-label", "multi-task"] = Field(
        default="multi-label",
        description=(
            "Relations of a step: the only one there is, all of them, or one after another on the same batch "
            "(`multi-task`, with `accumulation = 1`)."
        ),
    )
    shuffle_relations: bool = Field(
        default=False, description="With `multi-task`, take the relations of a batch in random order."
    )
    weighting: Literal["sum", "mean", "uncertainty"] = Field(
        default="sum",
        description="How the losses of a step add up; `uncertainty` learns a weight for each objective.",
    )
    anchor: float = Field(
        default=0.0,
        ge=0,
        description=(
            "Weight of a loss that keeps the cosines of unrated pairs of a batch where they were before the "
            "stage."
        ),
    )

    def named(self) -> Iterator[tuple[str, str]]:
        """The relation of each objective."""
        for place, objective in enumerate(self.objective):
            yield f"objective.{place}.relation", objective.relation

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The relations of its objectives, each once."""
        return tuple(dict.fromkeys(objective.relation for objective in self.objective))

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """Some of its objectives; a stage that has none of them is pre-training and stays as it is."""
        if not any(one.relation in names for one in self.objective):
            return self
        kept = tuple(o for o in self.objective if o.relation in names or o.relation not in learnt)
        if len(kept) > 1:
            return self.model_copy(update={"objective": kept})
        # A weight is relative to the other objectives; alone it would only rescale the loss.
        alone = kept[0].model_copy(update={"weight": 1.0})
        return self.model_copy(update={"objective": (alone,), "schedule": "single"})

    def own_texts(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        """The descriptions that heads read."""
        for objective in self.objective:
            if objective.head == _DESCRIBED:
                yield relations[objective.relation].description

    def problems(self, encoder: EncoderSpec, *, first: bool) -> Iterator[tuple[str, str]]:
        """An anchor on a BiLSTM that starts untrained would keep cosines without meaning."""
        if first and self.anchor and encoder.kind == "bilstm":
            found = f"is {self.anchor:g}, but encoder kind 'bilstm' starts untrained"
            yield "anchor", f"{found}, and its cosines are not worth keeping; set anchor to 0"

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Rated pairs: objectives of the same name stay, others are copied from one of the same kind."""
        if len(table.texts) != 2:
            return f"it learns from pairs, but {table.name} has one text column, {table.texts[0]!r}"
        relations = own_relations(table, known, ("graded", "ordered", "classes"))
        if not relations:
            return unrated(table, "ratings of pairs")
        kinds = {name: spec.get("kind", "graded") for name, spec in known.items()}
        alone = len(relations) == 1
        objectives = [self._objective_for(name, spec, kinds, alone) for name, spec in relations.items()]
        told = left_out(table, relations, [name for name in self.rates(()) if name not in relations])
        changed = {"data": [own_entry(table)], "dev": [], "filter_against": [], "objective": objectives}
        return Adopted(changed, relations, told)

    def _objective_for(
        self, name: str, spec: Mapping[str, Any], kinds: Mapping[str, str], alone: bool
    ) -> dict[str, Any]:
        """The objective for a relation, after the model of the recipe's own objectives.

        Two vectors have one cosine, which cannot answer two relations, so each of several gets a head.
        """
        said = [objective.model_dump(mode="json", exclude_unset=True) for objective in self.objective]
        for objective in said:
            if objective["relation"] == name:
                return objective
        kind = spec.get("kind", "graded")
        for objective in said:
            cosine = objective.get("head", "cosine") in ("cosine", "contrast")
            if kinds.get(objective["relation"]) == kind and (alone or not cosine):
                return {**objective, "relation": name}
        return head_of(name, kind)

    @classmethod
    def infer(cls, table: OwnTable) -> dict[str, Any] | str:
        """One graded relation is learnt as in recipe `similarity`; several, or classes, get a head each."""
        if len(table.texts) != 2:
            raise DataError([_only_one_text(table)])
        if not table.relations:
            raise DataError([nothing_rated(table)])
        alone = len(table.relations) == 1 and table.relations[0].kind == "graded"
        shipped = shipped_document("similarity" if alone else "relations-activity")["stage"][0]
        settings = {key: value for key, value in shipped.items() if key not in _STAGE_KEYS}
        if table.rated is not None:
            settings |= settings_for_few(table.rated) | dev_share_for_few(table.rated)
        objectives = [head_of(relation.name, relation.kind) for relation in table.relations]
        if alone:
            objectives = [{**one, "relation": table.relations[0].name} for one in shipped["objective"]]
        stage = {"name": "pairs", "data": [own_entry(table)], **settings, "objective": objectives}
        return {
            "name": to_file_name(Path(table.name).name.partition(".")[0], "pairs"),
            "method": "regression" if alone else "relations",
            "encoder": {"name": RAW, "normalise": alone},
            "relation": {relation.name: relation_table(relation) for relation in table.relations},
            "stage": [stage],
        }

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """A relation with a description and a scale."""
        if addition.labels is not None or addition.text is not None:
            raise UsageError(
                f"{model} answers pairs, so a new relation needs a description and a scale, not labels. Give "
                f"{spelt('describe', '…')} and {spelt('scale', '…')}."
            )
        if not self.extendable():
            raise UsageError(
                f"{model} has one head per relation and none that reads descriptions, so it cannot learn "
                f'{addition.name!r} later. Train a model with head = "described" (recipe '
                "relations-described) and add the relation to that one."
            )
        if not (addition.describe or "").strip():
            raise UsageError(
                f"{addition.name} has no description, which is all that the model reads of it. Give the "
                f"question in words: {spelt('describe', 'QUESTION')}."
            )
        scale = addition.scale or ""
        if ".." not in scale and "<" not in scale:
            found = f"{spelt('scale')} {scale!r} is not a scale" if scale else f"{addition.name} has no scale"
            ways = f"{spelt('scale', 'lo..hi')}, such as 0..4, or {spelt('scale', 'low<middle<high')}"
            raise UsageError(f"{found}. Give {ways}.")
        relation = Relation.parse(f"{addition.name}:{scale}")
        return replace(relation, description=str(addition.describe).strip())

    def extendable(self) -> bool:
        """True if a head reads descriptions."""
        return any(one.head == _DESCRIBED for one in self.objective)

    def check_addition(self, addition: Addition, mode: str) -> None:
        """Raise an error for rows that a mode does not use, and for a mode without the rows it needs."""
        if mode == "zero" and addition.source is not None:
            raise UsageError(
                f"{spelt('mode', 'zero')} trains on no data, but {addition.source} is given. Leave it out, "
                f"or use {spelt('mode', 'hot')}."
            )
        if mode != "zero" and addition.source is None:
            raise UsageError(
                f"{spelt('mode', mode)} trains on rated pairs, but no file is given. Name a file of rated "
                f"pairs, or use {spelt('mode', 'zero')}."
            )
        rows = None if addition.source is None else count_rows(addition.source)
        if mode == "hot" and rows is not None and 0 < rows < FEWEST_TO_SPLIT:
            found = f"has {rows} rated pairs, but a part of them becomes the dev set, which takes"
            found = f"{found} {FEWEST_TO_SPLIT} or more"
            remedy = f"add rated pairs, or use {spelt('mode', 'zero')}"
            raise DataError([Problem(str(addition.source), found, remedy)])

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """One more objective for the head that reads descriptions, and its pairs if there are any."""
        if addition.source is None:
            return {}
        stage = self.model_dump(mode="json")
        template = next(one for one in stage["objective"] if one["head"] == _DESCRIBED)
        entry = {
            "source": addition.source,
            "text_a": addition.text_a,
            "text_b": addition.text_b,
            "columns": {relation.name: addition.column or relation.name},
        }
        return {
            "objective": [*stage["objective"], {**template, "relation": relation.name, "weight": 1.0}],
            "data": [*stage["data"], entry],
            "schedule": "multi-label" if self.schedule == "single" else self.schedule,
        }

    def alone(self, relation: Relation) -> Self:
        """Only the new relation's pairs, with a split-off dev set; the leak filter stays."""
        mine = tuple(one for one in self.objective if one.relation == relation.name)
        return self.model_copy(update={"data": self.data[-1:], "dev": (), "objective": mine})


def dev_share_for_few(rows: int) -> dict[str, float]:
    """A larger share of few rows for dev: one row in ten of 300 is too few to choose or to judge a model."""
    if rows >= _ENOUGH_FOR_A_TENTH:
        return {}
    return {"dev_share": round(min(_MOST_FOR_DEV, _ENOUGH_FOR_A_TENTH / 10 / max(1, rows)), 2)}


def settings_for_few(rows: int) -> dict[str, Any]:
    """Batch size and epochs for a small table, which has only a few steps with those of the recipes."""
    if rows >= FEW:
        return {}
    return {"batch_size": 16, "epochs": min(MOST_EPOCHS, max(4, math.ceil(_FEW_PAIRS_SEEN / max(1, rows))))}


def head_of(name: str, kind: str) -> dict[str, Any]:
    """Head and loss of the shipped recipes, with the cosine as a feature, which helps most with few rows.

    A label may depend on the order of the texts, so its head sees both of them.
    """
    if kind == "classes":
        pairing = ["u", "v", "absdiff", "prod", "cosine"]
        made: dict[str, Any] = {"head": "classes", "loss": "cross_entropy", "pairing": pairing}
    else:
        made = {"head": "distribution", "loss": "kl_grid", "pairing": ["prod", "absdiff", "cosine"]}
    return {"relation": name, **made, "scale_features": True}


def _only_one_text(table: OwnTable) -> Problem:
    labelled = spelt_call("train", table.name, text=table.texts[0], label="COLUMN")
    remedy = (
        f"name both columns with {spelt_together(text_a='NAME', text_b='NAME')}. To learn labels of single "
        f"texts, run {labelled}; to learn ratings of single texts, "
        f"{spelt_call('train', 'finetune', data=table.name)}"
    )
    found = f"has one column of texts, {table.texts[0]!r}, but pairs need two"
    return Problem(table.name, found, remedy)
