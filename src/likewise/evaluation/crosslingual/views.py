"""Views of texts: the vectors that a model and its frozen encoder give a text. Each text is encoded once.

raw       the frozen encoder's own vectors; absent if the encoder itself is measured
model     the vectors of the trained model
language  the language vector of a method that separates meaning from language, if it has one
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from likewise.answering import Vectors
from likewise.errors import EvaluationError, UsageError
from likewise.records import Array

# Distinct texts → one N×d matrix per view.
Views = Callable[[Sequence[str]], Mapping[str, Vectors]]

RAW, MODEL, LANGUAGE = "raw", "model", "language"
VIEWS = (RAW, MODEL, LANGUAGE)


class TextVectors:
    """The views of all distinct texts, computed once. Rows are found by their text."""

    def __init__(self, views: Views, texts: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self._place = {text: place for place, text in enumerate(distinct)}
        found = views(distinct)
        self._matrices = {name: _check_view(name, found[name], len(distinct)) for name in _check_names(found)}

    def __contains__(self, view: str) -> bool:
        return view in self._matrices

    def __len__(self) -> int:
        return len(self._place)

    @property
    def names(self) -> tuple[str, ...]:
        """The available views, in the order raw, model, language."""
        return tuple(self._matrices)

    def rows(self, view: str, texts: Sequence[str]) -> Vectors:
        """The vectors of texts scaled to length 1, N×d, in the given order. A vector of zeros stays zero."""
        made = np.asarray(self._matrices[view][[self._place[text] for text in texts]], dtype=np.float32)
        if not np.isfinite(made).all():
            raise EvaluationError(f"view {view!r} holds vectors with missing or infinite numbers.")
        length = np.linalg.norm(made, axis=1, keepdims=True)
        length[length == 0] = 1
        unit: Vectors = made / length
        return unit

    def cosines(self, view: str, pairs: Sequence[tuple[str, str]]) -> Array:
        """The cosine of each pair of texts, shape (N,)."""
        a, b = (self.rows(view, [pair[side] for pair in pairs]) for side in (0, 1))
        made: Array = np.einsum("nd,nd->n", a, b, dtype=np.float64)
        return made


def _check_names(found: Mapping[str, Vectors]) -> list[str]:
    unknown = [name for name in found if name not in VIEWS]
    if unknown or MODEL not in found:
        raise UsageError(
            f"the views are {', '.join(map(repr, found)) or 'none'}, but {MODEL!r} is required, and "
            f"only {RAW!r} and {LANGUAGE!r} may be added."
        )
    return [name for name in VIEWS if name in found]


def _check_view(name: str, matrix: Vectors, texts: int) -> Vectors:
    if matrix.ndim != 2 or len(matrix) != texts:
        raise EvaluationError(
            f"view {name!r} has shape {matrix.shape} for {texts} texts, but one row per text is expected."
        )
    return matrix
