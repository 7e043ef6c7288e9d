"""Tatoeba's exports: one pair of languages in a file, or all sentences and the links between them.

    Sentence pairs in English-German.tsv    id, sentence, id, translation
    sentences.csv                           id, language (ISO 639-3), text; sentences_detailed.csv has more
    links.csv                               id, id

All files are tab separated without a header, whatever their ending says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.data.lines import Lines
from likewise.data.parallel.languages import Language, look_up
from likewise.data.parallel.plain import RawPairs, open_lines, split_fields
from likewise.errors import DataError, FormatError, Problem

PAIR_FIELDS = ("id", "sentence", "id", "translation")
SENTENCES, LINKS = "sentences.csv", "links.csv"

_LONGEST_ID = 18
_LONGEST_CODE = 12
_SHOWN = 10


def is_pair_export(path: Path) -> bool:
    """Whether a file's first line has the form of an export of one language pair."""
    with open_lines(path) as lines:
        fields = split_fields(next(lines, ""), len(PAIR_FIELDS))
    return len(fields) == len(PAIR_FIELDS) and _to_id(fields[0]) is not None and _to_id(fields[2]) is not None


def linked_pairs(sentences: Sequence[Path], links: Path, languages: tuple[Language, Language]) -> RawPairs:
    """Each linked pair of two languages once, although most links are listed in both directions.

    The sentences of both languages are held in memory until the links are read.
    """
    texts_a, texts_b = _read_sentences(sentences, languages)
    seen: set[tuple[int, int]] = set()
    with open_lines(links) as lines:
        for line in filter(str.strip, lines):
            first, second = _read_link(line, lines)
            if first not in texts_a or second not in texts_b or (texts_a is texts_b and first > second):
                first, second = second, first
            if first in texts_a and second in texts_b and (first, second) not in seen:
                seen.add((first, second))
                yield texts_a[first], texts_b[second], lines.number
    if not seen:
        wanted = " and ".join(repr(language.code) for language in languages)
        found = f"no link joins sentences in {wanted}"
        raise DataError([Problem(links.name, found, "take sentences and links from the same export")])


def _read_sentences(
    paths: Sequence[Path], languages: tuple[Language, Language]
) -> tuple[dict[int, str], dict[int, str]]:
    """The sentences of two languages by id. For one language, the same mapping is returned twice."""
    texts: dict[str, dict[int, str]] = {language.base: {} for language in languages}
    places: dict[str, dict[int, str] | None] = {}
    for path in paths:
        with open_lines(path) as lines:
            for line in filter(str.strip, lines):
                fields = split_fields(line, 3)
                number = _to_id(fields[0])
                if len(fields) < 3 or number is None:
                    raise FormatError([_no_row(line, lines, "an id, a language and a text", SENTENCES)])
                code = fields[1][:_LONGEST_CODE]
                if code not in places:
                    language = look_up(code)  # none for many: the export holds every language
                    places[code] = texts.get(language.base) if language else None
                place = places[code]
                if place is not None:
                    place[number] = fields[2]
    shown = ", ".join(path.name for path in paths)
    wanted = dict.fromkeys(languages)
    absent = [_no_sentence(shown, language, places) for language in wanted if not texts[language.base]]
    if absent:
        raise DataError(absent)
    return texts[languages[0].base], texts[languages[1].base]


def _no_sentence(shown: str, language: Language, seen: Mapping[str, object]) -> Problem:
    here = ", ".join(sorted(seen)[:_SHOWN]) + (" …" if len(seen) > _SHOWN else "")
    found = (
        f"there is no sentence in {language.code!r} ({language.name}). The languages in the "
        f"file are {here or 'unknown'}"
    )
    return Problem(shown, found, "choose languages that are in the file, or export them too")


def _read_link(line: str, lines: Lines) -> tuple[int, int]:
    fields = split_fields(line, 2)
    first, second = _to_id(fields[0]), _to_id(fields[-1])
    if len(fields) != 2 or first is None or second is None:
        raise FormatError([_no_row(line, lines, "two sentence ids", LINKS)])
    return first, second


def _no_row(line: str, lines: Lines, expected: str, file: str) -> Problem:
    found = f"found {line.strip()[:40]!r}, but {expected} with tabs between them are expected"
    return Problem(lines.source, found, f"use Tatoeba's {file} as it was exported")


def _to_id(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_ID else None
