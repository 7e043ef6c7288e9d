"""Kind `distil`: an encoder learns the cosines of other models on texts that nobody rated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from likewise.data.own import OwnTable
from likewise.files import may_be_path
from likewise.schema.base import FILTER_KEYS, Adopted, FilteredStage, OptimisedStage
from likewise.schema.parts import MAX_BATCH, MAX_ENTRIES, DataSpec, EncoderSpec, ModelName, Part
from likewise.spelling import spelt

# Each teacher encodes every text, and its vectors stay in memory.
MAX_TEACHERS = 16
# What a stage of this kind does not use: its batches are made of texts and their neighbours.
_UNUSED = ("token_budget", "order")


class TextsSpec(Part):
    """Texts without ratings: a corpus, parallel text in one language, or a file."""

    source: str = Field(
        description="Corpus with its split such as `snli/train` or `tatoeba/en-de_train`, file, or hub id."
    )
    text: str | None = Field(
        default=None, description="Column of the texts; by default the one or two text columns are found."
    )
    language: str | None = Field(
        default=None, description="Language code of the side of parallel text that is read; both by default."
    )
    limit: int | None = Field(
        default=None, gt=0, description="Largest number of texts, a sample that is the same for all seeds."
    )
    max_chars: int | None = Field(
        default=None, gt=0, description="Number of characters beyond which a text is left out."
    )


class DistilStage(OptimisedStage, FilteredStage):
    """An encoder learns the cosines of its teachers, in batches of texts and their nearest neighbours."""

    takes: ClassVar[frozenset[str]] = frozenset({"pairs", "frozen"})
    gives: ClassVar[str] = "pairs"
    place: ClassVar[str] = (
        "must come first or follow a stage of kind pairs, parallel, refine or distil; put it into a recipe "
        "of its own"
    )
    asks: ClassVar[bool] = False
    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"data", "dev", "held_out"}
    texts: ClassVar[frozenset[int]] = frozenset({1, 2})

    kind: Literal["distil"]
    teachers: tuple[ModelName, ...] = Field(
        min_length=1,
        max_length=MAX_TEACHERS,
        description=(
            "Models whose cosines are learnt, or .npz files with their vectors; the cosines of several are "
            "standardised and averaged."
        ),
    )
    data: tuple[TextsSpec, ...] = Field(
        min_length=1, max_length=MAX_ENTRIES, description="Entries with the texts."
    )
    dev: tuple[DataSpec, ...] = Field(
        default=(),
        max_length=MAX_ENTRIES,
        description=(
            "Entries with rated pairs, which select the step; without any, the agreement with the teachers "
            "on held-out texts selects it."
        ),
    )
    held_out: float = Field(
        default=0.01,
        gt=0,
        lt=0.5,
        description="Share of the texts that is not trained on, to measure the agreement with the teachers.",
    )
    neighbours: int = Field(
        default=32, gt=0, le=1000, description="Nearest neighbours of a text, by the teachers' cosine."
    )
    drawn: int = Field(
        default=7,
        gt=0,
        le=1000,
        description="Neighbours that join each text of a batch, drawn in each epoch.",
    )
    near: float = Field(
        default=50.0,
        ge=0,
        description="Additional weight of the closest pairs, which are few among all pairs of a batch.",
    )
    batch_size: int = Field(
        default=64,
        gt=0,
        le=MAX_BATCH,
        description="Texts per batch, without the neighbours that join them.",
    )
    learning_rate: float = Field(default=2e-4, gt=0)

    @field_validator("teachers")
    @classmethod
    def _paths_if_any(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not name or not may_be_path(name):
                raise ValueError(f"{name!r} cannot be the name of a model or a file; correct it")
        return names

    @model_validator(mode="after")
    def _enough_to_draw_from(self) -> Self:
        if self.drawn > self.neighbours:
            found = f"is {self.drawn}, but each text has only {self.neighbours} neighbours"
            raise ValueError(f"drawn: {found}; lower drawn, or raise neighbours")
        return self

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Its texts."""
        return {"data": [{"source": name}]}

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The recipe's first relation, which its dev pairs rate."""
        return tuple(known)[:1] if self.dev else ()

    def models(self) -> Iterator[str]:
        """The teachers."""
        yield from self.teachers

    def sources(self) -> Iterator[str]:
        """Texts, dev and evaluation sets."""
        yield from (spec.source for spec in self.data)
        yield from (spec.source for spec in self.dev)
        yield from self.filter_against

    def problems(self, encoder: EncoderSpec, *, first: bool) -> Iterator[tuple[str, str]]:
        """Keys that have no effect, and an encoder that cannot learn."""
        for key in _UNUSED:
            if key in self.model_fields_set and getattr(self, key) != type(self).model_fields[key].default:
                found = "is set, but the batches of this kind are texts with their neighbours"
                yield key, f"{found}; remove the key"
        if first and encoder.kind == "vectors":
            yield "kind", "this stage trains the encoder, but ready vectors cannot be trained; name a model"

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """A table of texts; ratings that it may have are not read."""
        if table.declared:
            return f"it learns from texts and reads no ratings, but {spelt('relations')} declares one"
        entry: dict[str, Any] = {"source": table.name}
        if table.corpus is None and len(table.texts) == 1:
            entry["text"] = table.texts[0]
        rated = ", ".join(relation.name for relation in table.relations)
        told = (f"every text of {table.name} is read; ratings of {rated} are not",) if rated else ()
        return Adopted({"data": [entry], "dev": [], "filter_against": []}, known, told)
