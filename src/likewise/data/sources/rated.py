"""Layouts of rated pairs that are no plain tables: objects, two texts in one cell, ids of captions."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from likewise.data.sources.bundle import Bundle
from likewise.data.sources.cells import RowFields, table, whole_text
from likewise.errors import FormatError, Problem
from likewise.wording import counted

# A sentence of the Karpathy split, as its JSON writes it; other keys may stand before these.
_CAPTION = re.compile(r'"raw": *("(?:[^"\\]|\\.)*"), *"imgid": *\d+, *"sentid": *(\d+)')
_REMEDY = "use the file as published"


def objects(bundle: Bundle, *, member: str, take: Mapping[str, str]) -> Iterator[RowFields]:
    """Objects in JSON lines. `take` maps the keys that are read to the names of columns."""
    name = bundle.require(member).name
    for number, line in enumerate(bundle.lines(member), start=1):
        try:
            row = json.loads(line)
            fields = {column: row[key] for key, column in take.items()}
        except (ValueError, KeyError, TypeError, RecursionError):
            found = f"this line is no JSON object with {', '.join(take)}"
            raise FormatError([Problem(f"{name}:{number}", found, _REMEDY)]) from None
        yield fields


def related(bundle: Bundle, *, members: Mapping[str, str]) -> Iterator[RowFields]:
    """Pairs of SemRel: CSV with both texts in one cell, on a line each; one file per language.

    Quotation marks around both texts, as in two of the languages, are taken off.
    """
    for code, member in members.items():
        for row in table(bundle, member=member, delimiter=",", quoted=True):
            texts = [line.strip() for line in str(row.get("Text", "")).split("\n") if line.strip()]
            if len(texts) != 2:
                many = counted(len(texts), "line")
                found = f"{row.get('PairID') or 'a row'} has {many} of text, but 2 are expected"
                raise FormatError([Problem(bundle.require(member).name, found, _REMEDY)])
            first, second = map(_unquoted, texts)
            yield {"lang": code, "sentence1": first, "sentence2": second, "score": row.get("Score", "")}


def _unquoted(text: str) -> str:
    wrapped = len(text) > 2 and text[0] == text[-1] == '"'
    return text[1:-1].strip() if wrapped else text


def captions(bundle: Bundle, *, member: str, texts: str) -> Iterator[RowFields]:
    """Rated pairs of MS-COCO's caption ids as CSV, with the words of the captions from the Karpathy split."""
    rows = list(table(bundle, member=member, delimiter=",", quoted=True))
    sides = [[_caption_id(row.get(side)) for side in ("caption1", "caption2")] for row in rows]
    known = _captions(bundle, texts, {number for pair in sides for number in pair})
    for row, pair in zip(rows, sides, strict=True):
        absent = [number for number in pair if number not in known]
        if absent:
            found = f"the caption {absent[0]!r}, which {member} rates, is not in it"
            raise FormatError([Problem(bundle.require(texts).name, found, _REMEDY)])
        first, second = (known[number] for number in pair)
        yield {
            "sentence1": first,
            "sentence2": second,
            "score": row.get("agg_score", ""),
            "sampling": row.get("sampling_method", ""),
        }


def _caption_id(cell: object) -> str:
    """The number at the end of an id such as COCO_val2014:sentid:190268."""
    return str(cell).rpartition(":")[2].strip()


def _captions(bundle: Bundle, member: str, wanted: Collection[str]) -> dict[str, str]:
    """The captions with these numbers. The file is searched and not parsed: as objects it would take ten
    times its size.
    """
    text = whole_text(bundle, bundle.require(member))
    found = (match.groups() for match in _CAPTION.finditer(text))
    return {number: " ".join(_said(raw).split()) for raw, number in found if number in wanted}


def _said(raw: str) -> str:
    try:
        return str(json.loads(raw, strict=False))
    except ValueError:  # an escape that JSON does not have
        return raw[1:-1]
