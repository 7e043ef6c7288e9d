"""What it costs that all that is kept survives a power cut: a training on the sample, synced and not.

    python benchmarks/sync_cost.py --turns 5 --output benchmarks/results/sync-cost.json

One process trains in turns of three: synced, with fsync that does nothing, and synced again.

    ratio      wall seconds synced / not synced
    control    wall seconds synced again / synced: what the ratio would be if syncing cost nothing. Where it
               is as far from 1 as the ratio, the machine was busy and the ratio says nothing
    share      wall seconds in fsync / CPU seconds of the training, of every synced one. Of the wall seconds
               of a busy machine fsync would look too cheap: they grow with what else it does
    hashing    CPU seconds of hashing what was written / CPU seconds of the training
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from likewise.api import train
from likewise.cli.console import quiet_libraries
from likewise.disk import write_json_aside
from likewise.training import checkpoints
from likewise.versions import versions

RELATIONS = ("similarity:0..5", "topic:0..4")


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/sync-cost.json"))
    options = parser.parse_args()
    quiet_libraries()
    training(1, skip=False)  # whatever happens once, happens before
    arms = {"synced": False, "not_synced": True, "synced_again": False}
    turns = []
    for turn in range(options.turns):
        order = list(arms) if turn % 2 == 0 else list(reversed(arms))
        turns.append({name: training(options.epochs, skip=arms[name]) for name in order})
    synced = [turn[name] for turn in turns for name in ("synced", "synced_again")]
    document = {
        "epochs": options.epochs,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": versions(),
        "turns": turns,
        "ratio": spread([turn["synced"]["seconds"] / turn["not_synced"]["seconds"] for turn in turns]),
        "control": spread([turn["synced_again"]["seconds"] / turn["synced"]["seconds"] for turn in turns]),
        "share": spread([one["fsync"] / one["cpu"] for one in synced]),
        "hashing": spread([one["hashing"] / one["cpu"] for one in synced]),
    }
    write_json_aside(options.output, document)
    print({name: document[name] for name in ("ratio", "control", "share", "hashing")})


def training(epochs: int, *, skip: bool) -> dict[str, float]:
    """Seconds of a training, and of what is spent on lasting in it."""
    samples = Path(str(resources.files("likewise").joinpath("samples")))
    overrides = {"stage.0.dev": [{"source": str(samples / "dev.csv")}], "stage.0.epochs": epochs}
    with tempfile.TemporaryDirectory() as folder, timed(skip) as spent:
        begun, cpu = time.monotonic(), time.process_time()
        train(samples / "train.csv", Path(folder) / "model", relations=RELATIONS, overrides=overrides)
        took = {"seconds": time.monotonic() - begun, "cpu": time.process_time() - cpu}
        return {**took, **spent, "load": os.getloadavg()[0]}


@contextmanager
def timed(skip: bool) -> Iterator[dict[str, float]]:
    """Count fsyncs and the seconds of fsync and hashing in the block; with `skip` no fsync is done."""
    spent = {"fsyncs": 0.0, "fsync": 0.0, "hashing": 0.0}
    fsync, hashing = os.fsync, checkpoints.file_sha256

    def counted(key: str, real: Callable[[Any], Any], clock: Callable[[], float]) -> Callable[[Any], Any]:
        def call(given: Any) -> Any:
            begun = clock()
            found = real(given)
            spent[key] += clock() - begun
            return found

        return call

    syncing = counted("fsync", (lambda handle: None) if skip else fsync, time.monotonic)

    def sync(handle: int) -> None:
        spent["fsyncs"] += 1
        syncing(handle)

    os.fsync, checkpoints.file_sha256 = sync, counted("hashing", hashing, time.process_time)
    try:
        yield spent
    finally:
        os.fsync, checkpoints.file_sha256 = fsync, hashing


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


if __name__ == "__main__":
    main()
