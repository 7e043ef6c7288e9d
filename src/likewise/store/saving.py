"""Saving: write a model of any family to a folder that is either complete or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import nn

from likewise.disk import folder_aside
from likewise.encoders.manifest import describe_files
from likewise.errors import UsageError
from likewise.folders import FORMAT
from likewise.outputs import check_model_folder, is_empty_folder, is_model_folder, model_print
from likewise.registry import find_family, resolve_class
from likewise.spelling import spelt
from likewise.store.card import model_card
from likewise.versions import versions


def save_model(
    model: nn.Module,
    folder: str | os.PathLike[str],
    *,
    about: Mapping[str, Any],
    overwrite: bool = False,
    former: str | None = None,
) -> Path:
    """Write a model folder that is either complete or absent. `about` goes into model.json and the card.

    The model's class names its family, which writes the files. With `overwrite` and `former`, only the model
    of this `model_print` is replaced: what appeared in its place meanwhile was nobody's to give away.
    """
    target = Path(folder)
    check_model_folder(target, overwrite=overwrite)
    if not _is_former(target, former):
        raise UsageError(
            f"{target} was written by somebody else since this command began, so it was not replaced. Choose "
            f"another {spelt('output')}, or begin again with {spelt('overwrite')}."
        )
    entry = find_family(str(model.family))
    if entry is None:
        raise UsageError(
            f"{type(model).__name__} belongs to no registered family that could write "
            "it. Register one in likewise.registry."
        )
    family = resolve_class(entry.family)()

    def may_go(old: Path) -> bool:
        return is_empty_folder(old) or (overwrite and is_model_folder(old) and _is_former(old, former))

    with folder_aside(target, replace=may_go) as place:
        own = place / "likewise"
        own.mkdir()
        document = {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "family": model.family,
            **family.save(model, place),
            **about,
        }
        document["files"] = describe_files(place)
        card = model_card(target.name, document, family.card(target.name, document))
        (place / "README.md").write_text(card, encoding="utf8")
        (own / "model.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf8")
    return target


def _is_former(folder: Path, former: str | None) -> bool:
    """Whether a folder holds the model that a command found there when it began, or none."""
    return former is None or model_print(folder) in ("", former)
