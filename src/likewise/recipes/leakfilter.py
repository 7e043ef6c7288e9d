"""Names of evaluation sets to their records, for the leak filter and the audit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from likewise.data import corpus_names, find_corpus, load, open_table, read, text_key
from likewise.data.columns import find_any_texts
from likewise.data.parallel import parallel_names, read_parallel
from likewise.data.paraphrases import scan_paraphrases
from likewise.data.reading import find_named_corpus, name_splits
from likewise.evaluation.suites import SUITES
from likewise.evaluation.tasks import load_task
from likewise.records import Record


def evaluation_sets(
    names: Sequence[str],
    *,
    data_dir: str | Path | None = None,
    pairs: bool = True,
    asked: Collection[str] | None = None,
) -> dict[str, list[Record]]:
    """Records by set name; a suite's name (sts7) stands for all of its sets, others are corpora or files.

    With `asked`, for those of its sets that ask one of these relations: a model that answers one relation is
    measured on no other set.
    """
    sets: dict[str, list[Record]] = {}
    for name in names:
        if name in SUITES:
            tasks = [task for task in SUITES[name].tasks if asked is None or task.asked in asked]
            sets.update({task.name: load_task(task, data_dir=data_dir) for task in tasks})
        else:
            sets[name] = load(name, relations=(), data_dir=data_dir, pairs=pairs)
    return sets


def is_parallel(name: str) -> bool:
    """Whether an evaluation set is parallel text: translations are filtered against such, rated pairs not."""
    head = name.partition("/")[0]
    return head in corpus_names() and find_corpus(head).kind == "parallel"


def parallel_keys(names: Sequence[str], *, data_dir: Path | str | None) -> set[str]:
    """Overlap keys of all texts of the parallel sets among these; a corpus without a split is all of it."""
    return side_keys([name for name in names if is_parallel(name)], data_dir=data_dir)


def side_keys(names: Sequence[str], *, data_dir: Path | str | None) -> set[str]:
    """Overlap keys of every text of these sets: corpora of any kind, suites, files of pairs or single texts.

    A corpus without a split ("mrpc") is all of it, rows without a label too. Whoever drops what has one side
    among these keys is stricter than `evaluation_sets` lets the filter of rated pairs be, which goes by pair.
    """
    return {text_key(text) for name in names for text in _texts_of(name, data_dir)}


def sides_line(name: str, *, kept: int, total: int, against: Sequence[str]) -> str:
    """What the filter by side did to one source, in words."""
    found = f"leak filter: {kept:,} of {total:,} {name} pairs kept"
    return f"{found}, others have a side in {', '.join(against)}"


def _texts_of(name: str, data_dir: Path | str | None) -> Iterator[str]:
    if name in SUITES:
        for task in SUITES[name].tasks:
            yield from (text for record in load_task(task, data_dir=data_dir) for text in record.texts)
    elif is_parallel(name):
        for part in [name] if "/" in name else parallel_names(name):
            parallel = read_parallel(part, data_dir=data_dir)
            yield from (*parallel.a, *parallel.b)
    else:
        for part in name_splits(name):
            yield from _part_texts(part, data_dir)


def _part_texts(part: str, data_dir: Path | str | None) -> Iterator[str]:
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
