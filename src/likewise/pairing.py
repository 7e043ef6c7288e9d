"""Features of a pair of vectors, and whether they compare the two texts.

    u, v        the vectors themselves
    absdiff     |u − v|
    prod        u * v
    cosine      cos(u, v), one column
    euclid      ‖u − v‖, one column

A linear head over [u; v] alone is a·u + c·v. However it is trained, it cannot compare the texts.
`Pairing.interacts` reports this, and `methods.pairs` refuses the combination.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from likewise.errors import UsageError

PARTS = ("u", "v", "absdiff", "prod", "cosine", "euclid")
_MEETING = frozenset({"absdiff", "prod", "cosine", "euclid"})
_SCALAR = frozenset({"cosine", "euclid"})


class Pairing:
    """An ordered choice of pair features. It maps (u, v), each of shape B×d, to B×F."""

    def __init__(self, parts: Sequence[str]) -> None:
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts or len(set(parts)) != len(parts):
            raise UsageError(
                f"pairing {list(parts)} has unknown or repeated parts. Choose "
                f"different parts among {', '.join(PARTS)}."
            )
        self.parts = tuple(parts)

    @property
    def interacts(self) -> bool:
        """Whether any feature depends on both texts at once."""
        return bool(_MEETING & set(self.parts))

    def width(self, dimension: int) -> int:
        """The number of features F for vectors of width d."""
        return sum(1 if part in _SCALAR else dimension for part in self.parts)

    def __call__(self, u: Tensor, v: Tensor) -> Tensor:
        """Features of shape B×F."""
        return torch.cat(self.split(u, v), dim=-1)

    def split(self, u: Tensor, v: Tensor) -> list[Tensor]:
        """The parts of the features one by one, each of shape B×F_part."""
        made: dict[str, Callable[[], Tensor]] = {
            "u": lambda: u,
            "v": lambda: v,
            "absdiff": lambda: (u - v).abs(),
            "prod": lambda: u * v,
            "cosine": lambda: functional.cosine_similarity(u, v, dim=-1, eps=1e-8)[:, None],
            "euclid": lambda: torch.linalg.vector_norm(u - v, dim=-1, keepdim=True),
        }
        return [made[part]() for part in self.parts]
