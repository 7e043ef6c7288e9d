"""Which rows share a text. Such rows are not independent, so a standard error has to count them together.

Each row holds one or two texts. Two rows depend on each other if they share one of them, on either side. The
variance of a mean is then the sum of φ_i·φ_j over all pairs of rows that share a text (Fafchamps & Gubert
2007; Aronow, Samii & Assenova 2015). If only one side recurs, this is the usual clustered variance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.data.keys import text_key
from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.inputs import Codes
from likewise.records import Array

GroupKeys = Sequence[Hashable] | NDArray[np.generic]
Texts = Sequence[Sequence[Hashable]]


class Sharing:
    """The rows of a test set, n of them, and which of them share a text.

    `keys` holds a number per text, shape (n, 1) or (n, 2). Rows that share a number share a text. Without
    keys all rows are independent. Values may have any shape (..., n).
    """

    def __init__(self, n: int, keys: Codes | None = None) -> None:
        self.n = n
        pairs = np.arange(n)[:, None] if keys is None else np.sort(keys, axis=1)
        first, last = pairs[:, 0], pairs[:, -1]
        two = np.flatnonzero(first != last)
        rows = np.concatenate((np.arange(n), two))
        self._texts = _Groups(rows, np.concatenate((first, last[two])))
        # A pair of rows that shares both texts is counted under each of them: once too often.
        self._pairs = _Groups(two, first[two] * (int(pairs.max(initial=0)) + 1) + last[two])
        self.independent = self._texts.largest < 2

    def variance(self, values: Array) -> Array:
        """The sum of v_i·v_j over all ordered pairs of rows that share a text, including each row with
        itself.

        If chance makes it nearly zero or negative, the sum of v_i² is used instead.
        """
        plain = np.sum(values * values, axis=-1)
        if self.independent:
            return np.asarray(plain)
        found = self._over(values)
        return np.where(found > 0.1 * plain, found, plain)

    def effective(self, values: Array, scale: Array | None = None) -> Array:
        """How many independent groups of rows carry a variance, shape (...): its degrees of freedom plus one.

        The number is 2·E[V]²/Var[V] of the variance (Satterthwaite 1946). It is computed once for values that
        do not depend on each other, n² / (number of pairs of rows that share a text), and once with the
        dependence found in the values, where a text that is in very many rows weighs more. The smaller one
        counts. `scale` is the size of each row's value, if sizes are known to differ. Rows whose value is 0
        carry nothing.
        """
        size = (values != 0).astype(np.float64) if scale is None else np.broadcast_to(scale, values.shape)
        square = size * size
        total = np.sum(square, axis=-1)
        if self.independent:
            return np.asarray(total**2 / np.maximum(np.sum(square * square, axis=-1), 1e-300))
        plain = total**2 / np.maximum(self._over(square), 1e-300)
        shared = self._over(size)
        excess = self.variance(values) - np.sum(values * values, axis=-1)
        unit = np.sum(values * values, axis=-1) / np.maximum(total, 1e-300)
        room = np.maximum((shared - total) * unit, 1e-300)
        inside = np.clip(excess / room, 0.0, 1.0)[..., None]
        first, second = self._moments(size, square, inside)
        return np.asarray(np.minimum(plain, first**2 / np.maximum(second, 1e-300)))

    def _moments(self, size: Array, square: Array, inside: Array) -> tuple[Array, Array]:
        first, second = 0.0, 0.0
        for groups, sign in ((self._texts, 1.0), (self._pairs, -1.0)):
            expected = (1 - inside) * groups.sums(square) + inside * groups.sums(size) ** 2
            first = first + sign * np.sum(expected, axis=-1)
            second = second + sign * np.sum(expected**2, axis=-1)
        return np.asarray(first), np.asarray(second)

    def _over(self, values: Array) -> Array:
        """The sum of v_i·v_j over all pairs of rows that share a text."""
        texts, pairs = (np.sum(groups.sums(values) ** 2, axis=-1) for groups in (self._texts, self._pairs))
        return np.asarray(texts - pairs)


class _Groups:
    """Rows under keys, with one key or more per row."""

    def __init__(self, rows: Codes, keys: Codes) -> None:
        order = np.argsort(keys, kind="stable")
        self._rows, keys = rows[order], keys[order]
        change = np.concatenate((np.ones(min(1, len(keys)), dtype=bool), keys[1:] != keys[:-1]))
        self._starts = np.flatnonzero(change)
        self.largest = int(np.diff(np.append(self._starts, len(keys))).max(initial=0))

    def sums(self, values: Array) -> Array:
        """The sum of the values under each key; shape (..., keys)."""
        if not len(self._starts):
            return np.zeros((*values.shape[:-1], 0))
        return np.asarray(np.add.reduceat(values[..., self._rows], self._starts, axis=-1))


def row_sharing(n: int, *, texts: Texts | None = None, groups: GroupKeys | None = None) -> Sharing:
    """Sharing of n rows from their texts, one or two per row, or from one group key per row.

    Texts are compared as in audits, by letters and digits alone. Other keys, such as numbers, count as they
    are.
    """
    if texts is not None and groups is not None:
        raise UsageError(
            "both texts and groups are given, but only one of them can say which rows depend. Leave one out."
        )
    if texts is None and groups is None:
        return Sharing(n)
    rows = [(key,) for key in groups] if groups is not None else [tuple(row) for row in texts or ()]
    if len(rows) != n:
        raise EvaluationError(f"there are {n} rows, but {len(rows)} sets of texts. Give one set per row.")
    widths = {len(row) for row in rows}
    if not widths <= {1, 2}:
        raise EvaluationError(f"rows hold {sorted(widths)} texts, but one or two per row are expected.")
    numbers: dict[Hashable, int] = {}
    known = text_key if groups is None else str
    coded = [
        [numbers.setdefault(known(key) if isinstance(key, str) else key, len(numbers)) for key in row]
        for row in rows
    ]
    return Sharing(n, np.asarray([(row[0], row[-1]) for row in coded], dtype=np.intp).reshape(n, 2))


def text_numbers(rows: Sequence[Sequence[str]], known: dict[str, int] | None = None) -> list[tuple[int, ...]]:
    """A number for each text of each row, equal if texts are the same. `known` continues the numbers of
    other rows.
    """
    numbers = {} if known is None else known
    return [tuple(numbers.setdefault(text_key(text), len(numbers)) for text in row) for row in rows]


def text_fingerprints(rows: Sequence[Sequence[str]]) -> NDArray[np.uint64]:
    """The same from the texts alone, shape (n, 1) or (n, 2): the first 8 bytes of the sha256 of their keys.

    Rows of any two runs on the same data have the same numbers, and the texts cannot be read from them.
    """
    known: dict[str, int] = {}
    for row in rows:
        for text in row:
            if text not in known:
                known[text] = int.from_bytes(hashlib.sha256(text_key(text).encode()).digest()[:8], "little")
    return np.asarray([[known[text] for text in row] for row in rows], dtype=np.uint64)
