"""Language pairs: how well cosines follow the ratings of translated pairs, compared with the raw encoder.

Sentence 1 is in one language and sentence 2 in another; the rows are the same for every pair of languages. A
pair is **held out** if no rated pair of its two languages was trained on. A language is held out if no stage
saw it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from likewise.data.parallel import find_language
from likewise.errors import EvaluationError, UsageError
from likewise.evaluation.correlations import difference_interval
from likewise.evaluation.crosslingual.row_bootstrap import (
    draw_counts,
    draws_interval,
    mean_draws,
    pearson_draws,
    spearman_draws,
)
from likewise.evaluation.crosslingual.views import MODEL, RAW, TextVectors
from likewise.evaluation.intervals import Interval
from likewise.evaluation.metrics import pearson, spearman
from likewise.evaluation.tasks import fingerprint
from likewise.records import Array, Record

PERCENT = 100.0
# Correlations nearer to 1 than this are exact but for rounding.
_EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class TrainedLanguages:
    """The languages of a model's training: rated language pairs in any order, and languages of any stage.

    Empty means unknown. Codes are compared without script and region, so Brazilian Portuguese counts as
    Portuguese.
    """

    pairs: frozenset[frozenset[str]] = frozenset()
    languages: frozenset[str] = frozenset()

    @classmethod
    def read(cls, pairs: Iterable[str] = (), languages: Iterable[str] = ()) -> TrainedLanguages:
        """Read names such as "en-de" and codes such as "de" or "deu". The languages of rated pairs count
        as seen.
        """
        rated = frozenset(frozenset(split_pair(name)) for name in pairs)
        seen = frozenset(find_language(code).base for code in languages)
        return cls(rated, seen.union(*rated) if seen else seen)

    def lacks_pair(self, name: str) -> bool | None:
        """Whether a language pair is held out, or None if the trained pairs are unknown."""
        return frozenset(split_pair(name)) not in self.pairs if self.pairs else None

    def lacks_language(self, *codes: str) -> bool | None:
        """Whether any of the languages is held out, or None if the seen languages are unknown."""
        return not {find_language(code).base for code in codes} <= self.languages if self.languages else None


def split_pair(name: str) -> tuple[str, str]:
    """The two languages of a name such as "en-de", under the codes that Likewise uses."""
    codes = name.split("-")
    if len(codes) != 2:
        raise UsageError(f"language pair {name!r}: two codes are expected, such as en-de.")
    first, second = (find_language(code, source=f"language pair {name!r}").base for code in codes)
    return first, second


@dataclass(frozen=True, slots=True)
class PairScores:
    """Ratings (N,) and, per view, the cosines P×N of P language pairs that share their N rows."""

    names: tuple[str, ...]
    gold: Array
    cosines: Mapping[str, Array]
    fingerprints: tuple[str, ...] = ()

    @property
    def cross_lingual(self) -> list[int]:
        """The places of the pairs of two different languages."""
        return [at for at, name in enumerate(self.names) if len(set(split_pair(name))) == 2]


@dataclass(frozen=True, slots=True)
class PairResult:
    """One language pair, with correlations ×100. Raw values and the difference of Pearson are None without
    a raw encoder.
    """

    name: str
    n: int
    pearson: float
    spearman: float
    raw_pearson: float | None = None
    raw_spearman: float | None = None
    difference: Interval | None = None
    held_out_pair: bool | None = None
    held_out_language: bool | None = None
    fingerprint: str = ""

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of the first and the second text."""
        return split_pair(self.name)

    @property
    def cross_lingual(self) -> bool:
        """Whether the two languages differ."""
        return len(set(self.languages)) == 2


@dataclass(frozen=True, slots=True)
class AverageResult:
    """A plain mean over language pairs, ×100, with confidence intervals from resampled rows."""

    name: str
    pairs: tuple[str, ...]
    pearson: Interval
    spearman: Interval
    raw_pearson: Interval | None = None
    raw_spearman: Interval | None = None
    pearson_difference: Interval | None = None
    spearman_difference: Interval | None = None


# What is averaged: the pairs of two languages, all or some of them.
AVERAGES: dict[str, Callable[[PairResult], bool | None]] = {
    "cross-lingual": lambda pair: True,
    "held-out pairs": lambda pair: pair.held_out_pair,
    "without English": lambda pair: "en" not in pair.languages,
    "with a held-out language": lambda pair: pair.held_out_language,
}


def score_pairs(
    vectors: TextVectors, pairs: Mapping[str, Sequence[Record]], *, relation: str = "similarity"
) -> PairScores:
    """The cosines of all views for the records of each language pair. All pairs must have the same rows."""
    if not pairs:
        raise UsageError("there is no language pair to measure. Name one, such as en-de.")
    golds = {name: _gold(name, records, relation) for name, records in pairs.items()}
    first = next(iter(golds.values()))
    other = [name for name, gold in golds.items() if not np.array_equal(gold, first)]
    if other:
        raise EvaluationError(
            f"{', '.join(other)}: the rows differ from those of {next(iter(golds))}. Language pairs "
            "are compared on translations of the same rows, in the same order and with the same "
            "ratings."
        )
    texts = [[(record.a, record.b) for record in records] for records in pairs.values()]
    cosines = {view: np.stack([vectors.cosines(view, rows) for rows in texts]) for view in vectors.names}
    prints = tuple(fingerprint(records, relation) for records in pairs.values())
    return PairScores(tuple(pairs), first, cosines, prints)


def measure_pairs(
    scores: PairScores, trained: TrainedLanguages, *, rng: np.random.Generator
) -> tuple[tuple[PairResult, ...], tuple[AverageResult, ...]]:
    """Measure every language pair, and the averages over cross-lingual pairs if there are any."""
    views = [view for view in (MODEL, RAW) if view in scores.cosines]
    draws = _Draws(scores, draw_counts(len(scores.gold), rng=rng), views)
    results = tuple(_measure_pair(scores, at, trained, draws) for at in range(len(scores.names)))
    averages = []
    for name, belongs in AVERAGES.items():
        rows = [at for at, pair in enumerate(results) if pair.cross_lingual and belongs(pair)]
        if rows:
            averages.append(_average(name, [results[at] for at in rows], rows, draws))
    return results, tuple(averages)


@dataclass(slots=True)
class _Draws:
    """Correlations ×100 of every pair on the same resampled rows, P×S by view."""

    scores: PairScores
    counts: Array
    views: Sequence[str]
    pearson: dict[str, Array] = field(init=False)
    spearman: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        gold, cosines = self.scores.gold, self.scores.cosines
        self.pearson = {v: PERCENT * pearson_draws(gold, cosines[v], self.counts) for v in self.views}
        self.spearman = {v: PERCENT * spearman_draws(gold, cosines[v], self.counts) for v in self.views}


def _gold(name: str, records: Sequence[Record], relation: str) -> Array:
    values = [record.values.get(relation) for record in records]
    if not values or any(not isinstance(value, int | float) for value in values):
        raise EvaluationError(f"{name}: each of the {len(values)} rows needs a number for {relation}.")
    return np.asarray(values, dtype=np.float64)


def _measure_pair(scores: PairScores, at: int, trained: TrainedLanguages, draws: _Draws) -> PairResult:
    name, gold, found = scores.names[at], scores.gold, {}
    for view in draws.views:
        try:
            row = scores.cosines[view][at]
            found[view] = (PERCENT * pearson(gold, row), PERCENT * spearman(gold, row))
        except EvaluationError as error:
            raise EvaluationError(f"{name}, {view} vectors: {error}") from error
    raw_pearson, raw_spearman = found.get(RAW, (None, None))
    return PairResult(
        name,
        len(gold),
        pearson=found[MODEL][0],
        spearman=found[MODEL][1],
        raw_pearson=raw_pearson,
        raw_spearman=raw_spearman,
        difference=_difference(scores, at, draws) if RAW in found else None,
        held_out_pair=trained.lacks_pair(name),
        held_out_language=trained.lacks_language(*split_pair(name)),
        fingerprint=scores.fingerprints[at] if scores.fingerprints else "",
    )


def _difference(scores: PairScores, at: int, draws: _Draws) -> Interval:
    """Zou's interval, or that of the resampled rows if correlations are 1, as for equal scores."""
    gold, model, raw = scores.gold, scores.cosines[MODEL][at], scores.cosines[RAW][at]
    a, b, between = pearson(gold, model), pearson(gold, raw), pearson(model, raw)
    if max(abs(a), abs(b), abs(between)) < 1 - _EXACT:
        return difference_interval(a, b, between, len(gold)).scaled(PERCENT)
    return draws_interval(PERCENT * (a - b), draws.pearson[MODEL][at] - draws.pearson[RAW][at])


def _average(name: str, pairs: Sequence[PairResult], rows: Sequence[int], draws: _Draws) -> AverageResult:
    found: dict[str, Interval] = {}
    for metric, drawn in (("pearson", draws.pearson), ("spearman", draws.spearman)):
        means = {view: mean_draws(drawn[view], rows) for view in draws.views}
        values = {MODEL: float(np.mean([getattr(pair, metric) for pair in pairs]))}
        found[metric] = draws_interval(values[MODEL], means[MODEL])
        if RAW in means:
            values[RAW] = float(np.mean([getattr(pair, f"raw_{metric}") for pair in pairs]))
            found[f"raw_{metric}"] = draws_interval(values[RAW], means[RAW])
            gap = values[MODEL] - values[RAW]
            found[f"{metric}_difference"] = draws_interval(gap, means[MODEL] - means[RAW])
    return AverageResult(name, tuple(pair.name for pair in pairs), **found)
