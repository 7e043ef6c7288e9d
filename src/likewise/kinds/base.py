"""Runner: how a kind of stage is read, started, planned and trained; what passes between it and the loop.

    check → read → verify → start → plan → fit → the next stage continues from what is carried

`recipes.run` has the only loop. A runner knows its own spec, rows and model; nothing else looks into them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from likewise.errors import UsageError
from likewise.kinds.building import build_relations, build_settings
from likewise.kinds.context import RunContext
from likewise.records import Record, Relation
from likewise.registry import find_kind, resolve_class
from likewise.schema.base import OptimisedStage, Stage
from likewise.schema.recipe import Recipe
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from likewise.data.parallel import ParallelText
    from likewise.kinds.devscore import Measured
    from likewise.schema.frozen import ParallelSpec
    from likewise.training.settings import FitSettings
    from likewise.training.state import FitReport

S = TypeVar("S", bound=Stage)


@dataclass(frozen=True)
class Job(Generic[S]):
    """One stage of a run: the recipe, its number, its spec, and where the run reads and reports."""

    recipe: Recipe
    number: int
    stage: S
    context: RunContext
    name: str = ""

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The relations that the stage's rated rows are read for."""
        known = build_relations(self.recipe)
        return {name: known[name] for name in self.stage.rates(known)}

    def table(self, source: str) -> object:
        """What a data entry names: a table that was handed over in Python, or a file or corpus by name."""
        return self.context.tables.get(source, source)

    @property
    def title(self) -> str:
        """What reports and cards call the stage."""
        return self.name or self.stage.name or f"stage {self.number}"

    def settings(self) -> FitSettings:
        """The optimisation of the stage in this run."""
        context, stage = self.context, cast(OptimisedStage, self.stage)
        return build_settings(
            stage,
            seed=self.recipe.seed,
            device=context.device,
            precision=context.precision,
            trackers=context.trackers,
        )


# Raised when stages begin or are selected by other rules: what was kept under earlier ones is not reused.
RULES = 5
# A dev set with fewer rated rows does not count where another has as many.
FEWEST_BESIDE_OTHERS = 30


@dataclass(frozen=True, slots=True)
class DevSet:
    """A named list of rated pairs or labelled texts."""

    name: str
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class StageData:
    """What one stage trains on and is selected by. Only its runner looks into `rows`.

    `prints` are fingerprints of all that was read, `texts` the training texts, for vocabularies; `notes` say
    what the leak filter and the reader left out.
    """

    rows: Any
    dev: tuple[DevSet, ...]
    notes: list[str]
    prints: Mapping[str, str]
    texts: Callable[[], Iterator[str]]

    def dev_sizes(self) -> str:
        """Dev sets and how many rows each has, in words."""
        large = any(len(entry.records) >= FEWEST_BESIDE_OTHERS for entry in self.dev)
        return ", ".join(
            f"{entry.name} {len(entry.records):,}"
            + (" (too few to count)" if large and len(entry.records) < FEWEST_BESIDE_OTHERS else "")
            for entry in self.dev
        )


@dataclass
class Shared:
    """What the stages of one run share while they are read: parallel text that several of them name."""

    translations: dict[ParallelSpec, ParallelText] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """What one stage hands to the next: by what it is called, as an encoder, and as a model that answers.

    Both are functions, because a run over cached vectors opens its encoder only at the end. A stage that
    trains the encoder begins on `encoder()`; `model()` is what answers if nothing follows. `state` is for
    stages of the same kind.
    """

    gives: str
    encoder: Callable[[], SentenceTransformer]
    model: Callable[[], nn.Module]
    state: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stage will do, in sentences: rows, what is learnt, the course of training, and notes."""

    what: str
    learns: str
    course: str = ""
    notes: Sequence[str] = ()

    def lines(self, job: Job[Any]) -> list[str]:
        """The plan as it is printed before step 0."""
        first = f"stage {job.number} {job.stage.name}".rstrip() + f": {self.what}"
        return [first, *(f"  {line}" for line in (self.learns, self.course, *self.notes) if line)]


class Place(Protocol):
    """Where a stage keeps its checkpoints (`recipes.runfiles`)."""

    @property
    def resumable(self) -> bool:
        """Whether a run that is stopped can go on."""

    def options(self, number: int) -> dict[str, Any]:
        """`run` and `resume`, as `training.fit` takes them."""

    def kept(self, job: Job[Any], encoder: str) -> AbstractContextManager[dict[str, Any]]:
        """The same where finished stages are shared with other runs; `encoder` is a fingerprint."""


class Runner(ABC, Generic[S]):
    """What the loop over stages asks of a kind: four methods are its own, the others have a default."""

    # Whether its training changes the encoder that it begins on.
    moves_encoder: ClassVar[bool] = True

    def check(self, job: Job[S]) -> None:
        """Refuse what cannot be trained, before anything is read."""

    @abstractmethod
    def read(self, job: Job[S], shared: Shared) -> StageData:
        """Read, filter and split the rows; nothing is encoded."""

    def verify(self, job: Job[S], data: StageData, encoder: Callable[[], SentenceTransformer]) -> None:
        """Refuse what the rows and the encoder show to be impossible, before anything is written.

        The encoder is opened, so that a name that leads nowhere is known by then.
        """
        encoder()

    @abstractmethod
    def start(self, job: Job[S], data: StageData, former: Carried) -> Carried:
        """The model before the first step: continued from `former`, or begun on its encoder."""

    @abstractmethod
    def plan(self, job: Job[S], data: StageData, carried: Carried) -> Plan:
        """What the stage will do."""

    @abstractmethod
    def fit(self, job: Job[S], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Train what is carried; the stage's report."""

    def pack(self, data: StageData, numbers: Callable[[Sequence[str]], list[int]]) -> dict[str, Any] | None:
        """What was read, ready for JSON, texts by number; None if it is not kept for the next run."""
        return None

    def unpack(self, job: Job[S], kept: Mapping[str, Any], texts: Sequence[str]) -> StageData:
        """The inverse of `pack`."""
        raise UsageError(f"rows of kind {job.stage.kind!r} are not kept")

    def untrained(self, job: Job[S], data: StageData, former: Carried) -> nn.Module:
        """The model of a baseline that learns nothing: the encoder as it is, answering by the cosine."""
        return former.model()

    def compared(self, job: Job[S], data: StageData) -> Sequence[Measured]:
        """The relations on which its dev rows compare the model with what there was before, and how."""
        return ()

    def settings_for(self, job: Job[S], rows: int, *, rehearsed: bool, fixed: Sequence[str]) -> S:
        """The stage as it trains on what is added to a model, but for the keys in `fixed`."""
        return job.stage

    def merge(self, fresh: StageData, known: StageData, again: Sequence[int]) -> StageData:
        """The rows of what is added, and those of the old ones with these numbers; refused by most kinds."""
        raise UsageError("nothing can be added to this model: train one that learns both")

    def scorer(self, job: Job[S], sets: Sequence[DevSet]) -> Callable[[Any], dict[str, float]]:
        """Dev numbers of a model, and their mean as `score`, for whoever adds to it."""
        raise UsageError(f"a stage of kind {job.stage.kind!r} has no dev rows to be measured on")


def runner_of(stage: Stage) -> Runner[Any]:
    """The runner of a stage's kind."""
    kind = find_kind(stage.kind)
    if kind is None:
        raise UsageError(f"kind {stage.kind!r} has no runner (likewise.registry)")
    made: Runner[Any] = resolve_class(kind.runner)()
    return made


def stage_report(job: Job[Any], report: FitReport, data: StageData, **more: Any) -> dict[str, Any]:
    """What a stage did, and on which rows."""
    about = {"leakage": data.notes, "fingerprints": dict(data.prints)}
    return {"name": job.title, **asdict(report), **about, **more}


def course_of(job: Job[Any], steps: int) -> str:
    """The course of a stage that takes so many batches an epoch, in words."""
    stage = job.stage
    updates = math.ceil(steps / stage.accumulation)
    total = stage.max_steps or math.ceil(updates * stage.epochs)
    return (
        f"{counted(total, 'step')}, {updates:,} an epoch, batch {stage.batch_size}, "
        f"{stage.optimiser} at {stage.learning_rate:g}, seed {job.recipe.seed}"
    )


@contextmanager
def by_seed(job: Job[Any]) -> Iterator[None]:
    """Draw what a model begins with by the recipe's seed, and leave the global generator alone."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.recipe.seed)
        yield


def run_options(job: Job[Any], place: Place) -> dict[str, Any]:
    """What every call of `training.fit` in a stage takes."""
    return {
        "settings": job.settings(),
        "metric": "score",
        "emit": job.context.emit,
        "resumable": place.resumable,
        **place.options(job.number),
    }
