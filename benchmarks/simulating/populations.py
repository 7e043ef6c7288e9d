"""Populations that rows are drawn from: graded ratings or labels, two systems, texts that recur."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Texts = NDArray[np.intp]
Drawn = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

AGREEMENT = 0.9
TRUTH_ROWS = 2_000_000


@dataclass(frozen=True)
class Graded:
    """Ratings 0..5 in steps of 1, and two systems whose scores correlate with the ratings before rounding.

    `share` is what texts contribute to the variance of ratings and of errors; `uneven` makes the errors of
    the first system, or of "both", larger for some ratings than for others, which leaves Pearson's r as it
    is.
    """

    r: float
    other: float | None = None
    share: float = 0.0
    uneven: str = ""

    def draw(self, rng: np.random.Generator, texts: Texts) -> Drawn:
        """Ratings and both systems' scores for rows of these texts, shape (n,) each."""
        gold, common = effects(rng, texts, self.share), effects(rng, texts, self.share)
        scores = []
        for at, r in enumerate((self.r, self.r if self.other is None else self.other)):
            part = max(0.0, (AGREEMENT - r * r) / (1 - r * r))
            error = math.sqrt(part) * common + math.sqrt(1 - part) * effects(rng, texts, self.share)
            if self.uneven == "both" or (self.uneven and at == 0):
                error = error * (0.4 + 0.6 * np.abs(gold)) / math.sqrt(0.52 + 0.48 * math.sqrt(2 / math.pi))
            scores.append(r * gold + math.sqrt(1 - r * r) * error)
        return np.clip(np.round(2.5 + 1.25 * gold), 0, 5), scores[0], scores[1]

    def truth(self, compute: Callable[[Any, Any], float]) -> tuple[float, float]:
        """Both systems' values in the population, from two million independent rows."""
        return _graded_truth(self, compute)


@dataclass(frozen=True)
class Labelled:
    """Labels 0 and 1, and two systems that find a share `found` of the ones and call `false` zeros one."""

    rate: float
    found: float
    false: float
    share: float = 0.0

    def draw(self, rng: np.random.Generator, texts: Texts) -> Drawn:
        """Gold labels and both systems' labels for rows of these texts, shape (n,) each."""
        gold = special.ndtr(effects(rng, texts, self.share)) < self.rate
        common, limit = effects(rng, texts, self.share), np.where(gold, self.found, self.false)
        said = []
        for _ in range(2):
            own = effects(rng, texts, self.share)
            said.append(special.ndtr(math.sqrt(AGREEMENT) * common + math.sqrt(1 - AGREEMENT) * own) < limit)
        return gold.astype(int), said[0].astype(int), said[1].astype(int)

    def truth(self, metric: str) -> float:
        """Accuracy or F1 in the population."""
        hits = self.rate * self.found
        if metric == "accuracy":
            return hits + (1 - self.rate) * (1 - self.false)
        return 2 * hits / (self.rate + hits + (1 - self.rate) * self.false)


def effects(rng: np.random.Generator, texts: Texts, share: float) -> Array:
    """Normal values of variance 1 per row, of which `share` comes from the row's two texts."""
    own = rng.normal(size=len(texts))
    if not share:
        return own
    of_text = rng.normal(size=int(texts.max()) + 1)
    sides = (of_text[texts[:, 0]] + of_text[texts[:, 1]]) / math.sqrt(2)
    return np.asarray(math.sqrt(share) * sides + math.sqrt(1 - share) * own)


@cache
def _graded_truth(population: Graded, compute: Callable[[Any, Any], float]) -> tuple[float, float]:
    rng = np.random.default_rng(20)
    gold, a, b = Graded(population.r, population.other, 0.0, population.uneven).draw(rng, apart(TRUTH_ROWS))
    return compute(gold, a), compute(gold, b)


def apart(n: int) -> Texts:
    """n rows that share no text."""
    return np.arange(2 * n).reshape(n, 2)


def prompts(count: int, rng: np.random.Generator) -> Texts:
    """Texts that stand in 2 to 10 rows each, always beside a text of that row's own."""
    first = np.repeat(np.arange(count), rng.integers(2, 11, count))
    return np.stack((first, count + np.arange(len(first))), axis=1)


def crossed(count: int, rng: np.random.Generator) -> Texts:
    """Texts that stand in 2 to 10 rows each, beside one another."""
    places = rng.permutation(np.repeat(np.arange(count), rng.integers(2, 11, count)))
    rows = places[: len(places) // 2 * 2].reshape(-1, 2)
    return rows[rows[:, 0] != rows[:, 1]]


def real(task: str, data_dir: Path) -> Texts:
    """The texts of a task of ours as numbers: which rows share one is real, all else is drawn."""
    from likewise.evaluation.sharing import text_numbers
    from likewise.evaluation.suites import SUITES
    from likewise.evaluation.tasks import load_task

    known = {one.name: one for suite in SUITES.values() for one in suite.tasks}
    records = load_task(known[task], data_dir=data_dir)
    return np.asarray(text_numbers([record.texts for record in records]), dtype=np.intp)
