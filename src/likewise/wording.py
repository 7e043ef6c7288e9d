"""Words of messages: numbers with nouns, lists, quotes and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# All that ends a line, for Python or for a terminal.
_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# A first word that is no name, command or key; and what ends a sentence.
_PLAIN_WORD = re.compile(r"[a-z]+(?=[ ,:]|$)")
_COMMANDS = {"likewise", "pip"}
_ENDS = (".", "?", "!", "…")
_COPIED = re.compile(r": (?:--|pip |likewise )[^;]*$")
# The dev score while a head still answers one constant: the worst possible, so that the run goes on.
WORST = -1.0


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 pair, 2 pairs, 12,000 pairs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def dev_score(value: float) -> str:
    """A dev score in words. Answers that are all alike have none."""
    return "– (all answers alike)" if value == WORST else f"{value:.4f}"


def listed(names: Iterable[object], *, most: int = 20) -> str:
    """Names separated by commas. Of very many, the first ones and the number of the others."""
    known = list(names)
    more = f", … and {len(known) - most:,} more" if len(known) > most else ""
    return ", ".join(clipped(str(name)) for name in known[:most]) + more


def shortened(lines: Sequence[str], *, most: int = 10) -> tuple[str, ...]:
    """Lines to show. Of very many, the first ones and the number of the others."""
    left = len(lines) - most
    return tuple(lines) if left <= 0 else (*lines[:most], f"… and {left:,} more like these")


def clipped(text: str, *, most: int = 200) -> str:
    """A text for a message. Of a very long one, the beginning and the length."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def quoted(value: object, *, most: int = 200) -> str:
    """A value in Python's notation. Of a very long one, the beginning and the length."""
    if isinstance(value, str | bytes) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    try:
        return clipped(repr(value), most=most)
    except (RecursionError, ValueError):  # nested too deeply; a number of thousands of digits
        return f"a {type(value).__name__} too large to show"


def sentence(text: str) -> str:
    """A part of a message as a sentence: with a capital letter and a full stop.

    Names keep their case: a first word that is an option, a key, a file or a command is not changed.
    """
    first = _PLAIN_WORD.match(text)
    if first and first[0] not in _COMMANDS:
        text = text[:1].upper() + text[1:]
    return ended(text)


def ended(text: str) -> str:
    """The text with a full stop, unless it ends as a sentence already, or in a command to be copied."""
    return text if text.endswith(_ENDS) or _COPIED.search(text) else f"{text}."


def in_one_line(text: str) -> str:
    """A text in one line. Line breaks, which file names may hold, are escaped as in Python."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def has_half_character(text: str) -> bool:
    """Whether a text holds half of a surrogate pair, as Python or JSON reads bytes that are not UTF-8."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
