"""Low-rank approximations of weight changes, and the tensors of a transformer by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def factors(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Factors out×r and r×in, whose product is the closest matrix of that rank to a change out×in (SVD).

    Each factor has the square roots of the singular values, so that their numbers are of similar size.
    """
    u, values, v = torch.linalg.svd(change.double(), full_matrices=False)
    roots = values[:rank].sqrt()
    return u[:, :rank] * roots, roots[:, None] * v[:rank]


def network_of(encoder: SentenceTransformer, name: object) -> nn.Module:
    """The transformer of an encoder, which is its first module; an encoder without one is an error."""
    first: Any = encoder[0]
    if type(first).__name__ != "Transformer":
        raise ModelError(
            f"{name} has no transformer, so its weights have no low-rank change. Use another model."
        )
    network: nn.Module = first.model
    return network


def network_tensors(network: nn.Module) -> dict[str, Tensor]:
    """The floating-point tensors of a transformer by name, without the pooler, which no vector depends on."""
    return {
        name: tensor
        for name, tensor in network.state_dict().items()
        if tensor.is_floating_point() and not name.startswith("pooler.")
    }


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """A hash of names, shapes and values in single precision; the files that they lie in do not matter.

    One tensor after the other is read, so that no second copy of all is made.
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        values = tensors[name].detach().to("cpu", torch.float32).contiguous().view(-1).numpy()
        digest.update(json.dumps([name, list(tensors[name].shape)]).encode() + b"\n")
        if values.size:
            digest.update(values.astype("<f4", copy=False).data.cast("B"))
    return digest.hexdigest()
