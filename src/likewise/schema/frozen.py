"""Kinds `parallel` and `refine`: layers on cached vectors of a frozen encoder (multilingual method)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, model_validator

from likewise.data.catalogue import is_parallel_corpus
from likewise.data.own import OwnTable
from likewise.schema.base import (
    DEV_SHARE,
    FILTER_KEYS,
    KEEP_START,
    SELECT,
    Adopted,
    FilteredStage,
    own_entry,
    own_relations,
    unrated,
)
from likewise.schema.parts import MAX_EPOCHS, MAX_WIDTH, DataSpec, Part


class ParallelSpec(Part):
    """Sentences and their translations: a corpus (tatoeba/en-de_train), a file, or two Moses files."""

    source: str | tuple[str, str] = Field(
        description=(
            "Corpus with its split such as `tatoeba/en-de_train`, a file, or a list of two files that "
            "are read line by line."
        )
    )
    languages: tuple[str, str] | None = Field(
        default=None,
        description="Language codes of the two sides, read from the names of files and columns if left out.",
    )
    columns: tuple[str, str] | None = Field(
        default=None, description="Columns of the two sides; guessed if left out."
    )
    limit: int | None = Field(
        default=None, gt=0, description="Largest number of rows, a sample that is the same for all seeds."
    )

    def files(self) -> Iterator[str]:
        """The corpus, the file or the two files that it names."""
        yield from (self.source,) if isinstance(self.source, str) else self.source


class SplitWeights(Part):
    """Weight of each term in the loss of a `parallel` stage; nothing is learnt from a term of weight 0."""

    meaning: NonNegativeFloat = Field(
        default=1.0,
        description="Brings the meaning vectors of translations together, and those of other texts apart.",
    )
    language: NonNegativeFloat = Field(
        default=1.0, description="Brings the language vectors of texts in the same language together."
    )
    identification: NonNegativeFloat = Field(
        default=1.0, description="Identifies the language of a text from its language vector."
    )
    reconstruction: NonNegativeFloat = Field(
        default=1.0, description="Rebuilds a text's vector from its meaning and language vectors."
    )
    push: NonNegativeFloat = Field(
        default=0.0, description="Pushes the language vectors of translations apart."
    )
    cross: NonNegativeFloat = Field(
        default=0.0,
        description="Rebuilds a text's vector from its own language vector and its translation's meaning.",
    )


class VectorStage(FilteredStage):
    """Keys of stages that train layers on the cached vectors of a frozen encoder."""

    takes: ClassVar[frozenset[str]] = frozenset({"frozen"})
    gives: ClassVar[str] = "frozen"
    place: ClassVar[str] = (
        "must come first or follow a stage of kind parallel or refine, because its encoder is frozen; "
        "move it to the front, or train the encoder by another recipe first"
    )
    takes_functions: ClassVar[bool] = True
    reusable: ClassVar[bool] = True

    dev: tuple[DataSpec, ...] = Field(
        default=(), description="Entries with rated pairs that are measured after every epoch."
    )
    select_metric: str = Field(default="pearson", description="Metric of the cosine on rated dev pairs.")
    epochs: int = Field(default=1000, gt=0, le=MAX_EPOCHS, description="Largest number of epochs.")
    min_epochs: int = Field(
        default=0,
        ge=0,
        description="Number of epochs that are trained before early stopping may end the stage.",
    )
    patience: int | None = Field(
        default=10,
        gt=0,
        description="Early stopping: number of epochs in a row without a better dev value.",
    )
    learning_rate: float = Field(default=1e-4, gt=0, description="Learning rate of Adam.")
    weight_decay: float = Field(default=0.0, ge=0, description="Weight decay of Adam.")
    select: bool = Field(default=True, description=SELECT)
    keep_start: bool = Field(default=True, description=KEEP_START)


class ParallelStage(VectorStage):
    """Stage 1 of the multilingual method: separate meaning from language on parallel text."""

    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"parallel", "dev"}

    kind: Literal["parallel"]
    parallel: tuple[ParallelSpec, ...] = Field(min_length=1, description="Entries with the translations.")
    dev_share: float = Field(
        default=0.2, gt=0, lt=1, description="Share of the translations that is kept as the dev set."
    )
    form: Literal["paper", "fused"] = Field(
        default="paper",
        description=(
            "Take negatives from another batch and positives from all texts of the language (`paper`), or "
            "both from the batch itself (`fused`)."
        ),
    )
    start: Literal["random", "identity", "means"] = Field(
        default="random",
        description=(
            "First weights of the meaning layer: random, the identity, or (`means`) the identity without the "
            "directions in which the means of the languages differ."
        ),
    )
    prelayer: Literal["relu", "gelu", "silu", "tanh"] | None = Field(
        default=None,
        description="Activation of an extra layer before the meaning and language layers; none by default.",
    )
    reversible: bool = Field(
        default=False,
        description=(
            "Let the language vector be the encoder's vector minus the meaning vector, so that there is "
            "nothing to reconstruct."
        ),
    )
    reconstruction: Literal["mean", "sum", "cosine"] = Field(
        default="mean",
        description="Error of the rebuilt vector: mean or sum of squares, or 1 minus the cosine.",
    )
    margin: float = Field(
        default=0.0,
        ge=-1,
        lt=1,
        description="Cosine below which two vectors that belong apart add nothing to the loss.",
    )
    weights: SplitWeights = Field(
        default=SplitWeights(), description="Weights of the terms of the loss, each with a key of its own."
    )
    balance: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description=(
            "Language pairs are drawn in proportion to size^balance: 1 is by size, 0 draws all equally often."
        ),
    )
    batch_size: int = Field(default=512, gt=1, description="Translations per step.")
    select_by: Literal["loss", "rated"] = Field(
        default="loss",
        description=(
            "Dev value that selects: the loss on the translations of the dev set, or the metric on the rated "
            "pairs of `dev`."
        ),
    )

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The recipe's first relation, which its dev pairs rate."""
        return tuple(known)[:1]

    def answers(self, known: Collection[str]) -> tuple[str, ...]:
        """None: it only splits vectors."""
        return ()

    def draws_rows(self) -> bool:
        """The dev rows of the parallel text are drawn during training."""
        return not self.dev

    def sources(self) -> Iterator[str]:
        """Parallel text, dev and evaluation sets."""
        for entry in self.parallel:
            yield from entry.files()
        yield from (spec.source for spec in self.dev)
        yield from self.filter_against

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """None: translations need their languages, so they are named in the recipe."""
        return "it learns from translations, which only the recipe can name (stage.N.parallel)"


class RefineStage(VectorStage):
    """Stage 2 of the multilingual method: train further layers on rated pairs."""

    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"relation", "data", "parallel", "dev", "dev_share"}

    kind: Literal["refine"]
    relation: str = Field(default="", description="Relation that is learnt; the recipe's first if empty.")
    data: tuple[DataSpec, ...] = Field(min_length=1, description="Entries with the rated pairs.")
    hidden: int | None = Field(
        default=None,
        gt=0,
        le=MAX_WIDTH,
        description="Width of the hidden layer, by default the width of the vectors.",
    )
    activation: Literal["relu", "gelu", "silu", "tanh"] = Field(
        default="relu", description="Activation of the hidden layer; `tanh` needs `residual = false`."
    )
    residual: bool = Field(default=True, description="Add the input of the new layers to their output.")
    convolution: int | None = Field(
        default=None,
        gt=0,
        le=1001,
        description="Kernel width of a convolution before the new layers, an odd number; none by default.",
    )
    map: Literal["identity", "affine", "clamp", "sigmoid", "tanh", "arccos"] = Field(
        default="identity", description="Monotone function that maps the cosine to the rating."
    )
    loss: Literal["mse", "l1", "smooth_k2", "translated_relu", "pearson", "cosent"] = Field(
        default="mse", description="Loss between the mapped cosine and the rating."
    )
    dev_share: float = Field(default=0.1, gt=0, lt=1, description=DEV_SHARE)
    parallel: tuple[ParallelSpec, ...] = Field(
        default=(),
        description="Entries with translations that are kept aligned while the ratings are learnt.",
    )
    align: float = Field(
        default=0.1, ge=0, description="Weight of the alignment loss: InfoNCE over a batch of translations."
    )
    temperature: float = Field(default=0.05, gt=0, description="Temperature of the alignment loss.")
    align_batch: int = Field(default=256, gt=1, description="Translations in a batch of the alignment loss.")
    joint: bool = Field(default=False, description="Train the layers of the stages before it as well.")
    batch_size: int = Field(default=64, gt=1, description="Rated pairs per step.")
    epochs: int = Field(default=50, gt=0, le=MAX_EPOCHS)
    patience: int | None = Field(default=5, gt=0)

    @model_validator(mode="after")
    def _aligned_by_something(self) -> Self:
        fields = type(self).model_fields
        for key in ("align", "temperature", "align_batch"):
            if not self.parallel and getattr(self, key) != fields[key].default:
                found = "is set, but there is no `parallel`, without which it has no effect"
                raise ValueError(f"{key}: {found}; name translations in parallel, or remove the key")
        return self

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Its ratings."""
        return {"data": [{"source": name}]}

    def named(self) -> Iterator[tuple[str, str]]:
        """The relation, if it names one."""
        if self.relation:
            yield "relation", self.relation

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """Its relation, or the recipe's first."""
        return (self.relation,) if self.relation else tuple(known)[:1]

    def draws_rows(self) -> bool:
        """True with a split-off dev set or noise, which depend on the seed."""
        return not self.dev or any(spec.noise for spec in self.data)

    def sources(self) -> Iterator[str]:
        """Ratings, parallel text, dev and evaluation sets."""
        yield from (spec.source for spec in (*self.data, *self.dev))
        for entry in self.parallel:
            yield from entry.files()
        yield from self.filter_against

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Pairs with one graded rating; the translations of the recipe stay."""
        if len(table.texts) != 2:
            return f"it learns from rated pairs, but {table.name} has one text column, {table.texts[0]!r}"
        relations = own_relations(table, known, ("graded",))
        if len(relations) != 1:
            return unrated(table, "one graded rating of pairs")
        [name] = relations
        kept = [entry for entry in self.filter_against if entry not in _rated_sets(self.filter_against)]
        changed = {"relation": name, "data": [own_entry(table)], "dev": [], "filter_against": kept}
        return Adopted(changed, relations)


def _rated_sets(names: Collection[str]) -> set[str]:
    """The evaluation sets that hold rated pairs rather than translations."""
    return {name for name in names if not is_parallel_corpus(name)}
