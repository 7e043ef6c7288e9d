"""Linear heads over a frozen encoder, solved exactly: ridge regression for numbers, logistic for classes.

This is the baseline that fine-tuning has to beat (InferSent and SentEval use features this way), and it is
the quickest model to make. The heads are ordinary ones, so the model folder is used like any other.

    features   pairing(u, v), N×F, each column divided by its standard deviation over the training pairs
    scalar     min Σ (w·x + b − y)² + λN|w|²
    classes    min Σ cross-entropy + λN|w|²/2
    λ          the one of STRENGTHS that is best on dev, per objective
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from likewise.disk import make_folder, saying_why
from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts
from likewise.errors import UsageError
from likewise.kinds.pair_steps import RatedPairs
from likewise.methods.pairs import Objective, PairModel
from likewise.records import Record
from likewise.training.callbacks import Evaluate
from likewise.training.settings import FitSettings
from likewise.training.state import FitEvent, FitReport, finish, finished_report

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
SOLVED = {("scalar", "mse"), ("classes", "cross_entropy")}
# A class that no training pair has: never the answer.
_NEVER = -1e4
Matrix = NDArray[np.float64]


def fit_exact(
    model: PairModel,
    records: Sequence[Record],
    *,
    settings: FitSettings,
    run: Path,
    evaluate: Evaluate | None,
    metric: str,
    features: TextFeatures | None = None,
    resume: bool = False,
    emit: Callable[[FitEvent], None] = lambda event: None,
    settle: Callable[[nn.Module], None] = lambda model: None,
) -> FitReport:
    """Solve every head for every strength, and keep for each objective the strength that is best on dev.

    `settle` may change the encoder's weights before the heads are solved over it.
    """
    with saying_why(run):
        make_folder(run)
    if resume and (done := finished_report(model, run)):
        return done
    for objective in model.objectives:
        check_solvable(objective)
    started = time.monotonic()
    settle(model)
    model.eval()
    dataset = RatedPairs(records, model.objectives)
    distinct = list(dict.fromkeys(text for pair in dataset.texts for text in pair))
    vectors = encode_texts(model.encoder, distinct, features=features or TextFeatures(model.encoder))
    place = {text: row for row, text in enumerate(distinct)}
    u, v = (torch.from_numpy(vectors[[place[pair[side]] for pair in dataset.texts]]) for side in (0, 1))
    total = len(model.objectives) * len(STRENGTHS)
    history: list[dict[str, float]] = []
    for number, objective in enumerate(model.objectives):
        paired = model.pairings[objective.head_key](u, v).double().numpy()
        solve = _Solver(objective, paired, dataset.targets[objective.target_key][:, 0])
        tried = []
        for strength in STRENGTHS if evaluate else STRENGTHS[2:3]:
            solve(model, strength)
            values = dict(evaluate(model)) if evaluate else {metric: 0.0}
            tried.append((values[metric], strength))
            history.append({"step": float(len(history) + 1), "strength": strength, **values})
            emit(FitEvent("evaluate", number * len(STRENGTHS) + len(tried), total, values))
        # A dev number that is none never wins.
        best, strength = max(tried, key=lambda one: (math.isfinite(one[0]), one))
        solve(model, strength)
    report = FitReport(0, len(records), time.monotonic() - started, 0, best if evaluate else None, history)
    finish(model, run, report)
    return report


def check_solvable(objective: Objective) -> None:
    """Raise an error for a head that has no exact solution; it names the heads that have one."""
    if (objective.head, objective.loss) not in SOLVED or objective.layers.hidden:
        known = ", ".join(f"{head} + {loss}" for head, loss in sorted(SOLVED))
        raise UsageError(
            f"relation {objective.relation.name!r} has {objective.head} + {objective.loss}, but optimiser "
            f"'exact' solves only {known}, without hidden layers. Choose one of them, or another optimiser."
        )


class _Solver:
    """One objective's features and targets; called with a strength it puts the solution into the head."""

    def __init__(self, objective: Objective, features: Matrix, target: Matrix) -> None:
        self._objective = objective
        seen = ~np.isnan(target)
        self._mean, spread = features[seen].mean(0), features[seen].std(0)
        self._spread = np.where(spread > 1e-12, spread, 1.0)
        self._x, self._y = (features[seen] - self._mean) / self._spread, target[seen]

    def __call__(self, model: PairModel, strength: float) -> None:
        """Solve for this strength."""
        numbers = self._objective.head == "scalar"
        weight, bias = (self._ridge if numbers else self._logistic)(strength * len(self._y))
        weight = weight / self._spread
        bias = bias - weight @ self._mean
        layers: Any = model.heads[self._objective.head_key].layers
        layer = layers if isinstance(layers, nn.Linear) else layers[-1]
        if layer is not layers:
            layers[0].reset()  # the solution is for features as they are
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(bias))

    def _ridge(self, penalty: float) -> tuple[Matrix, Matrix]:
        from sklearn.linear_model import Ridge

        found = Ridge(alpha=penalty).fit(self._x, self._y)
        return found.coef_[None, :], np.asarray([found.intercept_])

    def _logistic(self, penalty: float) -> tuple[Matrix, Matrix]:
        from sklearn.linear_model import LogisticRegression

        found = LogisticRegression(C=1.0 / penalty, max_iter=1000).fit(self._x, self._y.astype(int))
        width = len(self._objective.relation.labels)
        weight, bias = np.zeros((width, self._x.shape[1])), np.full(width, _NEVER)
        present = found.classes_
        if len(present) == 2:  # sklearn keeps one row for two classes
            weight[present[1]], bias[present] = found.coef_[0], [0.0, found.intercept_[0]]
        else:
            weight[present], bias[present] = found.coef_, found.intercept_
        return weight, bias
