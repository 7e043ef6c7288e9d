"""What a model folder says of itself: its likewise/model.json, read without loading the model or torch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from likewise.encoders.resolve import resolve
from likewise.errors import ModelError
from likewise.registry import texts_of_rows

FORMAT = 1


def read_document(path: Path) -> dict[str, Any]:
    """A model.json, refused if it is damaged or of another format."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{path}: cannot be read ({error}); the folder is damaged: copy or train it again"
        ) from error
    if document.get("format") != FORMAT:
        raise ModelError(
            f"{path}: format {document.get('format')!r}, this version reads {FORMAT}; upgrade likewise"
        )
    return document


def document_of(name: str | os.PathLike[str]) -> dict[str, Any] | None:
    """A model's model.json; None where an encoder has none."""
    own = Path(name) / "likewise" / "model.json"  # a model grown on a function has no encoder to resolve
    file = own if own.is_file() else Path(resolve(name)) / "likewise" / "model.json"
    return read_document(file) if file.is_file() else None


def texts_of_model(name: str | os.PathLike[str]) -> int:
    """How many texts make a row of a model, 1 or 2; known without loading it."""
    document = document_of(name)
    return 2 if document is None else texts_of_rows(document)


def is_raw(name: str | os.PathLike[str]) -> bool:
    """Whether a name leads to an encoder that was taught to answer nothing."""
    document = document_of(name)
    return document is None or not document.get("relations")
