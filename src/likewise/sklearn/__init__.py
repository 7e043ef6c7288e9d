"""Estimators for scikit-learn: pairs of texts → scores, texts → labels, texts → vectors.

    PairScorer       fit(pairs, ratings)    predict → numbers on the scale of the ratings
    TextClassifier   fit(texts, labels)     predict → labels, predict_proba → their probabilities
    TextEncoder      transform(texts)       the vectors of an encoder, for any other estimator
    spearman         scoring=spearman       Spearman's correlation, as the rest of Likewise reports it

They work wherever scikit-learn takes an estimator: in a Pipeline, in GridSearchCV, with n_jobs. Importing
this package loads scikit-learn; torch is loaded by the first call that computes something.
"""

from __future__ import annotations

from likewise.sklearn.classifier import TextClassifier
from likewise.sklearn.encoder import TextEncoder
from likewise.sklearn.scorer import PairScorer, spearman

__all__ = ["PairScorer", "TextClassifier", "TextEncoder", "spearman"]
