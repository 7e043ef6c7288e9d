"""PairExplanation: the explanation of a pair of texts, as objects and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from likewise.data.links import Span
from likewise.explain.matching import Match
from likewise.records import Relation


@dataclass(frozen=True, slots=True)
class ExplainedWord:
    """A word: characters `start`..`end`, the cosine of its best match (0..1), and whether a link of words
    holds it.
    """

    start: int
    end: int
    match: float
    linked: bool


@dataclass(frozen=True, slots=True)
class ExplainedPhrase:
    """A phrase as it is shown: words `span`, characters `start`..`end`, and the mean best match of its words.

    `partner` is the place of the matching phrase in the other text, with the strength and chance of the
    match. All three are None if there is none. `carries` is the contribution to the score, or None if it was
    not measured; the explanation's notes say why.
    """

    span: Span
    start: int
    end: int
    text: str
    match: float
    partner: int | None
    strength: float | None
    chance: float | None
    carries: float | None


@dataclass(frozen=True, slots=True)
class ExplainedText:
    """A text with its words and the phrases that cover it. `least_matched` is a span of words."""

    text: str
    words: tuple[ExplainedWord, ...]
    phrases: tuple[ExplainedPhrase, ...]
    least_matched: Span | None

    @property
    def unmatched(self) -> tuple[ExplainedPhrase, ...]:
        """The phrases without a partner."""
        return tuple(phrase for phrase in self.phrases if phrase.partner is None)

    @property
    def differs_all_over(self) -> bool:
        """Whether the least matched phrase is the whole text, so that no phrase stands out."""
        odd, phrases = self.least_matched, self.phrases
        return bool(odd and phrases and odd[0] <= phrases[0].span[0] and phrases[-1].span[1] <= odd[1])

    @property
    def stands_out(self) -> Span | None:
        """The phrase to point at: the least matched one, or else a phrase without a partner.

        The latter is used if the least matched phrase is nothing or the whole text. None if no part of the
        text stands out.
        """
        if self.least_matched is not None and not self.differs_all_over:
            return self.least_matched
        alone = self.unmatched
        return min(alone, key=lambda one: one.match).span if 0 < len(alone) < len(self.phrases) else None

    def said(self, span: Span) -> str:
        """The text of a span of words, as it was written."""
        return self.text[self.words[span[0]].start : self.words[span[1] - 1].end]

    def to_dict(self) -> dict[str, Any]:
        """The text in JSON form."""
        odd = self.least_matched
        return {
            "text": self.text,
            "words": [asdict(word) for word in self.words],
            "phrases": [{**asdict(phrase), "span": list(phrase.span)} for phrase in self.phrases],
            "least_matched": None if odd is None else {"span": list(odd), "text": self.said(odd)},
        }


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """The explanation of two texts' score on a relation.

    `measure` says what the contributions (`carries`) of phrases are parts of: the score, or the share of a
    label. `phrases_by` and `links_by` name who or what made phrases and links. `source` is the line of the
    file that the pair comes from.
    """

    a: ExplainedText
    b: ExplainedText
    links: tuple[Match, ...]
    relation: Relation
    answered_by: str
    score: float | str
    share: float | None
    phrases_by: str
    links_by: str
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def measure(self) -> str:
        """What the contributions (`carries`) are parts of."""
        return self.relation.name if isinstance(self.score, float) else f"share of {self.score}"

    @property
    def joined(self) -> tuple[tuple[ExplainedPhrase, ExplainedPhrase], ...]:
        """The pairs of matching phrases, in the order of the first text."""
        return tuple((one, self.b.phrases[one.partner]) for one in self.a.phrases if one.partner is not None)

    def _repr_html_(self) -> str:
        """The explanation as a notebook shows it: the pair of the HTML page, light or dark as the reader's
        system is.
        """
        from likewise.explain.page import explanation_fragment

        return explanation_fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """The explanation in JSON form. docs/explain.md describes the keys."""
        return {
            "source": self.source or None,
            "relation": self.relation.name,
            "scale": self.relation.scale,
            "answered_by": self.answered_by,
            "score": self.score,
            "share": self.share,
            "measure": self.measure,
            "phrases_by": self.phrases_by,
            "links_by": self.links_by,
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
            "links": [{**asdict(link), "a": list(link.a), "b": list(link.b)} for link in self.links],
            "notes": list(self.notes),
        }
