"""Kinds `parallel` and `refine`: layers on cached vectors of an encoder that never moves (multilingual)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, model_validator

from likewise.data.catalogue import is_parallel_corpus
from likewise.data.own import OwnTable
from likewise.schema.base import FILTER_KEYS, Adopted, FilteredStage, own_entry, own_relations, unrated
from likewise.schema.parts import MAX_EPOCHS, MAX_WIDTH, DataSpec, Part


class ParallelSpec(Part):
    """Sentences and their translations: a named corpus (tatoeba/en-de_train), a file, or two Moses files."""

    source: str | tuple[str, str]
    languages: tuple[str, str] | None = Field(
        default=None, description="codes of the two sides; read from names if left out"
    )
    columns: tuple[str, str] | None = None
    limit: int | None = Field(default=None, gt=0, description="rows at most, a sample that all seeds share")

    def files(self) -> Iterator[str]:
        """The file or files it names, or its corpus."""
        yield from (self.source,) if isinstance(self.source, str) else self.source


class SplitWeights(Part):
    """What each term of the first stage weighs; 0 computes and shows it, and learns nothing from it."""

    meaning: NonNegativeFloat = 1.0
    language: NonNegativeFloat = 1.0
    identification: NonNegativeFloat = 1.0
    reconstruction: NonNegativeFloat = 1.0
    push: NonNegativeFloat = 0.0
    cross: NonNegativeFloat = 0.0


class VectorStage(FilteredStage):
    """What stages over a frozen encoder's cached vectors share."""

    takes: ClassVar[frozenset[str]] = frozenset({"frozen"})
    gives: ClassVar[str] = "frozen"
    place: ClassVar[str] = (
        "learns on vectors of a frozen encoder and cannot follow a stage that trains the encoder"
    )
    takes_functions: ClassVar[bool] = True
    reusable: ClassVar[bool] = True

    dev: tuple[DataSpec, ...] = Field(default=(), description="rated pairs that are looked at every epoch")
    select_metric: str = Field(default="pearson", description="of the cosine, on rated dev pairs")
    epochs: int = Field(default=1000, gt=0, le=MAX_EPOCHS, description="at most")
    min_epochs: int = Field(default=0, ge=0, description="before patience counts")
    patience: int | None = Field(default=10, gt=0, description="epochs without a better one before stopping")
    learning_rate: float = Field(default=1e-4, gt=0, description="of Adam")
    weight_decay: float = Field(default=0.0, ge=0)
    select: bool = Field(default=True, description="keep the best epoch; otherwise the last")
    keep_start: bool = Field(
        default=True,
        description="with select: keep the model as it was before training where no step is better on dev",
    )


class ParallelStage(VectorStage):
    """Stage 1 of the multilingual method: meaning and language apart, on parallel text."""

    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"parallel", "dev"}

    kind: Literal["parallel"]
    parallel: tuple[ParallelSpec, ...] = Field(min_length=1)
    dev_share: float = Field(default=0.2, gt=0, lt=1, description="share of parallel rows kept for dev")
    form: Literal["paper", "fused"] = Field(
        default="paper", description="fused: negatives and positives of the batch itself, one product"
    )
    start: Literal["random", "identity", "means"] = Field(
        default="random", description="of the meaning layer; means: without what sets languages apart"
    )
    prelayer: Literal["relu", "gelu", "silu", "tanh"] | None = None
    reversible: bool = Field(default=False, description="l = e − m: nothing to reconstruct")
    reconstruction: Literal["mean", "sum", "cosine"] = "mean"
    margin: float = Field(default=0.0, ge=-1, lt=1)
    weights: SplitWeights = SplitWeights()
    balance: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="language pairs drawn by size^balance: 1 as they lie, 0 all alike",
    )
    batch_size: int = Field(default=512, gt=1)
    select_by: Literal["loss", "rated"] = Field(
        default="loss", description="loss on parallel dev, or the metric on rated dev"
    )

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The recipe's first relation, which its dev pairs are rated on."""
        return tuple(known)[:1]

    def answers(self, known: Collection[str]) -> tuple[str, ...]:
        """Nothing: it splits vectors."""
        return ()

    def draws_rows(self) -> bool:
        """Which rows of parallel text are dev is decided when they are learnt."""
        return not self.dev

    def sources(self) -> Iterator[str]:
        """Parallel text, dev and evaluation sets."""
        for entry in self.parallel:
            yield from entry.files()
        yield from (spec.source for spec in self.dev)
        yield from self.filter_against

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Translations are named in the recipe: their languages must be known."""
        return "it learns from translations, which are named in the recipe (stage.N.parallel)"


class RefineStage(VectorStage):
    """Stage 2 of the multilingual method: meaning sharpened on rated pairs."""

    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"relation", "data", "parallel", "dev", "dev_share"}

    kind: Literal["refine"]
    relation: str = ""
    data: tuple[DataSpec, ...] = Field(min_length=1)
    hidden: int | None = Field(
        default=None, gt=0, le=MAX_WIDTH, description="width of the hidden layer; the vector's if empty"
    )
    activation: Literal["relu", "gelu", "silu", "tanh"] = "relu"
    residual: bool = True
    convolution: int | None = Field(
        default=None, gt=0, le=1001, description="kernel of a convolution before it: 3, 5"
    )
    map: Literal["identity", "affine", "clamp", "sigmoid", "tanh", "arccos"] = Field(
        default="identity", description="g: from cosine to rating, monotone"
    )
    loss: Literal["mse", "l1", "smooth_k2", "translated_relu", "pearson", "cosent"] = "mse"
    dev_share: float = Field(
        default=0.1, gt=0, lt=1, description="share of data split off where no dev is given"
    )
    parallel: tuple[ParallelSpec, ...] = Field(
        default=(), description="translations that go on finding each other while ratings are learnt"
    )
    align: float = Field(
        default=0.1, ge=0, description="weight of that: InfoNCE over a batch of translations"
    )
    temperature: float = Field(default=0.05, gt=0)
    align_batch: int = Field(default=256, gt=1, description="translations per step")
    joint: bool = Field(default=False, description="the first stage's layers learn too")
    batch_size: int = Field(default=64, gt=1)
    epochs: int = Field(default=50, gt=0, le=MAX_EPOCHS, description="at most")
    patience: int | None = Field(default=5, gt=0, description="epochs without a better one before stopping")

    @model_validator(mode="after")
    def _aligned_by_something(self) -> Self:
        fields = type(self).model_fields
        for key in ("align", "temperature", "align_batch"):
            if not self.parallel and getattr(self, key) != fields[key].default:
                raise ValueError(f"{key}: has no effect without parallel; name translations, or leave it out")
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
        """A dev set split off and noise depend on the seed."""
        return not self.dev or any(spec.noise for spec in self.data)

    def sources(self) -> Iterator[str]:
        """Ratings, parallel text, dev and evaluation sets."""
        yield from (spec.source for spec in (*self.data, *self.dev))
        for entry in self.parallel:
            yield from entry.files()
        yield from self.filter_against

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Pairs with one graded rating; translations stay."""
        if len(table.texts) != 2:
            return f"it learns from rated pairs, and {table.name} has one text column, {table.texts[0]!r}"
        relations = own_relations(table, known, ("graded",))
        if len(relations) != 1:
            return unrated(table, "one graded rating of pairs")
        [name] = relations
        kept = [entry for entry in self.filter_against if entry not in _rated_sets(self.filter_against)]
        changed = {"relation": name, "data": [own_entry(table)], "dev": [], "filter_against": kept}
        return Adopted(changed, relations)


def _rated_sets(names: Collection[str]) -> set[str]:
    """Those evaluation sets that hold rated pairs rather than translations."""
    return {name for name in names if not is_parallel_corpus(name)}
