"""Read the files of a model folder with limits: only regular files, limited in size and depth of JSON.

Pipes, devices, loops of links and files that would fill the memory are errors before a library opens them. So
is a JSON key that occurs twice.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from likewise.errors import LikewiseError, ModelError
from likewise.files import note_input
from likewise.spelling import spelt
from likewise.starting import importing

MEBIBYTE = 2**20
# A tokenizer's file with 260,000 pieces has 34 MB.
LARGE = 64 * MEBIBYTE
SMALL = 4 * MEBIBYTE
_TEXTS = frozenset({".json", ".txt", ".md", ".jinja", ".model", ".spm"})
_DEPTH = 64
_MOST_FILES = 10_000
DAMAGED = "the folder is damaged or incomplete, so copy the model or train it again"
# How transformers names the parts that many processes wrote; read by another loader, never needed here.
_DISTRIBUTED = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
# Files that would turn a text encoder into something else: an adapter of another model, images, sounds.
_OTHER_KINDS = {
    "adapter_config.json": "holds an adapter of another model. Merge the two and save the whole model.",
    "processor_config.json": "belongs to a model of images or sound, but Likewise reads texts. Remove it.",
    "preprocessor_config.json": "belongs to a model of images or sound, but Likewise reads texts. Remove it.",
    "video_preprocessor_config.json": "belongs to a model of films, but Likewise reads texts. Remove it.",
}
Loaded = TypeVar("Loaded")


def check_files(folder: Path) -> None:
    """Raise an error for files that loaders cannot read safely: pipes, loops, adapters, huge files."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_MOST_FILES + 1), strict=False))
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be read ({error.strerror}). Check the path and its permissions."
        ) from None
    if len(names) > _MOST_FILES:
        raise ModelError(
            f"{folder} holds more than {_MOST_FILES:,} files, but a model has only a few. Check the path."
        )
    for name in names:
        if name in _OTHER_KINDS:
            raise ModelError(f"{folder / name} {_OTHER_KINDS[name]}")
        if _DISTRIBUTED.fullmatch(name):
            raise ModelError(f"{folder / name} is a part of distributed training. Save the model as a whole.")
        _check_file(folder / name)
        note_input(folder / name)  # by itself too: it may be a link to a file elsewhere
    templates = folder / "additional_chat_templates"
    if templates.is_dir():
        check_files(templates)


def _check_file(path: Path) -> None:
    """Raise an error unless the path is a folder, or a regular file that is small enough to be loaded."""
    try:
        found = path.stat()
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); {DAMAGED}") from None
    if stat.S_ISDIR(found.st_mode):
        if path.suffix in (".json", ".safetensors"):
            raise ModelError(f"{path} is a folder where a file is expected; {DAMAGED}")
        return
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{path} is a pipe or a device, not a file. Remove it.")
    if path.suffix in _TEXTS and found.st_size > LARGE:
        raise ModelError(f"{path} has {found.st_size:,} bytes, but at most {LARGE:,} are read; {DAMAGED}")


def read_if_there(path: Path, *, most: int = SMALL) -> Any:
    """The content of a JSON file; None if it does not exist."""
    return read_json(path, most=most) if os.path.lexists(path) else None


def read_json(path: Path, *, most: int = SMALL) -> Any:
    """The content of a JSON file of at most `most` bytes; damage and repeated keys are errors."""
    _check_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ModelError(f"{path} is larger than {most:,} bytes, but no such file needs more; {DAMAGED}")
        document = json.loads(content.decode("utf8"), object_pairs_hook=_once)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); {DAMAGED}") from None
    except RecursionError:
        raise ModelError(f"{path} is nested too deeply; {DAMAGED}") from None
    except ValueError as error:
        reason = " ".join(str(error).split())[:120]
        raise ModelError(f"{path} cannot be read as JSON ({reason}); {DAMAGED}") from None
    _check_depth(document, path)
    return document


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:60]!r} occurs twice")
        found[name] = value
    return found


def _check_depth(document: Any, path: Path) -> None:
    level = [document]
    for _ in range(_DEPTH):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise ModelError(f"{path} is nested more than {_DEPTH} levels deep; {DAMAGED}")


def loading(where: str | os.PathLike[str], build: Callable[[], Loaded]) -> Loaded:
    """Run a loader; any error that a damaged folder causes becomes a one-line ModelError."""
    try:
        with importing():
            return build()
    except LikewiseError:
        raise
    except Exception as error:
        raise ModelError(_load_message(where, error)) from error
    except BaseException as error:
        # A panic in tokenizers or safetensors, which are Rust, is not even an Exception.
        if type(error).__module__ == "pyo3_runtime":
            raise ModelError(_load_message(where, error)) from None
        raise


def _load_message(where: str | os.PathLike[str], error: BaseException) -> str:
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    remedy = DAMAGED
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        remedy = f"there is not enough memory for it, so use a smaller model or another {spelt('device')}"
    return f"{os.fspath(where)} cannot be loaded ({reason}); {remedy}"
