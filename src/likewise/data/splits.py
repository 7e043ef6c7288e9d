"""Split rows so that no text is on both sides.

Pairs that share a text (by the audit's key) form a group, and a whole group goes to one side. If one group
holds most rows, as in data made by recombining a few sentences, rows are split at random instead and the
caller is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.data.columns import find_any_texts
from likewise.data.compression import split_endings
from likewise.data.dialects import filled_rows
from likewise.data.keys import connected_rows, text_key
from likewise.data.reading import no_rows
from likewise.data.rows import Row
from likewise.data.tables import open_table
from likewise.data.values import to_text
from likewise.data.writing import TableWriter
from likewise.disk import folder_aside
from likewise.errors import DataError, UsageError
from likewise.outputs import check_output_file
from likewise.records import Record
from likewise.spelling import spelt

_LARGEST_GROUP = 0.5
# Of fewer rows no part is split off.
FEWEST_TO_SPLIT = 10


@dataclass(frozen=True, slots=True)
class SplitPart:
    """One file of a split. `apart` says that none of its texts, in the columns `texts`, is in another
    part.
    """

    file: Path
    rows: int
    apart: bool
    texts: tuple[str, ...]


def split_rows(records: Sequence[Record], share: float, seed: int) -> tuple[set[int], bool]:
    """Row numbers of a part of about `share`, and whether no text of it occurs in the other rows.

    Groups of rows that share texts are split off as a whole, large and small ones in about the same share.
    Groups with more rows than the part stay with the rest (`groups_too_large`). So does a group with the last
    remaining rows of a label, so that the part holds no label that could not be learnt.
    """
    check_enough(records)
    rng = np.random.default_rng([seed, len(records)])
    groups = text_groups(records)
    wanted = max(1, round(len(records) * share))
    if max(map(len, groups)) > _LARGEST_GROUP * len(records):
        groups, apart = [[row] for row in range(len(records))], False
    else:
        apart = True
    left = label_counts(records)
    chosen: set[int] = set()
    order = [groups[index] for index in rng.permutation(len(groups))]
    for group in _in_turn(order, wanted, share, rng):
        taken = label_counts([records[row] for row in group])
        if any(left[label] == count for label, count in taken.items()):
            continue
        if len(chosen) + len(group) <= wanted or not chosen:
            chosen.update(group)
            left.subtract(taken)
        if len(chosen) >= wanted:
            break
    return chosen or set(order[0]), apart


def _in_turn(
    order: Sequence[list[int]], wanted: int, share: float, rng: np.random.Generator
) -> list[list[int]]:
    """Groups in the order in which they are split off, so that large groups get their share too.

    Groups of two or more rows are sorted by size, and every (1/share)-th of them comes first, from a random
    start. Then comes the same share of the single rows, then all others in random order. Groups larger than
    the part come last.
    """
    several = sorted((group for group in order if 1 < len(group) <= wanted), key=len, reverse=True)
    if not several:
        return sorted(order, key=lambda group: len(group) > wanted)
    start = rng.random()
    steps = [int(at * share + start) for at in range(len(several) + 1)]
    drawn = [group for at, group in enumerate(several) if steps[at + 1] > steps[at]]
    singles = [group for group in order if len(group) == 1]
    cut = round(share * len(singles))
    rest = [group for at, group in enumerate(several) if steps[at + 1] == steps[at]] + singles[cut:]
    largest = [group for group in order if len(group) > wanted]
    return [*drawn, *singles[:cut], *(rest[at] for at in rng.permutation(len(rest))), *largest]


def groups_too_large(records: Sequence[Record], share: float) -> list[int]:
    """Sizes of the groups of rows that share texts and have more rows than a part of `share`, largest first.

    They stay with the rest, so the part says nothing about them. A caller should tell its user.
    """
    wanted = max(1, round(len(records) * share))
    return sorted((len(group) for group in text_groups(records) if len(group) > wanted), reverse=True)


def check_enough(records: Sequence[Record]) -> None:
    """Refuse to split a part off too few rows."""
    if len(records) < FEWEST_TO_SPLIT:
        raise DataError(
            f"{len(records)} pairs are too few to split off a dev set. Name a dev set in the recipe "
            "(stage.0.dev)."
        )


def label_counts(records: Sequence[Record]) -> Counter[tuple[str, str]]:
    """How many rows have each label of each relation that is answered by a label."""
    return Counter(
        (name, value) for record in records for name, value in record.values.items() if isinstance(value, str)
    )


def text_groups(records: Sequence[Record]) -> list[list[int]]:
    """Rows that are connected through shared texts, as lists of row numbers, in order of first appearance."""
    return connected_rows([record.texts for record in records])


def split_file(
    source: str | Path,
    output: str | Path,
    *,
    test: float = 0.2,
    dev: float = 0.0,
    seed: int = 1,
    text_a: str | None = None,
    text_b: str | None = None,
    overwrite: bool = False,
    safe: bool = False,
) -> dict[str, SplitPart]:
    """Write the rows of a file to train, dev and test files of the same format in a folder, with all columns.
    The rows of a spreadsheet are written as CSV.

    The folder holds only these files, so that they appear all together or not at all. The files of an earlier
    split are replaced only with `overwrite`. Shares are of all rows. No text is in two parts, unless one
    group of connected rows makes up most of the file. Then rows are drawn at random, and `SplitPart.apart` is
    False. `safe` is passed to TableWriter.
    """
    if not (0 < test < 1 and 0 <= dev < 1 and test + dev < 1):
        raise UsageError(
            f"the shares test {test:g} and dev {dev:g} leave no rows to train on. Choose smaller shares."
        )
    path, folder = Path(source), Path(output)
    ending = "".join(split_endings(path)).replace(".xlsx", ".csv")
    counts = dict.fromkeys(["train", *(["dev"] if dev else []), "test"], 0)
    names = [f"{name}{ending}" for name in counts]
    for name in names:
        check_output_file(folder / name, inputs=[path], overwrite=overwrite)
    _refuse_others(folder, names)
    table = open_table(path)
    columns = find_any_texts(table.columns, text_a, text_b, source=path.name)
    records = [_texts_of(row, columns) for row in filled_rows(table)]
    if not records:
        raise DataError([no_rows(table)])
    part, apart = _assign(records, {"test": test, "dev": dev}, seed)
    may_go = (lambda old: not _others(old, names)) if folder.is_dir() else None
    with folder_aside(folder, replace=may_go) as place, ExitStack() as stack:
        writers = {
            name: stack.enter_context(
                TableWriter(
                    place / f"{name}{ending}",
                    table.columns,
                    safe=safe,
                    delimiter=table.csv_delimiter,
                    bom=table.csv_bom,
                )
            )
            for name in counts
        }
        for number, row in enumerate(filled_rows(open_table(path))):
            writers[part[number]].write_row(row.fields)
            counts[part[number]] += 1
    return {
        name: SplitPart(folder / f"{name}{ending}", count, apart.get(name, True), columns)
        for name, count in counts.items()
    }


_PARTS = ("train", "dev", "test")


def _others(folder: Path, names: Sequence[str]) -> list[str]:
    """The entries of a folder other than the files of a split."""
    return sorted(
        path.name for path in folder.iterdir() if path.name not in names or path.is_symlink() or path.is_dir()
    )


def _refuse_others(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder with other files: the files of a split appear together, which needs a folder of
    their own.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{spelt('output')} {folder} is a file, but a split needs a folder. Name a folder.")
    others = _others(folder, names) if folder.is_dir() else []
    if others and all(name.partition(".")[0] in _PARTS for name in others):
        raise UsageError(
            f"{spelt('output')} {folder} holds {', '.join(others)} of another split, which would stay beside "
            "the new parts. Remove it, or name another folder."
        )
    if others:
        raise UsageError(
            f"{spelt('output')} {folder} holds other files ({', '.join(others[:3])}). Name a folder for the "
            "split alone."
        )
    if folder.is_dir() and Path.cwd().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{spelt('output')} {folder} is the current folder. Name another folder for the split."
        )


def _assign(
    records: Sequence[Record], shares: Mapping[str, float], seed: int
) -> tuple[list[str], dict[str, bool]]:
    """The part of each row and, for each part split off, whether its texts occur nowhere else."""
    part, apart = ["train"] * len(records), {}
    for name, share in shares.items():
        if share:
            rest = [row for row, where in enumerate(part) if where == "train"]
            chosen, apart[name] = split_rows(
                [records[row] for row in rest], share * len(records) / len(rest), seed
            )
            for row in chosen:
                part[rest[row]] = name
    return part, apart


def _texts_of(row: Row, columns: Sequence[str]) -> Record:
    texts = (to_text(row.fields.get(name), column=name, source=row.source) for name in columns)
    return Record(tuple(texts), source=row.source)


def fold_rows(
    records: Sequence[Record], count: int, seed: int, sources: Sequence[int] | None = None
) -> tuple[list[int], bool]:
    """The fold of each row, 0 to count−1, and whether no text is in two folds.

    It depends only on the rows and the seed. `sources` gives the data entry of each row.
    """
    groups, apart = text_groups(records), True
    if max(map(len, groups), default=0) > len(records) / count:
        groups, apart = _repeats(records), False
    if len(groups) < count:
        raise DataError(
            f"{len(groups)} different rows are too few for {count} folds. Give more rows, or fewer folds."
        )
    strata: dict[str, list[list[int]]] = {}
    for group in groups:
        first = group[0]
        strata.setdefault(_stratum(records[first], sources[first] if sources else 0), []).append(group)
    rng = np.random.default_rng([seed, len(records), count])
    folds, sizes = [0] * len(records), [0] * count
    for name in sorted(strata):
        _deal([strata[name][n] for n in rng.permutation(len(strata[name]))], folds, sizes)
    return folds, apart


def _deal(groups: Sequence[Sequence[int]], folds: list[int], sizes: list[int]) -> None:
    """Assign each group, the largest first, to the fold with the fewest rows of its stratum, then of any."""
    own = [0] * len(sizes)
    for group in sorted(groups, key=len, reverse=True):
        fold = min(range(len(sizes)), key=lambda n: (own[n], sizes[n]))
        own[fold] += len(group)
        sizes[fold] += len(group)
        for row in group:
            folds[row] = fold


def _stratum(record: Record, source: int) -> str:
    """The stratum of a row: its source and its labels. Numbers count by the nearest whole number."""
    values = [
        (name, value if isinstance(value, str) else round(value))
        for name, value in sorted(record.values.items())
        if value is not None
    ]
    return repr((source, values))


def _repeats(records: Sequence[Record]) -> list[list[int]]:
    """Rows that hold the same texts, in either order."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, record in enumerate(records):
        groups.setdefault(tuple(sorted(map(text_key, record.texts))), []).append(row)
    return list(groups.values())
