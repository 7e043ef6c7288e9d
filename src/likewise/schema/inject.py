"""Kind `inject`: phrases and sentences of paraphrases taught to an encoder before it is fine-tuned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from likewise.data.own import OwnTable
from likewise.schema.base import FILTER_KEYS, Adopted, FilteredStage, OptimisedStage, own_entry
from likewise.schema.pairs import FEW
from likewise.schema.parts import MAX_BATCH, MAX_EPOCHS, Part


class ParaphraseSpec(Part):
    """Paraphrases: a named corpus (asset/valid), a file with two text columns, or a file of phrase links."""

    source: str
    text_a: str | None = None
    text_b: str | None = None
    only: dict[str, str] = Field(
        default_factory=dict, description="column or relation → the value that rows must have"
    )
    limit: int | None = Field(default=None, gt=0, description="rows at most, a sample that all seeds share")


class InjectStage(OptimisedStage, FilteredStage):
    """Phrases and sentences of paraphrases taught to an encoder before it is fine-tuned."""

    gives: ClassVar[str] = "injected"
    place: ClassVar[str] = "stands alone: its model is the encoder of another recipe"
    asks: ClassVar[bool] = False
    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"data"}
    kind: Literal["inject"]
    data: tuple[ParaphraseSpec, ...] = Field(min_length=1)
    head_learning_rate: float | None = Field(
        default=None, gt=0, description="of the heads; learning_rate if empty"
    )
    dev_share: float = Field(default=0.05, gt=0, lt=0.5, description="share of pairs that selects and stops")
    test_share: float = Field(default=0.05, ge=0, lt=0.5, description="share of pairs measured at the end")
    learns: Literal["both", "phrases", "sentences", "binary-phrases"] = Field(
        default="both", description="phrases alone, sentences alone, phrases without random pairs"
    )
    features: Literal["elaborate", "simple", "cosine"] = Field(
        default="elaborate",
        description="max-pooled with product and difference, mean-pooled without; cosine: for two towers",
    )
    two_tower: bool = Field(
        default=False, description="texts encoded apart: for a retrieval encoder", validate_default=True
    )
    anchor: float = Field(
        default=10.0,
        ge=0,
        description="two towers: weight that holds cosines of texts that are no paraphrases of each other",
    )
    negatives: Literal["uniform", "near"] = Field(
        default="uniform", description="near: in-paraphrase negatives overlap the right phrase"
    )
    dropout: float = Field(default=0.2, ge=0, lt=1, description="before the heads")
    max_length: int = Field(default=128, gt=2, description="pieces; longer pairs are left out and counted")
    phraser: str = Field(default="auto", description="where spans come from: auto, rules, spacy, a folder")
    aligner: str = Field(default="default", description="encoder that aligns pairs that come without links")
    epochs: float = Field(default=10, gt=0, le=MAX_EPOCHS, description="at most")
    batch_size: int = Field(
        default=100, gt=0, le=MAX_BATCH, description="pairs per step, random ones included"
    )
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    rate_schedule: Literal["linear", "constant", "cosine"] = "constant"
    warmup: float = Field(default=0.0, ge=0, lt=1)
    stop_after: int | None = Field(
        default=2, gt=0, description="evaluations without a better one before stopping, in a row or not"
    )

    @field_validator("two_tower")
    @classmethod
    def _features_that_fit(cls, two_tower: bool, info: ValidationInfo) -> bool:
        features = info.data.get("features")
        if two_tower and features == "simple":
            raise ValueError(
                'features = "simple" let texts that are encoded apart never meet; '
                'take "cosine" or "elaborate", or two_tower = false'
            )
        if not two_tower and features == "cosine":
            raise ValueError(
                'features = "cosine" are for texts that are encoded apart; '
                'set two_tower = true, or take "elaborate" or "simple"'
            )
        return two_tower

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Its paraphrases."""
        return {"data": [{"source": name}]}

    @property
    def held_out(self) -> float:
        """The share of pairs that nothing is learnt from."""
        return self.dev_share + self.test_share

    def models(self) -> Iterator[str]:
        """What aligns pairs, and what finds their phrases."""
        yield self.aligner
        yield self.phraser

    def sources(self) -> Iterator[str]:
        """Paraphrases and evaluation sets."""
        yield from (spec.source for spec in self.data)
        yield from self.filter_against

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """A table of paraphrases, or a file of links.

        The leak filter goes too: it is against corpora that only those of the recipe's own data may have.
        """
        if len(table.texts) != 2:
            return f"it learns from paraphrases, and {table.name} has one text column, {table.texts[0]!r}"
        if table.declared:
            return "it learns phrases and has no relation to declare"
        changed: dict[str, Any] = {"data": [own_entry(table)], "filter_against": []}
        if table.rows is not None and table.rows < FEW:
            changed["batch_size"] = 16  # in batches of 100 a small table would be a step or two an epoch
        # Once an epoch: in steps a small table would be looked at too seldom to stop by.
        changed["evaluate_every"] = None
        rated = ", ".join(relation.name for relation in table.relations)
        told = (
            (f"every pair of {table.name} is taught as a paraphrase, whatever {rated} says",) if rated else ()
        )
        said = f"Phrase alignments of {table.name} taught to a joint encoder; its size stays the same"
        return Adopted(changed, {}, told, said)
