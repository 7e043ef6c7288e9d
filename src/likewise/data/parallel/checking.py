"""Check a parallel corpus, with the same form of report as for rated pairs."""

from __future__ import annotations

from pathlib import Path

from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import find_file, shown_name, verify
from likewise.data.findings import CheckReport
from likewise.data.parallel.reading import EMPTY, IDENTICAL, REPEATED, read_parallel
from likewise.errors import DataError

_KINDS = {EMPTY: "empty side", IDENTICAL: "same text on both sides", REPEATED: "duplicate row"}


def check_parallel(
    report: CheckReport, corpus: Corpus, split: Split, *, data_dir: str | Path | None, max_chars: int
) -> CheckReport:
    """Compare a split with the catalogue, and report the pairs that reading drops and its warnings."""
    try:
        path = find_file(corpus, split, data_dir)
        report.name = shown_name(split, path)
        for problem in verify(corpus, split, data_dir):
            report.add("other version", problem)
        # By its path: another number of rows has been reported, and need not end the check.
        text = read_parallel(path, name=report.name, max_chars=max_chars)
    except DataError as error:
        for problem in error.problems:
            report.add("unreadable", problem)
        return report
    report.rows, report.texts = text.report.rows, split.languages
    report.lengths.update(map(len, text.a))
    report.lengths.update(map(len, text.b))
    for reason, problem in text.report.drops.items():
        report.add(_KINDS[reason], problem, count=text.report.dropped[reason])
    for warning in text.report.warnings:
        report.add("another language", warning)
    return report
