"""Losses: (output, target, mask) → one value per example, ≥ 0, and zero where masked. The trainer reduces
them.

Each loss states its formula, the heads it fits, the ranges of its parameters and its source. e is ŷ − y. A
loss that fits a scalar head also fits a described head. Losses over a batch (pearson, cosent, infonce) also
return one value per example; the mean over the observed examples is the published batch loss.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from likewise.errors import UsageError

Boundary = Literal["safe", "paper-clamp", "code-mask", "none"]
Loss = Callable[..., Tensor]
# Fewer pairs than this say nothing about a correlation.
_FEWEST = 4


def l1(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """|e|. Heads: scalar, cosine. Output and target B."""
    return _masked((output - target).abs(), mask)


def mse_loss(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """e². Heads: scalar, cosine (there it is (cos − y01)², Sentence-BERT's regression objective)."""
    return _masked((output - target) ** 2, mask)


def huber(output: Tensor, target: Tensor, mask: Tensor, *, delta: float = 1.0) -> Tensor:
    """½e² for |e| ≤ δ, δ(|e| − ½δ) beyond; δ > 0. Heads: scalar, cosine. Huber 1964."""
    size = (output - target).abs()
    return _masked(torch.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta)), mask)


def translated_relu(
    output: Tensor,
    target: Tensor,
    mask: Tensor,
    *,
    k: float = 1.0,
    x0: float = 0.25,
    boundary: Boundary = "safe",
    lo: float = 0.0,
    hi: float = 1.0,
) -> Tensor:
    """k·max(0, |e| − x0), k > 0, 0 ≤ x0 ≤ half the label spacing. (1, 0) is L1. Heads: scalar, cosine.

    Source: Zhang & Li 2024.
    """
    return _masked(k * _beyond_zone(output, target, x0, boundary, lo, hi), mask)


def smooth_k2(
    output: Tensor,
    target: Tensor,
    mask: Tensor,
    *,
    k: float = 1.0,
    x0: float = 0.25,
    boundary: Boundary = "safe",
    lo: float = 0.0,
    hi: float = 1.0,
) -> Tensor:
    """k·max(0, |e| − x0)², k > 0, 0 ≤ x0 ≤ half the label spacing; C¹ at x0. (1, 0) is MSE.

    Source: Zhang & Li 2024.
    """
    return _masked(k * _beyond_zone(output, target, x0, boundary, lo, hi) ** 2, mask)


def _beyond_zone(
    output: Tensor, target: Tensor, x0: float, boundary: Boundary, lo: float, hi: float
) -> Tensor:
    """max(0, |e| − x0) after the boundary treatment.

    safe         no loss where the label is an end of the scale and the prediction lies beyond that end;
                 everywhere else the gradient is kept
    paper-clamp  the prediction is clamped to lo..hi first: zero gradient outside (the paper's text)
    code-mask    predictions below lo are replaced by lo with zero gradient, nothing is done at the top (the
                 paper's code, where lo is 0)
    none         no treatment
    """
    if boundary == "paper-clamp":
        output = output.clamp(lo, hi)
    elif boundary == "code-mask":
        output = lo + (output - lo) * (output >= lo)
    size = ((output - target).abs() - x0).clamp(min=0.0)
    if boundary == "safe":
        beyond = ((target <= lo) & (output < lo)) | ((target >= hi) & (output > hi))
        size = size.masked_fill(beyond, 0.0)
    return size


def kl_grid(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Σ p(log p − log p̂), with 0·log 0 = 0. Head: distribution. Output log p̂ and target p, both B×K.

    Source: Tai et al. 2015.
    """
    return _masked(functional.kl_div(output, target, reduction="none").sum(dim=-1), mask)


def mse_grid(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Σ (p − p̂)². Head: distribution. Output log p̂ and target p, both B×K. Source: SentEval."""
    return _masked(((output.exp() - target) ** 2).sum(dim=-1), mask)


def cross_entropy(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """−log softmax of the true class. Head: classes. Output logits B×C, target class numbers B."""
    classes = target.long().clamp(min=0)
    return _masked(functional.cross_entropy(output, classes, reduction="none"), mask)


def pearson_loss(output: Tensor, target: Tensor, mask: Tensor, *, group: Tensor | None = None) -> Tensor:
    """½(ẑ − z)² of scores standardised within their group. The batch mean is the mean of 1 − Pearson over
    groups.

    Heads: cosine, scalar. `group` (B) numbers the data set of each pair. Sets that different people rated on
    different scales are compared only within themselves. All sets weigh the same, however many rows of the
    batch they have.
    """
    values = output * 0.0  # keeps the graph where no group is large enough
    members = [keep for keep in _groups(mask, group) if int(keep.sum()) >= _FEWEST]
    for keep in members:
        difference = _standardise(output[keep]) - _standardise(target[keep])
        share = float(mask.sum()) / (len(members) * float(keep.sum()))
        values = values.masked_scatter(keep, 0.5 * share * difference**2)
    return values


def _groups(mask: Tensor, group: Tensor | None) -> list[Tensor]:
    if group is None:
        return [mask.bool()]
    return [mask.bool() & (group == number) for number in torch.unique(group)]


def _standardise(values: Tensor) -> Tensor:
    return (values - values.mean()) / values.std(unbiased=False).clamp(min=1e-4)


def cosent(
    output: Tensor, target: Tensor, mask: Tensor, *, scale: float = 20.0, group: Tensor | None = None
) -> Tensor:
    """log(1 + Σ_{y_i > y_j} e^{scale (c_j − c_i)}), the same value for all observed examples. Heads: cosine,
    scalar.

    It compares every two pairs of the batch that are in the same group and have different ratings. Source: Su
    2022 (CoSENT).
    """
    keep = mask.bool()
    higher = (target[:, None] > target[None, :]) & keep[:, None] & keep[None, :]
    if group is not None:
        higher &= group[:, None] == group[None, :]
    differences = scale * (output[None, :] - output[:, None])
    terms = differences.masked_fill(~higher, float("-inf")).reshape(-1)
    total = torch.logsumexp(torch.cat([terms.new_zeros(1), terms]), dim=0)
    return _masked(total.expand_as(output), mask)


def infonce(
    output: Tensor, target: Tensor, mask: Tensor, *, temperature: float = 0.05, positive: float = 0.99
) -> Tensor:
    """−log e^{cos(u_i,v_i)/τ} / Σ_j e^{cos(u_i,v_j)/τ} for positive pairs. Head: contrast. Output B×B.

    A pair is positive if its unit target is at least `positive`. The other pairs only supply their v as
    negatives. Source: Zhang & Li 2024, equation 3.
    """
    wanted = mask.bool() & (target >= positive)
    value = functional.cross_entropy(
        output / temperature, torch.arange(len(output), device=output.device), reduction="none"
    )
    return _masked(value, wanted)


def anchored(vectors: Tensor, anchors: Tensor, a: Tensor, b: Tensor, free: Tensor | None = None) -> Tensor:
    """Mean squared change of the batch's cosines from those of the starting encoder. One number, no head.

    `vectors` and `anchors` are N×d; `a` and `b` are the rows of the pairs, and `free` (B) says whose cosine
    the ratings may change: pairs that a cosine head learns, all of them by default. Their cosines, and those
    of a text with itself, are left out; all others should stay. The other pairs of the data are few and
    close, so their mean is added to the mean of all the rest. This loss is our own; compare relational
    knowledge distillation (Park et al. 2019).
    """
    now, before = (functional.normalize(x.float(), dim=-1) for x in (vectors, anchors))
    rest = ~torch.eye(len(now), dtype=torch.bool, device=now.device)
    rest[a, b] = False
    rest[b, a] = False
    change = (now @ now.T - before @ before.T) ** 2
    kept = (change * rest).sum() / rest.sum().clamp(min=1)
    if free is None:
        return kept
    held = ~free
    return kept + (change[a, b] * held).sum() / held.sum().clamp(min=1)


def _masked(values: Tensor, mask: Tensor) -> Tensor:
    return values.masked_fill(~mask.bool(), 0.0)


@dataclass(frozen=True, slots=True)
class LossEntry:
    """A loss: its function and the heads it fits.

    own_units  its parameters are in the relation's units and it knows the relation's ends, so a cosine is
               moved onto the relation's scale first
    grouped    it compares pairs of a batch, and uses `group` to compare only pairs of the same group
    ranks      it learns which pair is closer, not how close, so the level of a cosine stays free
    """

    function: Callable[..., Tensor]
    heads: tuple[str, ...]
    own_units: bool = False
    grouped: bool = False
    ranks: bool = False


_NUMBER = ("scalar", "cosine", "described")
LOSSES: dict[str, LossEntry] = {
    "l1": LossEntry(l1, _NUMBER),
    "mse": LossEntry(mse_loss, _NUMBER),
    "huber": LossEntry(huber, _NUMBER),
    "translated_relu": LossEntry(translated_relu, _NUMBER, own_units=True),
    "smooth_k2": LossEntry(smooth_k2, _NUMBER, own_units=True),
    "kl_grid": LossEntry(kl_grid, ("distribution",)),
    "mse_grid": LossEntry(mse_grid, ("distribution",)),
    "cross_entropy": LossEntry(cross_entropy, ("classes",)),
    "pearson": LossEntry(pearson_loss, _NUMBER, grouped=True, ranks=True),
    "cosent": LossEntry(cosent, _NUMBER, grouped=True, ranks=True),
    "infonce": LossEntry(infonce, ("contrast",), ranks=True),
}


def make_loss(
    name: str, head: str, *, lo: float = 0.0, hi: float = 1.0, unit: float = 1.0, **options: Any
) -> Loss:
    """The loss of a recipe: its name, the head it trains, the relation's range and unit, and its own options.

    Errors of a scalar or described head are counted in the relation's units, and so are k and x0 on any head.
    Losses of relations on different scales can therefore be added.
    """
    if name not in LOSSES:
        raise UsageError(f"loss {name!r} is not one of {', '.join(LOSSES)}")
    entry = LOSSES[name]
    if head not in entry.heads:
        raise UsageError(f"loss {name!r} fits heads {', '.join(entry.heads)}, not {head!r}")
    known = set(inspect.signature(entry.function).parameters) - {
        "output",
        "target",
        "mask",
        "lo",
        "hi",
        "group",
    }
    unknown = set(options) - known
    if unknown:
        raise UsageError(
            f"loss {name!r} has no option {', '.join(sorted(unknown))}. Its options are: "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    ends = {"lo": lo / unit, "hi": hi / unit} if entry.own_units else {}
    function = partial(entry.function, **ends, **options)
    if head == "scalar":
        return function if unit == 1.0 else partial(_moved, function=function, start=0.0, size=1.0 / unit)
    if head == "described" or (head == "cosine" and entry.own_units):
        return partial(_moved, function=function, start=lo / unit, size=(hi - lo) / unit)
    return function


def _moved(
    output: Tensor,
    target: Tensor,
    mask: Tensor,
    group: Tensor | None = None,
    *,
    function: Loss,
    start: float,
    size: float,
) -> Tensor:
    """The loss of start + size·value: it moves numbers from another scale to the scale of the loss."""
    more = {} if group is None else {"group": group}
    return function(start + size * output, start + size * target, mask, **more)
