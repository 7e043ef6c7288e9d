"""What a model folder says about itself in likewise/model.json, read without loading the model or torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from likewise.encoders.manifest import DOCUMENT, MOST_DOCUMENT
from likewise.encoders.reading import DAMAGED, read_json
from likewise.encoders.resolve import local_folder, possible_path
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
from likewise.naming import kept_recipe
from likewise.records import Relation
from likewise.registry import RAW_FAMILY, family_name, texts_of_rows

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
    """Read a model.json. A damaged file, or one of another format, is an error."""
    document = read_json(path, most=MOST_DOCUMENT)
    if not isinstance(document, dict):
        raise ModelError(f"{path}: this is not a table of keys; {DAMAGED}")
    if document.get("format") != FORMAT:
        found = str(document.get("format"))[:40]
        raise ModelError(
            f"{path}: the format is {found!r}, but this version reads format {FORMAT}. Upgrade "
            "likewise, unless the file is damaged."
        )
    check_keys({key: value for key, value in document.items() if key in _TOP}, _TOP, path)
    relations = [read_relation(entry, path) for entry in document.get("relations", [])]
    if set(document.get("source", {})) != {relation.name for relation in relations}:
        raise ModelError(f"{path}: its relations and its sources have different names; {DAMAGED}")
    known = {key: value for key, value in document.items() if key not in _NOTES or value is not None}
    return {**known, "recipe": kept_recipe(known["recipe"])} if "recipe" in known else known


def stage_reports(document: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    """The reports of the stages in a model.json. A report that a model card could not show is an error."""
    reports = list(document.get("stages", ()))
    for place, report in enumerate(reports):
        check_keys(report, _STAGE, path, inside=f"stages.{place}", others=anything)
        if missing := sorted(_TOLD - set(report)):
            raise ModelError(f"{path}: stages.{place}.{missing[0]} is missing; {DAMAGED}")
    return reports


def read_relation(entry: Any, path: Path) -> Relation:
    """A relation in a model.json."""
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
    """Turn any error that a damaged model.json causes in its readers into one line about that file."""
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
    """The model.json of a model, or None for an encoder without one."""
    given = possible_path(name)
    own = Path(name) / DOCUMENT
    with reading(own):
        # A model grown on a function has no encoder to resolve.
        own = own if given is not None and os.path.lexists(own) else local_folder(name) / DOCUMENT
    if os.path.lexists(own):
        return read_document(own)
    if os.path.lexists(own.parent):
        raise ModelError(
            f"{own}: the file is missing, so it is unknown what this model answers. Copy the folder "
            f"again, or remove {own.parent} to use the model as a raw encoder."
        )
    return None


def texts_of_model(name: str | os.PathLike[str]) -> int:
    """How many texts a row of a model has, 1 or 2. The model is not loaded."""
    document = document_of(name)
    return 2 if document is None else texts_of_document(document, Path(name) / DOCUMENT)


def texts_of_document(document: Mapping[str, Any], path: Path) -> int:
    """How many texts a row has, 1 or 2, of the model that a model.json describes."""
    with reading(path):
        texts = texts_of_rows(document)
    if texts not in (1, 2):
        raise ModelError(f"{path}: a row has {texts} texts, but 1 or 2 are expected; {DAMAGED}")
    return texts


def has_pair_vectors(document: Mapping[str, Any]) -> bool:
    """Whether a model.json describes an encoder whose vectors can be compared: that of a model of pairs, or
    one that was trained for no relation.
    """
    return not document.get("relations") or family_name(document) == RAW_FAMILY
