"""TextEncoder: a transformer from texts to vectors, for any estimator of scikit-learn."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from likewise.answering import Vectors
from likewise.outputs import model_print
from likewise.sklearn.inputs import as_texts, fitted_texts, texts_to_answer
from likewise.sklearn.training import quietly

if TYPE_CHECKING:
    from likewise.predict import Answerer

# A tokenizer does not serve two threads at once.
_TURN = Lock()


class TextEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turn texts into the vectors of an encoder, as a transformer of scikit-learn.

    X is a list of N texts, a Series, or an array or frame with one column. Nothing is learnt: `fit` only
    checks the texts. With a linear model behind it, this is the baseline that needs no training.

    `encoder` is the name of an encoder, or a folder, also of a trained model. `token_budget` is the number of
    tokens in a batch; None takes the usual one. `verbose` shows how many texts were encoded.
    """

    def __init__(
        self,
        encoder: str = "raw",
        *,
        device: str | None = None,
        precision: str = "fp32",
        token_budget: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.encoder = encoder
        self.device = device
        self.precision = precision
        self.token_budget = token_budget
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the texts."""
        as_texts(fitted_texts(self, X)[0])
        return self

    def transform(self, X: Any) -> Vectors:
        """The vectors of texts, N×d, single precision; SentenceTransformer gives the same."""
        texts = texts_to_answer(self, X)
        with _TURN:
            model = self._model()
            if not self.verbose:
                return model.encode(texts)
            from likewise.cli.console import counting

            with counting("encoding", "texts", len(texts)) as progress:
                return model.encode(texts, progress=progress)

    @property
    def _n_features_out(self) -> int:
        """The width of the vectors: the number of `get_feature_names_out`."""
        with _TURN:
            return int(self._model().encode("width").shape[0])

    def _model(self) -> Answerer:
        written = model_print(Path(self.encoder)) if isinstance(self.encoder, str) else ""
        return _opened(self.encoder, written, self.device, self.precision, self.token_budget)

    def __sklearn_tags__(self) -> Tags:
        """X is one column of texts, as for TextClassifier; vectors are always single precision."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


@lru_cache(maxsize=2)
def _opened(
    encoder: str, written: str, device: str | None, precision: str, token_budget: int | None
) -> Answerer:
    """The loaded encoder, shared by clones of an estimator. `written` changes if the model was replaced."""
    from likewise.predict import load

    options: dict[str, Any] = {} if token_budget is None else {"token_budget": token_budget}
    with quietly():
        return load(encoder, device=device, precision=precision, **options)
