"""Named corpora: find their files, convert values to the published scale, count rows, compare checksums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

from likewise.data.canonical import RowDigest, stored_checksums
from likewise.data.catalogue import Corpus, Split, find_corpus
from likewise.data.compression import COMPRESSIONS, STREAM_ERRORS, cut_short, open_bytes, split_endings
from likewise.data.drawing import drawn_table
from likewise.data.filecache import user_cache
from likewise.data.hub import hub_table
from likewise.data.rows import Fail, Row, Table
from likewise.data.tables import open_table
from likewise.data.values import is_missing, to_label, to_number, to_record
from likewise.errors import DataError, Problem, UsageError
from likewise.records import Record
from likewise.spelling import spelt
from likewise.wording import listed, quoted

DATA_VARIABLE = "LIKEWISE_DATA"

Folder = str | Path | None


def load_corpus(name: str, split: str | None = None, *, data_dir: Folder = None) -> list[Record]:
    """All records of one split, on the published scales. A wrong number of rows is an error."""
    corpus = find_corpus(name)
    part = corpus.find_split(split)
    table = corpus_table(corpus, part, data_dir=data_dir)
    places = {relation.name: (relation, relation.name) for relation in corpus.relations}
    records = [to_record(row, corpus.texts, places) for row in table]
    if len(records) != part.rows:
        raise DataError([wrong_rows(corpus, part, len(records))])
    return records


def corpus_table(corpus: Corpus, split: Split, *, data_dir: Folder = None) -> Table:
    """The rows of one split: its texts, its relations by name on the published scale, subset and language."""
    corpus.require("rated")
    if split.sides:
        first, second = (corpus_table(corpus, side, data_dir=data_dir) for side in split.sides)
        return crossed_table(corpus, split, first, second)
    stored = _stored_table(corpus, split, data_dir)
    parts = [column for text in corpus.texts for column in text.split("+")]
    drawn_by = (split.draw.by,) if split.draw is not None and split.draw.by else ()
    wanted = (*parts, *(rating.column for rating in corpus.ratings), *split.where, *drawn_by)
    _require_columns(stored, wanted, corpus)
    kept = _kept_table(stored, split, parts)

    def scan(fail: Fail) -> Iterator[Row]:
        for fields, source in kept.scan(fail):
            yield Row(_published(corpus, split, fields), source)

    columns = (*corpus.texts, *(relation.name for relation in corpus.relations), "subset", "language")
    return Table(stored.name, columns, scan, size=split.rows)


def paraphrase_table(corpus: Corpus, split: Split, *, data_dir: Folder = None) -> Table:
    """The rows of one split of paraphrases as they are in the file. The cell of a text may be a list of
    texts.
    """
    corpus.require("paraphrases")
    stored = _stored_table(corpus, split, data_dir)
    _require_columns(stored, corpus.texts, corpus)
    return stored


def locate(corpus: Corpus, split: Split, data_dir: Folder = None) -> Path | None:
    """The split's file in `data_dir` or LIKEWISE_DATA, under any compression, or None if it is in neither.

    For a crossed split it is the first side's file, provided that both files exist.
    """
    if split.sides:
        found = [locate(corpus, side, data_dir) for side in split.sides]
        return found[0] if all(found) else None
    for root in data_roots(data_dir):
        if root.is_file() and root.name == Path(split.file).name:
            return root
        path = file_in(root, split.file) or file_in(root / corpus.name, split.file)
        if path is not None:
            return path
    return None


def file_in(folder: Path, file: str) -> Path | None:
    """A corpus file in a folder, under any compression, or None if it is not there."""
    base = folder / file
    plain = base.with_suffix("") if split_endings(base)[1] else base
    for path in (base, plain, *(plain.with_name(plain.name + ending) for ending in COMPRESSIONS)):
        if path.is_file():
            return path
    return None


def split_files(corpus: Corpus, split: Split, data_dir: Folder = None) -> list[Path]:
    """The existing files of a split: both sides' files if it is crossed."""
    found = (locate(corpus, side, data_dir) for side in split.sides or (split,))
    return [file for file in found if file is not None]


def find_file(corpus: Corpus, split: Split, data_dir: Folder = None) -> Path:
    """The split's file. If it is missing, the error says where it was searched."""
    path = locate(corpus, split, data_dir)
    if path is None:
        raise DataError([_absent(corpus, split, data_dir)])
    return path


def shown_name(split: Split, path: Path) -> str:
    """The name of a split's file in messages: its place in the data folder, with the ending found there."""
    return str(Path(split.file).with_name(path.name))


def verify(corpus: Corpus, split: Split, data_dir: Folder = None) -> list[Problem]:
    """The problems of the split's file: missing, unreadable, another number of rows, or another checksum."""
    if split.sides:
        return _verify_crossed(corpus, split, data_dir)
    path = locate(corpus, split, data_dir)
    if path is None:
        return [_absent(corpus, split, data_dir)]
    digest = hashlib.sha256()
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(2**20):
                digest.update(chunk)
        rows = _count(corpus, split, data_dir)
    except STREAM_ERRORS as error:
        return [cut_short(str(path), error)]
    except DataError as error:
        return list(error.problems)
    problems = [] if rows == split.rows else [wrong_rows(corpus, split, rows)]
    if split.sha256 and digest.hexdigest() != split.sha256 and not _has_our_rows(split, path):
        found = (
            f"the sha256 is {digest.hexdigest()[:12]}… when decompressed, but "
            f"{split.sha256[:12]}… is expected, and its rows are other ones too"
        )
        remedy = "the file is another version of the corpus, so numbers on it cannot be compared with others"
        problems.append(Problem(split.file, found, remedy))
    return problems


def _has_our_rows(split: Split, path: Path) -> bool:
    """Whether a file with other bytes has the rows of our copy, as `data get` makes it.

    Another order of the rows is accepted too, unless the split is drawn by the order.
    """
    stored = stored_checksums(split.file)
    if stored is None:
        return False
    digest = RowDigest(stored.columns)
    for row in open_table(path):
        digest.add(row.fields)
    likeness = stored.likeness(digest.result())
    return likeness in ("same", "respelt") or (likeness == "reordered" and split.draw is None)


def _verify_crossed(corpus: Corpus, split: Split, data_dir: Folder) -> list[Problem]:
    problems = [problem for side in split.sides for problem in verify(corpus, side, data_dir)]
    if problems:
        return problems
    try:
        rows = _count(corpus, split, data_dir)
    except DataError as error:
        return list(error.problems)
    return [] if rows == split.rows else [wrong_rows(corpus, split, rows)]


def _count(corpus: Corpus, split: Split, data_dir: Folder) -> int:
    if corpus.kind == "translations":
        return sum(1 for _ in _stored_table(corpus, split, data_dir))
    open_split = corpus_table if corpus.kind == "rated" else paraphrase_table
    return sum(1 for _ in open_split(corpus, split, data_dir=data_dir))


def _require_columns(table: Table, wanted: Iterable[str], corpus: Corpus) -> None:
    absent = [column for column in dict.fromkeys(wanted) if column not in table.columns]
    if absent:
        found = f"there is no column {', '.join(absent)}. The columns are {listed(table.columns)}"
        raise DataError([Problem(table.name, found, f"use the file as published ({corpus.citation})")])


def _kept_table(stored: Table, split: Split, texts: Sequence[str]) -> Table:
    """The rows of the file that belong to the split."""

    def scan(fail: Fail) -> Iterator[Row]:
        for row in stored.scan(fail):
            if all(to_label(row.fields.get(column)) in values for column, values in split.where.items()):
                yield row

    table = Table(stored.name, stored.columns, scan)
    return table if split.draw is None else drawn_table(table, split.draw, texts)


def _published(corpus: Corpus, split: Split, fields: dict[str, object]) -> dict[str, object]:
    cells: dict[str, object] = {text: _join(text, fields) for text in corpus.texts}
    for rating in corpus.ratings:
        labels = split.labels.get(rating.relation.name, rating.labels)
        cells[rating.relation.name] = _move(fields.get(rating.column), labels, rating.plus)
    cells["subset"] = fields.get(corpus.subset, "") if corpus.subset else ""
    cells["language"] = split.language
    return cells


def _join(text: str, fields: dict[str, object]) -> object:
    if "+" not in text:
        return fields.get(text)
    return " ".join(str(cell) for column in text.split("+") if (cell := fields.get(column)))


def _move(cell: object, labels: Mapping[str, str], plus: float) -> object:
    if is_missing(cell):
        return None
    if labels:
        return labels.get(to_label(cell), cell)
    number = to_number(cell) if plus else None
    return cell if number is None else number + plus


def _stored_table(corpus: Corpus, split: Split, data_dir: Folder) -> Table:
    path = locate(corpus, split, data_dir)
    if path is not None:
        return open_table(path, name=shown_name(split, path))
    absent = _absent(corpus, split, data_dir)
    if corpus.hub is None or find_spec("datasets") is None:
        raise DataError([absent])
    hub = corpus.hub
    try:
        return hub_table(hub.id, split=hub.splits.get(split.name, split.name), config=hub.config)
    except DataError as error:
        raise DataError([absent, *error.problems]) from error


def data_roots(data_dir: Folder = None) -> list[Path]:
    """The folders that are searched for corpora: the named one, LIKEWISE_DATA, and what `data get` fills."""
    roots = [Path(root) for root in (data_dir, os.environ.get(DATA_VARIABLE)) if root]
    with suppress(UsageError, OSError):  # no home folder, or none that may be looked into
        if (home := data_home()).is_dir():
            roots.append(home)
    return roots


def data_home() -> Path:
    """The folder of corpora that is used if none is named."""
    return user_cache(DATA_VARIABLE) / "corpora"


def _absent(corpus: Corpus, split: Split, data_dir: Folder) -> Problem:
    looked = ", ".join(str(root) for root in data_roots(data_dir)) or "no folder was named"
    found = f"{split.file} was not found (searched in: {looked})"
    remedy = (
        f"get it with `likewise data get {corpus.name}`, or name the folder that holds it with "
        f"{spelt('data_dir', 'DIR')} or {DATA_VARIABLE}"
    )
    return Problem(f"corpus {corpus.name}/{split.name}", found, remedy)


def wrong_rows(corpus: Corpus, split: Split, rows: int) -> Problem:
    """The problem of a file whose number of rows differs from the catalogue."""
    found = f"the file has {rows:,} rows, but {split.rows:,} are expected"
    remedy = "copy or download it again, or read it by its path as a file of your own"
    return Problem(f"corpus {corpus.name}/{split.name}", found, remedy)


_REMEDY = "take both complete files from the same release"


def crossed_table(corpus: Corpus, split: Split, first: Table, second: Table) -> Table:
    """Row by row, the first text of one table and the second text from its translation.

    Both tables must have the same rows with the same ratings. The first row that differs is an error.
    """
    name = f"{first.name} + {Path(second.name).name}"

    def scan(_: Fail) -> Iterator[Row]:
        # No malformed row is stepped over: all that follow it would meet the translation of another row.
        for row, translated in zip_longest(first, second):
            if row is None or translated is None:
                raise DataError([_unmatched(translated, first) if row is None else _unmatched(row, second)])
            _check_ratings(corpus, row, translated)
            texts = {column: translated.fields[column] for column in corpus.texts[1:]}
            line = row.source.rpartition(":")[2]
            yield Row({**row.fields, **texts, "language": split.language}, f"{name}:{line}")

    return Table(name, first.columns, scan, size=split.rows)


def _unmatched(row: Row, shorter: Table) -> Problem:
    return Problem(row.source, f"this row has no translation, because {shorter.name} ends before it", _REMEDY)


def _check_ratings(corpus: Corpus, row: Row, translated: Row) -> None:
    for relation in corpus.relations:
        cell, other = row.fields[relation.name], translated.fields[relation.name]
        if not _is_same(cell, other):
            differs = f"{quoted(cell)} here, but {quoted(other)} in its translation at {translated.source}"
            found = f"{relation.name} is {differs}"
            raise DataError([Problem(row.source, found, _REMEDY)])


def _is_same(cell: object, other: object) -> bool:
    number = to_number(cell)
    return cell == other or (number is not None and number == to_number(other))
