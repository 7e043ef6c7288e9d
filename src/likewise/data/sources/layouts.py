"""Readers of published layouts: each takes a Bundle and options, and gives rows in the catalogue's columns.

A layout is one function. Its options are those that sources.toml gives. Rows come in the published order,
unless a sample has an order of its own.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from likewise.data.canonical import row_key
from likewise.data.parallel.languages import look_up
from likewise.data.sources.bundle import Bundle, Member
from likewise.data.sources.cells import RowFields, cell_rows, table, whole_text
from likewise.data.sources.rated import captions, objects, related
from likewise.data.sources.samples import Sample, key_number, read_sample, split_topic
from likewise.data.values import to_number
from likewise.errors import FormatError, Problem

_Layout = Callable[..., Iterator[RowFields]]

_LEAF = re.compile(r"\((\d) ([^()\s]+)\)")
_REVIEW = re.compile(r"(train|test)/(neg|pos)/(\d+)_(\d+)\.txt$")
_TAGGED = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)
_STORY = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def scored(
    bundle: Bundle, *, subsets: Mapping[str, str], prefix: str = "STS", folder: str = ""
) -> Iterator[RowFields]:
    """Pairs of SemEval: a file of pairs and a file of scores for each subset. Pairs without a score are left
    out.
    """
    for subset, name in subsets.items():
        pairs = f"{folder}{prefix}.input.{name}.txt"
        texts = bundle.lines(pairs)
        scores = bundle.lines(f"{folder}{prefix}.gs.{name}.txt")
        for number, (line, score) in enumerate(zip_longest(texts, scores), start=1):
            cells = [] if line is None else line.split("\t")
            if score is None or len(cells) < 2:
                found = "there is a pair without a line of scores, or a score without a pair"
                raise FormatError([Problem(f"{pairs}:{number}", found, "take both files from one release")])
            if score.strip():
                first, second = cells[0].strip(), cells[1].strip()
                yield {"subset": subset, "score": score.strip(), "sentence1": first, "sentence2": second}


def inference(bundle: Bundle, *, member: str) -> Iterator[RowFields]:
    """SNLI and MultiNLI in JSON lines. Pairs without a gold label (-) are left out."""
    name = bundle.require(member).name
    for number, line in enumerate(bundle.lines(member), start=1):
        try:
            row = json.loads(line)
            label, premise, hypothesis = row["gold_label"], row["sentence1"], row["sentence2"]
        except (ValueError, KeyError, TypeError, RecursionError):
            found = "this line is no JSON object with gold_label, sentence1 and sentence2"
            problem = Problem(f"{name}:{number}", found, "use the file as published")
            raise FormatError([problem]) from None
        if label != "-":
            yield {"label": label, "premise": premise, "hypothesis": hypothesis}


def msr(bundle: Bundle, *, part: str) -> Iterator[RowFields]:
    """The MSR Paraphrase Corpus: five columns under a header. GLUE's list of ids tells dev from train."""
    names = ("label", "id1", "id2", "sentence1", "sentence2")
    member = f"msr_paraphrase_{'test' if part == 'test' else 'train'}.txt"
    held = {tuple(cells[:2]) for _, cells in cell_rows(bundle, "mrpc_dev_ids.tsv", "\t", quoted=False)}
    for number, cells in cell_rows(bundle, member, "\t", quoted=False):
        if number == 1:
            continue
        if len(cells) != len(names):
            found = f"there are {len(cells)} fields, but {len(names)} are expected ({', '.join(names)})"
            raise FormatError([Problem(f"{member}:{number}", found, "use the file as published")])
        if part == "test" or ((cells[1], cells[2]) in held) == (part == "dev"):
            yield dict(zip(names, cells, strict=True))


def trees(bundle: Bundle, *, member: str) -> Iterator[RowFields]:
    """The Sentiment Treebank: a tree a line, whose root has the label. Sentences are put in lower case."""
    for number, line in enumerate(bundle.lines(member), start=1):
        words = [word for _, word in _LEAF.findall(line)]
        if not words or line[:1] != "(" or not line[1:2].isdigit():
            found = "this line is no tree with a label from 0 to 4"
            raise FormatError([Problem(f"{member}:{number}", found, "use the file as published")])
        yield {"label": line[1], "sentence": " ".join(words).lower()}


def reviews(bundle: Bundle, *, part: str) -> Iterator[RowFields]:
    """Reviews of IMDB, one a file (`train/neg/0_3.txt`): negative before positive, by their numbers."""
    found: list[tuple[str, int, str, str]] = []
    for member in bundle.find_all("*.txt"):
        told = _REVIEW.search(member.name)
        if told is not None and told[1] == part:
            text = whole_text(bundle, member).replace("<br />", " ")
            found.append((told[2], int(told[3]), told[4], text))
    _refuse_empty(found, bundle, f"{part}/neg/0_3.txt")
    for label, number, rating, text in sorted(found, key=lambda one: one[:2]):
        yield {"label": label, "id": str(number), "rating": rating, "text": text}


def tagged_reviews(bundle: Bundle, *, folder: str) -> Iterator[RowFields]:
    """Reviews of one domain of the Multi-Domain Sentiment Dataset, in tags that look like XML."""
    for label in ("positive", "negative"):
        member = bundle.require(f"{folder}/{label}.review")
        for block in whole_text(bundle, member, errors="replace").split("</review>")[:-1]:
            tags: dict[str, str] = {}
            for name, text in _TAGGED.findall(block.partition("<review>")[2]):
                tags.setdefault(name, text.strip())
            yield {
                "label": label,
                "rating": tags.get("rating", ""),
                "title": tags.get("title", ""),
                "text": tags.get("review_text", ""),
                "unique_id": tags.get("unique_id", ""),
            }


def questions(bundle: Bundle, *, member: str) -> Iterator[RowFields]:
    """Questions with coarse and fine labels in front: `NUM:dist How far …`. The files are in Latin-1."""
    for number, line in enumerate(bundle.lines(member, encoding="latin-1"), start=1):
        label, _, question = line.strip().partition(" ")
        coarse, _, fine = label.partition(":")
        if not (fine and question):
            found = "this line does not begin with a label such as NUM:dist"
            raise FormatError([Problem(f"{member}:{number}", found, "use the file as published")])
        yield {"coarse": coarse, "fine": fine, "question": question.strip()}


def newswire(bundle: Bundle) -> Iterator[RowFields]:
    """Stories of Reuters-21578: the number of each, its split, its title and body, from 22 SGML files."""
    members = sorted(bundle.find_all("reut2-*.sgm"), key=lambda member: member.name)
    _refuse_empty(members, bundle, "reut2-000.sgm")
    for member in members:
        for head, story in _STORY.findall(whole_text(bundle, member, encoding="latin-1")):
            about = dict(_ATTRIBUTE.findall(head))
            title, body = (_element(story, name) for name in ("TITLE", "BODY"))
            yield {
                "topic": "",
                "newid": about.get("NEWID", ""),
                "lewissplit": about.get("LEWISSPLIT", ""),
                "title": title,
                "body": body,
            }


def _element(story: str, name: str) -> str:
    found = re.search(rf"<{name}>(.*?)</{name}>", story, re.DOTALL)
    if found is None:
        return ""
    return " ".join(html.unescape(found[1]).replace("\x03", " ").split())


def lines(
    bundle: Bundle, *, members: Mapping[str, str], listed: Mapping[str, str] | None = None
) -> Iterator[RowFields]:
    """Files that belong together line by line. A column of `listed` holds the lines of files numbered by #
    as a list.
    """
    groups = {column: [member] for column, member in members.items()}
    for column, pattern in (listed or {}).items():
        count = next(n for n in range(1000) if bundle.find(pattern.replace("#", str(n))) is None)
        groups[column] = [pattern.replace("#", str(n)) for n in range(max(count, 1))]
    streams = [bundle.lines(member) for files in groups.values() for member in files]
    for number, row in enumerate(zip_longest(*streams), start=1):
        if None in row:
            first = next(iter(members.values()))
            found = "one of the files that belong together line by line ends before this line"
            raise FormatError([Problem(f"{first}:{number}", found, "take all files from one release")])
        cells, fields = iter(row), {}
        for column, files in groups.items():
            texts = [next(cells).strip() for _ in files]
            fields[column] = [text for text in texts if text] if column in (listed or {}) else texts[0]
        yield fields


def challenge(bundle: Bundle, *, pair: str) -> Iterator[RowFields]:
    """A test set of the Tatoeba Challenge: two languages and two texts a line, in `CODE-CODE/test.txt`."""
    sides = pair.split("-")
    columns = sides if len(set(sides)) == 2 else [f"{side}{n}" for n, side in enumerate(sides, start=1)]
    for member in bundle.find_all("*/test.txt"):
        codes = member.name.split("/")[-2].split("-")
        named = [language.code if (language := look_up(code)) else code for code in codes]
        if sorted(named) == sorted(sides):
            yield from _translated(bundle, member, columns, swapped=named != sides)
            return
    bundle.require(f"{pair}/test.txt")


def _translated(
    bundle: Bundle, member: Member, columns: Sequence[str], *, swapped: bool
) -> Iterator[RowFields]:
    for number, cells in cell_rows(bundle, member.name, "\t", quoted=False):
        if len(cells) != 4:
            found = f"there are {len(cells)} fields, but two languages and two texts are expected"
            raise FormatError([Problem(f"{member.name}:{number}", found, "use the file as published")])
        first, second = reversed(cells[2:]) if swapped else cells[2:]
        yield {columns[0]: first.strip(), columns[1]: second.strip(), "source": "tatoeba-challenge"}


def activities(bundle: Bundle, *, member: str) -> Iterator[RowFields]:
    """Rated phrases of activities as CSV. Ratings on 0..4 and -2..2 are moved to 1..5, as the catalogue
    stores them.
    """
    names = {"act1": "phrase1", "act2": "phrase2"}
    rows = list(table(bundle, member=member, delimiter=",", quoted=True, rename=names))
    shifts = {"sim": 1.0, "rel": 1.0, "ma": 1.0, "pac": 3.0}
    numbers = [to_number(row.get("pac")) for row in rows]
    moved = any(number is not None and number < 1 for number in numbers)
    for row in rows:
        fields: RowFields = {name: row.get(name, "") for name in ("phrase1", "phrase2")}
        for name, shift in shifts.items():
            number = to_number(row.get(name))
            fields[name] = "" if number is None else number + (shift if moved else 0)
        yield fields


LAYOUTS: Mapping[str, _Layout] = {
    "activities": activities,
    "captions": captions,
    "challenge": challenge,
    "inference": inference,
    "lines": lines,
    "msr": msr,
    "newswire": newswire,
    "objects": objects,
    "questions": questions,
    "related": related,
    "reviews": reviews,
    "scored": scored,
    "table": table,
    "tagged_reviews": tagged_reviews,
    "trees": trees,
}


def read_layout(
    bundle: Bundle, layout: str, options: Mapping[str, Any], *, columns: Sequence[str], labels: Sequence[str]
) -> Iterator[RowFields]:
    """The rows of a target: all that its layout reads, or those of its sample.

    `columns` are those that the rows of a sample are known by; `labels` are the topics of a sample of topics.
    """
    rest = {key: value for key, value in options.items() if key != "sample"}
    rows = LAYOUTS[layout](bundle, **rest)
    if "sample" not in options:
        return rows
    return _sampled(rows, read_sample(options["sample"]), columns, labels)


def _sampled(
    rows: Iterable[RowFields], sample: Sample, columns: Sequence[str], labels: Sequence[str]
) -> Iterator[RowFields]:
    """The rows of a sample in its order. Those that are not in the published file are left out."""
    topics = dict(split_topic(row, labels) for row in sample.rows) if sample.kind == "topics" else {}
    wanted = set(topics) if topics else set(sample.rows)
    order = list(topics) if topics else sample.rows
    found: dict[int, RowFields] = {}
    for row in rows:
        number = _number(row, sample, columns)
        if number in wanted and number not in found:
            found[number] = {**row, "topic": topics[number]} if topics else row
    yield from (found[number] for number in order if number in found)


def _number(row: RowFields, sample: Sample, columns: Sequence[str]) -> int:
    if sample.kind == "keys":
        return key_number(row_key(row, columns))
    text = str(row.get("newid" if sample.kind == "topics" else "id", ""))
    return int(text) if text.isdecimal() and len(text) < 12 else -1


def _refuse_empty(found: Sequence[object], bundle: Bundle, example: str) -> None:
    if not found:
        bundle.require(example)
