"""Fine-tuning of a joint encoder, which reads one text, or two as one input, and answers one relation.

    [CLS] a [SEP] b [SEP] → transformer → its own pooling of the first piece → Linear
    graded relation    one output, squared error; ratings are learnt around their mean, in units of their
                       spread, and the last layer is put back on the relation's own scale afterwards
    labels             one output per label, cross-entropy

The network is transformers' stock sequence classifier, so the saved folder loads with `CrossEncoder` and
with `AutoModelForSequenceClassification`. A transformer without segment ids (MPNet) tells the texts apart
by the separators between them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from likewise import ranks
from likewise.data.batching import token_budget_batches
from likewise.encoders.delta import join_delta
from likewise.encoders.lowrank import network_of, network_tensors
from likewise.encoders.opening import open_network
from likewise.encoders.reading import DAMAGED, loading
from likewise.encoders.resolve import is_delta, local_folder
from likewise.encoders.sentence import autocast_settings, check_network_vocabulary, readable_length
from likewise.encoders.vectors import DEFAULT_BUDGET
from likewise.encoders.weights import check_finite, check_size, check_types, judge
from likewise.errors import ModelError
from likewise.records import Relation

# How `CrossEncoder` is told to leave one output as it is: the relation's own scale, not a sigmoid of it.
_PLAIN_OUTPUT = {"activation_fn": "torch.nn.modules.linear.Identity"}


class JointModel(nn.Module):
    """A stock sequence classifier that answers one relation."""

    family: ClassVar[str] = "joint"

    def __init__(
        self, encoder: Any, tokenizer: Any, relation: Relation, *, texts: int = 2, max_length: int = 128
    ) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.tokenizer, self.relation = tokenizer, relation
        self.texts, self.max_length = texts, max_length
        # Names of the head's tensors that no checkpoint held and training has yet to fill.
        self.begun: frozenset[str] = frozenset()
        self.centre: Tensor
        self.spread: Tensor
        self.register_buffer("centre", torch.zeros(()))
        self.register_buffer("spread", torch.ones(()))

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The one relation it answers."""
        return (self.relation,)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.parameters()).device

    def forward(self, inputs: dict[str, Tensor], targets: Tensor, idle: bool = False) -> dict[str, Tensor]:
        """The loss of a step; an `idle` process fills in with a row that weighs nothing."""
        found = self.encoder(**inputs).logits.float()
        if self.relation.kind == "graded":
            loss = functional.mse_loss(found[:, 0], (targets - self.centre) / self.spread)
        else:
            loss = functional.cross_entropy(found, targets.long())
        return {"loss": loss * ranks.weight_of(0 if idle else len(targets), loss.detach())}

    def standardise(self, ratings: Sequence[float]) -> None:
        """Learn these ratings around their mean: a head that starts at 0 would first learn where they lie."""
        self.centre.fill_(float(np.mean(ratings)))
        self.spread.fill_(float(np.std(ratings)) or 1.0)

    @torch.no_grad()
    def settle(self) -> None:
        """Put the last layer on the relation's own scale, so that anyone's code answers on it."""
        if self.relation.kind != "graded":
            return
        last = [m for m in self.encoder.modules() if isinstance(m, nn.Linear) and m.out_features == 1][-1]
        last.weight.mul_(self.spread)
        last.bias.mul_(self.spread).add_(self.centre)
        self.centre.fill_(0.0)
        self.spread.fill_(1.0)

    def target(self, value: object) -> float:
        """A gold value as the loss reads it: a number on its scale, or the number of its label."""
        return float(str(value)) if self.relation.kind == "graded" else self.relation.labels.index(str(value))

    def read(self, outputs: NDArray[np.float32]) -> NDArray[np.float64] | list[str]:
        """Outputs B×C as answers: numbers inside the relation's range, or labels."""
        if self.relation.kind == "graded":
            return np.clip(outputs[:, 0].astype(np.float64), self.relation.lo, self.relation.hi)
        return [self.relation.labels[int(place)] for place in outputs.argmax(axis=1)]

    def cut(self, rows: Sequence[Sequence[str]]) -> list[dict[str, list[int]]]:
        """Each row's texts as one input; of two that are too long the longer one is cut first."""
        return self.inputs_of(rows)[0]

    def inputs_of(self, rows: Sequence[Sequence[str]]) -> tuple[list[dict[str, list[int]]], list[bool]]:
        """The same, and whether each row was cut."""
        if not rows:
            return [], []
        columns = [list(column) for column in zip(*rows, strict=True)]
        found = self.tokenizer(*columns, truncation=True, max_length=self.max_length)
        names = [name for name in self.tokenizer.model_input_names if name in found]
        inputs = [{name: found[name][row] for name in names} for row in range(len(rows))]
        full = [len(one["input_ids"]) >= self.max_length for one in inputs]
        kept = found.encodings  # of a fast tokenizer: it keeps what it cut off
        return inputs, [
            is_full and (bool(kept[row].overflowing) if kept else self._is_longer(rows[row]))
            for row, is_full in enumerate(full)
        ]

    def _is_longer(self, row: Sequence[str]) -> bool:
        return len(self.tokenizer(*row, verbose=False)["input_ids"]) > self.max_length

    def batch(self, inputs: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
        """Inputs as padded tensors."""
        names = inputs[0].keys()
        padded = self.tokenizer.pad(
            {name: [one[name] for one in inputs] for name in names}, return_tensors="pt"
        )
        return dict(padded)

    @torch.inference_mode()
    def outputs(
        self,
        rows: Sequence[Sequence[str]],
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
        progress: Callable[[int], None] | None = None,
        tell_cut: Callable[[list[bool]], None] | None = None,
    ) -> NDArray[np.float32]:
        """What the head says of rows of texts, B×C, in batches of similar length.

        `tell_cut` receives whether each row was longer than the model's limit.
        """
        inputs, cut = self.inputs_of(rows)
        if tell_cut is not None:
            tell_cut(cut)
        found = np.zeros((len(rows), max(1, len(self.relation.labels))), dtype=np.float32)
        lengths = [len(one["input_ids"]) for one in inputs]
        for batch in token_budget_batches(lengths, budget=token_budget):
            padded = {name: x.to(self.device) for name, x in self.batch([inputs[i] for i in batch]).items()}
            with torch.autocast(**autocast_settings(precision, str(self.device))):
                logits = self._logits(padded)
            found[batch] = (logits * self.spread + self.centre).cpu().numpy()
            if progress is not None:
                progress(len(batch))
        return found

    def _logits(self, inputs: dict[str, Tensor]) -> Tensor:
        """Outputs of a batch; a piece that the network lacks means that the tokenizer is another model's."""
        try:
            logits: Tensor = self.encoder(**inputs).logits.float()
        except IndexError as error:
            raise ModelError(
                f"the model's tokenizer gives tokens that its network does not have ({error}); {DAMAGED}"
            ) from error
        return logits


@contextmanager
def _without_report() -> Iterator[None]:
    """Keep transformers from reporting that the head is new: here it is meant to be."""
    from transformers.utils import logging as reports

    before = reports.get_verbosity()
    reports.set_verbosity_error()
    try:
        yield
    finally:
        reports.set_verbosity(before)


def load_joint(
    name: str | os.PathLike[str],
    relation: Relation,
    *,
    texts: int = 2,
    max_length: int = 128,
    device: str | None = None,
) -> JointModel:
    """A checkpoint as a joint encoder; a head for the relation is begun unless the checkpoint has one."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    where = local_folder(name)
    joined = None
    if is_delta(where):
        joined = join_delta(where, device="cpu")
        where = joined.source
    part = open_network(where)
    outputs = 1 if relation.kind == "graded" else len(relation.labels)
    check_size(part.folder, part.weights, outputs=outputs)
    labels = relation.labels or (relation.name,)
    options: dict[str, Any] = {
        "num_labels": outputs,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
        "use_safetensors": True,
        "ignore_mismatched_sizes": True,  # a head for other labels is begun anew
        "output_loading_info": True,
        "trust_remote_code": False,
        "local_files_only": True,
    }
    safe = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = loading(where, lambda: AutoTokenizer.from_pretrained(where, **safe))
    with _without_report():
        network, info = loading(
            where, lambda: AutoModelForSequenceClassification.from_pretrained(where, **options)
        )
    begun = judge(network, info, where, head=True)
    check_finite(network.state_dict(), where)
    for file in part.weights:
        check_types(file, network)
    if joined is not None:
        changed = network_tensors(network_of(joined.encoder, name))
        network.float().base_model.load_state_dict(changed, strict=False)
    check_network_vocabulary(tokenizer, network, where)
    if tokenizer.pad_token is None:
        raise ModelError(f"{where}: the tokenizer cannot pad texts. Choose another checkpoint.")
    max_length = readable_length(max_length, network)
    tokenizer.model_max_length = max_length  # saved with it, so that others cut where we do
    if outputs == 1:
        network.config.sentence_transformers = dict(_PLAIN_OUTPUT)
        network.config.problem_type = "regression"  # transformers' pipelines leave the number as it is
    model = JointModel(network.float(), tokenizer, relation, texts=texts, max_length=max_length)
    model.begun = frozenset(begun)
    model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    loading(where, lambda: _check_output(model, where))
    return model


def _check_output(model: JointModel, where: Path) -> None:
    """Read one word: a network that cannot, or that says no finite number, is refused now."""
    if not np.isfinite(model.outputs([("a",) * model.texts])).all():
        raise ModelError(f"{where}: the output for a word is not finite; {DAMAGED}")
