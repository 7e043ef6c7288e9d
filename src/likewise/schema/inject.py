"""Kind `inject`: phrase injection, which trains an encoder on phrase alignments before it is fine-tuned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from likewise.data.own import OwnTable
from likewise.naming import RAW
from likewise.schema.base import FILTER_KEYS, HEAD_RATE, Adopted, FilteredStage, OptimisedStage, own_entry
from likewise.schema.pairs import FEW
from likewise.schema.parts import MAX_BATCH, MAX_EPOCHS, ModelName, Part
from likewise.spelling import spelt


class ParaphraseSpec(Part):
    """Paraphrases: a corpus (asset/valid), a table with two text columns, or a file of phrase links."""

    source: str = Field(
        description=(
            "Corpus with its split such as `asset/valid`, table with two text columns, or file of phrase "
            "links."
        )
    )
    text_a: str | None = Field(default=None, description="Column of the first text; guessed if left out.")
    text_b: str | None = Field(default=None, description="Column of the second text; guessed if left out.")
    only: dict[str, str] = Field(
        default_factory=dict,
        description="Values that a row must have in a column or relation to count as a paraphrase.",
    )
    limit: int | None = Field(
        default=None, gt=0, description="Largest number of rows, a sample that is the same for all seeds."
    )


class InjectStage(OptimisedStage, FilteredStage):
    """Training of an encoder on phrases and sentences of paraphrases, before it is fine-tuned."""

    gives: ClassVar[str] = "injected"
    place: ClassVar[str] = "must be the only stage of a recipe; use its model as the encoder of another one"
    asks: ClassVar[bool] = False
    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"data"}
    kind: Literal["inject"]
    data: tuple[ParaphraseSpec, ...] = Field(min_length=1, description="Entries with the paraphrases.")
    head_learning_rate: float | None = Field(default=None, gt=0, description=HEAD_RATE)
    dev_share: float = Field(
        default=0.05, gt=0, lt=0.5, description="Share of the pairs that selects the step and stops training."
    )
    test_share: float = Field(
        default=0.05, ge=0, lt=0.5, description="Share of the pairs that is measured at the end."
    )
    learns: Literal["both", "phrases", "sentences", "binary-phrases"] = Field(
        default="both",
        description=(
            "Learn phrases and sentences, one of the two, or phrases without random pairs (`binary-phrases`)."
        ),
    )
    features: Literal["elaborate", "simple", "cosine"] = Field(
        default="elaborate",
        description=(
            "What the heads see of two phrases: max-pooled vectors with product and difference, mean-pooled "
            "vectors, or (for `two_tower`) their cosine."
        ),
    )
    two_tower: bool = Field(
        default=False,
        description="Encode the two texts separately, for an encoder that is used for retrieval.",
        validate_default=True,
    )
    anchor: float = Field(
        default=10.0,
        ge=0,
        description=(
            "With `two_tower`, weight of a loss that keeps the cosines of texts that are not paraphrases as "
            "they were before."
        ),
    )
    negatives: Literal["uniform", "near"] = Field(
        default="uniform",
        description=(
            "How wrong phrases are drawn from the same paraphrase: at random, or (`near`) so that they "
            "overlap the right phrase."
        ),
    )
    dropout: float = Field(default=0.2, ge=0, lt=1, description="Dropout before the heads.")
    max_length: int = Field(
        default=128, gt=2, description="Largest number of tokens; longer pairs are left out and counted."
    )
    phraser: str = Field(
        default="auto",
        description=(
            "Source of phrases: `rules`, `spacy`, a spaCy pipeline by folder or name, or `auto` (spaCy if it "
            "is installed)."
        ),
    )
    aligner: ModelName = Field(default=RAW, description="Encoder that aligns pairs that come without links.")
    epochs: float = Field(default=10, gt=0, le=MAX_EPOCHS)
    batch_size: int = Field(
        default=100,
        gt=0,
        le=MAX_BATCH,
        description="Pairs per batch, including random pairs, over all processes together.",
    )
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    rate_schedule: Literal["linear", "constant", "cosine"] = Field(
        default="constant", description="Course of the learning rate after warm-up."
    )
    warmup: float = Field(default=0.0, ge=0, lt=1)
    stop_after: int | None = Field(default=2, gt=0)

    @field_validator("two_tower")
    @classmethod
    def _features_that_fit(cls, two_tower: bool, info: ValidationInfo) -> bool:
        features = info.data.get("features")
        if two_tower and features == "simple":
            raise ValueError(
                'features = "simple" cannot compare texts that are encoded separately (two_tower = true); '
                'use "cosine" or "elaborate", or set two_tower = false'
            )
        if not two_tower and features == "cosine":
            raise ValueError(
                'features = "cosine" needs texts that are encoded separately, but two_tower is false; '
                'set two_tower = true, or use "elaborate" or "simple"'
            )
        return two_tower

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Its paraphrases."""
        return {"data": [{"source": name}]}

    @property
    def held_out(self) -> float:
        """The share of pairs that is not trained on."""
        return self.dev_share + self.test_share

    def models(self) -> Iterator[str]:
        """The encoder that aligns pairs, and the source of phrases."""
        yield self.aligner
        yield self.phraser

    def sources(self) -> Iterator[str]:
        """Paraphrases and evaluation sets."""
        yield from (spec.source for spec in self.data)
        yield from self.filter_against

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """A table of paraphrases, or a file of links.

        The leak filter is removed too, because its corpora belong to the recipe's own data.
        """
        if len(table.texts) != 2:
            return f"it learns from paraphrases, but {table.name} has one text column, {table.texts[0]!r}"
        if table.declared:
            return f"it learns phrases and no relation, but {spelt('relations')} declares one"
        changed: dict[str, Any] = {"data": [own_entry(table)], "filter_against": []}
        if table.rows is not None and table.rows < FEW:
            changed["batch_size"] = 16  # in batches of 100, a small table has a step or two per epoch
        # Once an epoch: a small table has too few steps for the recipe's interval.
        changed["evaluate_every"] = None
        rated = ", ".join(relation.name for relation in table.relations)
        note = f"every pair of {table.name} counts as a paraphrase; ratings of {rated} are not read"
        said = f"Phrase injection with the pairs of {table.name} into an encoder whose size stays the same"
        return Adopted(changed, {}, (note,) if rated else (), said)
