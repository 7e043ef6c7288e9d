"""Saving: a model of any family becomes a folder, written aside and renamed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import nn

from likewise.errors import UsageError
from likewise.folders import FORMAT
from likewise.registry import find_family, resolve_class
from likewise.store.card import model_card
from likewise.versions import versions


def save_model(
    model: nn.Module,
    folder: str | os.PathLike[str],
    *,
    about: Mapping[str, Any],
    overwrite: bool = False,
) -> Path:
    """Write a model folder aside and rename it into place; `about` goes into model.json and the card.

    The model's class names its family, which writes the files.
    """
    target = Path(folder)
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another --output or pass --overwrite")
    entry = find_family(str(model.family))
    if entry is None:
        raise UsageError(f"{type(model).__name__} has no family that could write it (likewise.registry)")
    family = resolve_class(entry.family)()
    aside = target.with_name(target.name + ".partial")
    shutil.rmtree(aside, ignore_errors=True)
    own = aside / "likewise"
    own.mkdir(parents=True)
    document = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "family": model.family,
        **family.save(model, aside),
        **about,
    }
    (own / "model.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf8")
    card = model_card(target.name, document, family.card(target.name, document))
    (aside / "README.md").write_text(card, encoding="utf8")
    if target.exists():
        shutil.rmtree(target)
    aside.rename(target)
    return target
