"""Classifier: a loaded label model, which answers its own tasks and labels that it did not see in training.

model = likewise.load_classifier("my-model")
model.classify("Where is the nearest station?", labels=["question", "complaint", "praise"])
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from likewise.answering import (
    CUT,
    MATCHER,
    Answers,
    CutTexts,
    Limits,
    Long,
    Numbers,
    Probabilities,
    Progress,
    Rows,
    label_answers,
)
from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.resolve import local_folder
from likewise.encoders.rules import (
    Nested,
    Rules,
    above_zero,
    among,
    check_keys,
    list_of,
    map_of,
    number,
    or_null,
    size,
    word,
)
from likewise.encoders.sentence import load_encoder
from likewise.encoders.vectors import DEFAULT_BUDGET, Encoding, encode_texts
from likewise.encoders.weights import check_names, read_header, read_tensors
from likewise.errors import ModelError, UsageError
from likewise.folders import read_relation, reading
from likewise.matchers import MATCHERS
from likewise.methods.label_embedding import (
    ONE_HOT,
    Calibration,
    LabelModel,
    fit_calibration,
    label_vectors,
    matching_shapes,
    shorten,
)
from likewise.methods.label_texts import find_label_faults
from likewise.predict.asking import Answerer, Labels
from likewise.predict.embedding import EncoderEmbedding
from likewise.predict.families import Family, Running
from likewise.predict.pairs import encoder_card_line
from likewise.records import Relation
from likewise.schema.labels import (
    DEFAULT_TEMPLATES,
    MOST_TEMPLATES,
    new_task,
    template_fault,
)
from likewise.spelling import spelt
from likewise.store.card import CardParts, relations_table, text_example
from likewise.store.encoder import encoder_to_dict, plain, save_encoder

_log = logging.getLogger("likewise")
_CALIBRATION: Rules = {"temperature": above_zero, "offsets": list_of(number)}
_OPTIONS: Rules = {
    "matcher": among(*MATCHERS, ONE_HOT),
    "loss": among("softmax", "bce", "positive"),
    **dict.fromkeys(("hidden", "max_words"), or_null(size)),
    "weights": or_null(map_of(number)),
    "templates": list_of(word, most=MOST_TEMPLATES),
    "calibrations": map_of(Nested(_CALIBRATION)),
}


class Classifier(Answerer):
    """A loaded label model."""

    def __init__(
        self,
        model: LabelModel,
        about: Mapping[str, Any] | None = None,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
        cache: int = 100_000,
        keep_tokens: bool = False,
        long: Long = CUT,
    ) -> None:
        self.model: LabelModel = model.eval()
        self.about = dict(about or {})
        self._readable: set[Relation] = set()
        self._precision, self._token_budget = precision, token_budget
        self._encoding = Encoding(
            model.encoder,
            precision=precision,
            token_budget=token_budget,
            kept=cache,
            keep_tokens=keep_tokens,
            long=long,
        )
        self._embedding = EncoderEmbedding(
            model.encoder, self._encoding, shorten=lambda text: shorten(text, model.max_words)
        )

    @property
    def texts(self) -> frozenset[int]:
        """One: label models read single texts."""
        return frozenset({1})

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The tasks of this model."""
        return self.model.tasks

    @property
    def reads_labels(self) -> bool:
        """Whether the model reads label texts; it does not if each task has a fixed layer."""
        return self.model.reads_labels

    @property
    def limits(self) -> Limits:
        """How much the model reads at once."""
        return Limits(self._token_budget, self.model.encoder.max_seq_length)

    @property
    def cut_texts(self) -> CutTexts:
        """The count of the texts that were longer than the encoder's limit."""
        return self._embedding.cut_texts

    def sources(self, relation: str) -> tuple[str, ...]:
        """The matcher, which is the only source of a label model."""
        return (MATCHER,)

    def forget(self) -> None:
        """Empty the cache of text vectors, because the model has changed."""
        self._encoding.forget()

    def embedding(self) -> EncoderEmbedding:
        """The vectors of the text encoder."""
        return self._embedding

    def answer(
        self,
        rows: Rows,
        relation: str | Relation,
        *,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer each text by a label of a task, or of a relation that the model did not see in training."""
        if source not in (None, MATCHER):
            raise UsageError(
                f"a label model answers by its {MATCHER}, not by the {source}. Leave {spelt('source')} out."
            )
        task = self.model.task(relation) if isinstance(relation, str) else relation
        if not rows:
            return label_answers(task, MATCHER, np.zeros((0, len(task.labels))))
        x = torch.from_numpy(self._embedding.recall([row[0] for row in rows], progress=progress))
        return label_answers(task, MATCHER, self.probabilities(task, x))

    @torch.inference_mode()
    def _scores(self, task: Relation, x: torch.Tensor) -> torch.Tensor:
        device = self.model.encoder.device
        y = self._label_vectors(task).to(device) if self.model.reads_labels else None
        return self.model.scores(task.name, x.to(device), y)

    @torch.inference_mode()
    def probabilities(self, task: Relation, x: torch.Tensor) -> Probabilities:
        """The probabilities N×C of a task's labels for the vectors of texts."""
        scores = self._scores(task, x)
        found: Probabilities = self.model.probabilities(scores, task.name).double().cpu().numpy()
        return found

    def label_scores(self, task: Relation, texts: Sequence[str]) -> Numbers:
        """The scores N×C of texts for the labels of a task, before any calibration."""
        x = torch.from_numpy(self._embedding.recall(list(texts)))
        return self._scores(task, x).double().cpu().numpy()

    def calibrate(self, task: Relation, texts: Sequence[str], labels: Sequence[str]) -> float:
        """Fit the probabilities of a task to labelled texts that were not trained on; the temperature."""
        if self.model.loss != "softmax":
            raise UsageError(
                f"this model decides on each label by itself (loss {self.model.loss}), so its probabilities "
                "cannot be calibrated together."
            )
        gold = np.array([task.labels.index(label) for label in labels])
        found = fit_calibration(self.label_scores(task, texts), gold)
        self.model.calibrations[task.name] = found
        return found.temperature

    def _label_vectors(self, task: Relation) -> torch.Tensor:
        ways = self.model.ways(task)
        encoder = self.model.label_encoder or self.model.encoder
        vectors = encode_texts(encoder, [way for way, _ in ways], precision=self._precision)
        return label_vectors(torch.from_numpy(vectors), torch.tensor([number for _, number in ways]))

    def keep_templates(self, templates: Sequence[str]) -> None:
        """Put label texts into other templates from now on."""
        with self.saying(templates):
            kept = self.model.templates
        self.model.templates = kept

    @contextmanager
    def saying(self, templates: Sequence[str]) -> Iterator[None]:
        """Put label texts into other templates for a while."""
        if templates and not self.model.reads_labels:
            raise UsageError(
                "this model has a fixed layer per task and reads no label texts, so templates have no "
                "effect. Leave them out."
            )
        if fault := template_fault(templates):
            raise UsageError(f"{fault}.")
        before = self.model.templates
        self.model.templates = tuple(templates) or before
        try:
            yield
        finally:
            self.model.templates = before

    def check_classifies(self) -> None:
        """Nothing to check: a label model classifies single texts."""

    def wanted(self, task: str | None, labels: Labels | None) -> Relation:
        """The task to answer: one of the model's own, or the given labels as a task."""
        if task is None and labels is None and len(self.relations) == 1:
            return self.relations[0]
        if (task is None) == (labels is None):
            known = f" ({', '.join(one.name for one in self.relations)})" if self.relations else ""
            raise UsageError(f"this call needs either a task{known} or labels. Pass one of the two.")
        if task is not None:
            return self.model.task(task)
        if not self.model.reads_labels:
            raise UsageError("this model has a fixed layer per task and cannot read labels. Name a task.")
        made = new_task("labels", () if labels is None else labels)
        if made not in self._readable:
            check_labels(self.model, made, place="labels", tell=_log.warning)
            self._readable.add(made)
        return made


def _read_options(options: Mapping[str, Any], tasks: Sequence[Relation], path: Path) -> dict[str, Any]:
    """The options of a saved model, with its calibrations as objects."""
    made = dict(options)
    if fault := template_fault(made.get("templates", ())):
        raise ModelError(f"{path}: {fault}. Correct it or remove the key.")
    counts = {task.name: len(task.labels) for task in tasks}
    calibrations = {}
    for name, table in made.pop("calibrations", {}).items():
        check_keys(table, _CALIBRATION, path, inside=f"labels.calibrations.{name[:100]}")
        if set(table) != set(_CALIBRATION) or counts.get(name) != len(table["offsets"]):
            raise ModelError(
                f"{path}: the calibration of {name[:100]!r} does not fit the task's labels. Calibrate the "
                "model again."
            )
        calibrations[name] = Calibration(float(table["temperature"]), tuple(map(float, table["offsets"])))
    return {**made, "calibrations": calibrations}


def check_labels(
    model: LabelModel,
    task: Relation,
    *,
    place: str,
    tell: Callable[[str], None],
    remedy: str = "use other words",
) -> None:
    """Raise an error for labels that the encoder cannot read or tell apart; report unknown words."""
    faults = find_label_faults(model.label_encoder or model.encoder, task, place=place, remedy=remedy)
    if faults.problems:
        raise UsageError("\n".join(map(str, faults.problems)))
    for note in faults.notes:
        tell(note)


class LabelsFamily(Family[LabelModel]):
    """Label models: an encoder that SentenceTransformer loads, with the matcher beside it."""

    def save(self, model: LabelModel, folder: Path) -> dict[str, Any]:
        """Write the encoder's folder, with the matcher and any separate label encoder in `likewise/`."""
        save_encoder(model.encoder, folder)
        own = folder / "likewise"
        if model.label_encoder is not None:
            model.label_encoder.save(str(own / "label_encoder"), create_model_card=False)
        save_file(plain(model.matching_state()), own / "matcher.safetensors")
        return {
            "relations": [task.to_dict() for task in model.tasks],
            "labels": model.options(),
            "source": {task.name: MATCHER for task in model.tasks},
            **encoder_to_dict(model.encoder),
        }

    def load(
        self, name: str | os.PathLike[str], document: Mapping[str, Any] | None, running: Running
    ) -> LabelModel:
        """Load a folder's model, or a raw encoder, which compares texts with labels by the cosine."""
        if document is None:
            encoder = load_encoder(name, device=running.device)
            return LabelModel(encoder, (), matcher="cosine", templates=DEFAULT_TEMPLATES).eval()
        path = local_folder(name) / DOCUMENT
        check_keys(document.get("labels"), _OPTIONS, path, inside="labels")
        tasks = [read_relation(entry, path) for entry in document.get("relations", [])]
        encoder = load_encoder(name, device=running.device)
        beside = path.parent / "label_encoder"
        labels = load_encoder(beside, device=running.device) if os.path.lexists(beside) else None
        file, options = path.parent / "matcher.safetensors", document["labels"]
        with reading(path):
            # Before memory is taken for them.
            needed = matching_shapes(encoder, tasks, matcher=options["matcher"], hidden=options.get("hidden"))
            check_names(needed, read_header(file), file)
            model = LabelModel(encoder, tasks, label_encoder=labels, **_read_options(options, tasks, path))
        model.load_matching(read_tensors(file, device=str(model.encoder.device)))
        return model.eval()

    def answerer(self, model: LabelModel, about: Mapping[str, Any], running: Running) -> Classifier:
        """A Classifier."""
        return Classifier(model, about, **running.computing())

    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        """The card names the tasks and shows how texts are classified."""
        first = Relation.from_dict(document["relations"][0])
        use = [*relations_table(document), "", *text_example(name, first)]
        return CardParts("text-classification", use, encoder_card_line(document), row="text")

    def extend(self, model: LabelModel, relation: Relation, tell: Callable[[str], None]) -> None:
        """Add a task, or labels to a task, of a model that can read them; no parameter changes."""
        if not model.reads_labels:
            raise UsageError(
                "the model has a fixed layer per task and cannot read labels. Train one with a matcher."
            )
        words, cold = spelt("labels", "NAME = WORDS"), spelt("mode", "cold")
        remedy = f"use other words ({words}), or train all tasks again ({cold})"
        check_labels(model, relation, place=f"task {relation.name}", tell=tell, remedy=remedy)
        if relation.name in model.calibrations:
            tell(f"the probabilities of {relation.name} must be calibrated again, since its labels changed")
        others = [task for task in model.tasks if task.name != relation.name]
        kept = [relation if task.name == relation.name else task for task in model.tasks]
        model.set_tasks(kept if len(others) < len(kept) else [*kept, relation], model.weights)
