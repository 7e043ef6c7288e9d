"""Runner: how a kind of stage is read, started, planned and trained, and what it exchanges with the loop.

    check → read → verify → start → plan → fit → the next stage continues from what is carried

The only loop over stages is in `recipes.run`. Only a runner looks into its own spec, rows and model.
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
    """One stage of a run: the recipe, the stage's number and spec, and the context of the run."""

    recipe: Recipe
    number: int
    stage: S
    context: RunContext
    name: str = ""

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The relations whose ratings the stage reads."""
        known = build_relations(self.recipe)
        return {name: known[name] for name in self.stage.rates(known)}

    def table(self, source: str) -> object:
        """The table that a data entry names: one passed in Python, or else the name of a file or corpus."""
        return self.context.tables.get(source, source)

    @property
    def title(self) -> str:
        """The stage's name in reports and model cards."""
        return self.name or self.stage.name or f"stage {self.number}"

    def settings(self) -> FitSettings:
        """The optimisation settings of the stage in this run."""
        context, stage = self.context, cast(OptimisedStage, self.stage)
        return build_settings(
            stage,
            seed=self.recipe.seed,
            device=context.device,
            precision=context.precision,
            trackers=context.trackers,
        )


# Raised when stages begin or are selected by other rules: what was kept under earlier ones is not reused.
RULES = 6
# A dev set with fewer rated rows does not count where another has as many.
FEWEST_BESIDE_OTHERS = 30


@dataclass(frozen=True, slots=True)
class DevSet:
    """A named list of rated pairs or labelled texts."""

    name: str
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class StageData:
    """The training rows and dev sets of one stage. Only its runner looks into `rows`.

    `prints` are fingerprints of everything that was read. `texts` yields the training texts, from which
    vocabularies are made. `notes` say what the leak filter and the reader left out.
    """

    rows: Any
    dev: tuple[DevSet, ...]
    notes: list[str]
    prints: Mapping[str, str]
    texts: Callable[[], Iterator[str]]

    def dev_sizes(self) -> str:
        """The dev sets and their numbers of rows, in words: "dev.csv (24 rows)"."""
        if not self.dev:
            return "none"
        large = any(len(entry.records) >= FEWEST_BESIDE_OTHERS for entry in self.dev)
        return ", ".join(
            f"{entry.name} ({counted(len(entry.records), 'row')}"
            + (", too few to count)" if large and len(entry.records) < FEWEST_BESIDE_OTHERS else ")")
            for entry in self.dev
        )


@dataclass
class Shared:
    """Parallel text that several stages of a run name; it is read once and shared."""

    translations: dict[ParallelSpec, ParallelText] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """What one stage hands to the next.

    `gives` names it. `encoder()` is the encoder on which a stage that trains the encoder begins. `model()` is
    the model that answers if no stage follows. Both are functions, because a run over cached vectors opens
    its encoder only at the end. `state` is for stages of the same kind.
    """

    gives: str
    encoder: Callable[[], SentenceTransformer]
    model: Callable[[], nn.Module]
    state: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A stage's plan in words: its rows, what it learns, the course of training, and notes."""

    what: str
    learns: str
    course: str = ""
    notes: Sequence[str] = ()

    def lines(self, job: Job[Any]) -> list[str]:
        """The lines that are printed before step 0."""
        first = f"stage {job.number} {job.stage.name}".rstrip() + f": {self.what}"
        return [first, *(f"  {line}" for line in (self.learns, self.course, *self.notes) if line)]


class Place(Protocol):
    """The place of a stage's checkpoints (`recipes.runfiles`)."""

    @property
    def resumable(self) -> bool:
        """Whether a stopped run can be resumed."""

    def options(self, number: int) -> dict[str, Any]:
        """The arguments `run`, `resume` and, where weights are changed at the end, `settle` of a fit."""

    def kept(self, job: Job[Any], encoder: str) -> AbstractContextManager[dict[str, Any]]:
        """The same arguments for stages whose results other runs share; `encoder` is a fingerprint."""


class Runner(ABC, Generic[S]):
    """What the loop over stages calls. Each kind writes four of the methods; the others have defaults."""

    # Whether its training changes the encoder that it begins on.
    moves_encoder: ClassVar[bool] = True

    def check(self, job: Job[S]) -> None:
        """Raise an error for a stage that cannot be trained, before anything is read."""

    @abstractmethod
    def read(self, job: Job[S], shared: Shared) -> StageData:
        """Read, filter and split the rows; nothing is encoded."""

    def verify(self, job: Job[S], data: StageData, encoder: Callable[[], SentenceTransformer]) -> None:
        """Raise an error for rows or an encoder that make training impossible, before anything is written.

        This opens the encoder, so that a wrong name is reported here.
        """
        encoder()

    @abstractmethod
    def start(self, job: Job[S], data: StageData, former: Carried) -> Carried:
        """Make the starting model: continue from `former`, or begin on its encoder."""

    @abstractmethod
    def plan(self, job: Job[S], data: StageData, carried: Carried) -> Plan:
        """Describe what the stage will do."""

    @abstractmethod
    def fit(self, job: Job[S], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Train the carried model and return the stage's report."""

    def pack(self, data: StageData, numbers: Callable[[Sequence[str]], list[int]]) -> dict[str, Any] | None:
        """The rows in a JSON-ready form with texts as numbers; None if they are not kept for the next run."""
        return None

    def unpack(self, job: Job[S], kept: Mapping[str, Any], texts: Sequence[str]) -> StageData:
        """The inverse of `pack`."""
        raise UsageError(f"rows of a stage of kind {job.stage.kind!r} are not kept between runs")

    def untrained(self, job: Job[S], data: StageData, former: Carried) -> nn.Module:
        """The baseline model that needs no training: the raw encoder, which answers by its cosine."""
        return former.model()

    def compared(self, job: Job[S], data: StageData) -> Sequence[Measured]:
        """The relations and metrics by which the trained model is compared with the baseline on dev."""
        return ()

    def settings_for(self, job: Job[S], rows: int, *, rehearsed: bool, fixed: Sequence[str]) -> S:
        """The stage's settings for training on what is added to a model; keys in `fixed` stay as they are."""
        return job.stage

    def merge(self, fresh: StageData, known: StageData, again: Sequence[int]) -> StageData:
        """The new rows, and the old rows whose numbers are in `again`; most kinds raise an error."""
        raise UsageError(
            "nothing can be added to a model of this kind. Train a new model that learns the old and the new "
            "relations together."
        )

    def scorer(self, job: Job[S], sets: Sequence[DevSet]) -> Callable[[Any], dict[str, float]]:
        """A function of the model that returns its dev numbers and their mean as `score`, for updates."""
        raise UsageError(f"a stage of kind {job.stage.kind!r} has no dev rows on which it can be measured")


def runner_of(stage: Stage) -> Runner[Any]:
    """The runner of a stage's kind."""
    kind = find_kind(stage.kind)
    if kind is None:
        raise UsageError(f"kind {stage.kind!r} has no runner. Register one in likewise.registry.")
    made: Runner[Any] = resolve_class(kind.runner)()
    return made


def stage_report(job: Job[Any], report: FitReport, data: StageData, **more: Any) -> dict[str, Any]:
    """The report of a stage: what it did and on which rows."""
    about = {"leakage": data.notes, "fingerprints": dict(data.prints)}
    return {"name": job.title, **asdict(report), **about, **more}


def course_of(job: Job[Any], steps: int) -> str:
    """The course of training in words; `steps` is the number of batches in an epoch."""
    stage = job.stage
    updates = math.ceil(steps / stage.accumulation)
    total = stage.max_steps or math.ceil(updates * stage.epochs)
    return (
        f"{counted(total, 'step')} ({updates:,} per epoch), batch size {stage.batch_size}, "
        f"{stage.optimiser} with learning rate {stage.learning_rate:g}, seed {job.recipe.seed}"
    )


@contextmanager
def by_seed(job: Job[Any]) -> Iterator[None]:
    """Draw a model's first weights with the recipe's seed and leave the global random state unchanged."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.recipe.seed)
        yield


def run_options(job: Job[Any], place: Place) -> dict[str, Any]:
    """The arguments that every call of `training.fit` in a stage takes."""
    return {
        "settings": job.settings(),
        "metric": "score",
        "emit": job.context.emit,
        "resumable": place.resumable,
        **place.options(job.number),
    }
