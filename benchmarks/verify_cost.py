"""What it costs to verify a model folder when it is loaded: checksums, names, finite numbers, one word.

    python benchmarks/verify_cost.py raw mpnet --output benchmarks/results/verify-cost.json

Every model is saved by Likewise, once as an encoder and once as a model whose labels have an encoder of their
own, which holds the weights twice. `plain` is what sentence-transformers needs for the same encoders; `full`
and `quick` are `likewise.load` under LIKEWISE_VERIFY; the parts are measured one by one. Files are in the
page cache. Each figure is the median of wall-clock seconds and of the process's own processor seconds: on a
machine that others use too the first says how busy it was (`load`), the second what the work is.

verification     checksums, names and finite numbers, per gigabyte
beyond plain     all that `full` needs more than `plain`, per gigabyte: verification, size, one word, reading
                 model.json, making the answerer; fixed costs weigh more the smaller a model is
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import likewise
from likewise.encoders.manifest import VARIABLE, verify_files
from likewise.encoders.opening import open_folder
from likewise.encoders.sentence import check_parts, check_vector, load_encoder
from likewise.encoders.weights import check_size
from likewise.methods.label_embedding import LabelModel
from likewise.predict.pairs import raw_model
from likewise.records import Relation
from likewise.store import save_model

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}


def main() -> None:
    """Save, load, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    found, before = [], os.getloadavg()[:1]
    with tempfile.TemporaryDirectory() as box:
        for name in options.models:
            for folder in saved(name, Path(box)):
                found.append({"model": name, "kind": folder.name, **cost(folder, options.repeats)})
    about = {"cores": os.cpu_count(), "machine": platform.machine(), "load": [*before, *os.getloadavg()[:1]]}
    document = {**about, "repeats": options.repeats, "models": found}
    text = json.dumps(document, indent=2) + "\n"
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf8")


def saved(name: str, box: Path) -> list[Path]:
    """The folders of one model: as an encoder, and with a second encoder for labels."""
    encoder, other = (load_encoder(name, device="cpu") for _ in range(2))
    place = box / name.rpartition("/")[2]
    task = Relation.classes("mood", ["glad", "sad"])
    return [
        save_model(raw_model(encoder), place / "encoder", about={}),
        save_model(LabelModel(encoder, [task], label_encoder=other), place / "two encoders", about={}),
    ]


def cost(folder: Path, repeats: int) -> dict[str, Any]:
    """Seconds of a load with and without verification, and of its parts."""
    from sentence_transformers import SentenceTransformer

    places = [folder, *(folder / "likewise").glob("label_encoder")]
    size = sum(path.stat().st_size for path in folder.rglob("*.safetensors")) / 1e9
    opened = [(place, open_folder(place), load_encoder(place, device="cpu")) for place in places]
    seconds = {
        "plain": timed(lambda: [SentenceTransformer(str(place), device="cpu") for place in places], repeats),
        "full": timed(lambda: likewise.load(folder, device="cpu"), repeats),
        "checksums": timed(lambda: verify_files(folder), repeats),
        "names and finite numbers": timed(lambda: [check_parts(e, p) for _, p, e in opened], repeats),
        "size": timed(lambda: [check_size(p[0].folder, p[0].weights) for _, p, _ in opened], repeats),
        "one word": timed(lambda: [check_vector(encoder, place) for place, _, encoder in opened], repeats),
    }
    os.environ[VARIABLE] = "quick"
    seconds["quick"] = timed(lambda: likewise.load(folder, device="cpu"), repeats)
    del os.environ[VARIABLE]
    parts = [seconds[name] for name in ("checksums", "names and finite numbers")]
    per_gigabyte = {clock: sum(part[clock] for part in parts) / size for clock in CLOCKS}
    beyond = {clock: (seconds["full"][clock] - seconds["plain"][clock]) / size for clock in CLOCKS}
    per = {"verification": per_gigabyte, "beyond plain": beyond}
    return {"gigabytes": size, "seconds": seconds, "seconds per gigabyte": per}


def timed(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """The median of several runs by each clock, after one that is not counted."""
    work()
    runs: dict[str, list[float]] = {name: [] for name in CLOCKS}
    for _ in range(repeats):
        starts = {name: clock() for name, clock in CLOCKS.items()}
        work()
        for name, clock in CLOCKS.items():
            runs[name].append(clock() - starts[name])
    return {name: statistics.median(found) for name, found in runs.items()}


if __name__ == "__main__":
    main()
