"""Plain text files without a header: their lines, and the fields that tabs separate."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from likewise.data.compression import COMPRESSION_ENDINGS, COMPRESSIONS, open_bytes, split_endings
from likewise.data.lines import Lines
from likewise.data.parallel.languages import find_language, iso3_code
from likewise.data.rows import refuse
from likewise.errors import FormatError, Problem

# Texts and their translations as they stand in the file, and the line they stand on.
RawPairs = Generator[tuple[object, object, int], None, None]

_ARCHIVES = frozenset({".tbz2", ".tgz", ".tar", ".zip", ".7z"})


@contextmanager
def open_lines(path: Path, name: str | None = None) -> Iterator[Lines]:
    """The lines of a file, plain or compressed. A line that is not UTF-8 is an error."""
    if split_endings(path)[0] in _ARCHIVES:
        remedy = f"unpack it first; a single file may be compressed as {COMPRESSION_ENDINGS}"
        raise FormatError([Problem(str(path), "this is an archive, and archives are not read", remedy)])
    with open_bytes(path) as stream:
        yield Lines(stream, name or path.name, refuse)


def split_fields(line: str, most: int = -1) -> list[str]:
    """The fields of a line. With `most`, everything after that many fields is one more field."""
    return line.rstrip("\r\n").split("\t", most)


def field_pairs(path: Path, columns: tuple[int, int], *, name: str, titles: Sequence[str] = ()) -> RawPairs:
    """Two columns of a tab-separated file without a header, counted from 1.

    Every line must have as many fields as there are `titles`, or else as many as the first line.
    """
    first, second = columns[0] - 1, columns[1] - 1
    width = len(titles)
    with open_lines(path, name) as lines:
        for line in lines:
            # A line made of tabs alone must not become millions of fields.
            fields = split_fields(line, width or -1)
            if fields == [""]:
                continue
            width = width or max(len(fields), *columns)
            if len(fields) != width:
                raise FormatError([_wrong_width(lines.source, len(fields), width, titles)])
            yield fields[first], fields[second], lines.number


def _wrong_width(source: str, found: int, expected: int, titles: Sequence[str]) -> Problem:
    counted = (
        "1 field"
        if found == 1
        else f"{found} fields"
        if found <= expected
        else f"more than {expected} fields"
    )
    wanted = f"{expected} ({', '.join(titles)})" if titles else str(expected)
    remedy = "put one tab between fields, and replace each tab or line break inside a text with a blank"
    return Problem(source, f"found {counted}, but {wanted} are expected", remedy)


def find_side(prefix: Path, code: str) -> Path | None:
    """The file of a prefix and a language, under any spelling of the code: x + de → x.de, x.deu.gz."""
    language = find_language(code, source=str(prefix))
    for spelling in dict.fromkeys((code, language.code, language.base, iso3_code(language))):
        found = find_stored(prefix.with_name(f"{prefix.name}.{spelling}"))
        if found is not None:
            return found
    return None


def find_stored(path: Path) -> Path | None:
    """The file with this name, plain or compressed."""
    candidates = (path.with_name(path.name + ending) for ending in ("", *COMPRESSIONS))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def moses_pairs(first: Path, second: Path) -> RawPairs:
    """Pairs of lines from two files. Unequal numbers of lines are an error."""
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
    remedy = (
        "take both complete files from the same release, because a lost or split line shifts "
        "all lines after it"
    )
    return Problem(
        shorter.name, f"there are too few lines: {found}, but each line needs a translation", remedy
    )
