"""The contribution of a phrase: the score of two texts minus the score without the phrase, on the relation's
scale.

If a relation is answered by a label, the share of that label (0..1) takes the place of the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.answering import Answering
from likewise.data.links import Span
from likewise.phrases.blocks import Block, is_mark
from likewise.phrases.spans import Phrases

TextPair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contributions:
    """A pair's answer, the share of the answered label, and the contribution of each block of either text."""

    source: str
    answer: float | str
    share: float | None
    a: tuple[float | None, ...]
    b: tuple[float | None, ...]


def without(phrases: Phrases, span: Span) -> str | None:
    """A text without the words of a span, or None if only punctuation marks would be left."""
    first, last = span
    if all(map(is_mark, (*phrases.tokens[:first], *phrases.tokens[last:]))):
        return None
    start, end = phrases.words[first][0], phrases.words[last - 1][1]
    before, after = phrases.text[:start], phrases.text[end:]
    apart = before[-1:].isspace() and not is_mark(after.lstrip()[:1])
    return (before.rstrip() + (" " if apart else "") + after.lstrip()).strip()


def measure_carried(
    answering: Answering,
    relation: str,
    pairs: Sequence[tuple[Phrases, Phrases]],
    blocks: Sequence[tuple[Sequence[Block], Sequence[Block]]],
) -> list[Contributions]:
    """Measure the contributions of the blocks of pairs. All pairs, whole and without each block, are
    scored at once.
    """
    rows: list[TextPair] = []
    places: list[tuple[int, list[int | None], list[int | None]]] = []

    def place(a: str | None, b: str | None) -> int | None:
        if a is None or b is None:
            return None
        rows.append((a, b))
        return len(rows) - 1

    for (a, b), (blocks_a, blocks_b) in zip(pairs, blocks, strict=True):
        rows.append((a.text, b.text))
        whole = len(rows) - 1
        left_a = [place(without(a, block.span), b.text) for block in blocks_a]
        left_b = [place(a.text, without(b, block.span)) for block in blocks_b]
        places.append((whole, left_a, left_b))
    answers = answering.answer(rows, relation)
    labels = None if answers.probabilities is None else answers.relation.labels
    values = answers.probabilities
    if values is None:
        values = np.asarray(answers.values, dtype=np.float64)[:, None]
    found = []
    for whole, left_a, left_b in places:
        column = 0 if labels is None else int(values[whole].argmax())
        full = float(values[whole, column])
        carried = [
            tuple(None if at is None else round(full - float(values[at, column]), 6) for at in left)
            for left in (left_a, left_b)
        ]
        answer: float | str = round(full, 6) if labels is None else labels[column]
        found.append(
            Contributions(answers.source, answer, None if labels is None else round(full, 6), *carried)
        )
    return found
