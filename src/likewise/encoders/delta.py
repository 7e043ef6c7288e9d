"""Delta folders: models that hold the change of another encoder's weights, and not the weights.

    likewise/model.json          "base": the encoder that was changed, by its name and a hash of its tensors
    likewise/delta.safetensors   NAME.left and NAME.right, two factors of a change, or NAME.change, all of it
    likewise/encoder/            modules.json, prompts, and the modules after the transformer

    W = W of the base + left @ right          left out×r, right r×in
    int8: left * left_scale, right_scale * right, with one scale for each of the r columns and rows

The transformer's settings and its tokenizer are those of the base. A base may itself be a delta, whose base
must be whole. It is found on this machine (`resolve.base_folders`); only the bases of the models that come
with Likewise are downloaded.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from likewise.encoders.lowrank import network_of, network_tensors, tensors_sha256
from likewise.encoders.manifest import DOCUMENT, MOST_DOCUMENT, verify_files
from likewise.encoders.opening import OpenedModule, open_settings
from likewise.encoders.reading import DAMAGED, check_files, loading, read_if_there
from likewise.encoders.resolve import BASE_NAME, BASES, base_folders, fetch, how_to_get, is_delta
from likewise.encoders.rules import Rules, among, check_keys, or_null, size
from likewise.encoders.sentence import load_whole
from likewise.encoders.weights import check_finite, load_module, read_formats, read_tensors, refuse_names
from likewise.errors import ModelError
from likewise.files import file_sha256

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TENSORS, SETTINGS = "likewise/delta.safetensors", "likewise/encoder"
_FLOATS = ("F16", "F32")
# How factors are stored, and the number formats of each storage in a file.
STORAGES: Mapping[str, tuple[str, ...]] = {"float16": _FLOATS, "int8": ("I8",)}
_FORMS = (
    {"change"},
    {"left", "right"},
    {"left", "right", "left_scale", "right_scale"},
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BASE: Rules = {
    "name": lambda value: isinstance(value, str) and BASE_NAME.fullmatch(value) is not None,
    "tensors": lambda value: isinstance(value, str) and _SHA256.fullmatch(value) is not None,
    "rank": size,
    "storage": among(*STORAGES),
    "max_length": or_null(size),
}
_WHOLE_FILES = ("modules.json", "config.json", "model.safetensors")


@dataclass(frozen=True, slots=True)
class Base:
    """What a delta says about itself: its base, the largest rank of a change, and how factors are stored.

    `max_length` is the number of tokens after which the model cuts a text; None if it has no limit.
    """

    name: str
    tensors: str
    rank: int
    storage: str
    max_length: int | None

    def to_dict(self) -> dict[str, Any]:
        """The entry in model.json."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class JoinedEncoder:
    """An encoder in memory: a base with its change. `source` is the folder of the whole base.

    `fingerprint` identifies the encoder as a base of another delta.
    """

    encoder: SentenceTransformer
    source: Path
    fingerprint: str


def join_delta(folder: Path, *, device: str | None = None, depth: int = 0) -> JoinedEncoder:
    """Load the encoder of a delta folder: find its base, add the change, and apply the settings."""
    base, after = open_delta(folder)
    found = _find_base(base, folder, depth)
    file = folder / TENSORS
    add_change(network_of(found.encoder, found.source), file, base)
    encoder = with_settings(found.encoder, folder / SETTINGS, after, base, device=device)
    return JoinedEncoder(encoder, found.source, _fingerprint(base, file))


def open_delta(folder: Path) -> tuple[Base, tuple[OpenedModule, ...]]:
    """Check a delta folder; returns what it says about its base, and the modules after its transformer."""
    for place in (folder, folder / "likewise"):
        check_files(place)
    for name in _WHOLE_FILES:
        if os.path.lexists(folder / name):
            raise ModelError(
                f"{folder} holds a change of weights ({TENSORS}) and also {name} of a whole model, so it is "
                f"unclear which is meant; {DAMAGED}"
            )
    document = read_if_there(folder / DOCUMENT, most=MOST_DOCUMENT)
    entry = document.get("base") if isinstance(document, dict) else None
    check_keys(entry, _BASE, folder / DOCUMENT, inside="base")
    if missing := sorted(set(_BASE) - set(entry or {})):
        raise ModelError(f"{folder / DOCUMENT}: base.{missing[0]} is missing; {DAMAGED}")
    verify_files(folder)
    return Base(**(entry or {})), open_settings(folder / SETTINGS)


def open_base(folder: Path, *, depth: int = 1) -> JoinedEncoder:
    """Load the encoder in a folder as the base of a delta; at `depth` 1 it may be a delta itself."""
    if is_delta(folder):
        if depth < 1:
            raise ModelError(
                f"{folder} is a delta on a delta, so it cannot be the base of another delta. Load it, save "
                "it as a whole model, and use that as the base."
            )
        return join_delta(folder, device="cpu", depth=1)
    encoder = load_whole(folder, device="cpu")
    return JoinedEncoder(encoder, folder, tensors_sha256(network_tensors(network_of(encoder, folder))))


def _find_base(base: Base, folder: Path, depth: int) -> JoinedEncoder:
    """The base of a delta: the first folder under its names with the right tensors."""
    others = []
    for place in base_folders(base.name, folder):
        found = open_base(place, depth=1 - depth)
        if found.fingerprint == base.tensors:
            return found
        others.append((place, found.fingerprint))
    if others:
        place, fingerprint = others[0]
        raise ModelError(
            f"{folder} changes the weights of {base.name} (hash of the tensors {base.tensors[:12]}…), but "
            f"{place} holds other weights ({fingerprint[:12]}…). {how_to_get(base.name)}"
        )
    if base.name in BASES:
        try:
            fetched = Path(fetch(base.name))
        except ModelError as error:
            raise _missing(base, folder) from error
        found = open_base(fetched, depth=0)
        if found.fingerprint == base.tensors:
            return found
    raise _missing(base, folder)


def _missing(base: Base, folder: Path) -> ModelError:
    return ModelError(
        f"{folder} changes the weights of {base.name} (hash of the tensors {base.tensors[:12]}…), which are "
        f"not on this machine. {how_to_get(base.name)}"
    )


def _fingerprint(base: Base, file: Path) -> str:
    """What identifies base and change together: sums of floats differ between machines, files do not."""
    return hashlib.sha256(f"{base.tensors}\n{file_sha256(file)}\n".encode()).hexdigest()


@torch.no_grad()
def add_change(network: nn.Module, file: Path, base: Base) -> None:
    """Add the change in a file to a transformer; its names, shapes and numbers are checked first."""
    tensors = network_tensors(network)
    parts = _described(file, tensors, base)
    held = read_tensors(file, formats=(*_FLOATS, "I8"))
    for name, kinds in parts.items():
        found = {kind: held[f"{name}.{kind}"].float() for kind in kinds}
        tensors[name].add_(_change(found).to(tensors[name].device))
    check_finite(tensors, file)


def _change(found: Mapping[str, Tensor]) -> Tensor:
    """The change of a weight from what is stored of it."""
    if "change" in found:
        return found["change"]
    left, right = found["left"], found["right"]
    if "left_scale" in found:
        left, right = left * found["left_scale"], right * found["right_scale"][:, None]
    return left @ right


def _described(file: Path, tensors: Mapping[str, Tensor], base: Base) -> dict[str, set[str]]:
    """The parts of the change of each weight, compared with the base before any is read."""
    formats, parts = read_formats(file), dict[str, set[str]]()
    for full in formats:
        name, _, kind = full.rpartition(".")
        parts.setdefault(name, set()).add(kind)
    refuse_names(file, unexpected=[name for name in parts if name not in tensors])
    for name, kinds in parts.items():
        shape = tuple(tensors[name].shape)
        if kinds not in _FORMS or ("left" in kinds and len(shape) != 2):
            told = ", ".join(sorted(kinds))[:100]
            raise ModelError(f"{file}: the change of {name} has the parts {told}; {DAMAGED}")
        rank = formats[f"{name}.left"][0][-1:] if "left" in kinds else ()
        if rank and not 1 <= rank[0] <= min(base.rank, *shape):
            raise ModelError(
                f"{file}: the change of {name} has rank {rank[0]:,}, but at most "
                f"{min(base.rank, *shape):,} is possible; {DAMAGED}"
            )
        expected = _expected(shape, rank, base.storage)
        for kind in kinds:
            held = formats[f"{name}.{kind}"]
            if held[0] != expected[kind][0] or held[1] not in expected[kind][1]:
                told = f"is {held[1]} of shape {list(held[0])}, but {' or '.join(expected[kind][1])} of shape"
                raise ModelError(
                    f"{file}: {name}.{kind} {told} {list(expected[kind][0])} is expected; {DAMAGED}"
                )
        if ("left_scale" in kinds) != (base.storage == "int8") and "left" in kinds:
            raise ModelError(f"{file}: the factors of {name} are not stored as {base.storage}; {DAMAGED}")
    return parts


def _expected(
    shape: tuple[int, ...], rank: tuple[int, ...], storage: str
) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """The shape and the number formats of each part of a weight's change."""
    factor = STORAGES[storage]
    return {
        "change": (shape, _FLOATS),
        "left": ((*shape[:1], *rank), factor),
        "right": ((*rank, *shape[1:]), factor),
        **dict.fromkeys(("left_scale", "right_scale"), (rank, ("F32",))),
    }


def with_settings(
    encoder: SentenceTransformer,
    folder: Path,
    after: tuple[OpenedModule, ...],
    base: Base,
    *,
    device: str | None = None,
) -> SentenceTransformer:
    """The transformer of an encoder with the modules, prompts and maximum length of a delta."""
    from sentence_transformers import SentenceTransformer

    settings = read_if_there(folder / "config_sentence_transformers.json") or {}
    known = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
    modules = [encoder[0], *(load_module(part.kind, part.folder, part.weights) for part in after)]
    options = {key: settings[key] for key in known if settings.get(key) is not None}
    made = loading(folder, lambda: SentenceTransformer(modules=modules, device=device, **options))
    if base.max_length is not None:
        made.max_seq_length = base.max_length
    return made.float()
