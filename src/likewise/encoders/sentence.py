"""Two-tower encoders: any sentence-transformers or transformers checkpoint as one nn.Module.

The encoder **is** a `SentenceTransformer`; Likewise adds no wrapper, so what it saves loads anywhere. Pooling
(mean, max, first token) is taken from the checkpoint's own configuration, mean where it has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from likewise.adapters import ACTIVATIONS, Layer
from likewise.encoders.resolve import resolve
from likewise.errors import ModelError, UsageError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

PRECISIONS = ("fp32", "bf16", "fp16")
Loaded = TypeVar("Loaded")


def load_encoder(
    name: str | os.PathLike[str] = "default", *, device: str | None = None, max_length: int | None = None
) -> SentenceTransformer:
    """Load an encoder by folder, hub id or 'default'; no code from the checkpoint is ever run."""
    check_device(device)
    where = resolve(name)
    options: dict[str, Any] = {"device": device, "trust_remote_code": False}
    if os.path.isdir(where):
        refuse_pickles(Path(where))
    else:
        options["model_kwargs"] = {"use_safetensors": True}
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.lstm import holds_peepholes, load_lstm_encoder, without_packing

    if os.path.isdir(where) and holds_peepholes(where):
        encoder = loading(where, lambda: load_lstm_encoder(where, device=device))
    else:
        encoder = without_packing(loading(where, lambda: SentenceTransformer(where, **options)))
    if max_length is not None:
        encoder.max_seq_length = readable_length(max_length, encoder[0])
    if not encoder.get_embedding_dimension():
        raise ModelError(
            f"{where}: its modules give no sentence vector; a Pooling module is missing from modules.json"
        )
    encoder.float()
    freeze_unused(encoder)
    return encoder


def readable_length(asked: int, network: nn.Module) -> int:
    """Pieces of an input as asked for, or as many as a transformer has positions for."""
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa and MPNet count from behind the padding's position.
            before = 0 if module.padding_idx is None else module.padding_idx + 1
            return min(asked, module.num_embeddings - before)
    return asked


def loading(where: str, build: Callable[[], Loaded]) -> Loaded:
    """Run a loader; whatever a damaged folder makes it raise becomes one line about that folder."""
    try:
        return build()
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError, ImportError) as error:
        raise ModelError(_load_message(where, error)) from error
    except Exception as error:
        # safetensors and tokenizers raise classes of their own that inherit from Exception alone.
        if type(error).__module__.partition(".")[0] in (
            "safetensors",
            "safetensors_rust",
            "tokenizers",
            "builtins",
        ):
            raise ModelError(_load_message(where, error)) from error
        raise


def _load_message(where: str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    remedy = "the folder is damaged or incomplete: copy or train it again"
    if not os.path.isdir(where):
        remedy = "check the spelling, the network, or give a local folder"
    return f"{where}: cannot be loaded as an encoder ({reason}); {remedy}"


def refuse_pickles(folder: Path) -> None:
    """Stop before a library opens pickled weights, which can run code; safetensors beside them is used."""
    for file in folder.rglob("pytorch_model*.bin"):
        if not any(file.parent.glob("*.safetensors")):
            raise ModelError(
                f"{file}: pickled weights are not read; convert them to safetensors, or take a newer model"
            )


def freeze_unused(encoder: SentenceTransformer) -> None:
    """Stop gradients for BERT's pooler: no pooling mode reads it, and distributed training trips over it."""
    for name, parameter in encoder.named_parameters():
        if ".pooler." in name:
            parameter.requires_grad_(False)


def with_prompt(encoder: SentenceTransformer, prompt: str) -> SentenceTransformer:
    """Put a prompt before every text from now on; it is saved with the encoder, and read by others too."""
    encoder.prompts = {**encoder.prompts, "likewise": prompt}
    encoder.default_prompt_name = "likewise"
    return encoder


def with_layers(encoder: SentenceTransformer, layers: Sequence[Layer]) -> SentenceTransformer:
    """The encoder with further layers after it, as its own Dense modules, sharing weights."""
    return with_modules(encoder, [*encoder, *(_dense(layer) for layer in layers)])


def with_modules(encoder: SentenceTransformer, modules: Sequence[nn.Module]) -> SentenceTransformer:
    """An encoder of other modules with this one's prompts and longest text."""
    from sentence_transformers import SentenceTransformer

    other = SentenceTransformer(modules=list(modules), device=str(encoder.device))
    other.prompts, other.default_prompt_name = dict(encoder.prompts), encoder.default_prompt_name
    if encoder.max_seq_length is not None:
        other.max_seq_length = encoder.max_seq_length
    return other


def _dense(layer: Layer) -> Dense:
    from sentence_transformers.sentence_transformer.modules import Dense

    width, inputs = layer.weight.shape
    made = Dense(inputs, width, activation_function=ACTIVATIONS[layer.activation]())
    with torch.no_grad():
        made.linear.weight.copy_(layer.weight)
        made.linear.bias.copy_(layer.bias)
    return made


def without_normalisation(encoder: SentenceTransformer) -> SentenceTransformer:
    """A copy of the module list without trailing Normalize, sharing weights.

    Heads on (u, v, |u−v|) see unit vectors otherwise; cosine is the same with and without it.
    """
    from sentence_transformers import SentenceTransformer

    kept = [module for module in encoder if type(module).__name__ != "Normalize"]
    if len(kept) == len(encoder):
        return encoder
    return SentenceTransformer(modules=kept, device=str(encoder.device))


def embedding_width(encoder: SentenceTransformer) -> int:
    """d, the width of a sentence vector."""
    width = encoder.get_embedding_dimension()
    if width is None:
        raise ModelError("the encoder does not say how wide its vectors are")
    return int(width)


def transformer_layers(encoder: nn.Module) -> list[str]:
    """Name prefixes of the transformer's layers from bottom to top; empty for other encoders."""
    found: dict[int, str] = {}
    for name, _ in encoder.named_parameters():
        parts = name.split(".")
        for at, part in enumerate(parts[:-1]):
            if part in ("layer", "layers", "h", "block") and parts[at + 1].isdigit():
                found[int(parts[at + 1])] = ".".join(parts[: at + 2]) + "."
                break
    return [found[index] for index in sorted(found)]


def check_device(device: str | None) -> None:
    """Refuse a --device that torch does not know or this machine does not have."""
    import torch

    if device is None:
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:120]
        raise UsageError(
            f"--device {device!r} cannot be used here ({reason}); try cpu or leave it out"
        ) from None


def check_precision(precision: str) -> str:
    """Refuse an unknown --precision by name."""
    if precision not in PRECISIONS:
        raise UsageError(f"--precision {precision!r} is not one of {', '.join(PRECISIONS)}")
    return precision


def autocast_settings(precision: str, device: str) -> dict[str, Any]:
    """Keyword arguments of torch.autocast for a precision name."""
    import torch

    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    return {
        "device_type": device.partition(":")[0],
        "dtype": kinds[precision],
        "enabled": precision != "fp32",
    }
