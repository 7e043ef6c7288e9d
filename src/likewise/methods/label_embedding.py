"""Classification whose labels are texts, with many tasks in one model.

The paper is Zhang, Xiao, Chen, Wang & Jin, "Multi-Task Label Embedding for Text Classification", 2017
(EMNLP 2018). The page is docs/methods/label_embedding.md.

    text    encoder         → X  B×m
    labels  label encoder   → Y  C×m     several texts of one label are averaged
    scores  matcher(X, Y)   → Z  B×C     softmax over the labels of one task
    steps   each takes a random task and one of its remaining batches; an epoch ends when none is left
    update  zero: labels are named; hot: training continues; cold: all tasks are trained again

Labels are an input: a task is added by naming its labels, without a new parameter. Texts and labels have
separate encoders (the paper) or share one. `one-hot` is the baseline without label texts: the same encoder
with one linear layer per task.

Where the parts are
    this file               LabelModel, its losses, how long texts are shortened
    matchers.py             texts against labels, B×C
    methods/label_texts.py  whether an encoder can read the labels
    encoders/lstm.py        the paper's LSTM with peepholes
    encoders/word2vec.py    its word vectors
    schema/labels.py        the keys of a recipe, what may be added
    kinds/labels.py         training
    predict/labels.py       Classifier: tasks, and labels that were never seen
    recipes                 labels-cardinality, -domain, -objective; each with -lstm, the paper's own

Not from the paper: sentence encoders that texts and labels share, rehearsed updates, affinity of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from likewise import ranks
from likewise.encoders.sentence import embedding_width
from likewise.errors import UsageError
from likewise.heads import parameter_name
from likewise.matchers import make_matcher
from likewise.records import Relation

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

LabelLoss = Literal["softmax", "bce", "positive"]
ONE_HOT = "one-hot"
# How much offsets of labels cost, and what they and 1 / temperature may be.
_OFFSET_PENALTY, _MOST_OFFSET, _SHARPNESS = 0.5, 20.0, (0.01, 100.0)
# The place of the label text in a template.
BLANK = "{}"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What turns the scores of a task into probabilities: softmax(scores / temperature + offsets)."""

    temperature: float
    offsets: tuple[float, ...]


class LabelModel(nn.Module):
    """Texts and labels through encoders, matched; one batch asks about one task."""

    family: ClassVar[str] = "labels"

    def __init__(
        self,
        encoder: SentenceTransformer,
        tasks: Sequence[Relation],
        *,
        matcher: str = "concat-mlp",
        hidden: int | None = None,
        loss: LabelLoss = "softmax",
        label_encoder: SentenceTransformer | None = None,
        weights: Mapping[str, float] | None = None,
        max_words: int | None = None,
        templates: Sequence[str] = (),
        calibrations: Mapping[str, Calibration] | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.label_encoder = encoder, label_encoder
        self.matcher_name, self.hidden, self.loss = matcher, hidden, loss
        self.max_words = max_words
        self.templates = tuple(templates)
        # Of the tasks that were calibrated.
        self.calibrations: dict[str, Calibration] = dict(calibrations or {})
        # Weights of the losses beside the loss of the labels; a stage's settings.
        self.contrast = self.hold = 0.0
        width = embedding_width(encoder)
        if label_encoder is not None and embedding_width(label_encoder) != width:
            raise UsageError(
                f"the vectors of texts have width {width}, but those of labels have width "
                f"{embedding_width(label_encoder)}. Choose encoders of the same width."
            )
        self.matcher = None if matcher == ONE_HOT else make_matcher(matcher, width, hidden=hidden)
        self.heads = nn.ModuleDict()
        self.tasks: tuple[Relation, ...] = ()
        # Names of the tasks that training rows are looked for; all if empty.
        self.learning: tuple[str, ...] = ()
        self.weights: dict[str, float] = {}
        self.set_tasks(tasks, weights)
        self.to(encoder.device)

    def set_tasks(self, tasks: Sequence[Relation], weights: Mapping[str, float] | None = None) -> None:
        """Replace the tasks; a matcher stays, one-hot heads stay where a task keeps its labels."""
        check_tasks(tasks)
        self.tasks = tuple(tasks)
        counts = {task.name: len(task.labels) for task in tasks}
        # A task with another number of labels must be calibrated again.
        self.calibrations = {
            name: one for name, one in self.calibrations.items() if counts.get(name) == len(one.offsets)
        }
        self.weights = {task.name: (weights or {}).get(task.name, 1.0) for task in tasks}
        if self.matcher is None:
            width = embedding_width(self.encoder)
            kept = {name: head for name, head in self.heads.items() if isinstance(head, nn.Linear)}
            self.heads = nn.ModuleDict(
                {
                    key: kept[key]
                    if key in kept and kept[key].out_features == len(task.labels)
                    else nn.Linear(width, len(task.labels)).to(self.encoder.device)
                    for key, task in ((parameter_name(one.name), one) for one in tasks)
                }
            )

    def options(self) -> dict[str, Any]:
        """What a model is made again with, JSON-ready; encoders, tasks and weights lie beside it."""
        names = ("hidden", "loss", "weights", "max_words")
        made = {"matcher": self.matcher_name, **{name: getattr(self, name) for name in names}}
        if self.templates:
            made["templates"] = list(self.templates)
        if self.calibrations:
            made["calibrations"] = {name: asdict(one) for name, one in self.calibrations.items()}
        return made

    def ways(self, task: Relation) -> list[tuple[str, int]]:
        """The label texts of a task in the templates, each with the number of its label."""
        return label_ways(task, self.templates)

    def matching_state(self) -> dict[str, Tensor]:
        """The parameters that are no encoder's."""
        state = self.state_dict()
        return {name: value for name, value in state.items() if name.startswith(("matcher.", "heads."))}

    def load_matching(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `matching_state`."""
        expected = self.matching_state()
        if set(state) != set(expected):
            raise UsageError(f"the matcher holds {sorted(state)}, expected {sorted(expected)}")
        self.load_state_dict({**self.state_dict(), **state})

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The tasks, as relations of one text."""
        return self.tasks

    def task(self, name: str) -> Relation:
        """The task of that name."""
        for task in self.tasks:
            if task.name == name:
                return task
        tasks = ", ".join(task.name for task in self.tasks)
        if not tasks:
            raise UsageError(
                f"the model has no task {name!r}, and no tasks of its own. Give labels in words."
            )
        raise UsageError(f"the model has no task {name!r}. Choose one of {tasks}.")

    @property
    def learnt(self) -> tuple[Relation, ...]:
        """The tasks that are being trained."""
        return tuple(task for task in self.tasks if not self.learning or task.name in self.learning)

    @property
    def reads_labels(self) -> bool:
        """Whether label texts matter: not to one-hot heads."""
        return self.matcher is not None

    def scores(self, task: str, x: Tensor, y: Tensor | None) -> Tensor:
        """Scores of texts for the labels of a task, B×C."""
        if self.matcher is None:
            found: Tensor = self.heads[parameter_name(task)](x)
        else:
            found = self.matcher(x, y)
        return found

    def probabilities(self, scores: Tensor, task: str = "") -> Tensor:
        """B×C: over the labels of a task they add up to 1, unless each label was learnt by itself (bce)."""
        known = self.calibrations.get(task)
        if known is not None:
            offsets = torch.tensor(known.offsets, dtype=scores.dtype, device=scores.device)
            scores = scores / known.temperature + offsets
        return scores.sigmoid() if self.loss == "bce" else scores.softmax(dim=-1)

    def forward(
        self,
        task: str,
        chunks: list[dict[str, Any]],
        rows: Tensor,
        targets: Tensor,
        labels: dict[str, Any] | None = None,
        owners: Tensor | None = None,
        idle: bool = False,
        before: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of one step: texts of one task, all of its labels.

        `rows` places the batch among the distinct texts of the chunks; `labels` holds every way to say a
        label, `owners` the label each of them says. `before` holds the starting encoder's vectors of the
        distinct texts. An `idle` process fills in with a row that weighs nothing.
        """
        distinct = encode_chunks(self.encoder, chunks)
        x = distinct[rows]
        y = None
        if labels is not None and owners is not None:
            y = label_vectors(encode_chunks(self.label_encoder or self.encoder, [labels]), owners)
        scores = self.scores(task, x, y).float()
        loss = label_loss(self.loss, scores, targets)
        if self.contrast and y is not None:
            loss = loss + self.contrast * contrast_loss(x, targets, y)
        if self.hold and before is not None:
            loss = loss + self.hold * held_loss(distinct, before)
        loss = self.weights[task] * loss
        loss = loss * ranks.weight_of(0 if idle else len(targets), loss.detach())
        # Processes that train side by side expect a gradient, if only zero, for every head.
        own = parameter_name(task)
        others = [p.sum() for name, head in self.heads.items() if name != own for p in head.parameters()]
        return {"loss": loss + 0.0 * torch.stack(others).sum() if others else loss}


def matching_shapes(
    encoder: SentenceTransformer, tasks: Sequence[Relation], *, matcher: str, hidden: int | None = None
) -> dict[str, Tensor]:
    """What `LabelModel.matching_state` of such a model holds, on no device: it takes no memory."""
    width = embedding_width(encoder)
    with torch.device("meta"):
        if matcher != ONE_HOT:
            made: nn.Module = nn.ModuleDict({"matcher": make_matcher(matcher, width, hidden=hidden)})
        else:
            heads = {parameter_name(task.name): nn.Linear(width, len(task.labels)) for task in tasks}
            made = nn.ModuleDict({"heads": nn.ModuleDict(heads)})
    return made.state_dict()


def check_tasks(tasks: Sequence[Relation]) -> None:
    """Refuse what cannot be told apart: tasks of one name, a task without labels."""
    names = [task.name for task in tasks]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"two tasks have the name {', '.join(twice)}. Name them differently.")
    for task in tasks:
        if task.kind == "graded":
            raise UsageError(
                f"task {task.name!r} has the scale {task.scale}, but a task needs labels. Declare its labels."
            )


def encode_chunks(encoder: SentenceTransformer, chunks: Iterable[dict[str, Any]]) -> Tensor:
    """Vectors of texts from chunks of similar length, N×m."""
    vectors = [encoder(dict(chunk))["sentence_embedding"] for chunk in chunks]
    return vectors[0] if len(vectors) == 1 else torch.cat(vectors)


def label_ways(task: Relation, templates: Sequence[str] = ()) -> list[tuple[str, int]]:
    """Every label text of a task in every template, each with the number of its label."""
    return [
        (template.replace(BLANK, said), number)
        for number, texts in enumerate(task.label_texts)
        for said in texts
        for template in templates or (BLANK,)
    ]


def label_vectors(ways: Tensor, owners: Tensor) -> Tensor:
    """One vector per label, the mean of the ways it is said: P×m and P → C×m."""
    count = int(owners.max()) + 1
    sums = torch.zeros(count, ways.shape[1], dtype=ways.dtype, device=ways.device).index_add(0, owners, ways)
    return sums / torch.bincount(owners, minlength=count)[:, None]


def label_loss(name: str, scores: Tensor, gold: Tensor) -> Tensor:
    """The mean loss of a batch, scores B×C and gold B.

    `positive` is printed in the paper: it raises the right label's score and never lowers another's.
    """
    if name == "softmax":
        return functional.cross_entropy(scores, gold)
    if name == "bce":
        target = functional.one_hot(gold, scores.shape[1]).to(scores.dtype)
        return functional.binary_cross_entropy_with_logits(scores, target, reduction="none").sum(1).mean()
    if name == "positive":
        return -functional.logsigmoid(scores.gather(1, gold[:, None])).mean()
    raise UsageError(f"label loss {name!r} is unknown. Choose softmax, bce or positive.")


def contrast_loss(x: Tensor, gold: Tensor, y: Tensor, *, temperature: float = 0.1) -> Tensor:
    """The supervised contrastive loss over the texts of a batch and the labels that they have.

    x is B×m, gold B, y C×m. Each vector is drawn to those with the same label, its label's text among them,
    and pushed from the others: the mean over same-label vectors j of −log e^{cos(i,j)/t} / Σ_{k≠i}
    e^{cos(i,k)/t}. Source: Khosla et al. 2020, equation 2; the label texts are our addition.
    """
    present = torch.unique(gold)
    vectors = functional.normalize(torch.cat([x, y[present]]).float(), dim=-1)
    labels = torch.cat([gold, present])
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    same = (labels[:, None] == labels[None]) & ~itself
    chances = (vectors @ vectors.T / temperature).masked_fill(itself, float("-inf")).log_softmax(dim=1)
    return -(chances.masked_fill(~same, 0.0).sum(1) / same.sum(1)).mean()


def held_loss(vectors: Tensor, before: Tensor) -> Tensor:
    """The mean squared distance of the unit vectors of texts, N×m, from those of the starting encoder."""
    now, then = (functional.normalize(side.float(), dim=-1) for side in (vectors, before))
    return (now - then).square().sum(1).mean()


def fit_calibration(scores: NDArray[np.float64], gold: NDArray[np.int64]) -> Calibration:
    """The temperature and the offsets at which the probabilities of labelled texts fit best.

    `scores` is N×C, `gold` N. It minimises the cross-entropy of softmax(scores / temperature + offsets) plus
    λ Σ offsets² / N. Temperatures are from Guo et al. 2017, section 4.2. The offsets, our addition, let
    labels be as frequent as in the texts; λ was chosen by cross-validation within the texts for fitting.
    """
    from scipy.optimize import minimize
    from scipy.special import softmax

    count, rows = scores.shape[1], np.arange(len(gold))

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sharpness, offsets = values[0], values[1:]
        chances = softmax(sharpness * scores + offsets, axis=1)
        value = -float(np.log(chances[rows, gold] + 1e-300).mean())
        wrong = chances.copy()
        wrong[rows, gold] -= 1
        slope = np.concatenate([[(wrong * scores).sum() / len(gold)], wrong.mean(axis=0)])
        slope[1:] += 2 * _OFFSET_PENALTY * offsets / len(gold)
        return value + _OFFSET_PENALTY * float((offsets**2).sum()) / len(gold), slope

    start = np.concatenate([[1.0], np.zeros(count)])
    bounds = [_SHARPNESS, *[(-_MOST_OFFSET, _MOST_OFFSET)] * count]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(1 / float(found[0]), tuple(map(float, found[1:])))


def printed_form_warning(matcher: str, loss: str) -> str | None:
    """Why a form that the paper prints learns nothing about texts; None if it does."""
    if matcher == "concat-linear":
        return (
            "matcher concat-linear adds a score of the text and a score of the label, so every text gets the "
            "same label. Use concat-mlp."
        )
    if loss == "positive":
        return "loss positive never lowers the score of a wrong label. Use softmax."
    return None


def shorten(text: str, words: int | None) -> str:
    """The first and the last words of a text that has more than `words`: reviews end with their verdict."""
    if words is None:
        return text
    parts = text.split()
    if len(parts) <= words:
        return text
    head = (words + 1) // 2
    return " ".join([*parts[:head], *parts[len(parts) - (words - head) :]])
