"""The catalogue of named corpora (corpora.toml): what each holds, on which scale, and under which licence."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from likewise.errors import UsageError
from likewise.records import Relation
from likewise.wording import sentence

CorpusKind = Literal["rated", "translations", "paraphrases"]

# What a corpus of each kind holds, and where that is read.
_HOLDS: dict[CorpusKind, tuple[str, str]] = {
    "rated": ("rated pairs", "use it under `data`, or with load_corpus"),
    "translations": ("translations", "use it under `parallel`, or with read_parallel"),
    "paraphrases": ("paraphrases", "read it with read_paraphrases"),
}

_DEV_NAMES = ("dev", "trial", "validation")
_CROSSED = re.compile("([^-_]+)-([^-_]+)_(.+)")


@dataclass(frozen=True, slots=True)
class SeededDraw:
    """Rows `start` to `stop` of a seeded order of `of` rows.

    In this order the values of column `by` alternate, or rows that share texts stand together (`apart`).
    """

    seed: int
    by: str
    of: int
    start: int
    stop: int
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """One part of a corpus: its file below the data folder, its rows, and the sha256 of the decompressed
    file.

    If `where` is given, only rows with one of its values belong to the split, and of these only the rows in
    `draw`. `labels` replace the corpus's labels by relation, for a file that spells them differently. A
    crossed split has two `sides`: its first texts come from one side, its second texts from the other.
    """

    name: str
    file: str
    rows: int
    sha256: str = ""
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    draw: SeededDraw | None = None
    language: str = "en"
    sides: tuple[Split, ...] = ()

    @property
    def languages(self) -> tuple[str, ...]:
        """The language of its texts, or both languages if it crosses two or holds translations."""
        return tuple(self.language.split("-"))

    @property
    def part(self) -> str:
        """The split's name without its languages: "test" of "de_test" and "en-de_test"."""
        return self.name.removeprefix(f"{self.language}_")


@dataclass(frozen=True, slots=True)
class Rating:
    """A relation on its published scale. `plus` or `labels` turn the stored cell into its value."""

    relation: Relation
    column: str
    plus: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hub:
    """Where the `datasets` package finds the same rows in the same columns."""

    id: str
    config: str | None = None
    splits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    """One named corpus. A text column "title+body" stands for two columns joined by a blank.

    A "rated" corpus holds rated pairs or texts. A "translations" corpus holds sentences and their
    translations without ratings; `read_parallel` reads it. A "paraphrases" corpus holds unrated texts with
    the same meaning, the first column paired with each of the others, whose cells may be lists;
    `read_paraphrases` reads it. A `translated` corpus has splits XX_SPLIT with the same rows in each
    language, and so splits XX-YY_SPLIT too.
    """

    name: str
    title: str
    licence: str
    citation: str
    texts: tuple[str, ...]
    ratings: tuple[Rating, ...]
    splits: Mapping[str, Split]
    subset: str = ""
    hub: Hub | None = None
    kind: CorpusKind = "rated"
    translated: bool = False

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations rated in this corpus, on their published scales."""
        return tuple(rating.relation for rating in self.ratings)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its splits, each once."""
        return tuple(dict.fromkeys(code for split in self.splits.values() for code in split.languages))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its splits without their languages, each once."""
        return tuple(dict.fromkeys(split.part for split in self.splits.values()))

    @property
    def language_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of languages of a parallel corpus, each once; () for other corpora."""
        if self.kind != "translations":
            return ()
        return tuple(dict.fromkeys((s.languages[0], s.languages[1]) for s in self.splits.values()))

    def require(self, kind: CorpusKind) -> None:
        """Refuse a corpus of another kind. The error says how to use that corpus."""
        if self.kind == kind:
            return
        found, remedy = _HOLDS[self.kind]
        raise UsageError(
            f"corpus {self.name!r} holds {found}, but {_HOLDS[kind][0]} are expected. {sentence(remedy)}"
        )

    def find_split(self, split: str | None = None) -> Split:
        """The split with this name, or the only split. The names dev, trial and validation mean the same.

        In a translated corpus, "en-de_test" has first texts in English and second texts in German.
        """
        if split is None and len(self.splits) == 1:
            return next(iter(self.splits.values()))
        names = _DEV_NAMES if split in _DEV_NAMES else (split,)
        for name in (split, *names):
            if name in self.splits:
                return self.splits[name]
        if split is None:
            example = f"{self.name}/{next(iter(self.splits))}"
            raise UsageError(
                f"corpus {self.name!r} has several splits ({self._choices()}). Name one of them, "
                f"such as {example}."
            )
        crossed = self._cross(split) if self.translated else None
        if crossed is None:
            raise UsageError(f"corpus {self.name!r} has no split {split!r}. Choose one of {self._choices()}.")
        return crossed

    def _cross(self, name: str) -> Split | None:
        """The split of two languages that a name such as "en-de_test" asks for."""
        asked = _CROSSED.fullmatch(name)
        if asked is None:
            return None
        code_a, code_b, part = asked.groups()
        first, second = self.splits.get(f"{code_a}_{part}"), self.splits.get(f"{code_b}_{part}")
        if first is None or second is None:
            return None
        if first is second:
            return first
        return Split(name, first.file, first.rows, language=f"{code_a}-{code_b}", sides=(first, second))

    def _choices(self) -> str:
        if not self.translated:
            return ", ".join(self.splits)
        languages, parts = ", ".join(self.languages), ", ".join(self.parts)
        return f"XX_SPLIT or XX-YY_SPLIT, with the languages {languages} and the splits {parts}"


def corpus_names() -> tuple[str, ...]:
    """The names of all corpora, in the catalogue's order."""
    return tuple(_catalogue())


def find_corpus(name: str) -> Corpus:
    """The corpus with this name."""
    corpora = _catalogue()
    if name in corpora:
        return corpora[name]
    close = difflib.get_close_matches(name, corpora, n=1)
    hint = f"did you mean {close[0]}?" if close else "run `likewise data list` to see all names"
    raise UsageError(f"there is no corpus {name!r}. {sentence(hint)}")


def parallel_names(name: str, part: str | None = None) -> tuple[str, ...]:
    """The names that `read_parallel` accepts for a parallel corpus: "tatoeba/en-de_train", …, of one part
    or of all.
    """
    corpus = find_corpus(name)
    corpus.require("translations")
    if part is not None and part not in corpus.parts:
        raise UsageError(f"corpus {name!r} has no part {part!r}. Choose one of {', '.join(corpus.parts)}.")
    return tuple(f"{name}/{split.name}" for split in corpus.splits.values() if part in (None, split.part))


@cache
def _catalogue() -> Mapping[str, Corpus]:
    text = resources.files("likewise.data").joinpath("corpora.toml").read_text(encoding="utf-8")
    return {name: _corpus(name, entry) for name, entry in tomllib.loads(text).items()}


def _corpus(name: str, entry: dict[str, Any]) -> Corpus:
    splits = {key: _split(key, value) for key, value in entry.pop("splits").items()}
    ratings = tuple(_rating(key, value) for key, value in entry.pop("relations", {}).items())
    hub = Hub(**entry.pop("hub")) if "hub" in entry else None
    texts = tuple(entry.pop("texts", ()))
    return Corpus(name=name, texts=texts, ratings=ratings, splits=splits, hub=hub, **entry)


def _split(name: str, entry: dict[str, Any]) -> Split:
    asked = entry.pop("where", {}).items()
    where = {column: [value] if isinstance(value, str) else value for column, value in asked}
    draw = SeededDraw(**{"by": "", **entry.pop("draw")}) if "draw" in entry else None
    return Split(name, where=where, draw=draw, **entry)


def _rating(name: str, entry: dict[str, Any]) -> Rating:
    relation = Relation.parse(f"{name}:{entry.pop('scale')}")
    said = entry.pop("texts", {})
    if said:
        relation = replace(relation, texts=tuple((said.get(label, label),) for label in relation.labels))
    return Rating(relation, **entry)


def is_parallel_corpus(name: str) -> bool:
    """Whether a name, such as tatoeba_laser/de, names parallel text and not rated pairs."""
    head = name.partition("/")[0]
    return head in corpus_names() and find_corpus(head).kind == "translations"
