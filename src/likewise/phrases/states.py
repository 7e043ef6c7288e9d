"""Contextual word vectors: hidden states of an encoder's layers, averaged over the tokens of a word.

The middle layer has the context of the sentence and still distinguishes its words. The last layer was trained
for whole sentences: it is worse for words, but better at showing whether two phrases mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from likewise.answering import Vectors
from likewise.data.batching import token_budget_batches
from likewise.errors import ModelError
from likewise.phrases.pieces import NONE, Range, pieces_of_words

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEFAULT_BUDGET = 4096


class WordLayers(NamedTuple):
    """The vectors of a text's words, n×d, from a middle layer and from the last layer."""

    middle: Vectors
    last: Vectors


class WordStates:
    """Computes the vectors of the words of texts from two layers of a transformer."""

    def __init__(
        self, encoder: SentenceTransformer, *, layer: int | None = None, token_budget: int = DEFAULT_BUDGET
    ) -> None:
        self._model, self._tokenizer = _transformer(encoder)
        self._device = encoder.device
        self.longest = int(encoder.max_seq_length or 512)
        self._token_budget = token_budget
        layers = int(self._model.config.num_hidden_layers)
        self.layer = layers // 2 if layer is None else layer
        if not 0 <= self.layer <= layers:
            raise ModelError(f"there is no layer {layer}, the model has {layers}. Choose 0 to {layers}.")

    def __call__(
        self,
        texts: Sequence[str],
        words: Sequence[Sequence[Range]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[WordLayers]:
        """For each text and layer, a row for each word (given by its characters); zero if it has no token."""
        if not texts:
            return []
        tokens = self._tokenizer(
            list(texts), truncation=True, max_length=self.longest, return_offsets_mapping=True
        )
        rows: list[WordLayers | None] = [None] * len(texts)
        lengths = [len(ids) for ids in tokens["input_ids"]]
        for batch in token_budget_batches(lengths, budget=self._token_budget):
            states = self._states({key: [tokens[key][i] for i in batch] for key in self._inputs(tokens)})
            for place, index in enumerate(batch):
                runs = pieces_of_words(words[index], tokens["offset_mapping"][index])
                rows[index] = WordLayers(
                    *(mean_of_runs(state[place, : lengths[index]], runs) for state in states)
                )
            if progress is not None:
                progress(len(batch))
        return [row for row in rows if row is not None]

    def reads_whole(self, text: str) -> bool:
        """Whether all tokens of a text fit into the longest input."""
        if len(text) < self.longest // 8:  # a token is at least a byte; a letter may be taken apart into some
            return True
        return len(self._tokenizer(text, verbose=False)["input_ids"]) <= self.longest

    def _inputs(self, tokens: Any) -> list[str]:
        return [key for key in ("input_ids", "attention_mask", "token_type_ids") if key in tokens]

    @torch.inference_mode()
    def _states(self, features: dict[str, list[list[int]]]) -> list[Vectors]:
        """The states of the two layers, padded."""
        padded = self._tokenizer.pad(features, return_tensors="pt").to(self._device)
        hidden = self._model(**padded, output_hidden_states=True).hidden_states
        return [hidden[layer].float().cpu().numpy() for layer in (self.layer, -1)]


def mean_of_runs(states: Vectors, runs: Sequence[Range]) -> Vectors:
    """The mean state of each run of tokens, from one cumulative sum."""
    sums = np.concatenate([np.zeros((1, states.shape[1]), states.dtype), np.cumsum(states, axis=0)])
    bounds = np.array([run if run != NONE else (0, 0) for run in runs], dtype=np.int64).reshape(-1, 2)
    counts = np.maximum(bounds[:, 1] - bounds[:, 0], 1)[:, None]
    means: Vectors = ((sums[bounds[:, 1]] - sums[bounds[:, 0]]) / counts).astype(np.float32)
    return means


def require_states(encoder: SentenceTransformer, remedy: str = "choose another encoder") -> None:
    """Raise an error for an encoder without states of words; the caller gives the remedy."""
    model, tokenizer = getattr(encoder[0], "auto_model", None), getattr(encoder, "tokenizer", None)
    if model is None or not getattr(tokenizer, "is_fast", False):
        found = "phrases need the states of a transformer and a fast tokenizer, which this encoder lacks"
        raise ModelError(f"{found}; {remedy}")


def _transformer(encoder: SentenceTransformer) -> tuple[Any, Any]:
    """The transformer in an encoder and its tokenizer, which must know the characters of its tokens."""
    require_states(encoder)
    return encoder[0].auto_model, encoder.tokenizer
