"""The encoder's part of a model folder: a sentence-transformers folder, or layers after a function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.encoders.features import default_prompt
from likewise.encoders.sentence import with_prompt
from likewise.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.external import TextFunction


def save_encoder(encoder: SentenceTransformer, folder: Path) -> None:
    """Write what SentenceTransformer loads; of a function, the layers after it, one folder each."""
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
    """What model.json says of an encoder: its padding rule, and which function it is if it is one."""
    from likewise.encoders.external import is_external
    from likewise.encoders.words import padding_of

    found: dict[str, Any] = {"padding": padding_of(encoder)}
    if is_external(encoder):
        first = encoder[0]
        about = {"name": first.name, "width": first.width, "prompt": default_prompt(encoder) or ""}
        found["encoder_function"] = about
    return found


def with_saved_padding(encoder: SentenceTransformer, document: Mapping[str, Any]) -> SentenceTransformer:
    """The encoder with the padding rule that it was trained with."""
    from likewise.encoders.words import with_padding

    return with_padding(encoder, document.get("padding", "safe"))


def load_grown_encoder(
    where: Path, document: Mapping[str, Any], function: TextFunction | None
) -> SentenceTransformer:
    """The function that a model was grown on, with the model's layers after it."""
    grown = document.get("encoder_function", {})
    if function is None:
        raise ModelError(
            f"{where} was grown on the vectors of {grown.get('name')!r}, which it does not hold; "
            "give that function or .npz again: likewise.load(folder, encoder=function)"
        )
    from likewise.encoders.external import external_encoder

    base = external_encoder(function)
    if base.get_embedding_dimension() != grown.get("width"):
        raise ModelError(
            f"{where} was grown on vectors of width {grown.get('width')}, "
            f"this encoder's have {base.get_embedding_dimension()}"
        )
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    folders = sorted((where / "likewise" / "layers").glob("*_Dense"))
    layers = [Dense.load(str(folder)) for folder in folders]
    encoder = SentenceTransformer(modules=[*base, *layers], device="cpu")
    return with_prompt(encoder, grown["prompt"]) if grown.get("prompt") else encoder


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Weights as safetensors writes them."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
