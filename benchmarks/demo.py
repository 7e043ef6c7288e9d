"""What the training of `likewise demo` gains over the raw cosine on its test file, with several seeds.

    python benchmarks/demo.py --output benchmarks/results/demo.json

Nothing was chosen on the test file. The recipe is the one that `train FILE` runs, with fewer epochs, so that
it takes about a minute. `--models` measures models that were trained before, one per seed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from importlib import resources
from pathlib import Path

from likewise.api import train
from likewise.cli.console import quiet_libraries
from likewise.cli.demo import EPOCHS, RELATIONS, Tested
from likewise.disk import write_json_aside
from likewise.evaluation import compare_results
from likewise.predict import Answerer, load
from likewise.versions import versions


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--models", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/demo.json"))
    options = parser.parse_args()
    quiet_libraries()
    reviews = Path(str(resources.files("likewise").joinpath("samples"))) / "reviews"
    raw = load("raw")
    runs = []
    for number, seed in enumerate(options.seeds):
        model = load(str(options.models[number])) if options.models else trained(reviews, seed)
        runs.append({"seed": seed, **measured(reviews, raw, model)})
        print(runs[-1], flush=True)
    names = [text.partition(":")[0] for text in RELATIONS]
    mean = {
        name: {key: statistics.mean(run[name][key] for run in runs) for key in ("raw", "trained", "gain")}
        for name in names
    }
    write_json_aside(options.output, {"versions": versions(), "epochs": EPOCHS, "mean": mean, "runs": runs})


def trained(reviews: Path, seed: int) -> Answerer:
    """The demo's training with another seed."""
    overrides = {
        "stage.0.dev": [{"source": str(reviews / "dev.csv")}],
        "stage.0.epochs": EPOCHS,
        "seed": seed,
    }
    with tempfile.TemporaryDirectory() as folder:
        return train(reviews / "train.csv", Path(folder) / "m", relations=RELATIONS, overrides=overrides)


def measured(reviews: Path, raw: Answerer, model: Answerer) -> dict[str, dict[str, float | list[float]]]:
    """Spearman ×100 of both on the dev and test files, and the gain on the test file with its interval."""
    dev, test = (Tested.of(reviews / f"{split}.csv", raw, model) for split in ("dev", "test"))
    gains = compare_results(test.after, test.before)
    return {
        old.name: {
            "raw": old.value,
            "trained": new.value,
            "gain": new.value - old.value,
            "interval": [100 * gains[old.name].interval.low, 100 * gains[old.name].interval.high],
            "rows worth": gains[old.name].groups,
            "dev raw": dev_old.value,
            "dev trained": dev_new.value,
        }
        for old, new, dev_old, dev_new in zip(
            test.before.tasks, test.after.tasks, dev.before.tasks, dev.after.tasks, strict=True
        )
    }


if __name__ == "__main__":
    main()
