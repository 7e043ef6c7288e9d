"""Meaning separated from language on parallel text, then refined on rated pairs, over a frozen encoder.

The method follows a poster on LaBSE and XLM-R. Its first stage is Tiyajamorn, Kajiwara, Arase & Onizuka,
EMNLP 2021 ("DREAM"). The page is docs/methods/multilingual.md.

    e   B×d    vectors of a frozen multilingual encoder, computed once and kept (`encoders/cache.py`)
    stage 1    m = Wm e + bm     l = Wl e + bl     q = Wq l + bq (B×L languages)     `MeaningSplit`
    stage 2    z = m + W2 φ(W1 m + b1) + b2                                          `adapters.Refinement`
    score      g(cos(z_a, z_b)), g monotone                                          `CosineMap`

Stage 1 has these terms, for translations (s, t), negatives s', t' of another batch, and ŝ, t̂ in the
language of s and of t, with near(x, y) = 1 − cos(x, y) and far(x, y) = max(0, cos(x, y) − margin):

    meaning         near(m_s, m_t) + far(m_s, m_s') + far(m_t, m_t')
    language        near(l_s, l_ŝ) + near(l_t, l_t̂)
    identification  xent(q_s, language of s) + xent(q_t, language of t)
    reconstruction  |m_s + l_s − e_s|² + |m_t + l_t − e_t|², mean over d (the paper), sum, or 1 − cos
    push            far(l_s, l_t): computed and shown, weight 0 in the authors' code
    cross           1 − cos(m_s + l_t, e_t) and the reverse: from MEAT, weight 0

Where the parts are
    this file               the split, its loss, the map from cosine to rating, what a model stores
    adapters.py             the layers, folded into stock modules of sentence-transformers
    kinds/frozen.py         both stages: reading, starting, training
    schema/frozen.py        their keys
    kinds/vector_tasks.py   batches of translations and of rated pairs over cached vectors
    data/parallel/          sentences and their translations
    evaluation/crosslingual translated pairs, retrieval, probes, spread
    recipes                 multilingual, multilingual-paper

Not from the paper: a prelayer that reconstructs the original vector; the reversible form l = e − m; batches
balanced by language; a fused form whose negatives and positives come from its own batch; stage 2 that also
trains translations to find each other; a start without the directions that separate the languages' means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.adapters import ACTIVATIONS, Adapter, Prelayer, Projection
from likewise.answering import Vectors
from likewise.heads import map_cosine

Reconstruction = Literal["mean", "sum", "cosine"]
MapName = Literal["identity", "affine", "clamp", "sigmoid", "tanh", "arccos"]
PAPER_WEIGHTS = {
    "meaning": 1.0,
    "language": 1.0,
    "identification": 1.0,
    "reconstruction": 1.0,
    "push": 0.0,
    "cross": 0.0,
}


@dataclass(frozen=True, slots=True)
class SplitLoss:
    """Weights of the terms, the margin of far, and how reconstruction is counted."""

    weights: Mapping[str, float] = field(default_factory=lambda: dict(PAPER_WEIGHTS))
    margin: float = 0.0
    reconstruction: Reconstruction = "mean"

    def total(self, terms: Mapping[str, Tensor]) -> Tensor:
        """The weighted sum; a term of weight 0 is shown and not learnt from."""
        learnt = [self.weights[name] * value for name, value in terms.items() if self.weights[name]]
        return torch.stack(learnt).sum()

    def share(self, terms: Mapping[str, float], name: str) -> float:
        """How much of the total a term makes up."""
        total = sum(self.weights[term] * value for term, value in terms.items())
        return self.weights[name] * terms[name] / total if total else 0.0


@dataclass(frozen=True, slots=True)
class SplitSides:
    """Vectors of translations, sources above targets, 2B×d, and their language numbers, 2B."""

    vectors: Tensor
    languages: Tensor


class MeaningSplit(nn.Module):
    """Stage 1: two extractors and a classifier of languages."""

    def __init__(
        self,
        width: int,
        languages: int,
        *,
        prelayer: str | None = None,
        reversible: bool = False,
        start: Literal["identity", "random"] = "random",
    ) -> None:
        super().__init__()
        self.prelayer = Prelayer(width, prelayer) if prelayer else None
        self.meaning = Projection(width, start=start)
        self.language = None if reversible else Projection(width, start="random")
        self.identify = nn.Linear(width, languages)

    @torch.no_grad()
    def forget(self, means: Vectors) -> None:
        """Start from e without the directions in which the languages' mean vectors (L×d) lie apart."""
        apart = torch.from_numpy(means - means.mean(axis=0, keepdims=True))
        directions = torch.linalg.svd(apart, full_matrices=False).Vh[: len(means) - 1]
        weight = self.meaning.linear.weight
        weight.copy_(weight - directions.T @ (directions @ weight))

    def meaning_of(self, e: Tensor) -> Tensor:
        """m, B×d."""
        made: Tensor = self.meaning(e if self.prelayer is None else self.prelayer(e))
        return made

    def language_of(self, e: Tensor) -> Tensor:
        """l, B×d."""
        if self.language is None:
            return e - self.meaning_of(e)
        made: Tensor = self.language(e if self.prelayer is None else self.prelayer(e))
        return made

    def both_of(self, e: Tensor) -> tuple[Tensor, Tensor]:
        """m and l, B×d each, by one product."""
        if self.language is None:
            m = self.meaning_of(e)
            return m, e - m
        p = e if self.prelayer is None else self.prelayer(e)
        weight = torch.cat([self.meaning.linear.weight, self.language.linear.weight])
        bias = torch.cat([self.meaning.linear.bias, self.language.linear.bias])
        meaning, language = functional.linear(p, weight, bias).chunk(2, dim=1)
        return meaning, language

    def terms(self, sides: SplitSides, far: Tensor, same: Tensor, loss: SplitLoss) -> dict[str, Tensor]:
        """Every term of the paper's form, a mean over the batch each.

        `far` are vectors of another batch and `same` vectors in the languages of this one, 2B×d.
        """
        both = self.both_of(sides.vectors)
        return self._terms(sides, both, self.meaning_of(far), self.language_of(same), loss)

    def fused_terms(self, sides: SplitSides, same: Tensor, loss: SplitLoss) -> dict[str, Tensor]:
        """The same with negatives and positives of the batch itself.

        A row's negative is its neighbour; `same` (2B) is, for sources then targets, a row of that language.
        """
        both = self.both_of(sides.vectors)
        m_s, m_t = both[0].chunk(2)
        return self._terms(sides, both, torch.cat([m_s.roll(1, 0), m_t.roll(1, 0)]), both[1][same], loss)

    def _terms(
        self,
        sides: SplitSides,
        both: tuple[Tensor, Tensor],
        far: Tensor,
        same: Tensor,
        loss: SplitLoss,
    ) -> dict[str, Tensor]:
        e = sides.vectors
        m, language = (vectors.float() for vectors in both)
        m_s, m_t = m.chunk(2)
        m_size, l_size = _size(m), _size(language)
        near = _cos(m_s, m_t, *m_size.chunk(2))
        apart = _cos(m, far.float(), m_size) - loss.margin
        found = {
            "meaning": (1 - near).mean() + 2 * apart.clamp(min=0).mean(),
            "language": 2 * (1 - _cos(language, same.float(), l_size)).mean(),
            "identification": 2 * functional.cross_entropy(self.identify(language), sides.languages),
            "reconstruction": 2 * _reconstruction(m + language, e, loss.reconstruction),
        }
        # What is only shown is computed where it is shown, on dev: it costs as much as what is learnt from.
        if loss.weights["push"] or not torch.is_grad_enabled():
            push = _cos(*language.chunk(2), *l_size.chunk(2)) - loss.margin
            found["push"] = push.clamp(min=0).mean()
        if loss.weights["cross"]:
            l_s, l_t = language.chunk(2)
            e_s, e_t = e.chunk(2)
            crossed = torch.cat([m_s + l_t, m_t + l_s])
            found["cross"] = 2 * (1 - _cos(crossed, torch.cat([e_t, e_s]))).mean()
        return found

    def adapters(self) -> list[Adapter]:
        """What stays of stage 1 in a model: the way from e to m."""
        return [self.meaning] if self.prelayer is None else [self.prelayer, self.meaning]


def _size(x: Tensor) -> Tensor:
    """Squared lengths of rows; the floor keeps a row of zeros from dividing by nothing."""
    return (x * x).sum(dim=1).clamp(min=1e-16)


def _cos(x: Tensor, y: Tensor, x_size: Tensor | None = None, y_size: Tensor | None = None) -> Tensor:
    """cos of rows, from their squared lengths where they are known.

    torch's own divides every number of both matrices, and again on the way back: half of a step's time.
    """
    lengths = (_size(x) if x_size is None else x_size) * (_size(y) if y_size is None else y_size)
    return (x * y).sum(dim=1) * lengths.rsqrt()


def _reconstruction(made: Tensor, e: Tensor, how: Reconstruction) -> Tensor:
    if how == "cosine":
        return (1 - _cos(made, e)).mean()
    squared = (made - e) ** 2
    return squared.mean() if how == "mean" else squared.sum(dim=1).mean()


@dataclass(frozen=True, slots=True)
class FrozenPart:
    """What a model remembers of the frozen encoder it grew on.

    `modules` of the model's encoder are that encoder's own; `pairs` of languages were rated, `languages` seen
    at all; `tensors` hold the language extractor, which no stock module holds, `prelayer` its activation.
    """

    modules: int
    pairs: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    prelayer: str = ""
    tensors: Mapping[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def language_of(self, e: Tensor) -> Tensor | None:
        """The language vectors of encoder vectors, B×d; None where no extractor was learnt."""
        parts = self.tensors
        if "language.linear.weight" not in parts:
            return None
        if self.prelayer:
            weight, bias = parts["prelayer.linear.weight"], parts["prelayer.linear.bias"]
            e = ACTIVATIONS[self.prelayer]()(functional.linear(e, weight, bias))
        return functional.linear(e, parts["language.linear.weight"], parts["language.linear.bias"])


def language_parts(split: MeaningSplit) -> dict[str, Tensor]:
    """The tensors of a `FrozenPart`: the way to l, and the classifier of languages.

    The reversible form's l = e − m is the language layer 1 − Wm, −bm.
    """
    found = {f"identify.{name}": value for name, value in split.identify.state_dict().items()}
    if split.prelayer is not None:
        found |= {f"prelayer.linear.{n}": v for n, v in split.prelayer.linear.state_dict().items()}
    if split.language is not None:
        return found | {f"language.linear.{n}": v for n, v in split.language.linear.state_dict().items()}
    if split.prelayer is None:
        weight, bias = split.meaning.linear.weight.detach(), split.meaning.linear.bias.detach()
        unit = torch.eye(len(weight), device=weight.device)
        found |= {"language.linear.weight": unit - weight, "language.linear.bias": -bias}
    return found


class CosineMap(nn.Module):
    """g: a monotone map of the cosine before it meets the rating; Spearman never changes by it.

    affine, sigmoid and tanh learn a line first, whose slope stays above 0.
    """

    def __init__(self, name: MapName = "identity") -> None:
        super().__init__()
        self.name = name
        slope, shift = (6.0, -3.0) if name == "sigmoid" else (1.0, 0.0)
        learnt = name in ("affine", "sigmoid", "tanh")
        self.log_slope = nn.Parameter(torch.tensor(math.log(slope)), requires_grad=learnt)
        self.shift = nn.Parameter(torch.tensor(shift), requires_grad=learnt)

    def forward(self, cosine: Tensor) -> Tensor:
        """Cosines, any shape, to similarities that run from 0 to 1."""
        return map_cosine(self.name, torch.exp(self.log_slope) * cosine + self.shift)

    def line(self) -> tuple[float, float]:
        """Slope and shift, for the head that answers later."""
        return math.exp(self.log_slope.item()), self.shift.item()
