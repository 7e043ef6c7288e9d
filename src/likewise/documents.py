"""TOML files that people write: recipes, experiments and suites. All problems of a file are reported at
once.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import typing
import unicodedata
from collections.abc import Iterator
from datetime import date, time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from likewise.errors import FormatError, Problem, RecipeError
from likewise.files import note_input, os_message, refuse_endless
from likewise.wording import clipped, has_half_character, quoted

_Model = TypeVar("_Model", bound=BaseModel)
# A recipe with ten thousand labels has a few hundred kilobytes.
MAX_BYTES = 4 * 2**20
MAX_DEPTH, _MOST_STEPS = 32, 200
_LONGEST_NAME, _SHORT_NAME = 200, 100
_FILE_NAME = re.compile(r"\w(?:[\w .+,()=-]*[\w+)=-])?")
_MOST_PROBLEMS = 50
_DEEP = f"this is nested more than {MAX_DEPTH} levels deep"
# One step of a dotted name, as TOML's keys have it.
_DOTTED = re.compile(r"""(?<![\w"'-])[\w"'-]++[ \t]*+\.[ \t]*+""")
_STEP = re.compile(r""" "[^"]*" | '[^']*' | [^."']+ """, re.VERBOSE)
# What pydantic adds to a path where a value may be of several types.
_TYPES = ("bool", "str", "list[str]", "tuple[str, ...]", "tuple[str, str]")


def _check_line(name: str) -> str:
    """A name for tables and messages: one line without control characters."""
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name):
        raise ValueError(
            "a name must not hold a line break or another control character. Write it in one line"
        )
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"a name may have at most {_LONGEST_NAME} characters. Shorten it")
    return name


def _check_file_name(name: str) -> str:
    """A name that files are named after. It never leads to another folder."""
    if not _FILE_NAME.fullmatch(name) or len(name.encode("utf8", "replace")) > _LONGEST_NAME:
        raise ValueError(
            "files are named after this name, so it must begin with a letter or digit, contain "
            f"only letters, digits, blanks and . _ - + , ( ) =, and have at most {_LONGEST_NAME} "
            "bytes"
        )
    return name


def to_file_name(text: str, fallback: str) -> str:
    """A text as part of a file name. Characters that cannot stand in one become hyphens."""
    kept = re.sub(r"[^\w .+,()=-]+", "-", text).strip(" .-+,=()")
    kept = kept.encode("utf8", "ignore")[:_SHORT_NAME].decode("utf8", "ignore").strip(" .-")
    return kept if _FILE_NAME.fullmatch(kept) else fallback


# A name in a document that a person reads, and one that files are called by too.
Title = Annotated[str, AfterValidator(_check_line)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
# What numpy and torch both take.
Seed = Annotated[int, Field(ge=0, lt=2**32)]


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a TOML file. `what` names the kind of file in an error."""
    try:
        refuse_endless(path)
        note_input(path)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FormatError as error:
        raise RecipeError(error.problems) from None
    except FileNotFoundError:
        raise RecipeError([Problem(str(path), f"there is no such {what} file", "check the path")]) from None
    except OSError as error:
        raise RecipeError(os_message(error)) from None
    except ValueError as error:  # a NUL in the name
        raise RecipeError(
            [Problem(str(path), f"this cannot be the name of a file ({error})", "check the path")]
        ) from None
    if len(content) > MAX_BYTES:
        found = f"the file is larger than {MAX_BYTES // 2**20} MB, and no {what} file is that large"
        raise RecipeError([Problem(str(path), found, "name another file")])
    return parse_toml(content, str(path))


def parse_toml(content: bytes, where: str) -> dict[str, Any]:
    """TOML text as a mapping."""
    try:
        text = content.decode("utf8")
        _refuse_long_names(text)
        return tomllib.loads(text)
    except RecursionError:
        raise RecipeError([Problem(where, _DEEP, "use fewer levels")]) from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        reason = clipped(str(error))
        raise RecipeError(
            [Problem(where, f"this is not valid TOML ({reason})", "correct the line that the message names")]
        ) from None


def _refuse_long_names(text: str) -> None:
    """Refuse names of very many steps, a.b.c.d…, because the parser's time grows with the square of them."""
    steps = end = 0
    for found in _DOTTED.finditer(text):
        steps = steps + 1 if found.start() == end else 1
        end = found.end()
        if steps > _MOST_STEPS:
            raise RecursionError


def parse_toml_value(text: str) -> Any:
    """A value in TOML's notation (3e-5, true, ["a", "b"]). A text that is not TOML stands for itself."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if list(document) == ["value"] else text


def split_path(path: str) -> list[str]:
    """The steps of a dotted path. A name that contains a dot stands in quotes: relation."avg.score".hi."""
    steps = [step[1:-1] if step[:1] in ("'", '"') else step for step in _STEP.findall(path)]
    if not steps or ".".join(_STEP.findall(path)) != path:
        return path.split(".")
    return steps


def validate(model: type[_Model], data: Any, where: str) -> _Model:
    """Check data against a model. Each problem names its path, counted from zero: `stage.0.data`."""
    if odd := list(islice(_odd_values(data, where), _MOST_PROBLEMS)):
        raise RecipeError(odd)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        entries = _told(error)
        problems = [_problem(entry, where, model, data) for entry in entries[:_MOST_PROBLEMS]]
        if len(entries) > _MOST_PROBLEMS:
            problems.append(
                Problem(where, f"there are {len(entries) - _MOST_PROBLEMS:,} more problems like these")
            )
        raise RecipeError(problems) from None


def _odd_values(data: Any, where: str) -> Iterator[Problem]:
    """Values that TOML or Python can express and no file of ours uses: dates, huge numbers, endless
    nesting.
    """
    places: list[tuple[str, Any, int]] = [("", data, 0)]
    while places:
        path, value, depth = places.pop()
        place = f"{where}: {path}" if path else where
        if depth > MAX_DEPTH:
            yield Problem(place, _DEEP, "use fewer levels")
            return
        if isinstance(value, dict):
            for key, entry in reversed(value.items()):
                if not isinstance(key, str) or "\0" in key or has_half_character(key):
                    yield Problem(place, f"{quoted(key)} cannot be a key", "write the key as plain text")
                    return
                places.append((f"{path}.{clipped(key)}".lstrip("."), entry, depth + 1))
        elif isinstance(value, list | tuple):
            numbered = list(enumerate(value))
            places += [(f"{path}.{number}".lstrip("."), entry, depth + 1) for number, entry in numbered[::-1]]
        elif isinstance(value, str) and has_half_character(value):
            yield Problem(place, f"{quoted(value, most=60)} is not UTF-8", "write it as UTF-8")
        elif isinstance(value, date | time):
            yield Problem(place, f"{value.isoformat()} is a date or a time", "put it in quotes")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            yield Problem(place, "the number has more than 64 bits", "write a smaller number")


def _told(error: ValidationError) -> list[Any]:
    """The errors that help. A list with faulty entries is not also reported as too short."""
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
        return Problem(place, "this is not a known key", _nearest(path, model, data))
    message = entry["msg"].removeprefix("Value error, ")
    found = entry.get("input")
    shown = f" (found {quoted(found)})" if isinstance(found, str | int | float | bool) else ""
    return Problem(place, clipped(message[:1].lower() + message[1:], most=2000) + shown)


def _nearest(way: list[Any], model: type[BaseModel], data: Any) -> str:
    known = list(_part_at(way[:-1], model, data).model_fields)
    close = difflib.get_close_matches(str(way[-1]), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the known keys are {', '.join(known)}"


def _part_at(way: list[Any], model: type[BaseModel], data: Any) -> type[BaseModel]:
    """The model of the table at a path. A table with several shapes says itself which one it has."""
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
