"""`likewise data get`: put named corpora into the data folder. The words for their sources are here too."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.console import err, note, out, printable, progress_bar
from likewise.data.canonical import stored_checksums
from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import data_home, data_roots
from likewise.data.getting import GaugeFor, GetReport, by_hand, get, target_folder
from likewise.data.sources.fetching import Gauge
from likewise.data.sources.listing import (
    CorpusSource,
    all_sources,
    corpora_of,
    corpus_sources,
    named_corpora,
    unobtainable,
)
from likewise.disk import to_json
from likewise.wording import counted, listed

_KIB = 1024


def get_corpora(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="Corpora, a group such as sts7, or all. `data list` has the names."
        ),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder to put the corpora into. Defaults to LIKEWISE_DATA."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="File, archive or folder that you downloaded, or another https address. Without it, the "
            "published files are fetched.",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-licence", metavar="NAME", help="Accept the terms of this corpus. Can be repeated."
        ),
    ] = None,
    allow_different: Annotated[
        bool,
        typer.Option(
            "--allow-different",
            help="Keep rows that differ from those that the published numbers were measured on.",
        ),
    ] = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Download named corpora and convert them to the files that every command reads.

    The licence is shown first. The rows are compared with those that the published numbers were measured on.
    Files go to --data-dir, to LIKEWISE_DATA, or to a folder in your cache where every command looks. The exit
    code is 1 if a corpus is not complete.

    Example: likewise data get sts7 --data-dir corpora
    """
    for corpus in named_corpora(names):
        for one in corpus_sources(corpus):
            note(f"{corpus.name}: {corpus.title}. Licence: {corpus.licence}. From {_from(one, source)}.")
    with _watching() as watch:
        report = get(
            names,
            data_dir=data_dir,
            source=source,
            accept=accept or (),
            ask=_ask if _may_ask(as_json) else None,
            overwrite=overwrite,
            allow_different=allow_different,
            tell=note,
            watch=watch,
        )
    if as_json:
        out.print_json(to_json(_as_json(report)))
    else:
        _show(report, data_dir)
    if not report.complete:
        raise typer.Exit(1)


def source_words(corpus: Corpus) -> str:
    """How `data get` gets a corpus, in a word or two."""
    sources = corpus_sources(corpus)
    ways = dict.fromkeys("by hand" if one.manual else "download" for one in sources)
    said = " and ".join(ways) or "no source"
    return f"{said} (in part)" if sources and unobtainable(corpus) else said


def trial_words() -> str:
    """How many of the sources were ever tried."""
    sources = [one for one in all_sources().values() if one.downloads]
    tried = sum(one.fetched for one in sources)
    return f"We have fetched {tried} of the {len(sources)} sources that can be downloaded."


def source_json(source: CorpusSource) -> dict[str, Any]:
    """A source for programs."""
    return {
        "name": source.name,
        "page": source.page,
        "terms": source.terms or None,
        "by_hand": source.manual or None,
        "note": source.note or None,
        "fetched": source.fetched,
        "confidence": source.confidence,
        "urls": [download.url for download in source.downloads],
        "files": list(source.files),
    }


def columns_of(corpus: Corpus, split: Split) -> tuple[str, ...]:
    """The columns of a split's file that are read."""
    stored = stored_checksums(split.file)
    if stored is not None:
        return tuple(column.partition(":")[0] for column in stored.columns)
    parts = [column for text in corpus.texts for column in text.split("+")]
    return tuple(dict.fromkeys([*parts, *(rating.column for rating in corpus.ratings)]))


def show_corpus(corpus: Corpus, present: dict[str, bool]) -> None:
    """Print everything that is known about one corpus."""
    _line(f"{corpus.name}: {corpus.title}")
    _line(f"  licence     {corpus.licence}")
    _line(f"  citation    {corpus.citation}")
    for relation in corpus.relations:
        _line(f"  relation    {relation.name} {relation.scale}")
    if corpus.texts:
        _line(f"  texts       {', '.join(corpus.texts)}")
    for split in corpus.splits.values():
        _line(f"  split       {_split(split, columns_of(corpus, split), here=present[split.name])}")
    for one in corpus_sources(corpus):
        _show_source(one)
    absent = unobtainable(corpus)
    if absent:
        _line(f"  no source   {listed(absent, most=4)}")


def _show_source(source: CorpusSource) -> None:
    _line(f"  source      {source.page}")
    for download in source.downloads[:4]:
        _line(f"    {download.url}")
    if len(source.downloads) > 4:
        _line(f"    … and {len(source.downloads) - 4:,} more")
    if source.downloads:
        tried = "fetched before" if source.fetched else "never fetched by us"
        _line(f"    addresses   {tried}; {_CONFIDENCE[source.confidence]}")
    for label, text in (("terms", source.terms), ("by hand", source.manual), ("note", source.note)):
        if text:
            _line(f"    {label:<11} {text}")


_CONFIDENCE = {
    "documented": "from public documentation",
    "listed": "seen in a listing of the repository",
    "from memory": "from memory",
}


def _split(split: Split, columns: Sequence[str], *, here: bool) -> str:
    stands = "here" if here else "not here"
    return f"{split.name} {counted(split.rows, 'row')}, {split.file} ({', '.join(columns)}), {stands}"


def _line(text: str) -> None:
    out.print(text, markup=False)


def _from(source: CorpusSource, place: str | None) -> str:
    if place is not None:
        return place
    if source.manual:
        return f"{source.page}, by hand"
    tried = "" if source.fetched else f", which Likewise has never fetched ({_CONFIDENCE[source.confidence]})"
    return f"{', '.join(source.hosts)}{tried}"


def _may_ask(as_json: bool) -> bool:
    return not as_json and err.is_terminal and sys.stdin is not None and sys.stdin.isatty()


def _ask(source: CorpusSource) -> bool:
    names = ", ".join(corpus.name for corpus in corpora_of(source))
    return typer.confirm(printable(f"{names}: {source.terms} ({source.page}). Do you accept?"), err=True)


@contextmanager
def _watching() -> Iterator[GaugeFor]:
    """A progress bar for each download and each conversion, which vanishes when the next one begins."""
    with progress_bar("{task.fields[unit]}") as bar:
        tasks: list[Any] = []

        def watch(about: str, counted: str) -> Gauge:
            size, unit = (_KIB, "KiB") if counted == "bytes" else (1, "rows")
            for task in tasks:
                bar.remove_task(task)
            tasks[:] = [bar.add_task(printable(about), total=None, unit=unit)]
            return lambda done, total: bar.update(
                tasks[0], completed=done // size, total=None if total is None else total // size
            )

        yield watch


def _show(report: GetReport, data_dir: Path | None) -> None:
    for file in report.files:
        done = "written" if file.written else "here already"
        _line(f"{file.path}: {done}, {counted(file.rows, 'row')}, {file.said}")
        if not file.written and file.likeness == "other":
            _line("  Get it again with --overwrite.")
    for source in report.by_hand:
        err.print(by_hand(source), markup=False)
    for name, error in report.failed.items():
        err.print(f"{name}: {error}", style="bold red", markup=False)
    if report.unobtainable:
        files = listed(report.unobtainable, most=4)
        err.print(f"No published file has the rows of {files} (see `likewise data list NAME`).", markup=False)
    if any(file.written for file in report.files):
        _line(_how_to_use(report.folder, data_dir))


def _how_to_use(folder: Path, data_dir: Path | None) -> str:
    if data_dir is None and target_folder() == folder and folder in data_roots():
        where = "in your cache, where" if folder == data_home() else "the folder that LIKEWISE_DATA names, so"
        return f"The files are in {folder}, {where} every command finds them."
    return f"The files are in {folder}. Name it with --data-dir {folder}, or set LIKEWISE_DATA={folder}."


def _as_json(report: GetReport) -> dict[str, Any]:
    return {
        "folder": str(report.folder),
        "complete": report.complete,
        "files": [
            {
                "source": one.source,
                "file": one.file,
                "path": str(one.path),
                "rows": one.rows,
                "written": one.written,
                "likeness": one.likeness,
            }
            for one in report.files
        ],
        "by_hand": [{"source": one.name, "page": one.page, "do": one.manual} for one in report.by_hand],
        "failed": {name: str(error) for name, error in report.failed.items()},
        "unobtainable": report.unobtainable,
    }
