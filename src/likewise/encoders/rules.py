"""Rules for a JSON file: which keys it may have, and the kinds of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.encoders.reading import DAMAGED, SMALL, read_if_there
from likewise.errors import ModelError

Rule = Callable[[Any], bool]
Rules = Mapping[str, Rule]
# No width, length or count of a text encoder comes near it.
_MOST = 2**20


@dataclass(frozen=True, slots=True)
class Nested:
    """The rule of a value that is a table with its own rules."""

    rules: Rules

    def __call__(self, value: Any) -> bool:
        """Whether the value is a table; its keys are checked separately."""
        return isinstance(value, dict)


def flag(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def word(value: Any) -> bool:
    """A string of limited length."""
    return isinstance(value, str) and len(value) <= 1000


def text(value: Any) -> bool:
    """A string."""
    return isinstance(value, str)


def size(value: Any) -> bool:
    """A whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST


def length(value: Any) -> bool:
    """A maximum length of texts; tokenizers without a limit use 1e30."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1


def share(value: Any) -> bool:
    """A number from 0 to 1."""
    return number(value) and 0 <= value <= 1


def number(value: Any) -> bool:
    """A finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30


def above_zero(value: Any) -> bool:
    """A finite number above 0."""
    return number(value) and value > 0


def empty(value: Any) -> bool:
    """An empty value."""
    return value is None or value in ([], {})


def anything(value: Any) -> bool:
    """Any value, because nothing reads it or it is checked elsewhere."""
    return True


def or_null(rule: Rule) -> Rule:
    """The rule, or null."""
    return lambda value: value is None or rule(value)


def among(*values: Any) -> Rule:
    """One of these values."""
    return lambda value: isinstance(value, str | int | None) and value in values


def list_of(rule: Rule, most: int = 1_000_000) -> Rule:
    """A list whose entries all follow a rule."""
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(rule, value))


def map_of(rule: Rule) -> Rule:
    """A table with any keys whose values all follow a rule."""
    return lambda value: isinstance(value, dict) and all(map(rule, value.values()))


def check_keys(
    document: Any, rules: Rules, path: Path, *, inside: str = "", others: Rule | None = None
) -> None:
    """Raise an error for a key that is not listed or whose value does not follow its rule.

    `*_token` is the rule of every key with that ending, `others` the rule of all keys that are not listed.
    """
    if not isinstance(document, dict):
        raise ModelError(f"{path}: expected a table of settings{inside and ' in ' + inside}; {DAMAGED}")
    for key, value in document.items():
        name = f"{inside}.{key}" if inside else key
        rule = rules.get(key) or (rules.get("*_token") if key.endswith("_token") else None) or others
        if rule is None:
            raise ModelError(f"{path}: the key {name[:100]!r} is not allowed in this file. Remove it.")
        if not _fits(rule, value):
            shown = " ".join(repr(value).split())
            shown = shown if len(shown) <= 80 else shown[:77] + "…"
            raise ModelError(f"{path}: {name[:100]} = {shown} is not allowed. Correct it or remove the key.")
        if isinstance(rule, Nested):
            check_keys(value, rule.rules, path, inside=name)


def _fits(rule: Rule, value: Any) -> bool:
    try:
        return rule(value)
    except (TypeError, AttributeError, ValueError):
        return False


def check_settings_file(path: Path, rules: Rules, *, most: int = SMALL, others: Rule | None = None) -> None:
    """Check a JSON file of settings if it exists."""
    document = read_if_there(path, most=most)
    if document is not None:
        check_keys(document, rules, path, others=others)
