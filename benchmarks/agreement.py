"""Are the statements about annotators true? Krippendorff's α on simulated ratings whose truth is known.

    python benchmarks/agreement.py --output benchmarks/results/agreement.json

Every rater sees an item's value, drawn from a normal distribution, with normal noise of the same size, and
answers from 0 to 5 (interval) or yes and no (nominal). So all raters are exchangeable. `blamed` is the share
of runs in which somebody is named nevertheless, and `higher` the share in which α without somebody is .05
higher or more (what was reported before the difference was tested). `found` is the share in which a rater is
named who answers as if without having read. `coverage` is the share of the 95 % intervals that hold the true
α, which is the mean of six samples of 4,000 items.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.data import write_json_aside
from likewise.evaluation import agreement
from likewise.evaluation.agreement import Agreement, AlphaMetric, krippendorff_alpha, measure_agreement
from likewise.versions import commit, versions

RUNS, TRUTH_ITEMS = 300, 4000
METRICS: tuple[AlphaMetric, ...] = ("interval", "nominal")
NOISES = (0.3, 0.6, 1.0)
Table = NDArray[np.float64]


def rated(rng: np.random.Generator, metric: AlphaMetric, raters: int, items: int, noise: float) -> Table:
    """Ratings of exchangeable raters, a row for each."""
    said = rng.normal(size=items) + noise * rng.normal(size=(raters, items))
    return np.clip(np.round(2.5 + 1.4 * said), 0, 5) if metric == "interval" else (said > 1).astype(float)


def measured(table: Table, metric: AlphaMetric, seed: int) -> Agreement:
    """What `data import` finds in a table, in which NaN is missing."""
    told = [(i, f"r{a}", v) for a, row in enumerate(table.tolist()) for i, v in enumerate(row) if v == v]
    return measure_agreement(told, metric=metric, seed=seed)


def blames(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often somebody is named, wrongly and rightly, with all ratings and with a third of them missing."""
    for metric, raters, items, noise, missing in product(METRICS, (3, 5, 10), (30, 100), NOISES, (0.0, 0.33)):
        blamed = higher = found = 0
        for seed in range(RUNS):
            table = rated(rng, metric, raters, items, noise)
            gaps = rng.random(table.shape) < missing
            one = measured(np.where(gaps, np.nan, table), metric, seed)
            blamed += one.outlier is not None
            if one.value is not None and one.without:
                higher += max(value for _, value in one.without) >= one.value + 0.05
            if seed % 3 == 0:
                table[0] = rng.permutation(table[0])
                found += measured(np.where(gaps, np.nan, table), metric, seed).outlier == "r0"
        setting = {"metric": metric, "raters": raters, "items": items, "noise": noise, "missing": missing}
        shares = {"blamed": blamed / RUNS, "higher": higher / RUNS, "found": found / len(range(0, RUNS, 3))}
        yield {**setting, **shares}


def coverages(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often the interval holds the true α."""
    for metric, raters, noise in product(METRICS, (2, 3), (0.4, 1.0)):
        big = [rated(rng, metric, raters, TRUTH_ITEMS, noise) for _ in range(6)]
        truth = float(np.mean([krippendorff_alpha(table.tolist(), metric=metric) for table in big]))
        for items in (30, 100):
            held = told = 0
            for seed in range(RUNS):
                one = measured(rated(rng, metric, raters, items, noise), metric, seed)
                if one.low is not None and one.high is not None:
                    told += 1
                    held += one.low <= truth <= one.high
            setting = {"metric": metric, "raters": raters, "items": items, "noise": noise, "alpha": truth}
            yield {**setting, "intervals": told, "coverage": held / told}


def spread(rows: list[dict[str, Any]], name: str, items: int) -> dict[str, float]:
    """Least and most of the settings with so many items."""
    values = [row[name] for row in rows if row["items"] == items]
    return {"least": min(values), "most": max(values)}


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=200, help="bootstrap samples of an interval or test")
    options = parser.parse_args()
    agreement.SAMPLES = options.samples
    rng = np.random.default_rng(1)
    covered, blamed = list(coverages(rng)), list(blames(rng))
    document = {
        "made_by": commit(),
        "versions": versions(),
        "runs": RUNS,
        "samples": options.samples,
        "summary": {
            f"{items} items": {
                "coverage": spread(covered, "coverage", items),
                **{name: spread(blamed, name, items) for name in ("blamed", "higher", "found")},
            }
            for items in (30, 100)
        },
        "coverage": covered,
        "naming": blamed,
    }
    write_json_aside(options.output, document)


if __name__ == "__main__":
    main()
