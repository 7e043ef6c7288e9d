"""Typed-Similarity (*SEM 2013 pilot) from the user's own folder: ratings and the texts of the items.

The texts may not be redistributed, so they are never part of Likewise. The organisers' script leaves:

    STS.input.europeana.txt     two item addresses per line, tab between: …/record/PART/CODE.html
    STS.gs.europeana.txt        eight ratings 0..5 per line, tab between, in the order of RELATIONS
    pairs/text/12a_PART_CODE.txt   or text/…: fields of the left item (a) of line 12, each `dcTitle:<tab>…`

An item's text is the text of its fields one after another, as the paper joins them. Rows whose item could not
be fetched are reported as problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from likewise.data.opened import note_file
from likewise.data.rows import Fail, Row, Table
from likewise.errors import FormatError, Problem
from likewise.files import refuse_endless

INPUT, GOLD = "STS.input.europeana.txt", "STS.gs.europeana.txt"
RELATIONS = ("general", "author", "people", "time", "location", "event", "subject", "description")
FIELDS = ("dcTitle", "dcCreator", "dcSubject", "dcDescription", "dcDate", "dcSource")
_LARGEST = 2**26
_ITEM = re.compile(r"/record/(.+)\.html$")


def is_typed_folder(folder: Path) -> bool:
    """Whether a folder has the form of the Typed-Similarity release."""
    return (folder / INPUT).is_file() and (folder / GOLD).is_file()


def typed_table(folder: Path, name: str | None = None) -> Table:
    """Pairs of item texts with eight ratings. The place of a row is the place of its ratings."""
    shown = name or folder.name

    def scan(fail: Fail) -> Iterator[Row]:
        addresses, scores = _lines(folder / INPUT), _lines(folder / GOLD)
        if len(addresses) != len(scores):
            found = f"there are {len(addresses)} pairs in {INPUT}, but {len(scores)} lines of scores"
            raise FormatError([Problem(f"{shown}/{GOLD}", found, "take both files from the same release")])
        texts = _text_folder(folder, shown)
        for number, (address, score) in enumerate(zip(addresses, scores, strict=True), start=1):
            try:
                yield _row(texts, shown, number, address, score)
            except FormatError as error:
                fail(error.problems[0])

    return Table(shown, ("text_a", "text_b", *RELATIONS), scan)


def _row(texts: Path, shown: str, number: int, address: str, score: str) -> Row:
    source = f"{shown}/{GOLD}:{number}"
    values = score.split("\t")
    if len(values) != len(RELATIONS):
        found = f"there are {len(values)} scores, but {len(RELATIONS)} are expected: {', '.join(RELATIONS)}"
        raise FormatError([Problem(source, found, "separate eight scores with tabs")])
    items = address.split("\t")
    if len(items) != 2:
        place = f"{shown}/{INPUT}:{number}"
        raise FormatError(
            [
                Problem(
                    place,
                    f"there are {len(items)} addresses, but two are expected",
                    "separate them with a tab",
                )
            ]
        )
    pair = [_item_text(texts, shown, number, side, item) for side, item in zip("ab", items, strict=True)]
    return Row({"text_a": pair[0], "text_b": pair[1], **dict(zip(RELATIONS, values, strict=True))}, source)


def _item_text(texts: Path, shown: str, number: int, side: str, address: str) -> str:
    place = f"{shown}/{INPUT}:{number}"
    found = _ITEM.search(address.strip())
    if found is None:
        problem = Problem(place, f"{address!r} is not an item address", "write it as …/record/PART/CODE.html")
        raise FormatError([problem])
    path = texts / f"{number}{side}_{found.group(1).replace('/', '_', 1)}.txt"
    # The code comes from a file: it must not lead out of the folder.
    if path.parent.resolve() != texts.resolve() or not path.is_file():
        problem = Problem(place, f"{path.name} is not in {texts.name}/", "fetch the item, or remove the pair")
        raise FormatError([problem])
    fields = dict(_field(line) for line in _lines(path))
    return " ".join(fields[name] for name in FIELDS if fields.get(name)) or " ".join(fields.values())


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":\t")
    return name, " ".join(value.split())


def _text_folder(folder: Path, shown: str) -> Path:
    for place in (folder / "pairs" / "text", folder / "text"):
        if place.is_dir():
            return place
    problem = Problem(
        shown, "there is no folder text/ or pairs/text/", "run the release's own pull-records script"
    )
    raise FormatError([problem])


def _lines(path: Path) -> list[str]:
    refuse_endless(path)
    note_file(path)
    if path.stat().st_size > _LARGEST:
        found = f"this has more than {_LARGEST // 2**20} MB, which no file of the release has"
        raise FormatError([Problem(path.name, found, "take the file from the release")])
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(
            [Problem(path.name, f"this is not UTF-8 ({error.reason})", "save it as UTF-8")]
        ) from None
