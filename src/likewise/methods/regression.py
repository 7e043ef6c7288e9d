"""Similarity as regression on a siamese encoder, with Translated ReLU and Smooth K2.

The paper is Zhang & Li, "Advancing Semantic Textual Similarity Modeling: A Regression Framework with
Translated ReLU and Smooth K2 Loss", EMNLP 2024. The page is docs/methods/regression.md.

K ordered classes become increasing numbers, so that one output predicts them instead of K. Around each
label, a zone of half-width x0 has no loss, because a rating is only known up to about that much.

    shapes      tokens B×T → one encoder → vectors u, v B×d → features [u; v; |u−v|] B×3d → linear → ŷ B
    losses      e = ŷ − y, x0 in label spacings, 0 ≤ x0 ≤ 0.5
                translated_relu   k·max(0, |e| − x0)        (k, x0) = (1, 0) is L1
                smooth_k2         k·max(0, |e| − x0)²       (1, 0) is MSE; C¹ at the edge of the zone
    ends        a prediction beyond an end of the scale whose label is that end has no loss (`boundary`)
    stage A     NLI: contradiction 0, neutral 1, entailment 2; selected on STS dev by the cosine
    stage B     STS-B + SICK: 0..5, rounded, halves to even; leak-filtered unless the recipe says otherwise
    rate        `rate_factor`: the paper's text and the paper's code differ
    test        cosine of the two mean-pooled vectors, without the head; Likewise reports the head's score too

Where the parts are
    losses.py               translated_relu, smooth_k2, the treatments of the ends
    heads.py, pairing.py    the scalar head over u, v and |u−v|
    methods/pairs.py        PairModel: encode, pair, head, loss
    schema/pairs.py         the keys of a recipe
    kinds/pairs.py          training
    recipes                 similarity, regression-nli, regression-sts, regression-nli-then-sts
    this file               labels of stage B, the zone's bounds, the two courses of the learning rate

Not from the paper: the anchor that keeps unrated cosines where they were, and the recipe `similarity`.
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
            f"relation {relation.name!r}: x0 is {x0:g}, but it must lie in 0..0.5, half the label spacing. "
            "Correct x0."
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
