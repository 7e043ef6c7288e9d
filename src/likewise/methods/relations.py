"""Several relations of a pair learnt at once, by one encoder with one head per relation.

Zhang, Wilson & Mihalcea, 2018 (arXiv 1805.12501). A head over [u*v; |u−v|] gives a distribution over the
relation's score grid; the answer is its expectation. Entailment-like relations get classes.

    multi-label  θ ← θ − η ∇Σ_r w_r L_r(θ)              one step for all relations      the paper's method
    multi-task   for r: θ ← θ − η ∇L_r(θ)                R steps on the same batch       its baseline
    single       one model per relation                                                 its other baseline

Shapes: words T×B×300 → BiLSTM T×B×4096 → max u, v B×4096 → features B×8192 → log p̂_r B×K_r → ŷ_r = g_rᵀp̂_r.
Heads in `heads.py` (`hidden = 50` is Tai's), losses `kl_grid`, `mse_grid` and `cross_entropy` in `losses.py`,
schedules in `schedules.py`. Shipped recipes: relations-activity, relations-sick, relations-typed,
relations-infersent, the paper's own, and relations-described, where one head reads what each relation asks
(`described`). Optimiser rules that the paper takes from InferSent are below.
"""

from __future__ import annotations

# InferSent's training script (Conneau et al. 2017): per epoch, per epoch without a better dev, and the end.
DECAY, SHRINK, SMALLEST_RATE = 0.99, 5.0, 1e-5


def infersent_factor(epoch: int, shrinks: int) -> float:
    """Share of the first learning rate: × 0.99 per epoch, ÷ 5 each time dev did not improve."""
    return float(DECAY**epoch / SHRINK**shrinks)


def infersent_stops(rate: float) -> bool:
    """Whether a learning rate is so small that training ends."""
    return rate < SMALLEST_RATE
