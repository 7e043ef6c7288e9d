"""Explainer: turns pairs of texts into explanations or phrase links, in windows of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from likewise import __version__
from likewise.answering import Answering, CutTexts, find_relation
from likewise.data.links import LinkedPair, Span
from likewise.errors import UsageError
from likewise.explain.explanation import ExplainedPhrase, ExplainedText, ExplainedWord, PairExplanation
from likewise.explain.matching import MatchedPair, match_linked, match_pairs
from likewise.explain.occlusion import Contributions, measure_carried
from likewise.phrases.aligner import Aligner
from likewise.phrases.blocks import Block
from likewise.phrases.linking import WINDOW, Asked, align_pairs, cut, makers, phrased
from likewise.phrases.parsing import phraser
from likewise.phrases.spans import Phraser, Phrases


class Explainer:
    """Explain pairs with a model, on one of its relations. The default is the model's first relation."""

    def __init__(
        self,
        answering: Answering,
        *,
        relation: str | None = None,
        phrases: str | Phraser = "auto",
        tell: Callable[[str], None] | None = None,
    ) -> None:
        if 2 not in answering.texts:
            raise UsageError(
                "this model reads single texts, but an explanation compares two. Use a model of pairs."
            )
        self._answering = answering
        self._aligner = Aligner(answering.embedding().states("choose another encoder"))
        self.relation = find_relation(answering, relation or answering.relations[0].name)
        self._phrases = phrases
        self._tell = tell or (lambda line: None)
        # The texts of which words were not compared; no option reads them whole.
        self._cut = CutTexts(self._aligner.longest)

    @property
    def phraser(self) -> Phraser:
        """The phrase finder. It is loaded when it is first needed, since given links bring their own
        phrases.
        """
        if isinstance(self._phrases, str):
            self._phrases = phraser(self._phrases, self._tell)
        return self._phrases

    def explain(self, pairs: Iterable[Asked]) -> Iterator[PairExplanation]:
        """Explain pairs with our own links."""
        with self._cut.telling(self._tell):
            for window in phrased(pairs, self.phraser):
                found = match_pairs(self._aligner, [(a, b) for _, a, b in window])
                by = [(self.phraser.name, self._by, asked.source) for asked, _, _ in window]
                yield from self._answers(found, by)

    def explain_linked(self, pairs: Iterable[LinkedPair]) -> Iterator[PairExplanation]:
        """Explain pairs with the links that they bring."""
        with self._cut.telling(self._tell):
            for window in cut(pairs, WINDOW):
                found = match_linked(self._aligner, window)
                yield from self._answers(found, [(*makers(pair), pair.source) for pair in window])

    def align(self, pairs: Iterable[Asked]) -> Iterator[LinkedPair]:
        """Align pairs, so that their links can be written as a corpus. Nothing is scored."""
        with self._cut.telling(self._tell):
            for pair in align_pairs(pairs, self.phraser, self._aligner, by=self._by):
                texts = (pair.text_a, pair.text_b)
                self._cut.count(texts, {hash(text) for text in texts if not self._aligner.reads_whole(text)})
                yield pair

    @property
    def _by(self) -> str:
        return f"likewise {__version__}, {self._answering.about.get('name', 'a model')}"

    def _answers(
        self, found: Sequence[MatchedPair], by: Sequence[tuple[str, str, str]]
    ) -> Iterator[PairExplanation]:
        pairs = [(one.a, one.b) for one in found]
        blocks = [(one.blocks_a, one.blocks_b) for one in found]
        for one in found:
            unread = {one.a.text: one.unread_a, one.b.text: one.unread_b}
            self._cut.count(unread, {hash(text) for text, words in unread.items() if words})
        carried = measure_carried(self._answering, self.relation.name, pairs, blocks)
        for one, values, (phrases_by, links_by, source) in zip(found, carried, by, strict=True):
            a, b = _sides(one, values)
            yield PairExplanation(
                a=a,
                b=b,
                links=one.links,
                relation=self.relation,
                answered_by=values.source,
                score=values.answer,
                share=values.share,
                phrases_by=phrases_by,
                links_by=links_by,
                notes=(
                    *_notes(a, "first", one.unread_a, self._aligner.longest),
                    *_notes(b, "second", one.unread_b, self._aligner.longest),
                ),
                source=source,
            )


def _sides(found: MatchedPair, carried: Contributions) -> tuple[ExplainedText, ExplainedText]:
    single = [link for link in found.links if _is_word(link.a) and _is_word(link.b)]
    chances = [link.chance for link in found.links]
    return (
        _side(
            found.a, found.matched_a, {link.a[0] for link in single}, found.odd_a,
            _phrases(found.a, found.matched_a, found.blocks_a, found.strengths_a, carried.a, chances),
        ),
        _side(
            found.b, found.matched_b, {link.b[0] for link in single}, found.odd_b,
            _phrases(found.b, found.matched_b, found.blocks_b, found.strengths_b, carried.b, chances),
        ),
    )  # fmt: skip


def _side(
    text: Phrases,
    matched: Sequence[float],
    linked: set[int],
    odd: Span | None,
    phrases: tuple[ExplainedPhrase, ...],
) -> ExplainedText:
    words = tuple(
        ExplainedWord(start, end, matched[place], place in linked)
        for place, (start, end) in enumerate(text.words)
    )
    return ExplainedText(text.text, words, phrases, odd)


def _phrases(
    text: Phrases,
    matched: Sequence[float],
    blocks: Sequence[Block],
    strengths: Sequence[float | None],
    carried: Sequence[float | None],
    chances: Sequence[float | None],
) -> tuple[ExplainedPhrase, ...]:
    return tuple(
        ExplainedPhrase(
            span=block.span,
            start=text.words[block.span[0]][0],
            end=text.words[block.span[1] - 1][1],
            text=text.said(block.span),
            match=round(sum(matched[slice(*block.span)]) / (block.span[1] - block.span[0]), 4),
            partner=block.partner,
            strength=strength,
            chance=None if block.link is None else chances[block.link],
            carries=carries,
        )
        for block, strength, carries in zip(blocks, strengths, carried, strict=True)
    )


def _notes(text: ExplainedText, side: str, unread: int, longest: int) -> Iterator[str]:
    if unread:
        last, lie, were = ("word", "is", "was") if unread == 1 else (f"{unread:,} words", "are", "were")
        beyond = f"beyond the encoder's limit of {longest:,} tokens"
        yield f"the last {last} of the {side} text {lie} {beyond} and {were} not compared"
    if not text.phrases:
        yield f"the {side} text has no phrases, because it holds only punctuation marks"
    elif len(text.phrases) == 1:
        yield (
            f"the {side} text is a single phrase. Without it there is nothing left to score, so "
            "what it carries was not measured."
        )


def _is_word(span: Span) -> bool:
    return span[1] - span[0] == 1
