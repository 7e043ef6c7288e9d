"""Saving: write a model of any family to a folder that is either complete or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import nn

from likewise.disk import folder_aside, sweep
from likewise.encoders.manifest import describe_files
from likewise.errors import UsageError
from likewise.folders import FORMAT
from likewise.outputs import check_model_folder, is_empty_folder, is_model_folder, model_print
from likewise.registry import find_family, resolve_class
from likewise.spelling import spelt
from likewise.store.card import model_card
from likewise.versions import versions

_TRAINING = ("recipe", "method", "stages", "gains", "update", "seen")


def save_model(
    model: nn.Module,
    folder: str | os.PathLike[str],
    *,
    about: Mapping[str, Any],
    overwrite: bool = False,
    former: str | None = None,
    inputs: Iterable[object] = (),
    name: str = "",
    reduce: Callable[[Path], Mapping[str, Any]] = lambda folder: {},
) -> Path:
    """Write a model folder that is either complete or absent. `about` goes into model.json and the card.

    `reduce` may replace files of the folder before it takes its name; it returns entries of model.json.
    `inputs` are files and folders that must stay. The card calls the model `name`, or by its folder's name.

    The model's class names its family, which writes the files. With `overwrite` and `former`, only the model
    of this `model_print` is replaced: what appeared in its place meanwhile was nobody's to give away.
    """
    target = Path(folder)
    check_model_folder(target, inputs=inputs, overwrite=overwrite)
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
            **reduce(place),
        }
        document["files"] = describe_files(place)
        called = name or target.name
        card = model_card(called, document, family.card(called, document))
        (place / "README.md").write_text(card, encoding="utf8")
        (own / "model.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf8")
    return target


def save_loaded(
    model: nn.Module, folder: str | os.PathLike[str], *, about: Mapping[str, Any], overwrite: bool = False
) -> Path:
    """Write a loaded model to another folder. The folders that it came from stay as they are."""
    target = Path(folder)
    sweep(Path(os.path.realpath(target)).parent)  # a model whose replacement was killed gets its name back
    inputs = [about.get("name"), *_encoders(about)]
    former = model_print(target)
    kept = training_of(about, target.name)
    return save_model(model, target, about=kept, overwrite=overwrite, former=former, inputs=inputs)


def training_of(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a loaded model tells about its training, for its next model.json: all that no family writes."""
    kept = {key: about[key] for key in _TRAINING if key in about}
    recipe = kept.get("recipe")
    return {**kept, "name": recipe.get("name", name) if isinstance(recipe, Mapping) else name}


def _encoders(about: Mapping[str, Any]) -> list[object]:
    """The encoder that a model was trained from, if its recipe names one."""
    recipe = about.get("recipe")
    encoder = recipe.get("encoder") if isinstance(recipe, Mapping) else None
    return [encoder.get("name"), encoder.get("vectors")] if isinstance(encoder, Mapping) else []


def _is_former(folder: Path, former: str | None) -> bool:
    """Whether a folder holds the model that a command found there when it began, or none."""
    return former is None or model_print(folder) in ("", former)
