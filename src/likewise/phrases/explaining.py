"""What two texts share and where they part: every word's best match, and the phrase that is matched least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.phrases.aligner import Aligner, Alignment
from likewise.phrases.measures import cosines
from likewise.phrases.spans import Phrases, Span, nodes
from likewise.phrases.states import Layers

# A word with a better match than this speaks for "the same". Chosen on edits of train, before a look at dev
# (python benchmarks/explaining.py --choose): higher bars cover more edits, by longer phrases.
MATCHED = 0.75


@dataclass(frozen=True, slots=True)
class Explanation:
    """An alignment, how well each word is matched by the other text (0..1), and the least matched phrases."""

    alignment: Alignment
    matched_a: tuple[float, ...]
    matched_b: tuple[float, ...]
    odd_a: Span | None
    odd_b: Span | None


def explain(aligner: Aligner, pairs: Sequence[tuple[Phrases, Phrases]]) -> list[Explanation]:
    """Explain pairs of texts whose phrases are there."""
    known = aligner.states_of([one for pair in pairs for one in pair])
    found = []
    for a, b in pairs:
        states_a, states_b = known[a.text, a.words], known[b.text, b.words]
        matched_a, matched_b = word_matches(states_a, states_b)
        found.append(
            Explanation(
                aligner.align(a, b, states_a, states_b),
                matched_a,
                matched_b,
                least_matched(a, matched_a),
                least_matched(b, matched_b),
            )
        )
    return found


def word_matches(a: Layers, b: Layers) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Per word of either text the cosine of its best match in the other, in the last layer, 0..1."""
    alike = np.clip(cosines(a.last, b.last), 0.0, 1.0)
    return _rounded(alike.max(axis=1, initial=0.0)), _rounded(alike.max(axis=0, initial=0.0))


def least_matched(phrases: Phrases, matched: Sequence[float], bar: float = MATCHED) -> Span | None:
    """The phrase with the most that is unmatched: the largest sum of what its words lack to the bar.

    Words above the bar count against a phrase, so it does not grow beyond what differs. None where every word
    is matched. Marks count nothing; of equals the shortest, then the first.
    """
    lacking = [
        bar - match if any(letter.isalnum() for letter in token) else 0.0
        for token, match in zip(phrases.tokens, matched, strict=True)
    ]
    sums = np.concatenate([[0.0], np.cumsum(lacking)])
    spans, _ = nodes(phrases)
    best = max(spans, key=lambda s: (round(sums[s[1]] - sums[s[0]], 6), s[0] - s[1], -s[0]), default=None)
    return best if best is not None and sums[best[1]] - sums[best[0]] > 0 else None


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
