"""Phrase links between two texts in a plain format: one JSON object per line.

    {"text_a": "A man plays .", "text_b": "Someone is playing .",
     "links": [{"a": [0, 2], "b": [0, 1], "score": 0.8, "chance": 0.9}, {"a": [2, 3], "b": [1, 3]}],
     "spans_a": [[0, 2], [2, 3], [0, 4]], "by": "Ann"}

Spans are half-open and count words from 0. `words_a` and `words_b` give the places of the words as half-open
character offsets; without them, blanks separate words. Besides the texts only `links` is required; it is an
empty list if someone looked for links and found none. `id`, `by`, `score`, `chance`, `spans_a` and `spans_b`
are optional, and other keys are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO

from likewise.data.compression import compress, open_bytes, split_endings
from likewise.data.lines import Lines
from likewise.data.rows import Unquoted, refuse
from likewise.data.values import to_number, to_text
from likewise.disk import open_aside
from likewise.errors import DataError, Problem

MAX_LINE = 2**20
MAX_WORDS = 10_000

# Half-open: words (2, 5) are words 2, 3 and 4.
Span = tuple[int, int]

_REQUIRED = ("text_a", "text_b", "links")
_WORD = re.compile(r"\S+")
_SHAPE = "[start, end] with two whole numbers"
_SHOWN = 60
_UNCROSS = "let one span hold the other completely, or let them lie apart"


@dataclass(frozen=True, slots=True)
class Link:
    """A link: the words `a` of the first text mean the same as the words `b` of the second, or nearly so, by
    `score`.

    `chance`, 0..1, is how sure the linker is. Of two links that cannot both be shown, the surer one is shown.
    """

    a: Span
    b: Span
    score: float | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class LinkedPair:
    """Two texts, the places of their words (characters), the links between them and the spans of each text
    (words).

    No two spans of one text cross: they lie apart or one holds the other. `by` names who or what linked them.
    A pair that is not aligned yet has no words, links or spans. A pair that was aligned without finding any
    link has its words.
    """

    text_a: str
    text_b: str
    words_a: tuple[Span, ...]
    words_b: tuple[Span, ...]
    links: tuple[Link, ...]
    spans_a: tuple[Span, ...] = ()
    spans_b: tuple[Span, ...] = ()
    source: str = ""
    id: str | None = None
    by: str | None = None

    @property
    def aligned(self) -> bool:
        """Whether someone has looked for links. Its words are known only then."""
        return bool(self.words_a or self.words_b)


def split_at_blanks(text: str) -> tuple[Span, ...]:
    """The places of the words of a text that blanks separate, as half-open character offsets."""
    return tuple(match.span() for match in _WORD.finditer(text))


def read_links(path: str | Path) -> Iterator[LinkedPair]:
    """The linked pairs of a file, plain or compressed as its ending says. The first wrong line is an error.

    Exact repeats of a link or a span count once.
    """
    with open_bytes(Path(path)) as stream:
        lines = Lines(stream, str(path), refuse)
        for line in lines:
            _check_length(line.rstrip("\r\n").encode("utf-8"), lines.source)
            if line.strip():
                yield _to_pair(_parse(line, lines.source), lines.source)


def refuse_crossing(pair: LinkedPair) -> None:
    """Refuse a pair whose links have spans that cross one another or the listed spans: no tree holds both."""
    wrong = [
        *_crossings("a", pair.text_a, pair.words_a, pair.spans_a, [link.a for link in pair.links]),
        *_crossings("b", pair.text_b, pair.words_b, pair.spans_b, [link.b for link in pair.links]),
    ]
    if wrong:
        raise DataError([Problem(pair.source or "pair", what, _UNCROSS) for what in wrong])


def write_links(path: str | Path, pairs: Iterable[LinkedPair], *, replace: bool = True) -> int:
    """Write linked pairs to a file that is either complete or absent, and return their number.

    A pair that `read_links` would refuse is refused here too, so that every file can be read again.
    """
    path = Path(path)
    count = 0
    with open_aside(path, replace=replace) as handle, _packed(handle, path) as stream:
        for count, pair in enumerate(pairs, start=1):
            source = f"{path}:{count}"
            checked = _to_pair(_to_fields(pair), source)
            line = json.dumps(_to_fields(checked), ensure_ascii=False, allow_nan=False).encode("utf-8")
            _check_length(line, source)
            stream.write(line + b"\n")
    return count


def _packed(handle: BinaryIO, path: Path) -> AbstractContextManager[BinaryIO]:
    stream = compress(handle, split_endings(path)[1])
    # A plain file is closed by whoever opened it.
    return nullcontext(handle) if stream is handle else stream


def _check_length(line: bytes, source: str) -> None:
    if len(line) > MAX_LINE:
        found = (
            f"this line has {len(line) / 2**20:.1f} MB, which is more than the limit of "
            f"{MAX_LINE // 2**20} MB"
        )
        raise _wrong(source, found, "split the texts, or write one pair per line")


def _parse(line: str, source: str) -> dict[str, Any]:
    remedy = "write one complete object per line"
    try:
        fields = json.loads(line, object_pairs_hook=_unique_keys, parse_constant=Unquoted)
    except (ValueError, RecursionError) as error:
        raise _wrong(source, f"this line is not a JSON object ({error})", remedy) from None
    if not isinstance(fields, dict):
        raise _wrong(source, f"this is a JSON {type(fields).__name__}, but an object is expected", remedy)
    return fields


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("the same key occurs twice")
    return fields


def _to_pair(fields: Mapping[str, Any], source: str) -> LinkedPair:
    absent = [key for key in _REQUIRED if key not in fields]
    if absent:
        found = f"this line lacks {' and '.join(absent)}, but {', '.join(_REQUIRED)} are needed"
        raise _wrong(source, found, "add what is missing; `links` may be an empty list")
    # The line's own limit holds for the texts too.
    text_a, text_b = (to_text(fields[k], column=k, source=source, max_chars=MAX_LINE) for k in _REQUIRED[:2])
    words_a = _to_words(fields.get("words_a"), text_a, side="a", source=source)
    words_b = _to_words(fields.get("words_b"), text_b, side="b", source=source)
    return LinkedPair(
        text_a=text_a,
        text_b=text_b,
        words_a=words_a,
        words_b=words_b,
        links=_to_links(fields["links"], len(words_a), len(words_b), source),
        spans_a=_to_spans(fields.get("spans_a"), len(words_a), side="a", source=source),
        spans_b=_to_spans(fields.get("spans_b"), len(words_b), side="b", source=source),
        source=source,
        id=_to_name(fields, "id", source),
        by=_to_name(fields, "by", source),
    )


def _to_fields(pair: LinkedPair) -> dict[str, object]:
    fields: dict[str, object] = {"id": pair.id, "text_a": pair.text_a, "text_b": pair.text_b}
    for side, text, words in (("a", pair.text_a, pair.words_a), ("b", pair.text_b, pair.words_b)):
        fields[f"words_{side}"] = None if words == split_at_blanks(text) else words
    fields["links"] = [_link_fields(link) for link in pair.links]
    fields |= {"spans_a": pair.spans_a or None, "spans_b": pair.spans_b or None, "by": pair.by}
    return {key: value for key, value in fields.items() if value is not None}


def _link_fields(link: Link) -> dict[str, object]:
    known = {"a": link.a, "b": link.b, "score": link.score, "chance": link.chance}
    return {key: value for key, value in known.items() if value is not None}


def _to_name(fields: Mapping[str, Any], key: str, source: str) -> str | None:
    return None if fields.get(key) is None else to_text(fields[key], column=key, source=source)


def _to_words(value: object, text: str, *, side: str, source: str) -> tuple[Span, ...]:
    name = f"words_{side}"
    words = split_at_blanks(text) if value is None else _to_list(value, name, source)
    if len(words) > MAX_WORDS:
        found = f"text_{side} has {len(words):,} words, which is more than the limit of {MAX_WORDS:,}"
        raise _wrong(source, found, "split the text")
    if value is None:
        return tuple(words)
    inside = f"the {len(text)} characters of text_{side}"
    spans = [_to_span(word, f"{name}[{n}]", len(text), inside, source) for n, word in enumerate(words)]
    for number, (before, word) in enumerate(pairwise(spans), start=1):
        if word[0] < before[1]:
            found = f"{name}[{number}] is {list(word)}, which starts before the word ahead of it ends"
            raise _wrong(source, found, "list the words in the order of the text, without overlaps")
    return tuple(spans)


def _to_links(value: object, words_a: int, words_b: int, source: str) -> tuple[Link, ...]:
    links: dict[tuple[Span, Span], Link] = {}
    for number, entry in enumerate(_to_list(value, "links", source)):
        name = f"links[{number}]"
        if not isinstance(entry, dict) or not {"a", "b"} <= entry.keys():
            found = f'{name} is {_shown(entry)}, but {{"a": [start, end], "b": [start, end]}} is expected'
            raise _wrong(source, found, "write each link as an object with its two spans")
        link = Link(
            _to_span(entry["a"], f"{name}.a", words_a, f"the {words_a} words of text_a", source),
            _to_span(entry["b"], f"{name}.b", words_b, f"the {words_b} words of text_b", source),
            _to_score(entry.get("score"), f"{name}.score", source),
            _to_chance(entry.get("chance"), f"{name}.chance", source),
        )
        if links.setdefault((link.a, link.b), link) != link:
            found = f"{name} links the same spans as an earlier link, with another score or chance"
            raise _wrong(source, found, "keep one of the two")
    return tuple(links.values())


def _to_spans(value: object, words: int, *, side: str, source: str) -> tuple[Span, ...]:
    name, inside = f"spans_{side}", f"the {words} words of text_{side}"
    listed = () if value is None else _to_list(value, name, source)
    spans = dict.fromkeys(
        _to_span(span, f"{name}[{n}]", words, inside, source) for n, span in enumerate(listed)
    )
    crossing = _find_crossing(spans)
    if crossing is not None:
        found = f"{name} holds {list(crossing[0])} and {list(crossing[1])}, which cross"
        raise _wrong(source, found, _UNCROSS)
    return tuple(spans)


def _crossings(
    side: str, text: str, words: Sequence[Span], listed: Iterable[Span], named: Iterable[Span]
) -> Iterator[str]:
    """The first two spans of a text that cross, if any do, in words and with the key that holds each."""
    keys = dict.fromkeys(named, "links") | dict.fromkeys(listed, f"spans_{side}")
    crossing = _find_crossing(keys)
    if crossing is not None:
        first, second = (
            f"{list(span)} {_shown(text[words[span[0]][0] : words[span[1] - 1][1]])} of {keys[span]}"
            for span in crossing
        )
        yield f"in text_{side}, {first} crosses {second}"


def _find_crossing(spans: Iterable[Span]) -> tuple[Span, Span] | None:
    """Two spans that overlap without one holding the other. The given spans are distinct."""
    around: list[Span] = []  # those that hold the place reached, the widest first
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        while around and around[-1][1] <= span[0]:
            around.pop()
        if around and around[-1][1] < span[1]:
            return around[-1], span
        around.append(span)
    return None


def _to_span(value: object, name: str, limit: int, inside: str, source: str) -> Span:
    if isinstance(value, list) and list(map(type, value)) == [int, int] and 0 <= value[0] < value[1] <= limit:
        return value[0], value[1]  # what nearly all are; asking no further is much of the reading time
    numbers = value if isinstance(value, list | tuple) and len(value) == 2 else ()
    whole = [int(n) for n in numbers if isinstance(n, Integral) and not isinstance(n, bool)]
    if len(whole) != 2:
        raise _wrong(source, f"{name} is {_shown(value)}, but {_SHAPE} is expected", "correct the span")
    start, end = whole
    if start >= end:
        what = "is empty" if start == end else "ends before it begins"
        found = f"{name} is {_shown(value)}, which {what}"
        raise _wrong(source, found, _remedy_for_empty(start, end, limit, inside))
    if start < 0 or end > limit:
        raise _wrong(
            source,
            f"{name} is {_shown(value)}, which is outside {inside}",
            "count from 0; the end is not part of the span",
        )
    return start, end


def _remedy_for_empty(start: int, end: int, limit: int, inside: str) -> str:
    """What to write instead of an empty span."""
    if 0 <= start == end < limit:
        return (
            f"the end is not part of the span: write {[start, start + 1]} for one of {inside}, "
            "or leave the span out"
        )
    if 0 <= end < start <= limit:
        return f"write {[end, start]} if the two were exchanged, or leave the span out"
    return f"leave the span out, or name some of {inside}"


def _to_score(value: object, name: str, source: str) -> float | None:
    if value is None:
        return None
    number = _finite(value)
    if number is None:
        found = f"{name} is {_shown(value)}, but a finite number is expected"
        raise _wrong(source, found, "correct it, or leave it out")
    return number


def _to_chance(value: object, name: str, source: str) -> float | None:
    if value is None:
        return None
    number = _finite(value)
    if number is None or not 0 <= number <= 1:
        found = f"{name} is {_shown(value)}, but a number from 0 to 1 is expected"
        raise _wrong(source, found, "correct it, or leave it out")
    return number


def _finite(value: object) -> float | None:
    number = to_number(value) if isinstance(value, Real) and not isinstance(value, bool) else None
    return number if number is not None and math.isfinite(number) else None


def _to_list(value: object, name: str, source: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(source, f"{name} is {_shown(value)}, but a list is expected", "write it as [...]")
    return value


def _shown(value: object) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _wrong(source: str, found: str, remedy: str) -> DataError:
    return DataError([Problem(source, found, remedy)])
