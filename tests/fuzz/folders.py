"""Hostile model folders: model.json, settings of modules and networks, tokenizers, safetensors."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.arena import Case, Outcome, not_plain_json
from tests.fuzz.mutations import VALUES, Draw, damage_bytes, damage_document

DOCUMENT = "likewise/model.json"
# Settings that a library would obey, and that a folder may not give.
_WORDS = (
    *(
        "auto",
        "bert",
        "roberta",
        "gpt2",
        "t5",
        "BertModel",
        "relu",
        "gelu_new",
        "sdpa",
        "eager",
        "flex_attention",
    ),
    *("owner/kernel", "mean", "max", "weightedmean", "lasttoken", "dot", "Left", "Right", "[PAD]", "[UNK]"),
    *("sentence_embedding", "token_embeddings", "torch.nn.modules.activation.Tanh", "torch.nn.Identity"),
    *(
        "os.system",
        "sentence_transformers.base.modules.dense.Dense",
        "WordPiece",
        "BPE",
        "Unigram",
        "WordLevel",
    ),
    *("graded", "ordered", "classes", "cosine", "head", "scalar", "distribution", "pairs", "labels", "joint"),
)
_KEYS = (
    *("auto_map", "trust_remote_code", "model_kwargs", "device_map", "torch_dtype", "dtype", "num_labels"),
    *("quantization_config", "attn_implementation", "_name_or_path", "tie_word_embeddings", "id2label"),
    *("pruned_heads", "chunk_size_feed_forward", "output_hidden_states", "return_dict", "is_decoder"),
    *("max_seq_length", "do_lower_case", "truncate_dim", "prompts", "default_prompt_name", "added_tokens"),
    *("rope_scaling", "layer_norm_eps", "hidden_act", "position_embedding_type", "problem_type", "family"),
    *("frozen", "objectives", "source", "relations", "encoder_function", "files", "tasks", "matcher"),
)
_VALUES = (*VALUES, *_WORDS)


@dataclass(frozen=True, slots=True)
class Template:
    """A folder of the arena that is damaged, and how it is asked."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    # Another folder of the arena that lies beside it under its own name.
    beside: str = ""

    def models(self) -> dict[str, str]:
        """The folders of an example."""
        return {"m": self.name, **({self.beside: self.beside} if self.beside else {})}


_PAIR, _ONE = ("the old man runs", "a woman sleeps in the park"), ("the old man runs",)
_CPU = ("--model", "m", "--device", "cpu", "--json")
_SCORE, _EXPLAIN = ("score", *_PAIR, *_CPU), ("explain", *_PAIR, *_CPU)
_LABELS = ("classify", *_ONE, "--labels", "fast | a fast train, slow", *_CPU)
TEMPLATES = (
    Template("fresh", (_SCORE, _SCORE, _EXPLAIN)),
    Template("pairs", (_SCORE, _SCORE, _EXPLAIN)),
    Template("described", (_SCORE,)),
    Template("multilingual", (_SCORE, _SCORE, _EXPLAIN)),
    Template("joint", (_SCORE,)),
    Template("labels", (("classify", *_ONE, "--task", "mood", *_CPU), _LABELS, ("score", *_ONE, *_CPU))),
    Template("taught", (_SCORE, _LABELS)),
    Template("delta", (_SCORE, _SCORE, _EXPLAIN), beside="encoder"),
)


def _judge(outcome: Outcome, folder: Path) -> Iterator[str]:
    if wrong := not_plain_json(outcome.out):
        yield wrong


@cache
def _read(models: Path, name: str, file: str) -> bytes:
    return (models / name / file).read_bytes()


def _files(models: Path, name: str, wanted: Sequence[str]) -> list[str]:
    return [file for file in wanted if (models / name / file).is_file()]


def _damage_json(draw: Draw, content: bytes) -> bytes:
    way = draw(st.sampled_from(("values", "values", "values", "values", "bytes", "again")))
    if way == "bytes":
        return damage_bytes(draw, content)
    document = damage_document(draw, json.loads(content), values=_VALUES, keys=_KEYS)
    made = json.dumps(document)
    if way == "again" and isinstance(document, dict) and document:
        # The same key a second time, with another value.
        key = draw(st.sampled_from(sorted(document)))
        made = f"{made[:-1]}, {json.dumps(key)}: {json.dumps(draw(st.sampled_from(_VALUES)))}}}"
    return made.encode("utf8", "surrogatepass")


@st.composite
def settings_cases(draw: Draw, models: Path, wanted: tuple[str, ...]) -> Case:
    """A folder with one of its JSON files damaged, sometimes two."""
    template = draw(st.sampled_from([one for one in TEMPLATES if _files(models, one.name, wanted)]))
    here = _files(models, template.name, wanted)
    chosen = draw(st.lists(st.sampled_from(here), min_size=1, max_size=2, unique=True))
    files: dict[str, bytes | None] = {}
    for file in chosen:
        missing = draw(st.integers(0, 40)) == 0
        files[f"m/{file}"] = None if missing else _damage_json(draw, _read(models, template.name, file))
    # Other modules may be listed now: nobody reads those that are not.
    read = [name for name in files if "m/modules.json" not in files or name.count("/") == 1]
    reasons = [_not_json(content) for name in read if (content := files[name]) is not None]
    if (document := files.get(f"m/{DOCUMENT}")) is not None:
        reasons.append(_other_format(document) or _other_hash(document, models / template.name))
    return Case(
        draw(st.sampled_from(template.commands)),
        files,
        models=template.models(),
        must_fail=next(filter(None, reasons), ""),
        twice=True,
        judge=_judge,
    )


def _not_json(content: bytes) -> str:
    try:
        json.loads(content.decode("utf8"))
    except RecursionError:
        return "a file is nested too deeply"
    except ValueError as error:
        return f"a file is not JSON ({str(error)[:80]})"
    return ""


def _other_format(content: bytes) -> str:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict) or document.get("format") != 1:
        return "model.json is of another format"
    return ""


def _other_hash(content: bytes, folder: Path) -> str:
    """Whether a model.json records another hash of a weights file than the file has."""
    try:
        files = json.loads(content)["files"]
        recorded = {name: files[name]["sha256"] for name in files if name.endswith(".safetensors")}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""
    for name, wanted in recorded.items():
        known = (folder / name).is_file()
        if not known or hashlib.sha256((folder / name).read_bytes()).hexdigest() != wanted:
            return f"model.json records another hash of {name[:80]!r}"
    return ""


WEIGHTS = (
    "model.safetensors",
    "likewise/heads.safetensors",
    "likewise/matcher.safetensors",
    "2_Dense/model.safetensors",
    "3_Dense/model.safetensors",
    "likewise/delta.safetensors",
)
_FLOATS = {"F64": ("d", 8), "F32": ("f", 4), "F16": ("e", 2)}
_HEADERS: tuple[Any, ...] = (-1, 0, 1, 7, 2**31, 2**53, 2**63, 2**64 - 1, 10**30, 1.5, "0", None, [], True)
_DTYPES = (
    "F64",
    "F32",
    "F16",
    "BF16",
    "I64",
    "I32",
    "I8",
    "U8",
    "BOOL",
    "F8_E4M3",
    "C64",
    "F4",
    "",
    "f32",
    None,
)


def split_safetensors(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and data of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def join_safetensors(header: Any, data: bytes) -> bytes:
    """A safetensors file of a header and data."""
    packed = json.dumps(header).encode("utf8", "surrogatepass")
    return len(packed).to_bytes(8, "little") + packed + data


@st.composite
def weights_cases(draw: Draw, models: Path) -> Case:
    """A folder with one of its weights files damaged."""
    template = draw(st.sampled_from([one for one in TEMPLATES if one.name != "taught"]))
    file = draw(st.sampled_from(_files(models, template.name, WEIGHTS)))
    content = _read(models, template.name, file)
    made = _damage_weights(draw, content)
    recorded = json.loads(_read(models, template.name, DOCUMENT)).get("files", {})
    return Case(
        draw(st.sampled_from(template.commands[:1])),
        {f"m/{file}": made},
        models=template.models(),
        must_fail=why_weights_are_wrong(content, made, recorded.get(file, {}).get("sha256")),
        twice=True,
        judge=_judge,
    )


def _damage_weights(draw: Draw, content: bytes) -> bytes:
    ways = ("header", "header", "entry", "entry", "swap", "length", "data", "number", "bytes", "metadata")
    way = draw(st.sampled_from(ways))
    header, data = split_safetensors(content)
    names = [name for name in header if name != "__metadata__"]
    if way == "bytes" or not names:
        return damage_bytes(draw, content)
    name = draw(st.sampled_from(names))
    if way == "header":
        _damage_header(draw, header, name)
    elif way == "entry":
        key = draw(st.sampled_from(("dtype", "shape", "data_offsets")))
        header[name] = {**header[name], key: _entry(draw, key, header[name][key])}
    elif way == "swap":
        other = draw(st.sampled_from(names))
        key = draw(st.sampled_from(("shape", "data_offsets")))
        header[name][key], header[other][key] = header[other][key], header[name][key]
    elif way == "length":
        return _lying_length(draw, content)
    elif way == "data":
        whole = draw(st.sampled_from(("damaged", "damaged", "none", "twice", "zeros")))
        others = {"none": b"", "twice": data * 2, "zeros": bytes(len(data))}
        data = damage_bytes(draw, data) if whole == "damaged" else others[whole]
    elif way == "number":
        data = _with_number(draw, header[name], data)
    else:
        header["__metadata__"] = draw(st.sampled_from((*VALUES, {"format": "pt"}, {"format": "tf"})))
    return join_safetensors(header, data)


def _damage_header(draw: Draw, header: dict[str, Any], name: str) -> None:
    way = draw(st.sampled_from(("drop", "rename", "add", "value", "alias")))
    if way == "drop":
        del header[name]
    elif way == "rename":
        header[draw(st.sampled_from((f"{name}x", "", "x" * 600, "../x", "\0", "pooler.dense.weight")))] = (
            header.pop(name)
        )
    elif way == "add":
        header[draw(st.text(max_size=8))] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    elif way == "alias":
        header[f"{name}.copy"] = header[name]
    else:
        header[name] = draw(st.sampled_from(VALUES))


def _entry(draw: Draw, key: str, value: Any) -> Any:
    if key == "dtype":
        return draw(st.sampled_from(_DTYPES))
    changed = list(value)
    way = draw(st.sampled_from(("one", "whole", "more", "less", "move", "flat")))
    if way == "one" and changed:
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.sampled_from(_HEADERS))
    elif way == "more":
        changed.append(draw(st.sampled_from((0, 1, 2, 2**62))))
    elif way == "less":
        changed = changed[:-1]
    elif way == "move":
        changed = [number + draw(st.sampled_from((-4, 1, 4, 2**40))) for number in changed]
    elif way == "flat" and key == "shape":
        changed = [math.prod(changed)]
    else:
        return draw(st.sampled_from(VALUES))
    return changed


def _lying_length(draw: Draw, content: bytes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    lies = (0, 1, length - 1, length + 1, length + 8, len(content), 100_000_001, 2**40, 2**63, 2**64 - 1)
    return draw(st.sampled_from(lies)).to_bytes(8, "little") + content[8:]


def _with_number(draw: Draw, entry: Mapping[str, Any], data: bytes) -> bytes:
    """The data with one number of a tensor replaced: not finite, immense, or only another."""
    letter, width = _FLOATS.get(entry["dtype"], ("f", 4))
    begin, end = entry["data_offsets"]
    if end - begin < width:
        return data
    at = begin + width * draw(st.integers(0, (end - begin) // width - 1))
    large = 6e4 if letter == "e" else 3e38
    number = draw(st.sampled_from((math.nan, math.inf, -math.inf, large, -large, 0.0, 1.0, 1e-45)))
    return data[:at] + struct.pack(f"<{letter}", number) + data[at + width :]


def why_weights_are_wrong(content: bytes, made: bytes, recorded: str | None) -> str:
    """Why a weights file must be refused, by a reader of its own; nothing if it need not be."""
    if recorded is not None and hashlib.sha256(made).hexdigest() != recorded:
        return "model.json has another hash of it"
    try:
        header, data = split_safetensors(made)
        entries = {name: about for name, about in header.items() if name != "__metadata__"}
        parts = sorted((begin, end) for begin, end in (one["data_offsets"] for one in entries.values()))
        shapes = {name: list(about["shape"]) for name, about in entries.items()}
        kinds = {name: about["dtype"] for name, about in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return "its header cannot be read"
    if [0, *(end for _, end in parts)] != [*(begin for begin, _ in parts), len(data)]:
        return "its tensors do not cover it"
    original, _ = split_safetensors(content)
    was = {name: about for name, about in original.items() if name != "__metadata__"}
    # No pooling reads BERT's pooler: a file without one is whole. Heads of other tasks may stand in it. A
    # delta leaves out what did not change.
    if any(
        name not in shapes and not name.startswith("pooler.") and not name.endswith(".change") for name in was
    ):
        return "a tensor is missing"
    if any(shapes[name] != list(was[name]["shape"]) for name in set(was) & set(shapes)):
        return "a tensor has another shape"
    for name, about in entries.items():
        if kinds[name] in _FLOATS and not name.startswith("pooler."):
            letter, width = _FLOATS[kinds[name]]
            begin, end = about["data_offsets"]
            if end - begin != width * math.prod(shapes[name]):
                return f"{name} has not as many bytes as numbers"
            numbers = struct.unpack(f"<{(end - begin) // width}{letter}", data[begin:end])
            if not all(map(math.isfinite, numbers)):
                return f"{name} is not finite"
    return ""
