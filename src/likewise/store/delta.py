"""Write a delta folder: turn a complete model folder into one that holds only the change of its base."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from likewise.encoders.delta import SETTINGS, STORAGES, TENSORS
from likewise.encoders.lowrank import factors
from likewise.errors import UsageError
from likewise.spelling import spelt

_KEPT_SETTINGS = ("modules.json", "config_sentence_transformers.json")
# The folder of a module after the transformer, such as 1_Pooling.
_MODULE = re.compile(r"\d+_")
_LARGEST_HALF = float(torch.finfo(torch.float16).max)
_MOST_INT8 = 127


@dataclass(frozen=True, slots=True)
class StoredChange:
    """The tensors of a delta file, and the share of the change that they keep (of its Frobenius norm)."""

    tensors: Mapping[str, Tensor]
    kept: float


def store_change(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], *, rank: int, storage: str
) -> StoredChange:
    """The change of each weight as a delta file holds it; weights that did not change are left out.

    A matrix becomes two factors where they are smaller than the matrix. Any other tensor is kept whole.
    """
    found: dict[str, Tensor] = {}
    whole = lost = 0.0
    for name, old in before.items():
        change = after[name].detach().cpu().double() - old.detach().cpu().double()
        norm = float(change.square().sum())
        if not norm:
            continue
        parts, stored = _parts(change, rank, storage)
        found |= {f"{name}.{kind}": part.contiguous() for kind, part in parts.items()}
        whole += norm
        lost += float((change - stored).square().sum())
    return StoredChange(found, math.sqrt(max(0.0, 1 - lost / whole)) if whole else 1.0)


def _parts(change: Tensor, rank: int, storage: str) -> tuple[dict[str, Tensor], Tensor]:
    """What is stored of a change, and the change that is read from it."""
    if change.dim() != 2 or rank * sum(change.shape) >= change.numel():
        half = _half(change)
        return {"change": half}, half.double()
    left, right = factors(change, rank)
    if storage == "float16":
        left, right = _half(left), _half(right)
        return {"left": left, "right": right}, left.double() @ right.double()
    left, left_scale = _int8(left, dim=0)
    right, right_scale = _int8(right, dim=1)
    stored = (left.double() * left_scale.double()) @ (right_scale.double()[:, None] * right.double())
    parts = {"left": left, "right": right, "left_scale": left_scale, "right_scale": right_scale}
    return parts, stored


def _half(values: Tensor) -> Tensor:
    """Values in half precision, or in single precision if one is too large for it."""
    fits = not values.numel() or float(values.abs().max()) <= _LARGEST_HALF
    return values.to(torch.float16 if fits else torch.float32)


def _int8(factor: Tensor, *, dim: int) -> tuple[Tensor, Tensor]:
    """A factor as whole numbers from −127 to 127, with the scale of each column (0) or row (1)."""
    largest = factor.abs().amax(dim=dim, keepdim=True)
    scale = torch.where(largest > 0, largest / _MOST_INT8, torch.ones_like(largest)).float()
    return (factor / scale).round().clamp(-_MOST_INT8, _MOST_INT8).to(torch.int8), scale.flatten()


def reduce_folder(folder: Path, change: StoredChange) -> None:
    """Replace the encoder in a complete model folder by its change; heads are kept in half precision."""
    own = folder / "likewise"
    place = folder / SETTINGS
    place.mkdir()
    for path in sorted(folder.iterdir()):
        if path == own:
            continue
        if path.name in _KEPT_SETTINGS or _MODULE.match(path.name):
            path.rename(place / path.name)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    save_file(dict(change.tensors), folder / TENSORS)
    heads = own / "heads.safetensors"
    if heads.is_file():
        save_file({name: _half(tensor) for name, tensor in load_file(heads).items()}, heads)


def check_storage(rank: object, storage: object) -> None:
    """Raise an error for a rank or a storage that a delta cannot have."""
    if type(rank) is not int or rank < 1:
        raise UsageError(f"{spelt('rank')} is {rank!r}. Give a whole number of at least 1, such as 32.")
    if storage not in STORAGES:
        raise UsageError(f"{spelt('storage')} {storage!r} is unknown. Choose one of {', '.join(STORAGES)}.")
