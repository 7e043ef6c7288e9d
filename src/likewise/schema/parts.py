"""Parts of a recipe that stages and recipes are made of: relations, encoders, data entries."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from likewise.files import may_be_path
from likewise.records import Relation

# The widest layer, the most rows in a step and the most times through them that anyone can mean: a number
# with too many zeros is refused before it takes the memory or the days.
MAX_WIDTH, MAX_BATCH, MAX_EPOCHS = 65_536, 1_000_000, 100_000
# Data entries of a stage: each is opened and read.
MAX_ENTRIES = 1_000
# Encoders over word vectors.
WORD_KINDS = ("bilstm", "lstm", "average")


class Part(BaseModel):
    """Base of all parts: unknown keys are errors, values do not change, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RelationSpec(Part):
    """One question: `lo` and `hi` if graded, `labels` if classes, `positions` too if they have an order."""

    kind: Literal["graded", "ordered", "classes"] = "graded"
    lo: float = 0.0
    hi: float = 5.0
    step: float = Field(default=1.0, gt=0)
    labels: tuple[str, ...] = ()
    positions: tuple[float, ...] = ()
    metric: str = Field(default="", description="spearman, pearson, accuracy, …; chosen by kind if empty")
    description: str = ""
    texts: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="label → how it is said, one text or several; its name if left out"
    )
    corpus: str = Field(
        default="", description="CORPUS/RELATION whose labels and texts it has: reuters46/topic"
    )

    @field_validator("texts", mode="before")
    @classmethod
    def _one_text_or_several(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {label: (ways,) if isinstance(ways, str) else ways for label, ways in value.items()}


def relation_table(relation: Relation) -> dict[str, Any]:
    """A relation as a recipe says it."""
    if relation.kind == "graded":
        table: dict[str, Any] = {"lo": relation.lo, "hi": relation.hi}
        return table if relation.step == 1 else {**table, "step": relation.step}
    table = {"kind": relation.kind, "labels": list(relation.labels)}
    return table if relation.kind == "classes" else {**table, "positions": list(relation.positions)}


class Word2VecSpec(Part):
    """Word vectors trained on the run's own training texts and label texts, before anything else (gensim)."""

    width: int = Field(default=100, gt=0, le=MAX_WIDTH)
    window: int = Field(default=5, gt=0, le=1000, description="words to either side")
    epochs: int = Field(default=5, gt=0, le=MAX_EPOCHS)
    least: int = Field(default=2, gt=0, description="rarer words have no vector; those of labels always have")
    skip_gram: bool = Field(default=False, description="otherwise CBOW, which is three times as fast")


class EncoderSpec(Part):
    """A pretrained checkpoint by name, word vectors under an LSTM or an average, or vectors of texts."""

    kind: Literal["pretrained", "bilstm", "lstm", "average", "vectors"] = "pretrained"
    name: str = Field(default="default", description="folder, hub id or 'default' (kind pretrained)")
    vectors: str = Field(
        default="",
        description="bilstm, lstm, average: word vectors, folder or .txt/.vec file; vectors: an .npz",
    )
    word2vec: Word2VecSpec | None = Field(
        default=None, description="bilstm, lstm, average: vectors learnt from the texts at hand instead"
    )
    hidden: int | None = Field(
        default=None,
        gt=0,
        le=MAX_WIDTH,
        description="LSTM units per direction: 2048 for bilstm, 100 for lstm if empty",
    )
    peepholes: bool = Field(default=False, description="lstm: the gates see the cell, as the paper prints it")
    start_deviation: float | None = Field(
        default=None, gt=0, description="lstm: weights begin normal with this deviation; torch's own if empty"
    )
    train_vectors: bool = False
    dropout: float = Field(
        default=0.0, ge=0, lt=1, description="share of word-vector entries zeroed while training"
    )
    padding: Literal["safe", "infersent-v1"] = Field(
        default="safe", description="BiLSTM: infersent-v1 lets zero padding take part in the max"
    )
    words: Literal["all", "data"] = Field(
        default="all", description="vocabulary: all vectors, or words of the data"
    )
    max_length: int | None = Field(
        default=None, gt=2, le=1_000_000, description="tokens; longer texts are cut"
    )
    normalise: bool = Field(
        default=True, description="keep the checkpoint's own Normalize module, if it has one"
    )
    prompt: str = Field(
        default="", max_length=10_000, description="put before every text, such as E5's 'query: '"
    )

    @field_validator("name", "vectors")
    @classmethod
    def _a_path_if_any(cls, value: str) -> str:
        if value and not may_be_path(value):
            raise ValueError("this can be the name of no file or folder; check it")
        return value

    @model_validator(mode="after")
    def _one_source_of_vectors(self) -> Self:
        if self.word2vec is not None and (self.vectors or self.kind not in WORD_KINDS):
            raise ValueError(
                f"word2vec: goes with kind {', '.join(WORD_KINDS)} and without vectors; "
                f"here are kind {self.kind!r} and vectors {self.vectors!r}"
            )
        return self


class DataSpec(Part):
    """Rated pairs: a file, a catalogue name such as stsb/train, or a hub id."""

    source: str
    text_a: str | None = None
    text_b: str | None = None
    columns: dict[str, str] = Field(
        default_factory=dict, description="recipe relation → column or corpus relation"
    )
    rescale: bool = Field(default=True, description="map a corpus's own range onto the recipe relation's")
    round: bool = Field(default=False, description="round graded values to the grid, halves to even")
    weight: float = Field(default=1.0, gt=0, description="how often these rows are drawn, relative to others")
    noise: float = Field(
        default=0.0, ge=0, le=1, description="share of labels replaced by another, drawn by the seed"
    )
    limit: int | None = Field(default=None, gt=0, description="first rows only")
