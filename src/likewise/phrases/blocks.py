"""Blocks: the few phrases that cover a text and are shown beside those of another text.

Links overlap: words, phrases, clauses and the whole text may all be linked. An explanation needs a single
layer of them. It is made from the top down: a linked pair of phrases is divided into the links inside it
until it is short or has no phrase inside. Words without a link form their own phrases. The blocks of two
texts thus correspond to each other where they can.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from likewise.data.links import Span
from likewise.phrases.spans import Phrases

# A linked pair this short stays whole: "in the park" is not shown as "in" and "the park".
SHORT = 3
# A link takes in the phrase around it where that adds no more words: "violin" becomes "the violin".
GROWTH = 2


class SureLink(NamedTuple):
    """Two linked spans with their probability, which decides between links that exclude each other."""

    a: Span
    b: Span
    sure: float


@dataclass(frozen=True, slots=True)
class Block:
    """A phrase of one text; `partner` is its block in the other text, `link` the link between the two."""

    span: Span
    partner: int | None = None
    link: int | None = None


@dataclass(frozen=True, slots=True)
class _Text:
    """A text's phrases without punctuation marks, the words that are marks, and the span of the others."""

    spans: tuple[Span, ...]
    marks: tuple[bool, ...]
    all: Span

    @classmethod
    def of(cls, phrases: Phrases) -> _Text:
        marks = tuple(map(is_mark, phrases.tokens))
        words = [place for place, mark in enumerate(marks) if not mark]
        # Links of others name full stops too, which makes them phrases.
        spans = tuple(span for span in phrases.spans if not all(marks[slice(*span)]))
        return cls(spans, marks, (words[0], words[-1] + 1) if words else (0, 0))


def pair_blocks(
    a: Phrases, b: Phrases, links: Sequence[SureLink]
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """The blocks of two texts in order; together they hold every word except marks exactly once."""
    texts = _Text.of(a), _Text.of(b)
    worth = [
        (number, link)
        for number, link in enumerate(links)
        if not all(texts[0].marks[slice(*link.a)]) and not all(texts[1].marks[slice(*link.b)])
    ]
    cores = _cores((0, len(a.words)), (0, len(b.words)), worth, texts)
    spans_a = _cover(texts[0], [links[number].a for number in cores])
    spans_b = _cover(texts[1], [links[number].b for number in cores])
    blocks_a, blocks_b = [Block(span) for span in spans_a], [Block(span) for span in spans_b]
    for number in cores:
        x, y = _holding(spans_a, links[number].a), _holding(spans_b, links[number].b)
        blocks_a[x], blocks_b[y] = Block(spans_a[x], y, number), Block(spans_b[y], x, number)
    return tuple(blocks_a), tuple(blocks_b)


def is_mark(token: str) -> bool:
    """Whether a word is only punctuation; an emoji is not."""
    return all(unicodedata.category(char)[0] in "PZC" for char in token)


def _cores(a: Span, b: Span, links: Sequence[tuple[int, SureLink]], texts: tuple[_Text, _Text]) -> list[int]:
    """The numbers of the links that become blocks, which do not overlap.

    A long link may span words whose match in the other text is outside the link; words that remain free are
    therefore considered again.
    """
    whole = [number for number, link in links if (link.a, link.b) == (a, b)]
    cores: list[int] = []
    while found := list(_divide(a, b, links, texts)):
        cores += found
        chosen = [link for number, link in links if number in found]
        taken_a = {word for link in chosen for word in range(*link.a)}
        taken_b = {word for link in chosen for word in range(*link.b)}
        links = [
            (number, link)
            for number, link in links
            if taken_a.isdisjoint(range(*link.a)) and taken_b.isdisjoint(range(*link.b))
        ]
    # A text of one word has nothing below the whole that could be joined instead.
    return cores or (whole[:1] if 1 in (_length(a), _length(b)) else [])


def _divide(
    a: Span, b: Span, links: Sequence[tuple[int, SureLink]], texts: tuple[_Text, _Text]
) -> Iterator[int]:
    """The numbers of the links inside two spans that become blocks, which do not overlap."""
    inside = [
        (number, link)
        for number, link in links
        if _within(link.a, a) and _within(link.b, b) and (link.a, link.b) != (a, b)
    ]
    inside.sort(key=lambda one: (-_length(one[1].a) - _length(one[1].b), -one[1].sure, one[1].a, one[1].b))
    taken_a: set[int] = set()
    taken_b: set[int] = set()
    for number, link in inside:
        words_a, words_b = range(*link.a), range(*link.b)
        if not taken_a.isdisjoint(words_a) or not taken_b.isdisjoint(words_b):
            continue
        taken_a.update(words_a)
        taken_b.update(words_b)
        parts = [] if _stays_whole(link, texts) else list(_divide(link.a, link.b, inside, texts))
        yield from parts or [number]


def _stays_whole(link: SureLink, texts: tuple[_Text, _Text]) -> bool:
    """Whether a link is short or has no phrase inside on both sides; a whole text is always divided."""
    sides = list(zip((link.a, link.b), texts, strict=True))
    if any(_within(text.all, span) for span, text in sides):
        return False
    return all(_length(span) <= SHORT for span, _ in sides) or not any(
        _within(inner, span) and inner != span for span, text in sides for inner in text.spans
    )


def _cover(text: _Text, cores: Sequence[Span]) -> list[Span]:
    """The cores, extended to the phrases around them, and phrases or runs of words for the other words."""
    taken = {word for core in cores for word in range(*core)}
    found = [_grown(core, text, taken - set(range(*core))) for core in cores]
    for span in found:
        taken.update(range(*span))
    # The longest first, so that a phrase inside one that was taken finds its words gone.
    for span in sorted(text.spans, key=lambda span: (span[0] - span[1], span[0])):
        if not _within(text.all, span) and taken.isdisjoint(range(*span)):
            found.append(span)
            taken.update(range(*span))
    rest = [word for word, mark in enumerate(text.marks) if word not in taken and not mark]
    return sorted([*found, *_runs(rest, alone=not found)])


def _grown(core: Span, text: _Text, others: set[int]) -> Span:
    """The largest phrase around a core that adds one or two words and nothing of another core."""
    fitting = [
        span
        for span in text.spans
        if _within(core, span)
        and _length(span) <= _length(core) + GROWTH
        and not _within(text.all, span)
        and others.isdisjoint(range(*span))
    ]
    return max(fitting, key=_length, default=core)


def _runs(words: Sequence[int], *, alone: bool) -> Iterator[Span]:
    """Neighbouring words as one span; with `alone` each word is a span, so that a text has several blocks."""
    start = 0
    for place, word in enumerate(words):
        last = place + 1 == len(words)
        if alone or last or words[place + 1] != word + 1:
            yield words[start], word + 1
            start = place + 1


def _holding(spans: Sequence[Span], core: Span) -> int:
    return next(place for place, span in enumerate(spans) if _within(core, span))


def _within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _length(span: Span) -> int:
    return span[1] - span[0]
