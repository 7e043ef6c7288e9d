"""The order in which every kind of stage takes its rows, as one digest per setting."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from likewise.data.links import read_links
from likewise.encoders.sentence import load_encoder
from likewise.kinds.inject_steps import PhraseRows, phrase_batches
from likewise.kinds.joint import joint_batches
from likewise.kinds.labels import label_batches
from likewise.kinds.pair_steps import pair_batches
from likewise.kinds.vector_tasks import ParallelTask, ParallelVectors, RatedTask, RatedVectors
from likewise.methods.joint import load_joint
from likewise.methods.label_embedding import LabelModel
from likewise.methods.multilingual import MeaningSplit, SplitLoss
from likewise.methods.pairs import Objective, PairModel
from likewise.methods.paraphrase import InjectionModel
from likewise.phrases.joined import Joiner
from likewise.records import Record, Relation
from likewise.training.sampler import Share, make_loader
from likewise.training.settings import FitSettings

EPOCHS = range(3)
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"batch_size": 8},
    "random": {"batch_size": 8, "order": "random", "seed": 5},
    "budget": {"batch_size": 8, "token_budget": 64},
    "large": {"batch_size": 7, "accumulation": 2},
}
MULTI_TASK = {"batch_size": 8, "schedule": "multi-task", "shuffle_relations": True}


def _digest(items: Any) -> str:
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:24]


BATCHES = {"PairModel": pair_batches, "LabelModel": label_batches, "InjectionModel": phrase_batches}


def _steps(model: Any, rows: Any, settings: dict[str, Any], *, rank: int, world: int, **more: Any) -> str:
    share = Share(rank, world, chunked=True)
    if type(model).__name__ == "JointModel":
        batches = joint_batches(model, rows, FitSettings(**settings), **more)
    else:
        batches = BATCHES[type(model).__name__](model, rows, FitSettings(**settings), share, **more)
    _, sampler = make_loader(batches, share)
    found = []
    for epoch in EPOCHS:
        sampler.set_epoch(epoch)
        found.append([[list(_plain(item)) for item in step] for step in sampler])
    return _digest([len(sampler), found])


def _plain(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """An item as it was when the references were written: without the mark of an idle process."""
    return item if isinstance(item[1], tuple) else item[:-1]


def digests() -> dict[str, str]:
    """Kind, setting, process → digest; the folder of `worlds.build` is the current one."""
    encoder = load_encoder("encoder", device="cpu")
    rng = np.random.default_rng(3)
    words = "the old man plays guitar in a park and the woman sings near the river".split()
    texts = [" ".join(rng.choice(words, size=int(rng.integers(2, 12)))) for _ in range(90)]
    similarity, topic = Relation.graded("similarity", 0, 5), Relation.graded("topic", -2, 2)
    pairs = [
        Record(
            (texts[i], texts[(7 * i + 1) % 90]),
            {"similarity": i % 6, "topic": None if i % 3 else i % 2},
            f"p:{i}",
        )
        for i in range(61)
    ]
    mood, place = Relation.classes("mood", ["good", "bad"]), Relation.classes("place", ["in", "out"])
    labelled = [
        Record(
            (texts[i],),
            {"mood": ("good", "bad")[i % 2], "place": None if i % 4 else ("in", "out")[i % 8 // 4]},
            f"t:{i}",
        )
        for i in range(90)
    ]
    weights = [1.0 + (i % 3) for i in range(90)]
    objectives = [Objective(similarity, "scalar", "mse"), Objective(topic, "scalar", "mse")]
    pair_model = PairModel(encoder, objectives)
    label_model = LabelModel(encoder, [mood, place], matcher="dot")
    joint_model = load_joint("encoder", similarity, device="cpu")
    phrases = InjectionModel(encoder)
    plain_phrases = InjectionModel(encoder, learns="binary-phrases")
    linked = PhraseRows(Joiner(encoder.tokenizer).pairs(list(read_links("links.jsonl"))), 1)
    found = {}
    for world in (1, 2):
        for rank in range(world):
            where = {"rank": rank, "world": world}
            here = f"{rank} of {world}"
            for name, settings in VARIANTS.items():
                found[f"pairs {name} {here}"] = _steps(pair_model, pairs, settings, **where)
                found[f"labels {name} {here}"] = _steps(label_model, labelled, settings, **where)
                found[f"joint {name} {here}"] = _steps(joint_model, pairs, settings, **where)
                found[f"inject {name} {here}"] = _steps(phrases, linked, settings, **where)
            weighted = VARIANTS["plain"]
            found[f"pairs weights {here}"] = _steps(
                pair_model, pairs, weighted, weights=weights[:61], **where
            )
            found[f"labels weights {here}"] = _steps(
                label_model, labelled, weighted, weights=weights, **where
            )
            found[f"joint weights {here}"] = _steps(
                joint_model, pairs, weighted, weights=weights[:61], **where
            )
            found[f"pairs multi-task {here}"] = _steps(pair_model, pairs, MULTI_TASK, **where)
            found[f"inject binary {here}"] = _steps(plain_phrases, linked, weighted, **where)
    return found | _frozen_digests(rng)


def _frozen_digests(rng: np.random.Generator) -> dict[str, str]:
    """Draws of the stages over cached vectors."""
    count, width = 90, 4
    numbers = [np.sort(rng.integers(0, limit, count)) for limit in (40, 40, 3, 3, 3)]
    parallel = ParallelVectors(rng.normal(size=(40, width)).astype(np.float32), *numbers)
    found = {}
    for form in ("paper", "fused"):
        for balance in (1.0, 0.5):
            task = ParallelTask(
                MeaningSplit(width, 3),
                SplitLoss(),
                parallel,
                form=form,
                batch_size=16,
                balance=balance,
                seed=7,
            )
            draws = [task._draw(task._train, [7, epoch], balance=balance) for epoch in EPOCHS]
            found[f"parallel {form} {balance}"] = _digest(
                [[getattr(d, n).tolist() for n in ("rows", "others", "same_a", "same_b")] for d in draws]
            )
    for name, weight in (("plain", None), ("weights", rng.random(count))):
        rated = RatedVectors(
            parallel.vectors,
            parallel.a,
            parallel.b,
            np.zeros(count, np.float32),
            np.zeros(count, np.int64),
            weight,
        )
        task = RatedTask(None, None, None, rated, evaluate=dict, at_start=dict, seed=7)  # type: ignore[arg-type]
        orders = [task._order(np.random.default_rng([7, epoch])).tolist() for epoch in EPOCHS]
        found[f"refine {name}"] = _digest(orders)
    return found
