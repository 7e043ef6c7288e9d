"""Family: how a class of models is saved, loaded, asked, described on its card and given a new relation.

One per model class, found by the model's `family` and by the key that marks its model.json
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
    """Where and how a loaded model computes; `encoder` is the function that some models were grown on."""

    device: str | None = None
    precision: str = "fp32"
    token_budget: int = DEFAULT_BUDGET
    encoder: TextFunction | None = None


class Family(ABC, Generic[M]):
    """What the house asks of a class of models."""

    @abstractmethod
    def save(self, model: M, folder: Path) -> dict[str, Any]:
        """Write the model's files into a folder; its part of model.json."""

    @abstractmethod
    def load(self, name: str | os.PathLike[str], document: Mapping[str, Any] | None, running: Running) -> M:
        """The model of a folder; without a document, an encoder that was taught nothing."""

    @abstractmethod
    def answerer(self, model: M, about: Mapping[str, Any], running: Running) -> Answerer:
        """The model, ready to answer."""

    @abstractmethod
    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        """What the folder's README says of this class of models."""

    def extend(self, model: M, relation: Relation, tell: Callable[[str], None]) -> None:
        """Let a model answer one more relation, untrained; refused where a family does not say how."""
        raise UsageError(f"this model cannot be given {relation.name}: train a model of both")


def family_called(name: str) -> Family[Any]:
    """The family of that name."""
    entry = find_family(name)
    if entry is None:
        raise ModelError(
            f"family {name!r} is not one of {', '.join(FAMILIES)}; install the package it comes with"
        )
    found: Family[Any] = resolve_class(entry.family)()
    return found


def family_of_model(model: nn.Module) -> Family[Any]:
    """The family of a model, by the name that its class bears."""
    return family_called(str(model.family))


def family_of_document(document: Mapping[str, Any] | None, where: object) -> Family[Any]:
    """The family that wrote a model.json; an encoder without one is asked as a model of pairs."""
    if document is None:
        return family_called(RAW_FAMILY)
    name = family_name(document)
    if name is None:
        raise ModelError(
            f"{where}: its model.json has no key of a known family ({', '.join(FAMILIES)}); upgrade likewise"
        )
    return family_called(name)


def answerer_of(model: nn.Module, about: Mapping[str, Any], running: Running | None = None) -> Answerer:
    """A model in memory, ready to answer."""
    return family_of_model(model).answerer(model, about, running or Running())
