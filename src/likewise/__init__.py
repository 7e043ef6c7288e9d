"""Likewise: train small text encoders to judge how two texts relate, on as many scales as people have rated
them.

    import likewise
    model = likewise.load("default")
    model.score([("A man is playing a flute.", "A man is playing a bamboo flute.")])

Names load on first use, so that `import likewise` is quick and `likewise --help` does not load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "load": "likewise.predict",
    "load_classifier": "likewise.predict",
    "Classifier": "likewise.predict",
    "Classes": "likewise.predict",
    "Predictor": "likewise.predict",
    "Scores": "likewise.predict",
    "score": "likewise.api",
    "train": "likewise.api",
    "update": "likewise.api",
    "calibrate": "likewise.api",
    "export": "likewise.api",
    "evaluate": "likewise.api",
    "evaluate_crosslingual": "likewise.api",
    "experiment": "likewise.experiments",
    "audit": "likewise.evaluation",
    "Relation": "likewise.records",
    "Record": "likewise.records",
    "Codec": "likewise.records",
    "LikewiseError": "likewise.errors",
}

__all__ = [
    "Classes",
    "Classifier",
    "Codec",
    "LikewiseError",
    "Predictor",
    "Record",
    "Relation",
    "Scores",
    "__version__",
    "audit",
    "calibrate",
    "evaluate",
    "evaluate_crosslingual",
    "experiment",
    "export",
    "load",
    "load_classifier",
    "score",
    "train",
    "update",
]

if TYPE_CHECKING:
    from likewise.api import calibrate, evaluate, evaluate_crosslingual, export, score, train, update
    from likewise.errors import LikewiseError
    from likewise.evaluation import audit
    from likewise.experiments import experiment
    from likewise.predict import Classes, Classifier, Predictor, Scores, load, load_classifier
    from likewise.records import Codec, Record, Relation


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    from likewise.starting import importing

    with importing():
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
