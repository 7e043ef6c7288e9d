"""Relation, Codec and Record: the question about a pair, the form of its answers, and the pair itself.

A **Relation** is one question ("how similar, 0 to 5?"). A **Record** is one pair of texts with the ratings
and labels that people gave it; any of them may be missing. A **Codec** turns a rating or label into a
training target, and a model's output back into an answer. It refuses values outside the relation's range.

Nothing here imports torch; arrays are numpy.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from likewise.errors import Problem, UsageError, ValueRangeError
from likewise.wording import has_half_character, listed, quoted

RelationKind = Literal["graded", "ordered", "classes"]
Form = Literal["value", "unit", "grid", "class"]
Value = float | str
Array = NDArray[np.float64]

# A rating is spread over all points of its grid, row by row: many cost memory and say nothing new. Beyond the
# first number the step of 1 that nobody asked for gives way, beyond the second any step is refused.
_MANY_POINTS, MAX_POINTS = 1_001, 10_001
# A file of answers has a column for each label, and tables have at most as many columns (`data.rows`).
MAX_LABELS = 10_000
# Survey tools put whole questions into headers; what is longer is a text in the wrong place.
MAX_NAME = 500
# Beyond this, numbers of 64 bits no longer tell neighbouring ratings apart, and squares leave those of 32.
_LARGEST, _NARROWEST = 1e15, 1e-6
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Relation:
    """One question about a pair or a text.

        graded   a number in lo..hi on a grid of `step` (means of raters may lie between grid points)
        ordered  labels in an order, each at a position on a number line (`positions`, any increasing spacing)
        classes  labels without an order

    `texts` holds one or several label texts for each label. A label without texts stands for itself.
    """

    name: str
    kind: RelationKind = "graded"
    lo: float = 0.0
    hi: float = 1.0
    step: float = 1.0
    labels: tuple[str, ...] = ()
    positions: tuple[float, ...] = ()
    metric: str = ""
    description: str = ""
    texts: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        self._check_words()
        if self.texts and (len(self.texts) != len(self.labels) or not all(map(_says_something, self.texts))):
            raise UsageError(f"relation {self.name!r}: `texts` must hold one or more texts for each label.")
        if self.kind == "graded":
            self._check_range()
        else:
            self._check_labels()
        if not self.metric:
            object.__setattr__(self, "metric", "accuracy" if self.kind == "classes" else "spearman")

    def _check_words(self) -> None:
        """Refuse labels and descriptions that are not texts or cannot be written down."""
        said = [*self.labels, self.description, *(way for ways in self.texts for way in ways)]
        for text in said:
            if not isinstance(text, str):
                found = f"{quoted(text)} ({type(text).__name__}) is not a text"
                raise UsageError(f"relation {self.name!r}: {found}. Put labels in quotes.")
            if has_half_character(text):
                raise UsageError(f"relation {self.name!r}: {quoted(text)} is not UTF-8. Write it as UTF-8.")
        if len(self.labels) > MAX_LABELS:
            found = f"there are {len(self.labels):,} labels, but at most {MAX_LABELS:,} are allowed"
            raise UsageError(
                f"relation {self.name!r}: {found}. Merge the rare ones, or leave the relation out."
            )

    def _check_range(self) -> None:
        _check_ends(self.name, self.lo, self.hi)
        if not (_is_number(self.step) and 0 < self.step < math.inf):
            raise UsageError(
                f"relation {self.name!r}: the step is {quoted(self.step)}, but it must be a number above 0."
            )
        steps = (self.hi - self.lo) / self.step
        if steps > MAX_POINTS - 1:
            found = f"a step of {self.step:g} makes {steps + 1:,.0f} points of {self.lo:g}..{self.hi:g}"
            raise UsageError(
                f"relation {self.name!r}: {found}, but at most {MAX_POINTS:,} are allowed. Choose a "
                "larger step."
            )
        if not abs(steps - round(steps)) < 1e-6:
            raise UsageError(
                f"relation {self.name!r}: the step {self.step:g} does not divide "
                f"{self.lo:g}..{self.hi:g} evenly. Choose a step that does."
            )

    def _check_labels(self) -> None:
        if len(self.labels) < 2 or len(set(self.labels)) != len(self.labels):
            found = listed(map(repr, self.labels)) or "none"
            raise UsageError(
                f"relation {self.name!r}: {self.kind} needs at least two different labels, but "
                f"found {found}. Name another label, or leave the relation out."
            )
        if not all(label.strip() for label in self.labels):
            raise UsageError(f"relation {self.name!r}: a label is empty. Name it, or leave it out.")
        if self.kind == "ordered":
            positions = self.positions or tuple(float(i) for i in range(len(self.labels)))
            numbers = all(_is_number(place) and abs(place) <= _LARGEST for place in positions)
            in_order = numbers and all(a < b for a, b in pairwise(positions))
            if len(positions) != len(self.labels) or not in_order:
                raise UsageError(
                    f"relation {self.name!r}: `positions` must be increasing numbers, one per label."
                )
            object.__setattr__(self, "positions", tuple(float(p) for p in positions))
            object.__setattr__(self, "lo", float(positions[0]))
            object.__setattr__(self, "hi", float(positions[-1]))

    @classmethod
    def graded(cls, name: str, lo: float, hi: float, *, step: float = 1.0, **more: Any) -> Self:
        """A relation with numbers in lo..hi. A step that does not divide the range is replaced by the whole
        range.

        So is the default step of 1 if it would make more than a thousand points.
        """
        _check_ends(name, lo, hi)
        if not (_is_number(step) and 0 < step < math.inf):
            raise UsageError(
                f"relation {name!r}: the step is {quoted(step)}, but it must be a number above 0."
            )
        steps = (hi - lo) / step
        divides = steps <= 1e15 and abs(steps - round(steps)) < 1e-6
        wide = step == 1 and steps > _MANY_POINTS - 1
        return cls(
            name, "graded", float(lo), float(hi), step if divides and not wide else float(hi - lo), **more
        )

    @classmethod
    def ordered(cls, name: str, labels: Sequence[str], positions: Sequence[float] = (), **more: Any) -> Self:
        """A relation with labels from lowest to highest, at 0, 1, 2, … unless positions are given."""
        return cls(name, "ordered", labels=_as_labels(name, labels), positions=tuple(positions), **more)

    @classmethod
    def classes(cls, name: str, labels: Sequence[str], **more: Any) -> Self:
        """A relation with labels without an order."""
        return cls(name, "classes", labels=_as_labels(name, labels), **more)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a relation in the form of the command line: `similarity:0..5`, `actor:-2..2`,
        `entailment:no|maybe|yes`.

        `NAME:classes` has no labels yet. Readers that see the data fill them in (`data.ratings`).
        """
        if not isinstance(text, str):
            raise UsageError(
                f"found {quoted(text)}, but a relation is declared by a text such as 'similarity:0..5'."
            )
        name, colon, spec = text.partition(":")
        if not colon or not name or not spec:
            raise UsageError(
                f"relation {quoted(text)}: the form is unknown. Write NAME:lo..hi, "
                "NAME:label|label|… or NAME:low<middle<high."
            )
        if ".." in spec:
            lo, _, hi = spec.partition("..")
            try:
                ends = float(lo), float(hi)
            except ValueError:
                found = f"{quoted(spec)} is not a range of numbers such as 0..5."
                raise UsageError(f"relation {quoted(text)}: {found}") from None
            return cls.graded(name, *ends)
        if "<" in spec:
            return cls.ordered(name, [label.strip() for label in spec.split("<")])
        return cls.classes(name, [label.strip() for label in spec.split("|")])

    @property
    def label_texts(self) -> tuple[tuple[str, ...], ...]:
        """The label texts of each label, one or several."""
        return self.texts or tuple((label,) for label in self.labels)

    @property
    def unit(self) -> float:
        """The distance between neighbouring grid points (the smallest one, if they differ). Errors are
        counted in it.
        """
        return 1.0 if self.kind == "classes" else float(np.diff(self.grid).min())

    @property
    def grid(self) -> Array:
        """The score grid lo, lo+step, …, hi, or the positions of ordered labels. Shape K."""
        if self.kind == "ordered":
            return np.asarray(self.positions, dtype=np.float64)
        if self.kind == "classes":
            raise UsageError(f"relation {self.name!r} has classes without an order, so it has no grid.")
        return np.linspace(self.lo, self.hi, round((self.hi - self.lo) / self.step) + 1)

    @property
    def scale(self) -> str:
        """The scale as people read it: "0..5" or "no | maybe | yes"."""
        if self.kind == "graded":
            return f"{self.lo:g}..{self.hi:g}"
        return (" < " if self.kind == "ordered" else " | ").join(self.labels)

    def check(self, value: object, source: str = "value") -> Value | None:
        """The value in canonical form (float or label), or None if it is missing. A value outside the
        range is an error.
        """
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if self.kind == "graded":
            return self._check_number(value, source)
        if isinstance(value, str) and value in self.labels:
            return value
        if self.kind == "ordered" and isinstance(value, int | float) and float(value) in self.positions:
            return self.labels[self.positions.index(float(value))]
        raise ValueRangeError(
            [
                Problem(
                    source,
                    f"{self.name} is {quoted(value)}, but it must be one of {listed(self.labels)}",
                    "correct the value, or leave it empty",
                )
            ]
        )

    def _check_number(self, value: object, source: str) -> float:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise ValueRangeError(
                [
                    Problem(
                        source,
                        f"{self.name} is {quoted(value)}, which is not a number",
                        "correct the value, or leave it empty",
                    )
                ]
            )
        if not self.lo - _TOLERANCE <= number <= self.hi + _TOLERANCE:
            raise ValueRangeError(
                [
                    Problem(
                        source,
                        f"{self.name} is {value}, but the scale is {self.lo:g} to {self.hi:g}",
                        f"correct the value, leave it empty, or declare a wider scale ({self.name}:lo..hi)",
                    )
                ]
            )
        return min(max(number, self.lo), self.hi)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form. `from_dict` reads it back as an equal relation."""
        return {
            "name": self.name,
            "kind": self.kind,
            "lo": self.lo,
            "hi": self.hi,
            "step": self.step,
            "labels": list(self.labels),
            "positions": list(self.positions),
            "metric": self.metric,
            "description": self.description,
            "texts": [list(ways) for ways in self.texts],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        rows = {name: tuple(data.get(name, ())) for name in ("labels", "positions")}
        return cls(**{**data, **rows, "texts": tuple(tuple(ways) for ways in data.get("texts", ()))})


def _says_something(ways: tuple[str, ...]) -> bool:
    return bool(ways) and all(way.strip() for way in ways)


def _check_name(name: object) -> None:
    """Check that a name is one line that can be written down, printed and found again in a file."""
    if not isinstance(name, str):
        raise UsageError(
            f"the name of a relation is {quoted(name)} ({type(name).__name__}), but it must be a text."
        )
    if not name.strip():
        raise UsageError("a relation has no name. Give it one.")
    if len(name) > MAX_NAME:
        found = f"relation {quoted(name, most=60)}: the name is longer than {MAX_NAME} characters"
        raise UsageError(f"{found}. Rename the column.")
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name):
        found = f"relation {quoted(name)}: the name holds a line break or another control character"
        raise UsageError(f"{found}. Rename the column.")


def _check_ends(name: object, lo: Any, hi: Any) -> None:
    if not (_is_number(lo) and _is_number(hi)) or math.isnan(lo) or math.isnan(hi):
        found = f"{quoted(lo)}..{quoted(hi)} is not a range of numbers such as 0..5."
        raise UsageError(f"relation {quoted(name)}: {found}")
    scale = f"relation {quoted(name)}: the range {lo:g}..{hi:g}"
    if not lo < hi:
        raise UsageError(f"{scale} is empty. Its first number must be the smaller one.")
    if max(abs(lo), abs(hi)) > _LARGEST:
        raise UsageError(
            f"{scale} ends beyond ±{_LARGEST:g}. Write the ratings on another scale, such as 0..1."
        )
    if hi - lo < _NARROWEST:
        raise UsageError(f"{scale} is too narrow. Write the ratings on another scale, such as 0..1.")


def _is_number(value: object) -> bool:
    """Whether this is a number. A whole number must fit into 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return isinstance(value, float | np.floating) or abs(int(value)) < 2**63


def _as_labels(name: object, labels: object) -> tuple[str, ...]:
    if not isinstance(labels, Iterable):
        raise UsageError(
            f"relation {quoted(name)}: the labels are {quoted(labels)}, but they must be a list of texts."
        )
    return tuple(labels)


@dataclass(frozen=True, slots=True)
class Codec:
    """The conversion rating or label ↔ training target ↔ reported value, for one relation.

        value  the number itself (graded) or the label's position (ordered); shape ()
        unit   the number on [floor, 1], lo → floor, hi → 1, as a cosine target; shape ()
        grid   weights on the two grid points around the number, so that grid·target = number; shape (K,)
        class  the label's index; shape ()

    `senteval` keeps SentEval's encoder, which assumes a grid 1..K and drops the mass of values below 1
    (SentEval issue 83).
    """

    relation: Relation
    form: Form
    floor: float = 0.0
    senteval: bool = False

    def __post_init__(self) -> None:
        if self.form == "class" and not self.relation.labels:
            raise UsageError(f"relation {self.relation.name!r} is graded, so it has no classes.")
        if self.form != "class" and self.relation.kind == "classes":
            raise UsageError(
                f"relation {self.relation.name!r} has classes without an order. Use a classes head."
            )

    @property
    def width(self) -> int:
        """The number of target columns: K for grid, 1 otherwise."""
        return len(self.relation.grid) if self.form == "grid" else 1

    def encode(self, value: object, source: str = "value") -> Array:
        """The target of one value, shape (width,). It is all NaN if the value is missing."""
        value = self.relation.check(value, source)
        if value is None:
            return np.full(self.width, np.nan)
        if self.form == "class":
            return np.array([self.relation.labels.index(str(value))], dtype=np.float64)
        number = self._number(value)
        if self.form == "value":
            return np.array([number])
        if self.form == "unit":
            share = (number - self.relation.lo) / (self.relation.hi - self.relation.lo)
            return np.array([self.floor + (1.0 - self.floor) * share])
        return self._spread(number)

    def encode_many(self, values: Sequence[object], sources: Sequence[str] | None = None) -> Array:
        """The targets of many values, shape (N, width)."""
        if sources is None:
            return np.stack([self.encode(value) for value in values]) if values else np.zeros((0, self.width))
        return np.stack([self.encode(v, s) for v, s in zip(values, sources, strict=True)])

    def decode(self, target: Array, *, bounded: bool = True) -> Array | list[str]:
        """The reported values of targets or outputs, shape (N, width) or (N,): numbers, or labels for
        classes.

        With `bounded`, numbers outside the range are moved to its nearest end. NaN stays NaN.
        """
        rows = np.asarray(target, dtype=np.float64)
        if self.form == "class":
            index = (
                rows.argmax(axis=-1) if rows.ndim == 2 and rows.shape[1] > 1 else rows.reshape(-1).astype(int)
            )
            return [self.relation.labels[int(i)] for i in index]
        if self.form == "grid":
            numbers = rows.reshape(-1, self.width) @ self.relation.grid
        elif self.form == "unit":
            share = (rows.reshape(-1) - self.floor) / (1.0 - self.floor)
            numbers = self.relation.lo + share * (self.relation.hi - self.relation.lo)
        else:
            numbers = rows.reshape(-1)
        return np.clip(numbers, self.relation.lo, self.relation.hi) if bounded else numbers

    def _number(self, value: Value) -> float:
        if self.relation.kind == "ordered":
            return self.relation.positions[self.relation.labels.index(str(value))]
        return float(value)

    def _spread(self, number: float) -> Array:
        if self.senteval:
            return _senteval_spread(number, len(self.relation.grid))
        grid = self.relation.grid
        target = np.zeros(len(grid))
        upper = int(np.searchsorted(grid, number, side="right"))
        if upper >= len(grid):
            target[-1] = 1.0
            return target
        low, high = grid[upper - 1], grid[upper]
        share = (number - low) / (high - low)
        target[upper - 1], target[upper] = 1.0 - share, share
        return target


def _senteval_spread(number: float, size: int) -> Array:
    target = np.zeros(size)
    for index in range(size):
        if index + 1 == math.floor(number) + 1:
            target[index] = number - math.floor(number)
        if index + 1 == math.floor(number):
            target[index] = math.floor(number) - number + 1
    return target


@dataclass(frozen=True, slots=True)
class Record:
    """One pair of texts (or one text) with its ratings and labels. A relation that is absent is missing.

    `source` is the place of the row ("pairs.csv:812"). `subset` names its part of an evaluation set. `links`
    are phrase alignments as ((start, end), (start, end)) in words, half-open.
    """

    texts: tuple[str, ...]
    values: Mapping[str, Value | None] = field(default_factory=dict)
    source: str = ""
    subset: str = ""
    language: str = ""
    links: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()

    @property
    def a(self) -> str:
        """The first text."""
        return self.texts[0]

    @property
    def b(self) -> str:
        """The second text."""
        return self.texts[1]


def nearest_labels(relation: Relation, numbers: Array) -> list[str]:
    """The label of an ordered relation that is nearest to each number. Ties go to the lower label."""
    grid = relation.grid
    index = np.abs(np.asarray(numbers, dtype=np.float64)[:, None] - grid[None, :]).argmin(axis=1)
    return [relation.labels[int(i)] for i in index]
