"""The shape of a recipe file: an encoder, relations, one or more stages and an evaluation, in TOML.

Every key has a description where it is defined, from which the tables of docs/recipes.md are made. All
problems of a recipe are reported at once, each with its zero-based path: `stage.0.learning_rate`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    PlainValidator,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from likewise.documents import FileName, Seed, validate
from likewise.schema.base import Stage, pick_stage
from likewise.schema.parts import EncoderSpec, Part, RelationSpec
from likewise.spelling import spelt

# Each has a head, a column of answers and a line in every plan.
MAX_RELATIONS = 1_000
# No weight matrix of a text encoder has a larger one.
MAX_RANK = 65_536

AnyStage = Annotated[SerializeAsAny[Stage], PlainValidator(pick_stage)]


class EvaluationSpec(Part):
    """What is measured after training, by the source that answers and by the one that the suite names."""

    suite: str = Field(
        default="", description="Suite that is measured after training, by name or file; none if empty."
    )
    aggregation: Literal["all", "mean", "wmean"] = Field(
        default="all",
        description="How subsets of a task are combined: pooled, as a mean, or as a mean weighted by size.",
    )


class UpdateSpec(Part):
    """A limit on the rank of the change of the encoder's weights."""

    rank: int = Field(gt=0, le=MAX_RANK, description="Largest rank of the change of a weight matrix.")
    by: Literal["cut", "training"] = Field(
        default="cut",
        description=(
            "How the rank is reached: the change is cut after the last stage (`cut`), or only adapters of "
            "this rank are trained (`training`, which needs `likewise[lora]`)."
        ),
    )
    alpha: float | None = Field(
        default=None,
        gt=0,
        description="Factor of adapters, which is divided by the rank; by default the rank itself.",
    )

    @model_validator(mode="after")
    def _alpha_of_adapters(self) -> Self:
        if self.alpha is not None and self.by != "training":
            found = f'is {self.alpha:g}, but only by = "training" has adapters, not by = "{self.by}"'
            raise ValueError(f"alpha: {found}; remove the key")
        return self


class Recipe(Part):
    """A whole recipe."""

    name: FileName = Field(
        description="Name of the recipe; without `--output`, the model is written to NAME-model."
    )
    method: str = Field(
        default="regression", description="Name of the method, a note that is saved with the model."
    )
    description: str = Field(default="", description="What the model is for, in words.")
    seed: Seed = Field(default=1, description="Seed of everything that is drawn at random.")
    encoder: EncoderSpec = Field(
        default=EncoderSpec(),
        description="Encoder that training starts from; a string alone is its `name`.",
    )
    relation: dict[str, RelationSpec] = Field(
        description="Relations, each a table `[relation.NAME]`; a recipe of kind `inject` has none."
    )
    update: UpdateSpec | None = Field(
        default=None,
        description="Limit on the rank of the change of the encoder's weights; none if left out.",
    )
    hold_out: tuple[str, ...] = Field(
        default=(), description="Languages that are left out of the data of every stage, to measure transfer."
    )
    stage: tuple[AnyStage, ...] = Field(
        min_length=1, max_length=100, description="Stages, which run in this order, each a table `[[stage]]`."
    )
    evaluation: EvaluationSpec = Field(
        default=EvaluationSpec(), description="What is measured after training."
    )

    @model_validator(mode="before")
    @classmethod
    def _without_a_question(cls, data: Any) -> Any:
        """A recipe whose stages learn no relation needs none."""
        stages = data.get("stage") if isinstance(data, dict) else None
        silent = isinstance(stages, list | tuple) and not any(Stage.shape_of(one).asks for one in stages)
        return {"relation": {}, **data} if silent else data

    @model_validator(mode="before")
    @classmethod
    def _not_too_many_questions(cls, data: Any) -> Any:
        relations = data.get("relation") if isinstance(data, dict) else None
        if isinstance(relations, dict) and len(relations) > MAX_RELATIONS:
            found = f"relation: has {len(relations):,} relations, but at most {MAX_RELATIONS:,} can be learnt"
            raise ValueError(
                f"{found} at once; name those that you need with {spelt('relations', 'NAME:lo..hi')}"
            )
        return data

    @model_serializer(mode="wrap")
    def _without_update(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out an update that is not there: recipes from before it stay as they are."""
        found: dict[str, Any] = handler(self)
        return (
            found if self.update is not None else {key: one for key, one in found.items() if key != "update"}
        )

    @field_validator("update")
    @classmethod
    def _of_a_transformer(cls, update: UpdateSpec | None, info: Any) -> UpdateSpec | None:
        encoder = info.data.get("encoder")
        if update is not None and encoder is not None and encoder.kind != "pretrained":
            found = f"needs a transformer, but encoder.kind is {encoder.kind!r}"
            raise ValueError(f"{found}; remove the table, or use a pretrained encoder")
        return update

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
                    found = f"{relation!r} is not one of the recipe's relations ({', '.join(known)})"
                    raise ValueError(
                        f"stage.{number}.{path}: {found}; correct it, or add [relation.{relation}]"
                    )
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
                found = f"kind {stage.kind!r} cannot follow kind {former.kind!r}: it {stage.place}"
                raise ValueError(f"stage.{number}.kind: {found}")
        return stages

    @field_validator("stage")
    @classmethod
    def _something_asked(cls, stages: tuple[Stage, ...], info: Any) -> tuple[Stage, ...]:
        if not info.data.get("relation") and any(stage.asks for stage in stages):
            found = "is empty, but the stages need a relation to learn"
            raise ValueError(f"relation: {found}; add one as a table [relation.NAME]")
        return stages


def parse_recipe(data: dict[str, Any], where: str) -> Recipe:
    """Validate a mapping, and report all problems at once, each with its path."""
    return validate(Recipe, data, where)
