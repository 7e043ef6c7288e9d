"""What a model folder says of itself: its likewise/model.json, read without loading the model or torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from likewise.encoders.manifest import DOCUMENT, MOST_DOCUMENT
from likewise.encoders.reading import DAMAGED, read_json
from likewise.encoders.resolve import local_folder
from likewise.encoders.rules import (
    Rules,
    among,
    anything,
    check_keys,
    list_of,
    map_of,
    number,
    or_null,
    text,
    word,
)
from likewise.errors import ModelError, UsageError
from likewise.records import Relation
from likewise.registry import texts_of_rows

FORMAT = 1
# Points on a scale, and labels of a relation: a head has a row of weights for each.
_MOST_POINTS = 100_000
_MOST_RELATIONS = 1_000
_TOP: Rules = {
    "family": word,
    "relations": list_of(lambda value: isinstance(value, dict), _MOST_RELATIONS),
    "source": map_of(word),
    "padding": among("safe", "infersent-v1"),
    "recipe": or_null(lambda value: isinstance(value, dict)),
    "stages": or_null(list_of(lambda value: isinstance(value, dict))),
    "versions": or_null(map_of(or_null(word))),
}
# What other versions and people may leave out of a model.json, or set to null.
_NOTES = ("recipe", "stages", "versions")
# What a new model's card says of each stage; what else a stage reported is kept as it is.
_STAGE: Rules = {
    "name": word,
    **dict.fromkeys(("pairs", "steps", "best_step"), lambda value: type(value) is int),
    "best_value": or_null(number),
    "leakage": list_of(text),
    "history": list_of(map_of(or_null(number))),
}
_TOLD = frozenset(_STAGE) - {"leakage"}
_RELATION: Rules = {
    "name": lambda value: word(value) and bool(value),
    "kind": among("graded", "ordered", "classes"),
    **dict.fromkeys(("lo", "hi", "step"), number),
    "labels": list_of(text, _MOST_POINTS),
    "positions": list_of(number, _MOST_POINTS),
    "metric": word,
    "description": text,
    "texts": list_of(list_of(text, _MOST_POINTS), _MOST_POINTS),
}


def read_document(path: Path) -> dict[str, Any]:
    """A model.json, refused if it is damaged or of another format."""
    document = read_json(path, most=MOST_DOCUMENT)
    if not isinstance(document, dict):
        raise ModelError(f"{path}: expected a table; {DAMAGED}")
    if document.get("format") != FORMAT:
        found = str(document.get("format"))[:40]
        raise ModelError(
            f"{path}: format {found!r}, this version reads {FORMAT}; upgrade likewise if it is not damaged"
        )
    check_keys({key: value for key, value in document.items() if key in _TOP}, _TOP, path)
    relations = [read_relation(entry, path) for entry in document.get("relations", [])]
    if set(document.get("source", {})) != {relation.name for relation in relations}:
        raise ModelError(f"{path}: its relations and their sources have different names; {DAMAGED}")
    return {key: value for key, value in document.items() if key not in _NOTES or value is not None}


def stage_reports(document: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    """What a model.json tells of the stages that it was trained by; refused if a card could not tell it."""
    reports = list(document.get("stages", ()))
    for place, report in enumerate(reports):
        check_keys(report, _STAGE, path, inside=f"stages.{place}", others=anything)
        if missing := sorted(_TOLD - set(report)):
            raise ModelError(f"{path}: stages.{place}.{missing[0]} is missing; {DAMAGED}")
    return reports


def read_relation(entry: Any, path: Path) -> Relation:
    """A relation as a model.json tells it."""
    check_keys(entry, _RELATION, path, inside="relation")
    with reading(path):
        steps = (entry["hi"] - entry["lo"]) / entry["step"] if entry["kind"] == "graded" else 0
        if steps > _MOST_POINTS:
            raise ModelError(
                f"{path}: relation {entry['name']!r} has a scale of {steps:.3g} steps; {DAMAGED}"
            )
        return Relation.from_dict(entry)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a damaged part of a model.json makes its readers raise becomes one line about that file."""
    try:
        yield
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())[:200]
        raise ModelError(f"{path}: {reason}; {DAMAGED}") from error
    except (UsageError, RuntimeError) as error:
        raise ModelError(f"{path}: {' '.join(str(error).split())[:300]}; {DAMAGED}") from error


def document_of(name: str | os.PathLike[str]) -> dict[str, Any] | None:
    """A model's model.json; None where an encoder has none."""
    own = Path(name) / DOCUMENT  # a model grown on a function has no encoder to resolve
    with reading(own):
        own = own if os.path.lexists(own) else local_folder(name) / DOCUMENT
    if os.path.lexists(own):
        return read_document(own)
    if os.path.lexists(own.parent):
        raise ModelError(
            f"{own}: is missing, so nobody knows what this model answers; copy the folder again, or remove "
            f"{own.parent} to use it as a plain encoder"
        )
    return None


def texts_of_model(name: str | os.PathLike[str]) -> int:
    """How many texts make a row of a model, 1 or 2; known without loading it."""
    document = document_of(name)
    return 2 if document is None else texts_of_document(document, Path(name) / DOCUMENT)


def texts_of_document(document: Mapping[str, Any], path: Path) -> int:
    """How many texts make a row of the model that a model.json describes, 1 or 2."""
    with reading(path):
        texts = texts_of_rows(document)
    if texts not in (1, 2):
        raise ModelError(f"{path}: says that {texts} texts make a row, expected 1 or 2; {DAMAGED}")
    return texts


def is_raw(name: str | os.PathLike[str]) -> bool:
    """Whether a name leads to an encoder that was taught to answer nothing."""
    document = document_of(name)
    return document is None or not document.get("relations")
