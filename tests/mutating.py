"""Every way to damage one key of a JSON document: left out, null, of another type, negative, huge, nested."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

REMOVED = object()
VALUES: tuple[Any, ...] = (
    REMOVED,
    None,
    True,
    -1,
    0,
    10**10,
    10**400,
    1e308,
    "",
    "x",
    "../../x",
    [],
    ["x"],
    [[1]],
    {},
    {"x": {"y": None}},
)
Place = tuple[str | int, ...]


def places(document: Any, before: Place = ()) -> Iterator[Place]:
    """Where a document has a value, from the outside in."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from places(value, (*before, key))


def damaged(document: Any, place: Place, value: Any) -> Any:
    """A copy of the document with another value in one place."""
    made = copy.deepcopy(document)
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    if value is REMOVED:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return made


def all_damage(document: Any) -> Iterator[tuple[Place, Any]]:
    """Every place with every value."""
    for place in places(document):
        for value in VALUES:
            yield place, value
