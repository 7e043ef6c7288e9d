"""Similarity as regression on a siamese encoder, with Translated ReLU and Smooth K2.

Zhang & Li, EMNLP 2024. K ordered classes become increasing numbers; a linear head over [u; v; |u−v|] predicts
one real number; two losses leave a buffer zone x0 around each label free of any penalty.

    stage A   NLI: contradiction 0, neutral 1, entailment 2
    stage B   STS-B + SICK: 0..5, rounded; leak-filtered unless the recipe says otherwise
    test      cosine of the two mean-pooled vectors (the head is dropped); Likewise reports the
              head's score too

Shapes: tokens B×T → vectors u, v B×d → features B×3d → ŷ B. Losses: `losses.translated_relu`,
`losses.smooth_k2`,
their boundary treatments there. Shipped recipes: regression-nli, regression-sts, regression-nli-then-sts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.errors import UsageError
from likewise.records import Relation

# Four processes of batch 16 shared a schedule planned for one: see `rate_factor`.
CODE_PROCESSES = 4


def check_zone(relation: Relation, x0: float) -> None:
    """Refuse a buffer zone that reaches the neighbouring label's; x0 counts in label spacings."""
    if not 0.0 <= x0 <= 0.5:
        raise UsageError(
            f"relation {relation.name!r}: x0 = {x0:g} must lie in 0..0.5, half the label spacing"
        )


def round_half_even(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Labels of stage B: the nearest whole number, halves to the even one (as Python and the code do)."""
    return np.rint(values)


def rate_factor(step: int, total: int, *, schedule: str, warmup: float = 0.2) -> float:
    """Share of the peak learning rate at a step.

    paper   linear warm-up over 20 % of the steps, then linear decay to 0
    code    what ran: planned for CODE_PROCESSES times the steps that were taken, so the rate climbs
            for 80 % of the run and ends at about 94 % of its peak (computed from the published code)
    """
    planned = total * CODE_PROCESSES if schedule == "code" else total
    rising = max(1, round(planned * warmup))
    if step < rising:
        return step / rising
    return max(0.0, (planned - step) / max(1, planned - rising))
