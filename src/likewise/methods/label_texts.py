"""Checks whether an encoder can read the labels of a task and tell them apart by their words.

refused    a label text without any word that has a vector; two labels that read the same
noted      a label with some unknown words; a label whose parts of words are all unknown
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from likewise.encoders.vocabulary import Reading, find_vocabulary
from likewise.errors import Problem

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.records import Relation

# A label's ways to say it, each as the encoder reads it.
Said = dict[str, Reading]


@dataclass(frozen=True, slots=True)
class LabelFaults:
    """What keeps labels from being used, and what a user should know of the others."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_label_faults(
    encoder: SentenceTransformer, task: Relation, *, place: str, remedy: str = "use other words"
) -> LabelFaults:
    """What is wrong with a task's labels for the encoder that reads them; `place` is where they are named.

    `remedy` is said of labels without any known word.
    """
    vocabulary = find_vocabulary(encoder)
    read = _by_words if vocabulary is None else vocabulary.read
    said = {
        label: {way: read(way) for way in ways}
        for label, ways in zip(task.labels, task.label_texts, strict=True)
    }
    faults = LabelFaults()
    for label, ways in said.items():
        for way, reading in ways.items():
            shown = f"label {label!r}" + (f" (label text {way!r})" if way != label else "")
            words = ", ".join(dict.fromkeys(reading.unknown))
            if not reading.says_nothing:
                if words:
                    faults.notes.append(f"{place}: {shown} has words unknown to the encoder ({words})")
            elif vocabulary is not None and vocabulary.of_words:
                found = f"{shown} has no word that has a vector in the encoder ({words or 'no word at all'})"
                faults.problems.append(Problem(place, found, remedy))
            else:
                faults.notes.append(f"{place}: {shown} has no part known to the encoder ({words})")
    faults.problems.extend([] if faults.problems else _alike(said, place))
    return faults


def _by_words(text: str) -> Reading:
    """A text as a function reads it that has no vocabulary to ask."""
    return Reading(tuple(text.split()), ())


def _alike(said: Mapping[str, Said], place: str) -> list[Problem]:
    """Labels that cannot be told apart: they share a way to be said, or hold nothing but the same pieces."""
    first: dict[object, str] = {}
    found: dict[tuple[str, str], list[str]] = {}
    for label, ways in said.items():
        for way, reading in ways.items():
            other = label if reading.says_nothing else first.setdefault(reading.pieces, label)
            if other != label:
                found.setdefault((other, label), []).append(way)
        other = first.setdefault(frozenset(reading.pieces for reading in ways.values()), label)
        if other != label:
            found.setdefault((other, label), list(ways))
    remedy = "use different words for them, or make them one label"
    return [
        Problem(place, f"labels {a!r} and {b!r} are the same for the encoder ({', '.join(ways)})", remedy)
        for (a, b), ways in found.items()
    ]
