"""The probability that two words or spans are linked: weights of features, fitted to links by people.

The weights are in `weights.toml`, which `python benchmarks/alignment.py --fit` writes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from likewise.phrases.measures import (
    CONTEXT_MEASURES,
    SPAN_MEASURES,
    WORD_MEASURES,
    context_measures,
    mutual,
    span_measures,
    word_measures,
)
from likewise.records import Array

FILE = Path(__file__).with_name("weights.toml")
MEASURES = {
    "words": WORD_MEASURES,
    "context": (*WORD_MEASURES, *CONTEXT_MEASURES),
    "spans": SPAN_MEASURES,
}


@dataclass(frozen=True, slots=True)
class Weights:
    """One weight for each feature, a constant, and the threshold (bar) above which items are linked."""

    weights: tuple[float, ...]
    constant: float
    bar: float

    def logits(self, measures: Array) -> Array:
        """The log odds of a link minus the threshold: positive means linked."""
        found: Array = measures @ np.array(self.weights) + (self.constant - self.bar)
        return found


@dataclass(frozen=True, slots=True)
class Scoring:
    """The weights for words, for words after a first guess, and for spans."""

    words: Weights
    context: Weights
    spans: Weights

    def word_logits(self, a: Sequence[str], b: Sequence[str], cosines: Array) -> Array:
        """The log odds that words are linked, n×m; a first guess is refined with its neighbours."""
        own = word_measures(a, b, cosines)
        first = self.words.logits(own)
        around = context_measures(first, mutual(first, 0.0))
        return self.context.logits(np.concatenate([own, around], axis=-1))

    def span_logits(
        self,
        a: Sequence[str],
        b: Sequence[str],
        spans_a: Sequence[Sequence[int]],
        spans_b: Sequence[Sequence[int]],
        cosines: Array,
        last: Array,
        word_logits: Array,
    ) -> Array:
        """The log odds that spans (numbers of their words) are linked, from the cosines of two layers."""
        return self.spans.logits(span_measures(a, b, spans_a, spans_b, cosines, last, chance(word_logits)))


def chance(logits: Array) -> Array:
    """Turn log odds into probabilities."""
    found: Array = 1 / (1 + np.exp(-np.clip(logits, -60, 60)))
    return found


@cache
def shipped() -> Scoring:
    """The weights that are shipped with Likewise."""
    document = tomllib.loads(FILE.read_text(encoding="utf8"))
    return Scoring(**{part: _read(document[part], names) for part, names in MEASURES.items()})


def _read(table: dict[str, float], names: Sequence[str]) -> Weights:
    return Weights(tuple(float(table[name]) for name in names), float(table["constant"]), float(table["bar"]))
