"""The two registries: kinds of stages that a recipe may have, and families of models that a folder may hold.

    KINDS      kind of stage → its spec (the keys of the recipe) and its runner (how it is trained)
    FAMILIES   family → the class that saves, loads and asks its models, and the key that marks its model.json

Classes are named by `module:Class` and imported when they are first needed, so that `likewise --help` and
reading a recipe load no torch. Another package adds its own without a change here: by `register` and
`register_family`, or by entry points in the groups `likewise.kinds` and `likewise.families`. The entry points
name a `Kind` or a `FamilyEntry`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from likewise.errors import UsageError

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of stage: its spec and its runner, as classes or by name."""

    spec: str | type
    runner: str | type


@dataclass(frozen=True, slots=True)
class FamilyEntry:
    """A family of models: its class, and what its model.json shows without the class being loaded.

    `mark` is a key that only folders of this family have. `texts` is the number of texts in a row of such a
    model.
    """

    family: str | type
    mark: str
    texts: Callable[[Document], int] = lambda document: 2


KINDS: dict[str, Kind] = {
    "pairs": Kind("likewise.schema.pairs:PairsStage", "likewise.kinds.pairs:PairsRunner"),
    "labels": Kind("likewise.schema.labels:LabelsStage", "likewise.kinds.labels:LabelsRunner"),
    "joint": Kind("likewise.schema.joint:JointStage", "likewise.kinds.joint:JointRunner"),
    "inject": Kind("likewise.schema.inject:InjectStage", "likewise.kinds.inject:InjectRunner"),
    "distil": Kind("likewise.schema.distil:DistilStage", "likewise.kinds.distil:DistilRunner"),
    "parallel": Kind("likewise.schema.frozen:ParallelStage", "likewise.kinds.frozen:ParallelRunner"),
    "refine": Kind("likewise.schema.frozen:RefineStage", "likewise.kinds.frozen:RefineRunner"),
}
# What a stage is that does not say its kind.
DEFAULT_KIND = "pairs"

FAMILIES: dict[str, FamilyEntry] = {
    "pairs": FamilyEntry("likewise.predict.pairs:PairsFamily", "objectives"),
    "labels": FamilyEntry("likewise.predict.labels:LabelsFamily", "labels", lambda document: 1),
    "joint": FamilyEntry(
        "likewise.predict.joint:JointFamily", "joint", lambda document: int(document["joint"].get("texts", 2))
    ),
    "injected": FamilyEntry("likewise.predict.injected:InjectedFamily", "injected"),
}
# An encoder without a model.json is asked as a model of pairs: by its cosine.
RAW_FAMILY = "pairs"


def register(name: str, kind: Kind) -> None:
    """Add a kind of stage for this process. A kind that exists already cannot be replaced."""
    if name in KINDS:
        raise UsageError(f"there is a kind {name!r} already. Choose another name.")
    KINDS[name] = kind


def register_family(name: str, entry: FamilyEntry) -> None:
    """Add a family of models for this process. A family that exists already cannot be replaced."""
    if name in FAMILIES:
        raise UsageError(f"there is a family {name!r} already. Choose another name.")
    FAMILIES[name] = entry


def all_kinds() -> dict[str, Kind]:
    """All kinds: the registered ones, and those that installed packages offer."""
    from importlib.metadata import entry_points

    for point in entry_points(group="likewise.kinds"):
        if point.name not in KINDS:
            KINDS[point.name] = _loaded(point)
    return dict(KINDS)


def find_kind(name: str) -> Kind | None:
    """The kind with this name: a registered one, or one that an installed package offers."""
    return KINDS.get(name) or _from_packages(name, "likewise.kinds", KINDS)


def find_family(name: str) -> FamilyEntry | None:
    """The family with this name, looked up in the same way."""
    return FAMILIES.get(name) or _from_packages(name, "likewise.families", FAMILIES)


def family_name(document: Document) -> str | None:
    """The family that wrote a model.json: the one it names, or in an old folder the one whose mark it has."""
    named = document.get("family")
    if isinstance(named, str):
        return named if find_family(named) is not None else None
    return next((name for name, entry in FAMILIES.items() if entry.mark in document), None)


def texts_of_rows(document: Document) -> int:
    """The number of texts in a row of a model: 1, or 2 for pairs."""
    entry = find_family(family_name(document) or RAW_FAMILY)
    return 2 if entry is None else entry.texts(document)


def resolve_class(named: str | type) -> Any:
    """The class that an entry names."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        found = f"{named} is registered but cannot be loaded ({error})"
        raise UsageError(f"{found}. Install or repair the package that offers it.") from error


def _from_packages(name: str, group: str, known: dict[str, Any]) -> Any:
    """An entry that an installed package offers, kept for the next time. Packages are scanned only for
    unknown names.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=group, name=name):
        known[name] = _loaded(point)
    return known.get(name)


def _loaded(point: Any) -> Any:
    """The object of an entry point. An error names the package that cannot be loaded."""
    try:
        return point.load()
    except Exception as error:
        found = f"{point.name!r} of the package {point.value} cannot be loaded ({error})"
        raise UsageError(f"{found}. Repair or remove that package.") from error
