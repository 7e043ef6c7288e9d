"""Kind `pairs`: rated pairs, one head for each relation, trained together or in turns."""

from __future__ import annotations

import math
import shlex
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
from likewise.records import Relation
from likewise.schema.base import (
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

# Below so many rows batches are small and epochs many, until about so many pairs were seen.
FEW, _FEW_PAIRS_SEEN = 1000, 2500
MOST_EPOCHS = 20
_STAGE_KEYS = ("objective", "data", "dev", "filter_against", "name")
_DESCRIBED = "described"


class ObjectiveSpec(Part):
    """What is learnt about one relation."""

    relation: str
    head: Literal["scalar", "distribution", "classes", "cosine", "contrast", "described"] = "cosine"
    loss: str = "mse"
    pairing: tuple[str, ...] = ("u", "v", "absdiff")
    hidden: tuple[Annotated[int, Field(gt=0, le=MAX_WIDTH)], ...] = Field(
        default=(), description="widths of hidden layers: 50 is Tai's head; [512, 512]"
    )
    activation: Literal["sigmoid", "tanh", "relu", "none"] = "sigmoid"
    scale_features: bool = Field(
        default=False, description="the head sees features in units of their spread before training"
    )
    floor: float = Field(
        default=0.0, ge=-1, lt=1, description="cosine that the lowest rating maps to: 0 or −1"
    )
    weight: float = Field(default=1.0, ge=0)
    allow_blind: bool = False
    within: Literal["data", "batch"] = Field(
        default="data",
        description="losses that compare pairs do so within each data entry, or over the whole batch",
    )
    k: float | None = Field(default=None, gt=0)
    x0: float | None = Field(default=None, ge=0)
    boundary: Literal["safe", "paper-clamp", "code-mask", "none"] | None = None
    temperature: float | None = Field(default=None, gt=0)
    scale: float | None = Field(default=None, gt=0)
    delta: float | None = Field(default=None, gt=0)
    positive: float | None = None
    matcher: Literal["concat-mlp", "bilinear", "dot", "cosine", "interaction", "concat-linear"] = Field(
        default="concat-mlp", description="described: how pair and description meet; all of them share one"
    )

    @field_validator("hidden", mode="before")
    @classmethod
    def _one_layer_by_its_width(cls, value: Any) -> Any:
        return () if value == 0 else (value,) if isinstance(value, int) else value

    def options(self) -> dict[str, Any]:
        """The loss's own options that were given."""
        names = ("k", "x0", "boundary", "temperature", "scale", "delta", "positive")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class PairsStage(TrainedStage):
    """Rated pairs: objectives, and how they meet in a step."""

    takes: ClassVar[frozenset[str]] = frozenset({"pairs", "frozen"})
    gives: ClassVar[str] = "pairs"
    place: ClassVar[str] = (
        "trains the encoder on rated pairs and follows only stages of pairs or of a frozen encoder"
    )
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"objective"}
    # Its runner refuses a function, and says which kinds to take instead.
    takes_functions: ClassVar[bool] = True

    kind: Literal["pairs"] = "pairs"
    objective: tuple[ObjectiveSpec, ...] = Field(min_length=1)
    optimiser: Literal["adamw", "sgd", "exact"] = Field(  # type: ignore[assignment]
        default="adamw", description="exact: the encoder stays, linear heads are solved (ridge, logistic)"
    )
    head_learning_rate: float | None = Field(
        default=None, gt=0, description="of the heads; learning_rate if empty"
    )
    select_source: Literal["cosine", "head"] | None = Field(default=None, description="score source on dev")
    select_metric: str = Field(
        default="", description="spearman, pearson, accuracy, …; the relation's own if empty"
    )
    schedule: Literal["single", "multi-label", "multi-task"] = "multi-label"
    shuffle_relations: bool = Field(
        default=False, description="multi-task: relations in random order per batch"
    )
    weighting: Literal["sum", "mean", "uncertainty"] = Field(
        default="sum", description="how the losses of a step add up; uncertainty learns a weight for each"
    )
    anchor: float = Field(
        default=0.0,
        ge=0,
        description="weight that holds unrated cosines of a batch where the starting encoder had them",
    )

    def named(self) -> Iterator[tuple[str, str]]:
        """The relation of each objective."""
        for place, objective in enumerate(self.objective):
            yield f"objective.{place}.relation", objective.relation

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The relations of its objectives, each once."""
        return tuple(dict.fromkeys(objective.relation for objective in self.objective))

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """Some of its objectives; a stage without any of them is pre-training and stays."""
        if not any(one.relation in names for one in self.objective):
            return self
        kept = tuple(o for o in self.objective if o.relation in names or o.relation not in learnt)
        if len(kept) > 1:
            return self.model_copy(update={"objective": kept})
        # A weight is a share against the others; alone it would only rescale the loss.
        alone = kept[0].model_copy(update={"weight": 1.0})
        return self.model_copy(update={"objective": (alone,), "schedule": "single"})

    def own_texts(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        """The descriptions that heads read."""
        for objective in self.objective:
            if objective.head == _DESCRIBED:
                yield relations[objective.relation].description

    def problems(self, encoder: EncoderSpec, *, first: bool) -> Iterator[tuple[str, str]]:
        """An anchor needs an encoder that knows something."""
        if first and self.anchor and encoder.kind == "bilstm":
            yield "anchor", "it would hold the cosines of an untrained encoder; set it to 0"

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Rated pairs: objectives of the same name stay, others are copied from one of the same kind."""
        if len(table.texts) != 2:
            return f"it learns from pairs, and {table.name} has one text column, {table.texts[0]!r}"
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
        """The objective that learns a relation as this recipe learns its own.

        Two relations cannot both be the one cosine of two vectors: each of several gets a head.
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
        """One graded relation is learnt as by recipe `similarity`; several, or classes, get a head each."""
        if len(table.texts) != 2:
            raise DataError([_only_one_text(table)])
        if not table.relations:
            raise DataError([nothing_rated(table)])
        alone = len(table.relations) == 1 and table.relations[0].kind == "graded"
        shipped = shipped_document("similarity" if alone else "relations-activity")["stage"][0]
        settings = {key: value for key, value in shipped.items() if key not in _STAGE_KEYS}
        if table.rated is not None:
            settings |= settings_for_few(table.rated)
        objectives = [head_of(relation.name, relation.kind) for relation in table.relations]
        if alone:
            objectives = [{**one, "relation": table.relations[0].name} for one in shipped["objective"]]
        stage = {"name": "pairs", "data": [own_entry(table)], **settings, "objective": objectives}
        return {
            "name": to_file_name(Path(table.name).name.partition(".")[0], "pairs"),
            "method": "regression" if alone else "relations",
            "encoder": {"name": "default", "normalise": alone},
            "relation": {relation.name: relation_table(relation) for relation in table.relations},
            "stage": [stage],
        }

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """A relation that is said in words, on a scale."""
        if addition.labels is not None or addition.text is not None:
            raise UsageError(
                f"{model} answers pairs: describe the relation (--describe, --scale), not labels"
            )
        if not self.extendable():
            raise UsageError(
                f"{model} has one head per relation and none that reads descriptions: train it with "
                'head = "described" (recipe relations-described), then add relations'
            )
        if not (addition.describe or "").strip():
            raise UsageError(f'say in words what {addition.name} asks: --describe "…"')
        scale = addition.scale or ""
        if ".." not in scale and "<" not in scale:
            found = f"--scale {scale!r} is no scale" if scale else f"{addition.name} has no scale"
            raise UsageError(f"{found}: give --scale lo..hi, such as 0..4, or --scale 'low<middle<high'")
        relation = Relation.parse(f"{addition.name}:{scale}")
        return replace(relation, description=str(addition.describe).strip())

    def extendable(self) -> bool:
        """If a head reads what a relation asks."""
        return any(one.head == _DESCRIBED for one in self.objective)

    def check_addition(self, addition: Addition, mode: str) -> None:
        """Refuse rows that a mode does not need, and modes that lack them."""
        if mode == "zero" and addition.source is not None:
            raise UsageError(f"--mode zero trains on nothing: leave {addition.source} out, or use --mode hot")
        if mode != "zero" and addition.source is None:
            raise UsageError(f"--mode {mode} trains on rated pairs: name a file of them, or use --mode zero")
        rows = None if addition.source is None else count_rows(addition.source)
        if mode == "hot" and rows is not None and 0 < rows < FEWEST_TO_SPLIT:
            found = f"{rows} rated pairs are too few to train on some and look at others"
            remedy = f"give {FEWEST_TO_SPLIT} or more, or use --mode zero"
            raise DataError([Problem(str(addition.source), found, remedy)])

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """One more objective of the head that reads descriptions, and its pairs if there are any."""
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
        """The new relation's own pairs, dev split off; what is filtered stays filtered."""
        mine = tuple(one for one in self.objective if one.relation == relation.name)
        return self.model_copy(update={"data": self.data[-1:], "dev": (), "objective": mine})


def settings_for_few(rows: int) -> dict[str, Any]:
    """Batch size and epochs of a small table: in the shipped ones it would be a handful of steps."""
    if rows >= FEW:
        return {}
    return {"batch_size": 16, "epochs": min(MOST_EPOCHS, max(4, math.ceil(_FEW_PAIRS_SEEN / max(1, rows))))}


def head_of(name: str, kind: str) -> dict[str, Any]:
    """Head and loss as in the shipped recipes, and the cosine: with few rows it is most of what is known.

    A label may depend on which text comes first, so its head sees both.
    """
    if kind == "classes":
        pairing = ["u", "v", "absdiff", "prod", "cosine"]
        made: dict[str, Any] = {"head": "classes", "loss": "cross_entropy", "pairing": pairing}
    else:
        made = {"head": "distribution", "loss": "kl_grid", "pairing": ["prod", "absdiff", "cosine"]}
    return {"relation": name, **made, "scale_features": True}


def _only_one_text(table: OwnTable) -> Problem:
    remedy = (
        "for pairs name both: --text-a NAME --text-b NAME; single texts are learnt by "
        f"likewise train finetune --data {shlex.quote(table.name)}"
    )
    return Problem(table.name, f"only {table.texts[0]!r} is known to hold texts", remedy)
