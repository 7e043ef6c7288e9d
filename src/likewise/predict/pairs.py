"""Predictor: a loaded pair model, with an encoder and heads; a raw encoder answers by its cosine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import (
    COSINE,
    CUT,
    HEAD,
    MEAN,
    Answers,
    CutTexts,
    Limits,
    Long,
    Numbers,
    Probabilities,
    Progress,
    Rows,
    plain_cosine,
)
from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.reading import DAMAGED
from likewise.encoders.resolve import local_folder, possible_path
from likewise.encoders.sentence import load_encoder
from likewise.encoders.vectors import DEFAULT_BUDGET, Encoding
from likewise.encoders.vocabulary import find_vocabulary
from likewise.encoders.weights import check_names, read_header, read_tensors
from likewise.errors import ModelError, UsageError
from likewise.folders import reading
from likewise.methods.described import DESCRIBED
from likewise.methods.pairs import Objective, PairModel, head_shapes, objective_source
from likewise.predict.asking import Answerer
from likewise.predict.embedding import EncoderEmbedding
from likewise.predict.families import Family, Running
from likewise.predict.pair_document import (
    answered_by,
    answers_to_dict,
    check_sources,
    frozen_to_dict,
    objective_to_dict,
    read_answers,
    read_frozen,
    read_objective,
)
from likewise.records import Relation
from likewise.store.card import CardParts, as_code, pair_example, relations_table
from likewise.store.encoder import (
    encoder_to_dict,
    load_grown_encoder,
    plain,
    save_encoder,
    with_saved_padding,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

RAW_RELATION = Relation(
    "similarity",
    lo=-1.0,
    hi=1.0,
    step=2.0,
    description="cosine of the two vectors of an encoder without heads",
)


class Predictor(Answerer):
    """A loaded pair model: `score` pairs, `encode` texts, `explain` a score."""

    def __init__(
        self,
        model: PairModel,
        about: Mapping[str, Any] | None = None,
        *,
        precision: str = "fp32",
        token_budget: int = DEFAULT_BUDGET,
        cache: int = 100_000,
        keep_tokens: bool = False,
        long: Long = CUT,
    ) -> None:
        self.model: PairModel = model.eval()
        self.about = dict(about or {})
        self._token_budget = token_budget
        self._encoding = Encoding(
            model.encoder,
            precision=precision,
            token_budget=token_budget,
            kept=cache,
            keep_tokens=keep_tokens,
            long=long,
        )
        self._embedding = EncoderEmbedding(
            model.encoder, self._encoding, name=str(self.about.get("name", "")), part=model.frozen
        )

    @property
    def texts(self) -> frozenset[int]:
        """Two: pair models read pairs."""
        return frozenset({2})

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that this model answers."""
        return self.model.relations

    @property
    def limits(self) -> Limits:
        """How much the model reads at once."""
        return Limits(self._token_budget, self.model.encoder.max_seq_length)

    @property
    def cut_texts(self) -> CutTexts:
        """The count of the texts that were longer than the encoder's limit."""
        return self._embedding.cut_texts

    def sources(self, relation: str) -> tuple[str, ...]:
        """The sources of a relation: the one that answers it, then the others; the cosine is always one."""
        self.model.answering(relation)
        chosen = self.model.answers.get(relation)
        mine = [objective_source(o) for o in self.model.objectives if o.relation.name == relation]
        mean = [MEAN] if chosen is not None and {COSINE, HEAD} <= set(chosen.lines) else []
        return tuple(dict.fromkeys([*([chosen.source] if chosen else []), *mine, COSINE, *mean]))

    def forget(self) -> None:
        """Empty the cache of text vectors, because the model has changed."""
        self._encoding.forget()

    def embedding(self) -> EncoderEmbedding:
        """The vectors of the encoder."""
        return self._embedding

    def answer(
        self,
        rows: Rows,
        relation: str | Relation,
        *,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer one relation for pairs."""
        name = relation if isinstance(relation, str) else relation.name
        return self._answer_all(rows, [name], source, progress)[0]

    def _answer_all(
        self, rows: Rows, names: Sequence[str], source: str | None, progress: Progress | None
    ) -> list[Answers]:
        """Answer several relations at once; each text is encoded only once."""
        asked = [self.model.answering(name).relation for name in names]
        if source == COSINE:
            cosines = self._embedding.cosines(rows, progress=progress)
            return [plain_cosine(relation, cosines) for relation in asked]
        pairs = _Pairs(self.model, self._embedding, rows, progress)
        return [self._answer_one(pairs, relation, source) for relation in asked]

    def _answer_one(self, pairs: _Pairs, relation: Relation, source: str | None) -> Answers:
        chosen = self.model.answers.get(relation.name)
        if source == MEAN:
            if MEAN not in self.sources(relation.name):
                known = ", ".join(self.sources(relation.name))
                raise UsageError(f"relation {relation.name!r} has no source {MEAN!r}. Choose one of {known}.")
            chosen = replace(chosen, source=MEAN) if chosen is not None else None
        elif source is not None:
            chosen = None
        if chosen is None:
            return pairs.trained(relation.name, source)
        said = pairs.said(relation.name, chosen.parts())
        return Answers(relation, chosen.source, chosen.values(said, relation))

    def said(self, rows: Rows, relation: str) -> dict[str, Numbers]:
        """The outputs of each source for a numeric relation, before a line puts them on the scale.

        The cosine is unchanged, and a head's numbers may lie outside the scale. A head that gives labels has
        no such outputs.
        """
        mine = [o for o in self.model.objectives if o.relation.name == relation]
        if any(one.head == "classes" for one in mine):
            return {}
        head = [HEAD] if any(objective_source(one) == HEAD for one in mine) else []
        return _Pairs(self.model, self._embedding, rows).said(relation, [COSINE, *head])

    def cosines(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> Numbers:
        """cos(u, v) of pairs, in −1..1."""
        return self._embedding.cosines(self._rows(list(pairs), None, None, None), progress=progress)

    def views(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """The vectors of texts by name; `model` is the vector of this model.

        A model on a frozen encoder also has the frozen encoder's vectors (`raw`) and the `language` vectors.
        """
        return self._embedding.views(texts, progress=progress)


class _Pairs:
    """Pairs for which several relations are answered; vectors and outputs are computed once."""

    def __init__(
        self, model: PairModel, embedding: EncoderEmbedding, rows: Rows, progress: Progress | None = None
    ) -> None:
        self._model, self._embedding, self._rows, self._progress = model, embedding, rows, progress

    @cached_property
    def _vectors(self) -> tuple[Tensor, Tensor]:
        return self._embedding.pair_vectors(self._rows, self._progress)

    @cached_property
    def _cosines(self) -> Numbers:
        return self._embedding.cosines(self._rows, progress=self._progress)

    @cached_property
    def _descriptions(self) -> dict[str, Tensor]:
        return self._model.describe(partial(self._embedding.recall, counted=False))

    def trained(self, relation: str, source: str | None) -> Answers:
        """The answers of a relation's own objective."""
        one = self._model.answering(relation, source)
        readings = self._readings(one)
        codec = one.codec()
        chances = label_probabilities(readings) if codec.form == "class" else None
        return Answers(one.relation, objective_source(one), codec.decode(readings), chances)

    def said(self, relation: str, sources: Sequence[str]) -> dict[str, Numbers]:
        """The outputs of sources for a numeric relation, before a line puts them on the scale."""
        found: dict[str, Numbers] = {}
        for source in sources:
            if source == COSINE:
                found[source] = self._cosines
            else:
                one = self._model.answering(relation, source)
                found[source] = np.asarray(one.codec().decode(self._readings(one), bounded=False))
        return found

    def _readings(self, one: Objective) -> NDArray[np.float64]:
        said = self._descriptions.get(one.relation.name)
        return self._model.readings(one, *self._vectors, description=said)


def label_probabilities(logits: NDArray[np.floating]) -> Probabilities:
    """Turn logits N×C into probabilities."""
    if not len(logits):
        return np.zeros(logits.shape, dtype=np.float64)
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def raw_model(encoder: SentenceTransformer) -> PairModel:
    """A pair model without heads, which answers by the cosine."""
    return PairModel(encoder, [Objective(RAW_RELATION, "cosine", "mse", floor=-1.0)]).eval()


def cosine_model(encoder: SentenceTransformer, relations: Sequence[Relation]) -> PairModel:
    """A raw encoder whose cosine answers each numeric relation, or `similarity` if there is none."""
    numbers = [relation for relation in relations if relation.kind != "classes"]
    if not numbers:
        return raw_model(encoder)
    return PairModel(encoder, [Objective(relation, "cosine", "mse") for relation in numbers]).eval()


class PairsFamily(Family[PairModel]):
    """Pair models: an encoder that SentenceTransformer loads, with heads beside it."""

    def save(self, model: PairModel, folder: Path) -> dict[str, Any]:
        """Write the encoder's folder, with heads and the language extractor in `likewise/`."""
        from safetensors.torch import save_file

        save_encoder(model.encoder, folder)
        own = folder / "likewise"
        save_file(plain(model.heads.state_dict()), own / "heads.safetensors")
        if model.frozen is not None and model.frozen.tensors:
            save_file(plain(model.frozen.tensors), own / "language.safetensors")
        return {
            "relations": [relation.to_dict() for relation in model.relations],
            "objectives": [objective_to_dict(objective) for objective in model.objectives],
            "source": {r.name: answered_by(model, r.name) for r in model.relations},
            **({"answers": answers_to_dict(model.answers)} if model.answers else {}),
            **({"frozen": frozen_to_dict(model.frozen)} if model.frozen is not None else {}),
            **encoder_to_dict(model.encoder),
        }

    def load(
        self, name: str | os.PathLike[str], document: Mapping[str, Any] | None, running: Running
    ) -> PairModel:
        """Load a folder's model, or a raw encoder, which answers `similarity` by its cosine."""
        if document is None:
            return raw_model(load_encoder(name, device=running.device))
        given = possible_path(name)
        grown = running.encoder is not None or (
            given is not None and os.path.lexists(given / "likewise" / "layers")
        )
        where = Path(name) if grown else local_folder(name)
        encoder = (
            load_grown_encoder(where, document, running.encoder)
            if grown
            else load_encoder(name, device=running.device)
        )
        model = _with_heads(encoder, where, document)
        model.frozen = read_frozen(where / "likewise" / "language.safetensors", document)
        model.answers = read_answers(document, model, where / DOCUMENT)
        check_sources(document, model, where / DOCUMENT)
        return model

    def answerer(self, model: PairModel, about: Mapping[str, Any], running: Running) -> Predictor:
        """A Predictor."""
        return Predictor(model, about, **running.computing())

    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        """The card names the relations and shows how pairs are scored."""
        use = [*relations_table(document), "", *pair_example(name)]
        return CardParts("sentence-similarity", use, _how_it_loads(document))

    def extend(self, model: PairModel, relation: Relation, tell: Callable[[str], None]) -> None:
        """Let a head that reads descriptions answer one more relation; no parameter changes."""
        template = next((one for one in model.objectives if one.head == DESCRIBED), None)
        if template is None:
            raise UsageError(
                "the model has a fixed head for each relation and none that reads descriptions. Train one "
                'with head = "described" (recipe relations-described), then add relations to it.'
            )
        check_description_words(model.encoder, relation, tell)
        model.set_objectives([*model.objectives, replace(template, relation=relation, weight=1.0)])
        model.eval()


def _with_heads(encoder: SentenceTransformer, where: Path, document: Mapping[str, Any]) -> PairModel:
    path, file = where / DOCUMENT, where / "likewise" / "heads.safetensors"
    with reading(path):
        objectives = [read_objective(entry, path) for entry in document["objectives"]]
        # Before memory is taken for them.
        check_names(head_shapes(encoder, objectives), read_header(file), file)
        model = PairModel(with_saved_padding(encoder, document), objectives)
        listed = [Relation.from_dict(entry) for entry in document["relations"]]
    if listed != list(model.relations):
        raise ModelError(f"{path}: the relations are not those of the objectives; {DAMAGED}")
    state = read_tensors(file, device=str(encoder.device))
    model.heads.load_state_dict(state)
    model.fresh = frozenset()
    return model.eval()


def check_description_words(
    encoder: SentenceTransformer, relation: Relation, tell: Callable[[str], None]
) -> None:
    """Raise an error for a description that the encoder cannot read; report the words it does not know."""
    vocabulary = find_vocabulary(encoder)
    reading = None if vocabulary is None else vocabulary.read(relation.description)
    if reading is None or not reading.unknown:
        return
    words = ", ".join(dict.fromkeys(reading.unknown))
    if reading.says_nothing:
        found = f"relation {relation.name!r}: the encoder knows no word of the description ({words})"
        raise UsageError(f"{found}. Use other words.")
    tell(f"{relation.name}: the encoder does not know these words of the description: {words}")


def _how_it_loads(document: Mapping[str, Any]) -> str:
    if "encoder_function" in document:
        name = document["encoder_function"]["name"]
        return (
            f"Holds only layers. Load it with the encoder {as_code(name)}: likewise.load(folder, encoder=…)."
        )
    return encoder_card_line(document)


def encoder_card_line(document: Mapping[str, Any]) -> str:
    """The line of the card that says what else loads an encoder's folder."""
    if document.get("recipe", {}).get("encoder", {}).get("peepholes"):
        return "Its LSTM has peepholes, which sentence-transformers does not support. Load it with Likewise."
    return "Also loads with `SentenceTransformer`, which neither reads nor saves the heads in `likewise/`."
