"""Read a recipe's data entries as records on the recipe's relations.

Values are renamed, rescaled and rounded, and noise is added, as the entry says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from likewise.data import infer_relations, load_records, open_table, read
from likewise.data.catalogue import is_parallel_corpus
from likewise.data.parallel import read_parallel
from likewise.data.reading import find_named_corpus
from likewise.errors import DataError, Problem
from likewise.methods.regression import round_half_even
from likewise.records import Record, Relation, Value
from likewise.schema.parts import DataSpec
from likewise.spelling import spelt


def load_source(
    spec: DataSpec,
    relations: Mapping[str, Relation],
    *,
    data_dir: str | Path | None = None,
    tables: Mapping[str, object] | None = None,
    seed: int = 1,
    pairs: bool = True,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Record]:
    """The rows of one data entry, with values on those of the recipe's relations that it rates.

    `tables` holds frames and lists that were passed in Python, by the name that the entry uses. With
    `pairs=False`, each row holds one text.
    """
    source: object = (tables or {}).get(spec.source, spec.source)
    if spec.constant:
        return _unrated(spec, source, relations, data_dir)
    # A table is opened once: whoever reads its columns hands it on to whoever reads its rows.
    opened = source if find_named_corpus(source) else open_table(source)
    stored = stored_relations(spec, opened, relations, tell)
    records = load_records(
        opened,
        relations=list(stored.values()),
        text_a=spec.text_a,
        text_b=spec.text_b,
        data_dir=data_dir,
        limit=spec.limit,
        pairs=pairs,
    )
    moved = [
        replace(
            record,
            values={
                n: move_value(record.values.get(old.name), old, relations[n], spec)
                for n, old in stored.items()
            },
        )
        for record in records
    ]
    return add_noise(moved, relations, spec.noise, seed) if spec.noise else moved


def _unrated(
    spec: DataSpec, source: object, relations: Mapping[str, Relation], data_dir: str | Path | None
) -> list[Record]:
    """The pairs of a source without ratings, all with the entry's constant answers."""
    values = {
        name: relations[name].check(value, f"constant of {spec.source}")
        for name, value in spec.constant.items()
        if name in relations
    }
    if isinstance(source, str) and is_parallel_corpus(source):
        parallel = read_parallel(source, data_dir=data_dir)
        pairs = islice(zip(parallel.a, parallel.b, strict=True), spec.limit)
        return [Record(pair, values, f"{spec.source}:{row}") for row, pair in enumerate(pairs, start=1)]
    records = read(
        source, relations=(), text_a=spec.text_a, text_b=spec.text_b, data_dir=data_dir, limit=spec.limit
    )
    return [replace(record, values=values) for record in records]


def stored_relations(
    spec: DataSpec, source: object, relations: Mapping[str, Relation], tell: Callable[[str], None]
) -> dict[str, Relation]:
    """For each recipe relation, the relation as the source stores it, with its own name and scale."""
    named = find_named_corpus(source)
    if named is not None:
        named[0].require("rated")
        own = {relation.name: relation for relation in named[0].relations}
        found = {
            name: own[spec.columns.get(name, name)]
            for name in relations
            if spec.columns.get(name, name) in own
        }
        return found or _none_found(spec, relations, tuple(own))
    table = open_table(source)
    columns = {name: spec.columns.get(name, name) for name in relations}
    found = {
        name: _in_own_labels(column, spec, source)
        if name in spec.labels
        else replace(relations[name], name=column)
        for name, column in columns.items()
        if column in table.columns
    }
    if found:
        return found
    guessed = [
        relation
        for relation in infer_relations(source, text_a=spec.text_a, text_b=spec.text_b)
        if relation.kind == "graded"
    ]
    wanted = [name for name, relation in relations.items() if relation.kind == "graded"]
    if len(guessed) == 1 and len(wanted) == 1:
        tell(f"{spec.source}: column {guessed[0].name!r} ({guessed[0].scale}) is read as {wanted[0]}")
        return {wanted[0]: guessed[0]}
    return _none_found(spec, relations, table.columns)


def _in_own_labels(column: str, spec: DataSpec, source: object) -> Relation:
    """The relation of a column whose labels the entry maps, with all labels that the table has."""
    declared = f"{column}:classes"
    [found] = infer_relations(source, text_a=spec.text_a, text_b=spec.text_b, declared=[declared])
    return found


def _none_found(
    spec: DataSpec, relations: Mapping[str, Relation], there: tuple[str, ...]
) -> dict[str, Relation]:
    raise DataError(
        [
            Problem(
                spec.source,
                f"it has no ratings of {', '.join(relations)}; its columns are {', '.join(there)}",
                "name the column in the recipe (columns of the data entry) or with "
                f"{spelt('relations', '…')}",
            )
        ]
    )


def move_value(value: Value | None, old: Relation, new: Relation, spec: DataSpec) -> Value | None:
    """A stored value on the recipe's relation: labels stay, numbers are mapped to its scale, then rounded."""
    if isinstance(value, str) and new.name in spec.labels:
        return spec.labels[new.name].get(value)
    if value is None or new.kind != "graded" or isinstance(value, str):
        return value
    number = float(value)
    if spec.rescale and (old.lo, old.hi) != (new.lo, new.hi):
        number = new.lo + (number - old.lo) * (new.hi - new.lo) / (old.hi - old.lo)
    if spec.round:
        number = new.lo + new.step * float(round_half_even(np.array([(number - new.lo) / new.step]))[0])
    return number


def add_noise(
    records: list[Record], relations: Mapping[str, Relation], share: float, seed: int
) -> list[Record]:
    """Replace a share of the values with another label or grid point; all of them are equally likely."""
    rng = np.random.default_rng([seed, 77])
    result = []
    for record in records:
        values = dict(record.values)
        for name, value in values.items():
            if value is not None and rng.random() < share:
                relation = relations[name]
                options: list[Value] = list(relation.labels) or [float(point) for point in relation.grid]
                others = [option for option in options if option != value]
                values[name] = others[int(rng.integers(len(others)))]
        result.append(replace(record, values=values))
    return result
