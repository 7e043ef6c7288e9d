"""Two-tower encoders: any sentence-transformers or transformers checkpoint as one nn.Module.

The encoder **is** a `SentenceTransformer`. Likewise adds no wrapper, so sentence-transformers loads what it
saves. Pooling (mean, max, first token) is read from the checkpoint's configuration; the default is mean.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from likewise.adapters import ACTIVATIONS, Layer
from likewise.encoders.features import default_prompt
from likewise.encoders.opening import OpenedModule, open_folder
from likewise.encoders.reading import DAMAGED, loading
from likewise.encoders.resolve import is_delta, local_folder
from likewise.encoders.tokenizing import check_vocabulary
from likewise.encoders.weights import (
    check_described,
    check_exact,
    check_finite,
    check_size,
    check_transformer,
)
from likewise.errors import ModelError, UsageError
from likewise.naming import RAW
from likewise.spelling import spelt

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

PRECISIONS = ("fp32", "bf16", "fp16")


def load_encoder(
    name: str | os.PathLike[str] = RAW, *, device: str | None = None, max_length: int | None = None
) -> SentenceTransformer:
    """Load an encoder by folder, hub id, 'raw' or 'default'; no code of the checkpoint is run."""
    check_device(device)
    where = local_folder(name)
    if is_delta(where):
        from likewise.encoders.delta import join_delta

        encoder = join_delta(where, device=device).encoder
    else:
        encoder = load_whole(where, device=device)
    asked = max_length or encoder.max_seq_length
    if asked is not None and (max_length is not None or readable_length(asked, encoder[0]) < asked):
        encoder.max_seq_length = readable_length(asked, encoder[0])
    loading(where, lambda: check_vector(encoder, where))
    freeze_unused(encoder)
    return encoder


def load_whole(where: Path, *, device: str | None = None) -> SentenceTransformer:
    """Load an encoder from a folder that holds all of its weights, in single precision."""
    parts = open_folder(where)
    encoder = loading(where, lambda: _build(where, parts, device))
    check_parts(encoder, parts)
    if any(tensor.dtype == torch.float64 for tensor in encoder.state_dict().values()):
        encoder.float()
        check_finite(encoder.state_dict(), where)  # a number may be too large for single precision
    return encoder.float()


def _build(where: Path, parts: Sequence[OpenedModule], device: str | None) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    from likewise.encoders.lstm import build_lstm_encoder, without_packing

    for part in parts:
        if part.kind == "Transformer":
            check_size(part.folder, part.weights)
        elif part.weights:
            check_described(part.kind, part.folder, part.weights[0])
    if any(part.kind == "PeepholeLSTM" for part in parts):
        return build_lstm_encoder(where, parts, device=device)
    safe = {"trust_remote_code": False, "local_files_only": True, "model_kwargs": {"use_safetensors": True}}
    return without_packing(SentenceTransformer(str(where), device=device, **safe))


def check_parts(encoder: SentenceTransformer, parts: Sequence[OpenedModule]) -> None:
    """Compare every module with the weights that it was loaded from; pooling has none."""
    for module, part in zip(encoder, parts, strict=False):
        if part.kind == "Transformer":
            check_transformer(module.model, part.folder, part.weights)
            check_network_vocabulary(module.tokenizer, module.model, part.folder)
        elif part.weights:
            check_exact(module, part.weights[0])
        else:
            check_finite(module.state_dict(), part.folder)


def check_network_vocabulary(tokenizer: Any, network: nn.Module, folder: Path) -> None:
    """Compare the size of a tokenizer with that of its network's vocabulary, where both can be counted."""
    words: Any = getattr(network, "get_input_embeddings", lambda: None)()
    if tokenizer is not None and isinstance(words, nn.Embedding):
        check_vocabulary(len(tokenizer), words.num_embeddings, folder)


@torch.inference_mode()
def check_vector(encoder: SentenceTransformer, where: Path) -> None:
    """Encode one word, and raise an error if that fails or the vector is not of the declared width."""
    were_training = {module: module.training for module in encoder.modules()}
    encoder.eval()
    try:
        inputs = encoder.preprocess(["a"], prompt=default_prompt(encoder))
        on_device = {k: v.to(encoder.device) if isinstance(v, Tensor) else v for k, v in inputs.items()}
        vector = encoder(on_device).get("sentence_embedding")
    finally:
        for module, was in were_training.items():
            module.training = was
    width = encoder.get_embedding_dimension()
    if vector is None or not width:
        raise ModelError(
            f"{where}: the modules give no sentence vector. Add a Pooling module to modules.json."
        )
    if vector.shape[-1] != width and not encoder.truncate_dim:
        found = f"the encoder gives vectors of width {vector.shape[-1]} but declares {width}"
        raise ModelError(f"{where}: {found}; {DAMAGED}")
    if not bool(torch.isfinite(vector).all()):
        raise ModelError(f"{where}: the vector of a word is not finite; {DAMAGED}")


def readable_length(asked: int, network: nn.Module) -> int:
    """The maximum number of tokens of an input: `asked`, or fewer if the transformer has fewer positions."""
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa and MPNet count from behind the padding's position.
            before = 0 if module.padding_idx is None else module.padding_idx + 1
            return min(asked, module.num_embeddings - before)
    return asked


def freeze_unused(encoder: SentenceTransformer) -> None:
    """Freeze BERT's pooler: no pooling mode uses it, and distributed training fails on unused parameters."""
    for name, parameter in encoder.named_parameters():
        if ".pooler." in name:
            parameter.requires_grad_(False)


def with_prompt(encoder: SentenceTransformer, prompt: str) -> SentenceTransformer:
    """Put a prompt before every text; it is saved with the encoder, and sentence-transformers uses it too."""
    encoder.prompts = {**encoder.prompts, "likewise": prompt}
    encoder.default_prompt_name = "likewise"
    return encoder


def with_layers(encoder: SentenceTransformer, layers: Sequence[Layer]) -> SentenceTransformer:
    """The encoder followed by further layers as Dense modules; it shares the weights of the original."""
    return with_modules(encoder, [*encoder, *(_dense(layer) for layer in layers)])


def with_modules(encoder: SentenceTransformer, modules: Sequence[nn.Module]) -> SentenceTransformer:
    """An encoder of other modules with this one's prompts and maximum length."""
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
    """The encoder without a trailing Normalize module; it shares the weights of the original.

    Otherwise heads on (u, v, |u−v|) would see only unit vectors. The cosine is the same with and without it.
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
        raise ModelError("the encoder does not declare the width of its vectors. Use another encoder.")
    return int(width)


def transformer_layers(encoder: nn.Module) -> list[str]:
    """The name prefixes of the transformer's layers from bottom to top; empty for other encoders."""
    found: dict[int, str] = {}
    for name, _ in encoder.named_parameters():
        parts = name.split(".")
        for at, part in enumerate(parts[:-1]):
            if part in ("layer", "layers", "h", "block") and parts[at + 1].isdigit():
                found[int(parts[at + 1])] = ".".join(parts[: at + 2]) + "."
                break
    return [found[index] for index in sorted(found)]


def check_device(device: str | None) -> None:
    """Raise an error for a device that torch does not know or this machine does not have."""
    import torch

    if device is None:
        return
    try:
        if torch.empty(0, device=device).is_meta:
            raise ValueError("it holds no numbers")
    except (RuntimeError, AssertionError, NotImplementedError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0][:120]
        raise UsageError(
            f"{spelt('device')} {device!r} cannot be used here ({reason}). Use cpu, or leave "
            f"{spelt('device')} out."
        ) from None


def check_precision(precision: str) -> str:
    """Raise an error for an unknown precision."""
    if precision not in PRECISIONS:
        found = f"{spelt('precision')} {precision!r} is unknown"
        raise UsageError(f"{found}. Choose one of {', '.join(PRECISIONS)}.")
    return precision


def autocast_settings(precision: str, device: str) -> dict[str, Any]:
    """The keyword arguments of torch.autocast for a precision name."""
    import torch

    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    return {
        "device_type": device.partition(":")[0],
        "dtype": kinds[precision],
        "enabled": precision != "fp32",
    }
