"""The list of sources (sources.toml): addresses, terms, and the files that are made from published ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product
from typing import Any
from urllib.parse import urlsplit

from likewise.data.canonical import plain_name
from likewise.data.catalogue import Corpus, corpus_names, find_corpus
from likewise.errors import UsageError

# Names for several corpora. The corpora of a suite are those of its tasks, which a test compares.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "sts7": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick"),
}
ALL = "all"
_MOST = 256


@dataclass(frozen=True, slots=True)
class Download:
    """One published file: its address, the name it is kept under, its sha256 if known, its most MiB."""

    url: str
    name: str
    sha256: str = ""
    most: int = _MOST

    @property
    def host(self) -> str:
        """The name of the server."""
        return urlsplit(self.url).hostname or ""


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A file of the data folder that is made from published files: its layout and the layout's options."""

    file: str
    layout: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CorpusSource:
    """Where files of the catalogue are published.

    `terms` must be accepted first. With `manual`, the user downloads by hand. `fetched` says whether we ever
    fetched the addresses, and `confidence` where they come from.
    """

    name: str
    page: str
    targets: tuple[TargetFile, ...]
    downloads: tuple[Download, ...] = ()
    terms: str = ""
    manual: str = ""
    note: str = ""
    fetched: bool = False
    confidence: str = "from memory"

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are made, without the ending of their compression."""
        return tuple(target.file for target in self.targets)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The servers, each once."""
        return tuple(dict.fromkeys(one.host for one in self.downloads))


def corpus_sources(corpus: Corpus) -> tuple[CorpusSource, ...]:
    """The sources that make files of a corpus."""
    wanted = set(corpus_files(corpus))
    return tuple(source for source in all_sources().values() if wanted & set(source.files))


def corpora_of(source: CorpusSource) -> tuple[Corpus, ...]:
    """The corpora that have files of a source."""
    corpora = map(find_corpus, corpus_names())
    return tuple(corpus for corpus in corpora if set(corpus_files(corpus)) & set(source.files))


def corpus_files(corpus: Corpus) -> tuple[str, ...]:
    """The files of a corpus, each once, without the ending of their compression."""
    return tuple(dict.fromkeys(plain_name(split.file) for split in corpus.splits.values()))


def unobtainable(corpus: Corpus) -> tuple[str, ...]:
    """The files of a corpus that no source makes."""
    made = {file for source in corpus_sources(corpus) for file in source.files}
    return tuple(file for file in corpus_files(corpus) if file not in made)


def named_corpora(names: Sequence[str]) -> tuple[Corpus, ...]:
    """The corpora of names, of which each is a corpus, a group such as sts7, or `all`."""
    if not names:
        raise UsageError(f"no corpus is named. Name one or more, {', '.join(GROUPS)} or {ALL}.")
    found = [one for name in names for one in (corpus_names() if name == ALL else GROUPS.get(name, (name,)))]
    return tuple(find_corpus(name) for name in dict.fromkeys(found))


@cache
def all_sources() -> Mapping[str, CorpusSource]:
    """All sources by name, in the order of the list."""
    text = resources.files("likewise.data.sources").joinpath("sources.toml").read_text(encoding="utf-8")
    return {name: make_source(name, entry) for name, entry in tomllib.loads(text).items()}


def make_source(name: str, entry: Mapping[str, Any]) -> CorpusSource:
    """The source in an entry of the list."""
    given = dict(entry)
    fill = given.pop("fill", {})
    downloads = [_download(one) for item in given.pop("downloads", ()) for one in _filled(item, fill)]
    targets = [_target(one) for item in given.pop("targets") for one in _filled(item, fill)]
    return CorpusSource(
        name,
        targets=tuple({target.file: target for target in targets}.values()),
        downloads=tuple(dict.fromkeys(downloads)),
        **given,
    )


def _download(entry: dict[str, Any]) -> Download:
    return Download(**{"name": urlsplit(entry["url"]).path.rpartition("/")[2], **entry})


def _target(entry: dict[str, Any]) -> TargetFile:
    return TargetFile(entry.pop("file"), entry.pop("layout"), entry)


def _filled(item: dict[str, Any], fill: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """An entry for every combination of the values that its braces stand for."""
    for values in product(*fill.values()):
        yield _put(item, dict(zip(fill, values, strict=True)))


def _put(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {_put(key, names): _put(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_put(inner, names) for inner in value]
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
    return value
