"""The parts of model.json for a pair model: objectives, the source of each relation, the frozen part."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from likewise.adapters import ACTIVATIONS as ADAPTER_ACTIVATIONS
from likewise.answering import COSINE, HEAD, MEAN
from likewise.encoders.reading import DAMAGED
from likewise.encoders.rules import (
    Nested,
    Rules,
    among,
    check_keys,
    flag,
    list_of,
    map_of,
    number,
    or_null,
    size,
    word,
)
from likewise.encoders.weights import read_tensors, refuse_names
from likewise.errors import ModelError
from likewise.folders import read_relation, reading
from likewise.heads import ACTIVATIONS, HEADS, Layers
from likewise.losses import LOSSES
from likewise.matchers import MATCHERS
from likewise.methods.described import DESCRIBED
from likewise.methods.multilingual import FrozenPart
from likewise.methods.pairs import AnswerChoice, Objective, PairModel, objective_source
from likewise.records import Relation


def objective_to_dict(objective: Objective) -> dict[str, Any]:
    """A JSON-ready form of an objective."""
    entry = asdict(objective)
    entry["relation"] = objective.relation.to_dict()
    entry["options"] = dict(objective.options)
    return {**entry, "pairing": list(objective.pairing)}


def answered_by(model: PairModel, relation: str) -> str:
    """The source that answers a relation."""
    chosen = model.answers.get(relation)
    return objective_source(model.answering(relation)) if chosen is None else chosen.source


def answers_to_dict(answers: Mapping[str, AnswerChoice]) -> dict[str, Any]:
    """A JSON-ready form of the sources that answer the relations."""
    return {
        name: {"source": one.source, "lines": {source: list(line) for source, line in one.lines.items()}}
        for name, one in answers.items()
    }


def _lines(value: Any) -> bool:
    """Whether a value holds the lines of sources."""
    return isinstance(value, dict) and set(value) <= {COSINE, HEAD} and all(map(_line, value.values()))


def _line(value: Any) -> bool:
    """Whether a value is a rising line: a slope above 0, and an offset."""
    return isinstance(value, list) and len(value) == 2 and all(map(number, value)) and value[0] > 0


def _reaches(line: tuple[float, float], source: str, relation: Relation) -> bool:
    """Whether a line maps the outputs of a source onto the relation's scale and is not flat there.

    A line that was fitted to ratings goes through their mean. One that misses the scale would give all pairs
    the same answer.
    """
    ends = (-1.0, 1.0) if source == COSINE else (relation.lo, relation.hi)
    low, high = (line[0] * end + line[1] for end in ends)
    span = relation.hi - relation.lo
    return low < relation.hi and high > relation.lo and _FLATTEST * span < high - low < span / _FLATTEST


# Of a line, against the relation's scale: flatter ones and steeper ones were fitted to nothing.
_FLATTEST = 1e-9
_ANSWER: Rules = {"source": among(COSINE, HEAD, MEAN), "lines": _lines}


def read_answers(document: Mapping[str, Any], model: PairModel, path: Path) -> dict[str, AnswerChoice]:
    """The sources of relations in a model.json; relations for which dev pairs chose nothing are left out."""
    entries = document.get("answers", {})
    if not isinstance(entries, dict):
        raise ModelError(f"{path}: answers is not a table; {DAMAGED}")
    found: dict[str, AnswerChoice] = {}
    numbers = {relation.name for relation in model.relations if relation.kind != "classes"}
    for name, entry in entries.items():
        with reading(path):
            check_keys(entry, _ANSWER, path, inside="answers")
            lines = {source: (line[0], line[1]) for source, line in entry["lines"].items()}
            answer = AnswerChoice(entry["source"], lines)
        known = {COSINE} | {objective_source(o) for o in model.objectives if o.relation.name == name}
        needed = {COSINE, HEAD} if answer.source == MEAN else {answer.source}
        if name not in numbers or not needed <= set(lines) <= known:
            raise ModelError(f"{path}: answers.{name} does not fit the model's objectives; {DAMAGED}")
        [relation] = [relation for relation in model.relations if relation.name == name]
        if not all(_reaches(line, source, relation) for source, line in lines.items()):
            raise ModelError(f"{path}: answers.{name} does not lead to the relation's scale; {DAMAGED}")
        found[name] = answer
    return found


def check_sources(document: Mapping[str, Any], model: PairModel, path: Path) -> None:
    """Raise an error for a model.json that names another source than the one that answers."""
    named = document.get("source", {})
    for relation in model.relations:
        source = answered_by(model, relation.name)
        if named.get(relation.name, source) != source:
            found = f"source.{relation.name} is {named[relation.name]!r}, but the {source} answers"
            raise ModelError(f"{path}: {found}; {DAMAGED}")


_LAYERS: Rules = {"hidden": list_of(size, 16), "activation": among(*ACTIVATIONS), "scale": flag}
_OBJECTIVE: Rules = {
    "relation": lambda value: isinstance(value, dict),
    "head": among(*HEADS, DESCRIBED),
    "loss": among(*LOSSES),
    "pairing": list_of(word, 16),
    "layers": Nested(_LAYERS),
    "floor": lambda value: number(value) and -1 <= value < 1,
    "weight": number,
    "allow_blind": flag,
    "within": among("data", "batch"),
    "map": among("identity", "affine", "clamp", "sigmoid", "tanh", "arccos"),
    "matcher": among(*MATCHERS),
    "options": map_of(or_null(lambda value: isinstance(value, str | bool) or number(value))),
}


def read_objective(entry: Any, path: Path) -> Objective:
    """Read an objective of a model.json."""
    check_keys(entry, _OBJECTIVE, path, inside="objective")
    read_relation(entry["relation"], path)
    return objective_from_dict(entry)


def objective_from_dict(entry: Mapping[str, Any]) -> Objective:
    """The inverse of `objective_to_dict`."""
    read = {
        "relation": Relation.from_dict(entry["relation"]),
        "pairing": tuple(entry["pairing"]),
        "layers": Layers(**{**entry["layers"], "hidden": tuple(entry["layers"]["hidden"])}),
    }
    return Objective(**{**entry, **read})


def frozen_to_dict(part: FrozenPart) -> dict[str, Any]:
    """A JSON-ready form of a frozen part; its tensors are in a separate file."""
    names = ("modules", "pairs", "languages", "prelayer")
    return {name: getattr(part, name) for name in names}


_FROZEN: Rules = {
    "modules": lambda value: size(value) and value <= 64,
    **dict.fromkeys(("pairs", "languages"), list_of(word)),
    "prelayer": among("", *ADAPTER_ACTIVATIONS),
}
_LANGUAGE_PARTS = ("identify", "language.linear", "prelayer.linear")


def read_frozen(file: Path, document: Mapping[str, Any]) -> FrozenPart | None:
    """Read the frozen part of a model.json with its tensors from `file`; None if the model has none."""
    if "frozen" not in document:
        return None
    entry, path = document["frozen"], file.parent / "model.json"
    check_keys(entry, _FROZEN, path, inside="frozen")
    tensors = read_tensors(file) if os.path.lexists(file) else {}
    known = {f"{part}.{name}" for part in _LANGUAGE_PARTS for name in ("weight", "bias")}
    needed = (
        {f"prelayer.linear.{name}" for name in ("weight", "bias")}
        if entry.get("prelayer") and tensors
        else set()
    )
    refuse_names(file, missing=needed - set(tensors), unexpected=set(tensors) - known)
    for part in _LANGUAGE_PARTS:
        weight, bias = (tensors.get(f"{part}.{name}") for name in ("weight", "bias"))
        if (weight is None) != (bias is None) or (
            weight is not None and bias is not None and (weight.dim() != 2 or bias.shape != weight.shape[:1])
        ):
            raise ModelError(f"{file}: the layer {part} is incomplete; {DAMAGED}")
    with reading(path):
        pairs, languages = tuple(entry["pairs"]), tuple(entry["languages"])
        return FrozenPart(entry["modules"], pairs, languages, entry["prelayer"], tensors)
