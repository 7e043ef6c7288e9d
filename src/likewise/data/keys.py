"""Keys under which two texts, or two pairs, count as the same, and the words by which texts are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence, Set
from functools import cache

_OTHER = re.compile(r"[\W_]+")
_OTHER_ASCII = bytes(code for code in range(128) if not chr(code).isalnum())
_BLANK_ASCII = {code: " " for code in range(128) if not chr(code).isalnum()}
# Thai, Lao, Burmese, Khmer, kana and ideographs: written without blanks between words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(rf"(?:(?=[^\W_])[{_UNSPACED}])+")


def text_key(text: str) -> str:
    """The text after NFKC and casefolding, with alphanumeric characters only: "It's  Fine." and "its fine"
    share a key.

    A text without letters or digits ("?!", "🙂") is its own key, without white space. With an empty key all
    such texts would count as the same. Only a blank text has an empty key.
    """
    if text.isascii():  # the same answer, ten times faster
        key = text.lower().encode("ascii").translate(None, _OTHER_ASCII).decode("ascii")
    else:
        key = _OTHER.sub("", unicodedata.normalize("NFKC", text).casefold())
    return key or "".join(text.split())


def text_words(text: str) -> frozenset[str]:
    """The different words of a text, made of letters and digits as in `text_key`: {"it", "s", "fine"}.

    In a script without blanks between words (Chinese, Japanese, Thai, …) every two neighbouring letters are a
    word. If a whole run of letters were one word, only equal runs would have a word in common. A text without
    letters or digits is one word, its key.
    """
    if text.isascii():  # the same answer, several times faster
        words = text.lower().translate(_BLANK_ASCII).split()
    else:
        # Marks go before the cut: they stand inside words, and `text_key` drops them.
        plain = unicodedata.normalize("NFKC", text).casefold().translate(_marks())
        runs = _UNSPACED_RUN.findall(plain)
        words = _OTHER.sub(" ", _UNSPACED_RUN.sub(" ", plain) if runs else plain).split()
        words += [run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))]
    if words:
        return frozenset(words)
    key = text_key(text)
    return frozenset([key] if key else [])


@cache
def _marks() -> dict[int, None]:
    """Every accent and vowel sign that is a character of its own."""
    planes = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    return {code: None for code in planes if unicodedata.category(chr(code)).startswith("M")}


def pair_key(a: str, b: str) -> tuple[str, str]:
    """The two text keys in a fixed order, so that (a, b) and (b, a) share a key."""
    first, second = text_key(a), text_key(b)
    return (first, second) if first <= second else (second, first)


def any_among(texts: Iterable[str], keys: Set[str]) -> bool:
    """Whether one of these texts has one of the keys."""
    return any(text_key(text) in keys for text in texts)


def connected_rows(rows: Sequence[Iterable[str]]) -> list[list[int]]:
    """Rows of texts that are connected through shared texts, as lists of row numbers, in order of first
    appearance.
    """
    parent = list(range(len(rows)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[str, int] = {}
    for row, texts in enumerate(rows):
        for text in texts:
            other = first.setdefault(text_key(text), row)
            low, high = sorted((root(row), root(other)))
            parent[high] = low
    groups: dict[int, list[int]] = {}
    for row in range(len(rows)):
        groups.setdefault(root(row), []).append(row)
    return list(groups.values())
