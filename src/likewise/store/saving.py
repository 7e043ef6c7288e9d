"""Saving: a model of any kind becomes a folder, written aside and renamed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file

from likewise.encoders.external import is_external
from likewise.encoders.features import default_prompt
from likewise.encoders.words import padding_of, with_padding
from likewise.errors import UsageError
from likewise.folders import FORMAT
from likewise.methods.injection import InjectionModel
from likewise.methods.joint import JointModel
from likewise.methods.label_embedding import LabelModel
from likewise.methods.pairs import PairModel, objective_source
from likewise.store.card import model_card
from likewise.store.entries import frozen_to_dict, objective_to_dict
from likewise.versions import versions

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

AnyModel = PairModel | LabelModel | JointModel | InjectionModel


def save_model(
    model: AnyModel,
    folder: str | os.PathLike[str],
    *,
    about: Mapping[str, Any],
    overwrite: bool = False,
) -> Path:
    """Write a model folder aside and rename it into place; `about` goes into model.json and the card."""
    target = Path(folder)
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another --output or pass --overwrite")
    aside = target.with_name(target.name + ".partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    own = aside / "likewise"
    own.mkdir()
    described = _save_joint(model, aside) if isinstance(model, JointModel) else _save_encoder(model, aside)
    document = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        **described,
        **about,
    }
    (own / "model.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf8")
    (aside / "README.md").write_text(model_card(target.name, document), encoding="utf8")
    if target.exists():
        shutil.rmtree(target)
    aside.rename(target)
    return target


def _save_joint(model: JointModel, folder: Path) -> dict[str, Any]:
    """A stock sequence classifier: CrossEncoder and transformers load it."""
    model.encoder.save_pretrained(str(folder))
    model.tokenizer.save_pretrained(str(folder))
    return {
        "relations": [model.relation.to_dict()],
        "joint": {"texts": model.texts, "max_length": model.max_length},
        "source": {model.relation.name: "head"},
    }


def _save_encoder(model: PairModel | LabelModel | InjectionModel, folder: Path) -> dict[str, Any]:
    """A sentence-transformers folder, and beside it what answers."""
    own = folder / "likewise"
    if is_external(model.encoder):
        _save_layers(model.encoder, own / "layers")
    else:
        with_padding(model.encoder, "safe").save(str(folder), create_model_card=False)
    if isinstance(model, InjectionModel):
        save_file(_plain(model.heads.state_dict()), own / "injection.safetensors")
        taught = {"learns": model.learns, "features": model.features, "two_tower": model.two_tower}
        return {"relations": [], "source": {}, "injected": taught}
    described = _save_labels(model, own) if isinstance(model, LabelModel) else _save_pairs(model, own)
    return {
        "relations": [relation.to_dict() for relation in model.relations],
        "padding": padding_of(model.encoder),
        **described,
        **({"encoder_function": _function_to_dict(model.encoder)} if is_external(model.encoder) else {}),
    }


def _save_pairs(model: PairModel, own: Path) -> dict[str, Any]:
    save_file(_plain(model.heads.state_dict()), own / "heads.safetensors")
    if model.frozen is not None and model.frozen.tensors:
        save_file(_plain(model.frozen.tensors), own / "language.safetensors")
    return {
        "objectives": [objective_to_dict(objective) for objective in model.objectives],
        "source": {r.name: objective_source(model.answering(r.name)) for r in model.relations},
        **({"frozen": frozen_to_dict(model.frozen)} if model.frozen is not None else {}),
    }


def _save_labels(model: LabelModel, own: Path) -> dict[str, Any]:
    if model.label_encoder is not None:
        model.label_encoder.save(str(own / "label_encoder"), create_model_card=False)
    save_file(_plain(model.matching_state()), own / "matcher.safetensors")
    return {"labels": model.options(), "source": {task.name: "matcher" for task in model.tasks}}


def _save_layers(encoder: SentenceTransformer, folder: Path) -> None:
    """The modules after a function, one folder each; the function itself has no files."""
    for number, module in enumerate(list(encoder)[1:]):
        place = folder / f"{number}_Dense"
        place.mkdir(parents=True)
        module.save(str(place))


def _function_to_dict(encoder: SentenceTransformer) -> dict[str, Any]:
    first = encoder[0]
    return {"name": first.name, "width": first.width, "prompt": default_prompt(encoder) or ""}


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
