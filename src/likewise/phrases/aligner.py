"""Aligner: finds the words and phrases of two texts that mean the same, each with a probability.

Words are linked first, many to many. Phrases are then linked along the two trees of phrases; the links of
their words are one of the features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likewise.data.links import Span
from likewise.errors import UsageError
from likewise.phrases.measures import cosines, means
from likewise.phrases.scoring import Scoring, shipped
from likewise.phrases.spans import Phrases, nodes
from likewise.phrases.states import WordLayers, WordStates
from likewise.phrases.trees import add_left_over, align_trees
from likewise.records import Array

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# A pair that breaks the trees' order needs better odds than one that keeps it: chance .73 over the bar.
LEFT_OVER_BAR = 1.0
# Every word is compared with every word, and encoders read no more than some hundreds.
MAX_WORDS = 1_000

Known = tuple[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class PhraseLink:
    """A link between two spans of words: the chance that people would link them, and their similarity.

    Both are 0..1. Spans are linked if the chance is at least .5. The strength is the spans' cosine in the
    encoder's last layer; it is closer than the chance to the scores that people give to their links.
    """

    a: Span
    b: Span
    chance: float
    strength: float


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """Two texts with their phrases, the links between words, and the links between longer phrases."""

    a: Phrases
    b: Phrases
    words: tuple[PhraseLink, ...]
    phrases: tuple[PhraseLink, ...]

    @property
    def links(self) -> tuple[PhraseLink, ...]:
        """All links, in the order of the first text."""
        return tuple(sorted((*self.words, *self.phrases), key=lambda link: (link.a, link.b)))


class Aligner:
    """Links words and phrases of two texts by the hidden states of an encoder."""

    def __init__(
        self, encoder: SentenceTransformer, *, layer: int | None = None, scoring: Scoring | None = None
    ) -> None:
        self._states = WordStates(encoder, layer=layer)
        self._scoring = scoring or shipped()

    @property
    def longest(self) -> int:
        """The number of tokens of a text that the encoder reads, including markers."""
        return self._states.longest

    def __call__(
        self,
        pairs: Sequence[tuple[Phrases, Phrases]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[AlignedPair]:
        """Align pairs; each distinct text is encoded once."""
        known = self.states_of([one for pair in pairs for one in pair])
        aligned = []
        for a, b in pairs:
            aligned.append(self.align(a, b, known[a.text, a.words], known[b.text, b.words]))
            if progress is not None:
                progress(1)
        return aligned

    def states_of(self, texts: Sequence[Phrases]) -> dict[Known, WordLayers]:
        """The word states of texts; each distinct text is encoded once."""
        distinct = list(dict.fromkeys((one.text, one.words) for one in texts))
        found = self._states([text for text, _ in distinct], [words for _, words in distinct])
        return dict(zip(distinct, found, strict=True))

    def reads_whole(self, text: str) -> bool:
        """Whether the encoder reads a text to its end."""
        # States may be any function; one that does not say where it cuts counts as reading all.
        reads_whole = getattr(self._states, "reads_whole", None)
        return reads_whole is None or bool(reads_whole(text))

    def align(self, a: Phrases, b: Phrases, states_a: WordLayers, states_b: WordLayers) -> AlignedPair:
        """Align two texts with their word states."""
        longest = max(len(a.words), len(b.words))
        if longest > MAX_WORDS:
            raise UsageError(
                f"a text has {longest:,} words, but at most {MAX_WORDS:,} can be aligned at once. "
                "Cut it into sentences or paragraphs."
            )
        if not a.words or not b.words:
            return AlignedPair(a, b, (), ())
        word_logits = self._scoring.word_logits(a.tokens, b.tokens, cosines(states_a.middle, states_b.middle))
        # A word that has no state (cut off by the encoder) is linked to nothing.
        word_logits[~states_a.middle.any(axis=1)] = word_logits[:, ~states_b.middle.any(axis=1)] = -np.inf
        alike = cosines(states_a.last, states_b.last)
        words = tuple(
            _link((i, i + 1), (j, j + 1), word_logits[i, j], alike[i, j])
            for i, j in np.argwhere(word_logits > 0).tolist()
        )
        return AlignedPair(a, b, words, self._phrases(a, b, states_a, states_b, word_logits))

    def _phrases(
        self, a: Phrases, b: Phrases, states_a: WordLayers, states_b: WordLayers, word_logits: Array
    ) -> tuple[PhraseLink, ...]:
        spans_a, children_a = nodes(a)
        spans_b, children_b = nodes(b)
        inner_a, inner_b = _ranges(spans_a), _ranges(spans_b)
        middle = cosines(means(states_a.middle, inner_a), means(states_b.middle, inner_b))
        last = cosines(means(states_a.last, inner_a), means(states_b.last, inner_b))
        gains = self._scoring.span_logits(a.tokens, b.tokens, inner_a, inner_b, middle, last, word_logits)
        bounds_a, bounds_b = np.array(spans_a), np.array(spans_b)
        pairs = add_left_over(
            align_trees(gains, children_a, children_b), gains, bounds_a, bounds_b, LEFT_OVER_BAR
        )
        return tuple(
            _link(spans_a[x], spans_b[y], gains[x, y], last[x, y])
            for x, y in pairs
            if len(inner_a[x]) > 1 or len(inner_b[y]) > 1
        )


def _link(a: Span, b: Span, logit: float, alike: float) -> PhraseLink:
    strength = min(max(float(alike), 0.0), 1.0)
    return PhraseLink(a, b, round(1 / (1 + math.exp(-logit)), 4), round(strength, 4))


def _ranges(spans: Sequence[Span]) -> list[range]:
    return [range(start, end) for start, end in spans]
