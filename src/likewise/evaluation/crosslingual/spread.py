"""The spread of cosines at each degree of similarity, before and after training (drawn by spread_plot).

The cosines of a frozen encoder often crowd into a narrow band. The poster that docs/methods/multilingual.md
follows saw one near 0.75.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.evaluation.crosslingual.language_pairs import PairScores
from likewise.evaluation.crosslingual.views import MODEL, RAW
from likewise.records import Array

EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True, slots=True)
class SpreadBin:
    """Cosines of the rows whose rating lies in low..high. The upper end belongs only to the last bin."""

    low: float
    high: float
    n: int
    mean: float
    q05: float
    q95: float


@dataclass(frozen=True, slots=True)
class Spread:
    """One view's cosines: per bin of ratings, and the deviation and inter-quartile range over all rows."""

    view: str
    n: int
    mean: float
    deviation: float
    quartile_range: float
    bins: tuple[SpreadBin, ...]


def measure_spread(scores: PairScores, *, edges: Sequence[float] = EDGES) -> tuple[Spread, ...]:
    """The spread of raw and model cosines over all cross-lingual pairs together, or over all pairs if none
    is cross-lingual.
    """
    gold, by_view = pool(scores)
    return tuple(_spread(view, gold, cosines, edges) for view, cosines in by_view.items())


def pool(scores: PairScores) -> tuple[Array, dict[str, Array]]:
    """Ratings and cosines (raw and model) of the cross-lingual pairs one after the other, (M,) each."""
    rows = scores.cross_lingual or list(range(len(scores.names)))
    views = [view for view in (RAW, MODEL) if view in scores.cosines]
    return np.tile(scores.gold, len(rows)), {view: scores.cosines[view][rows].ravel() for view in views}


def _spread(view: str, gold: Array, cosines: Array, edges: Sequence[float]) -> Spread:
    place = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, len(edges) - 2)
    bins = []
    for at in range(len(edges) - 1):
        here = cosines[place == at]
        if len(here):
            q05, q95 = np.quantile(here, (0.05, 0.95))
            bins.append(
                SpreadBin(edges[at], edges[at + 1], len(here), float(here.mean()), float(q05), float(q95))
            )
    lower, upper = np.quantile(cosines, (0.25, 0.75))
    mean, deviation = float(cosines.mean()), float(cosines.std(ddof=1))
    return Spread(view, len(cosines), mean, deviation, float(upper - lower), tuple(bins))
