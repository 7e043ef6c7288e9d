"""Heads: layers that turn pair features B×F into an answer, in the form that its codec reads.

    name          output                      codec form   parameters
    scalar        ŷ, B                        value        Linear(F→1), or with hidden layers
    distribution  log p̂ over the grid, B×K    grid         Linear(F→K), or Tai's F→50→K with a sigmoid between
    classes       logits, B×C                 class        Linear(F→C), or with hidden layers
    cosine        cos(u, v), B                unit         none; needs pairing ["cosine"]
    contrast      cos(u_i, v_j), B×B          unit         none; in-batch similarities for InfoNCE

`read` turns an output into the form that the codec decodes. A head may `scale` its features first, so that
one learning rate suits every encoder, whatever the length of its vectors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.errors import UsageError
from likewise.records import Form

# Between a head's layers. Tai et al. 2015 have a sigmoid; InferSent's NLI head has three layers and nothing.
ACTIVATIONS: dict[str, Callable[[], nn.Module] | None] = {
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "none": None,
}


class UnitSpread(nn.Module):
    """Scale features B×F, dividing each part by its spread, which is measured once before training.

    There is one unit per part, not one per column. Encoders have dead columns, and a unit near zero would
    make the first change in such a column huge. All parts weigh the same, whatever their width, so one cosine
    is not drowned out by hundreds of differences. Over all columns the mean square spread is 1.
    """

    spread: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("spread", torch.ones(features))

    @property
    def measured(self) -> bool:
        """Whether `measure` was called, in this process or before the weights were saved."""
        return bool((self.spread != 1).any())

    def measure(self, parts: Sequence[Tensor]) -> None:
        """Measure the spreads on the parts of the features, N×F₁, N×F₂, …"""
        widths = [part.shape[1] for part in parts]
        usual = sum(widths) / len(widths)
        units = [part.std(dim=0, unbiased=False).square().mean().sqrt() for part in parts]
        self.spread.copy_(
            torch.cat(
                [
                    (unit * (width / usual) ** 0.5).clamp(min=1e-12).expand(width)
                    for unit, width in zip(units, widths, strict=True)
                ]
            )
        )

    def reset(self) -> None:
        """Pass features through unchanged from now on."""
        self.spread.fill_(1.0)

    def forward(self, features: Tensor) -> Tensor:
        """The features divided by their spread."""
        return features / self.spread


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a head: whether features are scaled first, the widths of hidden layers, and their
    activation.
    """

    hidden: tuple[int, ...] = ()
    activation: str = "sigmoid"
    scale: bool = False

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise UsageError(f"activation {self.activation!r} is not one of {', '.join(ACTIVATIONS)}")

    @property
    def linear(self) -> bool:
        """Whether the layers together are one linear map."""
        return not self.hidden or ACTIVATIONS[self.activation] is None

    def build(self, features: int, outputs: int) -> nn.Module:
        """Build the layers F → hidden → … → outputs."""
        if not self.hidden and not self.scale:
            return nn.Linear(features, outputs)
        between = ACTIVATIONS[self.activation]
        made: list[nn.Module] = [UnitSpread(features)] if self.scale else []
        for width in self.hidden:
            made += [nn.Linear(features, width), *([between()] if between else [])]
            features = width
        last = nn.Linear(features, outputs)
        if self.scale:  # features of size one under random weights would begin with a guess to unlearn
            nn.init.zeros_(last.weight)
        return nn.Sequential(*made, last)


PLAIN = Layers()


def label_shares(given: Sequence[str], labels: Sequence[str]) -> Tensor:
    """The relative frequency of each label, C. It is never exactly 0."""
    counts = torch.tensor([given.count(label) for label in labels], dtype=torch.float32) + 1e-3
    return counts / counts.sum()


@contextmanager
def answering_by_share(layers: nn.Module, shares: Tensor) -> Iterator[None]:
    """Inside the block, let layers that end in logits answer every row with the frequency of each class, C.

    That is all that is known about the classes before training.
    """
    linear = [layer for layer in layers.modules() if isinstance(layer, nn.Linear)]
    last = [layer for layer in linear if layer.out_features == len(shares)][-1]
    kept = [value.detach().clone() for value in (last.weight, last.bias)]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(torch.log(shares.to(last.bias)))
    try:
        yield
    finally:
        with torch.no_grad():
            last.weight.copy_(kept[0])
            last.bias.copy_(kept[1])


class Head(nn.Module):
    """Base class of the heads: the codec form of their output, and whether they are linear in their
    features.
    """

    form: Form = "value"
    linear: bool = True

    def read(self, output: Tensor) -> Tensor:
        """The output in the form that the codec's `decode` expects."""
        return output


class ScalarHead(Head):
    """B×F → B, one real number on the relation's own scale."""

    form: Form = "value"

    def __init__(self, features: int, *, outputs: int = 1, layers: Layers = PLAIN) -> None:
        super().__init__()
        self.linear = layers.linear
        self.single = not layers.hidden  # one layer, no hidden ones
        self.layers = layers.build(features, 1)

    def begin_on_line(self, column: int, slope: float, offset: float) -> None:
        """Start a linear head as a line over one column of its features, with zero weight on all other
        columns.
        """
        [last] = [layer for layer in self.layers.modules() if isinstance(layer, nn.Linear)]
        units = [layer.spread[column] for layer in self.layers.modules() if isinstance(layer, UnitSpread)]
        with torch.no_grad():
            last.weight.zero_()
            last.weight[0, column] = slope * math.prod(float(unit) for unit in units)
            last.bias.fill_(offset)

    def forward(self, features: Tensor) -> Tensor:
        """Predicted numbers, B."""
        return torch.squeeze(self.layers(features), -1)


class DistributionHead(Head):
    """B×F → B×K log-probabilities over the score grid. The answer is the expectation."""

    form: Form = "grid"

    def __init__(self, features: int, *, outputs: int, layers: Layers = PLAIN) -> None:
        super().__init__()
        self.linear = layers.linear
        self.layers = layers.build(features, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Log-probabilities, B×K."""
        return torch.log_softmax(self.layers(features), dim=-1)

    def read(self, output: Tensor) -> Tensor:
        """Probabilities, B×K."""
        return output.exp()


class ClassesHead(Head):
    """B×F → B×C logits."""

    form: Form = "class"

    def __init__(self, features: int, *, outputs: int, layers: Layers = PLAIN) -> None:
        super().__init__()
        self.linear = layers.linear
        self.layers = layers.build(features, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Logits, B×C."""
        logits: Tensor = self.layers(features)
        return logits


def map_cosine(name: str, x: Tensor) -> Tensor:
    """Apply a monotone map to cosines on the line, of any shape."""
    if name == "clamp":
        return x.clamp(min=0)
    if name == "sigmoid":
        return torch.sigmoid(x)
    if name == "tanh":
        return torch.tanh(x)
    if name == "arccos":
        return 1 - torch.arccos(x.clamp(-1 + 1e-6, 1 - 1e-6)) / torch.pi
    return x


class CosineHead(Head):
    """B×1 → B: the cosine itself. It has no layers of its own, so only the encoder is trained.

    `slope` and `offset` move a cosine onto the unit target when it is read, not during training. Losses that
    only rank (pearson, cosent) leave the level of the cosine free, and `set_line` fixes it after training.
    `map` then bends the line monotonically, which changes no rank.
    """

    form: Form = "unit"
    map: str = "identity"
    slope: Tensor
    offset: Tensor

    def __init__(self, features: int, *, outputs: int = 1, layers: Layers = PLAIN) -> None:
        super().__init__()
        if features != 1 or layers.hidden:
            raise UsageError(
                'a cosine head needs `pairing = ["cosine"]` and no hidden layers. Change one or the other.'
            )
        self.register_buffer("slope", torch.ones(()))
        self.register_buffer("offset", torch.zeros(()))

    def forward(self, features: Tensor) -> Tensor:
        """Cosines, B."""
        return features[:, 0]

    def read(self, output: Tensor) -> Tensor:
        """Cosines moved onto the unit target by the line, then bent by the map."""
        return map_cosine(self.map, self.slope * output + self.offset)

    def set_line(self, slope: float, offset: float) -> None:
        """Fix the line between cosine and unit target."""
        self.slope.fill_(slope)
        self.offset.fill_(offset)


class ContrastHead(CosineHead):
    """Like cosine, but trained on all B×B similarities of the batch (`losses.infonce`)."""


HEADS: dict[str, Callable[..., Head]] = {
    "scalar": ScalarHead,
    "distribution": DistributionHead,
    "classes": ClassesHead,
    "cosine": CosineHead,
    "contrast": ContrastHead,
}


# A percent sign that would read as one of our own marks (%2E, %00), however often it was escaped before.
_MARK = re.compile(r"%(?=(?:25)*(?:2E|00))")
_TAKEN = frozenset(dir(nn.ModuleDict()))


def parameter_name(name: str) -> str:
    """A relation's name as the name of its parameters: unique for every name, and unchanged for usual names.

    torch allows no dot in the name of a part, and no name that its containers use themselves ("keys").
    """
    made = _MARK.sub("%25", name).replace(".", "%2E")
    return f"{made}%00" if made in _TAKEN else made


def make_head(name: str, features: int, *, outputs: int, layers: Layers = PLAIN) -> Head:
    """Build a head by its name in a recipe."""
    if name not in HEADS:
        raise UsageError(f"head {name!r} is not one of {', '.join(HEADS)}")
    return HEADS[name](features, outputs=outputs, layers=layers)
