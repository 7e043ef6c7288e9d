"""The alignment of trees against trying everything, and what the second pass may add."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from likewise.phrases.spans import given, nodes
from likewise.phrases.trees import add_left_over, align_trees, best_matching


def tree(words: int, spans: list[tuple[int, int]]):
    return nodes(given(" ".join("w" * 1 for _ in range(words)), spans, where="test"))


def allowed(pairs, spans_a, spans_b) -> bool:
    """One to one; what is inside here is inside there; what is apart here is apart there."""

    def relation(one, other):
        if one[0] <= other[0] and other[1] <= one[1]:
            return "around"
        if other[0] <= one[0] and one[1] <= other[1]:
            return "inside"
        return "apart"

    return all(
        x != u and y != v and relation(spans_a[x], spans_a[u]) == relation(spans_b[y], spans_b[v])
        for (x, y), (u, v) in combinations(pairs, 2)
    )


def best_of_all(gains, spans_a, spans_b) -> float:
    """The largest sum over all sets of pairs that keep what contains what."""
    cells = [cell for cell in product(range(len(spans_a)), range(len(spans_b))) if gains[cell] > 0]
    best = 0.0
    for size in range(1, min(len(spans_a), len(spans_b)) + 1):
        for pairs in combinations(cells, size):
            if allowed(pairs, spans_a, spans_b):
                best = max(best, sum(gains[cell] for cell in pairs))
    return best


def test_best_matching_leaves_out_what_does_not_gain():
    total, pairs = best_matching(np.array([[2.0, 1.5], [1.8, -1.0]]))
    assert (total, pairs) == (3.3, [(0, 1), (1, 0)])
    assert best_matching(np.array([[-1.0, -0.5]])) == (0.0, [])
    assert best_matching(np.array([[0.5], [0.7]])) == (0.7, [(1, 0)])


@pytest.mark.parametrize("seed", range(12))
def test_align_trees_keeps_order_and_is_nearly_the_best(seed):
    """A constrained alignment may be below the best that keeps containment; it never breaks the rule."""
    random = np.random.default_rng(seed)
    spans_a, children_a = tree(3, [(0, 2)])
    spans_b, children_b = tree(3, [(1, 3)])
    gains = random.normal(-1.0, 1.5, (len(spans_a), len(spans_b)))
    pairs = align_trees(gains, children_a, children_b)
    assert allowed(pairs, spans_a, spans_b)
    assert all(gains[pair] > 0 for pair in pairs)
    best = best_of_all(gains, spans_a, spans_b)
    assert sum(gains[pair] for pair in pairs) <= best + 1e-9
    assert sum(gains[pair] for pair in pairs) >= 0.6 * best


def test_align_trees_of_the_same_shape_is_the_best():
    _, children_a = tree(4, [(0, 2), (2, 4)])
    _, children_b = tree(4, [(0, 2), (2, 4)])
    gains = np.full((7, 7), -3.0)
    for node in range(7):
        gains[node, node] = 1.0
    assert align_trees(gains, children_a, children_b) == [(i, i) for i in range(7)]


def test_align_trees_skips_a_level():
    """A phrase is linked below one that has no partner."""
    spans_a, children_a = tree(4, [(0, 3), (0, 2)])
    spans_b, children_b = tree(3, [(0, 2)])
    gains = np.full((len(spans_a), len(spans_b)), -5.0)
    inner, outer = (spans_a.index((0, 2)), spans_b.index((0, 2))), (len(spans_a) - 1, len(spans_b) - 1)
    gains[inner] = gains[outer] = 2.0
    assert align_trees(gains, children_a, children_b) == sorted([inner, outer])


def test_align_trees_of_nothing():
    assert align_trees(np.zeros((0, 3)), [], [[], [], [0, 1]]) == []


def test_second_pass_adds_only_what_agrees():
    spans_a, _ = tree(4, [(0, 2), (2, 4)])
    spans_b, _ = tree(4, [(0, 2), (2, 4)])
    bounds_a, bounds_b = np.array(spans_a), np.array(spans_b)
    gains = np.full((7, 7), -3.0)
    left_a, right_b = spans_a.index((0, 2)), spans_b.index((2, 4))
    linked = [(left_a, spans_b.index((0, 2)))]
    word_a, word_b = spans_a.index((0, 1)), spans_b.index((2, 3))
    gains[word_a, word_b] = 3.0  # inside a linked phrase here, outside of it there
    gains[spans_a.index((2, 4)), right_b] = 3.0
    found = add_left_over(linked, gains, bounds_a, bounds_b, 1.0)
    assert found == sorted([*linked, (spans_a.index((2, 4)), right_b)])
    assert add_left_over(linked, gains, bounds_a, bounds_b, 4.0) == linked
