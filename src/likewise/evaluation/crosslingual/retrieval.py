"""Retrieval: is the nearest sentence of the other language the translation?

The accuracy of the nearest neighbour by cosine among all sentences of the other side (Artetxe & Schwenk 2019,
on Tatoeba), in both directions. A hit is the correct **text**: sentences that occur twice do not count as
misses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.errors import EvaluationError
from likewise.evaluation.crosslingual.language_pairs import PERCENT, TrainedLanguages
from likewise.evaluation.crosslingual.views import MODEL, RAW, TextVectors
from likewise.evaluation.intervals import Interval, mean_interval

Neighbours = NDArray[np.intp]

# Rows of the similarity matrix that are held at once: 1,024 × 10,000 floats are 40 MB.
BLOCK = 1024


class Parallel(Protocol):
    """Sentences and their translations, such as `data.parallel.ParallelText`."""

    @property
    def language_a(self) -> str:
        """The language of `a`."""

    @property
    def language_b(self) -> str:
        """The language of `b`."""

    @property
    def a(self) -> list[str]:
        """The sentences."""

    @property
    def b(self) -> list[str]:
        """Their translations."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Per cent of translations found: those of `a` among `b`, those of `b` among `a`, and their mean."""

    forward: float
    backward: float

    @property
    def mean(self) -> float:
        """The mean of both directions."""
        return (self.forward + self.backward) / 2


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """One parallel text with its accuracy in per cent. `raw` is None if there is no raw view."""

    language_a: str
    language_b: str
    n: int
    model: Accuracy
    raw: Accuracy | None = None
    held_out_language: bool | None = None

    @property
    def name(self) -> str:
        """The two languages, such as "de-en"."""
        return f"{self.language_a}-{self.language_b}"

    @property
    def difference(self) -> float | None:
        """Model minus raw, mean of both directions, in percentage points."""
        return None if self.raw is None else self.model.mean - self.raw.mean


@dataclass(frozen=True, slots=True)
class RetrievalAverage:
    """A plain mean over languages. The difference has an interval over the languages, None for one
    language.
    """

    name: str
    languages: int
    model: float
    raw: float | None = None
    difference: Interval | None = None


def measure_retrieval(
    vectors: TextVectors,
    texts: Sequence[Parallel],
    trained: TrainedLanguages,
    *,
    progress: Callable[[str], None] | None = None,
) -> tuple[RetrievalResult, ...]:
    """The accuracy of every parallel text, for the model and, if there are any, for raw vectors."""
    results = []
    for text in texts:
        if progress is not None:
            progress(f"retrieval {text.language_a}-{text.language_b}, {len(text.a):,} pairs")
        found = {view: _accuracy(vectors, view, text) for view in (MODEL, RAW) if view in vectors}
        lacks = trained.lacks_language(text.language_a, text.language_b)
        results.append(
            RetrievalResult(
                text.language_a, text.language_b, len(text.a), found[MODEL], found.get(RAW), lacks
            )
        )
    return tuple(results)


def average_retrieval(results: Sequence[RetrievalResult]) -> tuple[RetrievalAverage, ...]:
    """The mean over all languages and, if any are marked, over held-out ones."""
    held_out = [result for result in results if result.held_out_language]
    groups = {"all languages": list(results), "held-out languages": held_out}
    return tuple(_average(name, group) for name, group in groups.items() if group)


def find_nearest(a: Vectors, b: Vectors, *, block: int = BLOCK) -> tuple[Neighbours, Neighbours]:
    """The row of b nearest to each row of a, and of a to each row of b. Vectors have unit length; the
    first of equals wins.
    """
    forward = np.empty(len(a), dtype=np.intp)
    backward = np.zeros(len(b), dtype=np.intp)
    best = np.full(len(b), -np.inf, dtype=np.float32)
    for start in range(0, len(a), block):
        cosines = a[start : start + block] @ b.T
        forward[start : start + block] = cosines.argmax(axis=1)
        row = cosines.argmax(axis=0)
        top = cosines[row, np.arange(len(b))]
        better = top > best
        best[better], backward[better] = top[better], start + row[better]
    return forward, backward


def _accuracy(vectors: TextVectors, view: str, text: Parallel) -> Accuracy:
    if not text.a or len(text.a) != len(text.b):
        raise EvaluationError(
            f"{text.language_a}-{text.language_b}: there are {len(text.a)} sentences and "
            f"{len(text.b)} translations, but retrieval needs one translation for each sentence."
        )
    forward, backward = find_nearest(vectors.rows(view, text.a), vectors.rows(view, text.b))
    hits = (_hits(text.b, forward), _hits(text.a, backward))
    return Accuracy(*(PERCENT * sum(found) / len(text.a) for found in hits))


def _hits(gold: Sequence[str], nearest: Neighbours) -> list[bool]:
    return [gold[place] == wanted for place, wanted in zip(nearest.tolist(), gold, strict=True)]


def _average(name: str, results: Sequence[RetrievalResult]) -> RetrievalAverage:
    model = float(np.mean([result.model.mean for result in results]))
    raw = [result.raw.mean for result in results if result.raw is not None]
    gaps = [result.difference for result in results if result.difference is not None]
    difference = None
    if len(gaps) > 1:
        difference = replace(mean_interval(gaps), method=f"t over {len(gaps)} languages")
    return RetrievalAverage(name, len(results), model, float(np.mean(raw)) if raw else None, difference)
