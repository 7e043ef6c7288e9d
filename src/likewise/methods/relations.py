"""Several relations of a pair learnt at once, by one encoder with one head per relation.

The paper is Zhang, Wilson & Mihalcea, "Multi-Label Transfer Learning for Multi-Relational Semantic
Similarity", 2018 (arXiv 1805.12501). The page is docs/methods/relations.md.

People rate a pair on several scales. The paper's idea is that an encoder that serves all of them in one
step learns more than one that serves each by itself.

    shapes      words T×B×300 → BiLSTM T×B×4096 → max u, v B×4096 → features [u*v; |u−v|] B×8192
                → per relation r: log p̂_r B×K_r over its score grid g_r → ŷ_r = g_rᵀp̂_r
    losses      kl_grid against the rating spread over its two neighbours on the grid; mse_grid as an
                ablation; cross_entropy for relations with classes
    multi-label θ ← θ − η ∇Σ_r w_r L_r(θ)     one step for all relations     the paper's method
    multi-task  for r: θ ← θ − η ∇L_r(θ)      R steps on the same batch      a baseline of the paper
    single      one model per relation                                       the other baseline
    stages      NLI with InferSent's classifier, then the relations
    rate        InferSent's rules, below

Where the parts are
    heads.py                distribution, classes; hidden = 50 is Tai's head
    losses.py, schedules.py kl_grid, mse_grid, cross_entropy; which relations a step trains
    encoders/words.py       BiLSTM-max over word vectors
    methods/pairs.py        PairModel: missing ratings, weights, the sum of losses
    methods/described.py    one head that reads the description of each relation
    schema/pairs.py         the keys of a recipe
    kinds/pairs.py          training
    experiments/            joint against single, what relations gain from each other
    recipes                 relations-activity, -sick, -typed, -infersent (the paper's own), -described
    this file               InferSent's optimiser rules

Not from the paper: transformers instead of the BiLSTM, features in units of their spread, uncertainty
weights, described relations.
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
