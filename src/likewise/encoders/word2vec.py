"""Word vectors that word2vec learns from the training texts, as in Model-I of Zhang et al. 2017.

This needs gensim. It uses one thread and a seed, so the same texts in the same order give the same vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from likewise.encoders.words import SPECIAL, WordTable, word_list
from likewise.errors import DataError, MissingExtraError


@dataclass(frozen=True, slots=True)
class Word2VecSettings:
    """The width of a vector, the context words on either side, and the number of passes over the texts.

    A word that occurs fewer than `least` times has no vector. `skip_gram` predicts neighbours from a word;
    otherwise a word is predicted from its neighbours (CBOW).
    """

    width: int = 100
    window: int = 5
    epochs: int = 5
    least: int = 2
    skip_gram: bool = False


def train_word2vec(
    texts: Iterable[str], kept: Iterable[str], settings: Word2VecSettings, *, seed: int
) -> WordTable:
    """Learn vectors from texts; returns the words, the most frequent first, and their vectors N×width.

    `kept` are further texts, such as labels; their words have vectors even if they are rare.
    """
    try:
        from gensim import utils
        from gensim.models import Word2Vec
    except ImportError:
        raise MissingExtraError("gensim", "word2vec") from None

    said = [word_list(text) for text in kept]
    always = {word for words in said for word in words}
    read = [*(words for text in texts if (words := word_list(text))), *said]

    def rule(word: str, count: int, least: int) -> int:
        if word in SPECIAL:
            return int(utils.RULE_DISCARD)
        return int(utils.RULE_KEEP if word in always or count >= least else utils.RULE_DISCARD)

    model = Word2Vec(
        vector_size=settings.width,
        window=settings.window,
        min_count=settings.least,
        sg=int(settings.skip_gram),
        epochs=settings.epochs,
        seed=seed,
        workers=1,
    )
    model.build_vocab(read, trim_rule=rule)
    if not model.wv.index_to_key:
        raise DataError(
            f"word2vec: no word occurs {settings.least} times in {len(read):,} texts. "
            "Use more texts, or set encoder.word2vec.least = 1."
        )
    model.train(read, total_examples=model.corpus_count, epochs=model.epochs)
    return list(model.wv.index_to_key), np.asarray(model.wv.vectors, dtype=np.float32)
