"""Part: one thing that is measured of every model. What a part needs of texts is encoded before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.significance import paired_bootstrap
from shipping.asked import Asked
from shipping.rows import Rows

SEED, SAMPLES = 1, 1000
NO_VECTORS = "the model reads both texts as one input and has no vectors of single texts"
Outcomes = NDArray[Any]


class Part(Protocol):
    """One thing that is measured, by its name on the command line."""

    name: str

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The texts whose vectors are needed of a model."""

    def facts(self, rows: Rows) -> dict[str, Any]:
        """What holds for every model: the number of rows, and what the commonest label reaches."""

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The numbers of a model, beside those of the raw encoder; or why the model is not measured."""


def share(gold: Outcomes, right: Outcomes) -> float:
    """The share of right answers; `right` has one row for each row of the test set."""
    return float(np.mean(right))


def gain(
    ours: Outcomes,
    theirs: Outcomes,
    *,
    gold: Outcomes | None = None,
    statistic: Callable[[Any, Any], float] = share,
) -> dict[str, Any]:
    """A difference × 100 on the same rows, with the 95 % interval of a paired bootstrap over rows."""
    known = np.zeros(len(ours)) if gold is None else gold
    rng = np.random.default_rng(SEED)
    test = paired_bootstrap(statistic, known, ours, theirs, rng=rng, samples=SAMPLES)
    ends = [] if test.interval is None else [100 * test.interval.low, 100 * test.interval.high]
    return {"value": 100 * test.effect, "interval": ends}
