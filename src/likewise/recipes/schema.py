"""The shape of a recipe file. Options are documented where they are defined: here and in `schema_parts`,
`schema_stages`.

A recipe is TOML: an encoder, the relations, one or more stages, an evaluation. All problems are reported at
once, each with its path in one form, zero-based: `stage.0.learning_rate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from likewise.documents import validate
from likewise.recipes.schema_parts import EncoderSpec, Part, RelationSpec
from likewise.recipes.schema_stages import (
    AnyStage,
    JointStageSpec,
    LabelStageSpec,
    RefineStageSpec,
    StageSpec,
)


class EvaluationSpec(Part):
    """What is measured at the end, by the cosine and, where a head answers, by the head."""

    suite: str = ""
    aggregation: Literal["all", "mean", "wmean"] = "all"


class Recipe(Part):
    """A whole recipe."""

    name: str
    method: str = "regression"
    description: str = ""
    seed: int = Field(default=1, ge=0)
    encoder: EncoderSpec = EncoderSpec()
    relation: dict[str, RelationSpec]
    hold_out: tuple[str, ...] = Field(
        default=(), description="languages left out of every stage's data, to see what is left of them"
    )
    stage: tuple[AnyStage, ...] = Field(min_length=1)
    evaluation: EvaluationSpec = EvaluationSpec()

    @model_validator(mode="before")
    @classmethod
    def _phrases_ask_nothing(cls, data: Any) -> Any:
        """A recipe that only teaches phrases has no relation."""
        stages = data.get("stage") if isinstance(data, dict) else None
        kinds = (
            {one.get("kind") for one in stages if isinstance(one, dict)} if isinstance(stages, list) else ()
        )
        return {"relation": {}, **data} if kinds == {"inject"} else data

    @field_validator("encoder", mode="before")
    @classmethod
    def _encoder_by_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("stage")
    @classmethod
    def _known_relations(cls, stages: tuple[AnyStage, ...], info: Any) -> tuple[AnyStage, ...]:
        known = info.data.get("relation", {})
        for path, relation in _relations_of(stages):
            if known and relation not in known:
                raise ValueError(f"{path}.relation: {relation!r} is not one of {', '.join(known)}")
        return stages

    @field_validator("stage")
    @classmethod
    def _anchored_to_something(cls, stages: tuple[AnyStage, ...], info: Any) -> tuple[AnyStage, ...]:
        encoder, first = info.data.get("encoder"), stages[0]
        if encoder is not None and encoder.kind == "bilstm" and isinstance(first, StageSpec) and first.anchor:
            raise ValueError("stage.0.anchor: it would hold the cosines of an untrained encoder; set it to 0")
        return stages

    @field_validator("stage")
    @classmethod
    def _kinds_that_stand_alone(cls, stages: tuple[AnyStage, ...]) -> tuple[AnyStage, ...]:
        kinds = [stage.kind for stage in stages]
        if "labels" in kinds and len(set(kinds)) > 1:
            raise ValueError("stages of kind labels stand alone: train the encoder by another recipe first")
        for kind in ("joint", "inject"):
            if kind in kinds and len(kinds) > 1:
                raise ValueError(
                    f"a stage of kind {kind} stands alone: its model is the encoder of another recipe"
                )
        return stages

    @field_validator("stage")
    @classmethod
    def _something_asked(cls, stages: tuple[AnyStage, ...], info: Any) -> tuple[AnyStage, ...]:
        if not info.data.get("relation") and any(stage.kind != "inject" for stage in stages):
            raise ValueError("relation: a recipe names what is asked of texts, [relation.NAME]")
        return stages

    @field_validator("stage")
    @classmethod
    def _frozen_stages_first(cls, stages: tuple[AnyStage, ...]) -> tuple[AnyStage, ...]:
        kinds = [stage.kind for stage in stages]
        for number, kind in enumerate(kinds):
            if kind in ("parallel", "refine") and "pairs" in kinds[:number]:
                raise ValueError(
                    f"stage.{number}.kind: {kind} learns on vectors of a frozen encoder and "
                    "cannot follow a stage that trains the encoder"
                )
        return stages


def _relations_of(stages: tuple[AnyStage, ...]) -> Iterator[tuple[str, str]]:
    """Every relation that a stage names, with its path."""
    for number, stage in enumerate(stages):
        if isinstance(stage, StageSpec):
            for place, objective in enumerate(stage.objective):
                yield f"stage.{number}.objective.{place}", objective.relation
        elif isinstance(stage, RefineStageSpec | JointStageSpec) and stage.relation:
            yield f"stage.{number}", stage.relation
        elif isinstance(stage, LabelStageSpec):
            for task in (*stage.task, *stage.weights):
                yield f"stage.{number}.task", task


def parse_recipe(data: dict[str, Any], where: str) -> Recipe:
    """Validate a mapping; every problem at once, with its path."""
    return validate(Recipe, data, where)
