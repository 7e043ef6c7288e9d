"""The features of word pairs and span pairs by which the words and phrases of two texts are linked.

Cosines are rescaled for each pair of texts (0: their mean, 1: equal vectors), because the ranges of cosines
differ between encoders; one set of weights then serves all encoders. Cosines of the last layer are not
rescaled, because their level shows whether two phrases mean the same, and encoders are trained for this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.records import Array

_Item = TypeVar("_Item")
WORD_MEASURES = (
    *("cosine", "row_margin", "column_margin", "before", "after", "equal", "letters"),
    *("mark_against_word", "function_against_content", "both_function", "distance"),
)
CONTEXT_MEASURES = (
    *("first", "linked", "row_taken", "column_taken", "both_taken"),
    *(
        f"{what}_{where}"
        for where in ("before", "after", "up", "down", "left", "right")
        for what in ("linked", "chance")
    ),
    *("linked_chance", "row_free", "column_free", "both_free", "row_joins", "column_joins"),
)
SPAN_MEASURES = (
    *("cosine", "row_margin", "column_margin", "last_cosine", "covered_a", "covered_b", "free"),
    *("letters", "letters_row_margin", "letters_column_margin", "content", "mark", "distance", "length"),
)
# Cells of a block while rivals are compared: memory stays small however many spans there are.
_CELLS = 2_000_000
_SHIFTS = ((-1, -1), (1, 1), (-1, 0), (1, 0), (0, -1), (0, 1))
# Closed classes of English; other languages have none here, and the measure is then silent.
FUNCTION_WORDS = frozenset(
    "a an the this that these those of in on at to for from with by as into over up down off out and or but "
    "if is are was were be been being has have had do does did will would can could may might shall should "
    "must it its he she they we you i his her their our your my him them us me not no there who which "
    "what".split()
)


def cosines(a: Vectors, b: Vectors) -> Array:
    """The cosines of all rows of a with all rows of b."""
    found: Array = (unit(a) @ unit(b).T).astype(np.float64)
    return found


def unit(vectors: Vectors) -> Vectors:
    """The rows scaled to length 1; zero rows stay zero."""
    found: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    return found


def means(states: Vectors, spans: Sequence[Sequence[int]]) -> Vectors:
    """The mean state of each span; spans are given by the numbers of their words."""
    inside = _members(spans, len(states)).astype(np.float32)
    found: Vectors = inside @ states / inside.sum(1, keepdims=True)
    return found


def word_measures(a: Sequence[str], b: Sequence[str], cosines: Array) -> Array:
    """The features of every pair of words of two texts, n×m×len(WORD_MEASURES)."""
    scaled = on_scale_of_pair(cosines)
    around = np.zeros((len(a) + 2, len(b) + 2))
    around[1:-1, 1:-1] = scaled
    around[0, 0] = around[-1, -1] = 1.0
    low_a, low_b = [w.casefold() for w in a], [w.casefold() for w in b]
    marks_a, marks_b = _flags(low_a, _is_mark), _flags(low_b, _is_mark)
    function_a, function_b = (
        _flags(low_a, FUNCTION_WORDS.__contains__),
        _flags(low_b, FUNCTION_WORDS.__contains__),
    )
    both = function_a[:, None] & function_b[None]
    return np.stack(
        [
            scaled,
            margin(scaled),
            margin(scaled.T).T,
            around[:-2, :-2],
            around[2:, 2:],
            np.array([[u == v for v in low_b] for u in low_a], dtype=float).reshape(len(a), len(b)),
            _alike([_letters(w) for w in low_a], [_letters(w) for w in low_b]),
            marks_a[:, None] != marks_b[None],
            function_a[:, None] != function_b[None],
            both,
            np.abs(_places(len(a))[:, None] - _places(len(b))[None]),
        ],
        axis=-1,
    )


def context_measures(logits: Array, linked: Array) -> Array:
    """The features of a first guess: linked words, their neighbours, and whether a word is still free."""
    chance = 1 / (1 + np.exp(-logits))
    row = np.maximum(linked.sum(1, keepdims=True) - linked, 0)
    column = np.maximum(linked.sum(0, keepdims=True) - linked, 0)
    row_free, column_free = row + linked == 0, column + linked == 0
    near = [_shifted(m, *shift) for shift in _SHIFTS for m in (linked, chance)]
    return np.stack(
        [
            *(logits, linked, row, column, row * column, *near, linked * chance),
            *(row_free, column_free, row_free & column_free),
            row_free * np.maximum(near[4], near[6]) * chance,
            column_free * np.maximum(near[8], near[10]) * chance,
        ],
        axis=-1,
    )


def span_measures(
    a: Sequence[str],
    b: Sequence[str],
    spans_a: Sequence[Sequence[int]],
    spans_b: Sequence[Sequence[int]],
    cosines: Array,
    last: Array,
    chances: Array,
) -> Array:
    """The features of all pairs of spans, which are given by the numbers of their words.

    `cosines` are of the middle layer, `last` of the last layer; `chances` are the chances of the word links.
    """
    in_a, in_b = _members(spans_a, len(a)), _members(spans_b, len(b))
    sizes_a, sizes_b = in_a.sum(1), in_b.sum(1)
    low_a = [[a[i].casefold() for i in span] for span in spans_a]
    low_b = [[b[j].casefold() for j in span] for span in spans_b]
    marks_a, marks_b = (_flags(low, lambda words: all(map(_is_mark, words))) for low in (low_a, low_b))
    middle_a = in_a @ _places(len(a)) / sizes_a
    middle_b = in_b @ _places(len(b)) / sizes_b
    letters = _alike([_letters(" ".join(w)) for w in low_a], [_letters(" ".join(w)) for w in low_b])
    covered_a = in_a @ np.minimum(chances @ in_b.T, 1) / sizes_a[:, None]
    covered_b = (in_b @ np.minimum(chances.T @ in_a.T, 1) / sizes_b[:, None]).T
    # People link what is left over on both sides: "abduct" and "kidnapped" between parts that say the same.
    free = np.outer(in_a @ (1 - chances.max(axis=1)) / sizes_a, in_b @ (1 - chances.max(axis=0)) / sizes_b)
    apart_a, apart_b = in_a @ in_a.T == 0, in_b @ in_b.T == 0
    return np.stack(
        [
            *_with_margins(on_scale_of_pair(cosines), apart_a, apart_b),
            last,
            covered_a,
            covered_b,
            free,
            *_with_margins(letters, apart_a, apart_b),
            _alike([set(w) - FUNCTION_WORDS for w in low_a], [set(w) - FUNCTION_WORDS for w in low_b]),
            marks_a[:, None] | marks_b[None],
            np.abs(middle_a[:, None] - middle_b[None]),
            np.abs(np.log(sizes_a[:, None] / sizes_b[None])),
        ],
        axis=-1,
    )


def on_scale_of_pair(cosines: Array) -> Array:
    """Cosines rescaled to 0 at the mean of the pair of texts and to about 1 at equal vectors."""
    if not cosines.size:
        return cosines
    middle = cosines.mean()
    scaled: Array = (cosines - middle) / (1.0 - middle + 0.05)
    return scaled


def margin(scores: Array) -> Array:
    """The difference of each score from the best other score of its row; 0 if there is no other."""
    if scores.shape[1] < 2:
        return np.zeros_like(scores)
    ordered = np.sort(scores, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    return np.where(scores == best, scores - second, scores - best)


def _with_margins(
    scores: Array, apart_a: NDArray[np.bool_], apart_b: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    return scores, margin_apart(scores, apart_b), margin_apart(scores.T, apart_a).T


def margin_apart(scores: Array, apart: NDArray[np.bool_]) -> Array:
    """The difference of each score from the best of its row among spans that share no word; 0 without one.

    A phrase and its parts do not compete, because all of them may be linked.
    """
    rivals = np.empty_like(scores)
    step = max(1, _CELLS // max(scores.size, 1))
    for first in range(0, scores.shape[1], step):
        columns = slice(first, first + step)
        shown = np.where(apart[columns][None], scores[:, None, :], -np.inf)
        rivals[:, columns] = shown.max(axis=2, initial=-np.inf)
    return np.where(np.isfinite(rivals), scores - rivals, 0.0)


def mutual(scores: Array, above: float) -> Array:
    """1 where a score is the best of its row and column and above a threshold; the first of equals wins."""
    chosen = np.zeros_like(scores)
    if not scores.size:
        return chosen
    rows = np.arange(scores.shape[0])
    best = scores.argmax(axis=1)
    kept = (scores.argmax(axis=0)[best] == rows) & (scores[rows, best] > above)
    chosen[rows[kept], best[kept]] = 1.0
    return chosen


def _alike(a: Sequence[AbstractSet[str]], b: Sequence[AbstractSet[str]]) -> Array:
    """The Jaccard similarity of every set with every set; 0 for two empty sets."""
    common = np.array([[len(x & y) for y in b] for x in a], dtype=float).reshape(len(a), len(b))
    sizes = np.array([len(x) for x in a])[:, None] + np.array([len(y) for y in b])[None]
    found: Array = common / np.maximum(sizes - common, 1)
    return found


@lru_cache(maxsize=20_000)
def _letters(text: str) -> frozenset[str]:
    """The letter trigrams of a text, with marked ends."""
    marked = f"^{text}$"
    return frozenset(marked[i : i + 3] for i in range(max(len(marked) - 2, 1)))


def _is_mark(word: str) -> bool:
    return not any(letter.isalnum() for letter in word)


def _flags(items: Sequence[_Item], holds: Callable[[_Item], bool]) -> NDArray[np.bool_]:
    return np.array([holds(item) for item in items], dtype=np.bool_)


def _places(count: int) -> Array:
    return np.arange(count) / max(count, 1)


def _members(spans: Sequence[Sequence[int]], words: int) -> Array:
    found = np.zeros((len(spans), words))
    for row, span in enumerate(spans):
        found[row, list(span)] = 1.0
    return found


def _shifted(values: Array, down: int, right: int) -> Array:
    """The neighbour of each cell; zero beyond the edge."""
    padded = np.pad(values, 1)
    rows, columns = values.shape
    return padded[1 + down : 1 + down + rows, 1 + right : 1 + right + columns]
