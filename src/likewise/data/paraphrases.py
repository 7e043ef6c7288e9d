"""Read texts with the same meaning, without ratings, cleaned, and with links if the source has them.

    a named corpus     asset/valid, or the rows of a rated corpus that `only` picks: paws_wiki/dev
    a table            two text columns of any source of `open_table`; the second may hold lists
    a file of links    JSONL whose first object has `links` (data/links.py); words and spans are read too

Pairs of the first two sources are not aligned yet: they have no links, spans or words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from likewise.data.catalogue import Corpus, Split
from likewise.data.columns import find_text_columns, missing_column
from likewise.data.compression import split_endings
from likewise.data.corpora import corpus_table, paraphrase_table, verify, wrong_rows
from likewise.data.dialects import filled_rows
from likewise.data.findings import CheckReport
from likewise.data.keys import any_among, pair_key
from likewise.data.links import LinkedPair, read_links
from likewise.data.parallel.reading import IDENTICAL, REPEATED, ReadReport
from likewise.data.reading import find_named_corpus
from likewise.data.rows import Row, Table
from likewise.data.tables import open_table
from likewise.data.values import MAX_CHARS, to_label, to_number, to_text
from likewise.errors import DataError, Problem, UsageError

_FEW = 6
_LINES = (".jsonl", ".ndjson")
_REASONS = {IDENTICAL: "with the same text twice", REPEATED: "that repeat another"}
_KINDS = {IDENTICAL: "same text on both sides", REPEATED: "duplicate row"}

# A pair's two text keys in a fixed order: no two pairs that are kept share them.
Keyed = dict[tuple[str, str], LinkedPair]


def read_paraphrases(
    source: object,
    *,
    text_a: str | None = None,
    text_b: str | None = None,
    only: Mapping[str, str] | None = None,
    limit: int | None = None,
    seed: int = 1,
    data_dir: Path | str | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> list[LinkedPair]:
    """The pairs of a named corpus, a table or a file of links, in their original order.

    `text_a` and `text_b` name the text columns if their names are not known. `only` maps a column, or a
    relation of a rated corpus, to the value that rows must have: {"paraphrase": "paraphrase"}. A rated corpus
    needs it, since many of its pairs are not paraphrases. A named corpus must have its number of rows.

    Pairs whose two texts share a key (`likewise.data.keys`) and pairs that repeat another one in either order
    are dropped, and one line says how many. If there are more than `limit` pairs, those are kept whose keys
    come first by a sha256 with the seed. They are the same however the file is sorted, and a larger sample
    contains a smaller one.

    A pair that has no links yet has empty `words_a`, `words_b`, `links`, `spans_a` and `spans_b`, and is not
    `aligned`.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit is {limit}, but it must be at least 1. Leave it out to read all pairs.")
    name, pairs = scan_paraphrases(source, text_a=text_a, text_b=text_b, only=only, data_dir=data_dir)
    kept, report = _clean(name, pairs)
    if report.dropped:
        tell(_told(report))
    if not kept:
        raise DataError(
            [Problem(name, "this holds no pair of two different texts", "check the text columns")]
        )
    return list(kept.values()) if limit is None else _draw(kept, limit, seed)


def without_texts(pairs: Iterable[LinkedPair], keys: Set[str]) -> list[LinkedPair]:
    """The pairs of which neither side has one of these text keys, in their order.

    This is stricter than the leak filter of rated pairs, which drops a pair only if both texts stand together
    in an evaluation set. A rating leaks only through the pair. Paraphrases train the meaning of each
    sentence, so a sentence of a test set must not be trained on at all.
    """
    return [pair for pair in pairs if not any_among((pair.text_a, pair.text_b), keys)]


def scan_paraphrases(
    source: object,
    *,
    text_a: str | None = None,
    text_b: str | None = None,
    only: Mapping[str, str] | None = None,
    data_dir: Path | str | None = None,
) -> tuple[str, Iterator[LinkedPair]]:
    """The name of a source, and all its pairs, including those that `read_paraphrases` drops."""
    picked = _Only(dict(only or {}))
    named = find_named_corpus(source)
    if named is not None:
        return f"{named[0].name}/{named[1].name}", _corpus_pairs(*named, text_a, text_b, picked, data_dir)
    table = open_table(source)
    if (
        isinstance(source, str | Path)
        and split_endings(Path(source))[0] in _LINES
        and "links" in table.columns
    ):
        if text_a or text_b or only:
            found = f"{table.name} holds phrase links, whose columns are fixed"
            raise UsageError(f"{found}. Leave out text_a, text_b and only.")
        return table.name, read_links(source)
    texts = _require_columns(
        table, picked, lambda: find_text_columns(table.columns, text_a, text_b, source=table.name)
    )
    return table.name, _table_pairs(table, texts, picked)


def check_paraphrases(
    report: CheckReport, corpus: Corpus, split: Split, *, data_dir: str | Path | None, max_chars: int
) -> CheckReport:
    """Compare a split with the catalogue, and report the pairs that reading drops."""
    rows: list[Row] = []
    try:
        table = paraphrase_table(corpus, split, data_dir=data_dir)
        report.name, report.texts = table.name, corpus.texts
        for problem in verify(corpus, split, data_dir):
            report.add("other version", problem)
        rows += table
        pairs = [pair for row in rows for pair in _row_pairs(row, corpus.texts, max_chars)]
    except DataError as error:
        for problem in error.problems:
            report.add("unreadable", problem)
        return report
    report.rows = len(rows)
    for pair in pairs:
        report.lengths.update((len(pair.text_a), len(pair.text_b)))
    _, cleaned = _clean(report.name, pairs)
    for reason, problem in cleaned.drops.items():
        report.add(_KINDS[reason], problem, count=cleaned.dropped[reason])
    return report


@dataclass(slots=True)
class _Only:
    """The values that rows must have, by column, with counts of all rows and of kept rows, and the values
    that were seen.
    """

    wanted: dict[str, str]
    seen: dict[str, dict[str, None]] = field(default_factory=dict)
    rows: int = 0
    kept: int = 0

    def keeps(self, row: Row) -> bool:
        """Count a row, and return whether it has the values."""
        self.rows += 1
        for column, value in self.wanted.items():
            cell = row.fields.get(column)
            values = self.seen.setdefault(column, {})
            if len(values) <= _FEW:
                values[to_label(cell)] = None
            if not _equals(cell, value):
                return False
        self.kept += 1
        return True

    def require_rows(self, name: str) -> None:
        """Raise an error if no row has the values, because they are then probably a mistake."""
        if self.kept or not self.seen:
            return
        asked = " and ".join(f"{column} = {value!r}" for column, value in self.wanted.items())
        found = " and ".join(f"{column} holds {_listed(values)}" for column, values in self.seen.items())
        raise DataError([Problem(name, f"no row has {asked}, because {found}", "correct `only`")])


def _equals(cell: object, value: str) -> bool:
    """Whether a cell holds a value, as a label or as a number ("5.0" is "5")."""
    if to_label(cell) == value:
        return True
    number = to_number(cell)
    return number is not None and number == to_number(value)


def _listed(values: Iterable[str]) -> str:
    shown = [repr(value) for value in values]
    return ", ".join(shown[:_FEW]) + (", …" if len(shown) > _FEW else "")


def _require_columns(table: Table, only: _Only, find_texts: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """The text columns. Missing columns, and missing columns of `only`, are reported together."""
    problems = [
        missing_column(column, table.columns, table.name, "name an existing column in `only`")
        for column in only.wanted
        if column not in table.columns
    ]
    try:
        texts = find_texts()
    except DataError as error:
        raise DataError([*error.problems, *problems]) from None
    if problems:
        raise DataError(problems)
    return texts


def _corpus_pairs(
    corpus: Corpus,
    split: Split,
    text_a: str | None,
    text_b: str | None,
    only: _Only,
    data_dir: Path | str | None,
) -> Iterator[LinkedPair]:
    """The pairs of a corpus of paraphrases, or of the rows of a rated corpus that `only` picks."""
    if corpus.kind == "rated":
        _require_choice(corpus, only)
        table = corpus_table(corpus, split, data_dir=data_dir)
    else:
        table = paraphrase_table(corpus, split, data_dir=data_dir)
    first, *others = corpus.texts
    wanted = (text_a or first, *([text_b] if text_b else others))

    def find_texts() -> tuple[str, ...]:
        absent = [name for name in wanted if name not in table.columns]
        remedy = "name an existing column, or leave out text_a and text_b"
        if absent:
            raise DataError([missing_column(name, table.columns, table.name, remedy) for name in absent])
        return wanted

    texts = _require_columns(table, only, find_texts)
    yield from _table_pairs(table, texts, only)
    if only.rows != split.rows:
        raise DataError([wrong_rows(corpus, split, only.rows)])


def _require_choice(corpus: Corpus, only: _Only) -> None:
    """Refuse a rated corpus of single texts, and a rated corpus without a choice of the rows that are
    paraphrases.
    """
    if len(corpus.texts) != 2:
        raise UsageError(
            f"corpus {corpus.name!r} holds single texts, but pairs are expected. Name a corpus of pairs."
        )
    if not only.wanted:
        relation = corpus.relations[0]
        value = relation.labels[-1] if relation.labels else f"{relation.hi:g}"
        raise UsageError(
            f"corpus {corpus.name!r} holds rated pairs, and not all of them are paraphrases. Choose "
            f"those that are, such as only = {{{relation.name!r}: {value!r}}}"
        )


def _table_pairs(table: Table, texts: Sequence[str], only: _Only) -> Iterator[LinkedPair]:
    for row in filled_rows(table):
        if isinstance(row.fields.get("links"), list):
            remedy = (
                "put links on the first line of the .jsonl file too ([] if it has none), so "
                "that the file is read with links"
            )
            raise DataError([Problem(row.source, "this row has links, which would be ignored", remedy)])
        if only.keeps(row):
            yield from _row_pairs(row, texts)
    only.require_rows(table.name)


def _row_pairs(row: Row, texts: Sequence[str], max_chars: int = MAX_CHARS) -> Iterator[LinkedPair]:
    """The first text of a row with each of the others, and with every text of a cell that is a list."""
    fields, source = row
    first = to_text(fields.get(texts[0]), column=texts[0], source=source, max_chars=max_chars)
    for column in texts[1:]:
        cell = fields.get(column)
        for other in cell if isinstance(cell, list) else [cell]:
            second = to_text(other, column=column, source=source, max_chars=max_chars)
            yield LinkedPair(first, second, words_a=(), words_b=(), links=(), source=source)


def _clean(name: str, pairs: Iterable[LinkedPair]) -> tuple[Keyed, ReadReport]:
    """The pairs without identical texts and without repeats. The first of equal pairs is kept."""
    report = ReadReport(name, noun="pairs")
    kept: Keyed = {}
    for pair in pairs:
        report.rows += 1
        key = pair_key(pair.text_a, pair.text_b)
        if key[0] == key[1]:
            report.drop(IDENTICAL, pair.source)
        elif key in kept:
            report.drop(REPEATED, pair.source)
        else:
            kept[key] = pair
    return kept, report


def _told(report: ReadReport) -> str:
    reasons = ", ".join(f"{count:,} {_REASONS[reason]}" for reason, count in report.dropped.items())
    return f"{report.name}: kept {report.kept:,} of {report.rows:,} pairs, dropped {reasons}"


def _draw(kept: Keyed, limit: int, seed: int) -> list[LinkedPair]:
    """At most `limit` pairs, chosen by their keys alone, in their original order."""

    def standing(key: tuple[str, str]) -> bytes:
        return hashlib.sha256(f"{seed}:{key[0]}:{key[1]}".encode()).digest()

    chosen = set(sorted(kept, key=standing)[:limit])
    return [pair for key, pair in kept.items() if key in chosen]
