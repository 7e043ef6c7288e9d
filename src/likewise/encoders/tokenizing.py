"""Check the files of a tokenizer: tokens, switches and lengths are allowed, references to other files not."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from likewise.encoders.architecture import is_processor_class, is_tokenizer_class
from likewise.encoders.reading import DAMAGED, LARGE, read_if_there
from likewise.encoders.rules import (
    Rules,
    among,
    anything,
    check_keys,
    check_settings_file,
    empty,
    length,
    list_of,
    map_of,
    number,
    or_null,
    word,
)
from likewise.errors import ModelError

_NAME = re.compile(r"\w{1,100}")
# Switches, names and numbers that a tokenizer understands by itself, or does not read.
_PLAIN = """
    name_or_path special_tokens_map_file tokenizer_file is_local local_files_only use_fast from_slow
    legacy verbose transformers_version use_default_system_prompt clean_up_tokenization_spaces
    spaces_between_special_tokens split_special_tokens add_bos_token add_eos_token add_prefix_space
    add_dummy_prefix trim_offsets errors do_lower_case do_lower do_basic_tokenize do_split_on_punc
    split_by_punct tokenize_chinese_chars strip_accents clean_text keep_accents remove_space remove_spaces
    normalization normalize max_input_chars_per_word wordpieces_prefix vocab_type src_lang tgt_lang lang
    language_codes padding truncation truncation_strategy stride pad_to_multiple_of pad_token_id
    pad_token_type_id pad_token_label return_token_type_ids unk_id
""".split()


def _name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _few(value: Any) -> bool:
    # A tokenizer makes up so many tokens.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10_000


_FIELDS = frozenset(("content", "lstrip", "rstrip", "normalized", "single_word", "special", "__type", "id"))


def _added_token(value: Any) -> bool:
    return isinstance(value, dict) and set(value) <= _FIELDS


# By how much the rewriting of a text before it is cut may make it longer, over all its steps.
_MOST_GROWTH, _MOST_STEPS, _MOST_PREPENDED = 256, 32, 64


def _grows_little(value: Any) -> bool:
    """Whether all steps of a normalizer or pre-tokenizer together do not make texts much longer."""
    growth, seen, steps = 1, 0, [value]
    while steps:
        step = steps.pop()
        if not isinstance(step, dict):
            return False
        steps += [*(step.get("normalizers") or []), *(step.get("pretokenizers") or [])]
        growth *= _growth(step)
        seen += 1
        if growth > _MOST_GROWTH or seen + len(steps) > _MOST_STEPS:
            return False
    return True


def _growth(step: dict[str, Any]) -> int:
    """The largest factor by which one step can make a text longer."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = step.get("pattern"), step.get("content")
        literal = pattern.get("String") if isinstance(pattern, dict) else None
        added = len(content) if isinstance(content, str) else _MOST_GROWTH
        # A regular expression, or nothing at all, also matches between any two characters.
        return max(1, -(-added // len(literal))) if literal else 1 + added
    if kind == "ByteLevel":
        return 4
    if kind == "Prepend":
        return 1 if len(str(step.get("prepend", ""))) <= _MOST_PREPENDED else _MOST_GROWTH + 1
    if kind == "Precompiled":
        return max(1, _longest_mapped(step.get("precompiled_charsmap")))
    return 1


def _longest_mapped(charsmap: Any) -> int:
    """The most bytes with which a compiled SentencePiece map replaces a character."""
    if not charsmap:
        return 0
    content = base64.b64decode(charsmap)
    trie = int.from_bytes(content[:4], "little")
    return max(map(len, content[4 + trie :].split(b"\0")))


# What a template may put around a text, in tokens, and how often it may say the text itself.
_MOST_PIECES, _MOST_ADDED, _MOST_SAID = 64, 512, 4


def _adds_little(value: Any) -> bool:
    """Whether the steps that add markers to a text add few, with at most one template among them."""
    seen, templates, steps = 0, 0, [value]
    while steps:
        step = steps.pop()
        steps += step.get("processors") or []
        templates += step.get("type") == "TemplateProcessing"
        seen += 1
        # The library gives up, in many lines, on some templates over what another template has made.
        if seen + len(steps) > _MOST_STEPS or templates > 1 or not _is_short_template(step):
            return False
    return True


def _is_short_template(step: dict[str, Any]) -> bool:
    tokens = step.get("special_tokens") or {}
    for name in ("single", "pair"):
        pieces = step.get(name) or []
        markers = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
        said = [piece["Sequence"]["id"] for piece in pieces if "Sequence" in piece]
        if len(pieces) > _MOST_PIECES or any(said.count(text) > _MOST_SAID for text in said):
            return False
        if sum(len(tokens[marker]["ids"]) for marker in markers if marker in tokens) > _MOST_ADDED:
            return False
    return True


def _knows_unknown(value: Any) -> bool:
    """Whether a subword model has a token for unknown words and does not split at random."""
    if not isinstance(value, dict):
        return False
    unknown, pieces = value.get("unk_token"), value.get("vocab")
    if value.get("dropout"):
        return False  # pieces would be left out by chance, and answers would differ from call to call
    return not (isinstance(unknown, str) and isinstance(pieces, dict)) or unknown in pieces


def _token(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _added_token(value)


def _tokens(value: Any) -> bool:
    return value is None or all(map(_token, value.values() if isinstance(value, dict) else value))


_SPECIAL_TOKENS: Rules = {
    "*_token": _token,
    **dict.fromkeys(("additional_special_tokens", "extra_special_tokens"), _tokens),
}
_TOKENIZER: Rules = {
    **_SPECIAL_TOKENS,
    **dict.fromkeys(_PLAIN, _plain),
    **dict.fromkeys(("extra_ids", "offset", "num_madeup_words"), _few),
    "tokenizer_class": or_null(is_tokenizer_class),
    "processor_class": or_null(is_processor_class),
    "backend": or_null(_name),
    **dict.fromkeys(("model_max_length", "max_len", "max_length"), or_null(length)),
    **dict.fromkeys(("padding_side", "truncation_side"), among("left", "right")),
    "model_specific_special_tokens": _tokens,
    "added_tokens_decoder": map_of(_token),
    "model_input_names": list_of(word),
    # Files are looked for by their usual names; arguments, options of other libraries and code are not taken.
    **dict.fromkeys(
        ("vocab_file", "merges_file", "spm_file", "sp_model_kwargs", "init_inputs", "auto_map"), empty
    ),
    "never_split": empty,
    **dict.fromkeys(
        ("chat_template", "chat_control_tokens", "response_template", "response_schema"), anything
    ),
}


# Files that hold a vocabulary, and tokenizers that need none: they read bytes or characters.
_VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "vocab.bpe", "*.model", "*.spm", "unigram.json"),
    *("tekken.json", "whitespacetokenizer_config.json"),
)
_WITHOUT = frozenset({"CanineTokenizer", "ByT5Tokenizer", "PerceiverTokenizer"})


def require_vocabulary(folder: Path) -> None:
    """Raise an error for a folder without a vocabulary; the library would make an empty one."""
    document = read_if_there(folder / "tokenizer_config.json")
    named = document.get("tokenizer_class") if isinstance(document, dict) else None
    if named not in _WITHOUT and not any(next(folder.glob(one), None) for one in _VOCABULARIES):
        raise ModelError(
            f"{folder}: the tokenizer's vocabulary is missing (tokenizer.json, vocab.txt, …); {DAMAGED}"
        )


def check_vocabulary(tokens: int, rows: int, folder: Path) -> None:
    """Raise an error for a vocabulary that is far smaller than the network's, because it was cut short.

    Networks may have a few more rows than tokens, to reach a round number, but not a quarter more.
    """
    if 5 * tokens < 4 * rows:
        found = f"the vocabulary has {tokens:,} tokens, but the network has {rows:,}"
        raise ModelError(f"{folder}: {found}, so the vocabulary was cut short. Copy the folder again.")


def check_tokenizer(folder: Path) -> None:
    """Check a tokenizer's settings; the vocabulary in tokenizer.json is left to the library's own parser.

    Its added tokens are checked here, because the library prints every unknown key to standard output.
    """
    check_settings_file(folder / "tokenizer_config.json", _TOKENIZER)
    check_settings_file(folder / "special_tokens_map.json", _SPECIAL_TOKENS)
    check_settings_file(folder / "added_tokens.json", {}, others=number)
    whole = {
        "added_tokens": or_null(list_of(_added_token)),
        **dict.fromkeys(("normalizer", "pre_tokenizer"), or_null(_grows_little)),
        "post_processor": or_null(_adds_little),
        "model": _knows_unknown,
    }
    path = folder / "tokenizer.json"
    document = read_if_there(path, most=LARGE)
    if document is not None:
        check_keys(document, whole, path, others=anything)
        steps = [part for name in ("normalizer", "pre_tokenizer") if (part := document.get(name))]
        if not _grows_little({"normalizers": steps}):
            raise ModelError(f"{path}: normalizer and pre_tokenizer make texts much longer; {DAMAGED}")
