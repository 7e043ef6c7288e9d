"""Check rows of ratings or labels and of predictions before a metric uses them. Errors say what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError
from likewise.records import Array
from likewise.spelling import spelt

Values = Sequence[Any] | NDArray[Any]
Codes = NDArray[np.intp]

# Spread below this share of the largest value is rounding error (scipy warns of it, at 1e-13 of the mean).
_CONSTANT = 1e-12


def check_spread(values: Array, what: str) -> None:
    """Refuse numbers that are all alike, because they have no correlation."""
    low, high = float(values.min()), float(values.max())
    if high - low <= _CONSTANT * max(abs(low), abs(high)):
        raise EvaluationError(
            f"the {what} are all {high:g}, but a correlation needs values that differ. Predictions "
            "like these come from a collapsed model or a saturated head, ratings like these from a "
            "file with a single score."
        )


def paired_numbers(gold: Values, predicted: Values, *, least: int) -> tuple[Array, Array]:
    """Two rows of N ≥ `least` finite numbers, shape (N,) each."""
    rows = [_row(gold, "ratings"), _row(predicted, "predictions")]
    if len(rows[0]) != len(rows[1]):
        raise EvaluationError(
            f"there are {len(rows[0])} ratings, but {len(rows[1])} predictions. Give one prediction per row."
        )
    if len(rows[0]) < least:
        raise EvaluationError(f"{len(rows[0])} values are too few. At least {least} are needed.")
    return rows[0], rows[1]


def _row(values: Values, what: str) -> Array:
    try:
        row = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvaluationError(
            f"the {what} are not numbers, but this metric compares numbers. Choose a metric for labels."
        ) from None
    if row.ndim != 1:
        raise EvaluationError(f"the {what} have shape {row.shape}, but one number per pair is expected.")
    finite = np.isfinite(row)
    if not finite.all():
        count, where = int((~finite).sum()), int(np.argmin(finite))
        raise EvaluationError(
            f"{count} of {len(row)} {what} are missing or infinite (the first at index {where}). "
            "Leave such rows out, or find out why the model gives them."
        )
    return row


def paired_labels(gold: Values, predicted: Values) -> tuple[Codes, Codes, list[Any]]:
    """Two rows of N ≥ 1 labels as positions in the sorted list of labels, shape (N,) each, and that list."""
    x, y = _label_row(gold, "true labels"), _label_row(predicted, "predicted labels")
    if len(x) != len(y):
        raise EvaluationError(
            f"there are {len(x)} true labels, but {len(y)} predicted labels. Give one prediction per row."
        )
    if not len(x):
        raise EvaluationError("there are no labels to compare. Give at least one row.")
    if (x.dtype.kind == "U") != (y.dtype.kind == "U"):
        raise EvaluationError(
            f"labels such as {x[0].item()!r} and predictions such as {y[0].item()!r} cannot agree. "
            f"Predict labels with a head ({spelt('source', 'head')}), not with the cosine."
        )
    names, codes = np.unique(np.concatenate((x, y)), return_inverse=True)
    if y.dtype.kind == "f" and bool(np.any(y % 1 != 0)) and not np.isin(y, x).any():
        raise EvaluationError(
            "this metric compares labels, but the predictions are scores such as "
            f"{y[0]:g}. Map scores to labels first."
        )
    return codes[: len(x)], codes[len(x) :], names.tolist()


def _label_row(values: Values, what: str) -> NDArray[Any]:
    row = np.asarray(values)
    if row.ndim != 1 and row.size:
        raise EvaluationError(f"the {what} have shape {row.shape}, but one label per pair is expected.")
    mixed = row.dtype.kind == "U" and not all(isinstance(value, str) for value in values)
    missing = row.dtype.kind == "O" or (row.dtype.kind == "f" and np.isnan(row).any())
    if mixed or missing:
        raise EvaluationError(
            f"the {what} are missing in some rows or of mixed types, but texts or numbers are "
            "expected in every row."
        )
    return row
