"""The shape of a recipe file. Options are documented where they are defined: here and in a file per kind.

A recipe is TOML: an encoder, the relations, one or more stages, an evaluation. All problems are reported at
once, each with its path in one form, zero-based: `stage.0.learning_rate`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, field_validator, model_validator

from likewise.documents import FileName, Seed, validate
from likewise.schema.base import Stage, pick_stage
from likewise.schema.parts import EncoderSpec, Part, RelationSpec

# Each has a head, a column of answers and a line in every plan.
MAX_RELATIONS = 1_000

AnyStage = Annotated[SerializeAsAny[Stage], PlainValidator(pick_stage)]


class EvaluationSpec(Part):
    """What is measured at the end, by the cosine and, where a head answers, by the head."""

    suite: str = ""
    aggregation: Literal["all", "mean", "wmean"] = "all"


class Recipe(Part):
    """A whole recipe."""

    name: FileName
    method: str = "regression"
    description: str = ""
    seed: Seed = 1
    encoder: EncoderSpec = EncoderSpec()
    relation: dict[str, RelationSpec]
    hold_out: tuple[str, ...] = Field(
        default=(), description="languages left out of every stage's data, to see what is left of them"
    )
    stage: tuple[AnyStage, ...] = Field(min_length=1, max_length=100)
    evaluation: EvaluationSpec = EvaluationSpec()

    @model_validator(mode="before")
    @classmethod
    def _without_a_question(cls, data: Any) -> Any:
        """A recipe whose stages ask nothing of texts has no relation."""
        stages = data.get("stage") if isinstance(data, dict) else None
        silent = isinstance(stages, list | tuple) and not any(Stage.shape_of(one).asks for one in stages)
        return {"relation": {}, **data} if silent else data

    @model_validator(mode="before")
    @classmethod
    def _not_too_many_questions(cls, data: Any) -> Any:
        relations = data.get("relation") if isinstance(data, dict) else None
        if isinstance(relations, dict) and len(relations) > MAX_RELATIONS:
            found = f"relation: {len(relations):,} relations, at most {MAX_RELATIONS:,} are learnt at once"
            raise ValueError(f"{found}; name those that matter (--relation NAME:lo..hi)")
        return data

    @field_validator("encoder", mode="before")
    @classmethod
    def _encoder_by_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("stage")
    @classmethod
    def _known_relations(cls, stages: tuple[Stage, ...], info: Any) -> tuple[Stage, ...]:
        known = info.data.get("relation", {})
        for number, stage in enumerate(stages):
            for path, relation in stage.named():
                if known and relation not in known:
                    raise ValueError(f"stage.{number}.{path}: {relation!r} is not one of {', '.join(known)}")
        return stages

    @field_validator("stage")
    @classmethod
    def _fitting_the_encoder(cls, stages: tuple[Stage, ...], info: Any) -> tuple[Stage, ...]:
        encoder = info.data.get("encoder")
        for number, stage in enumerate(stages if encoder is not None else ()):
            for key, reason in stage.problems(encoder, first=number == 0):
                raise ValueError(f"stage.{number}.{key}: {reason}")
        return stages

    @field_validator("stage")
    @classmethod
    def _in_an_order_that_can_be_run(cls, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        for number, (former, stage) in enumerate(pairwise(stages), start=1):
            if former.gives not in stage.takes:
                raise ValueError(f"stage.{number}.kind: a stage of kind {stage.kind} {stage.place}")
        return stages

    @field_validator("stage")
    @classmethod
    def _something_asked(cls, stages: tuple[Stage, ...], info: Any) -> tuple[Stage, ...]:
        if not info.data.get("relation") and any(stage.asks for stage in stages):
            raise ValueError("relation: a recipe names what is asked of texts, [relation.NAME]")
        return stages


def parse_recipe(data: dict[str, Any], where: str) -> Recipe:
    """Validate a mapping; every problem at once, with its path."""
    return validate(Recipe, data, where)
