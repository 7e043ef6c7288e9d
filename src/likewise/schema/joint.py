"""Kind `joint`: a transformer that reads one text, or two as one input, fine-tuned on one relation."""

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

# A joint encoder learns from the same rows for longer: on dev 12 epochs of 1,000 pairs are better than 4
# (experiments paraphrase-epochs-*), 32 hardly more.
_ROWS_SEEN = 12_000


class JointStage(TrainedStage):
    """Fine-tuning of a transformer that reads one text, or two as one input, and answers one relation."""

    gives: ClassVar[str] = "joint"
    place: ClassVar[str] = "stands alone: its model is the encoder of another recipe"
    row_keys: ClassVar[frozenset[str]] = TrainedStage.row_keys | {"relation", "sample"}
    texts: ClassVar[frozenset[int]] = frozenset({1, 2})
    # Its head is a part of the network, which learns at one rate.
    retired: ClassVar[Mapping[str, object]] = {"head_learning_rate": None}
    kind: Literal["joint"]
    relation: str = Field(
        default="", description="what is learnt, of data that rates it; the recipe's first if empty"
    )
    sample: int | None = Field(
        default=None, gt=0, description="so many training rows, drawn by the recipe's seed; all if empty"
    )
    max_length: int = Field(default=128, gt=2, description="pieces; longer rows are cut")
    targets: Literal["standardised", "raw"] = Field(
        default="standardised",
        description="ratings around their mean in units of their spread, or as they are (the paper's script)",
    )
    dev_share: float = Field(
        default=0.1, ge=0, lt=1, description="share of data split off where no dev is given; 0: none"
    )
    epochs: float = Field(default=4, gt=0, le=MAX_EPOCHS)
    batch_size: int = Field(default=32, gt=0, le=MAX_BATCH)
    learning_rate: float = Field(default=3e-5, gt=0)
    select: bool = Field(default=False, description="keep the best dev step; otherwise the last")

    def named(self) -> Iterator[tuple[str, str]]:
        """The relation, if it names one."""
        if self.relation:
            yield "relation", self.relation

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        """The one relation that it learns."""
        return (self.relation or next(iter(known)),)

    def answers(self, known: Collection[str]) -> tuple[str, ...]:
        """Its relation, or each of the recipe's where it names none: they are learnt one at a time."""
        return (self.relation,) if self.relation else tuple(known)

    def only(self, names: Collection[str], learnt: Collection[str]) -> Self:
        """One relation, and of the data what may rate it."""
        [name] = names
        data, dev = rating(self.data, names), rating(self.dev, names)
        return self.model_copy(update={"relation": name, "data": data, "dev": dev})

    def draws_rows(self) -> bool:
        """A sample is drawn by the seed."""
        return self.sample is not None or super().draws_rows()

    def settled(self, known: Collection[str]) -> Self:
        """This stage with its relation named, and of its data what rates it."""
        [name] = self.rates(known)
        found = self.only([name], ())
        if not found.data:
            remedy = "name its column in the entry (columns)"
            raise RecipeError([Problem("stage.0.data", f"no data entry rates {name!r}", remedy)])
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
        """Refuse: its head is for one relation."""
        raise UsageError(f"{model} was fine-tuned on one relation: train another (likewise train finetune)")


def _settings(rows: int | None) -> dict[str, Any]:
    """Batch size and epochs of a small table; None, a table whose length is not known, counts as long."""
    if rows is None:
        return {}
    epochs = min(MOST_EPOCHS, math.ceil(_ROWS_SEEN / max(1, rows)))
    return settings_for_few(rows) | ({"epochs": epochs} if epochs > 4 else {})
