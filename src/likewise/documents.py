"""TOML files that people write: recipes, experiments, suites. Read, checked, every problem named at once."""

from __future__ import annotations

import difflib
import tomllib
import typing
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

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
        raise RecipeError([_problem(entry, where, model, data) for entry in _told(error)]) from None


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


def _problem(entry: Any, where: str, model: type[BaseModel], data: Any) -> Problem:
    path = [part for part in entry["loc"] if part not in _TYPES]
    place = f"{where}: {'.'.join(map(str, path))}" if path else where
    if entry["type"] == "extra_forbidden":
        return Problem(place, "is not a known key", _nearest(path, model, data))
    message = entry["msg"].removeprefix("Value error, ")
    found = entry.get("input")
    shown = f" (found {found!r})" if isinstance(found, str | int | float | bool) else ""
    return Problem(place, message[:1].lower() + message[1:] + shown)


def _nearest(way: list[Any], model: type[BaseModel], data: Any) -> str:
    known = list(_part_at(way[:-1], model, data).model_fields)
    close = difflib.get_close_matches(str(way[-1]), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"


def _part_at(way: list[Any], model: type[BaseModel], data: Any) -> type[BaseModel]:
    """The model that describes the table a path leads to; tables of several shapes say themselves which."""
    for step in way:
        field = model.model_fields.get(str(step))
        inner = _model_in(field.annotation) if field is not None else None
        model = inner or model
        data = data[step] if isinstance(data, dict | list | tuple) else None
        shape_of = getattr(model, "shape_of", None)
        if shape_of is not None and isinstance(data, dict):
            model = shape_of(data)
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(argument) for argument in typing.get_args(annotation))
    return next((inner for inner in found if inner is not None), None)
