"""Numbers in prose: each says in a comment behind it where it comes from, and is checked like a table.

    Model-II gains 6.6 points (p .076). <!-- numbers: gain labels-domain-lstm > Model-II > average; p … -->

A comment accounts for all decimal numbers of its paragraph, list item or table cell since the comment before
it, in their order, one source for each, separated by semicolons:

    mean RESULT > SETTING > COLUMN [> START]   a setting's mean over seeds; columns: A + B, all but A
    gain RESULT > SETTING > COLUMN [> START]   minus the baseline's; `SETTING over OTHER`: minus another's
    p RESULT > SETTING > COLUMN [> START]      its p against the baseline, Holm-corrected as in the tables
    cell TABLE > ROW > COLUMN [> N]            the N-th number (1) in a cell of a table of these pages; ROW is
                                               what stands in a cell of the row, or in several: `a / b`
    value RESULT > KEY > … [× 100]             any number of a result file; `name=X` finds an entry of a list
    SOURCE minus SOURCE                        a difference, also from a number of a paper

One word alone says that no result file has the numbers: `paper`, `setting` (or a threshold, a version, a
size), `data` (a property of the data, shown by the command beside it). How a number is written decides how
it is shown: its digits, its sign, and .897 for 89.7 where no 0 stands before the point.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tabling.common import read

WORDS = ("paper", "setting", "data")
NUMBER = re.compile(r"(?<![\w.,§])(?:< ?)?[+−-]?\d*\.\d+(?![\w]|\.\d)")
MARKER = re.compile(r"<!-- numbers: (.*?) -->", re.DOTALL)
# What holds no prose: tables that are made, code, addresses of links, other comments.
_APART = re.compile(
    r"<!-- table [\w:.-]+ -->\n.*?<!-- end -->|```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--(?! numbers:).*?-->",
    re.DOTALL,
)
# Numbers that need no source: levels of tests, versions, licences, and shares that `likewise audit` prints.
SETTLED = re.compile(
    r"p < \.05|α \.05|below \.05|Python 3\.\d+|Apache-2\.0|CC BY(?:-NC)?(?:-SA)? \d\.0"
    r"|(?:\d+\.\d+(?:, | and ))*\d+\.\d+ %|Differences on dev below about 0\.2"
)
_TOKEN = re.compile(f"{MARKER.pattern}|({NUMBER.pattern})", re.DOTALL)
_BLOCK = re.compile(r"\n[ \t]*\n|\n(?=- |\|)|\n(?=\d+\. )|(?<=\|)|(?=\|)")

Maker = Callable[[str], str]


class NumberError(Exception):
    """A marker that cannot be read, or does not fit the numbers before it."""


@dataclass(frozen=True, slots=True)
class Written:
    """A number where it stands on a page, and where it is said to come from; "" if nobody says."""

    start: int
    text: str
    source: str = ""


def written_numbers(page: str) -> list[Written]:
    """Every decimal number in the prose of a page with its source, in order."""
    found: list[Written] = []
    for start, block in _blocks(page):
        waiting: list[Written] = []
        for token in _TOKEN.finditer(block):
            marker, number = token.group(1), token.group(2)
            if number is not None:
                waiting.append(Written(start + token.start(), number))
                continue
            found += _with_sources(page, waiting, " ".join(marker.split()), start + token.start())
            waiting = []
        found += waiting
    return found


def refreshed(page: str, make: Maker) -> str:
    """The page with every number as its source says it; `make` draws the table of a name."""
    parts, end = [], 0
    for one in written_numbers(page):
        if one.source and one.source not in WORDS:
            try:
                shown = shown_like(one.text, *value_of(one.source, make))
            except (KeyError, IndexError, StopIteration, OSError, ValueError, TypeError) as error:
                where = f"line {page.count(chr(10), 0, one.start) + 1}"
                raise NumberError(f"{where}: {one.text} has no source {one.source!r} ({error!r})") from error
            parts += [page[end : one.start], shown]
            end = one.start + len(one.text)
    return "".join(parts) + page[end:]


def unmarked(page: str) -> list[str]:
    """Lines with decimal numbers that say nothing of where they come from: number, and the line."""
    lines = page.splitlines()
    return [
        f"{page.count(chr(10), 0, one.start) + 1}: {one.text} in: {lines[page.count(chr(10), 0, one.start)]}"
        for one in written_numbers(page)
        if not one.source
    ]


def _blocks(page: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table cells with the places where they start."""
    plain = SETTLED.sub(_blank, _APART.sub(_blank, page))
    start = 0
    for border in [*_BLOCK.finditer(plain), None]:
        end = len(plain) if border is None else border.start()
        yield start, plain[start:end]
        start = len(plain) if border is None else border.end()


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def _with_sources(page: str, numbers: list[Written], marker: str, place: int) -> list[Written]:
    sources = [part.strip() for part in marker.split(";")]
    if len(sources) == 1 and sources[0] in WORDS:
        sources *= len(numbers)
    if len(sources) != len(numbers) or not numbers:
        line = page.count("\n", 0, place) + 1
        said = ", ".join(one.text for one in numbers) or "none"
        found = f"line {line}: {len(sources)} sources for the numbers {said}"
        raise NumberError(f"{found}; give one source for each number since the last marker")
    return [Written(one.start, one.text, source) for one, source in zip(numbers, sources, strict=True)]


def shown_like(text: str, value: float, is_p: bool) -> str:
    """A value in the way a number is written."""
    sign, digits = re.match(r"(?:< ?)?([+−-]?)(.*)", text).groups()  # type: ignore[union-attr]
    whole, _, decimals = digits.partition(".")
    if is_p and value < 0.001:
        return text if text.startswith("<") else "< .001"
    scaled = value / 100 if not whole and not is_p else value
    shown = f"{abs(scaled):.{len(decimals)}f}"
    if not whole:
        shown = shown.removeprefix("0")
    if not sign:
        return shown
    return ((sign if sign != "+" else "−") if scaled < 0 else "+") + shown


def value_of(source: str, make: Maker) -> tuple[float, bool]:
    """What a source says, and whether that is a p value."""
    first, minus, second = source.partition(" minus ")
    if minus:
        return value_of(first, make)[0] - value_of(second, make)[0], False
    if re.fullmatch(r"\d+(\.\d+)?", source):
        return float(source), False
    kind, _, rest = source.partition(" ")
    parts = [part.strip() for part in rest.split(" > ")]
    if kind == "cell":
        return _cell(make(parts[0]), *parts[1:]), False
    if kind == "value":
        return _value(parts), False
    if kind not in ("mean", "gain", "p"):
        raise ValueError(f"{kind!r} is not one of mean, gain, p, cell, value, {', '.join(WORDS)}")
    result, setting, column = read(parts[0]), parts[1], parts[2]
    start = parts[3] if len(parts) > 3 else ""
    if kind == "p":
        return _p(result, setting, column, start), True
    setting, _, other = setting.partition(" over ")
    value = _mean(result, setting, column, start)
    return value if kind == "mean" else value - _mean(
        result, other or result["baseline"], column, start
    ), False


def _mean(result: dict[str, Any], setting: str, column: str, start: str) -> float:
    [found] = [s for s in result["settings"] if (s["setting"], s["start"]) == (setting, start)]
    names = column.split(" + ")
    if column.startswith("all but "):
        names = [name for name in found["metrics"] if name != column.removeprefix("all but ")]
    return statistics.mean(found["mean"][name] for name in names)


def _p(result: dict[str, Any], setting: str, column: str, start: str) -> float:
    """Holm's p of a setting's column against the baseline; of averages, from the tests of averages."""
    wanted = (start, setting, column)
    for part, name in (("comparisons", "p_holm"), ("tests", "p")):
        for test in result.get(part, []):
            if (test["start"], test["setting"], test["column"]) == wanted:
                return float(test[name])
    raise KeyError(f"no test of {wanted}")


def _cell(table: str, row: str, column: str, number: str = "1") -> float:
    lines = [
        [cell.strip().replace("*", "").replace("`", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in table.splitlines()
        if line.startswith("|")
    ]
    header, rows = lines[0], lines[2:]
    wanted = row.split(" / ")
    [cells] = [cells for cells in rows if all(one in cells for one in wanted)]
    said = re.findall(r"[+−-]?\d*\.?\d+", cells[header.index(column)].replace(",", ""))[int(number) - 1]
    value = float(said.replace("−", "-"))
    # A cell's .897 is 89.7 of a result file: how it is shown is the prose's own business.
    return 100 * value if re.match(r"[+−-]?\.", said) else value


def _value(parts: list[str]) -> float:
    last, _, scaled = parts[-1].partition(" × ")
    found: Any = read(parts[0])
    for key in [*parts[1:-1], last]:
        name, equals, wanted = key.partition("=")
        if isinstance(found, list) and equals:
            found = next(entry for entry in found if str(entry[name]) == wanted)
        else:
            found = found[int(key) if isinstance(found, list) else key]
    return float(found) * (float(scaled) if scaled else 1.0)
