"""TextClassifier: a classifier from single texts to labels, which may be described in words."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from likewise.answering import Probabilities
from likewise.arguments import listed_names
from likewise.data.values import is_missing, to_label
from likewise.errors import EstimatorInputError, Problem, UsageError
from likewise.sklearn.inputs import as_texts, fitted_texts, texts_to_answer
from likewise.sklearn.keeping import ModelEstimator
from likewise.sklearn.training import train_rows
from likewise.wording import listed, quoted

if TYPE_CHECKING:
    from likewise.predict import Answerer

_log = logging.getLogger("likewise")

_TASK = "label"


class TextClassifier(ClassifierMixin, ModelEstimator):
    """Classify single texts, as a classifier of scikit-learn.

    X is a list of N texts, a Series, or an array or frame with one column. y are N labels of any type. `fit`
    runs `likewise.train` on them: it sets a part of the texts aside to choose the best step.

    `labels` says each label in words, which the encoder reads: {"pos": "praise", "neg": ["blame", "a
    complaint"]}. None takes the labels themselves. `encoder`, `epochs`, `learning_rate`, `batch_size`,
    `overrides`, `random_state` and `verbose` are as in PairScorer. `recipe` is the name of a recipe or its
    file; None takes the one for labelled texts.

    After `fit`, `classes_` are the labels in order and `model_` is the trained model (`model_.save(folder)`
    writes it).
    """

    def __init__(
        self,
        encoder: str = "raw",
        *,
        labels: Mapping[Any, Any] | None = None,
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
        self.labels = labels
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
        """Train on texts X and their labels y."""
        cells, y = fitted_texts(self, X, _given(self, y))
        check_classification_targets(y)
        classes, places = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            found = f"it has 1 class ({quoted(classes.tolist()[0])}), but two or more are needed"
            raise EstimatorInputError([Problem("y", found, "pass texts of other classes too")])
        names = _names(classes)
        texts = _label_texts(self.labels, classes, names)
        rows = [
            {"text": text, _TASK: names[place]} for text, place in zip(as_texts(cells), places, strict=True)
        ]
        self.model_ = train_labels(self.recipe, rows, texts, self.get_params(deep=False))
        if self.labels is not None and not self.model_.reads_labels:
            _log.warning("recipe %s reads no label texts, so labels has no effect.", self.recipe)
        self.classes_ = classes
        self._names = tuple(names)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each text, N."""
        chances = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> Probabilities:
        """The probabilities of the labels, N×C in the order of `classes_`."""
        check_is_fitted(self)
        found = self.model_.classify(texts_to_answer(self, X), task=_TASK)
        return found.probabilities[:, [found.labels.index(name) for name in self._names]]

    def __sklearn_tags__(self) -> Tags:
        """X is one column of texts, and what is learnt from a few of them may be little.

        `one_d_array` stays False: it tells scikit-learn that a table is refused.
        """
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.classifier_tags.poor_score = True
        return tags


def train_labels(
    recipe: str | None,
    rows: Sequence[Mapping[str, str]],
    texts: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
) -> Answerer:
    """Train on rows of `text` and `label`. `texts` are the words of each label.

    Without a recipe, `likewise.train` chooses one by the number of labels and of rows.
    """
    return train_rows(recipe, rows, options, text="text", label=_TASK, labels=texts)


def _given(estimator: Any, y: Any) -> Any:
    """The labels, which a classifier cannot do without; the message is scikit-learn's own."""
    if y is None:
        name = type(estimator).__name__
        raise EstimatorInputError(
            f"{name} requires y to be passed, but the target y is None. Pass the label of each text as y."
        )
    return y


def _names(classes: NDArray[Any]) -> list[str]:
    """The name of each class in the model: its own text, unless a table could not hold it."""
    names = []
    for number, label in enumerate(classes.tolist()):
        name = str(label)
        plain = not is_missing(name) and to_label(name) == name and name.isprintable()
        names.append(name if plain and name not in names else f"class {number}")
    return names


def _label_texts(labels: Any, classes: NDArray[Any], names: Sequence[str]) -> dict[str, list[str]]:
    """The words of each class, by its name in the model."""
    known = classes.tolist()
    if labels is None:
        return {name: [str(label)] for name, label in zip(names, known, strict=True)}
    if not isinstance(labels, Mapping):
        raise UsageError(
            f"labels is {quoted(labels, most=60)}, but it must be a dict from each label to its words."
        )
    lost = [label for label in known if label not in labels]
    if lost:
        raise UsageError(
            f"labels has no words for {listed(list(map(str, lost)))}. Add them, or leave labels out."
        )
    return {
        name: listed_names(labels[label], f"the words of label {label!r}")
        for name, label in zip(names, known, strict=True)
    }
