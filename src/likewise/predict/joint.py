"""JointPredictor: a transformer fine-tuned on one relation of pairs (read as one input) or single texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from likewise.answering import COSINE, HEAD, Answers, CutTexts, Limits, Progress, Rows, find_relation
from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.reading import DAMAGED
from likewise.encoders.resolve import local_folder
from likewise.encoders.rules import Rules, among, check_keys, size
from likewise.encoders.vectors import DEFAULT_BUDGET
from likewise.errors import ModelError, UsageError
from likewise.folders import read_relation, reading
from likewise.methods.joint import JointModel, load_joint
from likewise.predict.asking import Answerer
from likewise.predict.families import Family, Running
from likewise.predict.pairs import label_probabilities
from likewise.records import Relation
from likewise.spelling import spelt, spelt_call
from likewise.store.card import CardParts, pair_example, python_example, relations_table, text_example

_JOINT: Rules = {"texts": among(1, 2), "max_length": size}


class JointPredictor(Answerer):
    """A loaded joint encoder; it answers one relation of pairs, read as one input, or of single texts."""

    def __init__(
        self,
        model: JointModel,
        about: Mapping[str, Any] | None = None,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
    ) -> None:
        self.model: JointModel = model.eval()
        self.about = dict(about or {})
        self._precision, self._token_budget = precision, token_budget
        self._cut_texts = CutTexts(model.max_length, "text" if model.texts == 1 else "pair")

    @property
    def texts(self) -> frozenset[int]:
        """The number of texts in a row, as in fine-tuning."""
        return frozenset({self.model.texts})

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relation that this model answers."""
        return self.model.relations

    @property
    def limits(self) -> Limits:
        """How much the model reads at once."""
        return Limits(self._token_budget, self.model.max_length)

    @property
    def cut_texts(self) -> CutTexts:
        """The count of the inputs that were longer than the model's limit."""
        return self._cut_texts

    def sources(self, relation: str) -> tuple[str, ...]:
        """The head, which is the only source of a joint encoder."""
        return (HEAD,)

    def answer(
        self,
        rows: Rows,
        relation: str | Relation,
        *,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer each row by a number on the relation's scale, or by a label with its probability."""
        own = find_relation(self, relation if isinstance(relation, str) else relation.name)
        if source == COSINE:
            raise UsageError(
                "a joint encoder has no vectors of single texts and so no cosine. Leave "
                f"{spelt('source')} out."
            )
        outputs = self.outputs(rows, progress=progress)
        chances = label_probabilities(outputs) if own.labels else None
        return Answers(own, HEAD, self.model.read(outputs), chances)

    def outputs(
        self, rows: Sequence[Sequence[str]], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """The head's outputs, B×C."""

        def tell_cut(cut: list[bool]) -> None:
            given = [tuple(row) for row in rows]
            self._cut_texts.count(given, {hash(row) for row, was in zip(given, cut, strict=True) if was})

        return self.model.outputs(
            rows,
            precision=self._precision,
            token_budget=self._token_budget,
            progress=progress,
            tell_cut=tell_cut,
        )

    def embedding(self) -> NoReturn:
        """Raise an error, because a joint encoder has no vectors of single texts."""
        name = self.about.get("name", "this model")
        raise UsageError(
            f"{name} was fine-tuned on one relation and reads its texts as one input, so it has no vectors "
            "of texts or words. Use an encoder instead, such as 'raw'."
        )


class JointFamily(Family[JointModel]):
    """Joint encoders are stock sequence classifiers, which CrossEncoder and transformers load."""

    def save(self, model: JointModel, folder: Path) -> dict[str, Any]:
        """Write the network and its tokenizer."""
        model.encoder.save_pretrained(str(folder))
        model.tokenizer.save_pretrained(str(folder))
        return {
            "relations": [model.relation.to_dict()],
            "joint": {"texts": model.texts, "max_length": model.max_length},
            "source": {model.relation.name: HEAD},
        }

    def load(
        self, name: str | os.PathLike[str], document: Mapping[str, Any] | None, running: Running
    ) -> JointModel:
        """Load a joint encoder and its head from a folder."""
        if document is None:
            how = spelt_call("train", "finetune", encoder=os.fspath(name))
            raise UsageError(f"{name} has no head for a relation. Fine-tune it ({how}).")
        path = local_folder(name) / DOCUMENT
        check_keys(document.get("joint"), _JOINT, path, inside="joint")
        with reading(path):
            (entry,) = document["relations"]
        relation = read_relation(entry, path)
        model = load_joint(name, relation, device=running.device, **document["joint"])
        if model.begun:
            names = ", ".join(sorted(model.begun)[:3])
            raise ModelError(
                f"{path.parents[1]}: the weights of the head ({names}) are missing or do not fit "
                f"{relation.scale[:60]}; {DAMAGED}"
            )
        return model.eval()

    def answerer(self, model: JointModel, about: Mapping[str, Any], running: Running) -> JointPredictor:
        """A JointPredictor."""
        return JointPredictor(model, about, precision=running.precision, token_budget=running.token_budget)

    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        """The card names the relation and shows how pairs or texts are scored."""
        if document["joint"].get("texts") != 1:
            ask = pair_example(name)
            loads = (
                "Also loads with `CrossEncoder` and with transformers' `AutoModelForSequenceClassification`."
            )
            return CardParts("text-classification", [*relations_table(document), "", *ask], loads)
        first = Relation.from_dict(document["relations"][0])
        ask = text_example(name, first) if first.labels else python_example(name, "load", 'score(["a text"])')
        loads = 'Also loads with transformers: `pipeline("text-classification", model=folder)`.'
        return CardParts("text-classification", [*relations_table(document), "", *ask], loads, row="text")
