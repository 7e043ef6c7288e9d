"""The encoder before the first step, and the words it has to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from likewise.encoders.sentence import with_prompt
from likewise.kinds.base import StageData
from likewise.kinds.building import build_encoder, build_relations
from likewise.kinds.context import RunContext
from likewise.schema.parts import WORD_KINDS, Word2VecSpec
from likewise.schema.recipe import Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.words import WordTable


def start_encoder(recipe: Recipe, stages: Sequence[StageData], context: RunContext) -> SentenceTransformer:
    """The encoder before the first step: the recipe's, or a function that was handed over."""
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
    context.tell(f"word2vec: vectors of width {chosen.width} from {len(texts):,} training texts")
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
