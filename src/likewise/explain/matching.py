"""What two texts share and where they differ: links, blocks, the best match of each word, least matched
phrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.data.links import LinkedPair, Span
from likewise.phrases.aligner import Aligner
from likewise.phrases.blocks import Block, SureLink, is_mark, pair_blocks
from likewise.phrases.linking import phrases_of
from likewise.phrases.measures import cosines, means
from likewise.phrases.spans import Phrases, nodes
from likewise.phrases.states import WordLayers

# A word with a better match than this speaks for "the same". Chosen on edits of train, before a look at dev
# (python benchmarks/explaining.py --choose): higher bars cover more edits, by longer phrases.
MATCHED = 0.75


@dataclass(frozen=True, slots=True)
class Match:
    """A link: the similarity of its spans (0..1), and our chance that people link them, or another
    linker's score.
    """

    a: Span
    b: Span
    strength: float
    chance: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """Two texts with links, blocks and the similarity of joined blocks. Each word has its best match (0..1).

    `odd` are the least matched phrases. `unread` counts the words that the encoder cut off.
    """

    a: Phrases
    b: Phrases
    links: tuple[Match, ...]
    blocks_a: tuple[Block, ...]
    blocks_b: tuple[Block, ...]
    strengths_a: tuple[float | None, ...]
    strengths_b: tuple[float | None, ...]
    matched_a: tuple[float, ...]
    matched_b: tuple[float, ...]
    odd_a: Span | None
    odd_b: Span | None
    unread_a: int
    unread_b: int


def match_pairs(aligner: Aligner, pairs: Sequence[tuple[Phrases, Phrases]]) -> list[MatchedPair]:
    """Match pairs of texts that have their phrases, with our own links."""
    known = aligner.states_of([one for pair in pairs for one in pair])
    found = []
    for a, b in pairs:
        states = known[a.text, a.words], known[b.text, b.words]
        links = aligner.align(a, b, *states).links
        matches = [Match(link.a, link.b, link.strength, chance=link.chance) for link in links]
        found.append(_matched(aligner, a, b, states, matches))
    return found


def match_linked(aligner: Aligner, pairs: Sequence[LinkedPair]) -> list[MatchedPair]:
    """Match pairs with the links that they bring. The strength is the encoder's, as for our own links."""
    texts = [phrases_of(pair) for pair in pairs]
    known = aligner.states_of([one for both in texts for one in both])
    found = []
    for pair, (a, b) in zip(pairs, texts, strict=True):
        states = known[a.text, a.words], known[b.text, b.words]
        alike = _alike(states, [(link.a, link.b) for link in pair.links])
        matches = [
            Match(link.a, link.b, strength, chance=link.chance, score=link.score)
            for link, strength in zip(pair.links, alike, strict=True)
        ]
        found.append(_matched(aligner, a, b, states, matches))
    return found


def _matched(
    aligner: Aligner, a: Phrases, b: Phrases, states: tuple[WordLayers, WordLayers], links: Sequence[Match]
) -> MatchedPair:
    sure = [SureLink(link.a, link.b, link.strength if link.chance is None else link.chance) for link in links]
    blocks_a, blocks_b = pair_blocks(a, b, sure)
    joined = [(place, block.partner) for place, block in enumerate(blocks_a) if block.partner is not None]
    alike = _alike(states, [(blocks_a[x].span, blocks_b[y].span) for x, y in joined])
    by_a = {x: strength for (x, _), strength in zip(joined, alike, strict=True)}
    by_b = {y: strength for (_, y), strength in zip(joined, alike, strict=True)}
    matched_a, matched_b = word_matches(*states)
    return MatchedPair(
        a,
        b,
        tuple(links),
        blocks_a,
        blocks_b,
        tuple(map(by_a.get, range(len(blocks_a)))),
        tuple(map(by_b.get, range(len(blocks_b)))),
        matched_a,
        matched_b,
        least_matched(a, matched_a, other=b.tokens),
        least_matched(b, matched_b, other=a.tokens),
        _count_unread(aligner, a, states[0]),
        _count_unread(aligner, b, states[1]),
    )


def _count_unread(aligner: Aligner, phrases: Phrases, states: WordLayers) -> int:
    """The number of words at the end of a text, without punctuation marks, that the encoder's longest
    input cuts off.
    """
    read = np.flatnonzero(states.last.any(axis=1))
    end = phrases.tokens[int(read[-1]) + 1 if read.size else 0 :]
    lost = sum(not is_mark(token) for token in end)
    # A tokenizer drops some characters wherever they stand: those are not beyond anything.
    return 0 if not lost or aligner.reads_whole(phrases.text) else lost


def _alike(states: tuple[WordLayers, WordLayers], spans: Sequence[tuple[Span, Span]]) -> tuple[float, ...]:
    """Cosines of pairs of spans in the last layer, 0..1: the strength that the aligner gives its links."""
    if not spans:
        return ()
    u = means(states[0].last, [range(*a) for a, _ in spans])
    v = means(states[1].last, [range(*b) for _, b in spans])
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    return _rounded(np.clip((u * v).sum(axis=1) / np.maximum(lengths, 1e-9), 0.0, 1.0))


def word_matches(a: WordLayers, b: WordLayers) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each word of either text, the cosine of its best match in the other text, in the last layer,
    0..1.
    """
    alike = np.clip(cosines(a.last, b.last), 0.0, 1.0)
    return _rounded(alike.max(axis=1, initial=0.0)), _rounded(alike.max(axis=0, initial=0.0))


def least_matched(
    phrases: Phrases, matched: Sequence[float], bar: float = MATCHED, *, other: Sequence[str] = ()
) -> Span | None:
    """The phrase with the most that is unmatched: the largest sum of its words' distances below the bar.

    Words above the bar count against a phrase, so it does not grow beyond the difference. The result is None
    if every word is matched. Punctuation marks count nothing. Of equal phrases the shortest one is taken,
    then the first. A phrase whose words all occur in the `other` text is not a difference, whatever its
    cosines are.
    """
    words = [any(letter.isalnum() for letter in token) for token in phrases.tokens]
    lacking = [bar - match if word else 0.0 for word, match in zip(words, matched, strict=True)]
    sums = np.concatenate([[0.0], np.cumsum(lacking)])
    known = {token.casefold() for token in other}
    new = [word and token.casefold() not in known for word, token in zip(words, phrases.tokens, strict=True)]
    spans = [span for span in nodes(phrases)[0] if any(new[slice(*span)])]
    best = max(spans, key=lambda s: (round(sums[s[1]] - sums[s[0]], 6), s[0] - s[1], -s[0]), default=None)
    return best if best is not None and sums[best[1]] - sums[best[0]] > 0 else None


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
