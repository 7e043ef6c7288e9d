"""What costs nothing: the numbers that every table of models is read against.

    python benchmarks/baselines.py --data-dir corpora
    python benchmarks/baselines.py --suite paraphrase --task QQP --encoder mpnet

Writes benchmarks/results/baselines.json; the encoders are folders in LIKEWISE_MODELS, nothing is trained:

majority   the commonest label of the training rows, given to every test row (F1: "paraphrase" to every row)
cosine     graded relations: the cosine of the encoder as it is, by the table's own metric. Two labels: yes
           from a threshold upwards, which is chosen on dev, or on train where the test set is a dev set; on
           1,000 rows spread over it where it has more

What is in the file already stays there unless it is measured again.
Rows and metrics are those of the experiments' suites. `raw` encoders on sts7 and language-pairs have result
files of their own (sts7-*.json, language-means.json).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.data import load_corpus
from likewise.encoders.sentence import load_encoder
from likewise.encoders.words import average_encoder, distinct_words
from likewise.evaluation.metrics import compute, get_metric
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import Task, TaskRows, load_task
from likewise.records import Record, Value
from likewise.versions import versions

TARGET = Path(__file__).resolve().parent / "results" / "baselines.json"
GLOVE = "glove100"
TRANSFORMERS = ("minilm", "mpnet")
CORRELATIONS = ("pearson", "spearman")

# What the experiments check beside a suite; the test sets whose thresholds are chosen, and on what.
CHECKS = (
    Task("SNLI test accuracy", "snli", "test", relation="entailment", metric="accuracy"),
    Task("MNLI matched accuracy", "mnli", "dev", relation="entailment", metric="accuracy"),
)
CHOOSING = 1000
THRESHOLDS = {"MRPC": "mrpc/dev", "QQP": "qqp/dev", "RTE": "rte/train"}
# Encoders over word vectors are compared with the mean of these vectors, where a table has such encoders.
WITH_GLOVE = ("sts7", "relations")
MEASURED = ("sts7", "relations", "paraphrase", "classification")
KNOWN = {"sts7": TRANSFORMERS}  # have result files of their own


def majority(task: Task, rows: TaskRows, data_dir: Path | None) -> dict[str, Any]:
    """The commonest label of train, given to every test row; for F1, yes to every row."""
    name, source = task.relation_name, training_source(task)
    labels = Counter(r.values[name] for r in load_corpus(*source.split("/"), data_dir=data_dir))
    label = "paraphrase" if rows.metric.name == "f1" else labels.most_common(1)[0][0]
    if rows.metric.name == "matthews":  # one answer for every row says nothing of any: 0 by convention
        value = 0.0
    else:
        value = compute(rows.metric.name, rows.gold, np.asarray([label] * len(rows.gold)))
    return {"value": rows.metric.scale * value, "label": label, "from": source}


def training_source(task: Task) -> str:
    """The corpus and split that the experiments train on for a task."""
    split = task.split.replace("_test", "_train") if task.split.endswith("_test") else "train"
    return f"{task.corpus}/{split}"


class RawCosines:
    """Cosines of an encoder that nobody trained for this; every text is encoded once."""

    def __init__(self, name: str) -> None:
        self.name, self._vectors = name, dict[str, NDArray[np.float32]]()

    def __call__(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """One cosine per pair, shape (n,)."""
        self._encode(sorted({text for record in records for text in record.texts} - set(self._vectors)))
        u, v = (np.stack([self._vectors[r.texts[side]] for r in records]) for side in (0, 1))
        made: NDArray[np.float64] = (u.astype(np.float64) * v).sum(axis=1)
        return made

    def _encode(self, texts: list[str]) -> None:
        if not texts:
            return
        if self.name == GLOVE:
            encoder = average_encoder(GLOVE, words=distinct_words(texts), device="cpu")
        else:
            encoder = load_encoder(self.name)
        found = encoder.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        self._vectors |= dict(zip(texts, found, strict=True))


def cosine(task: Task, rows: TaskRows, raw: RawCosines, data_dir: Path | None) -> dict[str, Any] | None:
    """The raw cosine by the task's metric, or by a threshold that other rows chose for two labels."""
    metric = rows.metric
    if metric.name in CORRELATIONS:
        return {"value": metric.scale * compute(metric.name, rows.gold, raw(rows.records))}
    if task.name not in THRESHOLDS:
        return None
    source, yes = THRESHOLDS[task.name], positive(rows.gold)
    whole = load_corpus(*source.split("/"), data_dir=data_dir)
    chosen = [whole[round(at)] for at in np.linspace(0, len(whole) - 1, min(CHOOSING, len(whole)))]
    gold = np.asarray([r.values[task.relation_name] for r in chosen])
    threshold = best_threshold(metric.name, gold == yes, raw(chosen))
    value = score_at(metric.name, rows.gold == yes, raw(rows.records), threshold)
    told = {"threshold": round(threshold, 4), "from": source, "rows": len(chosen)}
    return {"value": metric.scale * value, **told}


def positive(gold: NDArray[Any]) -> Value:
    """The label that a high cosine stands for: the one that is no denial."""
    [yes] = [label for label in sorted(set(gold.tolist())) if not str(label).startswith("not_")]
    return yes


def best_threshold(metric: str, gold: NDArray[np.bool_], cosines: NDArray[np.float64]) -> float:
    """The middle between two neighbouring cosines that scores best; the lowest of equals."""
    order = np.unique(cosines)
    candidates = (order[1:] + order[:-1]) / 2
    right = np.argsort(cosines)
    # Counted from the top: how many of the rows at or above each candidate are positive.
    above = len(gold) - np.searchsorted(cosines[right], candidates)
    positives = np.concatenate([[0], np.cumsum(gold[right][::-1])])[above]
    if metric == "f1":
        values = 2 * positives / (above + gold.sum())
    else:
        values = (positives + (len(gold) - above) - (gold.sum() - positives)) / len(gold)
    return float(candidates[int(np.argmax(values))])


def score_at(metric: str, gold: NDArray[np.bool_], cosines: NDArray[np.float64], threshold: float) -> float:
    """The metric of yes from the threshold upwards."""
    return compute(metric, gold, cosines >= threshold)


def add_task(known: dict[str, Any], task: Task, raws: Sequence[RawCosines], data_dir: Path | None) -> None:
    """Add what a task reaches without training: rows, metric, majority class, cosine of each encoder."""
    rows = TaskRows(task, load_task(task, data_dir=data_dir), Protocol(metric="spearman"))
    entry = known.setdefault(task.name, {})
    entry |= {"metric": rows.metric.name, "rows": len(rows.records)}
    if get_metric(rows.metric.name).compares_labels:
        entry["majority"] = majority(task, rows, data_dir)
    made = {raw.name: cosine(task, rows, raw, data_dir) for raw in raws} if task.texts == 2 else {}
    if any(made.values()):
        entry["cosine"] = entry.get("cosine", {}) | made
    print(task.name, json.dumps(entry), flush=True)


def main() -> None:
    """Measure all of it, or what is asked for, and write the file task by task."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--suite", nargs="+", default=[*MEASURED, "checks"])
    parser.add_argument("--task", nargs="+", help="tasks of these suites; all of them if left out")
    parser.add_argument("--encoder", nargs="*", default=[*TRANSFORMERS, GLOVE])
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args()
    document: dict[str, Any] = {"suites": {}, "checks": {}}
    if options.output.is_file():
        document = json.loads(options.output.read_text(encoding="utf8"))
    every = {name: RawCosines(name) for name in options.encoder}
    for suite in options.suite:
        tasks = CHECKS if suite == "checks" else SUITES[suite].tasks
        known = document["checks"] if suite == "checks" else document["suites"].setdefault(suite, {})
        names = [name for name in every if name not in KNOWN.get(suite, ())]
        names = [name for name in names if name != GLOVE or suite in WITH_GLOVE]
        for task in tasks:
            if options.task is None or task.name in options.task:
                raws = [] if suite == "checks" else [every[name] for name in names]
                add_task(known, task, raws, options.data_dir)
                document["versions"] = versions()
                options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
