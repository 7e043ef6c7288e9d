"""The keys that the JSON files of a model folder may have, and the kinds of their values; others are errors.

A key of these files becomes an argument of a library's loader, and some arguments download code, read pickles
or write to other places (`attn_implementation = "owner/kernel"`, `use_safetensors = false`, `device_map =
"disk"`). Each file therefore has a list of allowed keys. transformers' own config.json has too many keys for
a list; there, the keys that control loading are errors (`architecture`).
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.encoders.architecture import check_architecture
from likewise.encoders.reading import DAMAGED, LARGE, SMALL, read_if_there, read_json
from likewise.encoders.rules import (
    Nested,
    Rules,
    among,
    check_keys,
    check_settings_file,
    empty,
    flag,
    length,
    list_of,
    map_of,
    number,
    or_null,
    share,
    size,
    word,
)
from likewise.encoders.tokenizing import check_tokenizer, require_vocabulary
from likewise.errors import ModelError

_DTYPES = frozenset({"auto", "float32", "float16", "bfloat16", "float64"})
# flex_attention is left out: it compiles and writes C++ when the first text is encoded.
_ATTENTIONS = frozenset({"eager", "sdpa"})


def is_attention(value: Any) -> bool:
    """Whether a value names an attention that is built in or comes from an installed package."""
    if isinstance(value, dict):
        return all(map(is_attention, value.values()))
    if value is None or (isinstance(value, str) and value in _ATTENTIONS):
        return True
    flash = isinstance(value, str) and re.fullmatch(r"flash_attention_[234]", value) is not None
    # Without the package transformers would fetch a kernel from the hub.
    return flash and importlib.util.find_spec("flash_attn") is not None


MODULE_ENTRY: Rules = {
    "idx": number,
    "name": lambda value: isinstance(value, str) and re.fullmatch(r"[\w-]{1,100}", value) is not None,
    "path": word,
    "type": word,
    "kwargs": list_of(word),
}

_MODEL_KEYS: Rules = {
    "attn_implementation": is_attention,
    "torch_dtype": among(*_DTYPES, None),
    "dtype": among(*_DTYPES, None),
    "add_pooling_layer": flag,
    "use_safetensors": among(True, None),
    "trust_remote_code": among(False),
    "low_cpu_mem_usage": flag,
}
_TOKENIZER_KEYS: Rules = {
    "model_max_length": length,
    "padding_side": among("left", "right"),
    "truncation_side": among("left", "right"),
    "do_lower_case": flag,
    "use_fast": flag,
    "trust_remote_code": among(False),
}
_CONFIG_KEYS: Rules = {
    "use_cache": flag,
    "is_causal": flag,
    "torch_dtype": among(*_DTYPES, None),
    "dtype": among(*_DTYPES, None),
    "trust_remote_code": among(False),
}
# Tokens of an input: the longest that text encoders read are a fraction of it.
_LONGEST_INPUT = 2**17
_CUTTING_KEYS: Rules = {
    "padding": among(True, "longest", "max_length"),
    "truncation": among(True, "longest_first"),
    "max_length": or_null(lambda value: size(value) and value <= _LONGEST_INPUT),
    "pad_to_multiple_of": or_null(among(*range(1, 1025))),
    "add_special_tokens": flag,
    "return_token_type_ids": flag,
}


def _reads_texts(value: Any) -> bool:
    """Whether texts are read as plain texts that give states of words.

    Chat messages are not allowed, because the folder's template would be run on every text.
    """
    way = {"method": "forward", "method_output_name": "last_hidden_state"}
    return (
        isinstance(value, dict)
        and set(value) == {"text"}
        and all(
            isinstance(one, dict) and {**one, "format": 0} == {**way, "format": 0} for one in value.values()
        )
    )


_TRANSFORMER: Rules = {
    "max_seq_length": or_null(length),
    "do_lower_case": flag,
    "transformer_task": among("feature-extraction"),
    "modality_config": _reads_texts,
    "module_output_name": among("token_embeddings"),
    "unpad_inputs": or_null(flag),
    "query_length": or_null(size),
    "document_length": or_null(size),
    "query_expansion": empty,
    **dict.fromkeys(("model_kwargs", "model_args"), Nested(_MODEL_KEYS)),
    **dict.fromkeys(("processor_kwargs", "tokenizer_args"), Nested(_TOKENIZER_KEYS)),
    **dict.fromkeys(("config_kwargs", "config_args"), Nested(_CONFIG_KEYS)),
    "processing_kwargs": Nested(dict.fromkeys(("text", "common"), Nested(_CUTTING_KEYS))),
}
_TRANSFORMER_FILES = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
_ACTIVATIONS = re.compile(
    r"torch\.nn\.(modules\.(activation|linear)\.)?(Identity|Tanh|ReLU|ReLU6|GELU|SiLU|Sigmoid|LogSigmoid|LeakyReLU"
    r"|ELU|SELU|CELU|Mish|Softplus|Softsign|Hardtanh|Hardswish|Hardsigmoid|Tanhshrink|Softshrink)"
)
_WORD_TOKENIZERS = re.compile(
    r"sentence_transformers\.(models|sentence_transformer\.modules)\.tokenizer\.(\w+\.)?"
    r"(TransformersTokenizerWrapper|WhitespaceTokenizer)"
)
_POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
_WIDTH: Rules = {"embedding_dimension": size, "word_embedding_dimension": size}
_NAMES: Rules = {"module_input_name": word, "module_output_name": or_null(word)}
_WORD_WEIGHTS: Rules = {
    "vocab": list_of(word),
    "word_weights": map_of(number),
    "unknown_word_weight": number,
}
_LSTM: Rules = {**_WIDTH, "hidden_dim": size}
# Class → its file, and what stands in it.
_MODULES: Mapping[str, tuple[str, Rules]] = {
    "Pooling": (
        "config.json",
        {
            **_WIDTH,
            "pooling_mode": lambda value: (
                set(value if isinstance(value, list) else [value]) <= set(_POOLINGS)
            ),
            "include_prompt": flag,
            **dict.fromkeys(
                (f"pooling_mode_{name}_tokens" for name in ("max", "mean", "mean_sqrt_len", "weightedmean")),
                flag,
            ),
            **dict.fromkeys(("pooling_mode_cls_token", "pooling_mode_lasttoken"), flag),
        },
    ),
    "Normalize": ("config.json", _NAMES),
    "Dense": (
        "config.json",
        {
            **_NAMES,
            **dict.fromkeys(("in_features", "out_features"), size),
            **dict.fromkeys(("bias", "use_residual"), flag),
            "activation_function": lambda v: isinstance(v, str) and _ACTIVATIONS.fullmatch(v) is not None,
        },
    ),
    "LSTM": (
        "lstm_config.json",
        {**_LSTM, "num_layers": among(*range(1, 65)), "dropout": share, "bidirectional": flag},
    ),
    "PeepholeLSTM": ("peephole_lstm_config.json", _LSTM),
    "CNN": (
        "cnn_config.json",
        {
            **dict.fromkeys(("in_embedding_dimension", "in_word_embedding_dimension", "out_channels"), size),
            **dict.fromkeys(("kernel_sizes", "stride_sizes"), or_null(list_of(among(*range(1, 1025)), 64))),
        },
    ),
    "LayerNorm": ("config.json", {"dimension": size}),
    "Dropout": ("config.json", {"dropout": share}),
    "WeightedLayerPooling": (
        "config.json",
        {**_WIDTH, **dict.fromkeys(("layer_start", "num_hidden_layers"), among(*range(1025)))},
    ),
    "WordWeights": ("config.json", _WORD_WEIGHTS),
    "BoW": ("config.json", {**_WORD_WEIGHTS, "cumulative_term_frequency": flag}),
    "StaticEmbedding": ("config.json", {}),
    "WordEmbeddings": (
        "wordembedding_config.json",
        {
            "tokenizer_class": lambda value: (
                isinstance(value, str) and _WORD_TOKENIZERS.fullmatch(value) is not None
            ),
            "update_embeddings": flag,
            "max_seq_length": length,
        },
    ),
    "Transformer": ("config.json", {}),
}
# Classes whose weights lie in a file of their own; the vocabularies of others are their settings.
WITH_WEIGHTS = frozenset(_MODULES) - {"Pooling", "Normalize", "Dropout", "WordWeights", "BoW"}
_STOCK = re.compile(
    r"sentence_transformers\.(models|base\.modules|sentence_transformer\.modules)\.(\w+\.)?(?P<name>\w+)"
)
_OWN = "likewise.encoders.lstm.PeepholeLSTM"


def module_class(named: str, listed: Path) -> str:
    """The bare name of the class that modules.json names; only stock classes and our own are allowed."""
    stock = _STOCK.fullmatch(named)
    name = "PeepholeLSTM" if named == _OWN else stock["name"] if stock else ""
    if name not in _MODULES or (name == "PeepholeLSTM") != (named == _OWN):
        known = ", ".join(sorted(_MODULES))
        raise ModelError(
            f"{listed}: the module {named[:100]!r} is unknown, and a folder's own code is never run. Use a "
            f"model of these modules: {known}."
        )
    return name


def check_module(kind: str, folder: Path) -> None:
    """Check the settings of one module and of its tokenizer, if it has one."""
    file, rules = _MODULES[kind]
    path = folder / file
    if kind == "Transformer":
        check_architecture(path, read_json(path), is_attention)
        for name in _TRANSFORMER_FILES:
            check_settings_file(folder / name, _TRANSFORMER)
    else:
        check_settings_file(path, rules, most=LARGE if "vocab" in rules else SMALL)
    if kind in ("Transformer", "WordEmbeddings", "StaticEmbedding"):
        check_tokenizer(folder)
        require_vocabulary(folder)
    if kind == "WordEmbeddings" and (folder / "config.json").exists():
        raise ModelError(f"{folder / 'config.json'}: word vectors do not have such a file. Remove it.")


def check_model_settings(path: Path) -> str:
    """Check config_sentence_transformers.json, and return the class of model that it names."""
    document = read_if_there(path)
    if document is None:
        return "SentenceTransformer"
    if not isinstance(document, dict):
        raise ModelError(f"{path}: expected a table of settings; {DAMAGED}")
    # The library reads these keys and no others.
    known = {key: value for key, value in document.items() if key in _MODEL_SETTINGS}
    check_keys(known, _MODEL_SETTINGS, path)
    prompt = known.get("default_prompt_name")
    if prompt is not None and prompt not in (known.get("prompts") or {}):
        raise ModelError(f"{path}: default_prompt_name {prompt!r} is not one of the prompts; {DAMAGED}")
    return str(known.get("model_type", "SentenceTransformer"))


_MODEL_SETTINGS: Rules = {
    "__version__": map_of(word),
    "requirements": or_null(map_of(word)),
    "prompts": map_of(or_null(word)),
    "default_prompt_name": or_null(word),
    "similarity_fn_name": or_null(word),
    "truncate_dim": or_null(size),
    "model_type": among("SentenceTransformer", "CrossEncoder", "SparseEncoder"),
}
