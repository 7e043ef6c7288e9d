"""The siamese pair model behind every two-tower method: encode → pair → head → loss.

    distinct texts of a batch  N texts → chunks of similar length → vectors N×d
    u, v                       rows of those vectors, B×d each
    features                   pairing(u, v), B×F
    output                     head(features), one per objective; a described head also reads a vector 1×d
    loss                       Σ_objectives w · Σ_b loss_b / observed count, over the step's active relations

`weighting` says how the losses of a step are added up. `sum` adds them. `mean` averages over the active
ones. `uncertainty` gives each objective a learnt s and adds e^(−s)·L + s/2, so that a noisy relation gets a
lower weight (Kendall et al. 2018).

A text that occurs several times in a batch is encoded once. A pair without a rating for a relation adds
nothing to that relation's loss, and the mean is over the observed pairs of all processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from likewise import ranks
from likewise.answering import MEAN
from likewise.encoders.sentence import embedding_width
from likewise.errors import ModelError, UsageError
from likewise.heads import (
    PLAIN,
    ContrastHead,
    CosineHead,
    Head,
    Layers,
    UnitSpread,
    make_head,
    parameter_name,
)
from likewise.losses import LOSSES, Loss, anchored, make_loss
from likewise.methods.described import DEFAULT_MATCHER, DESCRIBED, DescribedHead, check_description
from likewise.methods.multilingual import FrozenPart
from likewise.pairing import Pairing
from likewise.records import Codec, Relation

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Weighting = Literal["sum", "mean", "uncertainty"]
DEFAULT_PAIRING = ("u", "v", "absdiff")
_COSINES = ("cosine", "contrast")
# The share of a scale at each of its ends in which answers move closer together.
_END = 0.02


@dataclass(frozen=True, slots=True)
class Objective:
    """What is learnt about one relation: which features, which head, which loss, how much it weighs."""

    relation: Relation
    head: str
    loss: str
    pairing: tuple[str, ...] = DEFAULT_PAIRING
    layers: Layers = PLAIN
    floor: float = 0.0
    weight: float = 1.0
    allow_blind: bool = False
    within: str = "data"
    map: str = "identity"
    matcher: str = DEFAULT_MATCHER
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target_key(self) -> str:
        """Name of the objective's targets in a batch."""
        return f"{self.relation.name}:{self.head}:{'+'.join(self.features)}"

    @property
    def head_key(self) -> str:
        """Name of the head's parameters; objectives with equal keys share one head, all described ones do."""
        if self.head == DESCRIBED:
            return f"{DESCRIBED}:{self.matcher}:{'+'.join(self.features)}"
        return parameter_name(self.target_key)

    @property
    def balance_key(self) -> str:
        """Name of the objective's learnt weight."""
        return parameter_name(f"{self.target_key}:{self.loss}")

    @property
    def features(self) -> tuple[str, ...]:
        """The pair features the head sees; cosine heads see the cosine whatever the recipe says."""
        return ("cosine",) if self.head in _COSINES else self.pairing

    def codec(self) -> Codec:
        """The codec between gold values and this head's targets."""
        forms = {
            "scalar": "value",
            "distribution": "grid",
            "classes": "class",
            "cosine": "unit",
            "contrast": "unit",
            DESCRIBED: "unit",
        }
        floor = self.floor if self.head in _COSINES else 0.0
        return Codec(self.relation, forms[self.head], floor=floor)  # type: ignore[arg-type]

    def outputs(self) -> int:
        """Width of the head's output."""
        return len(self.relation.labels) if self.head == "classes" else self.codec().width


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """What answers a relation: a source, and for each source the line from what it says to the scale.

    A line is (slope, offset), fitted to what people said of dev pairs.
    """

    source: str
    lines: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def parts(self) -> tuple[str, ...]:
        """The sources that are read for it."""
        return tuple(self.lines) if self.source == MEAN else (self.source,)

    def values(self, said: Mapping[str, NDArray[np.float64]], relation: Relation) -> NDArray[np.float64]:
        """Answers on the relation's scale, from what each source says."""
        found = []
        for source in self.parts():
            slope, offset = self.lines.get(source, (1.0, 0.0))
            found.append(slope * said[source] + offset)
        return _into_scale(np.mean(found, axis=0), relation)


def _into_scale(numbers: NDArray[np.float64], relation: Relation) -> NDArray[np.float64]:
    """Numbers moved between the ends of a scale so that their order stays.

    All but the outermost `_END` of the scale is left as it is. There, and beyond, a number d past that point
    lies at d/(d + end) of the way to the end. Clipping instead would make unlike pairs equal.
    """
    width = _END * (relation.hi - relation.lo)
    low, high = relation.lo + width, relation.hi - width
    below, above = np.maximum(low - numbers, 0.0), np.maximum(numbers - high, 0.0)
    found: NDArray[np.float64] = np.clip(numbers, low, high) + width * (
        above / (above + width) - below / (below + width)
    )
    return found


class PairModel(nn.Module):
    """One encoder shared by both texts, one head per objective."""

    family: ClassVar[str] = "pairs"

    def __init__(self, encoder: SentenceTransformer, objectives: Sequence[Objective]) -> None:
        super().__init__()
        self.encoder = encoder
        self.anchor = 0.0  # weight of `losses.anchored`; a stage's setting
        self.weighting: Weighting = "sum"
        self.frozen: FrozenPart | None = None  # of a model that grew on a frozen encoder
        # What answers a relation, where dev pairs chose; its first objective elsewhere.
        self.answers: dict[str, AnswerChoice] = {}
        # Keys of the heads that nothing has trained yet.
        self.fresh: frozenset[str] = frozenset()
        # Names of the relations that training rows are looked for; all if empty.
        self.learning: tuple[str, ...] = ()
        self.balance = nn.ParameterDict()
        self.heads = nn.ModuleDict()
        self.set_objectives(objectives)

    def train(self, mode: bool = True) -> Self:
        """Switch to training or answering; an encoder that is frozen as a whole keeps its dropout off.

        With dropout, the same text has another vector each time, and heads do not learn small differences.
        """
        super().train(mode)
        if not any(parameter.requires_grad for parameter in self.encoder.parameters()):
            self.encoder.eval()
        return self

    def set_objectives(self, objectives: Sequence[Objective]) -> None:
        """Replace what is learnt; heads whose key and shape stay keep their weights (stages hand them on)."""
        if not objectives:
            raise UsageError("this stage has no objective. Add at least one.")
        width = embedding_width(self.encoder)
        kept = dict(self.heads.items())
        fresh: set[str] = set()
        self.objectives = tuple(objectives)
        self.pairings: dict[str, Pairing] = {}
        self.losses: list[Loss] = []
        heads = nn.ModuleDict()
        for objective in objectives:
            key = objective.head_key
            pairing = self.pairings[key] = Pairing(objective.features)
            new = _new_head(objective, pairing.width(width), width).to(self.encoder.device)
            refuse_blind_head(objective, pairing, new)
            if key not in heads:
                known = _same_shape(kept.get(key), new)
                heads[key] = known or new
                fresh |= {key} if known is None else set()
            elif objective.head == DESCRIBED and _same_shape(heads[key], new) is None:
                raise UsageError(
                    "objectives with head 'described' share one head, but theirs differ. Give all of them "
                    "the same hidden and scale_features."
                )
            relation = objective.relation
            self.losses.append(
                make_loss(
                    objective.loss,
                    objective.head,
                    lo=relation.lo,
                    hi=relation.hi,
                    unit=relation.unit,
                    **objective.options,
                )
            )
        self.heads = heads
        self.fresh = frozenset(fresh)
        names = {objective.relation.name for objective in objectives}
        self.answers = {name: answer for name, answer in self.answers.items() if name in names}

    def set_weighting(self, weighting: Weighting) -> None:
        """Choose how objectives add up; learnt weights start equal, whatever an earlier stage learnt."""
        self.weighting = weighting
        learnt = self.objectives if weighting == "uncertainty" else ()
        zero = partial(torch.zeros, (), device=self.encoder.device)
        self.balance = nn.ParameterDict({o.balance_key: nn.Parameter(zero()) for o in learnt})

    def to_scale(self) -> dict[str, UnitSpread]:
        """Heads, by key, that want scaled features and have not measured them yet."""
        found = {}
        for key, head in self.heads.items():
            for layer in head.modules():
                if isinstance(layer, UnitSpread) and not layer.measured:
                    found[key] = layer
        return found

    def weights(self) -> dict[str, float]:
        """What each objective's loss is multiplied with, by its key; learnt weights as they stand now."""
        found = {}
        for objective in self.objectives:
            learnt = self.balance.get(objective.balance_key, None)
            factor = 1.0 if learnt is None else math.exp(-learnt.item())
            found[objective.balance_key] = objective.weight * factor
        return found

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations this model answers, in the order of its objectives."""
        return tuple({objective.relation.name: objective.relation for objective in self.objectives}.values())

    @property
    def learnt(self) -> tuple[Objective, ...]:
        """The objectives that are being trained."""
        return tuple(o for o in self.objectives if not self.learning or o.relation.name in self.learning)

    @property
    def descriptions(self) -> dict[str, str]:
        """What described heads read: relation → its description."""
        return {o.relation.name: o.relation.description for o in self.objectives if o.head == DESCRIBED}

    def describe(self, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> dict[str, Tensor]:
        """The descriptions as vectors, 1×d each, by a function from texts to vectors N×d."""
        said = self.descriptions
        if not said:
            return {}
        vectors = torch.from_numpy(np.asarray(encode(list(said.values())))).to(self.encoder.device)
        return {name: vectors[row : row + 1] for row, name in enumerate(said)}

    def answering(self, relation: str, source: str | None = None) -> Objective:
        """The objective that answers a relation: its first, or its first with the wanted source."""
        mine = [objective for objective in self.objectives if objective.relation.name == relation]
        if not mine:
            names = ", ".join(r.name for r in self.relations)
            raise UsageError(f"the model does not answer relation {relation!r}. Choose one of {names}.")
        for objective in mine:
            if source is None or source == objective_source(objective):
                return objective
        raise UsageError(f"relation {relation!r} has no source {source!r}. Use {objective_source(mine[0])}.")

    def encode_chunks(self, chunks: Iterable[dict[str, Any]]) -> Tensor:
        """Vectors of the distinct texts of a batch, N×d, from chunks of similar length."""
        vectors = [self.encoder(dict(chunk))["sentence_embedding"] for chunk in chunks]
        return vectors[0] if len(vectors) == 1 else torch.cat(vectors)

    def output(
        self,
        objective: Objective,
        u: Tensor,
        v: Tensor,
        *,
        description: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """The head's raw output for pairs of vectors; a described head reads the description's, 1×d, too."""
        head = self.heads[objective.head_key]
        if training and isinstance(head, ContrastHead):
            return functional.normalize(u, dim=-1) @ functional.normalize(v, dim=-1).T
        features = self.pairings[objective.head_key](u, v)
        output: Tensor
        if isinstance(head, DescribedHead):
            if description is None:
                name = objective.relation.name
                raise UsageError(
                    f"relation {name!r} is answered by its description, but the description's vector is "
                    "missing. Pass it too."
                )
            output = head(features, description)
        else:
            output = head(features)
        return output

    def forward(
        self,
        chunks: list[dict[str, Any]],
        a: Tensor,
        b: Tensor,
        targets: dict[str, Tensor],
        active: Sequence[str] | None = None,
        group: Tensor | None = None,
        anchors: Tensor | None = None,
        descriptions: dict[str, Any] | None = None,
        described: Sequence[str] = (),
    ) -> dict[str, Tensor]:
        """The loss of one step.

        `targets` maps target key → B×width, NaN where missing; `group` numbers data sets; `anchors` are the
        distinct texts' vectors before training, in the chunks' order; `descriptions` holds one text for each
        of the relations `described`.
        """
        vectors = self.encode_chunks(chunks)
        u, v = vectors[a], vectors[b]
        said = {} if descriptions is None else self._encode_descriptions(descriptions, described)
        parts = []
        for objective, loss in zip(self.objectives, self.losses, strict=True):
            if active is not None and objective.relation.name not in active:
                continue
            description = said.get(objective.relation.name)
            output = self.output(objective, u, v, description=description, training=True)
            if LOSSES[objective.loss].grouped:
                loss = partial(loss, group=group if objective.within == "data" else None)
            part = objective.weight * _observed_mean(loss, output.float(), targets[objective.target_key])
            if self.weighting == "uncertainty":
                log_variance = self.balance[objective.balance_key]
                part = torch.exp(-log_variance) * part + log_variance / 2
            parts.append(part)
        total = torch.stack(parts).sum()
        if self.weighting == "mean":
            total = total / len(parts)
        if anchors is not None:
            free = self._rated_by_cosine(targets)
            total = total + self.anchor * anchored(vectors, anchors, a, b, free)
        return {"loss": total}

    def _rated_by_cosine(self, targets: Mapping[str, Tensor]) -> Tensor | None:
        """The pairs whose cosine the ratings may change; None if no head but cosines is trained."""
        if all(objective.head in _COSINES for objective in self.objectives):
            return None
        rated = torch.zeros(len(next(iter(targets.values()))), dtype=torch.bool, device=self.encoder.device)
        for objective in self.objectives:
            target = targets.get(objective.target_key)  # absent if an update does not learn the relation
            if objective.head in _COSINES and objective.weight and target is not None:
                rated |= ~torch.isnan(target[:, 0])
        return rated

    def _encode_descriptions(self, inputs: dict[str, Any], names: Sequence[str]) -> dict[str, Tensor]:
        vectors = self.encode_chunks([inputs])
        return {name: vectors[row : row + 1] for row, name in enumerate(names)}

    def answer(
        self, objective: Objective, u: Tensor, v: Tensor, *, description: Tensor | None = None
    ) -> NDArray[np.float64] | list[str]:
        """Reported values for pairs of vectors: numbers on the relation's scale, or labels."""
        return objective.codec().decode(self.readings(objective, u, v, description=description))

    @torch.inference_mode()
    def readings(
        self, objective: Objective, u: Tensor, v: Tensor, *, description: Tensor | None = None
    ) -> NDArray[np.float64]:
        """What a head says of pairs of vectors, not yet on the relation's scale; of labels their logits."""
        head = self.heads[objective.head_key]
        if not isinstance(head, Head):
            raise ModelError(f"{objective.head_key} is not a head")
        read = head.read(self.output(objective, u, v, description=description))
        return read.double().cpu().numpy()


def head_shapes(encoder: SentenceTransformer, objectives: Sequence[Objective]) -> dict[str, Tensor]:
    """The state of the heads that a model of these objectives has, on no device: it takes no memory."""
    width = embedding_width(encoder)
    heads: dict[str, nn.Module] = {}
    with torch.device("meta"):
        for one in objectives:
            if one.head_key not in heads:
                heads[one.head_key] = _new_head(one, Pairing(one.features).width(width), width)
    return nn.ModuleDict(heads).state_dict()


def objective_source(objective: Objective) -> str:
    """Either cosine or head: where an answer comes from, printed beside every number."""
    return "cosine" if objective.head in _COSINES else "head"


def refuse_blind_head(objective: Objective, pairing: Pairing, head: Head) -> None:
    """Stop a linear head over features that never let the two texts meet.

    So too a matcher that never lets pair and description meet.
    """
    if objective.allow_blind:
        return
    if isinstance(head, DescribedHead) and head.blind:
        raise UsageError(
            f"relation {objective.relation.name!r}: matcher {objective.matcher!r} adds one score of the pair "
            "and one of the description, so all relations would rank pairs alike. Use "
            f"{DEFAULT_MATCHER}, or set allow_blind = true to run it as an ablation."
        )
    if pairing.interacts or not head.linear:
        return
    raise UsageError(
        f"relation {objective.relation.name!r}: a linear head over {list(pairing.parts)} adds one score "
        "per text and cannot compare the texts. Add absdiff or prod to `pairing`, or set allow_blind = true "
        "to run it as an ablation."
    )


def _new_head(objective: Objective, features: int, width: int) -> Head:
    """A fresh head over features of a pair of vectors of a width."""
    if objective.head == DESCRIBED:
        check_description(objective.relation)
        return DescribedHead(features, width, matcher=objective.matcher, layers=objective.layers)
    head = make_head(objective.head, features, outputs=objective.outputs(), layers=objective.layers)
    if isinstance(head, CosineHead):
        head.map = objective.map
    return head


def _same_shape(old: nn.Module | None, new: Head) -> nn.Module | None:
    if old is None:
        return None
    shapes = {name: tuple(value.shape) for name, value in old.state_dict().items()}
    return old if shapes == {name: tuple(value.shape) for name, value in new.state_dict().items()} else None


def _observed_mean(loss: Loss, output: Tensor, target: Tensor) -> Tensor:
    """Mean over the observed pairs of all processes; zero, and no gradient, where none is observed."""
    mask = ~torch.isnan(target[:, 0])
    target = torch.nan_to_num(target)
    values = loss(output, target if target.shape[1] > 1 else target[:, 0], mask)
    count = ranks.summed(mask.sum().to(values.dtype))
    return values.sum() * ranks.world_size() / count.clamp(min=1.0)
