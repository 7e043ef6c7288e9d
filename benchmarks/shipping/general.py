"""What an encoder could do before it was trained further: retrieval, label texts, clustering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from likewise.data import find_corpus
from likewise.evaluation.crosslingual.retrieval import find_nearest
from likewise.methods.label_embedding import LabelModel
from likewise.predict.labels import Classifier
from likewise.records import Relation
from likewise.schema.labels import DEFAULT_TEMPLATES
from shipping.asked import Asked, hits
from shipping.parts import NO_VECTORS, gain, share
from shipping.rows import Rows, commonest, gold_of, texts_of

CLASSIFIED = {"TREC-6": ("trec_qc", "question_type"), "SST-2": ("sst2", "sentiment")}
STARTS = 5


class Retrieval:
    """Paraphrase retrieval: the share of 9,999 English sentences whose partner is the nearest, both ways.

    A hit is the right text, so that a sentence that occurs twice is no miss.
    """

    name = "retrieval"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """Both sides of the pairs."""
        return (text for pair in rows.paraphrases for text in pair)

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The number of pairs."""
        return {"rows": len(rows.paraphrases)}

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The accuracy of each direction and their mean."""
        if not asked.has_vectors:
            return NO_VECTORS
        sides = [[pair[side] for pair in rows.paraphrases] for side in (0, 1)]
        nearest = find_nearest(*(asked.unit(side) for side in sides))
        found = [np.asarray(sides[1 - at])[nearest[at]] == np.asarray(sides[1 - at]) for at in (0, 1)]
        right = np.stack(found, axis=1)
        asked.outcomes[self.name] = right
        told: dict[str, Any] = {
            "accuracy": {"value": 100 * share(right, right)},
            "forward": {"value": 100 * share(right, right[:, 0])},
            "backward": {"value": 100 * share(right, right[:, 1])},
        }
        if raw is not None and self.name in raw.outcomes:
            told["against_raw"] = {"accuracy": gain(right, raw.outcomes[self.name])}
        return told


class ZeroShot:
    """Accuracy on TREC (six labels) and SST-2 by the catalogue's label texts, without any training."""

    name = "zero-shot"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The texts of both test sets."""
        return (text for corpus, _ in CLASSIFIED.values() for text in texts_of(rows.of(corpus)))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows, and the accuracy of the label that is commonest in train."""
        found = {}
        for name, (corpus, relation) in CLASSIFIED.items():
            test, label = rows.of(corpus), commonest(gold_of(rows.of(corpus, "train"), relation).tolist())
            accuracy = {"value": 100 * float(np.mean(hits(gold_of(test, relation), label)))}
            found[name] = {"rows": len(test), "majority": {"accuracy": accuracy, "label": label}}
        return found

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The accuracy on each test set, by the default templates."""
        if not asked.has_vectors or asked.encoder is None:
            return NO_VECTORS
        classifier, told = label_reader(asked.encoder), dict[str, Any]()
        for name, (corpus, wanted) in CLASSIFIED.items():
            [relation] = [one for one in find_corpus(corpus).relations if one.name == wanted]
            gold = gold_of(rows.of(corpus), wanted)
            said = classified(classifier, relation, asked.unit(list(texts_of(rows.of(corpus)))))
            right = asked.outcomes[name] = hits(said, gold)
            told[name] = {"accuracy": accuracy_of(right)}
            if raw is not None and name in raw.outcomes:
                told[name]["against_raw"] = {"accuracy": gain(right, raw.outcomes[name])}
        return told


def label_reader(encoder: SentenceTransformer) -> Classifier:
    """The classifier that an encoder is without training: it compares texts with label texts."""
    return Classifier(LabelModel(encoder, (), matcher="cosine", templates=DEFAULT_TEMPLATES).eval())


def classified(classifier: Classifier, task: Relation, vectors: NDArray[np.float32]) -> list[str]:
    """The most probable label of each vector."""
    chances = classifier.probabilities(task, torch.from_numpy(vectors))
    return [task.labels[int(place)] for place in chances.argmax(axis=1)]


def accuracy_of(right: NDArray[np.bool_]) -> dict[str, Any]:
    """The share of right answers with its interval."""
    from likewise.evaluation.intervals import wilson_interval

    value = float(right.mean())
    found = wilson_interval(value, len(right))
    return {"value": 100 * value, "interval": [100 * found.low, 100 * found.high]}


class Clustering:
    """v-measure of k-means over the unit vectors of Reuters test, with as many clusters as topics (46).

    The mean of five random starts.
    """

    name = "clustering"

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The articles of the test set."""
        return texts_of(rows.of("reuters46"))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The rows, and the number of topics of the catalogue."""
        return {"rows": len(rows.of("reuters46")), "clusters": topics(), "starts": STARTS}

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """The mean v-measure, and that of every start."""
        if not asked.has_vectors:
            return NO_VECTORS
        from sklearn.cluster import KMeans

        _, gold = np.unique(gold_of(rows.of("reuters46"), "topic"), return_inverse=True)
        vectors = asked.unit(list(texts_of(rows.of("reuters46"))))
        found = [
            KMeans(topics(), n_init=1, random_state=start).fit_predict(vectors)
            for start in range(1, STARTS + 1)
        ]
        clusters = asked.outcomes[self.name] = np.stack(found, axis=1)
        told: dict[str, Any] = {
            "v-measure": {"value": 100 * v_measure(gold, clusters)},
            "starts": [100 * v_measure(gold, one[:, None]) for one in found],
        }
        if raw is not None and self.name in raw.outcomes:
            difference = gain(clusters, raw.outcomes[self.name], gold=gold, statistic=v_measure)
            told["against_raw"] = {"v-measure": difference}
        return told


def topics() -> int:
    """The number of topics of Reuters in the catalogue."""
    return len(find_corpus("reuters46").relations[0].labels)


def v_measure(gold: NDArray[np.intp], clusters: NDArray[np.intp]) -> float:
    """The mean v-measure of clusterings, N×starts, against the topics (N,), in 0..1.

    The harmonic mean of homogeneity and completeness (Rosenberg & Hirschberg 2007), as scikit-learn has it.
    """
    return float(np.mean([_v_measure(gold, column) for column in clusters.T]))


def _v_measure(gold: NDArray[np.intp], clusters: NDArray[np.intp]) -> float:
    width = int(clusters.max()) + 1
    counts = np.bincount(gold * width + clusters, minlength=(int(gold.max()) + 1) * width)
    table = counts.reshape(-1, width) / len(gold)
    of_gold, of_clusters = _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
    # I(gold; clusters) divided by the mean of both entropies is the harmonic mean.
    shared = of_gold + of_clusters - _entropy(table.ravel())
    return 2 * shared / (of_gold + of_clusters) if of_gold + of_clusters else 1.0


def _entropy(shares: NDArray[np.float64]) -> float:
    present = shares[shares > 0]
    return float(-(present * np.log(present)).sum())
