"""Open model folders safely. All model folders are opened here.

    open_folder     a sentence-transformers or transformers folder → its modules, each with its weights files
    open_network    a transformer that is in one folder with its tokenizer → a single module
    open_settings   the settings of a delta's encoder, without its transformer → the modules after it

Everything in a folder is checked before a library reads it: its files (`reading`), the classes and keys that
they name (`settings`), the weights that would be read (here and `weights`), and that these are the weights
that were saved (`manifest`). No code of a folder is run, nothing is downloaded, and no pickle is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from likewise.encoders.manifest import verify_files
from likewise.encoders.reading import DAMAGED, MEBIBYTE, check_files, read_json
from likewise.encoders.rules import check_keys
from likewise.encoders.settings import (
    MODULE_ENTRY,
    WITH_WEIGHTS,
    check_model_settings,
    check_module,
    module_class,
)
from likewise.encoders.weights import read_header
from likewise.errors import ModelError
from likewise.files import note_input

_MOST_MODULES = 64
# What a delta may hold behind its base's transformer: modules of vectors, which read no texts.
_AFTER = frozenset({"Pooling", "Normalize", "Dense", "Dropout", "LayerNorm"})
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@dataclass(frozen=True, slots=True)
class OpenedModule:
    """One module of a folder: the name of its class, its own folder, and its weights files."""

    kind: str
    folder: Path
    weights: tuple[Path, ...] = ()


def open_folder(folder: Path) -> tuple[OpenedModule, ...]:
    """Check everything that a loader would read in a folder, and return its modules in order."""
    check_files(folder)
    note_input(folder)
    kind = check_model_settings(folder / "config_sentence_transformers.json")
    listed = folder / "modules.json"
    # The library loads another class of model as a bare transformer, whatever modules it lists.
    if not listed.exists() or kind != "SentenceTransformer":
        return (open_network(folder),)
    parts = []
    for name, path in _modules(listed):
        place = folder / path
        if place != folder and place.exists():
            check_files(place)
        parts.append(_part(name, place))
    verify_files(folder)
    return tuple(parts)


def open_network(folder: Path) -> OpenedModule:
    """Check a transformer that is in one folder with its tokenizer."""
    check_files(folder)
    note_input(folder)
    part = _part("Transformer", folder)
    verify_files(folder)
    return part


def open_settings(folder: Path) -> tuple[OpenedModule, ...]:
    """Check an encoder's settings without its transformer; returns the modules that come after it."""
    check_files(folder)
    check_model_settings(folder / "config_sentence_transformers.json")
    listed = folder / "modules.json"
    (first, _), *others = _modules(listed)
    if first != "Transformer":
        raise ModelError(f"{listed}: the first module of a delta is a Transformer, not a {first}; {DAMAGED}")
    parts = []
    for kind, path in others:
        if kind not in _AFTER or path == PurePosixPath("."):
            raise ModelError(f"{listed}: a {kind} cannot come after the transformer of a delta; {DAMAGED}")
        parts.append(open_module(kind, folder / path))
    return tuple(parts)


def open_module(kind: str, folder: Path) -> OpenedModule:
    """Check one module in its own folder."""
    check_files(folder)
    return _part(kind, folder)


def _part(kind: str, folder: Path) -> OpenedModule:
    check_module(kind, folder)
    part = OpenedModule(kind, folder, _weights(kind, folder) if kind in WITH_WEIGHTS else ())
    for file in part.weights:
        read_header(file)
    return part


def _modules(listed: Path) -> list[tuple[str, PurePosixPath]]:
    """The class name and path of every module that modules.json lists."""
    entries = read_json(listed)
    if not isinstance(entries, list) or not 0 < len(entries) <= _MOST_MODULES:
        raise ModelError(f"{listed}: expected a list of 1 to {_MOST_MODULES} modules; {DAMAGED}")
    found, names = [], set()
    for entry in entries:
        check_keys(entry, MODULE_ENTRY, listed)
        if not {"name", "path", "type"} <= set(entry) or entry["name"] in names:
            raise ModelError(f"{listed}: every module needs its own path, type and name; {DAMAGED}")
        names.add(entry["name"])
        found.append((module_class(entry["type"], listed), _inside(entry["path"], listed)))
    return found


def _inside(path: str, listed: Path) -> PurePosixPath:
    windows = PureWindowsPath(path)
    if windows.anchor or path.startswith("~") or ".." in windows.parts or "\0" in path:
        raise ModelError(f"{listed}: the path {path!r} leads out of the folder. Move the module into it.")
    if any(part.startswith(".") for part in windows.parts):
        raise ModelError(f"{listed}: the path {path!r} is hidden. Name the module's folder without a dot.")
    return PurePosixPath(path)


def _weights(kind: str, folder: Path) -> tuple[Path, ...]:
    """The safetensors files that a loader reads; raises an error where it would read a pickle instead."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.exists():
        return (whole,)
    if index.exists() and kind == "Transformer":
        return _shards(index)
    for name in _PICKLES:
        if (folder / name).exists():
            raise ModelError(
                f"{folder / name}: pickled weights are not read, because a pickle can run code. "
                "Convert them to safetensors, or use a newer model."
            )
    raise ModelError(f"{folder}: the file model.safetensors is missing; {DAMAGED}")


def _shards(index: Path) -> tuple[Path, ...]:
    document = read_json(index, most=16 * MEBIBYTE)
    names = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(names, dict) or not isinstance(document.get("metadata"), dict):
        raise ModelError(f"{index}: expected a weight_map and metadata; {DAMAGED}")
    files = sorted({str(name) for name in names.values()})
    for name in files:
        if not re.fullmatch(r"[\w.-]+\.safetensors", name):
            raise ModelError(f"{index}: {name!r} is not a safetensors file of this folder; {DAMAGED}")
        if not (index.parent / name).exists():
            raise ModelError(f"{index.parent / name} is missing; {DAMAGED}")
    return tuple(index.parent / name for name in files)
