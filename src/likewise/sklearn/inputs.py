"""What scikit-learn hands to an estimator, checked: X as texts or pairs of texts, in the order of the rows.

scikit-learn checks shapes, lengths, columns and their names. What is in the cells is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from likewise.data.splits import FEWEST_TO_SPLIT
from likewise.data.values import is_missing
from likewise.encoders.inputs import check_texts
from likewise.errors import DataError, EstimatorInputError, Problem
from likewise.wording import quoted

PairOfTexts = tuple[str, str]
Cells = NDArray[np.object_]
_PAIRS = "pass a list of pairs (a, b), an array of shape (n, 2), or a frame with two columns of texts"
_TEXTS = "pass a list of texts, a Series, or an array or frame with one column of texts"


def fitted_pairs(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Cells, Any]:
    """X as rows of two cells and y as N numbers, for `fit`. What is in the cells is not checked yet."""
    cells, y = validate_data(
        estimator, _as_pairs(X), y, dtype=object, y_numeric=True, ensure_all_finite=False
    )
    _check_enough(cells)
    return cells, np.asarray(y, dtype=np.float64)


def pairs_to_answer(estimator: BaseEstimator, X: Any) -> list[PairOfTexts]:
    """X as pairs of texts, for `predict`."""
    return as_pairs(
        validate_data(estimator, _as_pairs(X), dtype=object, ensure_all_finite=False, reset=False)
    )


def fitted_texts(estimator: BaseEstimator, X: Any, y: Any = None) -> tuple[Cells, Any]:
    """X as rows of one cell and y as it is, for `fit`. What is in the cells is not checked yet.

    Without y, nothing is learnt, and one row is enough.
    """
    if y is None:
        cells = validate_data(estimator, _as_column(X), dtype=object, ensure_all_finite=False)
    else:
        cells, y = validate_data(estimator, _as_column(X), y, dtype=object, ensure_all_finite=False)
        _check_enough(cells)
    return cells, y


def texts_to_answer(estimator: BaseEstimator, X: Any) -> list[str]:
    """X as texts, for `predict` and `transform`, also of an estimator that needs no fit."""
    column = _as_column(X)
    if hasattr(estimator, "n_features_in_"):
        return as_texts(validate_data(estimator, column, dtype=object, ensure_all_finite=False, reset=False))
    cells = check_array(column, dtype=object, ensure_all_finite=False, estimator=estimator, input_name="X")
    return as_texts(cells)


def as_pairs(cells: Cells) -> list[PairOfTexts]:
    """Rows of two cells as pairs of texts. A cell without a text is an error that names its row."""
    _check_width(cells, 2, "a pair is two texts", _PAIRS)
    rows = [tuple(row) for row in cells]
    _check_cells([cell for row in rows for cell in row], lambda i: f"row {i // 2}, text {'ab'[i % 2]}")
    return rows  # type: ignore[return-value]


def as_texts(cells: Cells) -> list[str]:
    """Rows of one cell as texts. A cell without a text is an error that names its row."""
    _check_width(cells, 1, "a row is one text", _TEXTS)
    rows = [row[0] for row in cells]
    _check_cells(rows, lambda i: f"row {i}")
    return rows


def _as_pairs(X: Any) -> Any:
    """X as scikit-learn checks it. Single texts are refused here: it would advise to reshape them."""
    if isinstance(X, str):
        raise _refused("X", f"it is the text {quoted(X, most=60)}", _PAIRS)
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        raise _refused("X", "it holds single texts, but a pair is two texts", _PAIRS)
    return X


def _as_column(X: Any) -> Any:
    """Texts as one column, which is how scikit-learn counts features; anything else as it is."""
    if isinstance(X, str):
        raise _refused("X", f"it is the text {quoted(X, most=60)}, but a list of texts is expected", _TEXTS)
    flat = isinstance(X, list | tuple) and all(isinstance(one, str) or is_missing(one) for one in X)
    if not flat and getattr(X, "ndim", None) != 1:
        return X
    column = np.empty((len(X), 1), dtype=object)
    column[:, 0] = list(X)
    return column


def _check_enough(cells: Cells) -> None:
    """Refuse so few rows that none can be set aside to choose a model."""
    if len(cells) < FEWEST_TO_SPLIT:
        found = f"n_samples = {len(cells)}, but a part of the rows is set aside to choose the model"
        raise _refused("X", found, f"pass {FEWEST_TO_SPLIT} rows or more")


def _check_width(cells: Cells, width: int, said: str, remedy: str) -> None:
    found = cells.shape[1]
    if found != width:
        raise _refused("X", f"n_features = {found}, but {said}", remedy)


def _check_cells(cells: Sequence[Any], name: Callable[[int], str]) -> None:
    for index, cell in enumerate(cells):
        if isinstance(cell, str):
            continue
        if is_missing(cell):
            raise _refused(
                name(index), "the text is missing (NaN or None)", "fill it in, or leave the row out"
            )
        what = f"it is {quoted(cell, most=60)} ({type(cell).__name__}), not a text"
        raise _refused(name(index), what, "pass the columns that hold texts")
    try:
        check_texts(cells, name=name)
    except DataError as error:
        raise EstimatorInputError(error.problems) from None


def _refused(source: str, found: str, remedy: str) -> EstimatorInputError:
    return EstimatorInputError([Problem(source, found, remedy)])
