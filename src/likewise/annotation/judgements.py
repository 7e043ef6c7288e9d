"""Judgement: what one annotator answered in one task; Tally: what an export held beside judgements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from likewise.data.rows import Row

# What is counted of an export, and how it is said. One form for one thing and one for several.
COUNTED = {
    "cancelled": ("skipped or cancelled answer was left out", "skipped or cancelled answers were left out"),
    "draft": ("draft was left out", "drafts were left out"),
    "unrated": ("task has no answer yet", "tasks have no answer yet"),
    "several": (
        "answer chose several labels at once and was left out",
        "answers chose several labels at once and were left out",
    ),
    "boolean": (
        "answer is true or false, which is no rating on a scale, and was left out",
        "answers are true or false, which is no rating on a scale, and were left out",
    ),
    "repeated": (
        "rating was given again by the same annotator, and the later one counts",
        "ratings were given again by the same annotator, and the later ones count",
    ),
    "merged": ("task repeats the texts of another", "tasks repeat the texts of others"),
    "unused": (
        "pair has no rating of these relations and was left out",
        "pairs have no rating of these relations and were left out",
    ),
}


class Several:
    """The value of an answer with several labels at once."""


SEVERAL = Several()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one annotator answered in one task, by question. `when` is the time of the last change, if known.

    A value is a number, a label, None, or SEVERAL.
    """

    annotator: str
    values: Mapping[str, Any]
    when: str = ""


@dataclass(slots=True)
class Tally:
    """How many things of each kind were left out or joined (`COUNTED`)."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, number: int = 1) -> None:
        """Count things of one kind."""
        self.counts[kind] += number

    def lines(self) -> list[str]:
        """A sentence for each kind that occurred."""
        found = ((self.counts[kind], words) for kind, words in COUNTED.items())
        return [f"{number:,} {words[number != 1]}" for number, words in found if number]


class ExportForm(Protocol):
    """The form of an export: what a row of it holds."""

    name: str

    def data(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part of a row that may hold texts."""

    def answers(self, row: Row, tally: Tally) -> Iterator[Judgement]:
        """The answers in a row. What is not an answer is counted."""


def text_of(cell: object) -> str:
    """A name or a time in a cell as a text; "" if there is none."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None or isinstance(cell, list | dict) else str(cell).strip()


def is_true(cell: object) -> bool:
    """Whether a cell says yes."""
    return cell is True or cell == 1 or (isinstance(cell, str) and cell.strip().casefold() in ("true", "1"))


def unpacked(cell: object) -> object:
    """A cell with JSON in it as the object; any other cell as it is."""
    if not isinstance(cell, str) or cell.strip()[:1] not in ("[", "{"):
        return cell
    try:
        found: object = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    return found
