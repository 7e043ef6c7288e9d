"""Add phrase links to pairs of texts: find phrases, align them, and give the links in the plain format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from likewise.data.links import Link, LinkedPair, Span, refuse_crossing
from likewise.errors import DataError, Problem, UsageError
from likewise.phrases.aligner import MAX_WORDS, Aligner
from likewise.phrases.spans import Phraser, Phrases, given
from likewise.wording import quoted

# Pairs that are looked at together: each of their distinct texts is encoded once.
WINDOW = 128
# Their words' states are held together; beyond this a window is cut.
WORD_BUDGET = 20_000

# What stands for a maker who is not named.
GIVEN = "given"
# Between who made the links and who the phrases, in the `by` of a pair.
_PHRASES_BY = ", phrases by "

_Item = TypeVar("_Item")


class Asked(NamedTuple):
    """Two texts and their origin: `source` is named in errors, `id` is written to a corpus of links."""

    a: str
    b: str
    source: str = ""
    id: str | None = None


# Two texts and the phrases of each.
Phrased = tuple[Asked, Phrases, Phrases]


def link_pairs(
    pairs: Iterable[LinkedPair],
    phraser: Phraser,
    aligner: Aligner,
    *,
    by: str,
    progress: Callable[[int], None] | None = None,
) -> Iterator[LinkedPair]:
    """The pairs with their links in the given order; pairs that already have links keep them."""
    for group in cut(pairs, WINDOW):
        bare = [Asked(one.text_a, one.text_b, one.source, one.id) for one in group if not one.aligned]
        found = align_pairs(bare, phraser, aligner, by=by)
        yield from (one if one.aligned else next(found) for one in group)
        if progress is not None:
            progress(len(group))


def align_pairs(
    pairs: Iterable[Asked], phraser: Phraser, aligner: Aligner, *, by: str
) -> Iterator[LinkedPair]:
    """The pairs with our links in the plain format; `score` is a link's strength, `by` names the makers."""
    for window in phrased(pairs, phraser):
        aligned = aligner([(a, b) for _, a, b in window])
        for (asked, a, b), found in zip(window, aligned, strict=True):
            yield LinkedPair(
                text_a=asked.a,
                text_b=asked.b,
                words_a=a.words,
                words_b=b.words,
                links=tuple(Link(link.a, link.b, link.strength, link.chance) for link in found.links),
                spans_a=a.spans,
                spans_b=b.spans,
                source=asked.source,
                id=asked.id,
                by=f"{by}{_PHRASES_BY}{phraser.name}",
            )


def makers(pair: LinkedPair) -> tuple[str, str]:
    """The makers of a linked pair's phrases and of its links; "given" if they are not recorded."""
    links_by, _, phrases_by = (pair.by or "").partition(_PHRASES_BY)
    return phrases_by or GIVEN, links_by or GIVEN


def phrases_of(pair: LinkedPair) -> tuple[Phrases, Phrases]:
    """The phrases of a linked pair: the listed ones, and phrases of several words that its links name.

    A single word that a link names is not listed, because a listed word would be shown separately.
    """
    refuse_crossing(pair)
    spans_a = [*pair.spans_a, *_of_several_words(link.a for link in pair.links)]
    spans_b = [*pair.spans_b, *_of_several_words(link.b for link in pair.links)]
    a = given(pair.text_a, spans_a, pair.words_a, where=pair.source)
    b = given(pair.text_b, spans_b, pair.words_b, where=pair.source)
    refuse_long(a, b, pair.source)
    return a, b


def _of_several_words(spans: Iterable[Span]) -> Iterator[Span]:
    return ((start, end) for start, end in spans if end - start > 1)


def phrased(pairs: Iterable[Asked], phraser: Phraser) -> Iterator[list[Phrased]]:
    """Pairs with their phrases, in groups of at least one pair that fit the word budget."""
    for group in cut(pairs, WINDOW):
        texts = list(dict.fromkeys(text for asked in group for text in asked[:2]))
        found = dict(zip(texts, _checked(phraser(texts), len(texts)), strict=True))
        window: list[Phrased] = []
        held = 0
        for asked in group:
            a, b = found[asked.a], found[asked.b]
            refuse_long(a, b, asked.source)
            words = len(a.words) + len(b.words)
            if window and held + words > WORD_BUDGET:
                yield window
                window, held = [], 0
            window.append((asked, a, b))
            held += words
        yield window


def _checked(found: Iterable[Phrases], texts: int) -> list[Phrases]:
    """The phrases that a caller's own function found; raises an error for anything else."""
    known = list(found) if isinstance(found, Iterable) else []
    if len(known) == texts and all(isinstance(one, Phrases) for one in known):
        return known
    raise UsageError(
        f"phrases: the function returned {quoted(found, most=80)}. It must return Phrases for every text."
    )


def cut(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Groups of `size` items; the last one holds the rest."""
    waiting = iter(items)
    while group := list(islice(waiting, size)):
        yield group


def refuse_long(a: Phrases, b: Phrases, source: str) -> None:
    """Raise an error, with the place, for a text that is too long for the aligner."""
    for side, phrases in zip(("first", "second"), (a, b), strict=True):
        if len(phrases.words) > MAX_WORDS:
            what = (
                f"the {side} text has {len(phrases.words):,} words, but at most {MAX_WORDS:,} can be aligned"
            )
            raise DataError([Problem(source or "pair", what, "cut it into sentences or paragraphs")])
