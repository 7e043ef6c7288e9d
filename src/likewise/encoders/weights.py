"""Read safetensors files with limits, and compare them with the network into which they were loaded.

Libraries fill missing tensors with random numbers, ignore unknown ones, and answer nevertheless. Here a
network is used only if all its tensors came from its files with the same shapes, no tensor of the network was
ignored, and every number is finite.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise.encoders.reading import DAMAGED, loading
from likewise.errors import ModelError

Shapes = dict[str, tuple[int, ...]]
# A hundred thousand tensors, as of a mixture of experts, are described by 12 MB.
_MOST_HEADER = 16 * 2**20
_MOST_NAME, _MOST_RANK = 512, 8
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
_FRACTIONS = frozenset({"F16", "BF16", "F32", "F64"})
# A network that needs more than so many times the numbers of its file was not saved there.
_MOST_TIMES, _SLACK = 4, 2**24
# Short inputs are padded to a window or a chunk: numbers that one layer then holds, by key of config.json.
_PADDED_TO = re.compile(r"attention_window$|local_radius$|(?<!attention_)chunk_(size|length)$")
_HEADS, _STATES = re.compile(r"heads$"), re.compile(r"(d_state|state_size)$")
# Buffers that older versions saved, and that are computed now.
_COMPUTED = re.compile(r"(^|\.)(position_ids|inv_freq|masked_bias|attn\.bias|relative_position_index)$")
# No pooling mode reads BERT's pooler; a checkpoint without one is given a new one.
_UNREAD = re.compile(r"^pooler\.")


def read_header(path: Path) -> Shapes:
    """The names and shapes of a safetensors file; its tensors must fill the file exactly."""
    return {name: shape for name, (shape, _) in read_formats(path).items()}


def check_types(path: Path, network: nn.Module) -> None:
    """Raise an error for integers where the network has floating-point weights."""
    floating = {name for name, tensor in network.state_dict().items() if tensor.is_floating_point()}
    for name, (_, kind) in read_formats(path).items():
        names = {name}
        if hasattr(network, "base_model_prefix"):
            names |= {_modern(name), _own_name(network, _modern(name))}
        if names & floating and kind not in _FRACTIONS:
            raise ModelError(f"{path}: the tensor {name} is stored as {kind}, not as floats; {DAMAGED}")


def read_formats(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """The names, shapes and number formats of a safetensors file; its tensors must fill it exactly."""
    if not path.is_file():
        raise ModelError(f"{path} is missing; {DAMAGED}")
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
            if not 2 <= length <= min(_MOST_HEADER, size - 8):
                raise ModelError(f"{path} is not a safetensors file, or it was cut short; {DAMAGED}")
            header = json.loads(file.read(length))
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); {DAMAGED}") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path}: the list of tensors cannot be read; {DAMAGED}") from None
    found, places = {}, []
    listed: dict[str, Any] = header if isinstance(header, dict) else {"": None}
    for name, about in listed.items():
        if name != "__metadata__":
            shape, place = _described(path, name, about)
            found[name] = (shape, str(about["dtype"]))
            places.append(place)
    at = 0
    for begin, end in sorted(places):
        at = end if begin == at else -1
    if at != size - 8 - length:
        raise ModelError(
            f"{path}: the tensors do not fill the file, so bytes are missing or were added; {DAMAGED}"
        )
    return found


def _described(path: Path, name: str, about: Any) -> tuple[tuple[int, ...], tuple[int, int]]:
    """The shape of a tensor and its place in the file, which must agree."""
    try:
        shape, (begin, end) = tuple(about["shape"]), about["data_offsets"]
        whole = all(type(n) is int and 0 <= n < 2**40 for n in (*shape, begin, end))
        fits = whole and (end - begin) * 8 == math.prod(shape) * _BITS[about["dtype"]]
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits or len(name) > _MOST_NAME or len(shape) > _MOST_RANK:
        raise ModelError(f"{path}: the description of the tensor {name[:80]!r} is wrong; {DAMAGED}")
    return shape, (begin, end)


def read_tensors(
    path: Path, *, device: str = "cpu", formats: Container[str] = _FRACTIONS
) -> dict[str, Tensor]:
    """The tensors of a safetensors file of these formats, by default floats; every number must be finite."""
    for name, (_, kind) in read_formats(path).items():
        if kind not in formats:
            raise ModelError(f"{path}: the tensor {name} is stored as {kind}, not as floats; {DAMAGED}")
    tensors: dict[str, Tensor] = loading(path, lambda: load_file(path, device=device))
    check_finite(tensors, path)
    return tensors


def check_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error if any weight is not a finite number."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            continue
        # One pass: a sum is finite unless a number is not, or they are so large that a second look is due.
        total = tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
        if not math.isfinite(total.item()) and not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{path}: the tensor {name} holds numbers that are not finite; {DAMAGED}")


def check_names(expected: Mapping[str, Tensor], held: Mapping[str, tuple[int, ...]], path: Path) -> None:
    """Raise an error for a file whose tensors do not have exactly the expected names and shapes."""
    refuse_names(path, missing=set(expected) - set(held), unexpected=set(held) - set(expected))
    for name, tensor in expected.items():
        if tuple(tensor.shape) != tuple(held[name]):
            found = f"the tensor {name} has shape {list(held[name])} instead of {list(tensor.shape)}"
            raise ModelError(f"{path}: {found}; {DAMAGED}")


def refuse_names(
    path: Path, *, missing: Iterable[str] = (), unexpected: Iterable[str] = (), mismatched: Iterable[str] = ()
) -> None:
    """Raise an error that names tensors that are missing, of the wrong shape, or not in the network."""
    told = {
        "the network needs {names}, which the file does not hold": sorted(missing),
        "the file holds {names} in another shape than the network": sorted(mismatched),
        "the file holds {names}, which the network does not have": sorted(unexpected),
    }
    for line, names in told.items():
        if names:
            more = f" and {len(names) - 3:,} more tensors" if len(names) > 3 else ""
            raise ModelError(f"{path}: {line.format(names=', '.join(names[:3]) + more)}; {DAMAGED}")


def check_exact(module: nn.Module, path: Path) -> None:
    """Compare a module of known tensors with its file: the same names and shapes, and finite numbers."""
    state = module.state_dict()
    check_names(state, read_header(path), path)
    check_types(path, module)
    check_finite(state, path)


# Modules whose settings say how large they are; others take their size from their file.
_DESCRIBED = frozenset({"Dense", "LSTM", "PeepholeLSTM", "CNN", "LayerNorm", "WeightedLayerPooling"})


def check_described(kind: str, folder: Path, path: Path) -> None:
    """Compare a module's settings with the tensors in its file, before the module is built."""
    if kind not in _DESCRIBED:
        return
    found = _class_of(kind)

    def describe() -> nn.Module:
        settings = found.load_config(str(folder), local_files_only=True)
        settings.pop("activation_function", None)
        with torch.device("meta"):
            return found(**settings)  # type: ignore[no-any-return]

    check_names(loading(folder, describe).state_dict(), read_header(path), path)


def _class_of(kind: str) -> Any:
    """The class of a module that is stock or ours."""
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer import modules as stock

    from likewise.encoders.lstm import PeepholeLSTM

    return {"Dense": Dense, "PeepholeLSTM": PeepholeLSTM}.get(kind) or getattr(stock, kind)


def load_module(kind: str, folder: Path, files: Sequence[Path]) -> nn.Module:
    """Load a module that has its own folder, and compare it with its weights files, if it has any."""
    for file in files:
        check_described(kind, folder, file)
    module: nn.Module = loading(folder, lambda: _class_of(kind).load(str(folder), local_files_only=True))
    for file in files:
        check_exact(module, file)
    check_finite(module.state_dict(), folder)
    return module


def check_size(folder: Path, files: Iterable[Path], *, outputs: int | None = None) -> None:
    """Raise an error for a config.json that describes a much larger network than the weights.

    The check comes before the network is built. With `outputs`, the network has a classification head of that
    many outputs.
    """
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    held = [math.prod(shape) for file in files for shape in read_header(file).values()]
    config = loading(
        folder, lambda: AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    )

    kind: Any = AutoModel if outputs is None else AutoModelForSequenceClassification
    config.num_labels = config.num_labels if outputs is None else outputs

    def describe() -> tuple[list[int], int]:
        with torch.device("meta"):
            network = kind.from_config(config, trust_remote_code=False)
        return [tensor.numel() for tensor in network.parameters()], _computed(network)

    described, computed = loading(folder, describe)
    path = folder / "config.json"
    if sum(described) > _MOST_TIMES * sum(held) + _SLACK or len(described) > _MOST_TIMES * len(held) + 100:
        raise ModelError(
            f"{path} describes a network of {len(described):,} tensors with {sum(described):,} numbers, but "
            f"the weights are {len(held):,} tensors with {sum(held):,} numbers; {DAMAGED}"
        )
    if computed > _MOST_TIMES * sum(held) + _SLACK:
        raise ModelError(
            f"{path} describes a network that computes {computed:,} numbers when it is built (tables of "
            f"positions, masks), but it has only {sum(held):,} weights; {DAMAGED}"
        )
    _check_padded(config.to_dict(), sum(held), path)


def _computed(network: nn.Module) -> int:
    """The count of numbers that a network computes when built: buffers, and tensors outside its state."""
    buffers = {id(tensor): tensor.numel() for tensor in network.buffers()}
    for module in network.modules():
        own = [one for one in vars(module).values() if isinstance(one, Tensor)]
        buffers |= {id(tensor): tensor.numel() for tensor in own}
    return sum(buffers.values())


def _check_padded(settings: Mapping[str, Any], held: int, path: Path) -> None:
    """Raise an error for windows and chunks so large that padding one word to them would fill the memory."""
    reach = _largest(settings, _PADDED_TO)
    heads, states = _largest(settings, _HEADS), _largest(settings, _STATES)
    if reach**2 * heads * states > _MOST_TIMES * held + _SLACK:
        raise ModelError(
            f"{path} pads every text to a window or chunk of {reach:,} for {heads:,} heads, which is too "
            f"much for a network of {held:,} weights; {DAMAGED}"
        )


def _largest(settings: Any, named: re.Pattern[str]) -> int:
    """The largest integer under keys that match a pattern, at any depth; 1 if there is none."""
    found = 1
    for key, value in settings.items() if isinstance(settings, dict) else ():
        for one in value if isinstance(value, list | tuple) else [value]:
            known = isinstance(one, int) and named.search(str(key)) is not None
            found = max(found, one if known else _largest(one, named))
    return found


def check_transformer(network: Any, folder: Path, files: Iterable[Path]) -> None:
    """Compare a loaded transformer with its files: all its tensors are there, and none was ignored."""
    state = network.state_dict()
    check_finite(state, folder)
    held: Shapes = {}
    for file in files:
        shapes = read_header(file)
        if twice := sorted(set(shapes) & set(held)):
            raise ModelError(f"{file}: the tensor {twice[0]} is also in another file; {DAMAGED}")
        held |= shapes
        check_types(file, network)
    _refuse_twice(network, held, folder)
    if not _plainly_the_same(network, state, held):
        ask = {
            "config": network.config,
            "use_safetensors": True,
            "local_files_only": True,
            "output_loading_info": True,
        }
        _, info = loading(folder, lambda: type(network).from_pretrained(folder, **ask))
        judge(network, info, folder, held=held)


def _refuse_twice(network: Any, held: Shapes, folder: Path) -> None:
    """Raise an error for a tensor that has two spellings of its name in a file; only one would be read."""
    seen: dict[str, str] = {}
    for name in held:
        own = _own_name(network, _modern(name))
        if own in seen:
            found = f"{seen[own]} and {name} are both tensors for the same place in the network"
            raise ModelError(f"{folder}: {found}; {DAMAGED}")
        seen[own] = name


def _plainly_the_same(network: Any, state: Mapping[str, Tensor], held: Shapes) -> bool:
    """Whether a file has the names of the network, apart from its prefix and old spellings."""
    renamed = {_own_name(network, _modern(name)): shape for name, shape in held.items()}
    needed = {name for name in state if not _UNREAD.match(name)}
    shared = {tensor.data_ptr() for name, tensor in state.items() if name in renamed}
    missing = {name for name in needed - set(renamed) if state[name].data_ptr() not in shared}
    return (
        not missing
        and not _own_among(network, set(renamed) - set(state))
        and all(tuple(state[name].shape) == shape for name, shape in renamed.items() if name in state)
    )


def judge(
    network: Any, info: Mapping[str, Any], folder: Path, *, head: bool = False, held: Iterable[str] = ()
) -> set[str]:
    """Raise an error for tensors that transformers reports as missing, unexpected or of another shape.

    `held` are the names in the files; they show whether an undamaged folder has an architecture that cannot
    be read here. With `head`, the head's tensors may be missing or of another shape; they are returned.
    """
    missing = {name for name in info["missing_keys"] if not _UNREAD.match(_own_name(network, name))}
    _refuse_half(network, missing, held, folder)
    mismatched = {one if isinstance(one, str) else one[0] for one in info["mismatched_keys"]}
    begun = set()
    if head:
        begun = {name for name in missing | mismatched if not _belongs(network.base_model, network, name)}
        begun |= {name for name in info["missing_keys"] if _UNREAD.match(_own_name(network, name))}
    unexpected = _own_among(network, {_own_name(network, name) for name in info["unexpected_keys"]})
    refuse_names(folder, missing=missing - begun, mismatched=mismatched - begun, unexpected=unexpected)
    return begun


def _refuse_half(network: Any, missing: set[str], held: Iterable[str], folder: Path) -> None:
    """Raise an error for an encoder-decoder whose encoder cannot be read alone and would stay random."""
    inside = {name.rpartition("encoder.")[2] for name in held if "encoder." in name}
    if 2 * len(missing & inside) > len(missing):
        raise ModelError(
            f"{folder}: the architecture {network.config.model_type} has an encoder and a decoder, and "
            "sentence-transformers cannot read the encoder alone, so its weights would be random numbers. "
            "Use another model."
        )


def _own_among(network: Any, names: Iterable[str]) -> set[str]:
    """The names that belong to a part of the network; heads of other tasks and decoders do not."""
    base = getattr(network, "base_model", network)
    return {name for name in names if _belongs(base, network, name) and not _COMPUTED.search(name)}


def _belongs(base: nn.Module, network: Any, name: str) -> bool:
    first = _own_name(network, name).partition(".")[0]
    return first in {child for child, _ in base.named_children()}


def _own_name(network: Any, name: str) -> str:
    return name.removeprefix(f"{network.base_model_prefix}.") if network.base_model_prefix else name


def _modern(name: str) -> str:
    """A name with TensorFlow's names of layer norm parameters translated, as in transformers."""
    # Of other layers it translates none, and would draw their weights at random.
    # Its pattern takes any character for the dot, and so does this one: two names for one place are found.
    return re.sub(r"(LayerNorm).beta$", r"\1.bias", re.sub(r"(LayerNorm).gamma$", r"\1.weight", name))
