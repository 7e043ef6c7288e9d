"""Two texts as one input of a transformer, [CLS] a [SEP] b [SEP], with the tokens of every span of words.

Texts are tokenized once and joined again whenever new negatives are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.data.links import LinkedPair, Span
from likewise.errors import ModelError
from likewise.phrases.pieces import NONE, Range, pieces_of_span, pieces_of_words
from likewise.phrases.spans import Phrases, nodes, order, uncrossed

# Half-open runs of pieces, n×2.
PieceRuns = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PieceText:
    """A text as tokens without markers, and its phrases as runs of tokens: words, phrases, the whole text."""

    text: str
    ids: tuple[int, ...]
    phrases: PieceRuns


@dataclass(frozen=True, slots=True)
class PiecePair:
    """Two texts with the links between their phrases: k×2 numbers of phrases."""

    a: PieceText
    b: PieceText
    links: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Joined:
    """One input of one or two texts: token ids, the text of each token, and the start of each text."""

    ids: list[int]
    types: list[int]
    starts: tuple[int, ...]


class Joiner:
    """Joins tokens as the tokenizer itself would, with its markers."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                "phrases need a fast tokenizer, which knows the characters of its tokens, but this model has "
                "none. Choose another encoder."
            )
        self._tokenizer = tokenizer
        self._one, self._two = _layout(tokenizer, "a"), _layout(tokenizer, "a", "a")

    def pairs(self, linked: Sequence[LinkedPair]) -> list[PiecePair]:
        """Linked pairs as tokens; each distinct text is tokenized once."""
        texts = list(dict.fromkeys(text for pair in linked for text in (pair.text_a, pair.text_b)))
        cut = dict(zip(texts, self.cut(texts), strict=True))
        return [_piece_pair(pair, cut) for pair in linked]

    def cut(self, texts: Sequence[str]) -> list[tuple[list[int], list[Range]]]:
        """For each text, the ids of its tokens and the characters of each token."""
        found = self._tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return list(zip(found["input_ids"], found["offset_mapping"], strict=True))

    def join(self, *texts: Sequence[int]) -> Joined:
        """Join the tokens of one or two texts as one input."""
        layout = self._one if len(texts) == 1 else self._two
        ids, types, starts = list(layout.gaps[0]), list(layout.gap_types[0]), []
        for number, text in enumerate(texts):
            starts.append(len(ids))
            ids += [*text, *layout.gaps[number + 1]]
            types += [layout.text_types[number]] * len(text) + layout.gap_types[number + 1]
        return Joined(ids, types, tuple(starts))

    @property
    def markers(self) -> int:
        """The number of markers in an input of two texts."""
        return sum(map(len, self._two.gaps))

    def batch(self, inputs: Sequence[Joined]) -> dict[str, Any]:
        """The inputs as padded tensors."""
        features: dict[str, Any] = {"input_ids": [one.ids for one in inputs]}
        if "token_type_ids" in self._tokenizer.model_input_names:
            features["token_type_ids"] = [one.types for one in inputs]
        return dict(self._tokenizer.pad(features, return_tensors="pt"))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The markers before, between and after texts, and the segment of every marker and text."""

    gaps: list[list[int]]
    gap_types: list[list[int]]
    text_types: list[int]


def _layout(tokenizer: Any, *texts: str) -> _Layout:
    """The markers that the tokenizer puts around texts, found from an example."""
    found = tokenizer(*texts)
    ids, owners = found["input_ids"], found.sequence_ids(0)
    types = found.get("token_type_ids") or [0] * len(ids)
    bounds = [
        (owners.index(number), len(owners) - owners[::-1].index(number)) for number in range(len(texts))
    ]
    edges = [0, *(edge for bound in bounds for edge in bound), len(ids)]
    between = list(zip(edges[::2], edges[1::2], strict=True))
    return _Layout(
        [ids[start:end] for start, end in between],
        [types[start:end] for start, end in between],
        [types[start] for start, _ in bounds],
    )


def _piece_pair(pair: LinkedPair, cut: dict[str, tuple[list[int], list[Range]]]) -> PiecePair:
    a, places_a = _with_phrases(
        pair.text_a, cut[pair.text_a], pair.words_a, [*pair.spans_a, *(link.a for link in pair.links)]
    )
    b, places_b = _with_phrases(
        pair.text_b, cut[pair.text_b], pair.words_b, [*pair.spans_b, *(link.b for link in pair.links)]
    )
    links = {
        (places_a[link.a], places_b[link.b])
        for link in pair.links
        if link.a in places_a and link.b in places_b
    }
    return PiecePair(a, b, np.array(sorted(links), dtype=np.int64).reshape(-1, 2))


def _with_phrases(
    text: str, cut: tuple[list[int], list[Range]], words: Sequence[Range], spans: Sequence[Span]
) -> tuple[PieceText, dict[Span, int]]:
    """A text with its phrases as tokens, and the number of each span.

    Spans that links name may cross others; they are added to those of the tree.
    """
    ids, offsets = cut
    runs = pieces_of_words(words, offsets)
    wanted = [*_tree_spans(text, words, spans), *spans]
    numbers: dict[Range, int] = {}
    places: dict[Span, int] = {}
    for span in dict.fromkeys(wanted):
        run = pieces_of_span(span, runs)
        if run != NONE:
            places[span] = numbers.setdefault(run, len(numbers))
    return PieceText(text, tuple(ids), np.array(list(numbers), dtype=np.int64).reshape(-1, 2)), places


def _tree_spans(text: str, words: Sequence[Range], spans: Sequence[Span]) -> list[Span]:
    """Every word, the whole text, and the spans that do not cross."""
    kept = uncrossed(order(spans), len(words))
    return nodes(Phrases(text, tuple(words), kept, ""))[0]
