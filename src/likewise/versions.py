"""The versions, the machine and the commit that a number was made with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

_PACKAGES = (
    *("likewise", "torch", "transformers", "sentence-transformers", "tokenizers"),
    *("numpy", "scipy", "scikit-learn"),
)
_SECONDS = 10.0


def versions() -> dict[str, str]:
    """The versions that a number depends on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def machine() -> dict[str, str | int]:
    """The platform and its processor, because floating-point sums differ between processors."""
    return {
        "platform": platform.platform(),
        "processor": _processor() or platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
    }


def _processor() -> str:
    """The name of the processor on Linux, and an empty text elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


@cache
def commit() -> str:
    """The commit of the checkout that this code runs from, followed by "-dirty" if a file has changed since.

    It is empty if the package runs from elsewhere, such as site-packages, or if git cannot say.
    """
    package = Path(__file__).resolve().parent
    root = package.parents[1]
    return commit_of(root) if package.parent.name == "src" and (root / ".git").exists() else ""


def commit_of(checkout: Path) -> str:
    """The commit of a checkout, followed by "-dirty" if a tracked file has changed. Empty if git cannot say.

    Nothing is written there: `git describe --dirty` would take the lock of the index, and leave it if killed.
    """
    head = _git(checkout, "rev-parse", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    if head is None or changed is None:
        return ""
    return f"{head}-dirty" if changed else head


def _git(checkout: Path, *words: str) -> str | None:
    """The output of a git command that takes no lock, or None if it fails."""
    try:
        said = subprocess.run(
            ["git", "-C", str(checkout), *words],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip() if said.returncode == 0 else None
