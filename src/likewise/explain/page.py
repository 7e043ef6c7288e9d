"""Explanations as one HTML page: a heat map that loads nothing from outside and runs no script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from likewise.explain.explanation import ExplainedPhrase, ExplainedText, PairExplanation
from likewise.explain.style import STYLE, style_inside
from likewise.phrases.linking import GIVEN

SIDES = ("first text", "second text")
# Two classes: the rules of a notebook for its tables yield to ours.
_SCOPE = "likewise explained"
_ROW = tuple[int | None, ExplainedPhrase | None, ExplainedPhrase | None]


def explanation_page(
    explanations: Sequence[PairExplanation], *, title: str = "Explanation of scores", note: str = ""
) -> str:
    """The page, light or dark as the reader's system is. Pointing at a phrase highlights the phrase it
    matches.

    A `note` is shown above the pairs.
    """
    hover = _hover(explanations)
    above = f'<p class="part">{escape(note)}</p>\n' if note else ""
    body = above + "\n".join(map(_pair, explanations))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{hover}\n</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n{_LEGEND}\n</main>\n</body>\n</html>\n"
    )


def explanation_fragment(found: PairExplanation) -> str:
    """One explanation as a part of another page, such as a notebook, whose look does not change."""
    style = style_inside(f".{_SCOPE.replace(' ', '.')}", _hover([found]))
    return f'<div class="{_SCOPE}">\n<style>{style}</style>\n{_pair(found)}\n{_LEGEND}\n</div>'


def _hover(explanations: Sequence[PairExplanation]) -> str:
    """The rules that highlight phrases with the same number."""
    most = max((len(one.joined) for one in explanations), default=0)
    return "\n".join(
        f".pair:has(.k{n}:is(:hover, :focus)) .k{n} {{ outline-color: var(--ink); }}"
        for n in range(1, most + 1)
    )


def numbers(found: PairExplanation) -> dict[int, int]:
    """Numbers of the phrases that match, counted along the first text: place in the first text → number."""
    joined = [place for place, one in enumerate(found.a.phrases) if one.partner is not None]
    return {place: number for number, place in enumerate(joined, start=1)}


def rows(found: PairExplanation) -> Iterator[_ROW]:
    """Pairs of matching phrases with their number, then the phrases of either text without a match."""
    for number, (one, other) in enumerate(found.joined, start=1):
        yield number, one, other
    for phrase in found.a.unmatched:
        yield None, phrase, None
    for phrase in found.b.unmatched:
        yield None, None, phrase


def signed(number: float) -> str:
    """A number with its sign. A number that rounds to zero has none."""
    shown = f"{number:+.3f}"
    return "0.000" if float(shown) == 0 else shown


def score_line(found: PairExplanation) -> str:
    """The relation, its scale and the source of the answer."""
    share = "" if found.share is None else f" (share {found.share:.2f})"
    return f"{found.relation.name}{share}, on {found.relation.scale}, from the {found.answered_by}"


def by_line(found: PairExplanation) -> str:
    """Who or what made phrases and links, and what the contributions are parts of."""
    phrases, links = ("as given" if by == GIVEN else f"by {by}" for by in (found.phrases_by, found.links_by))
    made = f"phrases and links {links}" if phrases == links else f"phrases {phrases}, links {links}"
    return f"{made}; carries: change in {found.measure}"


def least_line(text: ExplainedText) -> str | None:
    """The sentence about the least matched phrase, or None if that phrase is to be quoted."""
    if text.stands_out is not None:
        return None
    return "no phrase stands out" if text.least_matched or text.unmatched else "every word is matched"


def _pair(found: PairExplanation) -> str:
    by_a = numbers(found)
    by_b = {at: by_a[place] for place, one in enumerate(found.a.phrases) if (at := one.partner) is not None}
    largest = max((abs(p.carries) for t in (found.a, found.b) for p in t.phrases if p.carries), default=1.0)
    shown = f"{found.score:.3f}" if isinstance(found.score, float) else found.score
    source = f'<p class="source">{escape(found.source)}</p>' if found.source else ""
    texts = "\n".join(
        f'<div class="side"><h2>{side}</h2><p class="text" dir="auto">{_text(text, by)}</p></div>'
        for side, text, by in zip(SIDES, (found.a, found.b), (by_a, by_b), strict=True)
    )
    table = "\n".join(_row(row, largest) for row in rows(found))
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    by = by_line(found)
    return (
        f'<article class="pair">\n<header><strong>{escape(shown)}</strong> '
        f"<span>{escape(score_line(found))}</span>{source}</header>\n{texts}\n"
        f'<table>\n<thead><tr><th class="n"></th><th>{SIDES[0]}</th><th>{SIDES[1]}</th><th>strength</th>'
        "<th>chance</th><th>first carries</th><th>second carries</th></tr></thead>\n"
        f'<tbody>\n{table}\n</tbody>\n</table>\n<ul class="notes">{_least(found)}{notes}</ul>\n'
        f'<p class="by">{escape(by[:1].upper() + by[1:])}.</p>\n</article>'
    )


def _text(text: ExplainedText, by: Mapping[int, int]) -> str:
    """A text with its phrases as coloured blocks. The text between them is unchanged."""
    odd = None
    if text.stands_out is not None:
        first, last = text.stands_out
        odd = text.words[first].start, text.words[last - 1].end
    parts, at = [], 0
    for place, phrase in enumerate(text.phrases):
        parts.append(_underlined(text.text, at, phrase.start, odd))
        inner = _underlined(text.text, phrase.start, phrase.end, odd)
        parts.append(_block(phrase, inner, by.get(place)))
        at = phrase.end
    return "".join([*parts, _underlined(text.text, at, len(text.text), odd)])


def _block(phrase: ExplainedPhrase, inner: str, number: int | None) -> str:
    carried = "" if phrase.carries is None else f", carries {signed(phrase.carries)}"
    if number is None:
        return f'<span class="block alone" tabindex="0" title="no match{carried}">{inner}</span>'
    chance = "" if phrase.chance is None else f", chance {phrase.chance:.2f}"
    said = f"strength {phrase.strength:.2f}{chance}{carried}"
    return (
        f'<span class="block k{number}" style="--s:{phrase.strength:.2f}" tabindex="0" title="{said}">'
        f"{inner}<sup>{number}</sup></span>"
    )


def _underlined(text: str, start: int, end: int, odd: tuple[int, int] | None) -> str:
    """Characters of a text, escaped. Those of the least matched phrase are underlined."""
    low, high = odd or (0, 0)
    low, high = min(max(low, start), end), min(max(high, start), end)
    if low >= high:
        return escape(text[start:end])
    return f"{escape(text[start:low])}<u>{escape(text[low:high])}</u>{escape(text[high:end])}"


def _row(row: _ROW, largest: float) -> str:
    number, one, other = row
    either = one or other
    strength = chance = '<td class="none"></td>'
    if either is not None and number is not None:
        share = f"{either.strength:.2f}"
        strength = f'<td data-is="strength"><i class="bar" style="--s:{share}"></i>{share}</td>'
        if either.chance is not None:
            chance = f'<td data-is="chance">{either.chance:.2f}</td>'
    return (
        f'<tr class="k{number or 0}"><th class="n">{number or "–"}</th>{_said(one)}{_said(other)}'
        f"{strength}{chance}{_carried(one, 'first carries', largest)}"
        f"{_carried(other, 'second carries', largest)}</tr>"
    )


def _said(phrase: ExplainedPhrase | None) -> str:
    if phrase is None:
        return '<td class="said none">no match</td>'
    return f'<td class="said"><bdi>{escape(phrase.text)}</bdi></td>'


def _carried(phrase: ExplainedPhrase | None, name: str, largest: float) -> str:
    if phrase is None:
        return '<td class="none"></td>'
    if phrase.carries is None:
        return f'<td data-is="{name}" class="quiet">not measured</td>'
    side = "minus" if phrase.carries < 0 else "plus"
    width = abs(phrase.carries) / largest
    return (
        f'<td data-is="{name}"><i class="carry {side}" style="--w:{width:.3f}"></i>'
        f"{signed(phrase.carries)}</td>"
    )


def _least(found: PairExplanation) -> str:
    lines = []
    for side, text in zip(SIDES, (found.a, found.b), strict=True):
        if not text.phrases:
            continue
        line = least_line(text)
        quoted = "" if text.stands_out is None else escape(text.said(text.stands_out))
        said = f"<u><bdi>{quoted}</bdi></u>" if line is None else line
        lines.append(f"<li>least matched in the {side}: {said}</li>")
    return "".join(lines)


_LEGEND = """<footer>
<p><span class="scale"><i></i></span> strength of a match, 0 to 1 &nbsp;
<span class="block alone">phrase</span> no match &nbsp; <u>phrase</u> least matched</p>
<p>Phrases with the same number match. Point at a phrase, or move to it with the tab key, to see its match.
Chance: how likely people are to link the two phrases. Carries: how much lower the score is without the
phrase. The number is <b class="minus">negative</b> if the score is higher without the phrase.</p>
</footer>"""
