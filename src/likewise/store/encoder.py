"""The encoder's part of a model folder: a sentence-transformers folder, or the layers after a function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.encoders.features import default_prompt
from likewise.encoders.manifest import DOCUMENT, verify_files
from likewise.encoders.opening import open_module
from likewise.encoders.rules import Rules, check_keys, or_null, size, text, word
from likewise.encoders.sentence import with_prompt
from likewise.encoders.weights import load_module
from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.external import TextFunction

_FUNCTION: Rules = {"name": word, "width": size, "prompt": or_null(text)}


def save_encoder(encoder: SentenceTransformer, folder: Path) -> None:
    """Write what SentenceTransformer loads. For a function, write the layers after it, one folder each."""
    from likewise.encoders.external import is_external
    from likewise.encoders.words import with_padding

    if not is_external(encoder):
        with_padding(encoder, "safe").save(str(folder), create_model_card=False)
        return
    for number, module in enumerate(list(encoder)[1:]):
        place = folder / "likewise" / "layers" / f"{number}_Dense"
        place.mkdir(parents=True)
        module.save(str(place))


def encoder_to_dict(encoder: SentenceTransformer) -> dict[str, Any]:
    """The encoder's entries in model.json: its padding rule and, if it is a function, which one."""
    from likewise.encoders.external import is_external
    from likewise.encoders.words import padding_of

    found: dict[str, Any] = {"padding": padding_of(encoder)}
    if is_external(encoder):
        first = encoder[0]
        about = {"name": first.name, "width": first.width, "prompt": default_prompt(encoder) or ""}
        found["encoder_function"] = about
    return found


def with_saved_padding(encoder: SentenceTransformer, document: Mapping[str, Any]) -> SentenceTransformer:
    """The encoder with the padding rule of its training."""
    from likewise.encoders.words import with_padding

    return with_padding(encoder, document.get("padding", "safe"))


def load_grown_encoder(
    where: Path, document: Mapping[str, Any], function: TextFunction | None
) -> SentenceTransformer:
    """The function that a model was trained on, with the model's layers after it."""
    grown = document.get("encoder_function", {})
    check_keys(grown, _FUNCTION, where / DOCUMENT, inside="encoder_function")
    if function is None:
        raise ModelError(
            f"{where} was trained on the vectors of {grown.get('name')!r}, which it does not hold. "
            "Give the same function or .npz again: likewise.load(folder, encoder=function)"
        )
    from likewise.encoders.external import external_encoder

    base = external_encoder(function)
    if base.get_embedding_dimension() != grown.get("width"):
        raise ModelError(
            f"{where} was trained on vectors of width {grown.get('width')}, but this encoder's "
            f"vectors have width {base.get_embedding_dimension()}. Give the encoder that it was "
            "trained on."
        )
    from sentence_transformers import SentenceTransformer

    verify_files(where)
    layers = []
    for folder in sorted((where / "likewise" / "layers").glob("*_Dense"), key=_place):
        part = open_module("Dense", folder)
        layers.append(load_module(part.kind, folder, part.weights))
    encoder = SentenceTransformer(modules=[*base, *layers], device="cpu")
    return with_prompt(encoder, grown["prompt"]) if grown.get("prompt") else encoder


def _place(folder: Path) -> int:
    """The number of a layer, from the beginning of its name."""
    number = folder.name.partition("_")[0]
    return int(number) if number.isdecimal() else 0


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Weights in the form that safetensors writes."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
