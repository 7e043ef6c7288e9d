"""What a loaded model says, whatever kind it is.

`score`, `classify`, `explain`, `evaluate` and `experiment` ask an `Answering` and never a class. Rows are
tuples of as many texts as the model reads. An answer comes from a source:

    cosine    the plain cosine of two vectors, −1..1; whoever has vectors of texts can be asked for it
    head      a trained head, on the relation's own scale
    mean      the mean of cosine and head, both put on the relation's scale by dev pairs
    matcher   texts against labels that are texts
    answer    what the model itself answers by: what `score` gives, and what one gets who names no source

A model that is not asked for a source answers by the one that was best on dev pairs, on the relation's scale;
without dev pairs, as it was trained to. If that is a cosine, the answer lies on the relation's scale all the
same and is told as coming "from the cosine".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError, UnknownNameError
from likewise.records import Relation

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Numbers = NDArray[np.float64]
Probabilities = NDArray[np.float64]
Vectors = NDArray[np.float32]
Rows = Sequence[tuple[str, ...]]
# Told how many texts or rows were done since the last call.
Progress = Callable[[int], None]

COSINE, HEAD, MEAN, MATCHER, ANSWER = "cosine", "head", "mean", "matcher", "answer"


@dataclass(frozen=True, slots=True)
class Answers:
    """One relation's answers, in the order of the rows: numbers on its scale, or labels.

    `relation` is what was answered, with the scale that the numbers lie on. Labels come with `probabilities`,
    N×C in the order of the relation's labels. `interval` is N×2 where a calibrated model gives one.
    """

    relation: Relation
    source: str
    values: Numbers | list[str]
    probabilities: Probabilities | None = None
    interval: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Refuse an answer that is no number: every answer of every model passes here."""
        for numbers in (self.values, self.probabilities, self.interval):
            if isinstance(numbers, np.ndarray) and not np.isfinite(numbers).all():
                wrong = ~np.isfinite(numbers.reshape(len(numbers), -1)).all(axis=1)
                count = f"{int(wrong.sum()):,} of {len(numbers):,} answers are not finite numbers"
                raise EvaluationError(
                    f"{self.relation.name}: {count}, the first to row {int(np.argmax(wrong)) + 1:,}; "
                    "the model's weights are damaged or too large: try --precision fp32, or train it again"
                )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model reads at once: tokens in a batch, and tokens of a row before it is cut."""

    batch_tokens: int
    row_tokens: int | None


@dataclass(frozen=True, slots=True)
class Languages:
    """What a model on a frozen encoder was taught: language pairs with ratings, and languages seen."""

    rated_pairs: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()


class Embedding(Protocol):
    """The vectors behind a model's answers."""

    languages: Languages

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Vectors of texts, N×d; the same as SentenceTransformer gives."""

    def cosines(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> Numbers:
        """cos(u, v) of pairs, −1..1, before any head."""

    def views(self, texts: Sequence[str], *, progress: Progress | None = None) -> Mapping[str, Vectors]:
        """Vectors as the `model` gives them; where it has them, the `raw` encoder's and the `language`'s."""

    def states(self, remedy: str) -> SentenceTransformer:
        """The encoder whose states of words tell phrases apart, or a ModelError that ends with the remedy."""


class Answering(ABC):
    """A model that is ready to answer."""

    about: dict[str, Any]

    @property
    @abstractmethod
    def texts(self) -> frozenset[int]:
        """How many texts a row may have."""

    @property
    @abstractmethod
    def relations(self) -> tuple[Relation, ...]:
        """What this model answers."""

    @property
    def reads_labels(self) -> bool:
        """Whether it can be asked for labels that it never saw: their texts are an input."""
        return False

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """How much it reads at once."""

    @abstractmethod
    def sources(self, relation: str) -> tuple[str, ...]:
        """Where answers on a relation may come from; the first answers unless another is asked for."""

    @abstractmethod
    def answer(
        self,
        rows: Rows,
        relation: str | Relation,
        *,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer one relation of rows; a Relation instead of a name asks for labels the model never saw."""

    @abstractmethod
    def embedding(self) -> Embedding:
        """Its vectors, or a UsageError that says why there are none."""


def plain_cosine(relation: Relation, cosines: Numbers) -> Answers:
    """Cosines as the answers to a relation, on the only scale they have."""
    scale = Relation(relation.name, lo=-1.0, hi=1.0, step=2.0, description=relation.description)
    return Answers(scale, COSINE, cosines)


def find_relation(answering: Answering, name: str) -> Relation:
    """A model's relation by name."""
    for relation in answering.relations:
        if relation.name == name:
            return relation
    known = ", ".join(relation.name for relation in answering.relations)
    raise UnknownNameError(f"the model does not answer relation {name!r}; it answers {known}")


class Scores(Mapping[str, "Numbers | list[str]"]):
    """Answers by relation, one per pair in the order given: numbers on the relation's scale, or labels.

    `probabilities` has, for every relation answered by a label, those of its labels, N×C in their order;
    `intervals` has N×2 for every relation that is answered with one.
    """

    def __init__(self, answers: Sequence[Answers]) -> None:
        self._answers = {one.relation.name: one for one in answers}
        self.relations = tuple(one.relation for one in answers)
        self.source = {one.relation.name: one.source for one in answers}
        self.probabilities = {
            one.relation.name: one.probabilities for one in answers if one.probabilities is not None
        }

        self.intervals = {one.relation.name: one.interval for one in answers if one.interval is not None}

    def __getitem__(self, name: str) -> Numbers | list[str]:
        if name not in self._answers:
            raise UnknownNameError(
                f"no relation {name!r} among the scores; there is {', '.join(self._answers)}"
            )
        return self._answers[name].values

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        parts = []
        for relation in self.relations:
            values = [v if isinstance(v, str) else round(float(v), 3) for v in list(self[relation.name])[:6]]
            more = ", …" if len(self[relation.name]) > 6 else ""
            parts.append(f"{relation.name} ({relation.scale}): [{', '.join(map(str, values))}{more}]")
        return "Scores(" + "; ".join(parts) + ")"

    def chances(self, row: int) -> dict[str, dict[str, float]]:
        """The probabilities of one pair's labels, by relation and label."""
        return {
            r.name: dict(zip(r.labels, map(float, self.probabilities[r.name][row]), strict=True))
            for r in self.relations
            if r.name in self.probabilities
        }

    def rows(self) -> list[dict[str, float | str]]:
        """One mapping per pair."""
        columns = {name: list(self[name]) for name in self}
        count = len(next(iter(columns.values()), []))
        return [
            {name: v if isinstance(v := values[i], str) else float(v) for name, values in columns.items()}
            for i in range(count)
        ]


@dataclass(frozen=True, slots=True)
class Classes:
    """Answers for texts: probabilities N×C over the labels, in the order of the labels."""

    labels: tuple[str, ...]
    probabilities: Probabilities

    def __len__(self) -> int:
        return len(self.probabilities)

    def __iter__(self) -> Iterator[dict[str, float]]:
        for row in self.probabilities:
            yield dict(zip(self.labels, map(float, row), strict=True))

    @property
    def best(self) -> list[str]:
        """The likeliest label of each text."""
        return [self.labels[int(place)] for place in self.probabilities.argmax(axis=1)]


def label_answers(relation: Relation, source: str, probabilities: Probabilities) -> Answers:
    """Answers that are labels: the likeliest of each row, beside the probabilities of all."""
    best = [relation.labels[int(place)] for place in probabilities.argmax(axis=1)]
    return Answers(relation, source, best, probabilities)
