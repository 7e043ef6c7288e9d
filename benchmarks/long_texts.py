"""Long texts, cut at the encoder's limit or read whole in windows: the raw encoder.

    python benchmarks/long_texts.py --data-dir corpora --output benchmarks/results/long_texts.json

Every text is longer than the limit. Wikipedia: a document is made of 24 unrelated sentences of ASSET's
validation split, with a sentence of the test split before or behind them. The query is a crowd worker's
simplification of it. Reuters-21578: the query is the title of an article, and its topic is read by logistic
regression on the vectors of the bodies. IMDB test: the sentiment of reviews, in the same way. All rows are
drawn with the seed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import likewise
from likewise.answering import CHUNK, CUT, Long
from likewise.data import write_json_aside
from likewise.data.tables import open_table
from likewise.encoders.features import TextFeatures
from likewise.evaluation.intervals import wilson_interval
from likewise.evaluation.significance import mcnemar
from likewise.versions import commit, machine, versions

WAYS: tuple[Long, ...] = (CUT, CHUNK)
DOCUMENTS, SENTENCES, ARTICLES, REVIEWS, FOLDS = 100, 24, 140, 160, 10
SEED = 1
Vectors = NDArray[np.float32]


def rows_of(data_dir: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a corpus file."""
    return [dict(row.fields) for row in open_table(str(data_dir / name))]


def drawn(rows: Sequence[Any], count: int) -> list[Any]:
    """Rows drawn with the seed."""
    order = np.random.default_rng(SEED).permutation(len(rows))
    return [rows[place] for place in order[:count]]


def documents(data_dir: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Queries, and documents by the place of the sentence that each query is about."""
    rng = np.random.default_rng(SEED)
    folder = "simple_wikipedia/asset"
    wanted = drawn(rows_of(data_dir, f"{folder}.test.jsonl.xz"), DOCUMENTS)
    others = [str(row["normal"]) for row in rows_of(data_dir, f"{folder}.valid.jsonl.xz")]
    first, last = [], []
    for row in wanted:
        around = [others[place] for place in rng.choice(len(others), SENTENCES, replace=False)]
        first.append(" ".join([row["normal"], *around]))
        last.append(" ".join([*around, row["normal"]]))
    return [row["crowd_simplifications"][0] for row in wanted], {"first": first, "last": last}


def found_first(queries: Vectors, texts: Vectors) -> NDArray[np.str_]:
    """For each query, "1" if its own text is the nearest one."""
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (queries, texts)]
    nearest = (unit[0] @ unit[1].T).argmax(axis=1)
    return np.array(["1" if place == row else "0" for row, place in enumerate(nearest)])


def read_labels(vectors: Vectors, labels: Sequence[str]) -> NDArray[np.str_]:
    """The label of each text by logistic regression on the others, in ten folds."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    said = cross_val_predict(LogisticRegression(C=10, max_iter=2000), vectors, labels, cv=folds)
    return np.asarray(said)


def table(gold: Sequence[str], said: dict[str, NDArray[np.str_]], **about: Any) -> dict[str, Any]:
    """The share of right answers by way of reading, and McNemar's test against cutting."""
    right = np.asarray(gold)
    found: dict[str, Any] = {"texts": len(right), **about}
    for way, answers in said.items():
        share = float(np.mean(answers == right))
        interval = wilson_interval(share, len(right))
        found[way] = {"accuracy": share, "low": interval.low, "high": interval.high}
    found["p"] = mcnemar(right, said[CHUNK], said[CUT]).p
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    cut = likewise.load("raw")
    measure = TextFeatures(cut.model.encoder)

    def long_ones(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
        measure.add(row[column] for row in rows)
        return [row for row in rows if hash(row[column]) in measure.cut]

    queries, placed = documents(options.data_dir)
    reviews = drawn(rows_of(options.data_dir, "imdb/test.tsv.xz"), 3 * REVIEWS)
    reviews = long_ones(reviews, "text")[:REVIEWS]
    articles = drawn(rows_of(options.data_dir, "reuters21578/topics46_train.tsv.xz"), 12 * ARTICLES)
    articles = [row for row in long_ones(articles, "body") if row["title"]]
    enough = {topic for topic, rows in Counter(row["topic"] for row in articles).items() if rows >= FOLDS}
    articles = [row for row in articles if row["topic"] in enough][:ARTICLES]
    enough = {topic for topic, rows in Counter(row["topic"] for row in articles).items() if rows >= FOLDS}
    articles = [row for row in articles if row["topic"] in enough]

    asked, titles = cut.encode(queries), cut.encode([row["title"] for row in articles])
    answers: dict[str, dict[str, NDArray[np.str_]]] = {}
    topics, verdicts = [row["topic"] for row in articles], [row["label"] for row in reviews]
    for way in WAYS:
        model = likewise.load("raw", long=way)
        for place, texts in placed.items():
            answers.setdefault(place, {})[way] = found_first(asked, model.encode(texts))
        bodies = model.encode([row["body"] for row in articles])
        answers.setdefault("title", {})[way] = found_first(titles, bodies)
        answers.setdefault("topic", {})[way] = read_labels(bodies, topics)
        read = model.encode([row["text"] for row in reviews])
        answers.setdefault("sentiment", {})[way] = read_labels(read, verdicts)
    ones = {task: ["1"] * len(answers[task][CUT]) for task in ("first", "last", "title")}
    result = {
        "first": table(ones["first"], answers["first"], by_chance=1 / len(queries)),
        "last": table(ones["last"], answers["last"], by_chance=1 / len(queries)),
        "title": table(ones["title"], answers["title"], by_chance=1 / len(articles)),
        "topic": table(topics, answers["topic"], majority=max(Counter(topics).values()) / len(topics)),
        "sentiment": table(
            verdicts, answers["sentiment"], majority=max(Counter(verdicts).values()) / len(verdicts)
        ),
        "limit": cut.limits.row_tokens,
        "made_by": {"commit": commit(), "versions": versions(), "machine": machine(), "seed": SEED},
    }
    print(result)
    if options.output is not None:
        write_json_aside(options.output, result, replace=True)


if __name__ == "__main__":
    main()
