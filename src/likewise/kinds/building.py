"""Build objects from a recipe's names: encoder, relations, objectives, settings. Nothing else does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.data.catalogue import find_corpus
from likewise.data.filecache import content_digests
from likewise.encoders.resolve import resolve
from likewise.encoders.sentence import load_encoder, with_prompt, without_normalisation
from likewise.errors import LikewiseError, Problem, RecipeError
from likewise.heads import Layers
from likewise.kinds.context import RunContext
from likewise.losses import make_loss
from likewise.methods.described import DESCRIBED, check_description
from likewise.methods.pairs import Objective
from likewise.methods.regression import check_zone
from likewise.records import Relation
from likewise.schema.base import OptimisedStage
from likewise.schema.pairs import ObjectiveSpec
from likewise.schema.parts import WORD_KINDS, EncoderSpec, RelationSpec, Word2VecSpec
from likewise.schema.recipe import Recipe
from likewise.training.settings import FitSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.words import Source, WordTable
    from likewise.kinds.base import StageData


def build_relations(recipe: Recipe) -> dict[str, Relation]:
    """The recipe's relations by name."""
    return {name: _relation(name, spec) for name, spec in recipe.relation.items()}


def _relation(name: str, spec: RelationSpec) -> Relation:
    if spec.corpus:
        return _corpus_relation(name, spec)
    if spec.kind == "graded":
        return Relation.graded(
            name, spec.lo, spec.hi, step=spec.step, metric=spec.metric, description=spec.description
        )
    return Relation(
        name,
        spec.kind,
        labels=spec.labels,
        positions=spec.positions,
        metric=spec.metric,
        description=spec.description,
        texts=_label_texts(name, spec),
    )


def _corpus_relation(name: str, spec: RelationSpec) -> Relation:
    """A label task with the labels of a named corpus; an order of the labels is ignored."""
    corpus, _, relation = spec.corpus.partition("/")
    known = {one.name: one for one in find_corpus(corpus).relations}
    if relation not in known:
        found = f"corpus {corpus!r} has no relation {relation!r}; its relations are {', '.join(known)}"
        raise RecipeError([Problem(f"relation.{name}.corpus", found)])
    own = known[relation]
    said = {
        label: spec.texts.get(label, ways) for label, ways in zip(own.labels, own.label_texts, strict=True)
    }
    return Relation.classes(
        name, own.labels, metric=spec.metric, description=spec.description, texts=tuple(said.values())
    )


def _label_texts(name: str, spec: RelationSpec) -> tuple[tuple[str, ...], ...]:
    unknown = [label for label in spec.texts if label not in spec.labels]
    if unknown:
        found = f"{unknown[0]!r} is not one of the relation's labels ({', '.join(spec.labels)})"
        raise RecipeError([Problem(f"relation.{name}.texts", found)])
    return tuple(spec.texts.get(label, (label,)) for label in spec.labels) if spec.texts else ()


def build_objectives(recipe: Recipe, number: int, specs: Sequence[ObjectiveSpec]) -> list[Objective]:
    """The objectives of stage `number`; an error names the recipe path of each problem."""
    relations = build_relations(recipe)
    problems: list[Problem] = []
    objectives: list[Objective] = []
    for place, spec in enumerate(specs):
        try:
            objectives.append(_objective(relations[spec.relation], spec))
        except LikewiseError as error:
            problems.append(Problem(f"stage.{number}.objective.{place}", str(error)))
    if problems:
        raise RecipeError(problems)
    return objectives


def _objective(relation: Relation, spec: ObjectiveSpec) -> Objective:
    objective = Objective(
        relation,
        spec.head,
        spec.loss,
        pairing=spec.pairing,
        layers=Layers(spec.hidden, spec.activation, spec.scale_features),
        floor=spec.floor,
        weight=spec.weight,
        allow_blind=spec.allow_blind,
        within=spec.within,
        matcher=spec.matcher,
        options=spec.options(),
    )
    objective.codec()
    if spec.head == DESCRIBED:
        check_description(relation)
    make_loss(spec.loss, spec.head, lo=relation.lo, hi=relation.hi, unit=relation.unit, **spec.options())
    if spec.loss in ("smooth_k2", "translated_relu") and spec.x0 is not None:
        check_zone(relation, spec.x0)
    return objective


def build_encoder(
    spec: EncoderSpec,
    *,
    device: str | None,
    seed: int,
    words: Iterable[str] | None,
    table: WordTable | None = None,
) -> SentenceTransformer:
    """The encoder that a recipe starts from; `words` limits word-vector vocabularies.

    `table` holds word vectors that were learnt for this run; they replace the recipe's.
    """
    if spec.kind == "pretrained":
        encoder = load_encoder(spec.name, device=device, max_length=spec.max_length)
        encoder = encoder if spec.normalise else without_normalisation(encoder)
        return with_prompt(encoder, spec.prompt) if spec.prompt else encoder
    vectors = spec.vectors if table is None else table
    if not vectors:
        remedy = "name their folder or file here, or have them learnt (encoder.word2vec)"
        raise RecipeError([Problem("encoder.vectors", f"kind {spec.kind!r} needs word vectors", remedy)])
    if spec.kind == "vectors":
        from likewise.encoders.external import external_encoder

        external = external_encoder(spec.vectors)
        return with_prompt(external, spec.prompt) if spec.prompt else external
    from likewise.encoders.words import with_dropout

    made = _word_encoder(spec, vectors, device=device, seed=seed, words=words)
    return with_dropout(made, spec.dropout) if spec.dropout else made


def _word_encoder(
    spec: EncoderSpec, vectors: Source, *, device: str | None, seed: int, words: Iterable[str] | None
) -> SentenceTransformer:
    """A recurrent encoder or an average over word vectors."""
    from likewise.encoders.words import average_encoder, bilstm_encoder

    if spec.kind == "bilstm":
        return bilstm_encoder(
            vectors,
            hidden=spec.hidden or 2048,
            words=words,
            max_length=spec.max_length or 256,
            train_vectors=spec.train_vectors,
            padding=spec.padding,
            seed=seed,
            device=device,
        )
    if spec.kind == "lstm":
        from likewise.encoders.lstm import lstm_encoder

        return lstm_encoder(
            vectors,
            hidden=spec.hidden or 100,
            words=words,
            max_length=spec.max_length or 400,
            train_vectors=spec.train_vectors,
            peepholes=spec.peepholes,
            start_deviation=spec.start_deviation,
            seed=seed,
            device=device,
        )
    return average_encoder(vectors, words=words, train_vectors=spec.train_vectors, seed=seed, device=device)


def encoder_digests(spec: EncoderSpec) -> dict[str, str]:
    """The files that an encoder is made from, with a hash of each; empty for an encoder on the hub."""
    name = resolve(spec.name) if spec.kind == "pretrained" else spec.vectors
    return start_digests(Path(name)) if name else {}


def start_of(spec: EncoderSpec, context: RunContext) -> dict[str, str]:
    """What training starts from, by name: hashes of the encoder's files, or of a function's outputs."""
    if context.encoder is None:
        return encoder_digests(spec)
    from likewise.encoders.external import ExternalTexts

    return {"the encoder function": ExternalTexts(context.encoder, "function").print}


# Of a folder under version control or opened in a notebook; no module can lie in a hidden folder.
_BESIDE = frozenset({".git", ".gitattributes", ".gitignore", ".ipynb_checkpoints"})


def start_digests(place: Path) -> dict[str, str]:
    """Hashes of an encoder's files, without notes and pictures, which no loader reads."""
    found = content_digests(place)
    return {
        name: digest
        for name, digest in found.items()
        if not name.endswith((".md", ".png", ".svg", ".jpg")) and name.split("/")[0] not in _BESIDE
    }


def build_settings(
    stage: OptimisedStage,
    *,
    seed: int,
    device: str | None = None,
    precision: str = "fp32",
    trackers: tuple[str, ...] = (),
) -> FitSettings:
    """The optimisation settings of one stage."""
    shared = {
        name: getattr(stage, name)
        for name in FitSettings.__dataclass_fields__
        if name in type(stage).model_fields
    }
    return FitSettings(**shared, seed=seed, device=device, precision=precision, trackers=trackers)


def start_encoder(recipe: Recipe, stages: Sequence[StageData], context: RunContext) -> SentenceTransformer:
    """The encoder before the first step: the recipe's, or a function that was passed in Python."""
    if context.encoder is not None:
        from likewise.encoders.external import external_encoder

        encoder = external_encoder(context.encoder)
        return with_prompt(encoder, recipe.encoder.prompt) if recipe.encoder.prompt else encoder
    from likewise.encoders.words import distinct_words

    table = _learn_words(recipe, stages, context) if recipe.encoder.word2vec else None
    from_data = recipe.encoder.kind in WORD_KINDS and recipe.encoder.words == "data" and table is None
    words = distinct_words(_all_texts(recipe, stages)) if from_data else None
    return build_encoder(recipe.encoder, device=context.device, seed=recipe.seed, words=words, table=table)


def _learn_words(recipe: Recipe, stages: Sequence[StageData], context: RunContext) -> WordTable:
    """Word vectors from the training texts, each once, and from labels in words; dev texts are not seen."""
    from likewise.encoders.word2vec import Word2VecSettings, train_word2vec

    chosen = recipe.encoder.word2vec or Word2VecSpec()
    texts = list(dict.fromkeys(text for data in stages for text in data.texts()))
    context.tell(f"word2vec: learning vectors of width {chosen.width} from {len(texts):,} training texts")
    settings = Word2VecSettings(**chosen.model_dump())
    return train_word2vec(texts, list(_own_texts(recipe)), settings, seed=recipe.seed)


def _all_texts(recipe: Recipe, stages: Sequence[StageData]) -> Iterator[str]:
    """Every text that a run may show its encoder: rows, labels in words, descriptions that are read."""
    for data in stages:
        yield from data.texts()
        for entry in data.dev:
            yield from (text for record in entry.records for text in record.texts)
    yield from _own_texts(recipe)


def _own_texts(recipe: Recipe) -> Iterator[str]:
    """What the recipe itself says: labels in words, descriptions that are read."""
    relations = build_relations(recipe)
    for relation in relations.values():
        for ways in relation.label_texts:
            yield from ways
    for stage in recipe.stage:
        yield from stage.own_texts(relations)
