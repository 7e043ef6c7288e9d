"""What a model answers: scores of pairs by relation, probabilities of labels; and what it may be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import UnknownNameError, UsageError
from likewise.records import Relation

Numbers = NDArray[np.float64]
Probabilities = NDArray[np.float64]


class Scores(Mapping[str, "Numbers | list[str]"]):
    """Answers by relation, one per pair in the order given: numbers on the relation's scale, or labels.

    `probabilities` has, for every relation answered by a label, those of its labels, N×C in their order.
    """

    def __init__(
        self,
        answers: dict[str, Numbers | list[str]],
        relations: Sequence[Relation],
        source: dict[str, str],
        probabilities: Mapping[str, Probabilities] | None = None,
    ) -> None:
        self._answers = answers
        self.relations = tuple(relations)
        self.source = source
        self.probabilities = dict(probabilities or {})

    def __getitem__(self, name: str) -> Numbers | list[str]:
        if name not in self._answers:
            raise UnknownNameError(
                f"no relation {name!r} among the scores; there is {', '.join(self._answers)}"
            )
        return self._answers[name]

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
        columns = {name: list(values) for name, values in self._answers.items()}
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


def as_pairs(pairs: Any, *, text_a: str | None = None, text_b: str | None = None) -> list[tuple[str, str]]:
    """Pairs of strings from a list of couples, or from anything `data.read` takes."""
    plain = isinstance(pairs, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(t, str) for t in pair)
        for pair in pairs
    )
    if plain:
        return [(str(a), str(b)) for a, b in pairs]
    from likewise.data import read

    source = str(pairs) if isinstance(pairs, Path) else pairs
    return [(record.a, record.b) for record in read(source, relations=(), text_a=text_a, text_b=text_b)]


def as_texts(texts: Any, *, text: str | None = None) -> list[str]:
    """Single texts from a list of them, or from anything `data.read` takes that has a column of texts."""
    texts = texts.tolist() if hasattr(texts, "tolist") else texts  # a pandas Series, an array
    if isinstance(texts, str) and " " in texts.strip() and not _is_file(texts):
        raise UsageError("one text is given where a list of texts, or a file of them, is read: give [text]")
    if isinstance(texts, list | tuple) and all(isinstance(one, str) for one in texts):
        return list(texts)
    from likewise.data import read

    source = str(texts) if isinstance(texts, Path) else texts
    return [record.texts[0] for record in read(source, relations=(), text_a=text, pairs=False)]


def _is_file(text: str) -> bool:
    return len(text) < 256 and Path(text).exists()


def label_probabilities(logits: NDArray[np.floating]) -> Probabilities:
    """Logits N×C as probabilities."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def place_in_pairs(index: int) -> str:
    """Which text of which pair, where pairs were laid out flat."""
    return f"pair {index // 2}, text {'ab'[index % 2]}"
