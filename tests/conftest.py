"""Shared fixtures: where real data and weights lie, and tiny models built without a network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _folder(variable: str, *fallbacks: Path) -> Path | None:
    named = os.environ.get(variable)
    for folder in ([Path(named)] if named else []) + list(fallbacks):
        if folder.is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; the test is skipped, with the reason, where it is absent."""
    folder = _folder("LIKEWISE_DATA", ROOT.parent / "shared" / "data")
    if folder is None:
        pytest.skip("real corpora are not here: set LIKEWISE_DATA to their folder")
    return folder
