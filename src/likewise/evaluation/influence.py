"""Influence values: what each row contributes to a metric, so that its error needs no resampling.

The value of a metric on n rows moves by about φ_i/n when row i weighs a little more (the infinitesimal
jackknife, Jaeckel 1972; Efron 1982). Its variance is then a sum over rows, or over rows that share a text.
Numbers may have any shape (..., n): the last axis holds the rows, so that simulations run many sets at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.inputs import Values, paired_labels, paired_numbers
from likewise.evaluation.metrics import compute, get_metric, positive_label
from likewise.records import Array

Influence = tuple[Array, Array]
_EDGE = 1e-12


def metric_influence(name: str, gold: Values, predicted: Values) -> tuple[float, Array]:
    """A named metric's value and the influence of each of N rows, shape (N,). The influences add up to 0."""
    value = compute(name, gold, predicted)
    if get_metric(name).compares_labels:
        x, y, names = paired_labels(gold, predicted)
        if name == "f1":
            code = names.index(positive_label(names))
            return value, f1_influence(x == code, y == code)[1]
        return value, _LABELS[name](x, y, len(names))
    numbers = paired_numbers(gold, predicted, least=1)
    return value, NUMBERS[name](*numbers)[1]


def pearson_influence(x: Array, y: Array) -> Influence:
    """Pearson's r, shape (...), and the effect of leaving out each row, shape (..., n).

    φ = (1 − r²)·(n − 1)·(atanh r − atanh r₍ᵢ₎), with r₍ᵢ₎ computed without row i: the jackknife of Fisher's
    z, put back on the scale of r. Its limit, z_x·z_y − r·(z_x² + z_y²)/2, is too small in small samples. The
    limit is used only if r is ±1 or all other rows are alike.
    """
    x, y = _standardised(x), _standardised(y)
    n = x.shape[-1]
    r = np.mean(x * y, axis=-1, keepdims=True)
    limit = x * y - r * (x * x + y * y) / 2
    left = (1 - x * x / (n - 1)) * (1 - y * y / (n - 1))
    without = (r - x * y / (n - 1)) / np.sqrt(np.maximum(left, _EDGE))
    usable = (left > _EDGE) & (np.abs(without) < 1 - _EDGE) & (np.abs(r) < 1 - _EDGE)
    gap = np.arctanh(np.where(usable, r, 0.0)) - np.arctanh(np.where(usable, without, 0.0))
    moved = np.where(usable, (1 - r * r) * (n - 1) * gap, limit)
    return np.clip(r[..., 0], -1.0, 1.0), moved - moved.mean(axis=-1, keepdims=True)


def spearman_influence(x: Array, y: Array) -> Influence:
    """Spearman's r with ties, and its influence, which includes that a row moves the ranks of all others.

    With the mid-distribution values F_i = (rank_i − ½)/n and G_i, r is their Pearson correlation. A row
    changes the mean of F·G by F_i·G_i + E[h(x_i, X)·G] + E[F·h(y_i, Y)] − 3·E[F·G], where h(a, b) = 1 for a <
    b and ½ for a = b.
    """
    by_x, by_y = _Ranks(x), _Ranks(y)
    f, g = by_x.middle, by_y.middle
    joint = f * g + by_x.above(g) + by_y.above(f)
    covariance = np.mean(f * g, axis=-1, keepdims=True) - 0.25
    spread_x, moved_x = _rank_spread(by_x)
    spread_y, moved_y = _rank_spread(by_y)
    scale = np.sqrt(spread_x * spread_y)
    r = covariance / scale
    moved = (joint - 3 * (covariance + 0.25)) / scale
    return np.clip(r[..., 0], -1.0, 1.0), moved - r / 2 * (moved_x / spread_x + moved_y / spread_y)


def mse_influence(x: Array, y: Array) -> Influence:
    """The mean squared difference, and how far each row's squared difference lies from it."""
    return _mean_influence((x - y) ** 2)


def mae_influence(x: Array, y: Array) -> Influence:
    """The mean absolute difference, and how far each row's absolute difference lies from it."""
    return _mean_influence(np.abs(x - y))


def accuracy_influence(x: NDArray[Any], y: NDArray[Any]) -> Influence:
    """The share of equal labels, and how far each row lies from it."""
    return _mean_influence(np.asarray(x == y, dtype=np.float64))


def f1_influence(x: NDArray[Any], y: NDArray[Any]) -> Influence:
    """F1 of two rows of truth values, and φ = (2·x·y − F1·(x + y)) / mean(x + y)."""
    both, either = np.asarray(x & y, dtype=np.float64), np.add(x, y, dtype=np.float64)
    size = np.mean(either, axis=-1, keepdims=True)
    value = 2 * np.mean(both, axis=-1, keepdims=True) / size
    return value[..., 0], (2 * both - value * either) / size


def _accuracy(x: NDArray[np.intp], y: NDArray[np.intp], count: int) -> Array:
    return accuracy_influence(x, y)[1]


def _f1_macro(x: NDArray[np.intp], y: NDArray[np.intp], count: int) -> Array:
    return np.asarray(np.mean([f1_influence(x == code, y == code)[1] for code in range(count)], axis=0))


def _matthews(x: NDArray[np.intp], y: NDArray[np.intp], count: int) -> Array:
    p, q = (np.bincount(codes, minlength=count) / len(codes) for codes in (x, y))
    hit = np.asarray(x == y, dtype=np.float64)
    spread_x, spread_y = 1 - p @ p, 1 - q @ q
    above, scale = hit.mean() - p @ q, np.sqrt(spread_x * spread_y)
    moved = hit - hit.mean() - (q[x] - p @ q) - (p[y] - p @ q)
    moved_x, moved_y = -2 * (p[x] - p @ p), -2 * (q[y] - q @ q)
    return np.asarray(moved / scale - above / scale / 2 * (moved_x / spread_x + moved_y / spread_y))


NUMBERS: dict[str, Callable[[Array, Array], Influence]] = {
    "pearson": pearson_influence,
    "spearman": spearman_influence,
    "mse": mse_influence,
    "mae": mae_influence,
}
_LABELS: dict[str, Callable[[NDArray[np.intp], NDArray[np.intp], int], Array]] = {
    "accuracy": _accuracy,
    "f1-macro": _f1_macro,
    "matthews": _matthews,
}


class _Ranks:
    """Numbers of shape (..., n) in order, with ties in runs."""

    def __init__(self, values: Array) -> None:
        self._n = values.shape[-1]
        self._order = np.argsort(values, axis=-1)
        ordered = np.take_along_axis(values, self._order, -1)
        at = np.broadcast_to(np.arange(self._n), ordered.shape)
        edge = np.ones((*ordered.shape[:-1], 1), dtype=bool)
        change = ordered[..., 1:] != ordered[..., :-1]
        starts, ends = np.concatenate((edge, change), -1), np.concatenate((change, edge), -1)
        self._first = np.maximum.accumulate(np.where(starts, at, 0), axis=-1)
        self._last = np.minimum.accumulate(np.where(ends, at, self._n)[..., ::-1], axis=-1)[..., ::-1]
        self.middle = self._restored((self._first + self._last + 1) / (2 * self._n))

    def above(self, weights: Array) -> Array:
        """Per row, the mean of the weights of the rows above it, plus half of the weights of the rows tied
        with it.
        """
        ordered = np.take_along_axis(weights, self._order, -1)
        sums = np.concatenate((np.zeros((*ordered.shape[:-1], 1)), np.cumsum(ordered, axis=-1)), -1)
        to_first = np.take_along_axis(sums, self._first, -1)
        to_last = np.take_along_axis(sums, self._last + 1, -1)
        return self._restored((sums[..., -1:] - (to_first + to_last) / 2) / self._n)

    def _restored(self, ordered: Array) -> Array:
        found = np.empty_like(ordered)
        np.put_along_axis(found, self._order, ordered, -1)
        return found


def _rank_spread(ranks: _Ranks) -> Influence:
    """The variance of the mid-distribution values, which is below 1/12 if there are ties, and its
    influence.
    """
    f = ranks.middle
    square = np.mean(f * f, axis=-1, keepdims=True)
    return square - 0.25, f * f + 2 * ranks.above(f) - 3 * square


def _standardised(values: Array) -> Array:
    """Values with mean 0 and mean square 1 along the last axis."""
    # Scaled first, so that neither tiny nor huge values leave the floating-point range when squared.
    values = values / np.abs(values).max(axis=-1, keepdims=True)
    values = values - values.mean(axis=-1, keepdims=True)
    values = values / np.abs(values).max(axis=-1, keepdims=True)
    return np.asarray(values / np.sqrt(np.mean(values * values, axis=-1, keepdims=True)))


def _mean_influence(values: Array) -> Influence:
    mean = np.mean(values, axis=-1, keepdims=True)
    return mean[..., 0], values - mean
