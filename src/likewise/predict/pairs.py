"""Predictor: an encoder and its heads ready to answer pairs; `likewise.load(model)` returns one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.inputs import check_texts
from likewise.encoders.sentence import with_modules
from likewise.encoders.vectors import DEFAULT_BUDGET, Encoding
from likewise.methods.pairs import PairModel, objective_source
from likewise.predict.answers import Numbers, Scores, as_pairs, label_probabilities, place_in_pairs
from likewise.records import Relation

if TYPE_CHECKING:
    from likewise.explain.explanation import PairExplanation
    from likewise.phrases.spans import Phraser

_log = logging.getLogger("likewise")


class Predictor:
    """A model ready to answer: `score` pairs, `encode` texts."""

    def __init__(
        self,
        model: PairModel,
        about: Mapping[str, Any] | None = None,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
        cache: int = 100_000,
    ) -> None:
        self.model = model.eval()
        self.about = dict(about or {})
        self._encoding = Encoding(model.encoder, precision=precision, token_budget=token_budget, kept=cache)
        self._phrasers: dict[str, Phraser] = {}

    @property
    def relations(self) -> tuple[Relation, ...]:
        """What this model answers."""
        return self.model.relations

    def source(self, relation: str) -> str:
        """Whether `cosine` or a `head` answers a relation."""
        return objective_source(self.model.answering(relation))

    def encode(
        self, texts: str | Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Vectors of texts, N×d (d alone for one string); the same as SentenceTransformer gives."""
        many = [texts] if isinstance(texts, str) else list(texts)
        check_texts(many)
        vectors = self._encoding.encode(many, progress=progress)
        return vectors[0] if isinstance(texts, str) else vectors

    def views(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Vectors of texts as the `model` gives them.

        A model grown on a frozen encoder also gives that encoder's own (`raw`) and its `language` vectors.
        """
        part = self.model.frozen
        if part is None:
            return {"model": self.encode(texts, progress=progress)}
        modules = list(self.model.encoder)
        base = with_modules(self.model.encoder, modules[: part.modules])
        cache = EmbeddingCache.of(
            base, name=str(self.about.get("name", "")), precision=self._encoding.precision
        )
        raw = cache.matrix(texts, progress=progress)
        e = torch.from_numpy(np.ascontiguousarray(raw))
        after = _after(modules[part.modules :], e.to(self.model.encoder.device))
        found = {"raw": raw, "model": after}
        language = part.language_of(e)
        return found if language is None else {**found, "language": language.numpy()}

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
        """Score pairs on every relation (or those named): a list of (a, b), a file, a frame, a dataset.

        `source` asks for `cosine` or `head` where a relation has both.
        """
        rows = as_pairs(pairs, text_a=text_a, text_b=text_b)
        names = (
            [relation] if isinstance(relation, str) else list(relation or [r.name for r in self.relations])
        )
        objectives = [self.model.answering(name, source) for name in names]
        u, v = self._pair_vectors(rows, progress)
        said = self.model.describe(self._encoding.recall)
        readings = [self.model.readings(o, u, v, description=said.get(o.relation.name)) for o in objectives]
        read = [(o.relation.name, o.codec(), found) for o, found in zip(objectives, readings, strict=True)]
        return Scores(
            {name: codec.decode(found) for name, codec, found in read},
            [o.relation for o in objectives],
            {o.relation.name: objective_source(o) for o in objectives},
            {name: label_probabilities(found) for name, codec, found in read if codec.form == "class"},
        )

    @overload
    def explain(
        self, a: str, b: str, *, relation: str | None = None, phrases: str | Phraser = "auto"
    ) -> PairExplanation: ...
    @overload
    def explain(
        self,
        a: Any,
        b: None = None,
        *,
        relation: str | None = None,
        phrases: str | Phraser = "auto",
        text_a: str | None = None,
        text_b: str | None = None,
    ) -> list[PairExplanation]: ...
    def explain(
        self,
        a: Any,
        b: str | None = None,
        *,
        relation: str | None = None,
        phrases: str | Phraser = "auto",
        text_a: str | None = None,
        text_b: str | None = None,
    ) -> PairExplanation | list[PairExplanation]:
        """Which phrases of two texts match, what is left over, and what each carries of the score.

        For two texts one explanation; for pairs, as `score` takes them, one each. `relation` is the first if
        left out; `phrases` names what finds them (auto, rules, spacy, a pipeline) or is a Phraser; `text_a`
        and `text_b` are the columns of a table of pairs.
        """
        from likewise.explain.explainer import Explainer
        from likewise.phrases.linking import Asked
        from likewise.phrases.states import require_states

        require_states(self.model.encoder, "give likewise.load another `model`")
        rows = [(a, b)] if isinstance(b, str) else as_pairs(a, text_a=text_a, text_b=text_b)
        check_texts([text for pair in rows for text in pair], name=place_in_pairs)
        if isinstance(phrases, str):
            phrases = self._phrasers.get(phrases, phrases)
        explainer = Explainer(self, relation=relation, phrases=phrases, tell=_log.warning)
        asked = [Asked(*pair, source=f"pair {place}") for place, pair in enumerate(rows)]
        found = [replace(one, source="") for one in explainer.explain(asked)]
        if isinstance(phrases, str) and found:
            self._phrasers[phrases] = explainer.phraser  # loading a parser takes a second
        return found[0] if isinstance(b, str) else found

    def cosines(
        self, pairs: Sequence[tuple[str, str]], *, progress: Callable[[int], None] | None = None
    ) -> Numbers:
        """cos(u, v) of pairs, in −1..1."""
        u, v = self._pair_vectors(list(pairs), progress)
        return torch.nn.functional.cosine_similarity(u, v, dim=-1).double().cpu().numpy()

    def _pair_vectors(
        self, rows: Sequence[tuple[str, str]], progress: Callable[[int], None] | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        texts = [text for pair in rows for text in pair]
        check_texts(texts, name=place_in_pairs)
        found = self._encoding.recall(texts, progress=progress)
        vectors = torch.from_numpy(found).to(self.model.encoder.device)
        return vectors[0::2], vectors[1::2]


@torch.inference_mode()
def _after(modules: Sequence[torch.nn.Module], vectors: torch.Tensor) -> NDArray[np.float32]:
    """Vectors after the modules that follow a frozen encoder."""
    features = {"sentence_embedding": vectors}
    for module in modules:
        features = module(features)
    return features["sentence_embedding"].cpu().numpy()
