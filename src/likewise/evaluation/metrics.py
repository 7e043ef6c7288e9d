"""Metrics: one number from ratings or labels (`gold`) and predictions, or an error that says why there is
none.

A correlation of constant or missing values is neither 0 nor nan. It is an `EvaluationError` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.inputs import Values, check_spread, paired_labels, paired_numbers
from likewise.records import Array

_DENIALS = ("not_", "not-", "not ")


def pearson(gold: Values, predicted: Values) -> float:
    """Pearson's correlation of two rows of N ≥ 3 numbers, in −1..1."""
    x, y = paired_numbers(gold, predicted, least=3)
    check_spread(x, "ratings")
    check_spread(y, "predictions")
    return _correlate(x, y)


def spearman(gold: Values, predicted: Values) -> float:
    """Spearman's rank correlation of two rows of N ≥ 3 numbers, with ties at their average rank, in −1..1."""
    x, y = paired_numbers(gold, predicted, least=3)
    check_spread(x, "ratings")
    check_spread(y, "predictions")
    return _correlate(average_ranks(x), average_ranks(y))


def mse(gold: Values, predicted: Values) -> float:
    """Mean squared difference of two rows of numbers."""
    x, y = paired_numbers(gold, predicted, least=1)
    return float(np.mean((x - y) ** 2))


def mae(gold: Values, predicted: Values) -> float:
    """Mean absolute difference of two rows of numbers."""
    x, y = paired_numbers(gold, predicted, least=1)
    return float(np.mean(np.abs(x - y)))


def accuracy(gold: Values, predicted: Values) -> float:
    """Share of labels that agree, in 0..1."""
    x, y, _ = paired_labels(gold, predicted)
    return float(np.mean(x == y))


def f1(gold: Values, predicted: Values, *, positive: Any = None) -> float:
    """F1 of the positive one of two labels, 2·TP / (2·TP + FP + FN), in 0..1.

    Without `positive`, the labels must be 0 and 1 (numbers or texts) or False and True, and F1 is computed
    for 1. Or they must be a label and its negation (paraphrase, not_paraphrase), and F1 is computed for the
    label.
    """
    x, y, names = paired_labels(gold, predicted)
    if len(names) > 2:
        raise EvaluationError(
            f"f1 needs two labels, but there are {len(names)}. Use f1-macro, or map scores to labels first."
        )
    wanted = positive if positive is not None else positive_label(names)
    if wanted not in names:
        raise EvaluationError(
            f"f1 is undefined, because the positive label {wanted!r} occurs neither in the data nor "
            "in the predictions."
        )
    code = names.index(wanted)
    hits = int(np.sum((x == code) & (y == code)))
    return 2 * hits / int(np.sum(x == code) + np.sum(y == code))


def f1_macro(gold: Values, predicted: Values) -> float:
    """Unweighted mean of the F1 of every label that occurs in the data or the predictions, in 0..1."""
    x, y, names = paired_labels(gold, predicted)
    hits = np.bincount(x[x == y], minlength=len(names))
    seen = np.bincount(x, minlength=len(names)) + np.bincount(y, minlength=len(names))
    return float(np.mean(2 * hits / seen))


def matthews(gold: Values, predicted: Values) -> float:
    """Matthews' correlation for two or more labels (Gorodkin 2004, R_K), in −1..1."""
    x, y, names = paired_labels(gold, predicted)
    for codes, what in ((x, "true labels"), (y, "predicted labels")):
        if codes.min() == codes.max():
            raise EvaluationError(f"matthews is undefined, because the {what} are all {names[codes[0]]!r}.")
    true, said = (np.bincount(codes, minlength=len(names)).astype(float) for codes in (x, y))
    n, hits = float(len(x)), float(np.sum(x == y))
    return float((hits * n - true @ said) / np.sqrt((n * n - said @ said) * (n * n - true @ true)))


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric and how to read it: `scale` is for display, `compares_labels` separates labels from
    numbers.
    """

    name: str
    function: Callable[[Values, Values], float]
    compares_labels: bool = False
    scale: float = 100.0
    higher_is_better: bool = True

    @property
    def unit(self) -> str:
        """The name as shown beside a value: "spearman ×100" or "mse"."""
        return f"{self.name} ×{self.scale:g}" if self.scale != 1 else self.name


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("pearson", pearson),
        Metric("spearman", spearman),
        Metric("accuracy", accuracy, compares_labels=True),
        Metric("f1", f1, compares_labels=True),
        Metric("f1-macro", f1_macro, compares_labels=True),
        Metric("matthews", matthews, compares_labels=True),
        Metric("mse", mse, scale=1.0, higher_is_better=False),
        Metric("mae", mae, scale=1.0, higher_is_better=False),
    )
}


def get_metric(name: str) -> Metric:
    """The metric with this name. For an unknown name, the error lists the known ones."""
    if name not in METRICS:
        raise UsageError(f"metric {name!r} is not one of {', '.join(METRICS)}")
    return METRICS[name]


def compute(name: str, gold: Values, predicted: Values) -> float:
    """The named metric of ratings or labels and predictions, on its own scale (not ×100)."""
    return get_metric(name).function(gold, predicted)


def average_ranks(values: Array) -> Array:
    """Ranks 1..N of N numbers. Tied values share the mean of their ranks."""
    order = np.argsort(values)
    ordered = values[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    starts = np.append(np.flatnonzero(first), len(values))
    ranks = np.empty(len(values))
    ranks[order] = ((starts[:-1] + starts[1:] + 1) / 2)[np.cumsum(first) - 1]
    return ranks


def _correlate(x: Array, y: Array) -> float:
    # Scaled first, so that neither tiny nor huge values leave the floating-point range when squared.
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1.0, 1.0))


def positive_label(names: list[Any]) -> Any:
    """The label for which F1 is computed: 1 of 0 and 1, or the label of a label and its negation."""
    for zero, one in ((0, 1), ("0", "1")):
        if set(names) <= {zero, one}:
            return one
    for name in names:
        if isinstance(name, str) and name.startswith(_DENIALS) and set(names) <= {name, name[4:]}:
            return name[4:]
    raise EvaluationError(
        f"f1 does not know which of {', '.join(map(repr, names))} is positive. Pass positive=LABEL."
    )
