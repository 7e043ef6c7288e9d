"""The named corpora: where `likewise data get` has each from, and under which licence."""

from __future__ import annotations

from likewise.data.catalogue import Corpus, corpus_names, find_corpus
from likewise.data.sources.listing import CorpusSource, corpus_sources, unobtainable
from tabling.common import markdown


def corpora() -> str:
    """A row for each corpus."""
    header = ["corpus", "licence", "source", "way", "addresses", "terms to accept"]
    return markdown(header, [_row(find_corpus(name)) for name in corpus_names()])


def _row(corpus: Corpus) -> list[str]:
    sources = corpus_sources(corpus)
    pages = dict.fromkeys(f"[{_host(one)}]({one.page})" for one in sources)
    terms = dict.fromkeys(one.terms for one in sources if one.terms)
    return [
        f"`{corpus.name}`",
        corpus.licence.replace("|", "\\|"),
        ", ".join(pages),
        _way(corpus, sources),
        ", ".join(dict.fromkeys(_tried(one) for one in sources)),
        "; ".join(terms) or "–",
    ]


def _host(source: CorpusSource) -> str:
    return source.page.removeprefix("https://").partition("/")[0]


def _way(corpus: Corpus, sources: tuple[CorpusSource, ...]) -> str:
    ways = " and ".join(dict.fromkeys("by hand" if one.manual else "download" for one in sources))
    return f"{ways}; without {len(unobtainable(corpus))} training files" if unobtainable(corpus) else ways


def _tried(source: CorpusSource) -> str:
    return "fetched" if source.fetched else f"{source.confidence}, never fetched"
