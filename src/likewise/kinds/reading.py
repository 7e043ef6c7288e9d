"""Read the rated rows of a stage, map them to its relations, filter them, split them into train and dev."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from likewise.data.cutting import split_by_text
from likewise.data.parallel import ParallelText, read_parallel
from likewise.data.parallel.reading import ReadReport
from likewise.data.reading import find_named_corpus
from likewise.data.splits import fold_rows, split_rows
from likewise.errors import DataError
from likewise.files import is_there
from likewise.kinds.base import DevSet, Job, Shared, StageData
from likewise.kinds.leaks import Entries, LeakFilter, SideFilter
from likewise.kinds.sources import load_source
from likewise.records import Record
from likewise.schema.frozen import ParallelSpec
from likewise.schema.parts import DataSpec
from likewise.wording import counted

Entry = TypeVar("Entry")

# Seeds share the sample of parallel text, and so its vectors in the cache.
_SAMPLE = 1


@dataclass(frozen=True, slots=True)
class RatedRows:
    """Training rows, how often each is drawn, the number of its data entry, and parallel text."""

    train: list[Record]
    weights: list[float] | None
    groups: list[int]
    parallel: tuple[ParallelText, ...] = ()

    def take(self, rows: Sequence[int]) -> RatedRows:
        """A copy with only these rows."""
        weights = None if self.weights is None else _take(rows, self.weights)
        return replace(self, train=_take(rows, self.train), weights=weights, groups=_take(rows, self.groups))


@dataclass(frozen=True, slots=True)
class RatedSpec:
    """The rows that a stage of any kind needs.

    `pairs` tells for a data entry whether a row holds two texts. `keep` may drop rows after reading and adds
    a note. `leaks` drops rows that are in evaluation sets. If there is no dev data, `share` of the rows is
    split off as the dev set, in the way that `by` names.
    """

    data: Sequence[DataSpec]
    dev: Sequence[DataSpec]
    leaks: LeakFilter
    share: float
    fold: tuple[int, int] | None = None
    pairs: Callable[[DataSpec], bool] = lambda spec: True
    keep: Callable[[list[Record], list[str]], list[Record]] = lambda records, notes: records
    parallel: Sequence[ParallelText] = ()
    by: Literal["row", "text"] = "row"


def read_rated(job: Job[Any], wanted: RatedSpec, notes: list[str]) -> tuple[RatedRows, tuple[DevSet, ...]]:
    """Read, filter and split the rows; `notes` receives what was left out."""
    train = [(spec, _rows(job, wanted, spec, notes)) for spec in wanted.data]
    dev = [(spec, _rows(job, wanted, spec, notes)) for spec in wanted.dev] if wanted.fold is None else []
    train, dev = wanted.leaks.filter(train, dev, notes)
    notes += _trained_dev(train, dev)
    records = [record for _, part in train for record in part]
    if not records and not wanted.parallel:
        raise DataError(
            f"stage {job.number} has no training pairs left. Check its data entries, filter_against and "
            "hold_out."
        )
    rows = RatedRows(
        records,
        [spec.weight for spec, part in train for _ in part],
        [number for number, (_, part) in enumerate(train) for _ in part],
        tuple(wanted.parallel),
    )
    sets = _dev_sets(dev)
    if not sets and records and wanted.share:
        rows, sets = _split(job, wanted, rows, notes)
    return rows, sets


def read_dev(
    job: Job[Any], specs: Sequence[DataSpec], leaks: LeakFilter, notes: list[str]
) -> tuple[DevSet, ...]:
    """Rated dev rows for a stage that has no rated training rows."""
    if not specs:
        return ()
    wanted = RatedSpec((), specs, leaks, 0.0)
    dev = leaks.filter([], [(spec, _rows(job, wanted, spec, notes)) for spec in specs], notes)[1]
    return _dev_sets(dev)


def _dev_sets(dev: Entries) -> tuple[DevSet, ...]:
    names = _set_names([spec for spec, _ in dev])
    return tuple(DevSet(name, part) for name, (_, part) in zip(names, dev, strict=True) if part)


def _trained_dev(train: Entries, dev: Entries) -> Iterator[str]:
    """A warning for each dev set that is the training file, or most of whose rows are training rows."""
    if not dev:
        return
    known = {(record.texts, tuple(record.values.items())) for _, part in train for record in part}
    files = {_place(spec.source) for spec, _ in train}
    for spec, part in dev:
        shared = sum((record.texts, tuple(record.values.items())) in known for record in part)
        if not part or shared * 2 < len(part):
            continue
        name = short_name(spec.source)
        same = _place(spec.source) in files
        found = (
            f"the dev set and the training data are the same file ({name})"
            if same
            else f"{shared:,} of {len(part):,} dev rows ({name}) are also training rows"
        )
        yield (
            f"{found}, so the dev score measures what was memorised. Name another file as dev, or leave dev "
            "out to have it split off from the training rows."
        )


def _place(source: str) -> str:
    """A source's resolved path, so that a file has one name however its path is written."""
    return str(Path(source).resolve()) if is_there(source) else source


def rated_data(job: Job[Any], rows: RatedRows, dev: tuple[DevSet, ...], notes: list[str]) -> StageData:
    """A stage's data from its rows, dev sets and notes; equal weights are dropped."""
    if len(set(rows.weights or ())) <= 1:
        rows = replace(rows, weights=None)
    prints = {entry.name: records_print(entry.records) for entry in (DevSet("train", rows.train), *dev)}
    prints |= {text.name: texts_print(text) for text in rows.parallel}
    return StageData(rows, dev, notes, prints, lambda: _texts(rows.train))


def read_stage(job: Job[Any], wanted: RatedSpec) -> StageData:
    """Read the rated rows of a stage as its data."""
    notes: list[str] = []
    rows, dev = read_rated(job, wanted, notes)
    return rated_data(job, rows, dev, notes)


def pack_rated(data: StageData, numbers: Callable[[Sequence[str]], list[int]]) -> dict[str, Any]:
    """Rated rows in a JSON-ready form, with texts as numbers."""

    def rows(records: Sequence[Record]) -> list[list[Any]]:
        return [[numbers(r.texts), dict(r.values), r.source, r.subset, r.language, r.links] for r in records]

    return {
        "train": rows(data.rows.train),
        "weights": data.rows.weights,
        "groups": data.rows.groups,
        "dev": [[entry.name, rows(entry.records)] for entry in data.dev],
        "notes": data.notes,
        "parallel": [
            [text.name, text.language_a, text.language_b, numbers(text.a), numbers(text.b)]
            for text in data.rows.parallel
        ],
    }


def unpack_rated(job: Job[Any], kept: Mapping[str, Any], texts: Sequence[str]) -> StageData:
    """The inverse of `pack_rated`."""

    def records(rows: Sequence[Sequence[Any]]) -> list[Record]:
        return [
            Record(
                tuple(texts[number] for number in places),
                values,
                source,
                subset,
                language,
                tuple((tuple(a), tuple(b)) for a, b in links),
            )
            for places, values, source, subset, language, links in rows
        ]

    def translations(name: str, a: str, b: str, first: list[int], second: list[int]) -> ParallelText:
        sides = [[texts[number] for number in side] for side in (first, second)]
        return ParallelText(name, a, b, sides[0], sides[1], ReadReport(name, rows=len(first)))

    parallel = tuple(translations(*entry) for entry in kept["parallel"])
    rows = RatedRows(records(kept["train"]), kept["weights"], kept["groups"], parallel)
    dev = tuple(DevSet(name, records(entries)) for name, entries in kept["dev"])
    return rated_data(job, rows, dev, kept["notes"])


def merged(fresh: StageData, known: StageData, again: Sequence[int]) -> StageData:
    """The added rows and the old rows whose numbers are in `again`, with the dev sets of both."""
    old: RatedRows = known.rows.take(again)
    new: RatedRows = fresh.rows
    groups = [0] * len(new.train) + [1 + group for group in old.groups]
    rows = RatedRows([*new.train, *old.train], None, groups)
    return replace(fresh, rows=rows, dev=(*known.dev, *fresh.dev))


def _rows(job: Job[Any], wanted: RatedSpec, spec: DataSpec, notes: list[str]) -> list[Record]:
    """The rows of one data entry, without held-out languages."""
    context = job.context
    found = load_source(
        spec,
        job.relations,
        data_dir=context.data_dir,
        tables=context.tables,
        seed=job.recipe.seed,
        pairs=wanted.pairs(spec),
        tell=context.tell,
    )
    found = _without_languages(found, job.recipe.hold_out, spec.source, notes)
    return wanted.keep(found, notes)


def _split(
    job: Job[Any], wanted: RatedSpec, rows: RatedRows, notes: list[str]
) -> tuple[RatedRows, tuple[DevSet, ...]]:
    """Split the dev set off the training rows: a share of them, or a fold."""
    records, seed = rows.train, job.recipe.seed
    if wanted.fold is not None:
        chosen, clean, sets = _hold_fold(wanted.fold, seed, rows, wanted.data)
    else:
        held, chosen, clean = _split_off(wanted, records, seed, notes)
        sets = (DevSet("split-off dev", [records[row] for row in sorted(held)]),)
    if not clean:
        drawn = "split off" if wanted.fold is None else "drawn as a fold"
        notes.append(
            f"the dev set was {drawn} at random: shared texts connect the rows, so it may share texts with "
            "the training rows" + ('; dev_by = "text" prevents that' if wanted.fold is None else "")
        )
    return rows.take([row for row in range(len(records)) if row not in chosen]), sets


def _split_off(
    wanted: RatedSpec, records: Sequence[Record], seed: int, notes: list[str]
) -> tuple[set[int], set[int], bool]:
    """The rows of the dev set, the rows that are not trained on, and whether these share no text with the
    training rows.
    """
    if wanted.by == "row":
        held, clean = split_rows(records, wanted.share, seed)
        return held, held, clean
    held, out = split_by_text(records, wanted.share, seed)
    if out:
        notes.append(
            f"left out {counted(len(out), 'row')} that have one text in common with the dev set and another "
            "with the training rows"
        )
    return held, held | out, True


def _hold_fold(
    fold: tuple[int, int], seed: int, rows: RatedRows, data: Sequence[DataSpec]
) -> tuple[set[int], bool, tuple[DevSet, ...]]:
    """The rows of a fold, whether their texts are in no other fold, and a dev set for each data entry."""
    folds, apart = fold_rows(rows.train, fold[1], seed, rows.groups)
    chosen = [row for row, number in enumerate(folds) if number == fold[0] - 1]
    sets = tuple(
        DevSet(f"{name} fold {fold[0]} of {fold[1]}", held)
        for place, name in enumerate(_set_names(data))
        if (held := [rows.train[row] for row in chosen if rows.groups[row] == place])
    )
    return set(chosen), apart, sets


def _set_names(specs: Sequence[DataSpec]) -> list[str]:
    """The names of dev sets: those of their sources, with path and number if two would be the same."""
    names = [short_name(spec.source) for spec in specs]
    if len(set(names)) == len(names):
        return names
    return [f"{spec.source} ({place})" for place, spec in enumerate(specs)]


def short_name(source: str) -> str:
    """The short name of a source: a corpus name, or a file name without folders."""
    return source if find_named_corpus(source) else Path(source).name


def _without_languages(
    records: list[Record], held: Sequence[str], source: str, notes: list[str]
) -> list[Record]:
    """The rows without a side in a held-out language; `notes` receives what was left out."""
    if not held:
        return records
    kept = [record for record in records if not set(record.language.split("-")) & set(held)]
    if len(kept) < len(records):
        left = counted(len(records) - len(kept), "row")
        notes.append(f"left out {left} of {source} in held-out languages ({', '.join(held)})")
    elif any(not record.language for record in records):
        notes.append(f"{source} names no language, so holding out {', '.join(held)} does not affect it")
    return kept


def read_translations(
    job: Job[Any], entries: Sequence[ParallelSpec], leaks: SideFilter, shared: Shared, notes: list[str]
) -> list[ParallelText]:
    """Read parallel text without held-out languages; text that several stages name is read once."""
    found = []
    for entry in entries:
        new = entry not in shared.translations
        if new:
            text = read_parallel(
                entry.source, entry.languages, columns=entry.columns, data_dir=job.context.data_dir
            )
            shared.translations[entry] = text.sample(entry.limit, _SAMPLE) if entry.limit else text
        text = shared.translations[entry]
        held = {text.language_a, text.language_b} & set(job.recipe.hold_out)
        if held:
            notes.append(f"left out {text.name} (held-out language: {', '.join(sorted(held))})")
            continue
        notes += [str(note) for note in text.report.notes] if new else []
        found.append(leaks.translations(text, notes))
    return found


def _take(rows: Sequence[int], entries: Sequence[Entry]) -> list[Entry]:
    return [entries[row] for row in rows]


def _texts(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
        yield from record.texts


def records_print(records: Sequence[Record]) -> str:
    """A fingerprint of the texts and values of rows."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(json.dumps([record.texts, dict(record.values)], ensure_ascii=False).encode("utf8"))
    return f"{len(records)} rows sha256:{digest.hexdigest()[:16]}"


def texts_print(pairs: ParallelText | Sequence[tuple[str, str]]) -> str:
    """A fingerprint of text pairs without values."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(json.dumps(pair, ensure_ascii=False).encode("utf8"))
    return f"{len(pairs)} rows sha256:{digest.hexdigest()[:16]}"
