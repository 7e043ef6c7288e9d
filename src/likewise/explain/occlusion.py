"""What a phrase carries: the score of two texts less the score without the phrase, on the relation's scale.

Where a relation is answered by a label, the share of that label (0..1) is counted instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.methods.pairs import Objective, PairModel
from likewise.phrases.blocks import Block, is_mark
from likewise.phrases.spans import Phrases, Span

Pair = tuple[str, str]
_CLASSES = "classes"


class Scorer(Protocol):
    """What an explanation asks of a model; a Predictor is one."""

    model: PairModel
    about: dict[str, Any]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts, N×d."""

    def score(self, pairs: Any, *, relation: str) -> Mapping[str, NDArray[np.float64] | list[str]]:
        """Answers by relation."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A pair's answer, the share of the label it is, and what the blocks of either text carry."""

    answer: float | str
    share: float | None
    a: tuple[float | None, ...]
    b: tuple[float | None, ...]


def without(phrases: Phrases, span: Span) -> str | None:
    """A text with the words of a span left out; None where nothing but marks would be left."""
    first, last = span
    if all(map(is_mark, (*phrases.tokens[:first], *phrases.tokens[last:]))):
        return None
    start, end = phrases.words[first][0], phrases.words[last - 1][1]
    before, after = phrases.text[:start], phrases.text[end:]
    apart = before[-1:].isspace() and not is_mark(after.lstrip()[:1])
    return (before.rstrip() + (" " if apart else "") + after.lstrip()).strip()


def measure(
    scorer: Scorer,
    objective: Objective,
    pairs: Sequence[tuple[Phrases, Phrases]],
    blocks: Sequence[tuple[Sequence[Block], Sequence[Block]]],
) -> list[Carried]:
    """What the blocks of pairs carry; all pairs, whole and without each block, are scored at once."""
    rows: list[Pair] = []
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
    values, labels = _values(scorer, objective, rows)
    found = []
    for whole, left_a, left_b in places:
        column = 0 if labels is None else int(values[whole].argmax())
        full = float(values[whole, column])
        carried = [
            tuple(None if at is None else round(full - float(values[at, column]), 6) for at in left)
            for left in (left_a, left_b)
        ]
        answer: float | str = round(full, 6) if labels is None else labels[column]
        found.append(Carried(answer, None if labels is None else round(full, 6), *carried))
    return found


def _values(
    scorer: Scorer, objective: Objective, rows: Sequence[Pair]
) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Per pair the score, N×1, or the share of each label, N×C, with the labels."""
    name = objective.relation.name
    if objective.head != _CLASSES:
        numbers = np.asarray(scorer.score(list(rows), relation=name)[name], dtype=np.float64)
        return numbers[:, None], None
    texts = list(dict.fromkeys(text for row in rows for text in row))
    at = {text: place for place, text in enumerate(texts)}
    vectors = torch.from_numpy(np.asarray(scorer.encode(texts))).to(scorer.model.encoder.device)
    with torch.inference_mode():
        u, v = (vectors[[at[row[side]] for row in rows]] for side in (0, 1))
        logits = scorer.model.output(objective, u, v)
        shares: NDArray[np.float64] = logits.double().softmax(dim=-1).cpu().numpy()
    return shares, objective.relation.labels
