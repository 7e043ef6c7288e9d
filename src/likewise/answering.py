"""The interface of a loaded model, whatever its kind.

`score`, `classify`, `explain`, `evaluate` and `experiment` ask an `Answering` and never a concrete class.
Rows are tuples with as many texts as the model reads. An answer comes from a source:

    cosine    the cosine of two vectors, −1..1; every model with text vectors has it
    head      a trained head, on the relation's own scale
    mean      the mean of cosine and head, after dev pairs have put both on the relation's scale
    matcher   a comparison of texts with label texts
    answer    the model's own answer: what `score` gives, and the default if no source is named

By default a model answers from the source that was best on the dev pairs, on the relation's scale. Without
dev pairs it answers as it was trained to. If the source is the cosine, the answer is on the relation's scale
too, and is reported as coming "from the cosine".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EvaluationError, UnknownNameError, UsageError
from likewise.frames import answer_frame
from likewise.records import Relation
from likewise.spelling import spelt
from likewise.wording import counted, quoted

if TYPE_CHECKING:
    from pandas import DataFrame
    from sentence_transformers import SentenceTransformer

Numbers = NDArray[np.float64]
Probabilities = NDArray[np.float64]
Vectors = NDArray[np.float32]
Rows = Sequence[tuple[str, ...]]
# Told how many texts or rows were done since the last call.
Progress = Callable[[int], None]

# The answer of `classify` for a text that no label fits well enough.
NONE_OF_THESE = "none of these"
COSINE, HEAD, MEAN, MATCHER, ANSWER = "cosine", "head", "mean", "matcher", "answer"

# What becomes of a text that is longer than a model's input: its beginning is read, or all of it in windows.
Long = Literal["cut", "chunk"]
CUT: Long = "cut"
CHUNK: Long = "chunk"
# Distinct texts beyond this number are not counted, so that a file of any size can be answered.
_MOST_COUNTED = 1_000_000


def check_long(value: object) -> None:
    """Raise an error for anything but "cut" and "chunk"."""
    if value not in get_args(Long):
        raise UsageError(f"{spelt('long')} {quoted(value)} is unknown. Choose cut or chunk.")


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to one relation, in the order of the rows: numbers on its scale, or labels.

    `relation` is the relation that was answered, with the scale of the numbers. Labels come with
    `probabilities`, N×C in the order of the relation's labels. `interval` is N×2 if a calibrated model gives
    one. The rows `unanswered` have NaN, and None for a label.
    """

    relation: Relation
    source: str
    values: Numbers | list[str]
    probabilities: Probabilities | None = None
    interval: NDArray[np.float64] | None = None
    unanswered: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Refuse answers that are not finite numbers. Every answer of every model passes here."""
        for numbers in (self.values, self.probabilities, self.interval):
            if isinstance(numbers, np.ndarray) and not np.isfinite(numbers).all():
                wrong = np.atleast_1d(~np.isfinite(numbers.reshape(len(numbers), -1)).all(axis=1))
                wrong[list(self.unanswered)] = False
                if not wrong.any():
                    continue
                count = f"{int(wrong.sum()):,} of {len(numbers):,} answers are not finite numbers"
                raise EvaluationError(
                    f"{self.relation.name}: {count}, the first in row "
                    f"{int(np.argmax(wrong)) + 1:,}. The model's weights are damaged or too large. "
                    f"Try {spelt('precision', 'fp32')}, or train the model again."
                )

    def spread(self, places: Sequence[int], count: int) -> Answers:
        """These answers at their places among `count` rows. The other rows are unanswered."""
        labels: list[Any] = [None] * count
        if isinstance(self.values, list):
            for place, label in zip(places, self.values, strict=True):
                labels[place] = label
        return Answers(
            self.relation,
            self.source,
            labels if isinstance(self.values, list) else _spread(self.values, places, count),
            None if self.probabilities is None else _spread(self.probabilities, places, count),
            None if self.interval is None else _spread(self.interval, places, count),
            frozenset(range(count)) - frozenset(places),
        )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else float(value)


def _spread(numbers: Numbers, places: Sequence[int], count: int) -> Numbers:
    found = np.full((count, *numbers.shape[1:]), np.nan)
    found[list(places)] = numbers
    return found


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a model reads at once: the tokens of a batch, and the tokens of a row before it is
    truncated.
    """

    batch_tokens: int
    row_tokens: int | None


@dataclass(frozen=True, slots=True)
class CutCount:
    """How many of the distinct texts (or pairs that are one input) were cut, and after how many tokens.

    `of` is None if there were too many texts to count.
    """

    texts: int
    of: int | None
    tokens: int
    noun: str = "text"
    remedy: str = ""

    def __str__(self) -> str:
        many = (
            counted(self.texts, self.noun)
            if self.of is None
            else f"{self.texts:,} of {self.of:,} {self.noun}s"
        )
        are, their = ("is", "its") if self.texts == 1 else ("are", "their")
        line = f"{many} {are} longer than {self.tokens:,} tokens; only {their} beginning was read."
        return f"{line} {self.remedy}".rstrip()

    def to_dict(self) -> dict[str, int | None]:
        """A JSON-ready form."""
        return {"texts": self.texts, "of": self.of, "tokens": self.tokens}


def _told_unknown(count: int, noun: str) -> str:
    has = "has" if count == 1 else "have"
    return (
        f"{counted(count, noun)} {has} no token that the encoder knows, such as a rare emoji. To the encoder "
        "all such texts are the same, so answers about them mean nothing."
    )


class CutTexts:
    """Counts the distinct texts that a model is given, and those of which it reads only the beginning."""

    def __init__(self, tokens: int | None, noun: str = "text", *, remedy: str = "") -> None:
        self._tokens, self._noun, self._remedy = tokens, noun, remedy
        self._given: set[int] = set()
        self._cut: set[int] = set()
        self._unknown: set[int] = set()
        self._depth = 0

    def count(self, texts: Iterable[Hashable], cut: Container[int], unknown: Container[int] = ()) -> None:
        """Count texts. `cut` holds the hashes of those that were cut, `unknown` those of texts without a
        token that the encoder knows; both may hold others.
        """
        for text in texts:
            key = hash(text)
            if len(self._given) < _MOST_COUNTED:
                self._given.add(key)
            if key in cut:
                self._cut.add(key)
            if key in unknown:
                self._unknown.add(key)

    def clear(self) -> None:
        """Begin to count again."""
        self._given.clear()
        self._cut.clear()
        self._unknown.clear()

    def found(self) -> CutCount | None:
        """The count, or None if no text was cut."""
        if not self._cut or self._tokens is None:
            return None
        of = len(self._given) if len(self._given) < _MOST_COUNTED else None
        return CutCount(len(self._cut), of, self._tokens, self._noun, self._remedy)

    @contextmanager
    def telling(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Count from here, and tell at the end, in one line, what was cut. The outermost block tells."""
        if not self._depth:
            self.clear()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        found = self.found()
        if not self._depth and found is not None:
            tell(str(found))
        if not self._depth and self._unknown:
            tell(_told_unknown(len(self._unknown), self._noun))


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages that a model on a frozen encoder was trained on: rated language pairs, and languages
    seen.
    """

    rated_pairs: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()


class Embedding(Protocol):
    """The vectors from which a model computes its answers."""

    languages: Languages

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Vectors of texts, N×d, the same as SentenceTransformer gives."""

    def cosines(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> Numbers:
        """cos(u, v) of pairs, −1..1, before any head."""

    def views(self, texts: Sequence[str], *, progress: Progress | None = None) -> Mapping[str, Vectors]:
        """Vectors of the `model`, and of the `raw` encoder and the `language` extractor if the model has
        them.
        """

    def states(self, remedy: str) -> SentenceTransformer:
        """The encoder whose word states identify phrases. If there is none, a ModelError that ends with
        the remedy.
        """


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
        """The relations that this model answers."""

    @property
    def reads_labels(self) -> bool:
        """Whether the model accepts labels that it never saw, because it reads label texts."""
        return False

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """How much the model reads at once."""

    @property
    def cut_texts(self) -> CutTexts:
        """The count of the texts that were longer than the model's limit; empty for a model without one."""
        return CutTexts(None)

    @abstractmethod
    def sources(self, relation: str) -> tuple[str, ...]:
        """The sources of answers to a relation. The first is the default."""

    @abstractmethod
    def answer(
        self,
        rows: Rows,
        relation: str | Relation,
        *,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer one relation for rows of texts. A Relation instead of a name asks for labels that the
        model never saw.
        """

    @abstractmethod
    def embedding(self) -> Embedding:
        """The model's vectors, or a UsageError that says why it has none."""


def plain_cosine(relation: Relation, cosines: Numbers) -> Answers:
    """Cosines as the answers to a relation, on their own scale −1..1."""
    scale = Relation(relation.name, lo=-1.0, hi=1.0, step=2.0, description=relation.description)
    return Answers(scale, COSINE, cosines)


def find_relation(answering: Answering, name: str) -> Relation:
    """The relation of a model with this name."""
    for relation in answering.relations:
        if relation.name == name:
            return relation
    known = ", ".join(relation.name for relation in answering.relations)
    raise UnknownNameError(f"the model does not answer relation {name!r}. It answers {known}.")


class Scores(Mapping[str, "Numbers | list[str]"]):
    """Answers by relation, one per pair in the given order: numbers on the relation's scale, or labels.

    `probabilities` holds, for every relation answered by a label, the probabilities of its labels, N×C in
    their order. `intervals` holds an N×2 array for every relation that is answered with an interval.
    """

    def __init__(self, answers: Sequence[Answers], *, index: Any = None) -> None:
        self._index = index
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
                f"the scores hold no relation {name!r}. They hold {', '.join(self._answers)}."
            )
        return self._answers[name].values

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        parts = []
        for relation in self.relations:
            first = list(self[relation.name])[:6]
            values = [v if v is None or isinstance(v, str) else round(float(v), 3) for v in first]
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
        """One mapping per pair, from relation to answer. A pair that could not be read has NaN, or None for a
        label.
        """
        columns: dict[str, list[Any]] = {name: list(self[name]) for name in self}
        count = len(next(iter(columns.values()), []))
        return [{name: _plain(values[i]) for name, values in columns.items()} for i in range(count)]

    def to_frame(self, pairs: Any = None) -> DataFrame:
        """The answers as a pandas frame, one row per pair, with the index of the frame that was scored.

        A relation NAME has a column NAME. Labels have columns `p(NAME=LABEL)`, and intervals `low(NAME)` and
        `high(NAME)`. The `pairs` that were scored, or their frame, may be passed to have their columns first.
        """
        columns: dict[str, Any] = {}
        for relation in self.relations:
            name = relation.name
            columns[name] = self[name]
            for place, label in enumerate(relation.labels if name in self.probabilities else ()):
                columns[chance_column(name, label)] = self.probabilities[name][:, place]
            if name in self.intervals:
                columns[f"low({name})"], columns[f"high({name})"] = self.intervals[name].T
        return answer_frame(columns, index=self._index, rows=pairs)


def chance_column(relation: str, label: str) -> str:
    """The column that holds the probability of a relation's label."""
    return f"p({relation}={label})"


@dataclass(frozen=True, slots=True)
class Classes:
    """Labels for texts: probabilities N×C, in the order of the labels. A text that was not read has NaN.

    A text whose labels all stay below the probability `none_below` is none of these.
    """

    labels: tuple[str, ...]
    probabilities: Probabilities
    none_below: float | None = None
    index: Any = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __iter__(self) -> Iterator[dict[str, float]]:
        for row in self.probabilities:
            yield dict(zip(self.labels, map(float, row), strict=True))

    @property
    def best(self) -> list[str]:
        """The most probable label of each text, "none of these", or None for a text that was not read."""
        found: list[Any] = [self.labels[int(place)] for place in self.probabilities.argmax(axis=1)]
        for row, highest in enumerate(self.probabilities.max(axis=1)):
            if np.isnan(highest):
                found[row] = None
            elif self.none_below is not None and highest < self.none_below:
                found[row] = NONE_OF_THESE
        return found

    def to_frame(self, texts: Any = None) -> DataFrame:
        """The most probable `label` and the columns `p(LABEL)` as a pandas frame, one row per text.

        The frame has the index of the frame or Series that was classified. The `texts`, or their frame, may
        be passed to have their columns first.
        """
        chances = {f"p({label})": self.probabilities[:, place] for place, label in enumerate(self.labels)}
        return answer_frame({"label": self.best, **chances}, index=self.index, rows=texts)


def label_answers(relation: Relation, source: str, probabilities: Probabilities) -> Answers:
    """Answers by label: the most probable label of each row, with the probabilities of all labels."""
    best = [relation.labels[int(place)] for place in probabilities.argmax(axis=1)]
    return Answers(relation, source, best, probabilities)
