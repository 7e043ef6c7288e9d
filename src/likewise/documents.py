"""TOML files that people write: recipes, experiments, suites. Read, checked, every problem named at once."""

from __future__ import annotations

import difflib
import tomllib
import typing
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Tag, ValidationError

from likewise.errors import Problem, RecipeError

_Model = TypeVar("_Model", bound=BaseModel)
# What pydantic adds to a path where a value may be of several types.
_TYPES = ("bool", "str", "list[str]", "tuple[str, ...]", "tuple[str, str]")


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a TOML file; `what` names its kind in an error."""
    try:
        return parse_toml(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise RecipeError([Problem(str(path), f"no such {what} file", "check the path")]) from None
    except OSError as error:
        raise RecipeError(
            [Problem(str(path), f"cannot be read ({error.strerror})", "check the path")]
        ) from None


def parse_toml(content: bytes, where: str) -> dict[str, Any]:
    """TOML text as a mapping."""
    try:
        return tomllib.loads(content.decode("utf8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError([Problem(where, f"is not valid TOML ({error})", "fix the line it names")]) from None


def validate(model: type[_Model], data: Any, where: str) -> _Model:
    """Data as the model has it; every problem with its path in one form, zero-based: `stage.0.data`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise RecipeError([_problem(entry, where, model) for entry in _told(error)]) from None


def _told(error: ValidationError) -> list[Any]:
    """The errors that help: a list whose entries are faulty is not also too short."""
    entries = error.errors()
    places = [entry["loc"] for entry in entries]
    return [
        entry
        for entry in entries
        if entry["type"] != "too_short" or not any(_inside(entry["loc"], place) for place in places)
    ]


def _inside(outer: tuple[Any, ...], inner: tuple[Any, ...]) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _problem(entry: Any, where: str, model: type[BaseModel]) -> Problem:
    way = [part for part in entry["loc"] if part not in _TYPES]
    path = [part for place, part in enumerate(way) if not _is_tag(way, place, model)]
    place = f"{where}: {'.'.join(map(str, path))}" if path else where
    if entry["type"] == "extra_forbidden":
        return Problem(place, "is not a known key", _nearest(way, model))
    if entry["type"] == "union_tag_invalid":
        known = ", ".join(_tagged(model))
        return Problem(f"{place}.kind", f"{entry['ctx']['tag']!r} is not one of {known}")
    message = entry["msg"].removeprefix("Value error, ")
    found = entry.get("input")
    shown = f" (found {found!r})" if isinstance(found, str | int | float | bool) else ""
    return Problem(place, message[:1].lower() + message[1:] + shown)


def _nearest(way: list[Any], model: type[BaseModel]) -> str:
    known = list(_part_at(way[:-1], model).model_fields)
    close = difflib.get_close_matches(str(way[-1]), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"


def _part_at(way: list[Any], model: type[BaseModel]) -> type[BaseModel]:
    """The model that describes the table a path leads to."""
    document = model
    for place, step in enumerate(way):
        if _is_tag(way, place, document):
            model = _tagged(document)[step]
            continue
        field = model.model_fields.get(str(step))
        inner = _model_in(field.annotation) if field is not None else None
        model = inner or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(argument) for argument in typing.get_args(annotation))
    return next((inner for inner in found if inner is not None), None)


def _is_tag(way: list[Any], place: int, model: type[BaseModel]) -> bool:
    """Whether a part of a path only says which shape a table has: it follows the table's number."""
    return place > 0 and isinstance(way[place - 1], int) and way[place] in _tagged(model)


def _tagged(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The shapes that a table of this document may have, by the kind it names."""
    found: dict[str, type[BaseModel]] = {}
    waiting = [field.annotation for field in model.model_fields.values()]
    while waiting:
        annotation = waiting.pop()
        tags = [entry.tag for entry in getattr(annotation, "__metadata__", ()) if isinstance(entry, Tag)]
        inner = _model_in(annotation) if tags else None
        if inner is not None:
            found[str(tags[0])] = inner
        waiting += typing.get_args(annotation)
    return dict(sorted(found.items()))
