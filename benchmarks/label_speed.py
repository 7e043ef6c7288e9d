"""Tokens a second of training a label model on film reviews: batches of similar length against random ones.

    LIKEWISE_DATA=corpora LIKEWISE_MODELS=models python benchmarks/label_speed.py \
        --output benchmarks/results/label-speed.json

Encoder, batch size and cut of the shipped recipes labels-cardinality and labels-cardinality-lstm, IMDB alone,
on a CPU. All orders train on the same texts: batches of the length order, spread evenly over the lengths, and
the same rows shuffled. Orders take turns step by step, and ratios are within a repeat, because seconds on a
shared machine mean nothing across runs. Tokenization is not timed.

    length             as shipped: rows of similar length share a batch
    random             rows shuffled; a batch is still cut into chunks of similar length, as on every CPU
    random, one piece  rows shuffled; a batch is padded to its longest text, as on a GPU

Padding is the share of positions of an epoch that hold no token.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from likewise.data import load_corpus, write_json_aside
from likewise.encoders.features import TextFeatures
from likewise.encoders.words import distinct_words
from likewise.kinds.base import Carried
from likewise.kinds.building import build_encoder
from likewise.kinds.context import RunContext
from likewise.kinds.labels import LabelCollate, LabelItem, LabelsRunner, LabelSteps, rows_by_task
from likewise.kinds.reading import RatedRows, rated_data
from likewise.methods.label_embedding import LabelModel
from likewise.predict import raw_model
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of
from likewise.records import Record
from likewise.training.optimiser import make_optimiser
from likewise.training.settings import FitSettings
from likewise.versions import versions

RECIPES = {"lstm": "labels-cardinality-lstm", "minilm": "labels-cardinality"}
TASK = "imdb"
# Order of the rows, and whether a batch is cut into chunks of similar length.
SIDES = {"length": ("length", True), "random": ("random", True), "random, one piece": ("random", False)}
Items = list[LabelItem]


class Bench:
    """One shipped recipe's model over reviews, and its steps in every order."""

    def __init__(self, recipe_name: str, records: Sequence[Record], batch: int | None) -> None:
        overrides: dict[str, Any] = {"stage.0.task": [TASK]}
        if batch is not None:
            overrides["stage.0.batch_size"] = batch
        recipe = read_recipe(recipe_name, overrides=overrides)
        [job] = jobs_of(recipe, RunContext(device="cpu"))
        [relation] = job.relations.values()
        said = [way for ways in relation.label_texts for way in ways]
        words = distinct_words([*(record.texts[0] for record in records), *said])
        encoder = build_encoder(recipe.encoder, device="cpu", seed=recipe.seed, words=words)
        data = rated_data(job, RatedRows(list(records), None, [0] * len(records)), (), [])
        begun = Carried("", lambda: encoder, lambda: raw_model(encoder))
        self.model: LabelModel = LabelsRunner().start(job, data, begun).model().train()
        self.settings: FitSettings = job.settings()
        self.optimiser = make_optimiser(self.model, self.settings)
        self.rows = rows_by_task(records, [relation], max_words=job.stage.max_words)
        self.features = TextFeatures(encoder)
        texts = self.rows[TASK].texts
        self.features.add(texts)
        self.lengths = [self.features.length(text) for text in texts]

    def epoch(self, order: str) -> list[Items]:
        """The steps of an epoch over all rows."""
        settings = FitSettings(batch_size=self.settings.batch_size, order=order, seed=1)
        return list(LabelSteps(self.rows, {TASK: self.lengths}, settings).of_epoch(0))

    def collate(self, *, chunked: bool) -> LabelCollate:
        """A step's rows as tensors."""
        return LabelCollate(self.model, self.rows, self.features, chunked=chunked)

    def padding(self) -> dict[str, float]:
        """Share of empty positions, per order and way of cutting; and if all were as the longest."""
        found = {}
        for order in ("length", "random"):
            for chunked in (True, False):
                steps = map(self.collate(chunked=chunked), self.epoch(order))
                counts = [_positions(step) for step in steps]
                share = 1 - sum(real for real, _ in counts) / sum(places for _, places in counts)
                found[f"{order}, {'chunks' if chunked else 'one piece'}"] = share
        found["all as the longest"] = 1 - sum(self.lengths) / (len(self.lengths) * max(self.lengths))
        return found

    def sample(self, count: int) -> dict[str, list[Items]]:
        """Per order the steps that are timed, on the same rows."""
        batches = sorted(self.epoch("length"), key=lambda step: max(self.lengths[row] for _, row, _ in step))
        whole = [step for step in batches if len(step) == self.settings.batch_size]
        places = [round((n + 0.5) * len(whole) / count - 0.5) for n in range(count)]
        chosen = [whole[place] for place in places]
        rows = [item for step in chosen for item in step]
        random.Random(1).shuffle(rows)
        shuffled = list(_cut(rows, self.settings.batch_size))
        # By length, but not in the order of length: steps are as mixed as in training.
        random.Random(2).shuffle(chosen)
        return {side: chosen if order == "length" else shuffled for side, (order, _) in SIDES.items()}

    def seconds(self, items: Items, collate: LabelCollate) -> float:
        """Train on one step: forward, backward, update."""
        started = time.perf_counter()
        self.model(**collate(items))["loss"].backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return time.perf_counter() - started

    def tokens(self, steps: Sequence[Items]) -> int:
        """Tokens of the texts of some steps, padding aside."""
        return sum(self.lengths[row] for step in steps for _, row, _ in step)


def _positions(step: dict[str, Any]) -> tuple[int, int]:
    masks = [chunk["attention_mask"] for chunk in step["chunks"]]
    return sum(int(mask.sum()) for mask in masks), sum(mask.numel() for mask in masks)


def _cut(rows: Sequence[LabelItem], size: int) -> Iterator[Items]:
    for start in range(0, len(rows), size):
        yield list(rows[start : start + size])


def measure(bench: Bench, steps: int, repeats: int) -> dict[str, Any]:
    """Padding of an epoch, tokens a second per order and repeat, and the ratios within repeats."""
    sample, sides, runs = bench.sample(steps), list(SIDES), []
    collates = {side: bench.collate(chunked=chunked) for side, (_, chunked) in SIDES.items()}
    for side in sides:  # the first step pays for its memory
        bench.seconds(sample[side][0], collates[side])
    for repeat in range(repeats):
        spent = dict.fromkeys(sides, 0.0)
        for turn in range(steps):
            first = (repeat + turn) % len(sides)
            for side in sides[first:] + sides[:first]:
                spent[side] += bench.seconds(sample[side][turn], collates[side])
        for side, seconds in spent.items():
            speed = bench.tokens(sample[side]) / seconds
            runs.append({"side": side, "repeat": repeat, "seconds": seconds, "tokens_per_second": speed})
            print(runs[-1], flush=True)
    speeds = {(run["side"], run["repeat"]): run["tokens_per_second"] for run in runs}
    ratios = {
        side: [speeds["length", repeat] / speeds[side, repeat] for repeat in range(repeats)]
        for side in SIDES
        if side != "length"
    }
    return {
        "batch": bench.settings.batch_size,
        "steps": steps,
        "mean_tokens": statistics.mean(bench.lengths),
        "longest": max(bench.lengths),
        "padding": bench.padding(),
        "runs": runs,
        "length_against": {
            side: {"each": each, "median": statistics.median(each), "least": min(each), "most": max(each)}
            for side, each in ratios.items()
        },
    }


def main() -> None:
    """Measure both recipes and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--texts", type=int, default=2000, help="about so many reviews, evenly spread")
    parser.add_argument("--encoders", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--steps", type=int, nargs="+", default=[40, 2], help="timed steps, per encoder")
    parser.add_argument("--batch", type=int, nargs="+", default=None, help="instead of the recipe's")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=None, help="write JSON here")
    options = parser.parse_args()
    # The corpus may be sorted by label: evenly spread, both are there.
    records = load_corpus("imdb", "fit", data_dir=options.data_dir)
    records = records[:: max(1, len(records) // options.texts)]
    records = [Record(record.texts, {TASK: record.values["sentiment"]}) for record in records]
    found = {}
    if options.output and options.output.is_file():  # encoders may be measured one at a time
        found = json.loads(options.output.read_text(encoding="utf8"))["encoders"]
    for place, name in enumerate(options.encoders):
        batch = options.batch[place % len(options.batch)] if options.batch else None
        load = os.getloadavg()[0]
        bench = Bench(RECIPES[name], records, batch)
        found[name] = measure(bench, options.steps[place % len(options.steps)], options.repeats)
        found[name] |= {"texts": len(records), "load": [load, os.getloadavg()[0]]}
        for side, ratio in found[name]["length_against"].items():
            spread = f"{ratio['least']:.2f} to {ratio['most']:.2f}"
            print(f"{name}: by length {ratio['median']:.2f}× the tokens/s of {side} ({spread})", flush=True)
        print({kind: round(share, 3) for kind, share in found[name]["padding"].items()}, flush=True)
        del bench
        gc.collect()
        if options.output:
            machine = {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
            write_json_aside(options.output, {"encoders": found, "machine": machine, "versions": versions()})


if __name__ == "__main__":
    main()
