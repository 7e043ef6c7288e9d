"""Get named corpora: fetch what is published, or read what the user fetched, convert it, compare the rows.

    sources.toml → Download → a place inside the data folder → Bundle → layout → rows → checks → the file

A source is converted as a whole before one of its files takes its name, and a file takes it in one step. An
error or Ctrl-C leaves the data folder as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from likewise.data.canonical import Likeness, RowChecksums, RowDigest, plain_name, stored_checksums
from likewise.data.catalogue import Corpus, Split
from likewise.data.compression import split_endings
from likewise.data.corpora import DATA_VARIABLE, data_home, file_in
from likewise.data.sources.bundle import Bundle
from likewise.data.sources.fetching import Gauge, Patience, Tell, check_address, fetch_file
from likewise.data.sources.layouts import read_layout
from likewise.data.sources.listing import (
    CorpusSource,
    Download,
    TargetFile,
    corpora_of,
    corpus_files,
    corpus_sources,
    named_corpora,
    unobtainable,
)
from likewise.data.tables import open_table
from likewise.data.writing import TableWriter
from likewise.disk import make_folder, path_aside, saying_why, scratch_folder
from likewise.errors import DataError, LikewiseError, Problem, UsageError
from likewise.files import may_be_path
from likewise.spelling import spelt, spelt_call
from likewise.wording import counted, listed, sentence

# Asked for each source whose terms were not accepted yet. The answer says whether they are.
Ask = Callable[[CorpusSource], bool]
# A progress for one piece of work: what it is about, and what is counted, bytes or rows.
GaugeFor = Callable[[str, Literal["bytes", "rows"]], Gauge]

_SHOWN_EVERY = 500
_LIKE: dict[Likeness, str] = {
    "same": "the same rows",
    "respelt": "the same rows; case, punctuation or spaces differ",
    "reordered": "the same rows in another order, so splits that are drawn by chance differ",
    "other": "other rows than those that the published numbers were measured on",
}


@dataclass(frozen=True, slots=True)
class GotFile:
    """A file of a corpus in the data folder. `written` is False if it was there already.

    `likeness` says how alike its rows are to those of our copy, or is None if we had none to compare with.
    """

    source: str
    file: str
    path: Path
    rows: int
    written: bool
    likeness: Likeness | None

    @property
    def said(self) -> str:
        """How alike its rows are, in words."""
        return "there was no copy to compare with" if self.likeness is None else _LIKE[self.likeness]


@dataclass(slots=True)
class GetReport:
    """What `get` did: the files, the sources that need a person's hand, and those that failed and why."""

    folder: Path
    files: list[GotFile] = field(default_factory=list)
    by_hand: list[CorpusSource] = field(default_factory=list)
    failed: dict[str, LikewiseError] = field(default_factory=dict)
    unobtainable: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every file that can be made is in the data folder, as our own copy or like it."""
        return not (self.by_hand or self.failed or any(one.likeness == "other" for one in self.files))


def get(
    names: str | Sequence[str],
    *,
    data_dir: str | Path | None = None,
    source: str | Path | None = None,
    accept: Iterable[str] = (),
    ask: Ask | None = None,
    overwrite: bool = False,
    allow_different: bool = False,
    tell: Tell | None = None,
    watch: GaugeFor | None = None,
    patience: Patience | None = None,
) -> GetReport:
    """Put named corpora into the data folder: a corpus, several, a group such as "sts7", or "all".

    Published files are fetched, or read from `source`: a file or folder that you downloaded, or an https
    address. The folder is `data_dir`, LIKEWISE_DATA or a folder in the user's cache, which every command
    searches. `accept` names the corpora whose terms you accept. Rows that differ from those that the
    published numbers were measured on are refused, unless `allow_different`. Files that are there already
    stay, unless `overwrite`. If several sources are asked for, the report holds the errors of those that
    fail; the error of a single one is raised.
    """
    corpora = named_corpora([names] if isinstance(names, str) else names)
    report = GetReport(target_folder(data_dir))
    report.unobtainable = [file for corpus in corpora for file in unobtainable(corpus)]
    jobs = _jobs(corpora)
    for job in jobs:
        job.find_present(report, overwrite=overwrite)
    open_jobs = [job for job in jobs if job.targets]
    place = _place(source, open_jobs)
    if place is None:
        report.by_hand = [job.source for job in open_jobs if job.source.manual]
        open_jobs = [job for job in open_jobs if not job.source.manual]
        if report.by_hand and len(jobs) == 1:
            raise UsageError(by_hand(report.by_hand[0]))
    _accept([job.source for job in open_jobs], {*accept}, ask)
    way = _Way(report.folder, overwrite, allow_different, tell, watch, patience)
    for job in open_jobs:
        try:
            report.files += job.run(place, way)
        except LikewiseError as error:
            if len(open_jobs) == 1:
                raise
            report.failed[job.source.name] = error
    if place is not None and open_jobs and len(report.failed) == len(open_jobs):
        raise next(iter(report.failed.values()))
    return report


def target_folder(data_dir: str | Path | None = None) -> Path:
    """The folder that corpora are put into: the named one, LIKEWISE_DATA, or one in the user's cache."""
    return Path(data_dir or os.environ.get(DATA_VARIABLE) or data_home())


def by_hand(source: CorpusSource) -> str:
    """What a person has to do for a source that no program may fetch."""
    name = corpora_of(source)[0].name
    how = f"Then run: {spelt_call('data get', name, place='FILE_OR_FOLDER')}"
    return f"{source.name} must be downloaded by hand ({source.page}). {sentence(source.manual)} {how}"


def file_checksums(path: Path, columns: Sequence[str]) -> RowChecksums:
    """The checksums of the rows in a file."""
    digest = RowDigest(columns)
    for row in open_table(path):
        digest.add(row.fields)
    return digest.result()


@dataclass(frozen=True, slots=True)
class _Way:
    """How files are got, and where they go."""

    folder: Path
    overwrite: bool
    allow_different: bool
    tell: Tell | None
    watch: GaugeFor | None
    patience: Patience | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the user has the published files: a path, or another address."""

    path: Path | None = None
    url: str = ""


@dataclass(slots=True)
class _Made:
    """A converted file that waits for its name."""

    target: TargetFile
    path: Path
    final: Path
    rows: int
    likeness: Likeness | None


@dataclass(slots=True)
class _Job:
    """A source and the files that are still wanted from it."""

    source: CorpusSource
    targets: list[TargetFile]

    def find_present(self, report: GetReport, *, overwrite: bool) -> None:
        """Take out what is in the data folder already."""
        for target in () if overwrite else tuple(self.targets):
            path = file_in(report.folder, target.file)
            if path is None:
                continue
            self.targets.remove(target)
            stored = stored_checksums(target.file)
            found = file_checksums(path, () if stored is None else stored.columns)
            likeness = None if stored is None else stored.likeness(found)
            report.files.append(
                GotFile(self.source.name, target.file, path, found.rows, written=False, likeness=likeness)
            )

    def run(self, place: _Place | None, way: _Way) -> list[GotFile]:
        """Fetch or open what is published, convert it, compare it, and put it in the data folder."""
        with saying_why(way.folder):
            make_folder(way.folder)
        with scratch_folder(way.folder) as work, ExitStack() as stack:
            path = place.path if place is not None else None
            if path is None:
                path = work / "published"
                self._fetch(path, place, way)
            names = [download.name for download in self.source.downloads]
            bundle = stack.enter_context(Bundle([path], archives=names))
            made = [
                self._convert(bundle, target, work / f"made-{n}", way) for n, target in self._found(bundle)
            ]
            return [self._name(one, overwrite=way.overwrite) for one in made]

    def _fetch(self, folder: Path, place: _Place | None, way: _Way) -> None:
        downloads: Sequence[Download] = self.source.downloads
        if place is not None:
            most = max((one.most for one in downloads), default=1024)
            downloads = [Download(place.url, _name_in(place.url), most=most)]
        for download in downloads:
            path = folder / download.name
            path.parent.mkdir(parents=True, exist_ok=True)
            progress = None if way.watch is None else way.watch(download.name, "bytes")
            fetch_file(download, path, patience=way.patience, progress=progress, tell=way.tell)

    def _found(self, bundle: Bundle) -> Iterator[tuple[int, TargetFile]]:
        """The wanted targets. A published file that holds only some of them gives these."""
        named = [(n, one) for n, one in enumerate(self.targets) if "member" in one.options]
        there = [(n, one) for n, one in named if bundle.find(one.options["member"]) is not None]
        return iter(there if there and len(named) == len(self.targets) else list(enumerate(self.targets)))

    def _convert(self, bundle: Bundle, target: TargetFile, work: Path, way: _Way) -> _Made:
        stored, splits = stored_checksums(target.file), _splits_of(self.source, target)
        columns, final = () if stored is None else stored.columns, _final(way.folder, splits[0].file)
        digest = RowDigest(columns)
        rows = read_layout(
            bundle, target.layout, target.options, columns=columns, labels=_labels(self.source)
        )
        # A file that we never had is counted by its parts.
        expected = sum(split.rows for split in splits) if stored is None else stored.rows
        work.mkdir()
        path = work / f"rows{_ending(final)}"
        with TableWriter(path) as writer:
            progress = None if way.watch is None else way.watch(target.file, "rows")
            for number, fields in enumerate(rows, start=1):
                digest.add(fields)
                writer.write_row(fields)
                if progress is not None and number % _SHOWN_EVERY == 0:
                    progress(number, expected or None)
        found = digest.result()
        likeness = None if stored is None else stored.likeness(found)
        if not found.rows or (not way.allow_different and (likeness == "other" or found.rows != expected)):
            raise DataError([_different(target, found, stored, expected)])
        return _Made(target, path, final, found.rows, likeness)

    def _name(self, made: _Made, *, overwrite: bool) -> GotFile:
        final = made.final
        with path_aside(final, "".join(final.suffixes[-2:]), replace=overwrite) as whole:
            made.path.replace(whole)
        return GotFile(self.source.name, made.target.file, final, made.rows, True, made.likeness)


def _jobs(corpora: Sequence[Corpus]) -> list[_Job]:
    """The sources of corpora with the targets that these corpora need."""
    files = {file for corpus in corpora for file in corpus_files(corpus)}
    sources = {source.name: source for corpus in corpora for source in corpus_sources(corpus)}
    return [_Job(one, [t for t in one.targets if t.file in files]) for one in sources.values()]


def _place(source: str | Path | None, jobs: Sequence[_Job]) -> _Place | None:
    if source is None:
        return None
    if isinstance(source, str) and source.casefold().startswith(("https://", "http://")):
        check_address(source)
        if len(jobs) > 1:
            named = listed([job.source.name for job in jobs])
            raise UsageError(f"one address cannot hold the files of {named}. Name one corpus.")
        return _Place(url=source)
    path = Path(source).expanduser()
    if not path.exists():
        raise UsageError(
            f"{spelt('place', str(source))} does not exist. Name a file, a folder or an https address."
        )
    return _Place(path=path)


def _accept(sources: Sequence[CorpusSource], accepted: set[str], ask: Ask | None) -> None:
    """Refuse to go on while terms are not accepted. One error names all of them."""
    open_terms = []
    for source in sources:
        names = {source.name, *(corpus.name for corpus in corpora_of(source))}
        if source.terms and not names & accepted and not (ask is not None and ask(source)):
            open_terms.append(source)
    if open_terms:
        said = "\n".join(f"  {one.name}: {one.terms} ({one.page})" for one in open_terms)
        options = spelt("accept", [one.name for one in open_terms])
        raise UsageError(f"These terms must be accepted first:\n{said}\nIf you accept them, add: {options}")


def _different(
    target: TargetFile, found: RowChecksums, stored: RowChecksums | None, expected: int
) -> Problem:
    if found.rows != expected:
        said = f"{counted(found.rows, 'row')} came out, but {expected:,} are expected"
    else:
        said = f"the {counted(found.rows, 'row')} are not those that the published numbers were measured on"
        if stored is not None:
            said += f" (checksum {found.bag[:12]}…, expected {stored.bag[:12]}…)"
    remedy = "nothing was written. Take another release"
    if found.rows:
        remedy += f", or keep these rows with {spelt('allow_different')}"
    return Problem(target.file, said, remedy)


def _splits_of(source: CorpusSource, target: TargetFile) -> list[Split]:
    """The splits that a target's file holds."""
    splits = [split for corpus in corpora_of(source) for split in corpus.splits.values()]
    return [split for split in splits if plain_name(split.file) == target.file]


def _labels(source: CorpusSource) -> tuple[str, ...]:
    return next((one.labels for corpus in corpora_of(source) for one in corpus.relations if one.labels), ())


def _final(folder: Path, file: str) -> Path:
    """The path of a file that is written: the one that stands there already, or a new one, with gzip in the
    place of another compression, which takes several times as long.
    """
    new = f"{plain_name(file)}.gz" if plain_name(file) != file else file
    return file_in(folder, file) or folder / new


def _ending(final: Path) -> str:
    """The ending under which rows are written: the file's own, and .tsv for SICK.txt, which holds TSV."""
    ending, compression = split_endings(final)
    return f"{'.tsv' if ending == '.txt' else ending}{compression}"


def _name_in(url: str) -> str:
    """The name of a file at an address. It decides how the file is read and leads to no other folder."""
    name = urlsplit(url).path.rpartition("/")[2]
    return name if name.strip(".") and may_be_path(name) else "file"
