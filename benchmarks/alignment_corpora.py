"""Alignments and edits that people made, from the user's own data folder.

    ists2016/headlines.train.jsonl             chunks of two sentences and how each pair of them relates
    multimwa/mtref.dev.jsonl                   which word says what which other word says: sure and possible
    snli_counterfactual/original.dev.tsv       sentences, and in revised_hypothesis.dev.tsv two edits of each

Files may lie there plain or compressed. Their texts are not part of Likewise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from likewise.data.catalogue import Corpus, Split, find_corpus
from likewise.data.corpora import Folder, find_file, shown_name
from likewise.data.keys import text_key
from likewise.data.rows import Row, Table
from likewise.data.tables import open_table
from likewise.data.values import to_number, to_text
from likewise.errors import DataError, Problem

Chunk = tuple[int, ...]

_NOT_ALIGNED = "NOALI"
_WORD_LINK = re.compile(r"(\d{1,9})-(\d{1,9})")
_REMEDY = "give the file as published"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ChunkLink:
    """Two chunks that belong together: `kind` is EQUI, SPE1, SIMI, …, `score` 0 to 5 how near they are."""

    a: Chunk
    b: Chunk
    kind: str
    score: float | None


@dataclass(frozen=True, slots=True)
class ChunkedPair:
    """Two sentences in chunks; a chunk is its words' indices from 0, sorted, and may have gaps."""

    words_a: tuple[str, ...]
    words_b: tuple[str, ...]
    chunks_a: tuple[Chunk, ...]
    chunks_b: tuple[Chunk, ...]
    links: tuple[ChunkLink, ...]
    source: str


@dataclass(frozen=True, slots=True)
class WordLinkedPair:
    """Two sentences and the pairs of words, counted from 0, that people linked for sure or possibly."""

    words_a: tuple[str, ...]
    words_b: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    source: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A sentence, and what someone made of it so that its label changed."""

    original: str
    edited: str
    source: str


@dataclass(frozen=True, slots=True)
class MatchedEdits:
    """The edits of one file and what became of its rows: no original found, or nothing edited."""

    edits: tuple[Edit, ...]
    rows: int
    unmatched: int
    unchanged: int


def read_chunked(name: str, split: str, *, data_dir: Folder = None) -> list[ChunkedPair]:
    """Gold chunk alignments of interpretable STS: "headlines" or "images", "train" or "test"."""
    columns = ("tokens1", "tokens2", "alignment")
    return [_to_chunked(row) for row in _open(_ISTS, f"{name}_{split}", columns, data_dir)]


def read_word_links(name: str, split: str, *, data_dir: Folder = None) -> list[WordLinkedPair]:
    """Gold word alignments of MultiMWA: "mtref" or "wiki", "train", "dev" or "test"."""
    columns = ("sentence1", "sentence2", "sure", "possible")
    return [_to_word_linked(row) for row in _open(_MULTIMWA, f"{name}_{split}", columns, data_dir)]


def read_edits(kind: str, split: str, *, data_dir: Folder = None) -> list[Edit]:
    """Counterfactual edits of SNLI sentences: of the "hypothesis" or the "premise", "train" or "dev"."""
    return list(match_edits(kind, split, data_dir=data_dir).edits)


def match_edits(kind: str, split: str, *, data_dir: Folder = None) -> MatchedEdits:
    """What `read_edits` reads, with the number of rows that gave no edit.

    Two edits stand in the order of each original, and share its other sentence. An edit that stands elsewhere
    is matched where that sentence is one original's alone.
    """
    corpus = find_corpus("snli_counterfactual")
    revised = _open(corpus, f"revised_{kind}_{split}", corpus.texts, data_dir)
    originals = list(_open(corpus, f"original_{split}", corpus.texts, data_dir))
    other = "premise" if kind == "hypothesis" else "hypothesis"
    finder = _Originals(originals, other)
    edits, rows, unmatched = [], 0, 0
    for place, row in enumerate(revised):
        rows += 1
        original = finder.find(_text(row, other), place // 2)
        if original is None:
            unmatched += 1
            continue
        edit = Edit(_text(original, kind), _text(row, kind), row.source)
        if edit.original.split() != edit.edited.split():
            edits.append(edit)
    return MatchedEdits(tuple(edits), rows, unmatched, unchanged=rows - unmatched - len(edits))


def edited_words(original_words: Sequence[str], edited_words: Sequence[str]) -> frozenset[int]:
    """Which words of an edited sentence are new, by index; upper and lower case are one."""
    before, after = ([word.lower() for word in words] for words in (original_words, edited_words))
    # Without autojunk: in a long sentence "the" would count as noise.
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return frozenset(i for step, _, _, start, end in steps if step != "equal" for i in range(start, end))


class _Originals:
    """Finds the row that an edit was made from, by the sentence that was left alone."""

    def __init__(self, rows: Sequence[Row], other: str) -> None:
        self._rows = rows
        self._keys = [text_key(_text(row, other)) for row in rows]
        self._places: dict[str, list[int]] = {}
        for place, key in enumerate(self._keys):
            self._places.setdefault(key, []).append(place)

    def find(self, text: str, place: int) -> Row | None:
        """The row at its place if it has that sentence, or the only row that has it."""
        key = text_key(text)
        if place < len(self._keys) and self._keys[place] == key:
            return self._rows[place]
        places = self._places.get(key, [])
        return self._rows[places[0]] if len(places) == 1 else None


def _to_chunked(row: Row) -> ChunkedPair:
    words_a, words_b = _to_tokens(row, "tokens1"), _to_tokens(row, "tokens2")
    entries = [
        _to_chunk_link(entry, f"alignment[{number}]", (len(words_a), len(words_b)), row.source)
        for number, entry in enumerate(_to_list(row.fields.get("alignment"), "alignment", row.source))
    ]
    links = (link for link in entries if link.a and link.b and not _is_not_aligned(link.kind))
    return ChunkedPair(
        words_a,
        words_b,
        tuple(sorted({link.a for link in entries if link.a})),
        tuple(sorted({link.b for link in entries if link.b})),
        tuple(links),
        row.source,
    )


def _is_not_aligned(kind: str) -> bool:
    return kind.split("_")[0] == _NOT_ALIGNED  # NOALI_FACT is one too


def _to_tokens(row: Row, column: str) -> tuple[str, ...]:
    tokens = _to_list(row.fields.get(column), column, row.source)
    if not tokens or not all(isinstance(token, str) and token for token in tokens):
        raise _wrong(row.source, f"{column} is {_shown(tokens)}, expected a list of words")
    return tuple(tokens)


def _to_chunk_link(entry: object, name: str, sizes: tuple[int, int], source: str) -> ChunkLink:
    if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
        raise _wrong(source, f"{name} is {_shown(entry)}, expected an object with s1, s2 and type")
    return ChunkLink(
        _to_chunk(entry.get("s1"), f"{name}.s1", sizes[0], source),
        _to_chunk(entry.get("s2"), f"{name}.s2", sizes[1], source),
        entry["type"],
        _to_score(entry.get("score"), f"{name}.score", source),
    )


def _to_chunk(value: object, name: str, size: int, source: str) -> Chunk:
    """Indices from 0; the file counts from 1."""
    numbers = _to_list(value, name, source)
    # A bool is an int to Python; a JSON true is no index.
    if not all(type(number) is int and 1 <= number <= size for number in numbers):
        raise _wrong(source, f"{name} is {_shown(value)}, expected whole numbers from 1 to {size}")
    return tuple(sorted({number - 1 for number in numbers}))


def _to_score(value: object, name: str, source: str) -> float | None:
    if value is None:
        return None
    number = to_number(value) if type(value) in (int, float) else None
    if number is None or not math.isfinite(number):
        raise _wrong(source, f"{name} is {_shown(value)}, expected a finite number or null")
    return number


def _to_word_linked(row: Row) -> WordLinkedPair:
    words_a, words_b = (tuple(_text(row, column).split()) for column in ("sentence1", "sentence2"))
    sizes = (len(words_a), len(words_b))
    sure, possible = (_to_word_links(row, column, sizes) for column in ("sure", "possible"))
    return WordLinkedPair(words_a, words_b, sure, possible, row.source)


def _to_word_links(row: Row, column: str, sizes: tuple[int, int]) -> frozenset[tuple[int, int]]:
    value = row.fields.get(column)
    if not isinstance(value, str):
        raise _wrong(row.source, f'{column} is {_shown(value)}, expected a text such as "0-0 1-2"')
    links = set()
    for shown in value.split():
        match = _WORD_LINK.fullmatch(shown)
        link = (int(match[1]), int(match[2])) if match else sizes
        if link[0] >= sizes[0] or link[1] >= sizes[1]:
            expected = f"a-b with a below {sizes[0]} and b below {sizes[1]}"
            raise _wrong(row.source, f"{column} holds {_shown(shown)}, expected {expected}")
        links.add(link)
    return frozenset(links)


def _text(row: Row, column: str) -> str:
    return to_text(row.fields.get(column), column=column, source=row.source)


def _to_list(value: object, name: str, source: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(source, f"{name} is {_shown(value)}, expected a list")
    return value


def _open(corpus: Corpus, name: str, columns: Sequence[str], data_dir: Folder) -> Table:
    split = corpus.find_split(name)
    path = find_file(corpus, split, data_dir)
    table = open_table(path, name=shown_name(split, path))
    absent = [column for column in columns if column not in table.columns]
    if absent:
        found = f"no column {', '.join(absent)}; columns: {', '.join(table.columns)}"
        raise DataError([Problem(table.name, found, f"{_REMEDY} ({corpus.citation})")])
    return table


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _wrong(source: str, found: str) -> DataError:
    return DataError([Problem(source, found, _REMEDY)])


def _corpus(name: str, title: str, licence: str, citation: str, rows: Mapping[str, int]) -> Corpus:
    """A corpus that is no part of the catalogue, as it rates no texts."""
    splits = {
        split: Split(split, f"{name}/{split.replace('_', '.')}.jsonl.xz", count)
        for split, count in rows.items()
    }
    return Corpus(name, title, licence, citation, texts=(), ratings=(), splits=splits)


_ISTS = _corpus(
    "ists2016",
    "Interpretable STS: chunks aligned by kind and score",
    "SemEval task terms; image captions CC BY-SA",
    "Agirre et al. 2016",
    {"headlines_train": 756, "headlines_test": 375, "images_train": 750, "images_test": 375},
)
_MULTIMWA = _corpus(
    "multimwa",
    "MultiMWA: words aligned between sentences of one language",
    "no licence file; MTRef texts from LDC",
    "Lan et al. 2021",
    {
        **{"mtref_train": 2398, "mtref_dev": 800, "mtref_test": 800},
        **{"wiki_train": 2514, "wiki_dev": 533, "wiki_test": 1052},
    },
)
