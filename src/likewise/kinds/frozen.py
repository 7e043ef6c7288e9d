"""Stage kinds `parallel` and `refine`: small layers are trained on cached vectors of a frozen encoder.

    texts → cache → e → layers trained so far → this stage's layers → cosine

`Frozen.finished()` is the encoder with its layers folded into stock modules (`adapters.fold`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import nn

from likewise.adapters import Adapter, Convolution, Refinement, fold
from likewise.answering import Vectors
from likewise.data.catalogue import is_parallel_corpus
from likewise.data.parallel import ParallelText
from likewise.encoders.cache import EmbeddingCache, Identity, identify, remembered_identity
from likewise.encoders.sentence import with_layers
from likewise.errors import DataError
from likewise.heads import CosineHead
from likewise.kinds.answers import let_dev_choose
from likewise.kinds.base import (
    Carried,
    DevSet,
    Job,
    Place,
    Plan,
    Runner,
    Shared,
    StageData,
    by_seed,
    stage_report,
)
from likewise.kinds.building import encoder_digests
from likewise.kinds.devscore import Measured, check_dev, set_numbers, with_score
from likewise.kinds.leaks import LeakFilter, SideFilter
from likewise.kinds.reading import (
    RatedRows,
    RatedSpec,
    pack_rated,
    rated_data,
    read_rated,
    read_translations,
    unpack_rated,
)
from likewise.kinds.vector_tasks import (
    ParallelAlignment,
    ParallelTask,
    ParallelVectors,
    RatedTask,
    RatedVectors,
)
from likewise.losses import LOSSES, make_loss
from likewise.methods.multilingual import CosineMap, FrozenPart, MeaningSplit, SplitLoss, language_parts
from likewise.methods.pairs import Objective, PairModel
from likewise.predict.pairs import Predictor
from likewise.records import Record, Relation
from likewise.schema.frozen import ParallelStage, RefineStage, VectorStage
from likewise.training.state import FitEvent, FitReport
from likewise.training.vectors import VectorSettings, fit_vectors
from likewise.versions import versions
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

V = TypeVar("V", bound=VectorStage)

# Rows that go through the layers at once outside training.
_BLOCK = 65_536
# Below this share of the loss a reconstruction term constrains nothing (docs/methods/multilingual.md).
_SMALL_SHARE = 0.01


class Frozen:
    """A frozen encoder, the layers trained after it, and the objective of the last stage."""

    def __init__(
        self,
        relation: Relation,
        *,
        open_encoder: Callable[[], SentenceTransformer],
        open_cache: Callable[[], EmbeddingCache],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.relation = relation
        self._open, self._open_cache = open_encoder, open_cache
        self.layers: list[Adapter] = []
        self.split: MeaningSplit | None = None
        self.languages: set[str] = set()
        self.pairs: set[str] = set()
        self.objective = Objective(relation, "cosine", "mse")
        self.line = (1.0, 0.0)
        self._progress = progress

    @cached_property
    def cache(self) -> EmbeddingCache:
        """The cache on disk that holds the encoder's vectors; its key is the encoder's fingerprint."""
        return self._open_cache()

    @cached_property
    def encoder(self) -> SentenceTransformer:
        """The encoder itself; it is opened only if a vector is not in the cache."""
        return self._open()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """The encoder's own vectors from the cache; missing ones are encoded first."""
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
        """The parts that a model keeps of this."""
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
    """Dev pairs as rows of cached vectors; gives the cosine's metric on each set and their mean, `rated`."""

    def __init__(self, frozen: Frozen, sets: Sequence[DevSet], metric: str) -> None:
        self._frozen, self._measured = frozen, Measured(frozen.relation, metric)
        name = frozen.relation.name
        rated = [[r for r in entry.records if r.values.get(name) is not None] for entry in sets]
        self._sets = [DevSet(entry.name, rows) for entry, rows in zip(sets, rated, strict=True)]
        pairs = [record.texts for entry in self._sets for record in entry.records]
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: row for row, text in enumerate(texts)}
        self._vectors = frozen.vectors(texts) if texts else np.zeros((0, 1), dtype=np.float32)
        self._a, self._b = ([place[pair[side]] for pair in pairs] for side in (0, 1))

    def __bool__(self) -> bool:
        return bool(self._sets)

    def __call__(self, layers: Sequence[nn.Module]) -> dict[str, float]:
        """The dev numbers of the vectors after these layers."""
        after = self._frozen.through(self._vectors, layers)
        after = after / np.maximum(np.linalg.norm(after, axis=1, keepdims=True), 1e-12)
        cosines = (after[self._a] * after[self._b]).sum(axis=1).astype(np.float64)
        numbers = set_numbers(self._sets, {self._measured: cosines})
        return {"rated": with_score(numbers)["score"], **numbers}


class VectorRunner(Runner[V]):
    """What both kinds over a frozen encoder share: how they start and what they hand to the next stage."""

    moves_encoder: ClassVar[bool] = False

    def verify(self, job: Job[V], data: StageData, encoder: Callable[[], SentenceTransformer]) -> None:
        """Nothing to check: the encoder is not needed while its vectors are in the cache."""

    def start(self, job: Job[V], data: StageData, former: Carried) -> Carried:
        """The frozen encoder and the layers that were trained so far."""
        if former.gives == job.stage.gives:
            frozen: Frozen = former.state
        else:
            frozen = _begin(job, former.encoder)
        precision = job.context.precision
        return Carried(
            job.stage.gives,
            frozen.finished,
            lambda: settled_model(frozen, data.dev, precision=precision),
            frozen,
        )

    def fit(self, job: Job[V], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Train the layers; runs that begin with the same stages share them."""
        frozen: Frozen = carried.state
        with place.kept(job, frozen.cache.fingerprint) as options:
            report = self.learn(job, data, frozen, {**options, "emit": job.context.emit})
        return stage_report(job, report, data)

    @abstractmethod
    def learn(self, job: Job[V], data: StageData, frozen: Frozen, options: dict[str, Any]) -> FitReport:
        """Train this kind's layers."""

    def pack(self, data: StageData, numbers: Callable[[Sequence[str]], list[int]]) -> dict[str, Any] | None:
        """Rated rows and translations."""
        return pack_rated(data, numbers)

    def unpack(self, job: Job[V], kept: Mapping[str, Any], texts: Sequence[str]) -> StageData:
        """The inverse."""
        return unpack_rated(job, kept, texts)

    def compared(self, job: Job[V], data: StageData) -> list[Measured]:
        """The stage's relation, by the metric of its dev pairs."""
        return [Measured(one, job.stage.select_metric) for one in job.relations.values()]

    def untrained(self, job: Job[V], data: StageData, former: Carried) -> nn.Module:
        """The raw encoder, whose cosine is put on the relation's scale."""
        frozen = _begin(job, former.encoder)
        return settled_model(frozen, data.dev, precision=job.context.precision)


class ParallelRunner(VectorRunner[ParallelStage]):
    """Stage 1 of the multilingual method: separate meaning from language on translations."""

    def read(self, job: Job[ParallelStage], shared: Shared) -> StageData:
        """Read translations, and rated dev pairs."""
        stage = job.stage
        notes: list[str] = []
        parallel = _translations(job, shared, notes)
        if not parallel:
            raise DataError(
                f"stage {job.number} has no parallel text left, because hold_out covers every language pair. "
                "Hold out fewer languages or add parallel text."
            )
        leaks = LeakFilter.of(stage, job.context.data_dir)
        rows, dev = read_rated(job, RatedSpec((), stage.dev, leaks, 0.0, parallel=parallel), notes)
        return rated_data(job, rows, dev, notes)

    def plan(self, job: Job[ParallelStage], data: StageData, carried: Carried) -> Plan:
        """Translations, languages, epochs."""
        _check_dev(job, data)
        stage, parallel = job.stage, data.rows.parallel
        codes = sorted({code for text in parallel for code in (text.language_a, text.language_b)})
        held = f" and rated pairs of {data.dev_sizes()}" if data.dev else ""
        return Plan(
            f"{_count_translations(parallel)} in {counted(len(codes), 'language')} ({', '.join(codes)}); "
            f"dev set: {stage.dev_share:.0%} of them{held}",
            f"separates meaning from language ({stage.form} form), batch size {stage.batch_size}, "
            f"{_course(job)}",
            notes=data.notes,
        )

    def learn(
        self, job: Job[ParallelStage], data: StageData, frozen: Frozen, options: dict[str, Any]
    ) -> FitReport:
        """Separate meaning from language; only the layers that lead from e to m are kept."""
        stage, seed = job.stage, job.recipe.seed
        vectors, languages = parallel_vectors(frozen, data.rows.parallel, frozen.layers)
        with by_seed(job):
            split = MeaningSplit(
                vectors.vectors.shape[1],
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
            rated_before=(lambda: dev(frozen.layers)) if dev else None,
            select=stage.select_by,
        )
        report = fit_vectors(split, task, _settings(stage, seed), **options)
        if report.best_step == 0:
            return report
        _warn_of_reconstruction(loss, report, job.context.tell)
        frozen.split = split
        frozen.languages |= set(languages)
        frozen.layers += split.adapters()
        return report


class RefineRunner(VectorRunner[RefineStage]):
    """Stage 2 of the multilingual method: two more layers, learnt from rated pairs."""

    def read(self, job: Job[RefineStage], shared: Shared) -> StageData:
        """Read rated pairs, and translations that are kept aligned during training."""
        stage = job.stage
        notes: list[str] = []
        parallel = _translations(job, shared, notes)
        leaks = LeakFilter.of(stage, job.context.data_dir)
        wanted = RatedSpec(stage.data, stage.dev, leaks, stage.dev_share, parallel=parallel)
        rows, dev = read_rated(job, wanted, notes)
        return rated_data(job, rows, dev, notes)

    def plan(self, job: Job[RefineStage], data: StageData, carried: Carried) -> Plan:
        """Rated pairs, translations, epochs."""
        _check_dev(job, data)
        stage, rows = job.stage, data.rows
        beside = f" and {_count_translations(rows.parallel)}" if rows.parallel else ""
        return Plan(
            f"{counted(len(rows.train), 'rated pair')}{beside}; dev set: {data.dev_sizes()}",
            f"refines meaning with the {stage.loss} loss, batch size {stage.batch_size}, {_course(job)}",
            notes=data.notes,
        )

    def learn(
        self, job: Job[RefineStage], data: StageData, frozen: Frozen, options: dict[str, Any]
    ) -> FitReport:
        """Train the new layers so that the cosine after them follows the ratings."""
        stage, seed, rows = job.stage, job.recipe.seed, data.rows
        [relation] = job.relations.values()
        # Its ratings lie on its own scale, whatever the stage before it was rated on.
        frozen.relation, frozen.objective = relation, Objective(relation, "cosine", stage.loss)
        before = [] if stage.joint else list(frozen.layers)
        rated = rated_vectors(frozen, rows, before)
        with by_seed(job):
            new = _refining(stage, rated.vectors.shape[1])
        learnt = [*frozen.layers, *new] if stage.joint else new
        cosine_map = CosineMap(stage.map)
        dev = RatedDev(frozen, data.dev, stage.select_metric)

        def evaluate(added: Sequence[Adapter]) -> dict[str, float]:
            found = dev([*frozen.layers, *added])
            return {"score": found["rated"], **found}

        task = RatedTask(
            nn.Sequential(*learnt),
            cosine_map,
            make_loss(stage.loss, "cosine", lo=relation.lo, hi=relation.hi, unit=relation.unit),
            rated,
            evaluate=lambda: evaluate(new),
            at_start=lambda: evaluate(()),
            batch_size=stage.batch_size,
            seed=seed,
            grouped=LOSSES[stage.loss].grouped,
            alignment=_alignment(frozen, stage, rows, before),
        )
        report = fit_vectors(nn.ModuleList([*learnt, cosine_map]), task, _settings(stage, seed), **options)
        if report.best_step == 0:
            return report
        frozen.layers += new
        frozen.pairs |= {record.language for record in rows.train if record.language}
        frozen.languages |= {code for pair in frozen.pairs for code in pair.split("-")}
        # A loss that only ranks leaves the level free: a straight line is fitted to dev afterwards.
        bend = "identity" if LOSSES[stage.loss].ranks else stage.map
        frozen.objective = Objective(relation, "cosine", stage.loss, map=bend)
        frozen.line = cosine_map.line()
        return report


def _begin(job: Job[Any], open_encoder: Callable[[], SentenceTransformer]) -> Frozen:
    """The frozen encoder of the first stages; its weights are not read if its files are already known."""
    spec, precision = job.recipe.encoder, job.context.precision
    [relation] = job.relations.values()

    def find() -> Identity:
        return identify(open_encoder(), precision=precision)

    def open_cache() -> EmbeddingCache:
        files = None if job.context.encoder is not None else encoder_digests(spec)
        key = [spec.model_dump(mode="json"), files, precision, versions()]
        if not files:
            identity = find()
        else:
            identity = remembered_identity(key, find, unchanged=lambda: encoder_digests(spec) == files)
        return EmbeddingCache(open_encoder, identity, name=spec.name, precision=precision)

    return Frozen(
        relation,
        open_encoder=open_encoder,
        open_cache=open_cache,
        progress=lambda done, total: job.context.emit(FitEvent("encode", done, total)),
    )


def settled_model(frozen: Frozen, dev: Sequence[DevSet], *, precision: str) -> PairModel:
    """The finished model of a recipe whose encoder stays frozen: it answers by the cosine."""
    model = PairModel(frozen.finished(), [frozen.objective])
    model.frozen = frozen.part()
    head = model.heads[frozen.objective.head_key]
    if isinstance(head, CosineHead) and not LOSSES[frozen.objective.loss].ranks:
        head.set_line(*frozen.line)
    measured = [Measured(one, one.metric) for one in model.relations]
    let_dev_choose(Predictor(model, precision=precision), dev, measured)
    return model


def _translations(job: Job[Any], shared: Shared, notes: list[str]) -> list[ParallelText]:
    stage = job.stage
    against = [name for name in stage.filter_against if is_parallel_corpus(name)]
    leaks = SideFilter.of(stage, job.context.data_dir, against=against)
    return read_translations(job, stage.parallel, leaks, shared, notes)


def _check_dev(job: Job[Any], data: StageData) -> None:
    """Raise an error if the dev pairs cannot tell models apart, before anything is encoded."""
    if data.dev:
        check_dev(data.dev, [Measured(one, job.stage.select_metric) for one in job.relations.values()])


def _count_translations(parallel: Sequence[ParallelText]) -> str:
    return counted(sum(len(text) for text in parallel), "translation")


def _course(job: Job[Any]) -> str:
    stage = job.stage
    return (
        f"at most {counted(stage.epochs, 'epoch')}, Adam with learning rate {stage.learning_rate:g}, "
        f"seed {job.recipe.seed}"
    )


def parallel_vectors(
    frozen: Frozen, texts: Sequence[ParallelText], layers: Sequence[nn.Module]
) -> tuple[ParallelVectors, tuple[str, ...]]:
    """Translations as row numbers into the vectors of their distinct texts, and the languages' names."""
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


def rated_vectors(frozen: Frozen, data: RatedRows, layers: Sequence[nn.Module]) -> RatedVectors:
    """Rated pairs as row numbers into the vectors of their distinct texts after unchanged layers."""
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
        np.array([data.groups[row] for row in kept], dtype=np.int64),
        None if data.weights is None else np.array([data.weights[row] for row in kept]),
    )


def _rated_rows(records: Sequence[Record], relation: Relation) -> tuple[list[str], list[str], list[Any]]:
    rows = [r for r in records if r.values.get(relation.name) is not None]
    return [r.a for r in rows], [r.b for r in rows], [r.values[relation.name] for r in rows]


def _alignment(
    frozen: Frozen, stage: RefineStage, data: RatedRows, layers: Sequence[nn.Module]
) -> ParallelAlignment | None:
    if not data.parallel or not stage.align:
        return None
    vectors, languages = parallel_vectors(frozen, data.parallel, layers)
    frozen.languages |= set(languages)
    return ParallelAlignment(vectors, stage.align, stage.temperature, stage.align_batch)


def _refining(stage: RefineStage, width: int) -> list[Adapter]:
    first = [Convolution(width, stage.convolution)] if stage.convolution else []
    return [
        *first,
        Refinement(width, hidden=stage.hidden, activation=stage.activation, residual=stage.residual),
    ]


def _settings(stage: VectorStage, seed: int) -> VectorSettings:
    shared = {name: getattr(stage, name) for name in VectorSettings.__dataclass_fields__ if name != "seed"}
    return VectorSettings(**shared, seed=seed)


def _warn_of_reconstruction(loss: SplitLoss, report: FitReport, tell: Callable[[str], None]) -> None:
    last = {name: value for name, value in report.history[-1].items() if name in loss.weights}
    share = loss.share(last, "reconstruction")
    if loss.weights["reconstruction"] and share < _SMALL_SHARE:
        tell(
            f"  reconstruction is only {100 * share:.2f} % of the loss, so it constrains nothing. Set "
            'reconstruction = "sum" or "cosine" to give it weight.'
        )
