"""Leak filters: drop training and dev rows that are in evaluation sets, and report how many.

LeakFilter   drops rated or labelled rows whose pair (or text) is in an evaluation set of its kind
SideFilter   drops pairs without ratings (paraphrases, translations) that have a side in an evaluation set

With `leak_filter = "strict"`, LeakFilter also drops rows that share a single text with an evaluation set and
near-duplicates of its rows. SideFilter also drops near-duplicates of a side (`likewise.evaluation.copies`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from likewise.data import load_records, open_table, read, text_key
from likewise.data.catalogue import is_parallel_corpus
from likewise.data.columns import find_any_texts
from likewise.data.corpora import Folder
from likewise.data.links import LinkedPair
from likewise.data.parallel import ParallelText, parallel_names, read_parallel
from likewise.data.paraphrases import scan_paraphrases, without_texts
from likewise.data.reading import find_named_corpus, name_splits
from likewise.evaluation.copies import NEAR, TextIndex
from likewise.evaluation.leakage import OverlapIndex
from likewise.evaluation.overlap import NEAR_COPY, PAIR, TEXT
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import load_task
from likewise.records import Record
from likewise.schema.base import FilteredStage
from likewise.schema.parts import DataSpec

Entries = list[tuple[DataSpec, list[Record]]]


def leak_line(name: str, *, kept: int, total: int, others: str, rows: str = "rows", label: str = "") -> str:
    """What a filter did to one source, in words; `others` says why rows were dropped: "found in X"."""
    return (
        f"leak filter{f', {label}' if label else ''}: kept {kept:,} of {total:,} {rows} of {name}; "
        f"dropped {total - kept:,} {others}"
    )


def leak_note(name: str, *, found: int, total: int, others: str, rows: str = "rows") -> str:
    """The line for a leak that is allowed: how many rows of a source were left in, and what they share."""
    return f"leak not filtered: {total:,} {rows} of {name}, {found:,} of them {others}"


@dataclass(frozen=True, slots=True)
class LeakFilter:
    """Drops rows that are in evaluation sets: always from dev, and from training unless a leak is allowed.

    `asked` limits suites to the sets that rate one of these relations. A model that answers one relation is
    not measured on any other set.
    """

    against: Sequence[str]
    allow: bool = False
    data_dir: Folder = None
    pairs: bool = True
    asked: Collection[str] | None = None
    strict: bool = False

    @classmethod
    def of(
        cls,
        stage: FilteredStage,
        data_dir: Folder,
        *,
        pairs: bool = True,
        asked: Collection[str] | None = None,
    ) -> LeakFilter:
        """The filter that a stage's keys describe."""
        strict = stage.leak_filter == "strict"
        return cls(stage.filter_against, stage.allow_leak, data_dir, pairs, asked, strict)

    def filter(self, train: Entries, dev: Entries, notes: list[str]) -> tuple[Entries, Entries]:
        """The rows of training and dev data that are kept; adds a line for each source to `notes`."""
        if self.strict and not self.against:
            notes.append('leak filter: "strict" drops nothing, because filter_against is empty')
        chosen = [name for name in self.against if not is_parallel_corpus(name)]
        if not chosen:
            return train, dev
        sets = evaluation_sets(chosen, data_dir=self.data_dir, pairs=self.pairs, asked=self.asked)
        index = OverlapIndex(sets, near=NEAR if self.strict else None)
        names = f"{len(chosen)} evaluation sets" if len(chosen) > 2 else ", ".join(chosen)
        kept_train = []
        for spec, part in train:
            kept, others = self._apart(part, index, names)
            if self.allow:
                found = len(part) - len(kept)
                notes.append(leak_note(spec.source, found=found, total=len(part), others=others))
                kept = part
            else:
                notes.append(leak_line(spec.source, kept=len(kept), total=len(part), others=others))
            kept_train.append((spec, kept))
        kept_dev = []
        for spec, part in dev:
            kept, others = self._apart(part, index, names)
            total = len(part)
            notes.append(leak_line(spec.source, kept=len(kept), total=total, others=others, label="dev set"))
            kept_dev.append((spec, kept))
        return kept_train, kept_dev

    def _apart(self, part: list[Record], index: OverlapIndex, names: str) -> tuple[list[Record], str]:
        """The rows to keep, and what the other rows share with the evaluation sets."""
        reasons = [index.compare(record.texts).reason(strict=self.strict) for record in part]
        kept = [record for record, reason in zip(part, reasons, strict=True) if not reason]
        if not self.strict:
            return kept, f"found in {names}"
        count = Counter(reasons)
        if part and len(part[0].texts) == 1:
            said = f"their text ({count[PAIR] + count[TEXT]:,})"
        else:
            said = f"their pair ({count[PAIR]:,}), one text ({count[TEXT]:,})"
        return kept, f"sharing {said} or a near-duplicate ({count[NEAR_COPY]:,}) with {names}"


class SideFilter:
    """Drops pairs that have one side in an evaluation set, unless a leak is allowed.

    When strict, it also drops pairs that have a near-duplicate of such a text as one side.
    """

    def __init__(
        self, against: Sequence[str], *, allow: bool = False, data_dir: Folder = None, strict: bool = False
    ) -> None:
        self._against, self._allow = list(against), allow
        self._keys = side_keys(against, data_dir=data_dir)
        self._copies = TextIndex(side_texts(against, data_dir=data_dir), near=NEAR) if strict else None

    @classmethod
    def of(
        cls, stage: FilteredStage, data_dir: Folder, *, against: Sequence[str] | None = None
    ) -> SideFilter:
        """The filter that a stage's keys describe; `against` limits it to some of the stage's sets."""
        strict = stage.leak_filter == "strict"
        names = stage.filter_against if against is None else against
        return cls(names, allow=stage.allow_leak, data_dir=data_dir, strict=strict)

    def translations(self, text: ParallelText, notes: list[str]) -> ParallelText:
        """The parallel text without rows that have a side in the evaluation sets."""
        if not self._keys:
            return text
        apart = text.without(self._keys)
        clean = apart.without(self._near_keys(apart))
        notes.append(self._line(text.name, len(clean), len(apart), len(text), "rows"))
        return text if self._allow else clean

    def paraphrases(self, name: str, pairs: Sequence[LinkedPair], notes: list[str]) -> Sequence[LinkedPair]:
        """The paraphrases without those that have a side in the evaluation sets."""
        if not self._keys:
            return pairs
        apart = without_texts(pairs, self._keys)
        clean = without_texts(apart, self._near_keys((pair.text_a, pair.text_b) for pair in apart))
        notes.append(self._line(name, len(clean), len(apart), len(pairs), "pairs"))
        return pairs if self._allow else clean

    def texts(self, name: str, texts: Sequence[str], notes: list[str]) -> Sequence[str]:
        """The texts without those that are in the evaluation sets."""
        if not self._keys:
            return texts
        apart = [text for text in texts if text_key(text) not in self._keys]
        near = self._near_keys((text,) for text in apart)
        clean = [text for text in apart if text_key(text) not in near] if near else apart
        notes.append(self._line(name, len(clean), len(apart), len(texts), "texts", "in"))
        return texts if self._allow else clean

    def _near_keys(self, pairs: Iterable[tuple[str, ...]]) -> Set[str]:
        """The keys of the sides that are near-duplicates of a text in the sets."""
        if self._copies is None:
            return frozenset()
        return {text_key(side) for pair in pairs for side in pair if self._copies.near(side)}

    def _line(
        self, name: str, kept: int, apart: int, total: int, rows: str, having: str = "with a side in"
    ) -> str:
        sets = ", ".join(self._against)
        others = f"{having} {sets}"
        if self._copies is not None:
            whole = "a side" if having.startswith("with") else "the text"
            sides = f"{whole} ({total - apart:,}) or a near-duplicate of one ({apart - kept:,})"
            others = f"with {sides} in {sets}"
        if self._allow:
            return leak_note(name, found=total - kept, total=total, others=others, rows=rows)
        return leak_line(name, kept=kept, total=total, others=others, rows=rows)


def evaluation_sets(
    names: Sequence[str],
    *,
    data_dir: Folder = None,
    pairs: bool = True,
    asked: Collection[str] | None = None,
) -> dict[str, list[Record]]:
    """Records by set name. A suite's name (sts7) stands for all its sets; other names are corpora or files.

    `asked` limits suites to the sets that rate one of these relations.
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

    A corpus name without a split ("mrpc") means all its splits, with rows that have no label. Dropping pairs
    by these keys is stricter than the filter of rated pairs, which drops a row only if both texts match.
    """
    return {text_key(text) for text in side_texts(names, data_dir=data_dir)}


def side_texts(names: Sequence[str], *, data_dir: Folder) -> Iterator[str]:
    """The texts from which `side_keys` makes keys, unchanged."""
    for name in names:
        yield from _texts_of(name, data_dir)


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
