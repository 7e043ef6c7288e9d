"""Models ready to answer.

load              Predictor        an encoder and its heads: `score` pairs, `encode` texts, `explain`
                  JointPredictor   a fine-tuned transformer: `score` pairs or texts, `classify` texts
load_classifier   Classifier       labels that are texts: `classify` by a task, or by labels never seen
"""

from __future__ import annotations

from likewise.predict.answers import Classes, Scores, as_pairs
from likewise.predict.joint import JointPredictor
from likewise.predict.labels import Classifier, new_task
from likewise.predict.loading import load, load_classifier
from likewise.predict.pairs import Predictor

__all__ = [
    "Classes",
    "Classifier",
    "JointPredictor",
    "Predictor",
    "Scores",
    "as_pairs",
    "load",
    "load_classifier",
    "new_task",
]
