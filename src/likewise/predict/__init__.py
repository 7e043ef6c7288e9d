"""Load models and let them answer.

load              a folder, a hub id, 'raw' or 'default' → an Answerer: `score`, `encode`, `explain`, …
load_classifier   the same for single texts; an encoder without a model.json compares texts with label texts

    Predictor        an encoder and its heads            pairs
    JointPredictor   a fine-tuned transformer            pairs read as one input, or single texts
    Classifier       a label model                       single texts, also with labels unseen in training
"""

from __future__ import annotations

from likewise.answering import Classes, Scores
from likewise.predict.asking import Answerer
from likewise.predict.joint import JointPredictor
from likewise.predict.labels import Classifier
from likewise.predict.loading import load, load_classifier
from likewise.predict.pairs import Predictor, raw_model

__all__ = [
    "Answerer",
    "Classes",
    "Classifier",
    "JointPredictor",
    "Predictor",
    "Scores",
    "load",
    "load_classifier",
    "raw_model",
]
