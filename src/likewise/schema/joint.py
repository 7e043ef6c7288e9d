"""Kind `joint`: fine-tune a transformer that reads one text, or two as one input, on one relation."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from likewise.data.own import OwnTable
from likewise.errors import DataError, Problem, RecipeError, UsageError
from likewise.records import Relation
from likewise.schema.base import (
    Addition,
    Adopted,
    TrainedStage,
    nothing_rated,
    own_entry,
    rating,
    several_rated,
)
from likewise.schema.pairs import MOST_EPOCHS, settings_for_few
from likewise.schema.parts import MAX_BATCH, MAX_EPOCHS, relation_table
from likewise.spelling import spelt_call

# With 1,000 pairs, 12 epochs are better on dev than 4, and 32 hardly better than 12
# (experiments paraphrase-epochs-*).
_ROWS_SEEN = 12_000


class JointStage(TrainedStage):
    """Fine-tuning of a transformer that reads one text, or two as one input, and answers one relation."""

    gives: ClassVar[str] = "joint"
    place: ClassVar[str] = "must be the only stage of a recipe; use its model as the encoder of another one"
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"relation", "sample"}
    texts: ClassVar[frozenset[int]] = frozenset({1, 2})
    # Its head is part of the network, which has one learning rate.
    retired: ClassVar[Mapping[str, object]] = {"head_learning_rate": None}
    kind: Literal["joint"]
    relation: str = Field(
        default="",
        description="Relation that is learnt, from the data that rates it; the recipe's first if empty.",
    )
    sample: int | None = Field(
        default=None, gt=0, description="Number of training rows, drawn by the recipe's seed; all by default."
    )
    max_length: int = Field(default=128, gt=2, description="Number of tokens after which an input is cut.")
    targets: Literal["standardised", "raw"] = Field(
        default="standardised",
        description=(
            "Learn ratings as distances from their mean in standard deviations (`standardised`), or as they "
            "are (`raw`, as in the paper's script)."
        ),
    )
    dev_share: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description=(
            "Share of the training rows that is split off as the dev set if `dev` is empty; with 0 there is "
            "no dev set."
        ),
    )
    epochs: float = Field(default=4, gt=0, le=MAX_EPOCHS)
    batch_size: int = Field(default=32, gt=0, le=MAX_BATCH)
    learning_rate: float = Field(default=3e-5, gt=0)
    select: bool = Field(default=False)

    def named(self) -> Iterator[tuple[str, str]]:
        """The relation, if it names one."""
        if self.relation:
            yield "relation", self.relation

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The one relation that it learns."""
        return (self.relation or next(iter(known)),)

    def answers(self, known: Collection[str]) -> tuple[str, ...]:
        """Its relation; if it names none, each of the recipe's, which are learnt one at a time."""
        return (self.relation,) if self.relation else tuple(known)

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """One relation, and the data entries that may rate it."""
        [name] = names
        data, dev = rating(self.data, names), rating(self.dev, names)
        return self.model_copy(update={"relation": name, "data": data, "dev": dev})

    def draws_rows(self) -> bool:
        """True with a sample, which is drawn by the seed, and in the cases of all such stages."""
        return self.sample is not None or super().draws_rows()

    def settled(self, known: Collection[str]) -> Self:
        """This stage with its relation named, and with the data entries that rate it."""
        [name] = self.rates(known)
        found = self.only([name], ())
        if not found.data:
            missing = f"no entry rates {name!r}, the relation that is learnt"
            remedy = "name its column in an entry (columns), or set stage.0.relation to another relation"
            raise RecipeError([Problem("stage.0.data", missing, remedy)])
        return found

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        """Pairs or single texts with one rating or label."""
        if len(table.relations) != 1:
            raise DataError([several_rated(table) if table.relations else nothing_rated(table)])
        [relation] = table.relations
        changed = {
            "relation": relation.name,
            "data": [own_entry(table, found=True)],
            "dev": [],
            "filter_against": [],
            "dev_share": 0.1,
            **_settings(table.rated),
        }
        return Adopted(changed, {relation.name: relation_table(relation)})

    def new_relation(self, addition: Addition, model: str) -> Relation:
        """Raise an error, because its head is for one relation."""
        raise UsageError(
            f"{model} was fine-tuned on one relation and cannot learn another. Train a new model with "
            f"{spelt_call('train', 'finetune')}."
        )


def _settings(rows: int | None) -> dict[str, Any]:
    """Batch size and epochs for a small table; a table of unknown length (None) counts as long."""
    if rows is None:
        return {}
    epochs = min(MOST_EPOCHS, math.ceil(_ROWS_SEEN / max(1, rows)))
    return settings_for_few(rows) | ({"epochs": epochs} if epochs > 4 else {})
