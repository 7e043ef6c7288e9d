"""An explanation on the terminal. Numbers connect the phrases that match, so that it reads without colour
too.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from likewise.cli.console import printable

if TYPE_CHECKING:
    from likewise.explain.explanation import ExplainedPhrase, ExplainedText, PairExplanation

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_CELLS = 8
_ROOM_FOR_BARS = 80
# Strength → style, the weakest first; a match is green, what has none yellow.
_STRENGTHS = ((0.4, "green"), (0.7, "black on green"), (1.01, "black on bright_green"))
_ALONE = "yellow"


def show(console: Console, found: PairExplanation) -> None:
    """Print an explanation. Wide tables are wrapped, never cut off."""
    console.print(_view(found, bars=console.width >= _ROOM_FOR_BARS), soft_wrap=False)


def _view(found: PairExplanation, *, bars: bool) -> RenderableType:
    from likewise.explain.page import SIDES, by_line, least_line, numbers, score_line

    by_a = numbers(found)
    by_b = {at: by_a[place] for place, one in enumerate(found.a.phrases) if (at := one.partner) is not None}
    shown = f"{found.score:.3f}" if isinstance(found.score, float) else found.score
    head = Text.assemble((printable(shown), "bold"), "  ", (printable(score_line(found)), "dim"))
    if found.source:
        head.append(f"  {printable(found.source)}", "dim")
    parts: list[RenderableType] = [
        head,
        "",
        _text(found.a, by_a),
        _text(found.b, by_b),
        "",
        _table(found, bars=bars),
    ]
    for side, text in zip(SIDES, (found.a, found.b), strict=True):
        if text.phrases:
            quoted = "" if text.stands_out is None else f'"{_clean(text.said(text.stands_out))}"'
            parts.append(Text(f"least matched in the {side}: {least_line(text) or quoted}"))
    parts += [Text(printable(note), "yellow") for note in found.notes]
    return Group(*parts, Text(printable(by_line(found)), "dim"))


def _text(text: ExplainedText, by: dict[int, int]) -> Text:
    """A text with a raised number after each phrase that matches, and brackets around each that does not."""
    shown, at = Text(), 0
    for place, phrase in enumerate(text.phrases):
        shown.append(_clean(text.text[at : phrase.start]))
        number = by.get(place)
        if number is None:
            shown.append(f"[{_clean(phrase.text)}]", _ALONE)
        else:
            shown.append(_clean(phrase.text), _style(phrase.strength))
            shown.append(str(number).translate(_RAISED), "bold")
        at = phrase.end
    return shown.append(_clean(text.text[at:]))


def _table(found: PairExplanation, *, bars: bool) -> Table:
    from likewise.explain.page import SIDES, rows

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for side in SIDES:
        table.add_column(side, overflow="fold")
    for name in ("strength", "chance", "carries,\nfirst", "carries,\nsecond"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, one, other in rows(found):
        either = one or other
        strength, chance = Text(), ""
        if number is not None and either is not None and either.strength is not None:
            strength = _bar(either.strength) if bars else Text(f"{either.strength:.2f}")
            chance = "" if either.chance is None else f"{either.chance:.2f}"
        label = Text(str(number), "bold") if number is not None else Text("–", _ALONE)
        table.add_row(label, _said(one), _said(other), strength, chance, _carried(one), _carried(other))
    return table


def _bar(strength: float) -> Text:
    filled = round(strength * _CELLS)
    return Text.assemble(("━" * filled, "green"), ("╌" * (_CELLS - filled), "dim"), f" {strength:.2f}")


def _said(phrase: ExplainedPhrase | None) -> Text:
    return Text("no match", _ALONE) if phrase is None else Text(_clean(phrase.text))


def _carried(phrase: ExplainedPhrase | None) -> Text:
    from likewise.explain.page import signed

    if phrase is None:
        return Text()
    if phrase.carries is None:
        return Text("not measured", "dim")
    return Text(signed(phrase.carries), "yellow" if phrase.carries < 0 else "")


def _style(strength: float | None) -> str:
    return next(style for bar, style in _STRENGTHS if (strength or 0.0) < bar)


def _clean(text: str) -> str:
    """The text with control characters and line breaks as blanks, so that it cannot break the table."""
    blanked = (" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text)
    return printable("".join(blanked))
