"""Stage kind `distil`: an encoder learns the cosines of its teachers on texts without ratings.

    texts → teachers' vectors (cache) → nearest neighbours → batches of neighbours → loss between cosines

`methods.distillation` has the loss. Rated dev pairs select the step. Without any, the agreement with the
teachers on held-out texts selects it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.encoders.features import TextFeatures
from likewise.encoders.vectors import encode_texts
from likewise.errors import Problem, RecipeError
from likewise.kinds.answers import cosine_baseline, pair_scorer
from likewise.kinds.base import (
    Carried,
    Job,
    Place,
    Plan,
    Runner,
    Shared,
    StageData,
    by_seed,
    course_of,
    run_options,
    stage_report,
)
from likewise.kinds.chunks import DistinctTexts, cut_notes
from likewise.kinds.devscore import Measured, check_dev
from likewise.kinds.leaks import LeakFilter
from likewise.kinds.reading import read_dev, records_print, texts_print
from likewise.kinds.teachers import NearTexts, ask_teachers, check_teacher
from likewise.kinds.texts import stage_texts
from likewise.methods.distillation import CosineLearner, Taught, mean_cosine, random_pairs
from likewise.methods.pairs import PairModel
from likewise.predict.pairs import Predictor, cosine_model, raw_model
from likewise.schema.distil import DistilStage
from likewise.training.sampler import Batches, Share
from likewise.wording import counted

if TYPE_CHECKING:
    from torch import nn

# Texts on which the starting encoder's mean cosine and the agreement with the teachers are measured.
_MEASURED_TEXTS = 2000
# Fewer held-out texts say little about the agreement.
_FEWEST_HELD_OUT = 10


@dataclass(frozen=True, slots=True)
class TextRows:
    """All distinct texts, and the numbers of those that are trained on and of those that are held out."""

    texts: list[str]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]


class DistilRunner(Runner[DistilStage]):
    """Runs the stages that learn the cosines of other models."""

    def check(self, job: Job[DistilStage]) -> None:
        """Raise an error for an encoder that is a function without weights."""
        if job.context.encoder is not None:
            found = "this stage trains the encoder, but the encoder is a function and cannot be trained"
            raise RecipeError([Problem(f"stage.{job.number}", found, "name a model as the encoder")])
        for name in job.stage.teachers:
            check_teacher(name)

    def read(self, job: Job[DistilStage], shared: Shared) -> StageData:
        """Read texts and rated dev pairs, and hold some of the texts out."""
        stage = job.stage
        notes: list[str] = []
        texts = stage_texts(job, notes)
        leaks = LeakFilter.of(stage, job.context.data_dir)
        dev = read_dev(job, stage.dev, leaks, notes)
        order = np.random.default_rng([job.recipe.seed, 7]).permutation(len(texts))
        held = min(len(texts) // 2, max(_FEWEST_HELD_OUT, round(len(texts) * stage.held_out)))
        rows = TextRows(texts, np.sort(order[held:]), np.sort(order[:held]))
        prints = {"train": texts_print([(text, "") for text in texts])}
        prints |= {entry.name: records_print(entry.records) for entry in dev}
        return StageData(rows, dev, notes, prints, lambda: iter(texts))

    def start(self, job: Job[DistilStage], data: StageData, former: Carried) -> Carried:
        """Continue with the model of the stage before, or begin with the encoder, which answers by cosine."""
        if former.gives == job.stage.gives:
            model: Any = former.model()
        else:
            with by_seed(job):
                model = cosine_model(former.encoder(), list(job.relations.values()))
        return Carried(job.stage.gives, lambda: model.encoder, lambda: model, TextFeatures(model.encoder))

    def plan(self, job: Job[DistilStage], data: StageData, carried: Carried) -> Plan:
        """Texts, teachers, steps."""
        stage, rows = job.stage, data.rows
        if data.dev:
            check_dev(data.dev, self.compared(job, data))
        selects = data.dev_sizes() if data.dev else f"{counted(len(rows.held_out), 'held-out text')}"
        drawn = min(stage.drawn, len(rows.texts) - 1)
        return Plan(
            f"{counted(len(rows.train), 'text')}; dev set: {selects}",
            f"learns the cosines of {', '.join(stage.teachers)}; {drawn} of the {stage.neighbours} nearest "
            "neighbours join each text of a batch",
            course_of(job, _steps(stage, rows)),
            [*data.notes, *cut_notes(carried.state, rows.texts), *_scale_note(job)],
        )

    def fit(self, job: Job[DistilStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Ask the teachers, and train the encoder to agree with them."""
        from likewise.training.fit import fit

        stage, rows, context = job.stage, data.rows, job.context
        model: PairModel = carried.model()  # type: ignore[assignment]
        features: TextFeatures = carried.state or TextFeatures(model.encoder)
        taught, near = ask_teachers(stage.teachers, rows.texts, stage.neighbours, context)
        floor = mean_cosine(_sample_vectors(model, rows.texts, features, context.precision))
        learner = CosineLearner(model.encoder, taught, floor=floor, near=stage.near)
        agreement = TeacherAgreement(rows, taught, near, features, context.precision)
        scorer = None
        if data.dev:
            measured = self.compared(job, data)
            scorer = pair_scorer(data.dev, lambda _: measured, precision=context.precision)

        def evaluate(_: nn.Module) -> dict[str, float]:
            agrees = agreement(model)
            return {"agreement": agrees, **({"score": agrees} if scorer is None else scorer(model))}

        def prepare(share: Share) -> Batches:
            learner.ask(taught.to(model.encoder.device))
            features.add(rows.texts)
            return text_batches(rows, near, stage, job.recipe.seed, features, share)

        options = run_options(job, place)
        report = fit(learner, prepare, evaluate=evaluate, **options)
        features.forget()
        if report.best_step == 0:
            context.tell("  no step was better than the encoder before the stage, which was therefore kept")
        if scorer is not None:
            scorer(model)  # what answers is chosen for the weights that are kept
        about = {"unit": "text", "teachers": list(stage.teachers), "agreement": agreement(model)}
        return stage_report(job, report, data, **about)

    def compared(self, job: Job[DistilStage], data: StageData) -> list[Measured]:
        """The relation that the stage's dev rows rate."""
        return [Measured(one, one.metric) for one in job.relations.values()]

    def untrained(self, job: Job[DistilStage], data: StageData, former: Carried) -> nn.Module:
        """The raw encoder, put on the relation's scale with the dev rows."""
        if not data.dev:
            return raw_model(former.encoder())
        relations, measured = list(job.relations.values()), self.compared(job, data)
        return cosine_baseline(
            former.encoder(), relations, data.dev, lambda _: measured, job.context.precision
        )


class TeacherAgreement:
    """Pearson's correlation of an encoder's cosines with the teachers', on held-out texts.

    Each held-out text is paired with one of its neighbours and with a random text.
    """

    def __init__(
        self, rows: TextRows, taught: Taught, near: NearTexts, features: TextFeatures, precision: str
    ) -> None:
        rng = np.random.default_rng(3)
        held = rows.held_out[: _MEASURED_TEXTS // 2]
        neighbours = near[held, rng.integers(0, near.shape[1], len(held))]
        others = rng.integers(0, len(rows.texts), len(held))
        self._a, self._b = np.tile(held, 2), np.concatenate([neighbours, others])
        self._gold = taught.proximity_of(self._a, self._b)
        self._texts, self._features, self._precision = rows.texts, features, precision

    def __call__(self, model: PairModel) -> float:
        """The correlation for the model's present weights."""
        training = model.training
        predictor = Predictor(model.eval(), precision=self._precision, cache=0)
        chosen = [(self._texts[a], self._texts[b]) for a, b in zip(self._a, self._b, strict=True)]
        said = predictor.embedding().cosines(chosen)
        model.train(training)
        if np.ptp(said) == 0 or np.ptp(self._gold) == 0:
            return 0.0
        return float(np.corrcoef(said, self._gold)[0, 1])


def text_batches(
    rows: TextRows,
    near: NearTexts,
    stage: DistilStage,
    seed: int,
    features: TextFeatures,
    share: Share,
) -> Batches:
    """Batches of texts with some of their neighbours, which depend only on the seed and the epoch.

    An item is the number of a text; a process without a batch of its own gets negative ones, which have no
    weight.
    """
    steps = _steps(stage, rows)
    held = np.zeros(len(rows.texts), dtype=bool)
    held[rows.held_out] = True

    def of_epoch(epoch: int) -> Iterator[list[int]]:
        rng = np.random.default_rng([seed, epoch, 11])
        order = rng.permutation(rows.train)
        for number in range(steps):
            first = order[number * stage.batch_size : (number + 1) * stage.batch_size]
            beside = rng.permuted(near[first], axis=1)[:, : stage.drawn].ravel()
            chosen = np.unique(np.concatenate([first, beside[~held[beside]]]))
            yield chosen.tolist() if len(chosen) > 1 else rows.train[:2].tolist()

    def collate(items: Sequence[int]) -> dict[str, Any]:
        idle = items[0] < 0
        numbers = [-1 - item for item in items] if idle else list(items)
        texts = [rows.texts[number] for number in numbers]
        distinct = DistinctTexts(texts, features, chunked=share.chunked, large=True)
        return {
            "chunks": distinct.chunks,
            "order": distinct.rows(texts),
            "texts": torch.tensor(numbers),
            "weight": 0.0 if idle else 1.0,
        }

    def idle(items: Sequence[int]) -> list[int]:
        return [-1 - item for item in items[:2]]

    return Batches(len(rows.train), steps, of_epoch, collate, idle, sliced=False)


def _scale_note(job: Job[DistilStage]) -> list[str]:
    """A line of the plan if the recipe's relation is not used, because no dev row rates it."""
    if job.stage.dev or not job.recipe.relation or len(job.recipe.stage) > 1:
        return []
    return ["without rated dev rows the model answers by its bare cosine, and the relation has no effect"]


def _steps(stage: DistilStage, rows: TextRows) -> int:
    """The number of batches in an epoch; the last texts of an epoch that fill no batch wait for the next."""
    return max(1, len(rows.train) // stage.batch_size)


def _sample_vectors(
    model: PairModel, texts: Sequence[str], features: TextFeatures, precision: str
) -> Vectors:
    """The encoder's vectors of some texts, drawn at random."""
    chosen = np.unique(random_pairs(len(texts), _MEASURED_TEXTS)[0])
    return encode_texts(model.encoder, [texts[row] for row in chosen], precision=precision, features=features)
