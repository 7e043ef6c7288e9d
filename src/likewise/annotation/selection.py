"""`next_pairs`: which pairs of a pool to rate next."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.annotation.candidates import Candidate, Candidates, draw_candidates, read_pairs
from likewise.annotation.choosing import STRATEGIES, Pool, choose, cover_features
from likewise.annotation.tasks import check_format, write_tasks
from likewise.answering import COSINE, HEAD, Answering, Numbers, Progress, find_relation
from likewise.arguments import require_flag, require_path, require_seed, require_text
from likewise.errors import DataError, Problem, UnknownNameError, UsageError
from likewise.files import remembering_inputs
from likewise.outputs import check_output_file
from likewise.wording import counted

if TYPE_CHECKING:
    from likewise.records import Relation

# No strategy was better than drawing at random (docs/annotation.md).
DEFAULT_STRATEGY = "random"
# So many pairs of a pool are drawn at random, and the strategy chooses among them.
CANDIDATES = 20_000
COUNT = 50
# Cosines whose spread is below this are alike.
_ALIKE = 1e-6
# What a strategy asks of the model.
_ASKS_SCORES = frozenset({"scores", "scores+doubt", "scores+cover"})
_ASKS_DOUBT = frozenset({"doubt", "mixed", "scores+doubt"})
_ASKS_VECTORS = frozenset({"cover", "mixed", "scores+cover"})

_Features = NDArray[np.float32]
# A model, or what loads it when it is needed.
Loader = Callable[[], Answering]


@dataclass(frozen=True, slots=True)
class NextPairs:
    """The pairs to rate next, in the order in which they were chosen, and what was left out of the pool.

    `asked` is how many were to be chosen.
    """

    strategy: str
    seed: int
    pairs: tuple[Candidate, ...]
    candidates: Candidates
    output: Path | None = None
    asked: int = 0

    @property
    def texts(self) -> list[tuple[str, str]]:
        """The texts of the pairs."""
        return [pair.texts for pair in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form, without the texts."""
        return {
            "output": None if self.output is None else str(self.output),
            "strategy": self.strategy,
            "seed": self.seed,
            "asked": self.asked,
            "chosen": len(self.pairs),
            "pool": {
                "rows": self.candidates.rows,
                "candidates": len(self.candidates.pairs),
                "distinct": self.candidates.distinct,
                "rated": self.candidates.rated,
                "repeated": self.candidates.repeated,
                "same_text_twice": self.candidates.alike,
            },
            "rows": [pair.source for pair in self.pairs],
        }

    def lines(self) -> list[str]:
        """The report in lines of text."""
        pool = self.candidates
        left_out = (
            (pool.rated, "rated already"),
            (pool.repeated, "repeated"),
            (pool.alike, "with the same text twice"),
        )
        told = ", ".join(f"{number:,} {what}" for number, what in left_out if number)
        found = [f"pool: {counted(pool.rows, 'row')}" + (f"; left out {told}" if told else "")]
        if len(pool.pairs) < pool.distinct and self.strategy != "random":
            found.append(f"chosen among {len(pool.pairs):,} of {pool.distinct:,} pairs, drawn at random")
        where = "" if self.output is None else f"{self.output}: "
        how = "at random; the model was not used" if self.strategy == "random" else f"by {self.strategy}"
        found.append(f"{where}{counted(len(self.pairs), 'pair')} to rate, chosen {how}")
        if len(self.pairs) < self.asked:
            found.append(f"{counted(self.asked, 'pair')} were asked for, but the pool has no more")
        return found


def next_pairs(
    model: str | os.PathLike[str] | Answering | Loader,
    pool: object,
    output: str | os.PathLike[str] | None = None,
    *,
    count: int = COUNT,
    strategy: str = DEFAULT_STRATEGY,
    relation: str | None = None,
    rated: Sequence[object] = (),
    candidates: int = CANDIDATES,
    per_text: int = 1,
    form: str = "csv",
    text_a: str | None = None,
    text_b: str | None = None,
    seed: int = 1,
    safe: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    asking: Progress | None = None,
) -> NextPairs:
    """Choose the pairs of a pool that people should rate next, and write them if an output is named.

    `rated` are tables whose pairs are left out. `strategy` is a name in `choosing.STRATEGIES`; `random`, the
    default, does not ask the model, which is then not loaded. The others choose among `candidates` pairs that
    are drawn at random, by the model's answers to `relation` (its first one). A text is in at most `per_text`
    of the chosen pairs, as long as there are others. `form` is csv (any table), label-studio or argilla.
    `progress` is told of rows that were read, and `asking` of what the model has done.
    """
    if strategy not in STRATEGIES:
        raise UnknownNameError(f"there is no strategy {strategy!r}. Choose {', '.join(STRATEGIES)}.")
    for name, number in (("count", count), ("candidates", candidates), ("per_text", per_text)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise UsageError(f"{name} is {number!r}, but a whole number of 1 or more is expected.")
    require_seed(seed)
    require_text(relation, "relation")
    for name, flag in (("safe", safe), ("overwrite", overwrite)):
        require_flag(flag, name)
    target = None
    if output is not None:
        require_path(output, "output")
        target = Path(output)
        check_format(target, form)
        check_output_file(target, inputs=[pool, *rated], overwrite=overwrite)
    with remembering_inputs():
        before = [pair for source in rated for pair in read_pairs(source, text_a, text_b)]
        drawn = draw_candidates(
            pool,
            most=max(candidates, count),
            seed=seed,
            rated=before,
            text_a=text_a,
            text_b=text_b,
            progress=progress,
        )
        if not drawn.pairs:
            found = f"all {drawn.rows:,} pairs of the pool are rated already or hold the same text twice"
            raise DataError([Problem("pool", found, "add new pairs to the pool")])
        known = _asked(model, drawn, strategy, relation, before, asking)
        rng = np.random.default_rng(seed)
        rows = choose(known, min(count, len(drawn.pairs)), strategy=strategy, rng=rng, most=per_text)
        chosen = tuple(drawn.pairs[row] for row in rows)
        if target is not None:
            write_tasks(target, chosen, drawn, form=form, safe=safe, replace=overwrite)
    return NextPairs(strategy, seed, chosen, drawn, target, count)


def _asked(
    model: str | os.PathLike[str] | Answering | Loader,
    drawn: Candidates,
    strategy: str,
    relation: str | None,
    before: Sequence[tuple[str, str]],
    progress: Progress | None,
) -> Pool:
    """What the strategy needs to know about the candidates."""
    texts = drawn.numbers()
    nothing = np.zeros(len(texts))
    if strategy == "random":
        return Pool(texts, nothing)
    answering = _loaded(model)
    if 2 not in answering.texts:
        raise UsageError(
            "this model reads single texts, and pairs cannot be chosen by it. Name a model of pairs."
        )
    asked = find_relation(answering, relation) if relation is not None else answering.relations[0]
    pairs = [pair.texts for pair in drawn.pairs]
    return Pool(
        texts,
        _scores(answering, asked, pairs, progress) if strategy in _ASKS_SCORES else nothing,
        _doubt(answering, asked, pairs, progress) if strategy in _ASKS_DOUBT else None,
        *(_vectors(answering, pairs, before, progress) if strategy in _ASKS_VECTORS else (None, None)),
    )


def _loaded(model: str | os.PathLike[str] | Answering | Loader) -> Answering:
    if isinstance(model, Answering):
        return model
    if callable(model):
        return model()
    from likewise.predict import load

    return load(model)


def _scores(
    model: Answering, relation: Relation, pairs: Sequence[tuple[str, ...]], progress: Progress | None
) -> Numbers:
    """The predicted scores of pairs."""
    values = model.answer(pairs, relation.name, progress=progress).values
    if isinstance(values, list):
        raise UsageError(
            f"{relation.name} is answered by labels, and this strategy spreads pairs over scores. Choose "
            "random, doubt, cover or mixed."
        )
    return values


def _doubt(
    model: Answering, relation: Relation, pairs: Sequence[tuple[str, ...]], progress: Progress | None
) -> Numbers:
    """How unsure a model is: one minus the probability of the likeliest label, or how far its head is from
    the line between its cosine and its head.
    """
    first = model.answer(pairs, relation.name, progress=progress)
    if first.probabilities is not None:
        unlikely: Numbers = 1.0 - first.probabilities.max(axis=1)
        return unlikely
    if not {COSINE, HEAD} <= set(model.sources(relation.name)):
        raise UsageError(
            f"this strategy compares the cosine and the head of {relation.name}, but this model answers from "
            f"{', '.join(model.sources(relation.name))}. Choose random, scores or cover."
        )
    said = [model.answer(pairs, relation.name, source=source).values for source in (COSINE, HEAD)]
    cosines, heads = (np.asarray(values, dtype=np.float64) for values in said)
    x, y = cosines - cosines.mean(), heads - heads.mean()
    # Cosines that are all alike say nothing: the line is then the mean.
    slope = float(x @ y) / max(float(x @ x), len(x) * _ALIKE**2)
    return np.asarray(np.abs(y - slope * x), dtype=np.float64)


def _vectors(
    model: Answering,
    pairs: Sequence[tuple[str, str]],
    before: Sequence[tuple[str, str]],
    progress: Progress | None,
) -> tuple[_Features, _Features]:
    """The pair features of the candidates and of the rated pairs."""
    every = [*pairs, *(pair for pair in before if all(pair))]
    distinct = list(dict.fromkeys(text for pair in every for text in pair))
    place = {text: row for row, text in enumerate(distinct)}
    vectors = np.asarray(model.embedding().encode(distinct, progress=progress), dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    u, v = (unit[[place[pair[side]] for pair in every]] for side in (0, 1))
    features = cover_features(u, v)
    return features[: len(pairs)], features[len(pairs) :]
