"""Moses pairs: two plain text files side by side, x.en and x.de, line by line."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from likewise.data.compression import COMPRESSIONS
from likewise.data.lines import Lines
from likewise.data.parallel.languages import find_language, iso3_code
from likewise.data.parallel.plain import RawPairs, open_lines
from likewise.errors import FormatError, Problem


def find_side(prefix: Path, code: str) -> Path | None:
    """The file that a prefix and a language name, under any spelling of the code: x + de → x.de, x.deu.gz."""
    language = find_language(code, source=str(prefix))
    for spelling in dict.fromkeys((code, language.code, language.base, iso3_code(language))):
        found = find_stored(prefix.with_name(f"{prefix.name}.{spelling}"))
        if found is not None:
            return found
    return None


def find_stored(path: Path) -> Path | None:
    """The file of that name, plain or compressed."""
    candidates = (path.with_name(path.name + ending) for ending in ("", *COMPRESSIONS))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def moses_pairs(first: Path, second: Path) -> RawPairs:
    """Line by line from two files; unequal numbers of lines are an error."""
    with open_lines(first) as lines_a, open_lines(second) as lines_b:
        for a, b in zip_longest(lines_a, lines_b):
            if a is None or b is None:
                raise FormatError([_unequal(lines_a, lines_b, first, second)])
            yield a.rstrip("\r\n"), b.rstrip("\r\n"), lines_a.number


def _unequal(lines_a: Lines, lines_b: Lines, first: Path, second: Path) -> Problem:
    shorter = first if lines_a.number < lines_b.number else second
    for lines in (lines_a, lines_b):
        for _ in lines:
            pass
    found = f"{first.name} has {lines_a.number:,} lines and {second.name} {lines_b.number:,}"
    remedy = "take both files whole from one release: a lost or a split line shifts all that follow"
    return Problem(shorter.name, f"too few lines: {found}, expected a translation for each line", remedy)
