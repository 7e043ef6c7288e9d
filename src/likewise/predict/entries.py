"""The parts of a model of pairs as entries of model.json, and weights as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from likewise.heads import Layers
from likewise.methods.multilingual import FrozenPart
from likewise.methods.pairs import Objective
from likewise.records import Relation


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Weights as safetensors writes them."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def objective_to_dict(objective: Objective) -> dict[str, Any]:
    """A JSON-ready objective."""
    entry = asdict(objective)
    entry["relation"] = objective.relation.to_dict()
    entry["options"] = dict(objective.options)
    return {**entry, "pairing": list(objective.pairing)}


def objective_from_dict(entry: Mapping[str, Any]) -> Objective:
    """The inverse of `objective_to_dict`."""
    read = {
        "relation": Relation.from_dict(entry["relation"]),
        "pairing": tuple(entry["pairing"]),
        "layers": Layers(**{**entry["layers"], "hidden": tuple(entry["layers"]["hidden"])}),
    }
    return Objective(**{**entry, **read})


def frozen_to_dict(part: FrozenPart) -> dict[str, Any]:
    """A JSON-ready frozen part; its tensors lie in a file of their own."""
    names = ("modules", "pairs", "languages", "prelayer")
    return {name: getattr(part, name) for name in names}


def read_frozen(file: Path, document: Mapping[str, Any]) -> FrozenPart | None:
    """The frozen part of a model.json with its tensors from `file`; None if the model has none."""
    if "frozen" not in document:
        return None
    entry = document["frozen"]
    tensors = load_file(file) if file.is_file() else {}
    pairs, languages = tuple(entry["pairs"]), tuple(entry["languages"])
    return FrozenPart(entry["modules"], pairs, languages, entry["prelayer"], tensors)
