"""Load a model from a folder, a hub id, 'raw' or 'default'."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.answering import CHUNK, CUT, Long, check_long
from likewise.arguments import require_count, require_device, require_function, require_path, require_text
from likewise.encoders.manifest import DOCUMENT
from likewise.encoders.reading import loading
from likewise.encoders.vectors import DEFAULT_BUDGET
from likewise.errors import ModelError, UsageError
from likewise.folders import document_of, has_pair_vectors, texts_of_document
from likewise.naming import settled_name
from likewise.predict.asking import Answerer
from likewise.predict.families import Family, Running, family_called, family_of_document
from likewise.spelling import spelt

if TYPE_CHECKING:
    from likewise.encoders.external import TextFunction

# Who answers labels of single texts where an encoder was taught none.
_CLASSIFYING = "labels"


def load(
    model: str | os.PathLike[str] = "default",
    *,
    device: str | None = None,
    precision: str = "fp32",
    token_budget: int = DEFAULT_BUDGET,
    encoder: TextFunction | None = None,
    long: Long = CUT,
) -> Answerer:
    """Load a Likewise folder, a sentence-transformers or transformers folder, a hub id, 'raw' or 'default'.

    `raw` is all-MiniLM-L6-v2 as it was published. `default` is the model that answers when none is named.

    For a model that was trained on a function from texts to vectors, pass the function again as `encoder`.
    With long="chunk", texts that are longer than the encoder's limit are read whole, in windows.
    """
    _check_call(model, device, precision, token_budget, long)
    require_function(encoder, "encoder")
    document = document_of(model)
    running = Running(device, precision, token_budget, encoder, long)
    return _opened(model, family_of_document(document, model), document, running)


def load_classifier(
    model: str | os.PathLike[str] = "default",
    *,
    device: str | None = None,
    precision: str = "fp32",
    token_budget: int = DEFAULT_BUDGET,
    long: Long = CUT,
) -> Answerer:
    """Load a model that classifies single texts, or an encoder that compares texts with labels in words.

    Of a raw encoder and of a model of pairs, the vectors of the encoder are compared, by their cosine. Models
    without such vectors and models that answer numbers are errors. `long` is that of `load`.
    """
    _check_call(model, device, precision, token_budget, long)
    document = document_of(model)
    running = Running(device, precision, token_budget, long=long)
    if document is None or has_pair_vectors(document):
        return _opened(model, family_called(_CLASSIFYING), None, running)
    if texts_of_document(document, Path(model) / DOCUMENT) != 1:
        raise ModelError(
            f"{os.fspath(model)} reads pairs of texts at once and has no vectors to compare with labels. "
            "Train a model on labelled texts (docs/methods/label_embedding.md), or use this one to score "
            "pairs."
        )
    loaded = _opened(model, family_of_document(document, model), document, running)
    loaded.check_classifies()
    return loaded


def _check_call(model: object, device: object, precision: object, token_budget: object, long: object) -> None:
    require_path(model, "model")
    require_device(device)
    require_text(precision, "precision", optional=False)
    require_count(token_budget, "token_budget", most=2**31)
    check_long(long)


def _opened(
    model: str | os.PathLike[str], family: Family[Any], document: Mapping[str, Any] | None, running: Running
) -> Answerer:
    loaded = loading(model, lambda: family.load(model, document, running))
    if document is not None and document_of(model) != document:
        raise ModelError(f"{os.fspath(model)} was replaced while it was being loaded. Load it again.")
    about = {**({"raw": True} if document is None else document), "name": settled_name(os.fspath(model))}
    answerer = family.answerer(loaded, about, running)
    if running.long == CHUNK:
        _check_windows(answerer)
    return answerer


def _check_windows(answerer: Answerer) -> None:
    """Raise an error for a model that has no vectors of texts, which could be pooled."""
    try:
        answerer.embedding()
    except UsageError as error:
        raise UsageError(
            f"{spelt('long', 'chunk')} pools the vectors of a text's windows. {error} Or leave "
            f"{spelt('long')} out."
        ) from None
