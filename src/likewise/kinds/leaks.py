"""Leak filters: rows that stand in evaluation sets are dropped, and one line says how many.

LeakFilter   rated or labelled rows whose pair (or text) stands in an evaluation set of its kind
SideFilter   pairs without ratings, paraphrases and translations, that have one side in an evaluation set
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from likewise.data import load_records, open_table, read, text_key
from likewise.data.catalogue import is_parallel_corpus
from likewise.data.columns import find_any_texts
from likewise.data.corpora import Folder
from likewise.data.links import LinkedPair
from likewise.data.parallel import ParallelText, parallel_names, read_parallel
from likewise.data.paraphrases import scan_paraphrases, without_texts
from likewise.data.reading import find_named_corpus, name_splits
from likewise.evaluation.leakage import filter_overlap
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import load_task
from likewise.records import Record
from likewise.schema.parts import DataSpec

Entries = list[tuple[DataSpec, list[Record]]]


def leak_line(name: str, *, kept: int, total: int, others: str, rows: str = "rows", label: str = "") -> str:
    """What a filter did to one source, in words; `others` says where the rows stand that were dropped."""
    return f"{label or 'leak filter'}: {kept:,} of {total:,} {name} {rows} kept, others {others}"


@dataclass(frozen=True, slots=True)
class LeakFilter:
    """Drops rows that stand in evaluation sets: from dev always, from training unless a leak is allowed.

    `asked` limits suites to the sets that ask one of these relations: a model that answers one relation is
    measured on no other set.
    """

    against: Sequence[str]
    allow: bool = False
    data_dir: Folder = None
    pairs: bool = True
    asked: Collection[str] | None = None

    def filter(self, train: Entries, dev: Entries, notes: list[str]) -> tuple[Entries, Entries]:
        """What is left of training and dev rows; a line for each source goes to `notes`."""
        chosen = [name for name in self.against if not is_parallel_corpus(name)]
        if not chosen:
            return train, dev
        sets = evaluation_sets(chosen, data_dir=self.data_dir, pairs=self.pairs, asked=self.asked)
        names = f"{len(chosen)} evaluation sets" if len(chosen) > 2 else ", ".join(chosen)
        kept_train = []
        for spec, part in train:
            kept, _ = filter_overlap(part, sets)
            if self.allow:
                found = f"{len(part) - len(kept):,} of {len(part):,} {spec.source} rows stand in {names}"
                notes.append(f"LEAK LET IN: {found}")
                kept = part
            else:
                notes.append(
                    leak_line(spec.source, kept=len(kept), total=len(part), others=f"stand in {names}")
                )
            kept_train.append((spec, kept))
        kept_dev = []
        for spec, part in dev:
            kept, _ = filter_overlap(part, sets)
            others = f"stand in {names}"
            notes.append(leak_line(spec.source, kept=len(kept), total=len(part), others=others, label="dev"))
            kept_dev.append((spec, kept))
        return kept_train, kept_dev


class SideFilter:
    """Drops pairs that have one side in an evaluation set, unless a leak is allowed."""

    def __init__(self, against: Sequence[str], *, allow: bool = False, data_dir: Folder = None) -> None:
        self._against, self._allow = list(against), allow
        self._keys = side_keys(against, data_dir=data_dir)

    def translations(self, text: ParallelText, notes: list[str]) -> ParallelText:
        """Parallel text without rows that have a side in the sets."""
        if not self._keys:
            return text
        clean = text.without(self._keys)
        notes.append(self._line(text.name, len(clean), len(text), "rows"))
        return text if self._allow else clean

    def paraphrases(self, name: str, pairs: Sequence[LinkedPair], notes: list[str]) -> Sequence[LinkedPair]:
        """Paraphrases without those that have a side in the sets."""
        if not self._keys:
            return pairs
        clean = without_texts(pairs, self._keys)
        notes.append(self._line(name, len(clean), len(pairs), "pairs"))
        return pairs if self._allow else clean

    def _line(self, name: str, kept: int, total: int, rows: str) -> str:
        others = f"have a side in {', '.join(self._against)}"
        if self._allow:
            return f"LEAK LET IN: {total - kept:,} of {total:,} {name} {rows} {others}"
        return leak_line(name, kept=kept, total=total, others=others, rows=rows)


def evaluation_sets(
    names: Sequence[str],
    *,
    data_dir: Folder = None,
    pairs: bool = True,
    asked: Collection[str] | None = None,
) -> dict[str, list[Record]]:
    """Records by set name; a suite's name (sts7) stands for all of its sets, others are corpora or files.

    With `asked`, for those of its sets that ask one of these relations.
    """
    sets: dict[str, list[Record]] = {}
    for name in names:
        if name in SUITES:
            tasks = [task for task in SUITES[name].tasks if asked is None or task.asked in asked]
            sets.update({task.name: load_task(task, data_dir=data_dir) for task in tasks})
        else:
            sets[name] = load_records(name, relations=(), data_dir=data_dir, pairs=pairs)
    return sets


def side_keys(names: Sequence[str], *, data_dir: Folder) -> set[str]:
    """Overlap keys of every text of these sets: corpora of any kind, suites, files of pairs or single texts.

    A corpus without a split ("mrpc") is all of it, rows without a label too. Whoever drops what has one side
    among these keys is stricter than `evaluation_sets` lets the filter of rated pairs be, which goes by pair.
    """
    return {text_key(text) for name in names for text in _texts_of(name, data_dir)}


def _texts_of(name: str, data_dir: Folder) -> Iterator[str]:
    if name in SUITES:
        for task in SUITES[name].tasks:
            yield from (text for record in load_task(task, data_dir=data_dir) for text in record.texts)
    elif is_parallel_corpus(name):
        for part in [name] if "/" in name else parallel_names(name):
            parallel = read_parallel(part, data_dir=data_dir)
            yield from (*parallel.a, *parallel.b)
    else:
        for part in name_splits(name):
            yield from _part_texts(part, data_dir)


def _part_texts(part: str, data_dir: Folder) -> Iterator[str]:
    """The texts of a split or a file."""
    named = find_named_corpus(part)
    if named is not None and named[0].kind == "paraphrases":
        for pair in scan_paraphrases(part, data_dir=data_dir)[1]:
            yield from (pair.text_a, pair.text_b)
        return
    pairs = True
    if named is None:
        table = open_table(part)
        pairs = len(find_any_texts(table.columns, source=table.name)) == 2
    for record in read(part, relations=(), data_dir=data_dir, pairs=pairs):
        yield from record.texts
