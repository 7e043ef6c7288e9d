"""The best alignment of two trees of phrases that respects nesting, then links that this rule excluded.

First pass, bottom up (a constrained tree edit distance, with gains instead of costs): below a linked pair of
phrases, only their parts are linked with each other. D(x, y), the best total below x and y, is the largest of
  gain(x, y) + the best matching of the children of x with those of y: the pair is linked,
  that matching alone,
  D(child of x, y), where x and its other children stay unlinked, and D(x, child of y).
A phrase may stay unlinked: a gain is log odds minus the threshold, so an unlikely pair is worse than none.

Second pass, longest phrases first: likely pairs of phrases that are still unlinked and whose linked
surroundings agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from likewise.records import Array

Children = Sequence[Sequence[int]]
NodePair = tuple[int, int]


def best_matching(gains: Array) -> tuple[float, list[NodePair]]:
    """The one-to-one pairs with the largest sum of gains; pairs without a gain are left out."""
    if not (gains > 0).any():
        return 0.0, []
    if 1 in gains.shape:
        i, j = divmod(int(gains.argmax()), gains.shape[1])
        return float(gains[i, j]), [(i, j)]
    rows, columns = linear_sum_assignment(np.maximum(gains, 0.0), maximize=True)
    pairs = [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if gains[i, j] > 0]
    return float(sum(gains[i, j] for i, j in pairs)), pairs


def _matched(gains: Array) -> float:
    """The sum of the best matching of gains that are not negative."""
    if gains.shape[0] == 1:
        return float(gains.max())
    rows, columns = linear_sum_assignment(gains, maximize=True)
    return float(gains[rows, columns].sum())


def align_trees(gains: Array, children_a: Children, children_b: Children) -> list[NodePair]:
    """The aligned pairs of nodes; children come before their parents, and the root is last."""
    if not gains.size:
        return []
    totals = _totals(gains, children_a, children_b)
    pairs: list[NodePair] = []
    open_cells = [(len(children_a) - 1, len(children_b) - 1)]
    while open_cells:
        x, y = open_cells.pop()
        linked, below = _choice(x, y, gains, totals, children_a, children_b)
        if linked:
            pairs.append((x, y))
        open_cells.extend(below)
    return sorted(pairs)


def _totals(gains: Array, children_a: Children, children_b: Children) -> Array:
    """D of all pairs of nodes."""
    linked = np.maximum(gains, 0.0)
    totals = np.zeros_like(gains)
    inner_b = [(y, list(below)) for y, below in enumerate(children_b) if below]
    for x, below_a in enumerate(children_a):
        row = linked[x].copy()
        if below_a:
            own = totals[list(below_a)]
            best = own.max(axis=0)
            row = np.maximum(row, best)
            alive = best.tolist()
            for y, below_b in inner_b:
                # Where at most one child of y has a partner, that pair is the matching.
                live = [child for child in below_b if alive[child] > 0]
                together = _matched(own[:, live]) if len(live) > 1 else sum(alive[child] for child in live)
                row[y] = max(row[y], linked[x, y] + together)
        cells = row.tolist()
        for y, below_b in inner_b:
            # Children of y come before y, so their totals in this row are final.
            cells[y] = max(cells[y], *(cells[child] for child in below_b))
        totals[x] = cells
    return totals


def _choice(
    x: int, y: int, gains: Array, totals: Array, children_a: Children, children_b: Children
) -> tuple[bool, list[NodePair]]:
    """The choice behind D(x, y): whether the pair is linked, and the cells below it that continue."""
    total = totals[x, y]
    if total <= 0:
        return False, []
    below_a, below_b = list(children_a[x]), list(children_b[y])
    if below_a and below_b:
        together, pairs = best_matching(totals[np.ix_(below_a, below_b)])
        if isclose(total, together + max(gains[x, y], 0.0)):
            return bool(gains[x, y] > 0), [(below_a[i], below_b[j]) for i, j in pairs]
    elif isclose(total, gains[x, y]):
        return True, []
    for child in below_a:
        if isclose(total, totals[child, y]):
            return False, [(child, y)]
    for child in below_b:
        if isclose(total, totals[x, child]):
            return False, [(x, child)]
    return True, []


def add_left_over(
    pairs: Sequence[NodePair],
    gains: Array,
    spans_a: NDArray[np.int64],
    spans_b: NDArray[np.int64],
    bar: float,
) -> list[NodePair]:
    """The second pass: likely pairs of unlinked phrases, longest first, that no linked pair contradicts."""
    found = list(pairs)
    taken_a, taken_b = {x for x, _ in found}, {y for _, y in found}
    lengths = (spans_a[:, 1] - spans_a[:, 0])[:, None] + (spans_b[:, 1] - spans_b[:, 0])[None]
    rows, columns = np.nonzero(gains > bar)
    order = np.lexsort((columns, rows, -gains[rows, columns], -lengths[rows, columns]))
    for x, y in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if x not in taken_a and y not in taken_b and _agrees(x, y, found, spans_a, spans_b):
            found.append((x, y))
            taken_a.add(x)
            taken_b.add(y)
    return sorted(found)


def _agrees(
    x: int, y: int, pairs: Sequence[NodePair], spans_a: NDArray[np.int64], spans_b: NDArray[np.int64]
) -> bool:
    """Whether the linked phrases around x are linked with those around y."""
    for other_x, other_y in pairs:
        around_x, around_y = _inside(spans_a[x], spans_a[other_x]), _inside(spans_b[y], spans_b[other_y])
        if around_x != around_y:
            return False
    return True


def _inside(inner: NDArray[np.int64], outer: NDArray[np.int64]) -> bool:
    return bool(outer[0] <= inner[0] and inner[1] <= outer[1])
