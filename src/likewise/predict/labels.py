"""Classifier: a model whose labels are texts. It answers its own tasks, and labels it was never shown.

model = likewise.load_classifier("my-model")
model.classify("Where is the nearest station?", labels=["question", "complaint", "praise"])
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.encoders.inputs import check_texts
from likewise.encoders.vectors import DEFAULT_BUDGET, Encoding, encode_texts
from likewise.errors import UsageError
from likewise.methods.label_embedding import LabelModel, label_vectors, shorten
from likewise.methods.label_texts import find_label_faults
from likewise.predict.answers import Classes, Probabilities
from likewise.records import Relation

_log = logging.getLogger("likewise")


class Classifier:
    """A label model ready to answer."""

    def __init__(
        self,
        model: LabelModel,
        about: Mapping[str, Any] | None = None,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
        cache: int = 100_000,
    ) -> None:
        self.model = model.eval()
        self.about = dict(about or {})
        self._readable: set[Relation] = set()
        self._encoding = Encoding(model.encoder, precision=precision, token_budget=token_budget, kept=cache)

    @property
    def tasks(self) -> tuple[Relation, ...]:
        """What this model was taught."""
        return self.model.tasks

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The same, under the name that all models have."""
        return self.model.tasks

    def encode(
        self, texts: str | Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Vectors of texts, N×m (m alone for one string)."""
        many = [texts] if isinstance(texts, str) else list(texts)
        check_texts(many)
        short = [shorten(text, self.model.max_words) for text in many]
        vectors = self._encoding.recall(short, progress=progress)
        return vectors[0] if isinstance(texts, str) else vectors

    def classify(
        self,
        texts: str | Sequence[str],
        *,
        task: str | None = None,
        labels: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Classes:
        """Probabilities of a task's labels, or of any labels given as texts.

        `labels` may say each label in several ways: {"praise": ["praise", "a kind word"]}.
        """
        wanted = self.wanted(task, labels)
        many = [texts] if isinstance(texts, str) else list(texts)
        x = torch.from_numpy(np.asarray(self.encode(many, progress=progress)))
        return Classes(wanted.labels, self.probabilities(wanted, x))

    @torch.inference_mode()
    def probabilities(self, task: Relation, x: torch.Tensor) -> Probabilities:
        """Probabilities N×C of a task's labels for vectors of texts."""
        device = self.model.encoder.device
        y = self._label_vectors(task).to(device) if self.model.reads_labels else None
        scores = self.model.scores(task.name, x.to(device), y)
        found: Probabilities = self.model.probabilities(scores).double().cpu().numpy()
        return found

    def _label_vectors(self, task: Relation) -> torch.Tensor:
        ways = [(way, number) for number, ways in enumerate(task.label_texts) for way in ways]
        encoder = self.model.label_encoder or self.model.encoder
        vectors = encode_texts(encoder, [way for way, _ in ways], precision=self._encoding.precision)
        return label_vectors(torch.from_numpy(vectors), torch.tensor([number for _, number in ways]))

    def wanted(
        self, task: str | None, labels: Sequence[str] | Mapping[str, str | Sequence[str]] | None
    ) -> Relation:
        """What is asked: a task of the model's own, or labels as one."""
        if (task is None) == (labels is None):
            known = f" ({', '.join(one.name for one in self.tasks)})" if self.tasks else ""
            raise UsageError(f"give either a task{known} or labels")
        if task is not None:
            return self.model.task(task)
        if not self.model.reads_labels:
            raise UsageError("this model has a fixed layer per task and cannot read labels; name a task")
        made = new_task("labels", labels or ())
        self.check_labels(made, place="labels")
        return made

    def check_labels(self, task: Relation, *, place: str, remedy: str = "say it in other words") -> None:
        """Refuse labels that the encoder cannot read or tell apart; unknown words are logged, once."""
        if task in self._readable:
            return
        encoder = self.model.label_encoder or self.model.encoder
        faults = find_label_faults(encoder, task, place=place, remedy=remedy)
        if faults.problems:
            raise UsageError("\n".join(map(str, faults.problems)))
        for note in faults.notes:
            _log.warning(note)
        self._readable.add(task)


def new_task(name: str, labels: Sequence[str] | Mapping[str, str | Sequence[str]]) -> Relation:
    """A task from labels that were never seen: names, or names with the ways they are said."""
    if isinstance(labels, Mapping):
        ways = {label: (said,) if isinstance(said, str) else tuple(said) for label, said in labels.items()}
    else:
        ways = {label: (label,) for label in labels}
        if len(ways) < len(labels):
            raise UsageError("a label is given twice")
    return Relation.classes(name, list(ways), texts=tuple(ways.values()))
