"""Loading: a folder becomes a model again, and an encoder without heads one that answers by the cosine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from likewise.encoders.external import TextFunction, external_encoder
from likewise.encoders.resolve import resolve
from likewise.encoders.sentence import load_encoder, with_prompt
from likewise.encoders.words import with_padding
from likewise.errors import ModelError
from likewise.folders import kind_of, read_document
from likewise.methods.joint import JointModel, load_joint
from likewise.methods.label_embedding import LabelModel
from likewise.methods.pairs import Objective, PairModel
from likewise.records import Relation
from likewise.store.entries import objective_from_dict, read_frozen

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

RAW_RELATION = Relation(
    "similarity",
    lo=-1.0,
    hi=1.0,
    step=2.0,
    description="cosine of the two vectors of an encoder without heads",
)


def load_model(
    name: str | os.PathLike[str], *, device: str | None = None, encoder: TextFunction | None = None
) -> tuple[PairModel, dict[str, Any]]:
    """Load a Likewise folder, or any encoder as a raw model that answers `similarity` by cosine.

    A model grown on a function (`external`) is given that function again as `encoder`.
    """
    if encoder is not None or (Path(name) / "likewise" / "layers").is_dir():
        return _load_external(Path(name), encoder)
    return _load_own(name, load_encoder(name, device=device))


def raw_model(encoder: SentenceTransformer) -> PairModel:
    """An encoder without heads: it answers by the cosine."""
    return PairModel(encoder, [Objective(RAW_RELATION, "cosine", "mse", floor=-1.0)]).eval()


def _load_own(name: str | os.PathLike[str], encoder: SentenceTransformer) -> tuple[PairModel, dict[str, Any]]:
    where = Path(resolve(name))
    if not (where / "likewise" / "model.json").is_file():
        return raw_model(encoder), {"raw": True}
    document = read_document(where / "likewise" / "model.json")
    if "injected" in document:
        return raw_model(encoder), {**document, "raw": True}
    if "labels" in document:
        raise ModelError(f"{where} classifies texts: use likewise.load_classifier, or likewise classify")
    return _finish(encoder, where, document)


def _load_external(where: Path, function: TextFunction | None) -> tuple[PairModel, dict[str, Any]]:
    document = read_document(where / "likewise" / "model.json")
    grown = document.get("encoder_function", {})
    if function is None:
        raise ModelError(
            f"{where} was grown on the vectors of {grown.get('name')!r}, which it does not hold; "
            "give that function or .npz again: likewise.load(folder, encoder=function)"
        )
    base = external_encoder(function)
    if base.get_embedding_dimension() != grown.get("width"):
        raise ModelError(
            f"{where} was grown on vectors of width {grown.get('width')}, "
            f"this encoder's have {base.get_embedding_dimension()}"
        )
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    folders = sorted((where / "likewise" / "layers").glob("*_Dense"))
    layers = [Dense.load(str(folder)) for folder in folders]
    encoder = SentenceTransformer(modules=[*base, *layers], device="cpu")
    if grown.get("prompt"):
        with_prompt(encoder, grown["prompt"])
    return _finish(encoder, where, document)


def _finish(
    encoder: SentenceTransformer, where: Path, document: dict[str, Any]
) -> tuple[PairModel, dict[str, Any]]:
    model = _with_heads(encoder, where, document)
    model.frozen = read_frozen(where / "likewise" / "language.safetensors", document)
    return model, document


def _with_heads(encoder: SentenceTransformer, where: Path, document: Mapping[str, Any]) -> PairModel:
    try:
        objectives = [objective_from_dict(entry) for entry in document["objectives"]]
        model = PairModel(with_padding(encoder, document.get("padding", "safe")), objectives)
        model.heads.load_state_dict(
            load_file(where / "likewise" / "heads.safetensors", device=str(encoder.device))
        )
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{where}/likewise: heads cannot be loaded ({reason}); copy or train the model again"
        ) from error
    return model.eval()


def load_labels(
    name: str | os.PathLike[str], *, device: str | None = None
) -> tuple[LabelModel, dict[str, Any]]:
    """Load a folder that holds a label model, or any encoder as one that compares by the cosine, untaught."""
    where = Path(resolve(name))
    if kind_of(name) == "raw":
        return LabelModel(load_encoder(name, device=device), (), matcher="cosine").eval(), {"raw": True}
    document = read_document(where / "likewise" / "model.json")
    if "labels" not in document:
        raise ModelError(
            f"{where} answers pairs of texts and has no matcher for labels; "
            "train one on labelled texts (docs/methods/label_embedding.md), or score pairs with it"
        )
    own = where / "likewise"
    labels = load_encoder(own / "label_encoder", device=device) if (own / "label_encoder").is_dir() else None
    tasks = [Relation.from_dict(entry) for entry in document["relations"]]
    try:
        model = LabelModel(
            load_encoder(name, device=device), tasks, label_encoder=labels, **document["labels"]
        )
        model.load_matching(load_file(own / "matcher.safetensors", device=str(model.encoder.device)))
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{own}: the matcher cannot be loaded ({reason}); copy or train it again") from error
    return model.eval(), document


def load_joint_model(
    name: str | os.PathLike[str], *, device: str | None = None
) -> tuple[JointModel, dict[str, Any]]:
    """Load a folder that holds a joint encoder and its head."""
    document = read_document(Path(resolve(name)) / "likewise" / "model.json")
    relation = Relation.from_dict(document["relations"][0])
    return load_joint(name, relation, device=device, **document["joint"]).eval(), document
