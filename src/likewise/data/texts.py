"""Read single texts without ratings: every text of a named corpus of any kind, or of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from likewise.data.catalogue import Corpus, Split
from likewise.data.columns import find_any_texts, missing_column
from likewise.data.corpora import Folder, corpus_table, paraphrase_table, wrong_rows
from likewise.data.dialects import filled_rows
from likewise.data.parallel.languages import find_language
from likewise.data.parallel.reading import read_parallel
from likewise.data.reading import find_named_corpus, no_rows
from likewise.data.rows import Row, Table
from likewise.data.tables import open_table
from likewise.data.values import to_text
from likewise.errors import DataError, UsageError
from likewise.wording import listed


def read_texts(
    source: object,
    *,
    columns: Sequence[str] = (),
    language: str | None = None,
    data_dir: Folder = None,
) -> list[str]:
    """The different texts of a named corpus or a table, each once, in the order in which they first appear.

    The source may be rated pairs or texts ("snli/train"), translations ("tatoeba/en-de_train"), paraphrases
    ("asset/valid", with every text of a cell that is a list) or any table. Ratings are not read.

    Without `columns`, all text columns are read. `language` keeps one side of a corpus of two languages:
    "en". A named corpus must have its number of rows.
    """
    named = find_named_corpus(source)
    if named is None and language is not None:
        raise UsageError(
            f"language {language!r} chooses a side of a named corpus, but {source!r} is a table. Name its "
            "text column instead."
        )
    if named is None:
        table = open_table(source)
        found = _table_texts(table, columns or find_any_texts(table.columns, source=table.name))
    else:
        found = _corpus_texts(*named, columns, language, data_dir)
    return list(dict.fromkeys(found))


def _corpus_texts(
    corpus: Corpus, split: Split, columns: Sequence[str], language: str | None, data_dir: Folder
) -> Iterator[str]:
    places = _places(corpus, split, columns, language)
    if corpus.kind == "translations":
        name = f"{corpus.name}/{split.name}"
        text = read_parallel(name, data_dir=data_dir, keep_identical=True, keep_repeated=True)
        sides = (text.a, text.b)
        return (sentence for place in places for sentence in sides[place])
    open_split = corpus_table if corpus.kind == "rated" else paraphrase_table
    table = open_split(corpus, split, data_dir=data_dir)
    return _counted_texts(table, [corpus.texts[place] for place in places], corpus, split)


def _places(corpus: Corpus, split: Split, columns: Sequence[str], language: str | None) -> list[int]:
    """Which texts of a row are read: 0 is the first."""
    names = split.languages if corpus.kind == "translations" else corpus.texts
    absent = [column for column in columns if column not in names]
    if absent:
        found = f"corpus {corpus.name!r} has no text column {listed(absent)}"
        raise UsageError(f"{found}. Choose from {', '.join(names)}.")
    places = [place for place, name in enumerate(names) if not columns or name in columns]
    if language is None:
        return places
    code = find_language(language).code
    # A corpus in one language has it in every text; one of two languages has one on each side.
    spoken = split.languages if len(split.languages) == len(names) else split.languages[:1] * len(names)
    kept = [place for place in places if spoken[place] == code]
    if not kept:
        found = f"{corpus.name}/{split.name} has no texts in {code!r}"
        raise UsageError(f"{found}. Its languages are {', '.join(dict.fromkeys(spoken))}.")
    return kept


def _counted_texts(table: Table, columns: Sequence[str], corpus: Corpus, split: Split) -> Iterator[str]:
    rows = 0
    for row in table:
        rows += 1
        yield from _row_texts(row, columns)
    if rows != split.rows:
        raise DataError([wrong_rows(corpus, split, rows)])


def _table_texts(table: Table, columns: Sequence[str]) -> Iterator[str]:
    remedy = "name an existing column"
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise DataError([missing_column(name, table.columns, table.name, remedy) for name in absent])
    empty = True
    for row in filled_rows(table):
        empty = False
        yield from _row_texts(row, columns)
    if empty:
        raise DataError([no_rows(table)])


def _row_texts(row: Row, columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        cell = row.fields.get(column)
        for text in cell if isinstance(cell, list) else [cell]:
            yield to_text(text, column=column, source=row.source)
