"""Read sentences and their translations, cleaned, with a report of what was left out and why."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import find_file, shown_name, wrong_rows
from likewise.data.keys import any_among
from likewise.data.parallel.detection import find_mismatch
from likewise.data.parallel.layouts import Columns, Layout, OpenedParallel, open_layout
from likewise.data.reading import find_named_corpus
from likewise.data.values import MAX_CHARS, find_fault
from likewise.errors import DataError, Problem

EMPTY = "an empty side"
IDENTICAL = "the same text on both sides"
REPEATED = "a pair that stands further up"


@dataclass(slots=True)
class ReadReport:
    """What happened to the rows of one source: how many were dropped, why, the first of each, and warnings.

    `noun` is what the report counts, for sources in which one row of a file makes several pairs.
    """

    name: str
    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)
    noun: str = "rows"

    def drop(self, reason: str, place: str, count: int = 1) -> None:
        """Count rows that are left out, the first of them at `place`."""
        self.dropped[reason] += count
        self.first.setdefault(reason, place)

    @property
    def kept(self) -> int:
        """The number of pairs that were kept."""
        return self.rows - self.dropped.total()

    @property
    def drops(self) -> dict[str, Problem]:
        """Each reason for dropping rows, with a sentence that gives the number of rows and the first one."""
        return {
            reason: Problem(
                self.first[reason],
                f"{count:,} of {self.rows:,} {self.noun} were dropped ({reason}). This is the first one.",
            )
            for reason, count in self.dropped.items()
        }

    @property
    def notes(self) -> list[Problem]:
        """All messages for the user: what was dropped, then the warnings."""
        return [*self.drops.values(), *self.warnings]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "source": self.name,
            "rows": self.rows,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "first": dict(self.first),
            "warnings": [str(warning) for warning in self.warnings],
        }


@dataclass(frozen=True, slots=True)
class ParallelText:
    """Sentences and their translations: `a[i]` in `language_a` means the same as `b[i]` in `language_b`."""

    name: str
    language_a: str
    language_b: str
    a: list[str]
    b: list[str]
    report: ReadReport

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.a, self.b, strict=True)

    def without(self, keys: Set[str]) -> ParallelText:
        """The pairs of which neither side has a key (`data.keys`) among these texts."""
        rows = [row for row, pair in enumerate(self) if not any_among(pair, keys)]
        return replace(self, a=[self.a[row] for row in rows], b=[self.b[row] for row in rows])

    def sample(self, count: int, seed: int) -> ParallelText:
        """A sample of at most `count` pairs, drawn by the seed, in their original order."""
        if len(self) <= count:
            return self
        rows = sorted(random.Random(seed).sample(range(len(self)), count))
        return replace(self, a=[self.a[row] for row in rows], b=[self.b[row] for row in rows])


def read_parallel(
    source: object,
    languages: Sequence[str] | None = None,
    *,
    columns: Columns | None = None,
    layout: Layout = "auto",
    name: str | None = None,
    data_dir: str | Path | None = None,
    keep_identical: bool = False,
    keep_repeated: bool = False,
    max_chars: int = MAX_CHARS,
) -> ParallelText:
    """Read parallel text in any of the layouts of `likewise.data.parallel.layouts`, or by its name.

    `source` is a file, the two files or the prefix of Moses pairs, the folder or (sentences, links) of
    Tatoeba's export, any source of `open_table`, or a parallel corpus such as "tatoeba/en-de_train". The file
    of a corpus is looked for in `data_dir` or LIKEWISE_DATA and must have its number of rows.

    `languages` are the languages of the two sides, in the wanted order. Without them they are taken from
    column names (en, de) or from the endings of Moses files. `columns` names two columns, or numbers them
    from 1 in a file without a header.

    White space around texts is removed. Rows with an empty side, rows with the same text on both sides and
    repeated pairs are dropped and counted in the report. The report also warns of a side that does not look
    like its language. Any other problem is an error with file and line.
    """
    named = _find_named(source, languages)
    if named is not None:
        source = find_file(*named, data_dir)
        name = name or shown_name(named[1], source)
    opened = open_layout(source, languages, columns=columns, layout=layout, name=name)
    report = ReadReport(opened.name)
    a: list[str] = []
    b: list[str] = []
    lines = _read_pairs(opened, a, b, report, keep_identical=keep_identical, max_chars=max_chars)
    if named is not None and report.rows != named[1].rows:
        raise DataError([wrong_rows(*named, report.rows)])
    if not keep_repeated:
        _drop_repeated(a, b, lines, opened.files[0], report)
    if not a:
        raise DataError([_nothing_left(report)])
    for texts, language, place in zip((a, b), opened.languages, opened.places, strict=True):
        warning = find_mismatch(texts, language, source=place)
        if warning is not None:
            report.warnings.append(warning)
    return ParallelText(opened.name, opened.languages[0].code, opened.languages[1].code, a, b, report)


def _find_named(source: object, languages: Sequence[str] | None) -> tuple[Corpus, Split] | None:
    """The parallel corpus and split that a source names, or None if it is something else."""
    if not isinstance(source, str) or (languages is not None and _is_prefix(Path(source))):
        return None
    named = find_named_corpus(source)
    if named is not None:
        named[0].require("translations")
    return named


def _is_prefix(path: Path) -> bool:
    """Whether the path is a prefix of Moses files. Existing files take precedence over a corpus of the
    same name.
    """
    return path.parent.is_dir() and any(
        file.name.startswith(f"{path.name}.") for file in path.parent.iterdir()
    )


def _read_pairs(
    opened: OpenedParallel,
    a: list[str],
    b: list[str],
    report: ReadReport,
    *,
    keep_identical: bool,
    max_chars: int,
) -> array[int]:
    """Fill the two lists with the pairs that are kept, and return the line of each."""
    (file_a, file_b), (side_a, side_b) = opened.files, opened.sides
    lines = array("q")
    with closing(opened.pairs) as pairs:
        for cell_a, cell_b, line in pairs:
            report.rows += 1
            text_a = _clean(cell_a, side_a, file_a, line, max_chars)
            text_b = _clean(cell_b, side_b, file_b, line, max_chars)
            if not text_a or not text_b:
                report.drop(EMPTY, f"{file_b if text_a else file_a}:{line}")
            elif text_a == text_b and not keep_identical:
                report.drop(IDENTICAL, f"{file_a}:{line}")
            else:
                a.append(text_a)
                b.append(text_b)
                lines.append(line)
    return lines


def _clean(cell: object, side: str, file: str, line: int, max_chars: int) -> str:
    """The text in a cell without white space around it, or "" if it is empty. Anything but a text is an
    error.
    """
    # Almost every text passes here; half a surrogate pair, which is no character, does not print.
    if isinstance(cell, str) and len(cell) <= max_chars and cell.isprintable():
        return cell.strip()
    fault = find_fault(cell, column=side, source=f"{file}:{line}", max_chars=max_chars)
    if fault is None:
        return str(cell).strip()
    if fault.kind == "empty text":
        return ""
    raise DataError([fault.problem])


def _drop_repeated(a: list[str], b: list[str], lines: array[int], file: str, report: ReadReport) -> None:
    """Keep the first of equal pairs, in place. As in `repeats`, 8-byte hashes stand for them."""
    import numpy as np

    hashes = np.fromiter(map(hash, zip(a, b, strict=True)), dtype=np.int64, count=len(a))
    keep = np.zeros(len(a), dtype=bool)
    keep[np.unique(hashes, return_index=True)[1]] = True
    repeated = np.flatnonzero(~keep)
    if len(repeated):
        report.drop(REPEATED, f"{file}:{lines[int(repeated[0])]}", len(repeated))
        kept = keep.tolist()
        a[:] = compress(a, kept)
        b[:] = compress(b, kept)


def _nothing_left(report: ReadReport) -> Problem:
    if not report.rows:
        return Problem(
            report.name,
            "this holds no pairs, but sentences and their translations are expected",
            "check the file",
        )
    reasons = ", ".join(f"{count:,} with {reason}" for reason, count in report.dropped.items())
    found = f"no pair is left of {report.rows:,} rows: {reasons}"
    return Problem(report.name, found, "check that the two sides are the right columns or files")
