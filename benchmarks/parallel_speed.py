"""How fast stage 1 of the multilingual method trains from cached vectors: pairs a second, the whole loss.

python benchmarks/parallel_speed.py --output benchmarks/results/parallel_speed.json

Vectors are drawn at random: speed does not hang on what they mean. Each turn trains every form once, so that
forms are compared under the same load; the median over turns is the number. Needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from likewise.kinds.vector_tasks import ParallelTask, ParallelVectors
from likewise.methods.multilingual import MeaningSplit, SplitLoss

WIDTH, LANGUAGES = 384, 12


def invented(pairs: int) -> ParallelVectors:
    """Random translations between random languages."""
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(2 * pairs, WIDTH)).astype(np.float32)
    rows = np.arange(pairs)
    languages = generator.integers(0, LANGUAGES, (2, pairs))
    return ParallelVectors(vectors, rows, rows + pairs, *languages, np.zeros(pairs, np.int64))


def pairs_per_second(data: ParallelVectors, form: str, precision: str, batch: int) -> float:
    """One epoch with Adam, every term of the loss."""
    torch.manual_seed(1)
    split = MeaningSplit(WIDTH, LANGUAGES)
    task = ParallelTask(split, SplitLoss(), data, form=form, batch_size=batch)  # type: ignore[arg-type]
    optimiser = torch.optim.Adam(split.parameters(), lr=1e-4, fused=True)
    started = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        for loss in task.losses(0):
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
    return task.pairs / (time.perf_counter() - started)


def gflops() -> float:
    """What the machine's matrix product gives, fp32, at the size that training uses."""
    x, y = torch.randn(1024, WIDTH), torch.randn(WIDTH, 2 * WIDTH)
    best = 0.0
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(20):
            x @ y
        best = max(best, 20 * 2 * 1024 * WIDTH * 2 * WIDTH / (time.perf_counter() - started) / 1e9)
    return best


def main() -> None:
    """Measure and print; write the numbers where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    data = invented(options.pairs)
    forms = [(form, precision) for form in ("paper", "fused") for precision in ("fp32", "bf16")]
    runs: dict[str, list[float]] = {f"{form} {precision}": [] for form, precision in forms}
    for turn in range(options.turns + 1):
        for form, precision in forms:
            speed = pairs_per_second(data, form, precision, options.batch)
            if turn:  # the first turn warms up
                runs[f"{form} {precision}"].append(speed)
    result = {
        "threads": torch.get_num_threads(),
        "processor": platform.processor() or platform.machine(),
        "gflops": gflops(),
        "pairs": options.pairs,
        "batch": options.batch,
        "runs": runs,
        "median": {name: statistics.median(speeds) for name, speeds in runs.items()},
    }
    for name, speeds in runs.items():
        spread = f"{min(speeds):,.0f} to {max(speeds):,.0f}"
        print(f"{name:<12} {statistics.median(speeds):>9,.0f} pairs/s   ({spread})")
    print(f"matrix product: {result['gflops']:.0f} GFLOP/s on {result['threads']} threads")
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
