"""Family: how a class of models is saved, loaded, used, described on its card and given a new relation.

Each model class has one, which is found by the model's `family` and by the key that marks its model.json
(`likewise.registry`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch import nn

from likewise.answering import CUT, Long
from likewise.encoders.vectors import DEFAULT_BUDGET
from likewise.errors import ModelError, UsageError
from likewise.records import Relation
from likewise.registry import FAMILIES, RAW_FAMILY, family_name, find_family, resolve_class
from likewise.store.card import CardParts

if TYPE_CHECKING:
    from likewise.encoders.external import TextFunction
    from likewise.predict.asking import Answerer

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Running:
    """Where and how a loaded model computes; `encoder` is the function on which it was trained, if any.

    `long` says what becomes of texts that are longer than the encoder's limit.
    """

    device: str | None = None
    precision: str = "fp32"
    token_budget: int = DEFAULT_BUDGET
    encoder: TextFunction | None = None
    long: Long = CUT

    def computing(self) -> dict[str, Any]:
        """The settings of a model with text vectors."""
        return {"precision": self.precision, "token_budget": self.token_budget, "long": self.long}


class Family(ABC, Generic[M]):
    """The operations that each class of models must provide."""

    @abstractmethod
    def save(self, model: M, folder: Path) -> dict[str, Any]:
        """Write the model's files into a folder; returns its part of model.json."""

    @abstractmethod
    def load(self, name: str | os.PathLike[str], document: Mapping[str, Any] | None, running: Running) -> M:
        """Load the model of a folder; without a document, it is a raw encoder."""

    @abstractmethod
    def answerer(self, model: M, about: Mapping[str, Any], running: Running) -> Answerer:
        """An Answerer for the model."""

    @abstractmethod
    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        """The parts of the model card that are specific to this class of models."""

    def extend(self, model: M, relation: Relation, tell: Callable[[str], None]) -> None:
        """Let a model answer one more relation without training; most families raise an error."""
        raise UsageError(
            f"{relation.name} cannot be added to this kind of model. Train a new model that learns both."
        )


def family_called(name: str) -> Family[Any]:
    """The family with this name."""
    entry = find_family(name)
    if entry is None:
        raise ModelError(
            f"model family {name!r} is not one of {', '.join(FAMILIES)}. Install the package that adds it."
        )
    found: Family[Any] = resolve_class(entry.family)()
    return found


def family_of_model(model: nn.Module) -> Family[Any]:
    """The family of a model, by the name in its class."""
    return family_called(str(model.family))


def family_of_document(document: Mapping[str, Any] | None, where: object) -> Family[Any]:
    """The family that wrote a model.json; an encoder without one is used as a pair model."""
    if document is None:
        return family_called(RAW_FAMILY)
    name = family_name(document)
    if name is None:
        raise ModelError(
            f"{where}: model.json has no key of a known family ({', '.join(FAMILIES)}). Upgrade Likewise."
        )
    return family_called(name)


def answerer_of(model: nn.Module, about: Mapping[str, Any], running: Running | None = None) -> Answerer:
    """An Answerer for a model in memory."""
    return family_of_model(model).answerer(model, about, running or Running())
