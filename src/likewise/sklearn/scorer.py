"""PairScorer: a regressor from pairs of texts to numbers on a scale."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from likewise.answering import Numbers
from likewise.data.ratings import find_range
from likewise.errors import EstimatorInputError, Problem, UsageError
from likewise.records import Relation
from likewise.sklearn.inputs import as_pairs, fitted_pairs, pairs_to_answer
from likewise.sklearn.keeping import ModelEstimator
from likewise.sklearn.training import train_rows
from likewise.wording import quoted

_log = logging.getLogger("likewise")


class PairScorer(RegressorMixin, ModelEstimator):
    """Score pairs of texts, as a regressor of scikit-learn.

    X is N×2: a list of pairs, an array of objects, or a frame with two columns of texts. y are N numbers.
    `fit` runs `likewise.train` on them: it sets a part of the pairs aside to choose the best step, and keeps
    the encoder as it is if no step is better.

    `encoder` is the name of an encoder or a folder; `raw` is all-MiniLM-L6-v2 as it was published. `relation`
    names what y rates and its scale ("similarity:0..5"); without a scale ("similarity") the usual range
    around the numbers in y is taken and reported. `recipe` is the name of a recipe or its file; None takes
    the one that `likewise train FILE` takes for a table. `epochs`, `learning_rate` and `batch_size` set
    these keys of its last stage, and `overrides` any others ({"stage.0.warmup": 0}); None keeps the recipe's
    values. `random_state` is the seed; None takes the recipe's seed, so that fits are repeatable. `verbose`
    shows the training.

    After `fit`, `model_` is the trained model (`model_.save(folder)` writes it) and `relation_` is the
    relation with its scale.
    """

    def __init__(
        self,
        encoder: str = "raw",
        *,
        relation: str = "similarity",
        recipe: str | None = None,
        epochs: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        overrides: dict[str, Any] | None = None,
        device: str | None = None,
        precision: str = "fp32",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.encoder = encoder
        self.relation = relation
        self.recipe = recipe
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.overrides = overrides
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on pairs X and their ratings y."""
        cells, ratings = fitted_pairs(self, X, y)
        pairs = as_pairs(cells)
        relation = _relation(self.relation, ratings)
        rows = [
            {"text_a": a, "text_b": b, relation.name: float(rating)}
            for (a, b), rating in zip(pairs, ratings, strict=True)
        ]
        declared = f"{relation.name}:{relation.lo!r}..{relation.hi!r}"
        self.model_ = train_rows(
            self.recipe,
            rows,
            self.get_params(deep=False),
            relations=[declared],
            text_a="text_a",
            text_b="text_b",
        )
        self.relation_ = relation
        return self

    def predict(self, X: Any) -> Numbers:
        """The scores of pairs X on the scale of `relation_`, N."""
        check_is_fitted(self)
        found = self.model_.score(pairs_to_answer(self, X), relation=self.relation_.name)
        return np.asarray(found[self.relation_.name], dtype=np.float64)

    def __sklearn_tags__(self) -> Tags:
        """X is a table of texts, and what is learnt from a few of them may be little."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.regressor_tags.poor_score = True
        return tags


def spearman_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Spearman's correlation of y and the predictions for X, in −1..1, for `scoring=spearman_scorer`."""
    from likewise.evaluation.metrics import spearman as correlate

    return correlate(np.asarray(y, dtype=np.float64), estimator.predict(X))


def _relation(said: Any, ratings: Numbers) -> Relation:
    """The relation that is declared, or one on the usual range around the ratings."""
    if not isinstance(said, str):
        raise UsageError(
            f'relation is {quoted(said, most=60)}, but it must be a text such as "similarity:0..5".'
        )
    if ":" not in said:
        lo, hi = find_range(float(ratings.min()), float(ratings.max()))
        _tell_range(said, lo, hi)
        return Relation.graded(said, lo, hi)
    relation = Relation.parse(said)
    if relation.kind != "graded":
        raise UsageError(
            f"relation {quoted(said)} has labels, but PairScorer predicts numbers. Give a range, such as "
            f'"{relation.name}:0..5".'
        )
    outside = np.flatnonzero((ratings < relation.lo) | (ratings > relation.hi))
    if len(outside):
        row = int(outside[0])
        found = (
            f"y is {ratings[row]:g}, but the scale of {relation.name} is {relation.lo:g} to {relation.hi:g}"
        )
        raise EstimatorInputError([Problem(f"row {row}", found, "correct it, or declare a wider relation=…")])
    return relation


@cache
def _tell_range(name: str, lo: float, hi: float) -> None:
    """Report a scale that was guessed, once in a process: a grid search fits many times."""
    _log.warning(
        'y is read as ratings on a scale of %g..%g. To declare the scale, pass relation="%s:%g..%g".',
        *(lo, hi, name, lo, hi),
    )
