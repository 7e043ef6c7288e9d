"""Read any source as records, validated row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from likewise.data.catalogue import Corpus, Split, corpus_names, find_corpus
from likewise.data.columns import (
    find_any_texts,
    find_text_column,
    find_text_columns,
    missing_column,
    require_single,
)
from likewise.data.corpora import corpus_table
from likewise.data.dialects import filled_rows
from likewise.data.ratings import find_relations
from likewise.data.rows import Fail, Row, Table, refuse
from likewise.data.tables import open_table
from likewise.data.values import MAX_CHARS, Places, to_record
from likewise.errors import DataError, Problem, UsageError
from likewise.files import is_there
from likewise.records import Record, Relation
from likewise.spelling import spelt
from likewise.wording import listed, sentence


def read(
    source: object,
    *,
    relations: Sequence[Relation | str] | None = None,
    text_a: str | None = None,
    text_b: str | None = None,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    max_chars: int = MAX_CHARS,
    pairs: bool = True,
) -> Iterator[Record]:
    """The records of a source, one at a time. Reading stops at the first problem.

    `source` is any source of `open_table`, or a corpus: "stsb/dev", "corpus:stsb/dev". `relations` are the
    relations to read, as objects or declared as `NAME:lo..hi` (None: all that are found; (): texts only).
    `columns` maps a relation's name to its column if they differ. Columns named `subset` and `language` fill
    those fields. `pairs=False` reads one text per row.
    """
    opened = open_source(source, split=split, data_dir=data_dir)
    texts = opened.find_texts(text_a, text_b, pairs=pairs)
    records = opened.read(texts, relations, columns=columns, max_chars=max_chars)
    return records if limit is None else islice(records, limit)


def _relations(
    opened: Opened, texts: Sequence[str], asked: Sequence[Relation | str] | None
) -> Sequence[Relation]:
    """The relations that are asked for; declarations in words are looked up in the source."""
    if asked is None:
        return opened.find_relations(texts, ())
    asked = [asked] if isinstance(asked, str) else asked
    declared = [one for one in asked if isinstance(one, str)]
    found = iter(opened.find_relations(texts, declared) if declared else ())
    return [next(found) if isinstance(one, str) else one for one in asked]


def load_records(
    source: object,
    *,
    relations: Sequence[Relation | str] | None = None,
    text_a: str | None = None,
    text_b: str | None = None,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    max_chars: int = MAX_CHARS,
    pairs: bool = True,
) -> list[Record]:
    """The records of a source as a list. The arguments are those of `read`."""
    return list(
        read(
            source,
            relations=relations,
            text_a=text_a,
            text_b=text_b,
            columns=columns,
            split=split,
            data_dir=data_dir,
            limit=limit,
            max_chars=max_chars,
            pairs=pairs,
        )
    )


def infer_relations(
    source: object,
    *,
    declared: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    pairs: bool | None = True,
) -> list[Relation]:
    """The relations of a source: the declared ones (`NAME:0..5`, `NAME:classes`), or all that are found."""
    opened = open_source(source, split=split, data_dir=data_dir)
    return opened.find_relations(opened.find_texts(text_a, text_b, pairs=pairs), declared)


@dataclass(frozen=True, slots=True)
class Opened:
    """An open table, and its corpus and split if it is a named one."""

    table: Table
    corpus: Corpus | None = None
    split: Split | None = None

    def find_texts(
        self,
        text_a: str | None,
        text_b: str | None,
        *,
        pairs: bool | None = True,
        name: str | None = None,
        option: str = "text_a",
    ) -> tuple[str, ...]:
        """The text columns: two, or one if the table does not hold pairs. None decides by the columns.

        `name` is what messages call the table, if not by its own name. `option` is the keyword of the option
        that names the column of single texts.
        """
        columns, name = self.table.columns, name or self.table.name
        if self.corpus is not None and text_a is None and text_b is None:
            return self.corpus.texts
        if pairs is None:
            return find_any_texts(columns, text_a, text_b, source=name)
        if not pairs:
            return (find_text_column(columns, text_a, source=name, option=option),)
        return find_text_columns(columns, text_a, text_b, source=name)

    def read(
        self,
        texts: Sequence[str],
        relations: Sequence[Relation | str] | None,
        *,
        columns: Mapping[str, str] | None = None,
        max_chars: int = MAX_CHARS,
    ) -> Iterator[Record]:
        """The records of the table, with the texts of these columns."""
        wanted = _relations(self, texts, relations)
        places = find_places(wanted, columns or {}, self.table)
        return _records(self.table, texts, places, max_chars)

    def find_relations(
        self, texts: Sequence[str], declared: Sequence[str], rows: Iterable[Row] | None = None
    ) -> list[Relation]:
        """The declared relations, the corpus's own relations, or those found in a first pass over the
        rows.
        """
        if self.corpus is not None and not declared:
            return list(self.corpus.relations)
        table = self.table
        forms = self.find_forms(declared)
        rows = table if rows is None else rows
        return find_relations(rows, table.columns, texts, forms, source=table.name)

    def find_forms(self, declared: Sequence[str]) -> Sequence[str]:
        """The declarations, with a corpus's own labels filled in. It is an error if they need a pass over
        rows that can be read only once.
        """
        table = self.table
        if self.corpus is not None:
            known = {relation.name: relation for relation in self.corpus.relations}
            declared = [_without_classes(text, known) for text in declared]
        if table.once and (not declared or any(text.endswith(":classes") for text in declared)):
            declared_so = spelt("relations", "NAME:lo..hi")
            remedy = f"declare the relations with their range or labels: {declared_so}"
            raise UsageError(f"{table.name} can be read only once. {sentence(remedy)}")
        return declared


def open_source(
    source: object, *, split: str | None = None, data_dir: str | Path | None = None, fail: Fail = refuse
) -> Opened:
    """Open a table or a named corpus."""
    named = find_named_corpus(source, split)
    if named is None:
        return Opened(open_table(source, split=split, fail=fail))
    return Opened(corpus_table(*named, data_dir=data_dir), *named)


def find_named_corpus(source: object, split: str | None = None) -> tuple[Corpus, Split] | None:
    """The corpus and split that a source names ("corpus:stsb/dev", "stsb/dev", "stsb"), or None."""
    if not isinstance(source, str):
        return None
    name, _, part = source.removeprefix("corpus:").partition("/")
    if not source.startswith("corpus:") and (name not in corpus_names() or is_there(source)):
        return None
    if part and split is not None and part != split:
        raise UsageError(f"{source!r} names one split, but the call names another, {split!r}. Name only one.")
    corpus = find_corpus(name)
    return corpus, corpus.find_split(part or split)


def name_splits(source: str) -> list[str]:
    """The source itself, or every split of a corpus that is named without a split."""
    name = source.removeprefix("corpus:")
    if name in corpus_names() and not is_there(source):
        return [f"corpus:{name}/{split}" for split in find_corpus(name).splits]
    return [source]


def find_places(relations: Sequence[Relation], columns: Mapping[str, str], table: Table) -> Places:
    """Each relation with its column. A missing column is an error."""
    places = {relation.name: (relation, columns.get(relation.name, relation.name)) for relation in relations}
    absent = [
        missing_column(
            column, table.columns, table.name, "name an existing column, or leave the relation out"
        )
        for _, column in places.values()
        if column not in table.columns
    ]
    if absent:
        raise DataError(absent)
    for _, column in places.values():
        require_single(column, table.columns, table.name)
    return places


def no_rows(table: Table) -> Problem:
    """The problem of a table without rows."""
    found = f"this has columns ({listed(table.columns)}) but no rows"
    return Problem(table.name, found, "add rows below the header")


def _records(table: Table, texts: Sequence[str], places: Places, max_chars: int) -> Iterator[Record]:
    empty = True
    for row in filled_rows(table):
        empty = False
        yield to_record(row, texts, places, max_chars=max_chars)
    if empty:
        raise DataError([no_rows(table)])


def _without_classes(text: str, known: Mapping[str, Relation]) -> str:
    """A declaration with the catalogue's own labels instead of `classes`."""
    name, _, form = text.partition(":")
    if form == "classes" and name in known and known[name].labels:
        return f"{name}:{'|'.join(known[name].labels)}"
    return text
