"""Adapters: layers that change vectors after a frozen encoder, and how each folds into standard layers.

    Projection    W x + b                                  one layer
    Prelayer      φ(W x + b)                               one layer
    Convolution   x + k ∗ x, the vector as a signal        one layer: a banded matrix
    Refinement    x + W2 φ(W1 x + b1) + b2                 two layers, exactly

A `Layer` is what the Dense module of sentence-transformers computes, φ(W x + b), so a folded adapter loads
there without code of ours. The residual of a refinement folds exactly, because each activation that is
allowed there gives a number back from its two halves: φ(x) − φ(−x) = x for relu, gelu and silu.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from likewise.errors import UsageError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}
# φ(x) − φ(−x) = x: what passes a vector through an activation unharmed.
_HALVES = ("relu", "gelu", "silu")


@dataclass(frozen=True, slots=True)
class Layer:
    """The layer φ(W x + b), with W of shape out×in and b of shape out."""

    weight: Tensor
    bias: Tensor
    activation: str = "identity"

    def __call__(self, x: Tensor) -> Tensor:
        made: Tensor = ACTIVATIONS[self.activation]()(x @ self.weight.T + self.bias)
        return made


class Adapter(nn.Module):
    """Base class of the adapters. `forward` maps B×d → B×d', and `layers()` gives the same map as standard
    layers.
    """

    def layers(self) -> list[Layer]:
        """The adapter folded into layers, with detached weights."""
        raise NotImplementedError


class Projection(Adapter):
    """One linear layer. It starts as the identity, or as torch initialises it."""

    def __init__(self, width: int, *, start: Literal["identity", "random"] = "identity") -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        if start == "identity":
            nn.init.eye_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """B×d → B×d."""
        made: Tensor = self.linear(x)
        return made

    def layers(self) -> list[Layer]:
        """One layer."""
        return [_layer(self.linear)]


class Prelayer(Adapter):
    """A linear layer followed by an activation. Without the activation it would be redundant before a
    linear layer.
    """

    def __init__(self, width: int, activation: str = "tanh") -> None:
        super().__init__()
        if activation == "identity":
            raise UsageError(
                "a prelayer without an activation changes nothing before a linear "
                "layer. Choose an activation."
            )
        self.linear = nn.Linear(width, width)
        self.activation = activation
        self.phi = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        """B×d → B×d."""
        made: Tensor = self.phi(self.linear(x))
        return made

    def layers(self) -> list[Layer]:
        """One layer."""
        return [_layer(self.linear, self.activation)]


class Convolution(Adapter):
    """x + k ∗ x + b, with the vector as a signal of one channel and of unchanged length. It starts as the
    identity.
    """

    def __init__(self, width: int, kernel: int = 3) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise UsageError(
                f"the kernel width of a convolution is {kernel}, but it must be odd. "
                "Choose an odd width, such as 3 or 5."
            )
        self.width = width
        self.conv = nn.Conv1d(1, 1, kernel, padding=kernel // 2)
        nn.init.zeros_(self.conv.weight)
        nn.init.zeros_(self.conv.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """B×d → B×d."""
        made: Tensor = x + self.conv(x[:, None])[:, 0]
        return made

    def layers(self) -> list[Layer]:
        """One layer: the convolution of every unit vector, side by side."""
        with torch.no_grad():
            unit = torch.eye(self.width, device=self.conv.weight.device)
            shift = self(torch.zeros_like(unit[:1]))[0]
            return [Layer((self(unit) - shift).T.contiguous(), shift)]


class Refinement(Adapter):
    """A two-layer network, x + W2 φ(W1 x + b1) + b2. With a residual it starts as the identity."""

    def __init__(
        self, width: int, *, hidden: int | None = None, activation: str = "relu", residual: bool = True
    ) -> None:
        super().__init__()
        if residual and activation not in _HALVES:
            raise UsageError(
                f"a residual around {activation} does not fold into standard layers. Use "
                f"{', '.join(_HALVES)}, or set residual = false."
            )
        self.first = nn.Linear(width, hidden or width)
        self.second = nn.Linear(hidden or width, width)
        self.activation, self.residual = activation, residual
        self.phi = ACTIVATIONS[activation]()
        if residual:
            nn.init.zeros_(self.second.weight)
            nn.init.zeros_(self.second.bias)

    def forward(self, x: Tensor) -> Tensor:
        """B×d → B×d."""
        made: Tensor = self.second(self.phi(self.first(x)))
        return x + made if self.residual else made

    def layers(self) -> list[Layer]:
        """Two layers. The residual passes beside the hidden units as its two halves."""
        first, second = _layer(self.first, self.activation), _layer(self.second)
        if not self.residual:
            return [first, second]
        unit = torch.eye(self.first.in_features, device=first.weight.device)
        nothing = first.bias.new_zeros(2 * self.first.in_features)
        wide = Layer(
            torch.cat([first.weight, unit, -unit]), torch.cat([first.bias, nothing]), self.activation
        )
        return [wide, Layer(torch.cat([second.weight, unit, -unit], dim=1), second.bias)]


def fold(adapters: Iterable[Adapter]) -> list[Layer]:
    """Fold adapters, one after the other, into as few layers as possible. Neighbouring linear layers
    become one matrix.
    """
    folded: list[Layer] = []
    for layer in (layer for adapter in adapters for layer in adapter.layers()):
        if folded and folded[-1].activation == "identity":
            before = folded.pop()
            layer = Layer(
                _exact(layer.weight, before.weight),
                _exact(layer.weight, before.bias) + layer.bias,
                layer.activation,
            )
        folded.append(layer)
    return folded


def _layer(linear: nn.Linear, activation: str = "identity") -> Layer:
    return Layer(linear.weight.detach().clone(), linear.bias.detach().clone(), activation)


def _exact(weight: Tensor, other: Tensor) -> Tensor:
    """A matrix product in double precision, so that folding loses no digits."""
    return (weight.double() @ other.double()).to(weight.dtype)
