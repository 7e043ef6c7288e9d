"""What lies below a folder, file by file, so that two states can be told apart."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Tree = Mapping[str, str]

# Values that differ between two runs of the same command.
_MOVING = re.compile(r"(^|_)(created|date|time|seconds|second|pid|started|duration|runtime)$")
# The name that a run gives itself, in its mark and in its model.
_DRAWN = re.compile(r"[0-9a-f]{16}")
# Names that are drawn at random: partial files, temporary files and folders, shards of vectors.
_RANDOM = (
    (re.compile(r"(?<=\.)[0-9a-f]{8,32}(?=\.|$)"), "*"),
    (re.compile(r"(?<=\.)[a-z0-9_]{8}(?=\.partial$)"), "*"),
    (re.compile(r"^\.likewise-[0-9a-f]{16}$"), ".likewise-*"),
    (re.compile(r"^\.tmp[A-Za-z0-9]{6}$"), ".tmp*"),
    (re.compile(r"^((?:likewise-[a-z]+-|tmp))[a-z0-9_]{8}$"), r"\1*"),
    (re.compile(r"^[0-9a-f]{16}(?=\.safetensors$)"), "*"),
)
# What is on its way to a name, or guards one: no part of a state that is old or new.
_WORKING = re.compile(r"(^|/)(\.|[^/]*\.(partial|lock|tmp)(/|$)|writing-\d+(/|$))")

_FOLDER = "folder"


def exact(folder: Path) -> dict[str, str]:
    """Every file, folder and link with a hash of what it holds, to the bit."""
    return {name: _digest(path, moving=False) for name, path in _walk(folder)}


def exact_sizes(folder: Path) -> dict[str, int]:
    """The size of every file."""
    return {name: path.lstat().st_size for name, path in _walk(folder) if path.is_file()}


def alike(folder: Path) -> dict[str, str]:
    """The same, apart from dates, seconds and names that are drawn at random."""
    found: dict[str, str] = {}
    for name, path in _walk(folder):
        digest = _digest(path, moving=True)
        shown = plain_path(name)
        # Several files may share a name once what is random in it is gone.
        key = shown if shown == name else f"{shown} [{digest[:12]}]"
        found[key + "+" * sum(known.rstrip("+") == key for known in found)] = digest
    return found


def finished(tree: Tree) -> dict[str, str]:
    """The files of a tree that are not on their way to a name and do not guard one; folders do not count."""
    return {name: digest for name, digest in tree.items() if digest != _FOLDER and not is_working(name)}


def is_working(name: str) -> bool:
    """Whether a path is on its way to another name, or guards one."""
    return bool(_WORKING.search(name))


def below(tree: Tree, place: str) -> dict[str, str]:
    """The part of a tree at a place: the file or folder itself and all in it."""
    return {name: digest for name, digest in tree.items() if name == place or name.startswith(f"{place}/")}


def differences(found: Tree, wanted: Tree) -> list[str]:
    """What one tree has, lacks, or has otherwise than another, one line each."""
    lines = [f"left over: {name}" for name in sorted(found.keys() - wanted.keys())]
    lines += [f"missing: {name}" for name in sorted(wanted.keys() - found.keys())]
    both = sorted(found.keys() & wanted.keys())
    return lines + [f"different: {name}" for name in both if found[name] != wanted[name]]


def _walk(folder: Path) -> list[tuple[str, Path]]:
    if not os.path.lexists(folder):
        return []
    if folder.is_symlink() or not folder.is_dir():
        return [(".", folder)]
    found = []
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here, name)
            found.append((path.relative_to(folder).as_posix(), path))
    return sorted(found)


def _digest(path: Path, *, moving: bool) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    if path.is_dir():
        return _FOLDER
    content = path.read_bytes()
    if moving and path.suffix in (".json", ".jsonl"):
        content = _still(content)
    return hashlib.sha256(content).hexdigest()


def _still(content: bytes) -> bytes:
    """JSON without what moves; anything else as it is."""
    try:
        documents = [json.loads(content)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in content.splitlines()]
        except ValueError:
            return content
    return json.dumps([_without(document) for document in documents], sort_keys=True).encode()


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        # A document that hashes itself hashes its dates and seconds, too.
        if "sha256" in value and any(map(_MOVING.search, value)):
            value = {key: inner for key, inner in value.items() if key != "sha256"}
        return {key: _without(inner) for key, inner in value.items() if not _moves(key, inner)}
    if isinstance(value, list):
        return [_without(inner) for inner in value]
    return value


def plain_path(path: str) -> str:
    """A path without what is drawn at random in it."""
    return "/".join(map(_plain, path.split("/")))


def _moves(key: str, value: Any) -> bool:
    drawn = key in ("id", "run") and isinstance(value, str) and bool(_DRAWN.fullmatch(value))
    return drawn or bool(_MOVING.search(key))


def _plain(name: str) -> str:
    for pattern, shown in _RANDOM:
        name = pattern.sub(shown, name)
    return name
