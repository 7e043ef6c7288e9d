"""The catalogue of named corpora: what each holds, under which licence, on which scale (corpora.toml)."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from likewise.errors import UsageError
from likewise.records import Relation

_DEV_NAMES = ("dev", "trial", "validation")


@dataclass(frozen=True, slots=True)
class Split:
    """One part of a corpus: its file below the data folder, its rows, the decompressed file's sha256."""

    name: str
    file: str
    rows: int
    sha256: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Rating:
    """A relation on its published scale; the stored cell becomes its value by `plus` or by `labels`."""

    relation: Relation
    column: str
    plus: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hub:
    """Where `datasets` finds the same rows in the same columns."""

    id: str
    config: str | None = None
    splits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    """One named corpus; a text "title+body" is two columns joined by a blank."""

    name: str
    title: str
    licence: str
    citation: str
    texts: tuple[str, ...]
    ratings: tuple[Rating, ...]
    splits: Mapping[str, Split]
    subset: str = ""
    hub: Hub | None = None

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations rated in this corpus, on their published scales."""
        return tuple(rating.relation for rating in self.ratings)

    def find_split(self, split: str | None = None) -> Split:
        """The named split, or the only one; dev, trial and validation are one name."""
        if split is None and len(self.splits) == 1:
            return next(iter(self.splits.values()))
        names = _DEV_NAMES if split in _DEV_NAMES else (split,)
        for name in (split, *names):
            if name in self.splits:
                return self.splits[name]
        known = ", ".join(self.splits)
        if split is None:
            example = f"{self.name}/{next(iter(self.splits))}"
            raise UsageError(f"corpus {self.name!r} has several splits ({known}); name one: {example}")
        raise UsageError(f"corpus {self.name!r} has no split {split!r}; choose one of {known}")


def corpus_names() -> tuple[str, ...]:
    """The names of all corpora, in the catalogue's order."""
    return tuple(_catalogue())


def find_corpus(name: str) -> Corpus:
    """The corpus of that name."""
    corpora = _catalogue()
    if name in corpora:
        return corpora[name]
    close = difflib.get_close_matches(name, corpora, n=1)
    hint = f"did you mean {close[0]}?" if close else "`likewise data list` shows them all"
    raise UsageError(f"no corpus is named {name!r}; {hint}")


@cache
def _catalogue() -> Mapping[str, Corpus]:
    text = resources.files("likewise.data").joinpath("corpora.toml").read_text(encoding="utf-8")
    return {name: _corpus(name, entry) for name, entry in tomllib.loads(text).items()}


def _corpus(name: str, entry: dict[str, Any]) -> Corpus:
    splits = {key: Split(key, **value) for key, value in entry.pop("splits").items()}
    ratings = tuple(_rating(key, value) for key, value in entry.pop("relations").items())
    hub = Hub(**entry.pop("hub")) if "hub" in entry else None
    texts = tuple(entry.pop("texts"))
    return Corpus(name=name, texts=texts, ratings=ratings, splits=splits, hub=hub, **entry)


def _rating(name: str, entry: dict[str, Any]) -> Rating:
    return Rating(Relation.parse(f"{name}:{entry.pop('scale')}"), **entry)
