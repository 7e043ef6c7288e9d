"""A model that is measured: loaded once, with the vectors of all texts that any part asks about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import likewise
from likewise.answering import Answers, Numbers, Vectors
from likewise.encoders.cache import identify
from likewise.encoders.manifest import describe_files
from likewise.encoders.resolve import local_folder
from likewise.errors import UsageError

# Tokens of a batch; a GPU waits for Python if batches are small.
BUDGETS = {"cpu": 2048, "cuda": 65536}


class Asked:
    """A model and its vectors. `outcomes` holds what other models and means of several are compared with."""

    def __init__(self, name: str, *, device: str | None = None, token_budget: int | None = None) -> None:
        where = (device or ("cuda" if torch.cuda.is_available() else "cpu")).partition(":")[0]
        self.name = name
        self.model = likewise.load(
            name, device=device, token_budget=token_budget or BUDGETS.get(where, BUDGETS["cpu"])
        )
        self.outcomes: dict[str, Any] = {}
        self._places: dict[str, int] = {}
        self._vectors: Vectors = np.zeros((0, 0), dtype=np.float32)

    @property
    def untrained(self) -> bool:
        """Whether this is an encoder without heads, which answers by its cosine alone."""
        return bool(self.model.about.get("raw"))

    @property
    def encoder(self) -> Any:
        """The encoder of the model's texts, or None for a model that reads both texts as one input."""
        return getattr(self.model.model, "encoder", None)

    @property
    def has_vectors(self) -> bool:
        """Whether the model has vectors of single texts."""
        try:
            self.model.embedding()
        except UsageError:
            return False
        return True

    def device(self) -> str:
        """The accelerator that the model computes on, or "cpu"."""
        used = next(self.model.model.parameters()).device
        return torch.cuda.get_device_name(used) if used.type == "cuda" else str(used.type)

    def encode(self, texts: Iterable[str]) -> int:
        """Encode the texts that are new, in batches of similar length; how many there are now."""
        new = [text for text in dict.fromkeys(texts) if text not in self._places]
        if new and self.has_vectors:
            vectors = self.model.embedding().recall(new)  # type: ignore[attr-defined]
            unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            self._places |= {text: len(self._places) + place for place, text in enumerate(new)}
            self._vectors = np.concatenate([self._vectors, unit]) if self._vectors.size else unit
        return len(self._places)

    def unit(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, N×d, on unit length."""
        return self._vectors[[self._places[text] for text in texts]]

    def cosines(self, pairs: Sequence[tuple[str, ...]]) -> Numbers:
        """cos(u, v) of pairs."""
        u, v = (self.unit([pair[side] for pair in pairs]) for side in (0, 1))
        found: Numbers = np.einsum("nd,nd->n", u, v, dtype=np.float64)
        return found

    def relation(self, name: str) -> Any:
        """The model's relation of pairs with this name, or None."""
        if 2 not in self.model.texts:
            return None
        return next((one for one in self.model.relations if one.name == name), None)

    def answer(self, relation: str, pairs: Sequence[tuple[str, ...]]) -> Answers:
        """The model's own answers to a relation."""
        return self.model.answer(pairs, relation)

    def release(self) -> None:
        """Give up the weights and vectors, and keep the outcomes."""
        self._vectors, self._places = np.zeros((0, 0), dtype=np.float32), {}
        self.model.forget()
        del self.model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def described(self) -> dict[str, Any]:
        """What identifies the model: hashes of its files and of its encoder, relations and their sources."""
        folder = local_folder(self.name)
        files = {name: one["sha256"] for name, one in describe_files(folder).items()}
        relations = {
            one.name: {"scale": str(one.scale), "source": self.model.source(one.name)}
            for one in self.model.relations
        }
        prints = {} if not self.has_vectors else {"encoder": identify(self.encoder).fingerprint}
        return {"files": files, **prints, "relations": relations, "untrained": self.untrained}


def shown_name(name: str) -> str:
    """A model's name without the folders that lead to it."""
    return name if name.count("/") == 1 and not Path(name).exists() else Path(name).name


def hits(said: Sequence[Any] | NDArray[Any], gold: Sequence[Any] | NDArray[Any]) -> NDArray[np.bool_]:
    """For each row, whether an answer is right."""
    found: NDArray[np.bool_] = np.asarray(said) == np.asarray(gold)
    return found
