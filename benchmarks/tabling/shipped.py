"""Models that come with Likewise, as `benchmarks/shipped.py` measured them, beside their raw encoders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from shipping.summary import Entry, Path, collected, half_width, spread
from tabling import common
from tabling.common import markdown

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
# Encoders by the name that results have for them, from small to large; others follow by name.
ENCODERS = {
    "raw": "all-MiniLM-L6-v2",
    "minilm": "all-MiniLM-L6-v2",
    "e5-small": "e5-small",
    "bge-small": "bge-small-en-v1.5",
    "mpnet": "all-mpnet-base-v2",
}
AVERAGE = ("sts7", "cosine", "average")
GENERAL: dict[str, Path] = {
    "Tatoeba paraphrases, accuracy": ("retrieval", "accuracy"),
    "TREC, 6 labels": ("zero-shot", "TREC-6", "accuracy"),
    "SST-2": ("zero-shot", "SST-2", "accuracy"),
    "Reuters clusters, v-measure": ("clustering", "v-measure"),
}
QUESTIONS = {
    "similarity": "similarity, in order",
    "cosine": "cosine, in order",
    "entailment": "entailment, accuracy",
    "paraphrase": "paraphrase, accuracy",
}
GROUP = tuple[str, str]


def documents() -> list[dict[str, Any]]:
    """All result files shipped-*.json, in the order of their names."""
    files = sorted(common.RESULTS.glob("shipped-*.json"))
    return [json.loads(file.read_text(encoding="utf8")) for file in files]


def groups() -> dict[GROUP, list[Entry]]:
    """Entries by encoder and name; those of one name differ in their seed. Encoders come before models.

    An encoder without training may be in several files: the parts of all are taken, the first number wins.
    """
    found: dict[GROUP, list[Entry]] = {}
    for entry in (entry for document in documents() for entry in document["models"]):
        key = (entry["name"] if entry["untrained"] else entry["raw"] or "", entry["name"])
        known = found.setdefault(key, [])
        if entry["untrained"] and known:
            known[0] = {**entry, **known[0], "parts": {**entry["parts"], **known[0]["parts"]}}
        else:
            known.append(entry)
    return dict(sorted(found.items(), key=lambda item: place(item[0])))


def place(key: GROUP) -> tuple[int, str, bool, str]:
    """Where a group stands in a table: by encoder, the encoder itself first."""
    encoder, name = key
    order = list(ENCODERS)
    return order.index(encoder) if encoder in order else len(order), encoder, name != encoder, name


def heading(key: GROUP, how: str) -> list[str]:
    """The first cells of a row: the encoder, and the model or how the encoder answers without training."""
    encoder, name = key
    return [ENCODERS.get(encoder, encoder) or "–", f"none: {how}" if name == encoder else f"`{name}`"]


def cell(found: Mapping[Path, Sequence[float]], path: Path, places: int = 1) -> str:
    """A mean over seeds with half of its interval; a dash where nothing was measured."""
    return spread(found[path], places) if path in found else "–"


def single(found: Mapping[Path, Sequence[float]], path: Path, places: int = 1) -> str:
    """A mean over seeds alone; a dash where nothing was measured."""
    return f"{mean(found[path]):.{places}f}" if path in found else "–"


def sts7() -> str:
    """Spearman of the seven tasks by the cosine, the average by the model's own answer, and dev."""
    rows = []
    for key, entries in groups().items():
        found = collected(entries)
        cells = [single(found, ("sts7", "cosine", "tasks", task)) for task in TASKS]
        average = [f"**{cell(found, AVERAGE, 2)}**", cell(found, ("sts7", "answer", "average"), 2)]
        dev = single(found, ("dev", "cosine", "average"), 2)
        if AVERAGE in found:
            rows.append([*heading(key, "raw cosine"), *cells, *average, dev, seeds(entries)])
    header = ["encoder", "model", *TASKS, "average", "average of its answer", "clean dev", "seeds"]
    return markdown(header, rows)


def relations() -> str:
    """What each relation reaches on its test sets, below what costs nothing."""
    columns: dict[str, tuple[Path, ...]] = {
        "SICK entailment": (("entailment", "SICK", "answer", "accuracy"), ("regression", "SICK", "accuracy")),
        "SNLI": (("entailment", "SNLI", "answer", "accuracy"), ("regression", "SNLI", "accuracy")),
        **{
            f"{name}, {shown}": tuple(("paraphrase", name, source, metric) for source in ("answer", "cosine"))
            for name in ("PAWS-Wiki", "MRPC")
            for metric, shown in (("accuracy", "accuracy"), ("f1", "F1"))
        },
        "SICK relatedness, Spearman": (
            ("relatedness", "answer", "spearman"),
            ("relatedness", "cosine", "spearman"),
        ),
    }
    rows = [["–", "the commonest label", *(commonest(name) for name in columns), "–"]]
    for key, entries in groups().items():
        found = collected(entries)
        ways = [list(paths if key[0] == key[1] else paths[:1]) for paths in columns.values()]
        cells = [next((cell(found, path) for path in paths if path in found), "–") for paths in ways]
        if set(cells) != {"–"}:
            how = "cosine with a threshold, logistic regression"
            rows.append([*heading(key, how), *cells, seeds(entries)])
    return markdown(["encoder", "model", *columns, "seeds"], rows)


def commonest(column: str) -> str:
    """What the commonest label reaches in a column of the table of relations; F1 with a yes to all rows."""
    facts: dict[str, Any] = {}
    for document in documents():
        facts |= document["tasks"]
    name, _, metric = column.removesuffix(" entailment").partition(", ")
    part = facts.get("entailment" if name in ("SICK", "SNLI") else "paraphrase", {}).get(name, {})
    free = part.get("all paraphrases" if metric == "F1" else "majority", {})
    value = free.get("f1" if metric == "F1" else "accuracy", {}).get("value")
    return "–" if value is None else f"{value:.1f}"


def general() -> str:
    """What an encoder could do before: each number, and its difference from the raw encoder."""
    rows = []
    for key, entries in groups().items():
        found = collected(entries)
        cells = [with_difference(found, entries, path) for path in GENERAL.values()]
        if set(cells) != {"–"}:
            rows.append([*heading(key, "raw encoder"), *cells, seeds(entries)])
    return markdown(["encoder", "model", *GENERAL, "seeds"], rows)


def with_difference(found: Mapping[Path, Sequence[float]], entries: Sequence[Entry], path: Path) -> str:
    """A number and, of a trained model, its difference from the raw encoder with the 95 % interval.

    The interval is over seeds if there are three or more, else the bootstrap's, over rows.
    """
    if path not in found:
        return "–"
    shown = f"{mean(found[path]):.1f}"
    beside = (*path[:-1], "against_raw", path[-1])
    if beside not in found:
        return shown
    difference, half = mean(found[beside]), half_width(found[beside])
    if half is not None:
        ends = [difference - half, difference + half]
    else:
        told: Any = entries[0]["parts"]
        for name in beside:
            told = told[name]
        ends = told["interval"]
    return f"{shown} ({difference:+.1f}, {ends[0]:+.1f} to {ends[1]:+.1f})"


def challenge() -> str:
    """The share of the challenge set's items in order, and the accuracy of the labels of their pairs."""
    rows = []
    for key, entries in groups().items():
        found = collected(entries)
        cells = [cell(found, ("challenge", "all", measure)) for measure in QUESTIONS]
        if set(cells) != {"–"}:
            rows.append([*heading(key, "raw cosine"), *cells, seeds(entries)])
    return markdown(["encoder", "model", *QUESTIONS.values(), "seeds"], rows)


def phenomena(name: str) -> str:
    """The same of one model by phenomenon, beside the order that its raw encoder gives."""
    key, mine, raw = beside_raw(name)
    counts: dict[str, int] = {}
    for document in documents():
        counts |= document["tasks"].get("challenge", {}).get("items", {})
    asked = [measure for measure in QUESTIONS if ("challenge", "all", measure) in mine]
    rows = []
    for place, count in [*counts.items(), ("all", sum(counts.values()))]:
        path = ("challenge", "all") if place == "all" else ("challenge", "phenomena", place)
        cells = [cell(mine, (*path, measure)) for measure in asked]
        rows.append([place, str(count), cell(raw, (*path, "cosine")), *cells])
    header = ["phenomenon", "items", f"raw cosine of {ENCODERS.get(key[0], key[0])}"]
    return markdown([*header, *(QUESTIONS[measure] for measure in asked)], rows)


def ensembles() -> str:
    """The mean of the cosines of several encoders, on the seven tasks and on dev."""
    rows = []
    for one in (one for document in documents() for one in document["ensembles"]):
        values = [f"{one[part]['average']['value']:.2f}" for part in ("sts7", "dev")]
        how = "standardised on dev" if one["standardised"] else "as they are"
        rows.append([" + ".join(ENCODERS.get(name, name) for name in one["models"]), how, *values])
    return markdown(["mean of the cosines of", "cosines", "seven tasks", "clean dev"], rows)


def card(name: str) -> str:
    """The numbers of one model beside those of its raw encoder, for its card: the mean over its seeds.

    Phenomena of the challenge set have a table of their own.
    """
    key, mine, raw = beside_raw(name)
    rows = [
        [" ".join(path), cell(raw, path, 2), cell(mine, path, 2)]
        for path in mine
        if not {"against_raw", "phenomena"} & set(path) and path[:3] != ("sts7", "answer", "tasks")
    ]
    return markdown(["measure", ENCODERS.get(key[0], key[0]), f"`{name}`"], rows)


def beside_raw(name: str) -> tuple[GROUP, dict[Path, list[float]], dict[Path, list[float]]]:
    """The group of a model, its numbers, and those of its raw encoder."""
    known = groups()
    [key] = [key for key in known if key[1] == name]
    return key, collected(known[key]), collected(known.get((key[0], key[0]), []))


def seeds(entries: Sequence[Entry]) -> str:
    """How many seeds a row stands for; a dash for an encoder without training."""
    return "–" if entries[0]["untrained"] else str(len(entries))
