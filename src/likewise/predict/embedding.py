"""EncoderEmbedding: the vectors of an encoder, with a cache of the latest texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from likewise.answering import CHUNK, CutTexts, Languages, Numbers, Progress, Vectors
from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.sentence import with_modules
from likewise.encoders.vectors import Encoding
from likewise.phrases.states import require_states
from likewise.spelling import spelt


def _remedy() -> str:
    """What to do about texts that were cut."""
    return f"Use {spelt('long', 'chunk')} to read them whole."


if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.methods.multilingual import FrozenPart


class EncoderEmbedding:
    """The vectors of one encoder; `part` is set if the encoder has trained layers on a frozen encoder.

    `shorten` is applied to each text before it is encoded.
    """

    def __init__(
        self,
        encoder: SentenceTransformer,
        encoding: Encoding,
        *,
        name: str = "",
        part: FrozenPart | None = None,
        shorten: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._encoder, self._encoding, self._name, self._part = encoder, encoding, name, part
        self._shorten = shorten
        self.cut_texts = CutTexts(encoding.limit, remedy=_remedy())
        self.languages = Languages() if part is None else Languages(part.pairs, part.languages)

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """The vectors of texts, N×d, computed now."""
        if self._divides_for_layers:
            return self.views(texts, progress=progress)["model"]
        read = [self._shorten(text) for text in texts]
        vectors = self._encoding.encode(read, progress=progress)
        self.cut_texts.count(read, self._encoding.cut, self._encoding.unknown)
        return vectors

    def recall(
        self, texts: Sequence[str], *, progress: Progress | None = None, counted: bool = True
    ) -> Vectors:
        """The vectors of texts, N×d, from the cache where possible; `counted` as texts of the user."""
        if self._divides_for_layers:
            return self.views(texts, progress=progress)["model"]
        read = [self._shorten(text) for text in texts]
        vectors = self._encoding.recall(read, progress=progress)
        if counted:
            self.cut_texts.count(read, self._encoding.cut, self._encoding.unknown)
        return vectors

    @property
    def _divides_for_layers(self) -> bool:
        """Whether windows are pooled below trained layers, which were trained on vectors of whole texts."""
        return self._part is not None and self._encoding.long == CHUNK

    def pair_vectors(
        self, pairs: Sequence[tuple[str, ...]], progress: Progress | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The vectors u and v of pairs, on the encoder's device."""
        found = self.recall([text for pair in pairs for text in pair], progress=progress)
        vectors = torch.from_numpy(found).to(self._encoder.device)
        return vectors[0::2], vectors[1::2]

    def cosines(self, pairs: Sequence[tuple[str, ...]], *, progress: Progress | None = None) -> Numbers:
        """cos(u, v) of pairs; with a frozen encoder, from its cached vectors, which several models share."""
        if self._part is None:
            u, v = self.pair_vectors(pairs, progress)
            return torch.nn.functional.cosine_similarity(u, v, dim=-1).double().cpu().numpy()
        distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: row for row, text in enumerate(distinct)}
        vectors = self.views(distinct, progress=progress)["model"]
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / np.where(length == 0, 1, length)
        a, b = (unit[[place[pair[side]] for pair in pairs]] for side in (0, 1))
        found: Numbers = np.einsum("nd,nd->n", a, b, dtype=np.float64)
        return found

    def views(self, texts: Sequence[str], *, progress: Progress | None = None) -> dict[str, Vectors]:
        """The vectors of texts by name; `model` is the vector of this model.

        A model on a frozen encoder also has the frozen encoder's vectors (`raw`) and the `language` vectors.
        """
        if self._part is None:
            return {"model": self.encode(texts, progress=progress)}
        self._encoding.measure(texts)
        self.cut_texts.count(texts, self._encoding.cut, self._encoding.unknown)
        modules = list(self._encoder)
        base = with_modules(self._encoder, modules[: self._part.modules])
        cache = EmbeddingCache.of(
            base, name=self._name, precision=self._encoding.precision, long=self._encoding.long
        )
        raw = cache.matrix(texts, progress=progress)
        e = torch.from_numpy(np.ascontiguousarray(raw))
        after = _after(modules[self._part.modules :], e.to(self._encoder.device))
        found = {"raw": raw, "model": after}
        language = self._part.language_of(e)
        return found if language is None else {**found, "language": language.numpy()}

    def states(self, remedy: str) -> SentenceTransformer:
        """The encoder; raises an error with this remedy if the encoder has no states of words."""
        require_states(self._encoder, remedy)
        return self._encoder


@torch.inference_mode()
def _after(modules: Sequence[torch.nn.Module], vectors: torch.Tensor) -> Vectors:
    """The vectors after the modules that follow a frozen encoder."""
    features = {"sentence_embedding": vectors}
    for module in modules:
        features = module(features)
    return features["sentence_embedding"].cpu().numpy()
