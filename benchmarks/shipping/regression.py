"""The baseline that needs no training of an encoder: logistic regression on [u, v, |u − v|, u ∗ v]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.leakage import filter_overlap
from likewise.records import Record
from shipping.asked import Asked
from shipping.labelled import ENTAILMENT, INFERENCE
from shipping.parts import NO_VECTORS
from shipping.rows import Rows, gold_of, measured, pairs_of, texts_of

# Training rows and dev rows of each test set; what the recipes train on.
TRAINING = {
    "SICK": ((("sick", "train"),), ("sick", "trial")),
    "SNLI": ((("snli", "train"), ("mnli", "train")), ("snli", "dev")),
}
# Strengths of the penalty (C of scikit-learn) that dev chooses from; features are standardised.
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)


class Regression:
    """Accuracy on SICK and SNLI entailment of logistic regression over the vectors of an untrained encoder.

    Training rows that are a pair of one of the seven STS test sets, or of the test set, are dropped; so are
    such dev rows. Dev chooses the penalty.
    """

    name = "regression"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The sentences of the training, dev and test rows."""
        for name, (corpus, _) in INFERENCE.items():
            for records in (*self.parts(name, rows), rows.of(corpus)):
                yield from texts_of(records)

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows that are left for training and for choosing."""
        counts = {name: self.parts(name, rows) for name in TRAINING}
        return {name: {"train": len(train), "dev": len(dev)} for name, (train, dev) in counts.items()}

    def parts(self, name: str, rows: Rows) -> tuple[list[Record], list[Record]]:
        """The training and dev rows that are in no test set."""
        tests = {task.name: list(task.records or ()) for task in rows.sts7.tasks}
        tests[name] = rows.of(INFERENCE[name][0])
        sources, dev = TRAINING[name]
        train = [record for source in sources for record in rows.of(*source)]
        return filter_overlap(train, tests)[0], filter_overlap(rows.of(*dev), tests)[0]

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The accuracy on each test set, with the penalty that was chosen."""
        if not asked.has_vectors:
            return NO_VECTORS
        if not asked.untrained:
            return "it is measured of untrained encoders only"
        return {name: self._one(name, asked, rows) for name in TRAINING}

    def _one(self, name: str, asked: Asked, rows: Rows) -> dict[str, Any]:
        test = rows.of(INFERENCE[name][0])
        train, dev = self.parts(name, rows)
        x, x_dev, x_test = (features(asked, part) for part in (train, dev, test))
        gold = gold_of(dev, ENTAILMENT)
        middle, spread = x.mean(axis=0), x.std(axis=0) + 1e-12
        for part in (x, x_dev, x_test):
            part -= middle
            part /= spread
        fitted = {strength: fit(x, gold_of(train, ENTAILMENT), strength) for strength in STRENGTHS}
        values = {strength: float(np.mean(one.predict(x_dev) == gold)) for strength, one in fitted.items()}
        chosen = max(values, key=lambda strength: values[strength])
        accuracy = measured("accuracy", ENTAILMENT, test, fitted[chosen].predict(x_test))
        return {"accuracy": accuracy, "C": chosen, "dev": 100 * values[chosen]}


def features(asked: Asked, records: Sequence[Record]) -> NDArray[np.float32]:
    """[u, v, |u − v|, u ∗ v] of the unit vectors of pairs, N×4d."""
    u, v = (asked.unit([pair[side] for pair in pairs_of(records)]) for side in (0, 1))
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def fit(x: NDArray[np.float32], labels: NDArray[Any], strength: float) -> Any:
    """A multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=1000).fit(x, labels)
