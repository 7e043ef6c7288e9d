"""Stage: the keys of one stage of a recipe, and the methods that other code may call for any kind.

A kind of stage is a subclass in a file of its own and a line in `likewise.registry`. Every method here is
light: it reads the spec, or a table that is already open, and does not load torch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    PositiveInt,
    field_validator,
    model_validator,
)

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
    """A stage with a user's table as its data: changed keys, relations, and notes for the user."""

    stage: Mapping[str, Any]
    relations: Mapping[str, Mapping[str, Any]]
    told: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """A task or relation that is added to a trained model: its words, and its rows if there are any.

    Answers are in the column of its name, unless `column` names another. `labels` maps each label to its
    label texts. `describe` and `scale` are the question and the scale of a relation of pairs.
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
    # Labels that a task of the model gets, each with its label texts; the addition is then no new task.
    new_labels: Mapping[str, Sequence[str]] | None = None


class Stage(Part):
    """One stage of a recipe, of any kind."""

    # What the stage before it may give; empty if it can only come first.
    takes: ClassVar[frozenset[str]] = frozenset()
    # What it hands to the next stage.
    gives: ClassVar[str] = ""
    # Where it may stand in a recipe: the end of a sentence that begins with its kind.
    place: ClassVar[str] = "must be the first stage"
    # Whether it learns relations: a recipe without such a stage needs none.
    asks: ClassVar[bool] = True
    # Whether the encoder may be a function from texts to vectors, as far as its spec can tell.
    takes_functions: ClassVar[bool] = False
    # Whether its rows may be kept on disk for the next run.
    reusable: ClassVar[bool] = False
    # The keys that decide which rows are read; all keys if this is empty.
    row_keys: ClassVar[frozenset[str]] = frozenset()
    # The numbers of texts that a row of its data may have.
    texts: ClassVar[frozenset[int]] = frozenset({2})
    # Keys that older recipes may still hold, each with the only value that is ignored.
    retired: ClassVar[Mapping[str, object]] = {}
    kind: str = Field(description="Kind of the stage, which decides what other keys it has.")
    name: Title = Field(default="", description="Name of the stage in the plan and in reports.")

    @classmethod
    def __pydantic_init_subclass__(cls, **rest: Any) -> None:
        """Copy the description of a key that a subclass defines again without one."""
        super().__pydantic_init_subclass__(**rest)
        for name, field in cls.model_fields.items():
            if field.description is None:
                field.description = _inherited_description(cls, name)

    @model_validator(mode="before")
    @classmethod
    def _without_retired_keys(cls, data: Any) -> Any:
        """Ignore a retired key at its old default; any other value stays and is refused by name."""
        if not isinstance(data, dict):
            return data
        return {
            key: value for key, value in data.items() if key not in cls.retired or value != cls.retired[key]
        }

    @classmethod
    def shape_of(cls, data: Any) -> type[Stage]:
        """The spec class of the kind that a stage names; the base class if there is no such kind."""
        kind = data.get("kind", DEFAULT_KIND) if isinstance(data, Mapping) else DEFAULT_KIND
        found = find_kind(str(kind))
        return cls if found is None else resolve_class(found.spec)

    def named(self) -> Iterator[tuple[str, str]]:
        """The path and the name of every relation that this stage mentions."""
        return iter(())

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The relations whose ratings or labels it reads; empty if it has no rated rows."""
        return ()

    def answers(self, known: Collection[str]) -> tuple[str, ...]:
        """The relations that a model answers after this stage; an experiment may train them one by one."""
        return self.rates(known)

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """This stage with some of the relations that the last stage learns; unchanged if it has none."""
        return self

    def with_fold(self, fold: tuple[int, int]) -> Self:
        """This stage with fold k of K of its training rows as dev."""
        found = f"the last stage is of kind {self.kind!r}, but only pairs, labels and joint have folds"
        raise RecipeError([Problem("folds", found, "remove folds, or use a recipe of one of those kinds")])

    def draws_rows(self) -> bool:
        """Whether its choice of rows depends on the recipe's seed."""
        return True

    def models(self) -> Iterator[str]:
        """Names or folders of the models that it reads besides the recipe's encoder."""
        return iter(())

    def sources(self) -> Iterator[str]:
        """The files and corpora of its rows, including dev and evaluation sets."""
        return iter(())

    def learns_from(self) -> Iterator[str]:
        """The files and corpora of its training rows: its sources without dev and evaluation sets."""
        beside = {spec.source for spec in getattr(self, "dev", ())} | {*getattr(self, "filter_against", ())}
        yield from (source for source in self.sources() if source not in beside)

    def own_texts(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        """Texts besides its rows that its encoder reads; a vocabulary of word vectors must cover them."""
        return iter(())

    def problems(self, encoder: EncoderSpec, *, first: bool) -> Iterator[tuple[str, str]]:
        """Keys of this stage that do not fit the rest of the recipe, each with the reason."""
        return iter(())

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """A user's table as this stage's data (`--data`), or the reason why not; `known` are relations."""
        return "it does not learn from a table"

    @classmethod
    def infer(cls, table: OwnTable) -> dict[str, Any] | str:
        """A whole recipe for a table alone (`train FILE`), or the reason why this kind has none."""
        return "it has no recipe for a table alone"

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Keys that a recipe may leave out because a user's table replaces them (`--data`)."""
        return {}

    def extendable(self) -> bool:
        """Whether its model can learn another relation without a new head."""
        return False

    def check_addition(self, addition: Addition, mode: str) -> None:
        """Raise an error if the mode needs rows and has none, or has rows and needs none."""

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """The relation of an addition, checked as far as possible without the model."""
        raise UsageError(
            f"{model} cannot learn {addition.name!r} later. Train a new model that learns the old relations "
            "and the new one together."
        )

    def widened(self, task: Relation, addition: Addition) -> Relation:
        """A task of the model with the labels that are added to it."""
        raise UsageError(
            f"a model of kind {self.kind!r} cannot learn another label later. Train a new model on all "
            "labels."
        )

    def adding(self, addition: Addition, relation: Relation) -> dict[str, Any]:
        """The keys of this stage that change when a relation and its rows are added."""
        raise self._not_extendable()

    def alone(self, relation: Relation) -> Self:
        """This stage with only the rows that were added last and the relation that they rate."""
        raise self._not_extendable()

    def _not_extendable(self) -> UsageError:
        return UsageError(
            f"a model of kind {self.kind!r} cannot learn another relation later. Train a new model that "
            "learns the old relations and the new one together."
        )


def _inherited_description(cls: type[Stage], key: str) -> str | None:
    """What the nearest base says of a key."""
    bases = (base for base in cls.__mro__[1:] if issubclass(base, Stage) and key in base.model_fields)
    return next((base.model_fields[key].description for base in bases), None)


def pick_stage(value: Any) -> Stage:
    """The spec of a stage, by its key `kind`; `pairs` if it has none."""
    if isinstance(value, Stage):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a stage must be a table of keys; write it below [[stage]]")
    shape = Stage.shape_of(value)
    if shape is Stage:
        raise _unknown_kind(value.get("kind"))
    return shape.model_validate(dict(value))


def _unknown_kind(kind: object) -> Exception:
    from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

    message = f"{kind!r} is not one of the kinds {', '.join(sorted(all_kinds()))}; choose one of them"
    error = PydanticCustomError("unknown_kind", "{message}", {"message": message})
    details: InitErrorDetails = {"type": error, "loc": ("kind",), "input": None}
    return ValidationError.from_exception_data("stage", [details])


# The keys that decide which rows a leak filter keeps.
FILTER_KEYS = frozenset({"filter_against", "leak_filter", "allow_leak"})


class FilteredStage(Stage):
    """Keys of stages whose rows are filtered against evaluation sets; their runners do the filtering."""

    filter_against: tuple[str, ...] = Field(
        default=(),
        description=(
            "Evaluation sets whose rows are dropped from training and dev data: suites (`sts7`), corpora "
            "(`stsb/test`) or files."
        ),
    )
    leak_filter: Literal["pair", "strict"] = Field(
        default="pair",
        description=(
            "Rows that the leak filter drops: those whose pair is in `filter_against` (`pair`), and also "
            "near-duplicates and rows that share a single text with it (`strict`)."
        ),
    )
    allow_leak: bool = Field(
        default=False,
        description="Keep the training rows that the leak filter would drop, and report their number.",
    )


# Descriptions of keys that several kinds define.
SELECT = "Keep the weights that are best on dev, instead of the last ones."
HEAD_RATE = "Learning rate of the heads, by default `learning_rate`."
DEV_SHARE = "Share of the training rows that is split off as the dev set if `dev` is empty."
KEEP_START = (
    "With `select`, count the starting model (step 0) as a candidate, so that it is kept if no step is "
    "better on dev."
)


class OptimisedStage(Stage):
    """Keys of stages that `training.fit` trains: optimisation, and when it stops."""

    epochs: float = Field(
        default=1,
        gt=0,
        le=MAX_EPOCHS,
        description="Number of passes over the training rows, which may be a fraction.",
    )
    max_steps: int | None = Field(
        default=None, gt=0, description="Number of optimiser steps, which then replaces `epochs`."
    )
    batch_size: int = Field(
        default=16, gt=0, le=MAX_BATCH, description="Rows per batch, over all processes together."
    )
    order: Literal["length", "random", "fixed"] = Field(
        default="length",
        description=(
            "Order of rows: rows of similar length share a batch, rows are shuffled in every epoch, or they "
            "are shuffled once (`fixed`)."
        ),
    )
    token_budget: int | None = Field(
        default=None,
        gt=0,
        description=(
            "Number of tokens, padding included, at which a batch is closed before it is full; needs "
            '`order = "length"`.'
        ),
    )
    accumulation: int = Field(
        default=1, gt=0, le=MAX_BATCH, description="Number of batches that make one optimiser step."
    )
    optimiser: Literal["adamw", "sgd"] = Field(
        default="adamw", description="Algorithm that updates the weights."
    )
    learning_rate: float = Field(
        default=2e-5,
        gt=0,
        description="Peak learning rate, also of the heads unless `head_learning_rate` is set.",
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Momentum of `sgd`.")
    weight_decay: float = Field(
        default=0.01, ge=0, description="Weight decay of all weights except biases and LayerNorm weights."
    )
    layer_decay: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description=(
            "Factor on the learning rate from each transformer layer to the one below it; embeddings and "
            "heads keep the full learning rate."
        ),
    )
    rate_schedule: Literal["linear", "constant", "cosine", "paper", "code", "infersent"] = Field(
        default="linear",
        description="Course of the learning rate after warm-up; the last three follow published rules.",
    )
    warmup: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="Share of the steps in which the learning rate rises to its peak.",
    )
    clip: float = Field(
        default=1.0, ge=0, description="Largest norm of the gradient; 0 switches clipping off."
    )
    average: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description=(
            "Decay of a running mean of the weights, which is measured on dev and kept instead of them; 0 "
            "switches it off."
        ),
    )
    freeze: tuple[str, ...] = Field(
        default=(),
        description=(
            "Parameters that are not trained, by the beginning of their names: `encoder`, "
            "`encoder.0.model.embeddings`, `heads`."
        ),
    )
    evaluate_every: int | None = Field(
        default=None, gt=0, description="Optimiser steps between two evaluation steps, by default one epoch."
    )
    save_every: int | None = Field(
        default=None,
        gt=0,
        description="Optimiser steps between two checkpoints, by default one epoch but at most 500 steps.",
    )
    patience: int | None = Field(
        default=None,
        gt=0,
        description="Early stopping: number of evaluation steps in a row without a better dev value.",
    )
    stop_after: int | None = Field(
        default=None,
        gt=0,
        description="Early stopping: number of evaluation steps without a better dev value, in a row or not.",
    )
    select: bool = Field(default=True, description=SELECT)
    keep_start: bool = Field(default=True, description=KEEP_START)

    @model_validator(mode="after")
    def _momentum_of_sgd(self) -> Self:
        if self.momentum and self.optimiser != "sgd":
            found = f"is {self.momentum:g}, but only optimiser 'sgd' has a momentum, not {self.optimiser!r}"
            raise ValueError(f"momentum: {found}; remove the key, or set optimiser to 'sgd'")
        return self


class TrainedStage(OptimisedStage, FilteredStage):
    """Keys of stages that learn from rated or labelled rows: their data and dev sets."""

    row_keys: ClassVar[frozenset[str]] = FILTER_KEYS | {"data", "dev", "dev_share", "dev_by", "fold"}
    later: ClassVar[frozenset[str]] = frozenset({"dev_by"})

    data: tuple[DataSpec, ...] = Field(
        min_length=1, max_length=MAX_ENTRIES, description="Entries with the training rows."
    )
    dev: tuple[DataSpec, ...] = Field(
        default=(),
        max_length=MAX_ENTRIES,
        description="Entries with the dev set; without any, `dev_share` of the training rows becomes it.",
    )
    dev_share: float = Field(default=0.1, gt=0, lt=1, description=DEV_SHARE)
    dev_by: Literal["row", "text"] = Field(
        default="row",
        description=(
            "How the dev set is split off: rows that share texts go to one side together, unless they are "
            "most of all rows (`row`); or no text is ever on both sides, and rows with one text on each side "
            "are left out (`text`)."
        ),
    )
    fold: tuple[PositiveInt, PositiveInt] | None = Field(
        default=None,
        description=(
            "`[k, K]` cuts `data` into K folds, takes fold k as the dev set and trains on the others; `dev` "
            "is then not read."
        ),
    )

    @field_validator("fold")
    @classmethod
    def _one_of_several(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and not (value[0] <= value[1] and value[1] > 1):
            expected = "[k, K] needs a K of at least 2, and a k from 1 to K"
            raise ValueError(f"is {list(value)}, but {expected}; correct it, such as [1, {max(2, value[1])}]")
        return value

    @model_validator(mode="after")
    def _split_off_by(self) -> Self:
        given = "fold" if self.fold is not None else "dev" if self.dev else ""
        if given and self.dev_by != "row":
            found = f"says how a dev set is split off, but `{given}` already says what the dev set is"
            raise ValueError(f"dev_by: {found}; remove one of the two keys")
        return self

    @classmethod
    def left_to(cls, name: str) -> dict[str, Any]:
        """Its data."""
        return {"data": [{"source": name}]}

    def with_fold(self, fold: tuple[int, int]) -> Self:
        """Fold k of K of the training rows as dev."""
        return self.model_copy(update={"fold": fold, "dev_by": "row"})

    def draws_rows(self) -> bool:
        """True with a split-off dev set, a fold or noise, which all depend on the seed."""
        return not self.dev or self.fold is not None or any(spec.noise for spec in self.data)

    def sources(self) -> Iterator[str]:
        """Data, dev and evaluation sets."""
        yield from (spec.source for spec in (*self.data, *self.dev))
        yield from self.filter_against


def rating(specs: Iterable[DataSpec], names: Collection[str]) -> tuple[DataSpec, ...]:
    """The data entries that may rate one of these relations: they name its column, or no column at all."""
    return tuple(spec for spec in specs if not spec.columns or not set(names).isdisjoint(spec.columns))


def own_entry(table: OwnTable, *, found: bool = False) -> dict[str, Any]:
    """A data entry for a user's table, with its text columns as the user named them or as `found`."""
    columns = table.texts if found and table.corpus is None else table.named
    named = zip(("text_a", "text_b"), columns, strict=False)
    return {"source": table.name, **{key: column for key, column in named if column}}


def own_relations(
    table: OwnTable, known: Mapping[str, Mapping[str, Any]], kinds: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The relations of a table that a stage may learn, by name.

    Declared relations are taken as declared. Otherwise the table's relations that the recipe has too are
    taken, on the recipe's scale; if there is none, all relations that were found are taken.
    """
    fitting = [relation for relation in table.relations if relation.kind in kinds]
    if not table.declared:
        same = [relation for relation in fitting if relation.name in known]
        if same:
            return {relation.name: dict(known[relation.name]) for relation in same}
    return {relation.name: _declared(relation, known.get(relation.name, {})) for relation in fitting}


def _declared(relation: Relation, known: Mapping[str, Any]) -> dict[str, Any]:
    """A relation on the table's own scale, with the metric and description of the recipe."""
    kept = {key: known[key] for key in ("metric", "description") if known.get(key)}
    return {**kept, **relation_table(relation)}


def left_out(table: OwnTable, learnt: Collection[str], lost: Sequence[str]) -> tuple[str, ...]:
    """Notes for the user when a table replaces a stage's data: what is not answered and what not learnt."""
    told = [f"{table.name} does not rate {', '.join(lost)}, so the model will not answer it"] if lost else []
    for relation in table.relations:
        if relation.name not in learnt:
            scale = relation.scale if relation.kind == "graded" else "classes"
            option = relation_option(relation.name, scale)
            told.append(
                f"column {relation.name!r} ({relation.scale}) is not learnt; to learn it, add {option}"
            )
    return tuple(told)


def unrated(table: OwnTable, kinds: str) -> str:
    """Why a table cannot be learnt from: what it has instead of ratings or labels."""
    others = [column for column in table.columns if column not in table.texts]
    rated = ", ".join(f"{r.name} ({r.scale})" for r in table.relations)
    found = rated or (f"only the columns {', '.join(others)}" if others else "nothing")
    return f"it learns {kinds}, but besides its texts {table.name} has {found}"


def nothing_rated(table: OwnTable) -> Problem:
    """The problem of a table in which no column looks like a rating."""
    columns = [column for column in table.columns if column not in table.texts]
    if not columns:
        remedy = "add a column of them, or learn paraphrases without any by recipe paraphrase-injection"
        return Problem(
            table.name, "has no column besides its texts, but ratings or labels are needed", remedy
        )
    found = f"has the columns {', '.join(columns)} besides its texts, but none looks like a rating"
    declared = relation_option(columns[0], "classes")
    return Problem(table.name, found, f"declare the one to learn, for example as labels with {declared}")


def several_rated(table: OwnTable) -> Problem:
    """The problem of a table with several rated columns where only one relation can be learnt."""
    found = f"rates {', '.join(relation.name for relation in table.relations)}, but only one can be learnt"
    remedy = " or ".join(
        relation_option(relation.name, relation.scale if relation.kind == "graded" else "classes")
        for relation in table.relations
    )
    return Problem(table.name, found, f"declare it: {remedy}")
