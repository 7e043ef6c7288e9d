"""Map the words of a text to the tokens of a tokenizer by the characters that they cover."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

Range = tuple[int, int]
NONE: Range = (0, 0)


def pieces_of_words(words: Sequence[Range], pieces: Sequence[Range]) -> list[Range]:
    """For each word, the half-open run of tokens that cover it, from the first to the last.

    Words and tokens are character ranges in order. Tokens without characters (markers such as [CLS]) belong
    to no word. A word without a token (cut off, or dropped by the tokenizer) gets the empty run (0, 0).
    """
    real = [index for index, (start, end) in enumerate(pieces) if end > start]
    starts = [pieces[index][0] for index in real]
    ends = [pieces[index][1] for index in real]
    found = []
    for start, end in words:
        first, after = bisect_right(ends, start), bisect_left(starts, end)
        found.append((real[first], real[after - 1] + 1) if first < after else NONE)
    return found


def pieces_of_span(span: Range, runs: Sequence[Range]) -> Range:
    """The tokens of a span of words, from the first of its first word to the last of its last word."""
    inside = [run for run in runs[span[0] : span[1]] if run != NONE]
    return (inside[0][0], inside[-1][1]) if inside else NONE
