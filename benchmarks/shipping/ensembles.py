"""The mean of the cosines of several encoders, such as teachers, on the seven tasks and on dev."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.suites import run_suite
from shipping.asked import Asked
from shipping.rows import PROTOCOL, Rows
from shipping.similarity import on_dev, shown

# Up to so many encoders, the mean of every two or more of them is measured, to choose teachers on dev.
EVERY_SET = 4
STS7, DEV = "sts7 cosines", "dev cosines"
Cosines = NDArray[np.float64]


def measure_ensembles(asked: Sequence[Asked], names: Sequence[str], rows: Rows) -> list[dict[str, Any]]:
    """Every set of the encoders, with cosines as they are and standardised."""
    sizes = range(2, len(asked) + 1) if len(asked) <= EVERY_SET else [len(asked)]
    made = []
    for size in sizes:
        for chosen in combinations(range(len(asked)), size):
            for standardised in (False, True):
                mine = [asked[at] for at in chosen]
                sts7, dev = (mean_cosine(mine, which, standardised) for which in (STS7, DEV))
                about = {"models": [names[at] for at in chosen], "standardised": standardised}
                made.append({**about, **measured_cosines(sts7, dev, rows)})
    return made


def mean_cosine(asked: Sequence[Asked], which: str, standardised: bool) -> Cosines:
    """The mean cosine of each pair. If standardised, with the mean and spread that each encoder has on the
    clean dev rows, so that no test row takes part.
    """
    parts = [one.outcomes[which] for one in asked]
    if standardised:
        parts = [
            (part - one.outcomes[DEV].mean()) / one.outcomes[DEV].std()
            for part, one in zip(parts, asked, strict=True)
        ]
    mean: Cosines = np.mean(parts, axis=0)
    return mean


def measured_cosines(sts7: Cosines, dev: Cosines, rows: Rows) -> dict[str, Any]:
    """The suite and the clean dev rows by given scores."""
    result = run_suite(rows.sts7, lambda pairs, names: sts7, protocol=PROTOCOL)
    return {"sts7": shown(result), "dev": shown(on_dev(rows, dev))}
