"""Tiny data and a recipe per kind of stage, the same everywhere: what frozen references are made of.

Stages leave their start out of what may be kept: on data this small it would often win, and nothing be seen.
"""

from __future__ import annotations

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

ACTORS = ["the old man", "a woman", "the child", "one cat", "a new band"]
DEEDS = [
    ("plays guitar", "is playing a guitar"),
    ("cooks soup", "is cooking the soup"),
    ("runs", "is fast"),
    ("reads a book", "is reading"),
    ("sleeps", "is not fast"),
]
PLACES = ["in the park", "near the river", "on the street", "in a house", "in the kitchen"]
RELATIONS: dict[str, Any] = {
    "similarity": {"lo": 0, "hi": 5},
    "topic": {"lo": -2, "hi": 2},
    "entailment": {"kind": "classes", "labels": ["contradiction", "neutral", "entailment"]},
}


def build(folder: Path, encoder: Path) -> None:
    """Lay the data and the encoder into a folder; recipes name them relative to it."""
    shutil.copytree(encoder, folder / "encoder")
    rng = random.Random(4)
    texts = [f"{actor} {deed[0]} {place}" for actor in ACTORS for deed in DEEDS for place in PLACES]
    _table(
        folder / "pairs.csv",
        ["text_a", "text_b", "similarity", "topic", "entailment"],
        _pairs(rng, texts, 60),
    )
    _table(
        folder / "more.csv", ["text_a", "text_b", "similarity", "topic", "entailment"], _pairs(rng, texts, 30)
    )
    _table(
        folder / "dev.csv", ["text_a", "text_b", "similarity", "topic", "entailment"], _pairs(rng, texts, 24)
    )
    _table(
        folder / "test.csv", ["text_a", "text_b", "similarity"], [row[:3] for row in _pairs(rng, texts, 12)]
    )
    moods = [(text, rng.choice(["fast", "slow"])) for text in texts[::2]]
    _table(folder / "moods.csv", ["text", "mood"], moods)
    places = [
        (text, "outside" if text.endswith(("park", "river", "street")) else "inside") for text in texts[1::2]
    ]
    _table(folder / "places.csv", ["text", "place"], places)
    deeds = [
        (f"{actor} {a} {place}", f"{actor} {b} {place}")
        for actor in ACTORS
        for a, b in DEEDS
        for place in PLACES
    ]
    _table(folder / "paraphrases.csv", ["text_a", "text_b"], deeds)
    _links(folder / "links.jsonl")
    for language in ("de", "fr"):
        lines = [f"{text}\t{text.replace('the', language)}" for text in texts]
        (folder / f"en-{language}.tsv").write_text(
            "\n".join([f"en\t{language}", *lines]) + "\n", encoding="utf8"
        )


def _pairs(rng: random.Random, texts: list[str], count: int) -> list[tuple[Any, ...]]:
    rows = []
    for number in range(count):
        a, b = rng.choice(texts), rng.choice(texts)
        shared = len(set(a.split()) & set(b.split())) / len(set(a.split()))
        label = ("contradiction", "neutral", "entailment")[min(2, int(3 * shared))]
        rows.append((a, b, round(5 * shared, 2), "" if number % 4 == 0 else round(4 * shared - 2, 2), label))
    return rows


def _table(file: Path, columns: list[str], rows: Any) -> None:
    with file.open("w", newline="", encoding="utf8") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        writer.writerows(rows)


def _links(file: Path) -> None:
    """Paraphrases whose links are known, as `likewise explain --output` writes them."""
    from likewise.data.links import Link, LinkedPair, split_at_blanks, write_links

    pairs = []
    for actor in ACTORS:
        for first, second in DEEDS:
            for place in PLACES:
                n, d, e, p = (len(part.split()) for part in (actor, first, second, place))
                a, b = f"{actor} {first} {place}", f"{actor} {second} {place}"
                spans = ((0, n, 0, n), (n, n + d, n, n + e), (n + d, n + d + p, n + e, n + e + p))
                links = tuple(Link((s, t), (u, v)) for s, t, u, v in spans)
                pairs.append(LinkedPair(a, b, split_at_blanks(a), split_at_blanks(b), links))
    write_links(file, pairs)


def _objective(relation: str, head: str, loss: str, **more: Any) -> dict[str, Any]:
    return {"relation": relation, "head": head, "loss": loss, "pairing": ["prod", "absdiff"], **more}


def recipes() -> dict[str, dict[str, Any]]:
    """A recipe per kind of stage, and the ways kinds follow each other."""
    pairs = {
        "name": "several",
        "data": [{"source": "pairs.csv", "weight": 2.0}, {"source": "more.csv"}],
        "dev": [{"source": "dev.csv"}],
        "filter_against": ["test.csv"],
        "objective": [
            _objective("similarity", "distribution", "kl_grid", scale_features=True),
            _objective("topic", "scalar", "mse", weight=0.5),
            _objective("entailment", "classes", "cross_entropy"),
        ],
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "save_every": 5,
        "keep_start": False,
    }
    cosine = {
        "name": "cosine",
        "data": [{"source": "pairs.csv"}],
        "objective": [{"relation": "similarity", "loss": "pearson"}],
        "epochs": 1,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "anchor": 3.0,
        "save_every": 3,
        "keep_start": False,
    }
    labels = {
        "kind": "labels",
        "name": "tasks",
        "data": [
            {"source": "moods.csv", "columns": {"mood": "mood"}},
            {"source": "places.csv", "columns": {"place": "place"}},
        ],
        "matcher": "dot",
        "filter_against": ["places.csv"],
        "allow_leak": True,
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "save_every": 5,
        "keep_start": False,
    }
    tasks = {
        "mood": {"kind": "classes", "labels": ["fast", "slow"]},
        "place": {
            "kind": "classes",
            "labels": ["inside", "outside"],
            "texts": {"inside": ["a house", "the kitchen"], "outside": ["the street"]},
        },
    }
    joint = {
        "kind": "joint",
        "name": "fine",
        "data": [{"source": "pairs.csv"}],
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "save_every": 4,
        "keep_start": False,
        "sample": 40,
    }
    inject = {
        "kind": "inject",
        "name": "phrases",
        "data": [{"source": "links.jsonl"}],
        "filter_against": ["test.csv"],
        "dev_share": 0.2,
        "test_share": 0.1,
        "epochs": 2,
        "batch_size": 20,
        "learning_rate": 1e-3,
        "save_every": 4,
        "keep_start": False,
    }
    parallel = {
        "kind": "parallel",
        "name": "split",
        "parallel": [
            {"source": "en-de.tsv", "languages": ["en", "de"]},
            {"source": "en-fr.tsv", "languages": ["en", "fr"], "limit": 60},
        ],
        "dev": [{"source": "dev.csv"}],
        "epochs": 3,
        "batch_size": 32,
        "keep_start": False,
    }
    refine = {
        "kind": "refine",
        "name": "ratings",
        "data": [{"source": "pairs.csv", "weight": 2.0}, {"source": "more.csv"}],
        "filter_against": ["test.csv"],
        "parallel": [{"source": "en-de.tsv", "languages": ["en", "de"]}],
        "epochs": 3,
        "batch_size": 16,
        "keep_start": False,
    }

    def made(name: str, relations: dict[str, Any], *stages: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "encoder": "encoder",
            "relation": relations,
            "stage": [json.loads(json.dumps(s)) for s in stages],
        }

    similarity = {"similarity": RELATIONS["similarity"]}
    described = {**RELATIONS["similarity"], "description": "do the man and the woman play?"}
    reading = {**cosine, "anchor": 0.0, "objective": [_objective("similarity", "described", "mse")]}
    solved = {
        **cosine,
        "optimiser": "exact",
        "anchor": 0.0,
        "objective": [_objective("similarity", "scalar", "mse")],
    }
    return {
        "pairs": made("pairs", RELATIONS, pairs),
        "pairs-multi-task": made(
            "pairs", RELATIONS, {**pairs, "schedule": "multi-task", "shuffle_relations": True, "fold": [2, 3]}
        ),
        "pairs-twice": made("pairs", RELATIONS, pairs, cosine),
        "pairs-described": made("described", {"similarity": described}, reading),
        "pairs-exact": made("exact", similarity, solved),
        "labels": made("labels", tasks, labels),
        "labels-one-hot": made(
            "labels", tasks, {**labels, "matcher": "one-hot", "task": ["place"], "data": labels["data"][1:]}
        ),
        "joint": made("joint", similarity, joint),
        "joint-labels": made("joint", {"entailment": RELATIONS["entailment"]}, {**joint, "select": True}),
        "joint-texts": made(
            "joint", {"mood": tasks["mood"]}, {**joint, "data": [{"source": "moods.csv"}], "dev_share": 0}
        ),
        "inject": {key: value for key, value in made("inject", {}, inject).items() if key != "relation"},
        "inject-towers": {
            key: value
            for key, value in made("inject", {}, {**inject, "two_tower": True, "features": "cosine"}).items()
            if key != "relation"
        },
        "parallel": made("parallel", similarity, parallel),
        "refine": made("refine", similarity, refine),
        "parallel-refine": made("multilingual", similarity, parallel, refine),
        "parallel-refine-pairs": made("multilingual", similarity, parallel, refine, cosine),
    }
