"""A folder, a hub id or 'default' becomes something that answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from likewise.encoders.vectors import DEFAULT_BUDGET
from likewise.folders import kind_of
from likewise.predict.joint import JointPredictor
from likewise.predict.labels import Classifier
from likewise.predict.pairs import Predictor

if TYPE_CHECKING:
    from likewise.encoders.external import TextFunction


def load(
    model: str | os.PathLike[str] = "default",
    *,
    device: str | None = None,
    precision: str = "fp32",
    token_budget: int = DEFAULT_BUDGET,
    encoder: TextFunction | None = None,
) -> Any:
    """Load a Likewise folder, a sentence-transformers or transformers folder, a hub id, or 'default'.

    A model that was grown on a function from texts to vectors is given it again as `encoder`.
    """
    from likewise.store import load_joint_model, load_model

    if encoder is None and kind_of(model) == "joint":
        joint, about = load_joint_model(model, device=device)
        about["name"] = os.fspath(model)
        return JointPredictor(joint, about, precision=precision, token_budget=token_budget)
    loaded, about = load_model(model, device=device, encoder=encoder)
    about["name"] = os.fspath(model)
    return Predictor(loaded, about, precision=precision, token_budget=token_budget)


def load_classifier(
    model: str | os.PathLike[str] = "default",
    *,
    device: str | None = None,
    precision: str = "fp32",
    token_budget: int = DEFAULT_BUDGET,
) -> Any:
    """Load a folder that holds a label model, or any encoder, which then compares by the cosine, untaught.

    A transformer that was fine-tuned on labelled texts comes back as a JointPredictor.
    """
    from likewise.store import load_labels

    if kind_of(model) == "joint":
        joint = load(model, device=device, precision=precision, token_budget=token_budget)
        joint.wanted(None, None)  # a model of pairs or of numbers classifies nothing
        return joint
    loaded, about = load_labels(model, device=device)
    about["name"] = os.fspath(model)
    return Classifier(loaded, about, precision=precision, token_budget=token_budget)
