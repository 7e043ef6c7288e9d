"""Read recipes: shipped ones by name, TOML files by path, with overrides (`stage.0.learning_rate=3e-5`)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.documents import parse_toml_value, read_toml, split_path
from likewise.errors import Problem, RecipeError, UsageError
from likewise.files import is_there
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.schema.shipped import shipped_document, shipped_recipes
from likewise.spelling import spelt
from likewise.wording import quoted

# Overrides as text ("stage.0.learning_rate=3e-5") or as a mapping from path to value.
Overrides = Sequence[str] | Mapping[str, Any]


def read_recipe(name: str, *, overrides: Overrides = (), encoder: str | None = None) -> Recipe:
    """Read a recipe by file or shipped name, replace its encoder, apply overrides and validate it."""
    document, where = named_document(name)
    return recipe_from(document, where, overrides=overrides, encoder=encoder)


def recipe_from(
    document: dict[str, Any], where: str, *, overrides: Overrides = (), encoder: str | None = None
) -> Recipe:
    """Validate a recipe that is already a mapping, after replacements and overrides."""
    if encoder is not None:
        document["encoder"] = {**_as_table(document.get("encoder")), "kind": "pretrained", "name": encoder}
    changes = overrides if isinstance(overrides, Mapping) else dict(map(parse_override, overrides))
    for path, value in changes.items():
        set_value(document, path, value)
    return parse_recipe(document, where)


def _as_table(encoder: Any) -> dict[str, Any]:
    return dict(encoder) if isinstance(encoder, dict) else {}


def named_document(name: str) -> tuple[dict[str, Any], str]:
    """The mapping of a recipe file or a shipped recipe, and its name in errors."""
    path = Path(name)
    if path.suffix == ".toml":
        if not is_there(path):
            raise RecipeError(
                [
                    Problem(
                        name,
                        "there is no such recipe file",
                        f"check the path, or use a shipped recipe: {', '.join(shipped_recipes())}",
                    )
                ]
            )
        return read_toml(path, "recipe"), name
    if name not in shipped_recipes():
        raise RecipeError(
            [
                Problem(
                    name,
                    "this is neither a recipe file nor a shipped recipe",
                    f"give the path of a recipe file, or one of {', '.join(shipped_recipes())}",
                )
            ]
        )
    return shipped_document(name), f"recipe {name}"


def parse_override(override: str) -> tuple[str, Any]:
    """The path and value of `stage.0.learning_rate=3e-5`; the value is read as TOML, or else as text."""
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise UsageError(
            f"{spelt('overrides')} {quoted(override)} is not PATH=VALUE. Write it like "
            "stage.0.learning_rate=3e-5."
        )
    return path.strip(), parse_toml_value(text.strip())


def set_value(document: Any, path: str, value: Any) -> None:
    """Set one value by a dotted path; missing tables are created, but list entries must exist.

    List entries are counted from 0. A name that contains a dot is quoted: relation."avg.score".hi. A table or
    list is copied, so that a later path below it does not change the caller's value.
    """
    value = copy.deepcopy(value)
    *way, last = split_path(path)
    place = document
    for step in way:
        if isinstance(place, list):
            place = place[_index(step, place, path)]
        elif isinstance(place.get(step), dict | list):
            place = place[step]
        else:
            place[step] = (
                {"name": place[step]} if step == "encoder" and isinstance(place.get(step), str) else {}
            )
            place = place[step]
    if isinstance(place, list):
        place[_index(last, place, path)] = value
    else:
        place[last] = value


def _index(step: str, place: list[Any], path: str) -> int:
    if not step.isdigit() or int(step) >= len(place):
        raise UsageError(
            f"{path}: {step!r} is not an entry of this list of length {len(place)}. Count entries from 0."
        )
    return int(step)
