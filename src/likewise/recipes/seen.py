"""What an encoder has been trained on by Likewise before a new training starts from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.resolve import resolve
from likewise.encoders.rules import list_of, word
from likewise.errors import LikewiseError
from likewise.folders import read_document
from likewise.kinds.context import RunContext
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.wording import in_one_line, listed

# The data that a model's earlier trainings read, in model.json.
SEEN = "seen"
_NAMES = list_of(word)


def trained_before(recipe: Recipe, context: RunContext) -> list[str]:
    """The training data of the model that a recipe starts from, oldest first; empty for a raw encoder."""
    if context.encoder is not None or recipe.encoder.kind != "pretrained":
        return []
    return training_data(recipe.encoder.name)


def training_data(name: str | os.PathLike[str]) -> list[str]:
    """The data that Likewise trained a model on, oldest first; empty for a raw encoder."""
    where = resolve(name)
    path = Path(where) / DOCUMENT
    if not os.path.isdir(where) or not os.path.lexists(path):
        return []
    document = read_document(path)
    earlier = document.get(SEEN)
    found = [*(earlier if earlier and _NAMES(earlier) else ()), *_learnt_from(document, path)]
    return list(dict.fromkeys(found))


def _learnt_from(document: Mapping[str, Any], path: Path) -> list[str]:
    """The training data of a model's own recipe, stage by stage."""
    try:
        recipe = parse_recipe(dict(document["recipe"]), str(path))
    except (KeyError, TypeError, ValueError, LikewiseError):
        return []  # saved by nobody's training, or of a kind that is not installed
    return [source for stage in recipe.stage for source in stage.learns_from()]


def told_before(recipe: Recipe, seen: list[str]) -> list[str]:
    """The lines of a plan that say what the starting model has seen."""
    if not seen:
        return []
    name = in_one_line(recipe.encoder.name)
    return [
        f"the encoder {name} was already trained by Likewise, on {in_one_line(listed(seen))}",
        "  a test set that shares texts with these is no longer unseen; `likewise audit` finds shared texts",
    ]
