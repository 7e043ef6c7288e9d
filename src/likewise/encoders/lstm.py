"""An LSTM over word vectors, its last state as the vector of a text or a label: the learner of seed 002.

    plain        ids T → vectors T×d → LSTM T×H → state at the last word H       stock modules
    peepholes    ids T → vectors T×d → `PeepholeLSTM` H                          Zhang et al. 2017, eqs. 6–11

A plain folder loads anywhere. `PeepholeLSTM` is no class of sentence-transformers, which refuses such folders
unless it is told to trust code; `load_lstm_encoder` knows the class and trusts nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from sentence_transformers.util import import_module_class
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from likewise.encoders.sentence import refuse_pickles
from likewise.encoders.words import seeded, word_lookup
from likewise.errors import ModelError, UsageError

_WEIGHTS = "model.safetensors"


def lstm_encoder(
    vectors: str | os.PathLike[str],
    *,
    hidden: int = 100,
    words: Iterable[str] | None = None,
    max_length: int = 400,
    train_vectors: bool = True,
    peepholes: bool = False,
    start_deviation: float | None = None,
    seed: int = 1,
    device: str | None = None,
) -> SentenceTransformer:
    """Word vectors, one LSTM layer from left to right, its state at the last token. Vector width `hidden`.

    `words` restricts the vocabulary to words that occur in the data at hand; others become <unk>.
    `start_deviation` draws the LSTM's weights from a truncated normal and zeroes its biases; None leaves them
    to torch's own rule.
    """
    lookup = word_lookup(vectors, words=words, max_length=max_length, train_vectors=train_vectors, seed=seed)
    width = lookup.get_embedding_dimension()
    with seeded(seed):
        recurrent = PeepholeLSTM(width, hidden) if peepholes else LSTM(width, hidden, bidirectional=False)
        if start_deviation is not None:
            _start_normal(recurrent, start_deviation)
    pooling = [] if peepholes else [Pooling(hidden, "lasttoken")]
    return SentenceTransformer(modules=[lookup, recurrent, *pooling], device=device)


def load_lstm_encoder(folder: str | os.PathLike[str], *, device: str | None = None) -> SentenceTransformer:
    """Load a saved folder of stock modules and `PeepholeLSTM`; any other class is refused, no code is run."""
    where = Path(folder)
    refuse_pickles(where)
    modules = []
    for entry in json.loads((where / "modules.json").read_text(encoding="utf8")):
        own = entry["type"] == _class_path(PeepholeLSTM)
        kind = PeepholeLSTM if own else import_module_class(entry["type"], str(where))
        modules.append(kind.load(str(where), subfolder=entry["path"], local_files_only=True))
    settings = json.loads((where / "config_sentence_transformers.json").read_text(encoding="utf8"))
    kept = {key: settings.get(key) for key in ("prompts", "default_prompt_name", "similarity_fn_name")}
    return SentenceTransformer(modules=modules, device=device, **kept)


def holds_peepholes(folder: str | os.PathLike[str]) -> bool:
    """Whether a saved folder needs `load_lstm_encoder`."""
    listed = Path(folder) / "modules.json"
    return listed.is_file() and _class_path(PeepholeLSTM) in listed.read_text(encoding="utf8")


class PeepholeLSTM(Module):
    """One LSTM layer whose gates see the cell, B×T×d → B×H, the state at each text's last token.

        o = σ(W_o x + U_o h + v_o*c + b_o)        x: this word        c, h: cell and state before it, first 0
        i = σ(W_i x + U_i h + v_i*c + b_i)        *: elementwise
        f = σ(W_f x + U_f h + v_f*c + b_f)
        g = tanh(W_g x + U_g h)                   new c = f*c + i*g        new h = o*tanh(new c)

    Zhang et al. 2017, eqs. 6–11: all three gates see the old cell, the candidate g has no bias. Rows of the
    weights come in the order o, i, f, g. Only words are computed, not padding: batch mates leave no trace.
    """

    config_file_name = "peephole_lstm_config.json"
    config_keys = ["embedding_dimension", "hidden_dim"]  # noqa: RUF012 (the base class's own form)

    def __init__(self, embedding_dimension: int, hidden_dim: int) -> None:
        super().__init__()
        self.embedding_dimension, self.hidden_dim = embedding_dimension, hidden_dim
        self.weight_words = nn.Parameter(torch.empty(4 * hidden_dim, embedding_dimension))
        self.weight_state = nn.Parameter(torch.empty(4 * hidden_dim, hidden_dim))
        self.peepholes = nn.Parameter(torch.empty(3, hidden_dim))
        self.bias = nn.Parameter(torch.empty(3 * hidden_dim))
        # As torch's own LSTM starts.
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(hidden_dim**-0.5), hidden_dim**-0.5)

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        """Add the sentence embedding; padding must lie on the right."""
        words = features["token_embeddings"]
        lengths = features["attention_mask"].sum(dim=1).clamp(min=1).cpu()
        # A cell that is summed up over hundreds of words keeps full precision.
        with torch.autocast(words.device.type, enabled=False):
            last = self._last_states(words.to(self.weight_words.dtype), lengths)
        return {**features, "sentence_embedding": last}

    def _last_states(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        bias = functional.pad(self.bias, (0, self.hidden_dim))
        projected = functional.linear(packed.data, self.weight_words, bias)
        sizes = packed.batch_sizes
        states = _Recurrence.apply(projected, self.weight_state, self.peepholes, sizes.tolist())
        first_of_step = sizes.cumsum(0) - sizes
        last = first_of_step[lengths - 1].to(words.device) + packed.unsorted_indices
        return states.index_select(0, last)

    def get_embedding_dimension(self) -> int:
        """H."""
        return self.hidden_dim

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        """Write the settings and, as safetensors, the weights."""
        self.save_config(output_path)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, Path(output_path) / _WEIGHTS)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Read what `save` wrote."""
        made: Self = super().load(model_name_or_path, subfolder=subfolder, **options)
        hub = ("token", "cache_folder", "revision", "local_files_only")
        source = {key: options[key] for key in hub if key in options}
        weights = cls.load_file_path(model_name_or_path, _WEIGHTS, subfolder=subfolder, **source)
        if weights is None:
            raise ModelError(
                f"{model_name_or_path}/{subfolder}: {_WEIGHTS} is missing; copy the folder again"
            )
        made.load_state_dict(load_file(weights))
        return made


class _Recurrence(torch.autograd.Function):
    """States of the cell over packed words: N×4H (what the words add to the gates) → N×H.

    Rows are ordered by step, the longest texts first in each, and `sizes` counts them: finished texts cost
    nothing. The backward pass is written out, because autograd's takes longer: here its loop holds only what
    hangs on the step after, all else is done for every word at once.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, peepholes: Tensor, sizes: list[int]) -> Tensor:
        gates = projected.clone().view(len(projected), 4, -1)
        cells, states = torch.empty_like(gates[:, 0]), torch.empty_like(gates[:, 0])
        cell = state = torch.zeros_like(cells[: sizes[0]])
        steps = zip(sizes, gates.split(sizes), cells.split(sizes), states.split(sizes), strict=True)
        for size, gate, new_cell, new_state in steps:
            cell, state = cell[:size], state[:size]
            gate.view(size, -1).addmm_(state, weight.t())
            gate[:, :3].addcmul_(cell[:, None], peepholes).sigmoid_()
            o, i, f, g = gate.unbind(1)
            torch.mul(f, cell, out=new_cell).addcmul_(i, g.tanh_())
            torch.mul(o, new_cell.tanh(), out=new_state)
            cell, state = new_cell, new_state
        ctx.save_for_backward(gates, cells, states, weight, peepholes)
        ctx.sizes = sizes
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, from_states: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        gates, cells, states, weight, peepholes = ctx.saved_tensors
        cells_before, states_before = (_one_step_before(rows, ctx.sizes) for rows in (cells, states))
        slopes, to_cell, cell_back, state_back = _slopes(gates, cells, cells_before, peepholes)
        along = (from_states, slopes, to_cell, cell_back, state_back)
        steps = zip(ctx.sizes, *(rows.split(ctx.sizes) for rows in along), strict=True)
        by_cell, by_state = torch.zeros_like(cells[: ctx.sizes[0]]), torch.zeros_like(cells[: ctx.sizes[0]])
        for size, added, slope, into, back_c, back_h in reversed(list(steps)):
            c, h = by_cell[:size], by_state[:size]
            h.add_(added)
            c.addcmul_(h, into)
            slope[:, 0].mul_(h)
            slope[:, 1:].mul_(c[:, None])
            c.mul_(back_c).addcmul_(h, back_h)
            torch.mm(slope.view(size, -1), weight, out=h)
        by_gates = slopes.flatten(1)
        by_peepholes = (slopes[:, :3] * cells_before[:, None]).sum(0)
        return by_gates, by_gates.t() @ states_before, by_peepholes, None


def _slopes(gates: Tensor, cells: Tensor, before: Tensor, peepholes: Tensor) -> tuple[Tensor, ...]:
    """What one step's derivatives are made of, for all words at once.

    Of the gates' inputs, N×4×H: o by the new state; i, f and g by the new cell. Of the new cell by the new
    state. Of the old cell by the new one, and by the new state through o's peephole.
    """
    o, i, f, g = gates.unbind(1)
    squashed = cells.tanh()
    slopes = torch.empty_like(gates)
    # Written in place, x(1 − y) as x − xy: fresh memory of this size costs more than the arithmetic.
    torch.addcmul(gates[:, :3], gates[:, :3], gates[:, :3], value=-1, out=slopes[:, :3])
    for slope, factor in zip(slopes.unbind(1), (squashed, g, before), strict=False):
        slope.mul_(factor)
    torch.addcmul(i, i, g.square(), value=-1, out=slopes[:, 3])
    to_cell = torch.addcmul(o, o, squashed.square_(), value=-1)
    v_o, v_i, v_f = peepholes.unbind(0)
    cell_back = torch.addcmul(f, slopes[:, 1], v_i).addcmul_(slopes[:, 2], v_f)
    return slopes, to_cell, cell_back, slopes[:, 0] * v_o


def _one_step_before(rows: Tensor, sizes: Sequence[int]) -> Tensor:
    """For each word, the row of the word before it; zero for the first."""
    kept = [step[:size] for step, size in zip(rows.split(sizes), sizes[1:], strict=False)]
    return torch.cat([torch.zeros_like(rows[: sizes[0]]), *kept])


def _start_normal(module: nn.Module, deviation: float) -> None:
    """Weights from a normal cut at two deviations, biases (the forget gate's too) zero."""
    if deviation <= 0:
        raise UsageError(f"start_deviation is {deviation}; it must be above 0")
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
        else:
            nn.init.trunc_normal_(parameter, std=deviation, a=-2 * deviation, b=2 * deviation)


def _class_path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
