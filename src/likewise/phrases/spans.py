"""Phrases: a text as words and nested phrases, which every phraser makes and the aligner reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from likewise.data.links import Span
from likewise.errors import DataError, Problem, UsageError
from likewise.phrases.words import split_words

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Phrases:
    """A text, the character offsets of its words, and its phrases as spans of words; `by` names their maker.

    Spans are distinct, sorted by (start, -end), and either nested or disjoint. Single words are phrases too
    and need not be listed.
    """

    text: str
    words: tuple[tuple[int, int], ...]
    spans: tuple[Span, ...]
    by: str

    def __post_init__(self) -> None:
        """Raise an error for spans that do not form a tree."""
        wrong = _wrong_words(self.words, len(self.text)) or _wrong_spans(self.spans, len(self.words))
        if any((a, -b) >= (c, -d) for (a, b), (c, d) in pairwise(self.spans)):
            wrong = ["spans are not sorted by (start, -end), or one is listed twice"]
        if wrong:
            raise UsageError(f"{'; '.join(wrong)}. Make Phrases with likewise.phrases.spans.given.")

    def said(self, span: Span) -> str:
        """The text of a span as it is written."""
        start, end = span
        return self.text[self.words[start][0] : self.words[end - 1][1]]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words as they are written."""
        return tuple(self.text[start:end] for start, end in self.words)


class Phraser(Protocol):
    """A function from texts to their phrases, in the given order; `name` becomes the `by` of each."""

    @property
    def name(self) -> str:
        """The maker of the phrases, with its version if that affects them."""

    def __call__(self, texts: Sequence[str]) -> list[Phrases]:
        """The phrases of each text."""


def nodes(phrases: Phrases) -> tuple[list[Span], list[list[int]]]:
    """All phrases, words and one root over them, children before parents, and the direct children of each.

    The order is post-order, so the root is last. No span occurs twice: a text of one word has a single node,
    a text without words has none.
    """
    count = len(phrases.words)
    if not count:
        return [], []
    every = {(word, word + 1) for word in range(count)} | {(0, count)} | set(phrases.spans)
    ordered = sorted(every, key=lambda span: (span[1], -span[0]))
    children: list[list[int]] = []
    waiting: list[int] = []  # nodes without a parent so far, from left to right
    for index, (start, _) in enumerate(ordered):
        first = len(waiting)
        while first and ordered[waiting[first - 1]][0] >= start:
            first -= 1
        children.append(waiting[first:])
        del waiting[first:]
        waiting.append(index)
    return ordered, children


def given(
    text: str,
    spans: Iterable[Sequence[int]],
    words: Iterable[Sequence[int]] | None = None,
    *,
    where: str,
) -> Phrases:
    """Make Phrases from your own spans; `words` are character offsets, by default those of `split_words`.

    Their order does not matter, and repeated spans are merged. An error names all problems at once, at
    `where`.
    """
    cut = split_words(text) if words is None else tuple(_pairs(words, "word", where))
    if wrong := _wrong_words(cut, len(text)):
        remedy = "give [start, end] in characters for each word, in order and apart, or leave words out"
        raise DataError([Problem(where, what, remedy) for what in wrong])
    wanted = order(_pairs(spans, "span", where))
    if wrong := _wrong_spans(wanted, len(cut), text, cut):
        remedy = f"give [first word, word after the last] among {len(cut)} words, nested or apart"
        raise DataError([Problem(where, what, remedy) for what in wrong])
    return Phrases(text, cut, tuple(wanted), "given")


def order(spans: Iterable[Span]) -> list[Span]:
    """The distinct spans from left to right; of spans with the same start, the longer one comes first."""
    return sorted(set(spans), key=lambda span: (span[0], -span[1]))


def uncrossed(candidates: Iterable[Span], count: int) -> tuple[Span, ...]:
    """The candidates that do not cross an earlier one, in order, over `count` words."""
    kept: set[Span] = set()
    # For each place between two words: where the furthest span that ends or begins there reaches.
    leftmost, rightmost = list(range(count + 1)), list(range(count + 1))
    for span in candidates:
        start, end = span
        inside = slice(start + 1, end)
        if span in kept or min(leftmost[inside], default=start) < start:
            continue
        if max(rightmost[inside], default=end) > end:
            continue
        kept.add(span)
        leftmost[end] = min(leftmost[end], start)
        rightmost[start] = max(rightmost[start], end)
    return tuple(order(kept))


def _pairs(listed: Iterable[Sequence[int]], kind: str, where: str) -> list[Span]:
    """Pairs of whole numbers, from JSON or a caller."""
    pairs, wrong = [], []
    for item in listed:
        ends = list(item) if isinstance(item, Sequence) and not isinstance(item, str) else []
        if len(ends) == 2 and all(hasattr(end, "__index__") and not isinstance(end, bool) for end in ends):
            pairs.append((int(ends[0]), int(ends[1])))
        else:
            wrong.append(
                Problem(where, f"{kind} {item!r} is not two whole numbers", "write it as [start, end]")
            )
    if wrong:
        raise DataError(wrong)
    return pairs


def _wrong_words(words: Sequence[tuple[int, int]], length: int) -> list[str]:
    """The problems of the offsets of words."""
    wrong, before = [], 0
    for number, (start, end) in enumerate(words):
        if not before <= start < end <= length:
            wrong.append(
                f"word {number} at characters {start}:{end} is empty, out of order or outside the text"
            )
        before = max(before, end)
    return wrong


def _wrong_spans(
    spans: Sequence[Span], count: int, text: str = "", words: Sequence[tuple[int, int]] = ()
) -> list[str]:
    """The problems of sorted spans over `count` words; the spans' texts are quoted if `words` are given."""

    def show(span: Span) -> str:
        said = text[words[span[0]][0] : words[span[1] - 1][1]] if words else ""
        return f"{span[0]}:{span[1]}" + (f" '{said[:_SHOWN]}'" if said else "")

    wrong: list[str] = []
    around: list[Span] = []
    for span in spans:
        start, end = span
        if not 0 <= start < end <= count:
            what = "is empty" if start >= end else f"lies outside the text's {count} words"
            wrong.append(f"span {start}:{end} {what}")
            continue
        while around and around[-1][1] <= start:
            around.pop()
        if around and around[-1][1] < end:
            wrong.append(f"span {show(around[-1])} crosses span {show(span)}")
        else:
            around.append(span)
    return wrong
