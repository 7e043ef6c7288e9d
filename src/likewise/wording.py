"""How things are said to people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# All that ends a line, for Python or for a terminal.
_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# What a correlation on dev counts while a head still answers one constant: the worst, not the end of the run.
WORST = -1.0


def counted(number: int, noun: str) -> str:
    """1 pair, 2 pairs, 12,000 pairs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def dev_score(value: float) -> str:
    """A number on dev as it is said; of answers that are all alike there is none."""
    return "– (all answers alike)" if value == WORST else f"{value:.4f}"


def listed(names: Iterable[object], *, most: int = 20) -> str:
    """Names between commas; of very many the first ones, and how many more there are."""
    known = list(names)
    more = f", … and {len(known) - most:,} more" if len(known) > most else ""
    return ", ".join(clipped(str(name)) for name in known[:most]) + more


def shortened(lines: Sequence[str], *, most: int = 10) -> tuple[str, ...]:
    """Lines to be shown; of very many the first ones, and how many more there are."""
    left = len(lines) - most
    return tuple(lines) if left <= 0 else (*lines[:most], f"… and {left:,} more like these")


def clipped(text: str, *, most: int = 200) -> str:
    """A text that a message names; of a very long one the beginning."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def quoted(value: object, *, most: int = 200) -> str:
    """A value as Python writes it; of a very long one the beginning."""
    if isinstance(value, str | bytes) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    try:
        return clipped(repr(value), most=most)
    except (RecursionError, ValueError):  # nested too deeply; a number of thousands of digits
        return f"a {type(value).__name__} too large to show"


def in_one_line(text: str) -> str:
    """A text without line breaks, which names of files may hold: they are escaped as in Python."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def has_half_character(text: str) -> bool:
    """Whether a text holds half of a surrogate pair: bytes that are no UTF-8, read by Python or JSON."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
