"""Checks of what a Python caller passes, made before anything is built from it. A wrong type is a
UsageError.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from likewise.errors import UsageError
from likewise.files import may_be_path
from likewise.wording import has_half_character, quoted


def require_text(value: object, what: str, *, optional: bool = True) -> None:
    """Refuse a value that is not a text. `what` names the argument. Empty texts are refused where they are
    read.
    """
    if value is None and optional:
        return
    if not isinstance(value, str) or has_half_character(value):
        raise _wrong(value, what, "a text")


def require_path(value: object, what: str, *, optional: bool = False) -> None:
    """Refuse a value that cannot be a path: another type, an empty or overlong name, or a name with a NUL."""
    if value is None and optional:
        return
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not may_be_path(path):
        raise _wrong(value, what, "the name of a file or folder, as text or Path")


def require_folder_name(value: object, what: str, *, optional: bool = False) -> None:
    """Refuse a folder that weights cannot be written to: safetensors takes only names in UTF-8."""
    require_path(value, what, optional=optional)
    if value is not None and has_half_character(str(value)):
        raise UsageError(f"{what} {quoted(str(value))} is not UTF-8. Choose a folder name in UTF-8.")


def whole_number(variable: str, *, least: int) -> int:
    """The whole number in an environment variable. A UsageError names the variable if it holds none."""
    said = os.environ.get(variable)
    try:
        found = int(said or "")
    except ValueError:
        found = least - 1
    if found < least:
        shown = "not set" if said is None else quoted(said)
        raise UsageError(f"{variable} is {shown}, but it must be a whole number of at least {least}.")
    return found


def require_flag(value: object, what: str) -> None:
    """Refuse a value that is neither True nor False, because a text such as "no" would count as true."""
    if not isinstance(value, int) or value not in (0, 1):
        raise _wrong(value, what, "True or False")


def require_number(value: object, what: str, *, low: float, high: float, optional: bool = False) -> None:
    """Refuse a value that is not a number from low to high. None passes if it is optional."""
    if optional and value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    if not number or not low <= value <= high:  # type: ignore[operator]
        raise _wrong(value, what, f"a number from {low:g} to {high:g}")


def require_count(value: object, what: str, *, most: int) -> None:
    """Refuse a value that is not a whole number from 1 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise _wrong(value, what, f"a whole number from 1 to {most}")


def require_seed(value: object, what: str = "seed") -> None:
    """Refuse a seed that numpy or torch does not accept."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**32:
        raise _wrong(value, what, "a whole number from 0 to 4294967295")


def require_function(value: object, what: str, *, optional: bool = True) -> None:
    """Refuse a value that cannot be called."""
    if not callable(value) and not (optional and value is None):
        raise _wrong(value, what, "a function")


def require_mapping(value: object, what: str, *, optional: bool = True) -> None:
    """Refuse a value that is not a mapping from names."""
    if value is None and optional:
        return
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _wrong(value, what, "a dict from names to values")


def listed_names(value: Any, what: str) -> list[str]:
    """One name or several names as a list. None gives an empty list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    plain = isinstance(value, Iterable) and not isinstance(value, Mapping | bytes)
    if not plain or hasattr(value, "columns"):
        raise _wrong(value, what, "a name, or a list of names")
    names = list(value)
    if not all(isinstance(name, str) for name in names):
        raise _wrong(value, what, "a name, or a list of names")
    return names


def require_device(value: object) -> None:
    """Refuse a value that does not name a device. A torch.device is accepted."""
    known = isinstance(value, str) or type(value).__name__ == "device"
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1024
    if value is not None and not known and not whole:
        raise _wrong(value, "device", "cpu, cuda, cuda:1, mps or None")


def _wrong(value: object, what: str, expected: str) -> UsageError:
    return UsageError(
        f"{what} is {quoted(value, most=80)} ({type(value).__name__}), but it must be {expected}."
    )
