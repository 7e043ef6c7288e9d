"""The settings of an encoder's modules, networks and tokenizer, which decide its vectors beside its weights.

Two encoders with the same weights give different vectors if one of these differs (`hidden_act`,
`layer_norm_eps`, `num_attention_heads`, `is_decoder`, a lower-casing normalizer). All settings are therefore
part of the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Of a network's configuration: where it came from and what wrote it, and what only heads of other tasks read.
_NOT_COMPUTED_BY = frozenset(
    "_name_or_path name_or_path transformers_version architectures auto_map _commit_hash id2label label2id "
    "problem_type finetuning_task task_specific_params".split()
)
# Of a tokenizer in Python: where it came from, what it says to people, and what it changes while it works.
_NOT_READ_BY = frozenset(
    "name_or_path init_inputs init_kwargs files_loaded verbose deprecation_warnings cache chat_template "
    "chat_control_tokens response_template response_schema _in_target_context_manager "
    "_processor_class".split()
)


def settings_of(encoder: SentenceTransformer) -> list[object]:
    """Everything that an encoder's vectors depend on, except its weights and prompt, in a JSON-ready form."""
    modules = [type(module).__name__ for module in encoder]
    settings: list[object] = [getattr(module, "get_config_dict", dict)() for module in encoder]
    return [modules, _plain(settings), _networks(encoder), encoder.max_seq_length, _tokenizer(encoder)]


def _networks(encoder: SentenceTransformer) -> list[object]:
    """The configuration and attention of every network in an encoder, by the network's first place."""
    found: dict[int, object] = {}
    for place, module in encoder.named_modules():
        config: Any = getattr(module, "config", None)
        if id(config) in found or not callable(getattr(config, "to_dict", None)):
            continue
        settings = {key: value for key, value in config.to_dict().items() if key not in _NOT_COMPUTED_BY}
        ways = [getattr(config, f"_{part}_implementation", None) for part in ("attn", "experts")]
        found[id(config)] = [place, type(module).__name__, _plain(settings), _plain(ways)]
    return list(found.values())


def _tokenizer(encoder: SentenceTransformer) -> object:
    """Everything that decides how a tokenizer splits texts."""
    outer: Any = getattr(encoder, "tokenizer", None)
    inner: Any = getattr(outer, "tokenizer", outer)  # of word vectors, in a wrapper
    backend: Any = getattr(inner, "backend_tokenizer", inner)
    state = {key: value for key, value in getattr(inner, "__dict__", {}).items() if _is_read(key)}
    found: list[object] = [type(outer).__name__, type(inner).__name__, _plain(state)]
    if callable(getattr(backend, "to_str", None)):
        # Cutting and padding are set by whoever calls it last; texts are cut at `max_seq_length`.
        whole = json.loads(backend.to_str())
        return [*found, {name: part for name, part in whole.items() if name not in ("truncation", "padding")}]
    vocabulary = getattr(inner, "get_vocab", None)
    return [*found, _plain(vocabulary()) if callable(vocabulary) else None]


def _is_read(key: str) -> bool:
    return key not in _NOT_READ_BY and not key.endswith(("_file", "_trie"))


def _plain(value: Any) -> object:
    """A value in a JSON-ready form that depends only on its content; objects by name, models by hash."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict):
        return sorted(([str(key), _plain(one)] for key, one in value.items()), key=lambda pair: str(pair[0]))
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    content = getattr(value, "serialized_model_proto", None)  # SentencePiece's model
    if callable(content):
        return hashlib.sha256(content()).hexdigest()
    said = getattr(value, "__getstate__", None) if type(value).__name__ == "AddedToken" else None
    return [type(value).__name__, _plain(said())] if callable(said) else type(value).__name__
