"""Stage: what a recipe asks of one stage, and what others may ask of it without knowing its kind.

A kind of stage is a subclass in a file of its own and a line in `likewise.registry`. Every method here is
light: it reads the spec, or a table that was already opened, and loads no torch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from likewise.data.own import OwnTable, relation_option
from likewise.documents import Title
from likewise.errors import Problem, RecipeError, UsageError
from likewise.records import Relation
from likewise.registry import DEFAULT_KIND, all_kinds, find_kind, resolve_class
from likewise.schema.parts import (
    MAX_BATCH,
    MAX_ENTRIES,
    MAX_EPOCHS,
    DataSpec,
    EncoderSpec,
    Part,
    relation_table,
)


@dataclass(frozen=True, slots=True)
class Adopted:
    """A stage with a user's table as its data: keys that change, the relations it has, what to tell."""

    stage: Mapping[str, Any]
    relations: Mapping[str, Mapping[str, Any]]
    told: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added to a trained model: a task or relation, how it is said, and its rows if there are any.

    Answers stand in the column of its name, unless `column` says another. `labels` maps each label to the
    ways it is said; `describe` and `scale` say what a relation of pairs asks, and on which scale.
    """

    name: str
    source: str | None = None
    text: str | None = None
    text_a: str | None = None
    text_b: str | None = None
    column: str | None = None
    labels: Mapping[str, Sequence[str]] | None = None
    describe: str | None = None
    scale: str | None = None


class Stage(Part):
    """One stage of a recipe, of any kind."""

    # What it may continue from, by what the stage before it gives; empty if it can only come first.
    takes: ClassVar[frozenset[str]] = frozenset()
    # What it hands to the next stage.
    gives: ClassVar[str] = ""
    # Why it cannot follow just any stage: the end of a sentence that begins with its kind.
    place: ClassVar[str] = "begins a recipe of its own"
    # Whether it asks anything of texts: a recipe without such a stage needs no relation.
    asks: ClassVar[bool] = True
    # Whether the encoder may be a function from texts to vectors, as far as its spec can tell.
    takes_functions: ClassVar[bool] = False
    # Whether rows that were read may be kept on disk for the next run.
    reusable: ClassVar[bool] = False
    # The keys that decide which rows are read; every key if none is named.
    row_keys: ClassVar[frozenset[str]] = frozenset()
    # How many texts a row of its data has.
    texts: ClassVar[frozenset[int]] = frozenset({2})
    # Keys that older recipes may still hold, each with the only value that is passed over.
    retired: ClassVar[Mapping[str, object]] = {}

    kind: str
    name: Title = ""

    @model_validator(mode="before")
    @classmethod
    def _without_retired_keys(cls, data: Any) -> Any:
        """Pass over a retired key at its old default; at any other value it stays, and is refused by name."""
        if not isinstance(data, dict):
            return data
        return {
            key: value for key, value in data.items() if key not in cls.retired or value != cls.retired[key]
        }

    @classmethod
    def shape_of(cls, data: Any) -> type[Stage]:
        """The spec of the kind that a stage's document names; the base itself if there is no such kind."""
        kind = data.get("kind", DEFAULT_KIND) if isinstance(data, Mapping) else DEFAULT_KIND
        found = find_kind(str(kind))
        return cls if found is None else resolve_class(found.spec)

    def named(self) -> Iterator[tuple[str, str]]:
        """Every relation that this stage names, each with its path inside the stage."""
        return iter(())

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The relations that its rows are read for; none where it has no rated rows."""
        return ()

    def answers(self, known: Collection[str]) -> tuple[str, ...]:
        """The relations that a model answers after this stage, each once: an experiment takes them apart."""
        return self.rates(known)

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """This stage with some of the relations that the last stage learns; as it is if it has none."""
        return self

    def with_fold(self, fold: tuple[int, int]) -> Self:
        """This stage with part k of K of its training rows as dev."""
        found = f"a stage of kind {self.kind!r} has no folds"
        raise RecipeError([Problem("folds", found, "drop folds, or take a recipe of pairs or labels")])

    def draws_rows(self) -> bool:
        """Whether which rows it reads depends on the recipe's seed."""
        return True

    def models(self) -> Iterator[str]:
        """Models that it reads beside the recipe's encoder, by name or folder."""
        return iter(())

    def sources(self) -> Iterator[str]:
        """The files and corpora that its rows come from, dev and evaluation sets among them."""
        return iter(())

    def own_texts(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        """Texts beside its rows that its encoder reads: what an encoder over word vectors must know too."""
        return iter(())

    def problems(self, encoder: EncoderSpec, *, first: bool) -> Iterator[tuple[str, str]]:
        """What only the whole recipe shows to be wrong: keys of this stage, each with the reason."""
        return iter(())

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """A user's table as this stage's data (`--data`), or why it cannot be; `known` are relations."""
        return "it takes no table"

    @classmethod
    def infer(cls, table: OwnTable) -> dict[str, Any] | str:
        """A whole recipe for a table alone (`train FILE`), or the reason why this kind has none."""
        return "it is not made from a table"

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Keys that a recipe may leave out where a user's table of that name takes their place (`--data`)."""
        return {}

    def extendable(self) -> bool:
        """Whether what it trains can be given another relation without a new head."""
        return False

    def check_addition(self, addition: Addition, mode: str) -> None:
        """Refuse rows that a way of adding does not need, and ways that lack theirs."""

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """The relation that an addition asks for, checked as far as that goes without the model."""
        raise UsageError(f"{model} cannot be given {addition.name}: train a model that learns both")

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """The keys of this stage that change when a relation and its rows are added."""
        raise UsageError(f"a stage of kind {self.kind!r} cannot be given another relation")

    def alone(self, relation: Relation) -> Self:
        """This stage with the rows that were added last, and nothing but the relation they are for."""
        raise UsageError(f"a stage of kind {self.kind!r} cannot be given another relation")


def pick_stage(value: Any) -> Stage:
    """A stage by the kind that it names; pairs where it does not say."""
    if isinstance(value, Stage):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a stage is a table of keys")
    shape = Stage.shape_of(value)
    if shape is Stage:
        raise _unknown_kind(value.get("kind"))
    return shape.model_validate(dict(value))


def _unknown_kind(kind: object) -> Exception:
    from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

    message = f"{kind!r} is not one of {', '.join(sorted(all_kinds()))}"
    error = PydanticCustomError("unknown_kind", "{message}", {"message": message})
    details: InitErrorDetails = {"type": error, "loc": ("kind",), "input": None}
    return ValidationError.from_exception_data("stage", [details])


# The keys that decide which rows a leak filter keeps.
FILTER_KEYS = frozenset({"filter_against", "leak_filter", "allow_leak"})


class FilteredStage(Stage):
    """What stages share whose rows are filtered against evaluation sets; their runners filter them."""

    filter_against: tuple[str, ...] = Field(
        default=(),
        description="evaluation sets whose pairs are dropped from data and dev: sts7, stsb/test, a file",
    )
    leak_filter: Literal["pair", "strict"] = Field(
        default="pair",
        description="strict: rows that share a single text with filter_against go too, and near-copies",
    )
    allow_leak: bool = Field(default=False, description="keep training pairs that stand in filter_against")


class OptimisedStage(Stage):
    """What stages that are trained by `training.fit` share: optimisation, when it stops."""

    epochs: float = Field(default=1, gt=0, le=MAX_EPOCHS)
    max_steps: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=16, gt=0, le=MAX_BATCH, description="pairs per step, over all processes")
    order: Literal["length", "random", "fixed"] = Field(
        default="length", description="how rows meet in a batch"
    )
    token_budget: int | None = Field(default=None, gt=0)
    accumulation: int = Field(default=1, gt=0, le=MAX_BATCH)
    optimiser: Literal["adamw", "sgd"] = "adamw"
    learning_rate: float = Field(default=2e-5, gt=0)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    rate_schedule: Literal["linear", "constant", "cosine", "paper", "code", "infersent"] = "linear"
    warmup: float = Field(default=0.1, ge=0, lt=1)
    clip: float = Field(default=1.0, ge=0, description="gradient norm; 0 is off")
    average: float = Field(
        default=0.0, ge=0, lt=1, description="decay of a running mean of the weights, which is kept; 0 is off"
    )
    freeze: tuple[str, ...] = ()
    evaluate_every: int | None = Field(default=None, gt=0, description="steps; once per epoch if empty")
    save_every: int | None = Field(default=None, gt=0, description="steps between checkpoints")
    patience: int | None = Field(
        default=None, gt=0, description="evaluations without a better one before stopping"
    )
    stop_after: int | None = Field(
        default=None, gt=0, description="evaluations without a better one before stopping, in a row or not"
    )
    select: bool = Field(default=True, description="keep the best dev step; otherwise the last")
    keep_start: bool = Field(
        default=True,
        description="with select: keep the model as it was before training where no step is better on dev",
    )

    @model_validator(mode="after")
    def _momentum_of_sgd(self) -> Self:
        if self.momentum and self.optimiser != "sgd":
            raise ValueError(
                f"momentum: has no effect with optimiser {self.optimiser!r}; use sgd, or leave it out"
            )
        return self


class TrainedStage(OptimisedStage, FilteredStage):
    """What stages of rated or labelled rows share: their data and dev."""

    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"data", "dev", "dev_share", "fold"}

    data: tuple[DataSpec, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    dev: tuple[DataSpec, ...] = Field(default=(), max_length=MAX_ENTRIES)
    dev_share: float = Field(
        default=0.1, gt=0, lt=1, description="share of data split off where no dev is given"
    )
    fold: tuple[PositiveInt, PositiveInt] | None = Field(
        default=None, description="[k, K]: part k of K of the data is dev instead; 1 is the first"
    )

    @field_validator("fold")
    @classmethod
    def _one_of_several(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and not (value[0] <= value[1] and value[1] > 1):
            raise ValueError(f"{list(value)} is no part of several: [k, K] has k from 1 to K, and K above 1")
        return value

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Its data."""
        return {"data": [{"source": name}]}

    def with_fold(self, fold: tuple[int, int]) -> Self:
        """Part k of K of the training rows as dev."""
        return self.model_copy(update={"fold": fold})

    def draws_rows(self) -> bool:
        """A dev set split off, a fold, and noise depend on the seed."""
        return not self.dev or self.fold is not None or any(spec.noise for spec in self.data)

    def sources(self) -> Iterator[str]:
        """Data, dev and evaluation sets."""
        yield from (spec.source for spec in (*self.data, *self.dev))
        yield from self.filter_against


def rating(specs: Iterable[DataSpec], names: Collection[str]) -> tuple[DataSpec, ...]:
    """The data entries that may rate one of these relations: those that name no columns, or one of theirs."""
    return tuple(spec for spec in specs if not spec.columns or not set(names).isdisjoint(spec.columns))


def own_entry(table: OwnTable, *, found: bool = False) -> dict[str, Any]:
    """A data entry for a user's table: its text columns as they were named, or as they were `found`."""
    columns = table.texts if found and table.corpus is None else table.named
    named = zip(("text_a", "text_b"), columns, strict=False)
    return {"source": table.name, **{key: column for key, column in named if column}}


def own_relations(
    table: OwnTable, known: Mapping[str, Mapping[str, Any]], kinds: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The relations of a table that a stage may learn, by name.

    Those that were declared, as they were declared. Otherwise those that the recipe knows by name, on the
    recipe's scale; if it knows none of them, all that were found.
    """
    fitting = [relation for relation in table.relations if relation.kind in kinds]
    if not table.declared:
        same = [relation for relation in fitting if relation.name in known]
        if same:
            return {relation.name: dict(known[relation.name]) for relation in same}
    return {relation.name: _declared(relation, known.get(relation.name, {})) for relation in fitting}


def _declared(relation: Relation, known: Mapping[str, Any]) -> dict[str, Any]:
    """A relation on the table's own scale; how it is measured and described stays as the recipe says it."""
    kept = {key: known[key] for key in ("metric", "description") if known.get(key)}
    return {**kept, **relation_table(relation)}


def left_out(table: OwnTable, learnt: Collection[str], lost: Sequence[str]) -> tuple[str, ...]:
    """What a user is told when a table replaces a stage's data: what is not answered, what is not learnt."""
    told = [f"{table.name} does not rate {', '.join(lost)}: the model will not answer that"] if lost else []
    for relation in table.relations:
        if relation.name not in learnt:
            scale = relation.scale if relation.kind == "graded" else "classes"
            option = relation_option(relation.name, scale)
            told.append(f"column {relation.name!r} ({relation.scale}) is not learnt; to learn it: {option}")
    return tuple(told)


def unrated(table: OwnTable, kinds: str) -> str:
    """Why a table cannot be learnt from: what it holds instead of ratings or labels."""
    others = [column for column in table.columns if column not in table.texts]
    found = (
        ", ".join(f"{r.name} ({r.scale})" for r in table.relations)
        or f"columns {', '.join(others) or 'none'}"
    )
    return f"it learns {kinds}, and beside its texts {table.name} has {found}"


def nothing_rated(table: OwnTable) -> Problem:
    """It is not clear what is to be learnt: no column looks like a rating."""
    columns = [column for column in table.columns if column not in table.texts]
    if not columns:
        remedy = "add ratings or labels; paraphrases without any are learnt by recipe paraphrase-injection"
        return Problem(table.name, "has no column beside its texts", remedy)
    found = f"no column looks like a rating; beside the texts it has {', '.join(columns)}"
    return Problem(table.name, found, f"name it: for labels {relation_option(columns[0], 'classes')}")


def several_rated(table: OwnTable) -> Problem:
    """It is not clear what is to be learnt: several columns are rated, and one relation is learnt."""
    found = f"rates {', '.join(relation.name for relation in table.relations)}, and one relation is learnt"
    remedy = " or ".join(
        relation_option(relation.name, relation.scale if relation.kind == "graded" else "classes")
        for relation in table.relations
    )
    return Problem(table.name, found, f"name it: {remedy}")
