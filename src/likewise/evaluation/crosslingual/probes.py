"""Probes: the language that a meaning vector still shows, and the meaning that a language vector shows.

The **language probe** is a logistic regression that predicts a text's language from its vector. Its texts are
translations of the same sentences, equally many in each language, so that meaning gives no hint. It is
trained on half of the sentences and tested on the other half. Chance, 1/L, is the goal for a meaning vector.
If all languages have the same mean, a linear probe is at chance, whatever else of the language is left. The
probe therefore also reports how often the **nearest** vector of the first half is one of the same language.

The **meaning probe** is the correlation of language vectors' cosines with the ratings of pairs: 0 is best.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.errors import EvaluationError
from likewise.evaluation.crosslingual.language_pairs import PERCENT, PairScores
from likewise.evaluation.crosslingual.retrieval import find_nearest
from likewise.evaluation.crosslingual.row_bootstrap import (
    draw_counts,
    draws_interval,
    mean_draws,
    pearson_draws,
)
from likewise.evaluation.crosslingual.views import LANGUAGE, TextVectors
from likewise.evaluation.inputs import Codes
from likewise.evaluation.intervals import Interval, wilson_interval
from likewise.evaluation.metrics import pearson

# Sentences per language that the probe learns on and is asked about, at most.
SENTENCES = 1000
STEPS = 1000


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How often a view's vectors reveal the language, in per cent, with chance and the recall by language.

    `accuracy` is that of the logistic regression, `nearest` that of the nearest vector by cosine.
    """

    view: str
    accuracy: Interval
    nearest: float
    chance: float
    recall: dict[str, float]
    train: int
    test: int


@dataclass(frozen=True, slots=True)
class MeaningProbe:
    """Pearson ×100 of language vectors' cosines with ratings. None if all cosines of a pair are alike."""

    pairs: dict[str, float | None]
    average: Interval


def choose_sentences(texts: Mapping[str, Sequence[str]], *, most: int = SENTENCES) -> dict[str, list[str]]:
    """The first sentences of parallel texts, without texts that occur twice.

    A sentence that is the same in two languages shows no language, and a repeated sentence would be on both
    sides of the probe.
    """
    if len(texts) < 2 or len({len(column) for column in texts.values()}) != 1:
        sizes = ", ".join(f"{language} {len(column)}" for language, column in texts.items())
        raise EvaluationError(
            f"found the sentences {sizes}, but a language probe needs the same sentences in two or "
            "more languages."
        )
    seen: set[str] = set()
    kept: list[tuple[str, ...]] = []
    for row in zip(*texts.values(), strict=True):
        if len(set(row)) == len(row) and seen.isdisjoint(row):
            kept.append(row)
        seen.update(row)
    return {language: [row[at] for row in kept[:most]] for at, language in enumerate(texts)}


def probe_languages(
    vectors: TextVectors, texts: Mapping[str, Sequence[str]], *, rng: np.random.Generator
) -> tuple[ProbeResult, ...]:
    """The language probe of every view. `texts` are parallel, as `choose_sentences` gives them."""
    sentences = len(next(iter(texts.values())))
    if sentences < 2:
        raise EvaluationError(
            f"a language probe of {sentences} sentences is not possible. At least 2 are needed."
        )
    order = rng.permutation(sentences)
    halves = order[: sentences // 2], order[sentences // 2 :]
    return tuple(_probe(view, vectors, texts, halves) for view in vectors.names)


def probe_meaning(scores: PairScores, *, rng: np.random.Generator) -> MeaningProbe | None:
    """The meaning probe on all language pairs. None without a language view, or if nothing varies."""
    if LANGUAGE not in scores.cosines:
        return None
    found: dict[str, float | None] = {}
    for name, cosines in zip(scores.names, scores.cosines[LANGUAGE], strict=True):
        try:
            found[name] = PERCENT * pearson(scores.gold, cosines)
        except EvaluationError:
            found[name] = None
    rows = [at for at, value in enumerate(found.values()) if value is not None]
    if not rows:
        return None
    counts = draw_counts(len(scores.gold), rng=rng)
    draws = mean_draws(pearson_draws(scores.gold, scores.cosines[LANGUAGE], counts), rows)
    average = float(np.mean([value for value in found.values() if value is not None]))
    return MeaningProbe(found, draws_interval(average, PERCENT * draws))


def _probe(
    view: str, vectors: TextVectors, texts: Mapping[str, Sequence[str]], halves: tuple[Codes, Codes]
) -> ProbeResult:
    by_language = [vectors.rows(view, column) for column in texts.values()]
    (x, y), (asked, gold) = (_stack(by_language, half) for half in halves)
    right = _answer(x, y, asked) == gold
    nearest = PERCENT * float(np.mean(y[find_nearest(asked, x)[0]] == gold))
    recall = {name: PERCENT * float(np.mean(right[gold == at])) for at, name in enumerate(texts)}
    accuracy = wilson_interval(float(np.mean(right)), len(right)).scaled(PERCENT)
    return ProbeResult(view, accuracy, nearest, PERCENT / len(texts), recall, len(x), len(asked))


def _stack(by_language: Sequence[Vectors], half: Codes) -> tuple[Vectors, Codes]:
    vectors = np.concatenate([matrix[half] for matrix in by_language])
    return vectors, np.repeat(np.arange(len(by_language)), len(half))


def _answer(x: Vectors, y: Codes, asked: Vectors) -> NDArray[np.intp]:
    """The languages that a logistic regression (L2, C = 1), trained on x and y, predicts for other
    vectors.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    centre, spread = x.mean(axis=0), x.std(axis=0)
    # A column that does not vary tells nothing; rounding must not be blown up to a signal.
    scale = np.where(spread > 1e-6, 1 / np.maximum(spread, 1e-6), 0.0).astype(np.float32)
    with warnings.catch_warnings():
        # Stopped early, the answer hardly moves; there is nothing for a user to do about it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=STEPS).fit((x - centre) * scale, y)
    answers: NDArray[np.intp] = model.predict((asked - centre) * scale)
    return answers
