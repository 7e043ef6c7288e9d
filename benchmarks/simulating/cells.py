"""One cell of the table: a population and the texts of its rows, drawn many times, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from likewise.errors import EvaluationError
from likewise.evaluation.differences import compare_systems
from likewise.evaluation.estimates import estimate
from likewise.evaluation.intervals import metric_interval
from likewise.evaluation.metrics import compute, get_metric
from likewise.evaluation.results import average_interval
from simulating.former import former_difference, former_interval, former_test
from simulating.populations import Graded, Labelled, Texts

Population = Graded | Labelled
_FUNCTIONS = {name: partial(compute, name) for name in ("pearson", "spearman", "mae")}


@dataclass(frozen=True)
class Cell:
    """What is simulated: `rows` names the kind of test set, `about` the population."""

    rows: str
    about: str
    metric: str
    population: Population
    texts: Texts
    shares: bool = False

    def run(self, simulations: int, seed: Sequence[int]) -> dict[str, Any]:
        """Error of the tests (or coverage of the difference) and coverage of the intervals, old and new."""
        counts = dict.fromkeys(("told", "error", "error_old", "covered", "covered_old", "intervals"), 0)
        true_a, true_b = self._truth()
        differ = abs(true_a - true_b) > 1e-3
        texts = [tuple(row) for row in self.texts.tolist()] if self.shares else None
        for number in range(simulations):
            rng = np.random.default_rng([*seed, number])
            gold, a, b = self.population.draw(rng, self.texts)
            try:
                old = former_interval(self.metric, gold, a, rng)
                found = compare_systems(self.metric, gold, a, b, texts=texts)
                interval = metric_interval(self.metric, gold, a, texts=texts)
            except EvaluationError:  # too few rows of a label in this draw: there is no value at all
                continue
            counts["intervals"] += 1
            counts["covered"] += interval.low <= true_a <= interval.high
            counts["covered_old"] += old[0] <= true_a <= old[1]
            counts["told"] += found.p is not None
            if differ:
                ends, gap = former_difference(self.metric, gold, a, b), true_a - true_b
                counts["error_old"] += not ends[0] <= gap <= ends[1]
                ends = (found.interval.low, found.interval.high) if found.interval else (gap, gap)
                counts["error"] += not ends[0] <= gap <= ends[1]
            else:
                counts["error_old"] += former_test(self.metric, gold, a, b, rng) < 0.05
                counts["error"] += found.p is not None and found.p < 0.05
        return self._summary(counts, simulations, true_a)

    def _truth(self) -> tuple[float, float]:
        if isinstance(self.population, Labelled):
            value = self.population.truth(self.metric)
            return value, value
        return self.population.truth(_FUNCTIONS[self.metric])

    def _summary(self, counts: dict[str, int], simulations: int, truth: float) -> dict[str, Any]:
        told, intervals = max(counts["told"], 1), max(counts["intervals"], 1)
        return {
            "rows": self.rows,
            "about": self.about,
            "metric": self.metric,
            "n": len(self.texts),
            "truth": round(truth, 4),
            "simulations": simulations,
            "told": round(counts["told"] / intervals, 4),
            "error": round(counts["error"] / told, 4) if counts["told"] else None,
            "error_old": round(counts["error_old"] / intervals, 4),
            "coverage": round(counts["covered"] / intervals, 4),
            "coverage_old": round(counts["covered_old"] / intervals, 4),
        }


@dataclass(frozen=True)
class AverageCell:
    """The average of several relations that were asked of the same pairs, and its interval over rows."""

    rows: str
    about: str
    metric: str
    population: Graded
    texts: Texts
    tasks: int = 4

    def run(self, simulations: int, seed: Sequence[int]) -> dict[str, Any]:
        """Coverage with texts, and as if no row shared one (`coverage_old`)."""
        truth = get_metric(self.metric).scale * self.population.truth(_NOISY[self.metric])[0]
        texts = [tuple(row) for row in self.texts.tolist()] * self.tasks
        alone = [(row,) for row in range(len(texts))]
        hits = np.zeros(2)
        for number in range(simulations):
            rng = np.random.default_rng([*seed, number])
            gold, a, _ = self.population.draw(rng, self.texts)
            parts = []
            for _ in range(self.tasks):
                # The other relations are rated much alike, and answered by the same system.
                noisy = np.clip(np.round(gold + 0.7 * rng.normal(size=len(gold))), 0, 5)
                parts.append(estimate(self.metric, noisy, a))
            for at, keys in enumerate((texts, alone)):
                found = average_interval(parts, keys)
                hits[at] += found is not None and found.low <= truth <= found.high
        covered, plain = (hits / simulations).tolist()
        return {
            "rows": self.rows,
            "about": self.about,
            "metric": f"{self.metric}, average",
            "n": len(self.texts) * self.tasks,
            "truth": round(truth, 4),
            "simulations": simulations,
            "told": 1.0,
            "error": None,
            "error_old": None,
            "coverage": round(covered, 4),
            "coverage_old": round(plain, 4),
        }


def _noisy_value(metric: str, gold: Any, scores: Any) -> float:
    rng = np.random.default_rng(21)
    return compute(metric, np.clip(np.round(gold + 0.7 * rng.normal(size=len(gold))), 0, 5), scores)


_NOISY = {name: partial(_noisy_value, name) for name in ("pearson", "spearman")}
