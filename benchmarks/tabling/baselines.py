"""What costs nothing, as rows of the tables: raw cosines and majority classes beside what was trained.

Numbers come from `benchmarks/baselines.py`, and where an encoder was measured as it is from that file.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tabling.common import markdown_number, read

FREE, MAJORITY, COSINE = "no training", "majority class", "raw cosine"
GLOVE = "glove100"
# Suites whose rows were measured without training; other experiments have no such row.
SUITES = ("sts7", "relations", "paraphrase", "classification", "language-pairs")
# Encoders by the name of a start, or by a part of an experiment's name.
STARTS = {"MiniLM": "minilm", "mpnet": "mpnet", "BiLSTM": GLOVE}
EXPERIMENTS = {
    "relations-controls": "minilm",
    "relations-sick-search": "mpnet",
    "relations-sick-average": "mpnet",
    "relations-sick-entailment": "mpnet",
    "relations-infersent": GLOVE,
    "relations-infersent-sick": GLOVE,
}


def encoder_of(name: str, start: str) -> str:
    """The encoder that an experiment starts from, by its name in `baselines.json`."""
    if start in STARTS:
        return STARTS[start]
    return EXPERIMENTS.get(name) or next((e for e in ("minilm", "mpnet") if e in name.split("-")), "")


@cache
def free(suite: str, column: str, encoder: str) -> tuple[str, float] | None:
    """How a column is answered without training, and what that reaches, ×100; None if it was not measured."""
    found = free_ways(suite, column, encoder)
    return next(((way, found[way]) for way in (COSINE, MAJORITY) if way in found), None)


@cache
def free_ways(suite: str, column: str, encoder: str) -> dict[str, float]:
    """What a column reaches by the raw cosine and by the majority class, as far as these can answer it."""
    if suite == "language-pairs":
        return {COSINE: 100 * read("language-means")["pairs"][column]["pearson raw"]}
    if suite == "sts7" and encoder in ("minilm", "mpnet"):
        return {COSINE: next(t["value"] for t in read(f"sts7-{encoder}")["tasks"] if t["name"] == column)}
    document = read("baselines")
    entry = document["checks"].get(column) or document["suites"][suite][column]
    found = {}
    if encoder and (cosine := entry.get("cosine", {}).get(encoder)):
        found[COSINE] = cosine["value"]
    if majority := entry.get("majority"):
        found[MAJORITY] = majority["value"]
    return found


def sts7_average(encoder: str) -> float:
    """The mean of the raw cosine over the seven tasks."""
    tasks = [task["name"] for task in read("sts7-minilm")["tasks"]]
    return sum(free_ways("sts7", task, encoder)[COSINE] for task in tasks) / len(tasks)


def label_of(encoder: str, ways: list[str]) -> str:
    """What stands at the head of a row: how its cells were made."""
    said = {COSINE: "mean word vector, cosine" if encoder == GLOVE else COSINE}
    return f"{FREE}: " + ", ".join(said.get(way, way) for way in (COSINE, MAJORITY) if way in ways)


def free_row(suite: str, columns: dict[str, str], encoder: str) -> tuple[str, list[str]]:
    """Label and cells of an encoder without training; `columns` holds the metric of each column."""
    found = [free(suite, column, encoder) for column in columns]
    cells = [
        "–" if one is None else markdown_number(one[1], metric)
        for one, metric in zip(found, columns.values(), strict=True)
    ]
    return label_of(encoder, [one[0] for one in found if one is not None]), cells


def free_rows(result: dict[str, Any]) -> dict[str, tuple[str, list[str]]]:
    """The free row of every start of an experiment over a suite; starts that share one have it once."""
    if result.get("suite") not in SUITES:
        return {}
    columns = {c: metric for setting in result["settings"] for c, metric in setting["metrics"].items()}
    rows: dict[str, tuple[str, list[str]]] = {}
    for start in dict.fromkeys(setting["start"] for setting in result["settings"]):
        row = free_row(result["suite"], columns, encoder_of(result["name"], start))
        if row not in rows.values():
            rows[start] = row
    return rows
