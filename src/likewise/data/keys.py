"""Keys under which two texts, or two pairs, count as the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set

_OTHER = re.compile(r"[\W_]+")
_OTHER_ASCII = bytes(code for code in range(128) if not chr(code).isalnum())


def text_key(text: str) -> str:
    """NFKC, casefolded, alphanumeric characters only: "It's  Fine." and "its fine" share a key.

    A text without letters or digits ("?!", "🙂") is its own key, without white space: an empty key would make
    all such texts the same. Only a blank text has an empty key.
    """
    if text.isascii():  # the same answer, ten times faster
        key = text.lower().encode("ascii").translate(None, _OTHER_ASCII).decode("ascii")
    else:
        key = _OTHER.sub("", unicodedata.normalize("NFKC", text).casefold())
    return key or "".join(text.split())


def pair_key(a: str, b: str) -> tuple[str, str]:
    """The two text keys in a fixed order, so that (a, b) and (b, a) share a key."""
    first, second = text_key(a), text_key(b)
    return (first, second) if first <= second else (second, first)


def any_among(texts: Iterable[str], keys: Set[str]) -> bool:
    """Whether one of these texts has one of the keys."""
    return any(text_key(text) in keys for text in texts)
