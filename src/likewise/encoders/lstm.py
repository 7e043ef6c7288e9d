"""An LSTM over word vectors, whose last state is the vector of a text or a label (Zhang et al. 2017).

    plain        ids T → vectors T×d → LSTM T×H → state at the last word H       stock modules
    peepholes    ids T → vectors T×d → `PeepholeLSTM` H                          Zhang et al. 2017, eqs. 6–11

A plain folder also loads with sentence-transformers. `PeepholeLSTM` is not a class of sentence-transformers,
which therefore refuses such folders unless it is told to trust their code. `build_lstm_encoder` knows the
class and runs no code of the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module
from sentence_transformers.sentence_transformer import modules as stock
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from likewise.encoders.opening import OpenedModule
from likewise.encoders.weights import check_names, read_tensors
from likewise.encoders.words import Source, seeded, word_lookup
from likewise.errors import UsageError

_WEIGHTS = "model.safetensors"


def lstm_encoder(
    vectors: Source,
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
    """Make an encoder of word vectors and one LSTM layer: its state at the last token, of width `hidden`.

    `words` restricts the vocabulary to these words; others become <unk>. `start_deviation` draws the LSTM's
    first weights from a truncated normal distribution and sets its biases to zero; with None, torch's own
    initialisation is used.
    """
    lookup = word_lookup(vectors, words=words, max_length=max_length, train_vectors=train_vectors, seed=seed)
    width = lookup.get_embedding_dimension()
    with seeded(seed):
        recurrent = PeepholeLSTM(width, hidden) if peepholes else LSTM(width, hidden, bidirectional=False)
        if start_deviation is not None:
            _start_normal(recurrent, start_deviation)
    pooling = [] if peepholes else [Pooling(hidden, "lasttoken")]
    return without_packing(SentenceTransformer(modules=[lookup, recurrent, *pooling], device=device))


def build_lstm_encoder(
    where: Path, parts: Sequence[OpenedModule], *, device: str | None = None
) -> SentenceTransformer:
    """Build one encoder from the modules of an opened folder, including ours."""
    modules = []
    for part in parts:
        kind = getattr(stock, part.kind, None) or PeepholeLSTM
        modules.append(kind.load(str(part.folder), local_files_only=True))
    about = where / "config_sentence_transformers.json"
    settings = json.loads(about.read_text(encoding="utf8")) if about.is_file() else {}
    kept = {key: settings.get(key) for key in ("prompts", "default_prompt_name", "similarity_fn_name")}
    return without_packing(SentenceTransformer(modules=modules, device=device, **kept))


class PeepholeLSTM(Module):
    """One LSTM layer whose gates see the cell, B×T×d → B×H: the state at each text's last token.

        o = σ(W_o x + U_o h + v_o*c + b_o)        x: this word        c, h: cell and state before it, first 0
        i = σ(W_i x + U_i h + v_i*c + b_i)        *: elementwise
        f = σ(W_f x + U_f h + v_f*c + b_f)
        g = tanh(W_g x + U_g h)                   new c = f*c + i*g        new h = o*tanh(new c)

    Zhang et al. 2017, eqs. 6–11: all three gates see the old cell, and the candidate g has no bias. The rows
    of the weights are in the order o, i, f, g. Only words are computed, not padding, so the other texts of a
    batch have no effect.
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
        """Add the sentence embedding; padding must be on the right."""
        words = features["token_embeddings"]
        lengths = features["attention_mask"].sum(dim=1).clamp(min=1).cpu()
        # A cell that is summed up over hundreds of words keeps full precision.
        with torch.autocast(words.device.type, enabled=False):
            last = self._last_states(words.to(self.weight_words.dtype), lengths)
        return {**features, "sentence_embedding": last}

    def _last_states(self, words: Tensor, lengths: Tensor) -> Tensor:
        # Packed rows lie step by step, the longest texts first: texts that have ended cost nothing.
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        bias = functional.pad(self.bias, (0, self.hidden_dim))
        projected = functional.linear(packed.data, self.weight_words, bias)
        weight, peepholes = self.weight_state.t(), functional.pad(self.peepholes, (0, 0, 0, 1))
        cell = state = words.new_zeros(len(words), self.hidden_dim)
        ended: list[Tensor] = []
        for step in projected.split_with_sizes(packed.batch_sizes.tolist()):
            if len(step) < len(state):
                ended.append(state[len(step) :])
                cell, state = cell[: len(step)], state[: len(step)]
            gates = torch.addmm(step, state, weight).view(-1, 4, self.hidden_dim)
            gates = torch.addcmul(gates, cell[:, None], peepholes)
            o, i, f = gates[:, :3].sigmoid().unbind(1)
            cell = torch.addcmul(f * cell, i, gates[:, 3].tanh())
            state = o * cell.tanh()
        return torch.cat([state, *reversed(ended)])[packed.unsorted_indices]

    def get_embedding_dimension(self) -> int:
        """H, the width of a vector."""
        return self.hidden_dim

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        """Write the settings as JSON and the weights as safetensors."""
        self.save_config(output_path)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, Path(output_path) / _WEIGHTS)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Load a module that `save` wrote."""
        made: Self = super().load(model_name_or_path, subfolder=subfolder, **options)
        path = Path(model_name_or_path, subfolder, _WEIGHTS)
        weights = read_tensors(path)
        check_names(made.state_dict(), {name: tuple(one.shape) for name, one in weights.items()}, path)
        made.load_state_dict(weights)
        return made


class PaddedLSTM(nn.LSTM):
    """torch's left-to-right LSTM, which pads the texts that sentence-transformers packs; states are the same.

    Padding comes after all words and cannot affect them. On a CPU, the backward pass over packed texts of
    different lengths grows with the square of the length: at 400 words, a step takes 3 to 6 times as long.
    """

    @classmethod
    def around(cls, other: nn.LSTM) -> Self:
        """An LSTM that shares the weights of another one."""
        made = cls(other.input_size, other.hidden_size, device="meta")
        for name, parameter in other.named_parameters():
            setattr(made, name, parameter)
        return made

    def forward(  # type: ignore[override]
        self, packed: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]:
        """Packed words → packed states; the second part is computed after padding and must not be used."""
        if packed.data.device.type != "cpu":
            return super().forward(packed, hx)
        sizes, row = packed.batch_sizes[:, None], torch.arange(int(packed.batch_sizes[0]))
        real = row < sizes
        # Where there is no word, any other stands in for it: nothing reads the state after it.
        places = torch.where(real, sizes.cumsum(0) - sizes + row, 0)
        words = packed.data.index_select(0, places.flatten()).view(*places.shape, -1)
        states, last = super().forward(words, hx)
        return PackedSequence(states[real], *packed[1:]), last


def without_packing(encoder: SentenceTransformer) -> SentenceTransformer:
    """Make an encoder's one-directional LSTM train fast on a CPU, in place; it is saved as a stock module."""
    for module in encoder:
        if isinstance(module, LSTM) and not module.bidirectional and module.num_layers == 1:
            module.encoder = PaddedLSTM.around(module.encoder)
    return encoder


def _start_normal(module: nn.Module, deviation: float) -> None:
    """Draw weights from a normal distribution cut at two deviations; set all biases to zero."""
    if deviation <= 0:
        raise UsageError(f"start_deviation is {deviation}, but it must be above 0. Choose a positive number.")
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
        else:
            nn.init.trunc_normal_(parameter, std=deviation, a=-2 * deviation, b=2 * deviation)
