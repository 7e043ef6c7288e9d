"""Check transformers' config.json: it must name a built-in architecture of a plausible size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from likewise.encoders.reading import DAMAGED
from likewise.errors import ModelError

_NAME = re.compile(r"\w{1,100}")
_ATTENTION = re.compile(r"_?(attn|attention|experts)_implementation(_internal)?")
# Keys by which a config.json would fetch, import or unpack something: (key, what it is).
_STEERING = {
    "quantization_config": "quantised weights are not read",
    "compression_config": "quantised weights are not read",
    "configuration_files": "it would be replaced by another file",
    "transformers_weights": "weights are read from model.safetensors only",
    "fusion_config": "it would change the network's code",
    "kernel_config": "it would fetch code",
    "use_kernels": "it would fetch code",
    "allow_all_kernels": "it would fetch code",
    "distributed_config": "it would start other processes",
    "device_map": "it would move weights to other places",
    "trust_remote_code": "it would run code of the folder",
    "custom_pipelines": "it would run code of the folder",
    "gguf_file": "weights are read from model.safetensors only",
    "backbone": "it would fetch another model",
    "use_timm_backbone": "it would fetch another model",
    "use_pretrained_backbone": "it would fetch another model",
    "backbone_kwargs": "it would fetch another model",
}
# How large a number may be by the end of its key; the first that fits counts.
_LIMITS = tuple(
    (re.compile(pattern), limit)
    for pattern, limit in (
        (r"_token_id$|_token_index$|_id$|_index$|theta|_offset$", 2**31),
        (r"vocab", 2**25),
        (r"(layers?|depths?|blocks?|stages?|networks?|group_num|_types)$", 1024),
        (r"heads?$|groups?$", 2**14),
        (r"labels?$|classes$", 100_000),
        # Inputs are padded to a multiple of these, whatever their length.
        (r"attention_window$|local_radius$|(?<!attention_)chunk_(size|length)$", 2**12),
        (r"prompt_length$|kernel", 2**10),
        (r"position|_ctx$|length|window|max_seq", 2**20),
        (r"^(n|num)_|_num_", 2**20),
        (r"size|dim|hidden|width|inner|embd|features|rank", 2**20),
    )
)
_MOST_LABELS = 100_000
# The library would look up any other name among all that torch has.
_DTYPES = (None, "auto", "float32", "float16", "bfloat16", "float64")


def check_architecture(path: Path, document: Any, is_attention: Callable[[Any], bool]) -> None:
    """Raise an error for a config.json with an unknown architecture, loader settings or absurd sizes."""
    if not isinstance(document, dict):
        raise ModelError(f"{path}: expected a table of settings; {DAMAGED}")
    kind = document.get("model_type")
    if not isinstance(kind, str) or kind not in _text_models():
        raise ModelError(
            f"{path}: model_type {str(kind)[:60]!r} is not a text model that is built into transformers. A "
            "folder's own code is never run. Use another model, or a newer transformers."
        )
    for key, is_one in (("tokenizer_class", is_tokenizer_class), ("processor_class", is_processor_class)):
        if document.get(key) is not None and not is_one(document[key]):
            raise ModelError(
                f"{path}: {key} = {str(document[key])[:60]!r} is not a class that reads texts. Remove it."
            )
    _check_table(path, document, is_attention)


# Models of these read more than texts; some of them read pickles beside their weights.
_OTHER_INPUTS = re.compile(
    "AUDIO|IMAGE|VIDEO|SPEECH|MULTIMODAL|VISUAL|CTC|BACKBONE|WAVEFORM|SPECTROGRAM|TIME_SERIES|RNNT|TDT|DOCUMENT"
)
_TEXT_TASKS = ("MASKED_LM", "TEXT_ENCODING", "CAUSAL_LM", "SEQUENCE_CLASSIFICATION", "QUESTION_ANSWERING")
# Read by translators and summarisers; of all that are listed with them, these read texts and nothing else.
_TEXT_TO_TEXT = frozenset({"led", "longt5", "m2m_100", "pegasus_x", "switch_transformers"})


@cache
def _text_models() -> frozenset[str]:
    """The architectures of transformers that read only texts."""
    from transformers.models.auto import modeling_auto

    def listed(task: str) -> set[str]:
        return set(getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES", ()))

    tasks = re.findall(r"MODEL_FOR_(\w+)_MAPPING_NAMES", " ".join(dir(modeling_auto)))
    texts = set().union(_TEXT_TO_TEXT, *map(listed, _TEXT_TASKS))
    others = [listed(task) for task in tasks if _OTHER_INPUTS.search(task)]
    return frozenset(texts.difference({"lxmert", "bros"}, *others))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_processor_class(value: Any) -> bool:
    """Whether a name is that of a processor; the library would load any class by name, also models."""
    from transformers import ProcessorMixin
    from transformers.models.auto.processing_auto import processor_class_from_name

    found = processor_class_from_name(value) if _is_name(value) else None
    return isinstance(found, type) and issubclass(found, ProcessorMixin)


def is_tokenizer_class(value: Any) -> bool:
    """Whether a name is that of a tokenizer that loads no other class, or is unknown to transformers."""
    from transformers import PreTrainedTokenizerBase
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    if not _is_name(value):
        return False
    plain = value.removesuffix("Fast")
    found = [tokenizer_class_from_name(name) for name in {value, plain, f"{plain}Fast"}]
    return all(one is None or issubclass(one, PreTrainedTokenizerBase) for one in found)


def _check_table(path: Path, table: dict[str, Any], is_attention: Callable[[Any], bool]) -> None:
    for key, value in table.items():
        # `auto_map` names code of the folder; an architecture that is built in never follows it.
        if key in _STEERING and value not in (None, False, {}, []):
            raise ModelError(
                f"{path}: {key} must not be set, because {_STEERING[key]}. Remove it, or use another model."
            )
        if _ATTENTION.fullmatch(key) and not is_attention(value):
            found = f"{key} = {str(value)[:60]!r}"
            raise ModelError(f"{path}: {found} is neither built in nor installed. Remove the key.")
        if key in ("dtype", "torch_dtype") and value not in _DTYPES:
            raise ModelError(
                f"{path}: {key} = {str(value)[:60]!r} is not a precision of weights. Remove the key."
            )
        _check_size(path, key, value)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                _check_table(path, part, is_attention)


def _check_size(path: Path, key: str, value: Any) -> None:
    if key in ("id2label", "label2id") and isinstance(value, dict | list) and len(value) > _MOST_LABELS:
        raise ModelError(
            f"{path}: {key} has {len(value):,} labels, but at most {_MOST_LABELS:,} are read; {DAMAGED}"
        )
    if key in ("id2label", "label2id"):
        return
    if (
        (key == "eps" or key.endswith(("_eps", "epsilon")))
        and isinstance(value, int | float)
        and not 0 <= value <= 1
    ):
        raise ModelError(f"{path}: {key} = {str(value)[:40]} is not between 0 and 1; {DAMAGED}")
    limit = next((limit for pattern, limit in _LIMITS if pattern.search(key)), 2**31)
    for number in _flat(value):
        if isinstance(number, int) and not isinstance(number, bool) and abs(number) > limit:
            raise ModelError(
                f"{path}: {key} = {str(number)[:40]} is larger than in any model ({limit:,}); {DAMAGED}"
            )


def _flat(value: Any) -> Iterator[Any]:
    """The values of nested lists."""
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    else:
        yield value
