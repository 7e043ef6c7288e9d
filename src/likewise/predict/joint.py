"""JointPredictor: a transformer fine-tuned on one relation, of pairs read as one input or of single texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from likewise.encoders.inputs import check_texts
from likewise.encoders.vectors import DEFAULT_BUDGET
from likewise.errors import UnknownNameError, UsageError
from likewise.methods.joint import JointModel
from likewise.predict.answers import (
    Classes,
    Numbers,
    Scores,
    as_pairs,
    as_texts,
    label_probabilities,
    place_in_pairs,
)
from likewise.records import Relation


class JointPredictor:
    """A joint encoder ready to answer its one relation: pairs read as one input, or single texts."""

    def __init__(
        self,
        model: JointModel,
        about: Mapping[str, Any] | None = None,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
    ) -> None:
        self.model = model.eval()
        self.about = dict(about or {})
        self._precision, self._token_budget = precision, token_budget

    @property
    def tasks(self) -> tuple[Relation, ...]:
        """What this model was taught, under the name that classifiers have."""
        return self.model.relations

    @property
    def relations(self) -> tuple[Relation, ...]:
        """What this model answers."""
        return self.model.relations

    def source(self, relation: str) -> str:
        """A joint encoder answers by its head."""
        return "head"

    def score(
        self,
        pairs: Any,
        *,
        relation: str | Sequence[str] | None = None,
        source: str | None = None,
        text_a: str | None = None,
        text_b: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Scores:
        """Score pairs, or the single texts that the model reads: in a list, a file, a frame, a dataset.

        `text_a` names the column of single texts.
        """
        for name in [relation] if isinstance(relation, str) else relation or ():
            if name != self.model.relation.name:
                raise UnknownNameError(
                    f"the model has no relation {name!r}; it answers {self.model.relation.name}"
                )
        if source == "cosine":
            raise UsageError("a joint encoder has no vector for a text, so no cosine: leave --source out")
        rows = self._pairs(pairs, text_a, text_b) if self.model.texts == 2 else self._texts(pairs, text_a)
        outputs, name = self.outputs(rows, progress=progress), self.model.relation.name
        labelled = {name: label_probabilities(outputs)} if self.model.relation.labels else None
        return Scores({name: self.model.read(outputs)}, self.relations, {name: "head"}, labelled)

    def _pairs(self, pairs: Any, text_a: str | None, text_b: str | None) -> Sequence[tuple[str, ...]]:
        if isinstance(pairs, list | tuple) and pairs and all(isinstance(one, str) for one in pairs):
            raise UsageError("this model reads pairs of texts: give (first, second) for each")
        rows = as_pairs(pairs, text_a=text_a, text_b=text_b)
        check_texts([text for pair in rows for text in pair], name=place_in_pairs)
        return rows

    def _texts(self, texts: Any, column: str | None) -> Sequence[tuple[str, ...]]:
        if isinstance(texts, list | tuple) and any(isinstance(one, list | tuple) for one in texts):
            raise UsageError("this model reads single texts: give a list of them, not of pairs")
        found = as_texts(texts, text=column)
        check_texts(found)
        return [(text,) for text in found]

    def classify(
        self,
        texts: str | Sequence[str],
        *,
        task: str | None = None,
        labels: object = None,
        progress: Callable[[int], None] | None = None,
    ) -> Classes:
        """Probabilities of the labels of single texts."""
        wanted = self.wanted(task, labels)
        many = [texts] if isinstance(texts, str) else list(texts)
        check_texts(many)
        outputs = self.outputs([(text,) for text in many], progress=progress)
        return Classes(wanted.labels, label_probabilities(outputs))

    def wanted(self, task: str | None, labels: object) -> Relation:
        """Its one task; labels that it was not taught are refused."""
        own = self.model.relation
        if self.model.texts != 1 or not own.labels:
            what = "pairs of texts" if self.model.texts == 2 else f"a number ({own.scale})"
            raise UsageError(f"this model answers {what}, not labels of single texts: score with it")
        if labels is not None or task not in (None, own.name):
            raise UsageError(f"this model was fine-tuned on the labels of {own.name!r} and answers no others")
        return own

    def encode(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: what it reads has no vector to be compared by."""
        raise UsageError(
            "a fine-tuned transformer answers one relation and has no vectors of texts: "
            "encode with an encoder (likewise.load('default'))"
        )

    def explain(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: phrases of a joint encoding have no vectors of their own to compare."""
        raise UsageError(
            "a joint encoder reads two texts as one and cannot say which phrases match: "
            "explain with an encoder (likewise.load('default'))"
        )

    def answers(
        self, rows: Sequence[Sequence[str]], *, progress: Callable[[int], None] | None = None
    ) -> Numbers | list[str]:
        """One answer per row of texts: a number on the relation's scale, or a label."""
        return self.model.read(self.outputs(rows, progress=progress))

    def outputs(
        self, rows: Sequence[Sequence[str]], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """What the head says, B×C."""
        return self.model.outputs(
            rows, precision=self._precision, token_budget=self._token_budget, progress=progress
        )
