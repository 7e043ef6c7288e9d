"""Rows of gold and predicted values, checked before a metric sees them; what is wrong is said in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError
from likewise.records import Array

Values = Sequence[Any] | NDArray[Any]
Codes = NDArray[np.intp]

# Spread below this share of the largest value is rounding error (scipy warns of it, at 1e-13 of the mean).
_CONSTANT = 1e-12


def check_spread(values: Array, what: str) -> None:
    """Refuse numbers that are all alike, of which no correlation exists."""
    low, high = float(values.min()), float(values.max())
    if high - low <= _CONSTANT * max(abs(low), abs(high)):
        raise EvaluationError(
            f"the {what} are all {high:g}: a correlation needs values that differ; "
            "a collapsed model or a saturated head gives such scores, a file of one score such gold"
        )


def paired_numbers(gold: Values, predicted: Values, *, least: int) -> tuple[Array, Array]:
    """Two rows of N ≥ `least` finite numbers, shape (N,) each."""
    rows = [_row(gold, "gold values"), _row(predicted, "predictions")]
    if len(rows[0]) != len(rows[1]):
        raise EvaluationError(f"{len(rows[0])} gold values and {len(rows[1])} predictions do not pair up")
    if len(rows[0]) < least:
        raise EvaluationError(f"{len(rows[0])} values are too few: at least {least} are needed")
    return rows[0], rows[1]


def _row(values: Values, what: str) -> Array:
    try:
        row = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvaluationError(
            f"the {what} are not numbers: this metric compares numbers, not labels"
        ) from None
    if row.ndim != 1:
        raise EvaluationError(f"the {what} have shape {row.shape}: expected one number per pair")
    finite = np.isfinite(row)
    if not finite.all():
        count, where = int((~finite).sum()), int(np.argmin(finite))
        raise EvaluationError(
            f"{count} of {len(row)} {what} are missing or infinite (first at index {where}); "
            "leave such rows out, or find out why the model gives them"
        )
    return row


def paired_labels(gold: Values, predicted: Values) -> tuple[Codes, Codes, list[Any]]:
    """Two rows of N ≥ 1 labels as positions in the sorted list of labels, shape (N,) each, and that list."""
    x, y = _label_row(gold, "gold labels"), _label_row(predicted, "predicted labels")
    if len(x) != len(y):
        raise EvaluationError(f"{len(x)} gold labels and {len(y)} predicted labels do not pair up")
    if not len(x):
        raise EvaluationError("there are no labels to compare")
    if (x.dtype.kind == "U") != (y.dtype.kind == "U"):
        raise EvaluationError(
            f"gold labels such as {x[0].item()!r} and predictions such as {y[0].item()!r} cannot agree; "
            "labels come from a head (--source head), not from the cosine"
        )
    names, codes = np.unique(np.concatenate((x, y)), return_inverse=True)
    if y.dtype.kind == "f" and bool(np.any(y % 1 != 0)) and not np.isin(y, x).any():
        raise EvaluationError(f"this metric compares labels; map scores such as {y[0]:g} to labels first")
    return codes[: len(x)], codes[len(x) :], names.tolist()


def _label_row(values: Values, what: str) -> NDArray[Any]:
    row = np.asarray(values)
    if row.ndim != 1 and row.size:
        raise EvaluationError(f"the {what} have shape {row.shape}: expected one label per pair")
    mixed = row.dtype.kind == "U" and not all(isinstance(value, str) for value in values)
    missing = row.dtype.kind == "O" or (row.dtype.kind == "f" and np.isnan(row).any())
    if mixed or missing:
        raise EvaluationError(
            f"the {what} are missing in some rows or of mixed types: expected texts or numbers"
        )
    return row
