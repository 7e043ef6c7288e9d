"""Heads: pair features B×F → an answer in the form its codec reads.

    name          output                      codec form   parameters
    scalar        ŷ, B                        value        Linear(F→1), or with hidden layers
    distribution  log p̂ over the grid, B×K    grid         Linear(F→K), or Tai's F→50→K with a sigmoid between
    classes       logits, B×C                 class        Linear(F→C), or with hidden layers
    cosine        cos(u, v), B                unit         none; needs pairing ["cosine"]
    contrast      cos(u_i, v_j), B×B          unit         none; in-batch similarities for InfoNCE

`read` turns an output into what the codec decodes. A head may `scale` its features first, so that one
learning rate suits every encoder, whatever the length of its vectors.
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
    """B×F → B×F, each part of the features in units of its spread, measured once before training.

    One unit per part, not per column: encoders have dead columns, and a unit of nothing would turn the first
    movement of such a column into a landslide. Parts weigh the same whatever their width: one cosine is not
    drowned by hundreds of differences. Over all columns the mean square spread is 1.
    """

    spread: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("spread", torch.ones(features))

    @property
    def measured(self) -> bool:
        """Whether `measure` was called, here or before the weights were saved."""
        return bool((self.spread != 1).any())

    def measure(self, parts: Sequence[Tensor]) -> None:
        """Take the spreads from the parts of the features, N×F₁, N×F₂, …"""
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
        """Let features through as they are."""
        self.spread.fill_(1.0)

    def forward(self, features: Tensor) -> Tensor:
        """Features in units of their spread."""
        return features / self.spread


@dataclass(frozen=True, slots=True)
class Layers:
    """A head's layers: whether features are scaled first, widths of hidden layers, what stands between."""

    hidden: tuple[int, ...] = ()
    activation: str = "sigmoid"
    scale: bool = False

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise UsageError(f"activation {self.activation!r} is not one of {', '.join(ACTIVATIONS)}")

    @property
    def linear(self) -> bool:
        """Whether all of it is one linear map."""
        return not self.hidden or ACTIVATIONS[self.activation] is None

    def build(self, features: int, outputs: int) -> nn.Module:
        """The layers F → hidden → … → outputs."""
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
    """How often each label was given, C; never quite 0."""
    counts = torch.tensor([given.count(label) for label in labels], dtype=torch.float32) + 1e-3
    return counts / counts.sum()


@contextmanager
def answering_by_share(layers: nn.Module, shares: Tensor) -> Iterator[None]:
    """Let layers that end in logits say of every row how often each class occurs, C, inside the block.

    That is all there is to know about classes before anything is learnt.
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
    """What all heads share: the codec form they speak, and whether they are linear in their features."""

    form: Form = "value"
    linear: bool = True

    def read(self, output: Tensor) -> Tensor:
        """The output as the codec's `decode` expects it."""
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
        """Let a linear head begin as a line over one column of its features, all others weighing nothing."""
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
    """B×F → B×K log-probabilities over the score grid; the answer is the expectation."""

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
    """A monotone map of cosines that lie on a line, any shape."""
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
    """B×1 → B: the cosine itself. Trains the encoder alone.

    `slope` and `offset` move a cosine onto the unit target when it is read, not while it trains: losses that
    only rank (pearson, cosent) leave its level free, and `set_line` settles it afterwards. `map` bends
    what lies on that line, monotone: no rank changes by it.
    """

    form: Form = "unit"
    map: str = "identity"
    slope: Tensor
    offset: Tensor

    def __init__(self, features: int, *, outputs: int = 1, layers: Layers = PLAIN) -> None:
        super().__init__()
        if features != 1 or layers.hidden:
            raise UsageError('a cosine head takes pairing = ["cosine"] and no hidden layer')
        self.register_buffer("slope", torch.ones(()))
        self.register_buffer("offset", torch.zeros(()))

    def forward(self, features: Tensor) -> Tensor:
        """Cosines, B."""
        return features[:, 0]

    def read(self, output: Tensor) -> Tensor:
        """Cosines on the line to the unit target, bent by the map."""
        return map_cosine(self.map, self.slope * output + self.offset)

    def set_line(self, slope: float, offset: float) -> None:
        """Fix the line between cosine and unit target."""
        self.slope.fill_(slope)
        self.offset.fill_(offset)


class ContrastHead(CosineHead):
    """Like cosine, but trained through all B×B similarities of the batch (`losses.infonce`)."""


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
    """A relation's name as the name of its parameters: another for every name, and the same for usual ones.

    torch takes no dot in the name of a part, and no name that its containers have for themselves ("keys").
    """
    made = _MARK.sub("%25", name).replace(".", "%2E")
    return f"{made}%00" if made in _TAKEN else made


def make_head(name: str, features: int, *, outputs: int, layers: Layers = PLAIN) -> Head:
    """Build a head by its name in a recipe."""
    if name not in HEADS:
        raise UsageError(f"head {name!r} is not one of {', '.join(HEADS)}")
    return HEADS[name](features, outputs=outputs, layers=layers)
