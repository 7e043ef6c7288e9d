"""The recipes that come with the package, as they are written."""

from __future__ import annotations

from importlib import resources
from typing import Any

from likewise.documents import parse_toml

_ROOM = "likewise.recipes"


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    folder = resources.files(_ROOM)
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def shipped_document(name: str) -> dict[str, Any]:
    """The mapping of a shipped recipe."""
    return parse_toml(resources.files(_ROOM).joinpath(f"{name}.toml").read_bytes(), name)
