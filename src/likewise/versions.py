"""Which versions made a number."""

from __future__ import annotations

import importlib.metadata
import platform


def versions() -> dict[str, str]:
    """Versions that a number depends on."""
    names = ("likewise", "torch", "transformers", "sentence-transformers", "tokenizers", "numpy")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
