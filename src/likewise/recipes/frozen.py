"""Stages over a frozen encoder: its vectors come from the cache, small layers learn, the encoder never moves.

    texts → cache → e → layers trained so far → this stage's layers → cosine

A finished `Frozen` is the encoder with its layers folded into stock modules (`adapters.fold`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from likewise.adapters import Adapter, Convolution, Refinement, fold
from likewise.answering import Vectors
from likewise.data.parallel import ParallelText
from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.sentence import with_layers
from likewise.evaluation.metrics import compute
from likewise.losses import LOSSES, make_loss
from likewise.methods.multilingual import CosineMap, FrozenPart, MeaningSplit, SplitLoss, language_parts
from likewise.methods.pairs import Objective
from likewise.recipes.devscore import DevSet
from likewise.recipes.schema_stages import ParallelStageSpec, RefineStageSpec, VectorStageSpec
from likewise.recipes.stages import StageData
from likewise.records import Record, Relation
from likewise.training.parallel import ParallelTask, ParallelVectors
from likewise.training.rated import Alignment, RatedTask, RatedVectors
from likewise.training.state import FitReport
from likewise.training.vectors import VectorSettings, fit_vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Rows that go through the layers at once outside training.
_BLOCK = 65_536
# Below this share of the loss a reconstruction term constrains nothing (METHODS 2.4).
_SMALL_SHARE = 0.01


class Frozen:
    """A frozen encoder, the layers trained after it, and what the last stage says about answers."""

    def __init__(
        self,
        cache: EmbeddingCache,
        relation: Relation,
        *,
        open_encoder: Callable[[], SentenceTransformer],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.cache, self.relation = cache, relation
        self._open = open_encoder
        self.layers: list[Adapter] = []
        self.split: MeaningSplit | None = None
        self.languages: set[str] = set()
        self.pairs: set[str] = set()
        self.objective = Objective(relation, "cosine", "mse")
        self.line = (1.0, 0.0)
        self._progress = progress

    @cached_property
    def encoder(self) -> SentenceTransformer:
        """The encoder itself; while all vectors are in the cache nobody needs it."""
        return self._open()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """The encoder's own vectors, from the cache; what is not there is encoded first."""
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self._progress(done, len(texts))

        return self.cache.matrix(texts, progress=advance)

    @torch.no_grad()
    def through(self, vectors: Vectors, layers: Sequence[nn.Module]) -> Vectors:
        """Vectors after layers, block by block."""
        if not layers:
            return vectors
        parts = []
        for start in range(0, len(vectors), _BLOCK):
            x = torch.from_numpy(np.ascontiguousarray(vectors[start : start + _BLOCK]))
            for layer in layers:
                x = layer(x)
            parts.append(x.numpy())
        return np.concatenate(parts) if parts else vectors

    def finished(self) -> SentenceTransformer:
        """The encoder with its layers after it, as stock modules."""
        return with_layers(self.encoder, fold(self.layers)) if self.layers else self.encoder

    def part(self) -> FrozenPart:
        """What a model remembers of this."""
        tensors = {} if self.split is None else language_parts(self.split)
        before = self.split.prelayer if self.split is not None else None
        return FrozenPart(
            len(self.encoder),
            tuple(sorted(self.pairs)),
            tuple(sorted(self.languages)),
            before.activation if before is not None else "",
            tensors,
        )


class RatedDev:
    """Dev pairs as rows of cached vectors: a metric of the cosine per set, and their mean as `rated`."""

    def __init__(self, frozen: Frozen, sets: Sequence[DevSet], metric: str) -> None:
        self._frozen, self._metric = frozen, metric
        self._sets = [(entry.name, *_rated_rows(entry.records, frozen.relation)) for entry in sets]
        texts = list(dict.fromkeys(text for _, a, b, _ in self._sets for text in (*a, *b)))
        place = {text: row for row, text in enumerate(texts)}
        self._vectors = frozen.vectors(texts) if texts else np.zeros((0, 1), dtype=np.float32)
        self._rows = [
            (name, [place[text] for text in a], [place[text] for text in b], gold)
            for name, a, b, gold in self._sets
        ]

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __call__(self, layers: Sequence[nn.Module]) -> dict[str, float]:
        """Numbers on dev for vectors after these layers."""
        after = self._frozen.through(self._vectors, layers)
        after = after / np.maximum(np.linalg.norm(after, axis=1, keepdims=True), 1e-12)
        numbers = {
            f"{self._metric} {self._frozen.relation.name} {name}": compute(
                self._metric, gold, (after[a] * after[b]).sum(axis=1).astype(np.float64)
            )
            for name, a, b, gold in self._rows
        }
        return {"rated": float(np.mean(list(numbers.values()))), **numbers}


def run_parallel(
    frozen: Frozen,
    stage: ParallelStageSpec,
    data: StageData,
    *,
    seed: int,
    tell: Callable[[str], None],
    **options: Any,
) -> FitReport:
    """Stage 1: split meaning from language; what stays is the way from e to m."""
    vectors, languages = parallel_vectors(frozen, data.parallel, frozen.layers)
    width = vectors.vectors.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        split = MeaningSplit(
            width,
            len(languages),
            prelayer=stage.prelayer,
            reversible=stage.reversible,
            start="random" if stage.start == "random" else "identity",
        )
    if stage.start == "means":
        split.forget(language_means(vectors))
    loss = SplitLoss(stage.weights.model_dump(), stage.margin, stage.reconstruction)
    dev = RatedDev(frozen, data.dev, stage.select_metric)
    task = ParallelTask(
        split,
        loss,
        vectors,
        form=stage.form,
        batch_size=stage.batch_size,
        dev_share=stage.dev_share,
        balance=stage.balance,
        seed=seed,
        rated=(lambda: dev([*frozen.layers, *split.adapters()])) if dev else None,
        select=stage.select_by,
    )
    report = fit_vectors(split, task, _settings(stage, seed), **options)
    _warn_of_reconstruction(loss, report, tell)
    frozen.split = split
    frozen.languages |= set(languages)
    frozen.layers += split.adapters()
    return report


def run_refine(
    frozen: Frozen,
    stage: RefineStageSpec,
    data: StageData,
    *,
    seed: int,
    tell: Callable[[str], None],
    **options: Any,
) -> FitReport:
    """Stage 2: two more layers, learnt from rated pairs."""
    before = [] if stage.joint else list(frozen.layers)
    rated = rated_vectors(frozen, data, before)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        new = _refining(stage, rated.vectors.shape[1])
    learnt = [*frozen.layers, *new] if stage.joint else new
    cosine_map = CosineMap(stage.map)
    dev = RatedDev(frozen, data.dev, stage.select_metric)

    def evaluate() -> dict[str, float]:
        found = dev([*frozen.layers, *new])
        return {"score": found["rated"], **found}

    relation = frozen.relation
    task = RatedTask(
        nn.Sequential(*learnt),
        cosine_map,
        make_loss(stage.loss, "cosine", lo=relation.lo, hi=relation.hi, unit=relation.unit),
        rated,
        evaluate=evaluate,
        batch_size=stage.batch_size,
        seed=seed,
        grouped=LOSSES[stage.loss].grouped,
        alignment=_alignment(frozen, stage, data, before),
    )
    report = fit_vectors(nn.ModuleList([*learnt, cosine_map]), task, _settings(stage, seed), **options)
    frozen.layers += new
    frozen.pairs |= {record.language for record in data.train if record.language}
    frozen.languages |= {code for pair in frozen.pairs for code in pair.split("-")}
    # A loss that only ranks leaves the level free: a straight line is fitted to dev afterwards.
    bend = "identity" if LOSSES[stage.loss].ranks else stage.map
    frozen.objective = Objective(relation, "cosine", stage.loss, map=bend)
    frozen.line = cosine_map.line()
    return report


def parallel_vectors(
    frozen: Frozen, texts: Sequence[ParallelText], layers: Sequence[nn.Module]
) -> tuple[ParallelVectors, tuple[str, ...]]:
    """Translations as rows of the vectors of their distinct texts, and the languages by number."""
    languages = tuple(sorted({code for text in texts for code in (text.language_a, text.language_b)}))
    distinct = list(dict.fromkeys(line for text in texts for side in (text.a, text.b) for line in side))
    place = {line: row for row, line in enumerate(distinct)}
    vectors = frozen.through(frozen.vectors(distinct), layers)

    def numbers(of: Callable[[int, ParallelText], list[int]]) -> Any:
        return np.array([n for group, text in enumerate(texts) for n in of(group, text)], dtype=np.int64)

    return ParallelVectors(
        vectors,
        a=numbers(lambda group, text: [place[line] for line in text.a]),
        b=numbers(lambda group, text: [place[line] for line in text.b]),
        language_a=numbers(lambda group, text: [languages.index(text.language_a)] * len(text)),
        language_b=numbers(lambda group, text: [languages.index(text.language_b)] * len(text)),
        group=numbers(lambda group, text: [group] * len(text)),
    ), languages


def language_means(data: ParallelVectors) -> Vectors:
    """The mean vector of each language's distinct texts, L×d."""
    texts = np.concatenate([data.a, data.b])
    languages = np.concatenate([data.language_a, data.language_b])
    return np.stack(
        [data.vectors[np.unique(texts[languages == one])].mean(axis=0) for one in np.unique(languages)]
    )


def rated_vectors(frozen: Frozen, data: StageData, layers: Sequence[nn.Module]) -> RatedVectors:
    """Rated pairs as rows of the vectors of their distinct texts, after layers that stay as they are."""
    kept = [row for row, r in enumerate(data.train) if r.values.get(frozen.relation.name) is not None]
    a, b, gold = _rated_rows(data.train, frozen.relation)
    distinct = list(dict.fromkeys((*a, *b)))
    place = {text: row for row, text in enumerate(distinct)}
    target = frozen.objective.codec().encode_many(gold)[:, 0]
    return RatedVectors(
        frozen.through(frozen.vectors(distinct), layers),
        np.array([place[text] for text in a], dtype=np.int64),
        np.array([place[text] for text in b], dtype=np.int64),
        target.astype(np.float32),
        np.array([data.groups[row] for row in kept] if data.groups else [0] * len(kept), dtype=np.int64),
        None if data.weights is None else np.array([data.weights[row] for row in kept]),
    )


def _rated_rows(records: Sequence[Record], relation: Relation) -> tuple[list[str], list[str], list[Any]]:
    rows = [r for r in records if r.values.get(relation.name) is not None]
    return [r.a for r in rows], [r.b for r in rows], [r.values[relation.name] for r in rows]


def _alignment(
    frozen: Frozen, stage: RefineStageSpec, data: StageData, layers: Sequence[nn.Module]
) -> Alignment | None:
    if not data.parallel or not stage.align:
        return None
    vectors, languages = parallel_vectors(frozen, data.parallel, layers)
    frozen.languages |= set(languages)
    return Alignment(vectors, stage.align, stage.temperature, stage.align_batch)


def _refining(stage: RefineStageSpec, width: int) -> list[Adapter]:
    first = [Convolution(width, stage.convolution)] if stage.convolution else []
    return [
        *first,
        Refinement(width, hidden=stage.hidden, activation=stage.activation, residual=stage.residual),
    ]


def _settings(stage: VectorStageSpec, seed: int) -> VectorSettings:
    shared = {name: getattr(stage, name) for name in VectorSettings.__dataclass_fields__ if name != "seed"}
    return VectorSettings(**shared, seed=seed)


def _warn_of_reconstruction(loss: SplitLoss, report: FitReport, tell: Callable[[str], None]) -> None:
    last = {name: value for name, value in report.history[-1].items() if name in loss.weights}
    share = loss.share(last, "reconstruction")
    if loss.weights["reconstruction"] and share < _SMALL_SHARE:
        tell(
            f"  reconstruction is {100 * share:.2f} % of the loss and holds nothing in place; "
            'reconstruction = "sum" or "cosine" would'
        )
