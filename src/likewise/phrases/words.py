"""Split a text into words, in any script and without a model.

Each character is mapped to a one-letter kind, and one pattern over the kinds cuts the words. This keeps the
pattern readable, and a character's kind is looked up in Unicode only once per process.
"""

from __future__ import annotations

import re
import unicodedata

SPACE, LETTER, DIGIT, IDEOGRAPH, EXTENDS, JOINER, BREAK = "_LNHxjz"
FLAG, SYMBOL, APOSTROPHE, HYPHEN, STOP, BETWEEN_DIGITS, MARK = "rea-.,m"

_SPECIAL = {
    **dict.fromkeys("_", LETTER),
    # Apostrophes, the dot of Catalan l·l, and the two marks inside Hebrew abbreviations.
    **dict.fromkeys("'’＇·׳״", APOSTROPHE),
    **dict.fromkeys("-‐‑", HYPHEN),
    **dict.fromkeys(".", STOP),
    **dict.fromkeys(",:٫٬", BETWEEN_DIGITS),
    "\u200d": JOINER,
    "\u200b": BREAK,  # a space of no width, between the words of Thai or Khmer
    # Marks that lengthen or voice the kana before them, though Unicode calls them letters.
    **dict.fromkeys("ーｰﾞﾟ", EXTENDS),
}
_RANGES = (
    ((0x1F1E6, 0x1F1FF), FLAG),
    ((0x1F3FB, 0x1F3FF), EXTENDS),  # skin tones
    *(
        (span, IDEOGRAPH)
        for span in (
            (0x2E80, 0x2FDF),
            (0x3005, 0x3007),
            (0x3021, 0x3029),
            (0x3031, 0x3035),
            (0x3038, 0x303B),
            (0x3041, 0x3096),
            (0x309D, 0x309F),
            (0x30A1, 0x30FA),
            (0x30FD, 0x30FF),
            (0x31F0, 0x31FF),
            (0x3400, 0x4DBF),
            (0x4E00, 0x9FFF),
            (0xF900, 0xFAFF),
            (0xFF66, 0xFF9D),
            (0x1AFF0, 0x1B16F),
            (0x20000, 0x3FFFD),
        )
    ),
)


def _kind(char: str) -> str:
    if char.isspace():
        return SPACE
    if char in _SPECIAL:
        return _SPECIAL[char]
    for (first, last), kind in _RANGES:
        if first <= ord(char) <= last:
            return kind
    category = unicodedata.category(char)
    if category[0] == "L":
        return LETTER
    if category[0] == "N":
        return DIGIT
    if category[0] == "M" or category == "Cf":
        return EXTENDS
    return SYMBOL if category in ("So", "Sm") else MARK


class _Kinds(dict[int, int]):
    """Code point → code of its kind; filled when a character first occurs."""

    def __missing__(self, point: int) -> int:
        return self.setdefault(point, ord(_kind(chr(point))))


_KINDS = _Kinds()
# What extends a character stays with it. The quantifiers are possessive: no text makes the search slow.
_WORD = re.compile(
    r"""
    [xjz]*+                                             # loose marks go with what follows them
    (?:
        (?: L[xj]*+ \. ){2,}+ (?: L[xj]*+ (?![LN]) )?+  # U.S., e.g., U.S.A
      | [LN][xj]*+ (?: (?: [a-] | (?<=N)[.,](?=N) )?+ [LN][xj]*+ )*
      | H[xj]*+
      | r[xj]*+ (?: r[xj]*+ )?+                         # two letters make a flag
      | e x*+ (?: j x*+ e x*+ )*+ j*+                   # families, professions
      | [a.,m-][xj]*+
    )
    z*+
    | [xjz]++
    """,
    re.VERBOSE,
)


def split_words(text: str) -> tuple[tuple[int, int], ...]:
    """The start and end of each word in order; words are disjoint and cover everything but white space.

    Letters and digits stay together over an inner apostrophe or hyphen (don't, well-known), and digits over
    an inner point, comma or colon (1,000.5, 12:30). Single letters keep their points (U.S.). Han and kana are
    words of one character. Every other mark is a word together with its modifiers, so an emoji of many parts
    is one word.
    """
    return tuple(found.span() for found in _WORD.finditer(text.translate(_KINDS)))
