"""Entailment and paraphrase: the model's own answers, beside the commonest label and the cosine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines import best_threshold, positive
from likewise.records import Record, nearest_labels
from shipping.asked import Asked, hits
from shipping.parts import NO_VECTORS, gain
from shipping.rows import Rows, commonest, gold_of, measured, pairs_of, texts_of

ENTAILMENT, PARAPHRASE = "entailment", "paraphrase"
# Where the commonest label is counted, and thresholds are chosen.
INFERENCE = {"SICK": ("sick", "train"), "SNLI": ("snli", "train")}
PARAPHRASES = {"PAWS-Wiki": ("paws_wiki", "dev"), "MRPC": ("mrpc", "dev")}
METRICS = ("accuracy", "f1")


class Entailment:
    """Accuracy on SICK test and SNLI test, of models that answer `entailment`."""

    name = "entailment"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The sentences of both test sets; none for a model that does not answer."""
        if asked.relation(ENTAILMENT) is None:
            return ()
        return (text for corpus, _ in INFERENCE.values() for text in texts_of(rows.of(corpus)))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows, and the accuracy of the label that is commonest in train."""
        return {
            name: {
                "rows": len(rows.of(corpus)),
                "majority": majority(ENTAILMENT, rows.of(corpus), rows.of(corpus, seen)),
            }
            for name, (corpus, seen) in INFERENCE.items()
        }

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The accuracy on each test set."""
        if asked.relation(ENTAILMENT) is None:
            return f"it answers no relation {ENTAILMENT!r}"
        if not asked.relation(ENTAILMENT).labels:
            return f"it answers {ENTAILMENT} with a number"
        found = {}
        for name, (corpus, _) in INFERENCE.items():
            said = as_labels(asked, ENTAILMENT, rows.of(corpus))
            told = measured("accuracy", ENTAILMENT, rows.of(corpus), said)
            found[name] = {"answer": {"accuracy": told, "source": asked.model.source(ENTAILMENT)}}
        return found


class Paraphrase:
    """Accuracy and F1 on PAWS-Wiki test and MRPC test, by the model's answer and by its cosine."""

    name = "paraphrase"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The sentences of test and dev."""
        for corpus, seen in PARAPHRASES.values():
            yield from texts_of(rows.of(corpus))
            yield from texts_of(rows.of(corpus, seen))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows, the accuracy of the label that is commonest in dev, and F1 of "paraphrase" for all."""
        found: dict[str, Any] = {}
        for name, (corpus, seen) in PARAPHRASES.items():
            test = rows.of(corpus)
            everything = [positive(gold_of(test, PARAPHRASE))] * len(test)
            found[name] = {
                "rows": len(test),
                "majority": majority(PARAPHRASE, test, rows.of(corpus, seen)),
                "all paraphrases": {"f1": measured("f1", PARAPHRASE, test, everything)},
            }
        return found

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """Both sources on each test set, and the accuracy minus that of the raw cosine.

        It is the accuracy of the answer if there is one, else of the cosine.
        """
        found = {name: self._one(name, asked, rows, raw) for name in PARAPHRASES}
        return found if any(found.values()) else f"{NO_VECTORS}, and it answers no relation {PARAPHRASE!r}"

    def _one(self, name: str, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any]:
        corpus, seen = PARAPHRASES[name]
        test, dev = rows.of(corpus), rows.of(corpus, seen)
        found: dict[str, Any] = {}
        said: dict[str, list[str]] = {}
        if asked.has_vectors:
            cosines = asked.cosines(pairs_of(dev)), asked.cosines(pairs_of(test))
            found["cosine"], said = by_threshold(dev, test, *cosines)
            asked.outcomes[name] = hits(said["accuracy"], gold_of(test, PARAPHRASE))
        own = asked.relation(PARAPHRASE)
        if own is not None:
            found["answer"], said = self._answered(asked, dev, test, labels=bool(own.labels))
            found["answer"]["source"] = asked.model.source(PARAPHRASE)
        if raw is not None and name in raw.outcomes and said:
            right = hits(said["accuracy"], gold_of(test, PARAPHRASE))
            found["against_raw"] = {"accuracy": gain(right, raw.outcomes[name])}
        return found

    def _answered(
        self, asked: Asked, dev: Sequence[Record], test: Sequence[Record], *, labels: bool
    ) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The model's own labels. Numbers become labels by a threshold that is chosen on dev."""
        if not labels:
            numbers = [np.asarray(asked.answer(PARAPHRASE, pairs_of(part)).values) for part in (dev, test)]
            return by_threshold(dev, test, *numbers)
        said = as_labels(asked, PARAPHRASE, test)
        told = {metric: measured(metric, PARAPHRASE, test, said) for metric in METRICS}
        return told, dict.fromkeys(METRICS, said)


def majority(relation: str, test: Sequence[Record], seen: Sequence[Record]) -> dict[str, Any]:
    """The accuracy of the label that is commonest in other rows."""
    label = commonest(gold_of(seen, relation).tolist())
    return {"accuracy": measured("accuracy", relation, test, [label] * len(test)), "label": label}


def as_labels(asked: Asked, relation: str, records: Sequence[Record]) -> list[str]:
    """The label of every pair; a number on an ordered scale becomes the nearest label."""
    values = asked.answer(relation, pairs_of(records)).values
    return values if isinstance(values, list) else nearest_labels(asked.relation(relation), values)


def by_threshold(
    dev: Sequence[Record], test: Sequence[Record], on_dev: NDArray[Any], on_test: NDArray[Any]
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Paraphrases from a threshold upwards, which each metric chooses on dev: the metrics, and the labels."""
    gold, told, said = gold_of(dev, PARAPHRASE), dict[str, Any](), dict[str, list[str]]()
    yes = positive(gold)
    [no] = set(gold.tolist()) - {yes}
    for metric in METRICS:
        threshold = best_threshold(metric, gold == yes, on_dev)
        said[metric] = [str(yes if one >= threshold else no) for one in on_test]
        told[metric] = {**measured(metric, PARAPHRASE, test, said[metric]), "threshold": round(threshold, 4)}
    return told, said
