"""Matchers: scores of how well texts fit labels, from their vectors. X is B×m, Y is C×m, the scores are B×C.

concat-mlp     vᵀ tanh(Wx x̂ + Wy ŷ + b) + c    the default; x̂, ŷ: scaled to √m
bilinear       xᵀ W y
dot            x·y
cosine         τ cos(x, y), τ learnt
euclid         −‖x − y‖
interaction    w·[x; y; |x−y|; x*y] + c
concat-linear  w·[x; y] + c                    as printed in the paper: see `blind`
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.errors import UsageError

# Cosines differ by tenths where logits differ by units.
_START_SCALE = 20.0


class Matcher(nn.Module):
    """Base class of the matchers."""

    # A blind matcher adds one score of the text and one of the label: all texts get the same label.
    blind = False

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Scores B×C."""
        raise NotImplementedError


class ConcatLinear(Matcher):
    """One linear layer over [x; y]."""

    blind = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """wx·x + wy·y + c."""
        of_x, of_y = torch.split(self.linear.weight, x.shape[1], dim=1)
        return x @ of_x.T + (y @ of_y.T).T + self.linear.bias


class ConcatMlp(Matcher):
    """One hidden layer over [x; y], with both scaled to the length √m.

    Some encoders give such short vectors that tanh would be nearly linear at first. A linear layer over [x;
    y] cannot compare x with y.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.of_x = nn.Linear(width, hidden)
        self.of_y = nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """vᵀ tanh(Wx x̂ + Wy ŷ + b) + c. Each side passes through its half of the layer once."""
        length = math.sqrt(x.shape[1])
        x, y = (length * functional.normalize(side, dim=-1) for side in (x, y))
        met = torch.tanh(self.of_x(x)[:, None] + self.of_y(y)[None])
        scores: Tensor = self.out(met)[..., 0]
        return scores


class Bilinear(Matcher):
    """xᵀ W y, where W starts near the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(width) + torch.randn(width, width) * 0.01)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """xᵀ W y."""
        return x @ self.weight @ y.T


class Dot(Matcher):
    """x·y, without parameters."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x·y."""
        return x @ y.T


class Cosine(Matcher):
    """τ cos(x, y)."""

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(_START_SCALE)))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """τ cos(x, y)."""
        return self.log_scale.exp() * functional.normalize(x, dim=-1) @ functional.normalize(y, dim=-1).T


class Euclid(Matcher):
    """Minus the distance between x and y, without parameters."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """−‖x − y‖."""
        return -torch.cdist(x, y)


class Interaction(Matcher):
    """One linear layer over [x; y; |x−y|; x*y]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4 * width, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """w·[x; y; |x−y|; x*y] + c. Only |x−y| needs a row for every combination of text and label."""
        of_x, of_y, apart, product = torch.split(self.linear.weight[0], x.shape[1])
        together = ((x[:, None] - y[None]).abs() @ apart) + (x * product) @ y.T
        return together + (x @ of_x)[:, None] + (y @ of_y)[None] + self.linear.bias


_MAKERS: dict[str, Callable[[int, int], Matcher]] = {
    "concat-mlp": ConcatMlp,
    "bilinear": lambda width, hidden: Bilinear(width),
    "dot": lambda width, hidden: Dot(),
    "cosine": lambda width, hidden: Cosine(),
    "euclid": lambda width, hidden: Euclid(),
    "interaction": lambda width, hidden: Interaction(width),
    "concat-linear": lambda width, hidden: ConcatLinear(width),
}
MATCHERS = tuple(_MAKERS)


def make_matcher(name: str, width: int, *, hidden: int | None = None) -> Matcher:
    """A matcher over vectors of a given width. `hidden` is the hidden width of concat-mlp and defaults to
    the vector width.
    """
    if name not in _MAKERS:
        raise UsageError(f"matcher {name!r} is not one of {', '.join(MATCHERS)}")
    return _MAKERS[name](width, hidden or width)
