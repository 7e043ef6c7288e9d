"""One stage's rows: training pairs, dev sets, the leak filter's report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from likewise.data import open_table
from likewise.data.columns import find_any_texts
from likewise.data.folds import fold_rows
from likewise.data.links import LinkedPair
from likewise.data.parallel import ParallelText, read_parallel
from likewise.data.reading import find_named_corpus
from likewise.data.splits import split_rows
from likewise.errors import DataError, Problem, RecipeError
from likewise.evaluation.leakage import filter_overlap
from likewise.recipes.build import build_relations
from likewise.recipes.devscore import DevSet
from likewise.recipes.leakfilter import evaluation_sets, is_parallel, parallel_keys
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_parts import DataSpec
from likewise.recipes.schema_stages import (
    AnyStage,
    InjectStageSpec,
    JointStageSpec,
    LabelStageSpec,
    ParallelSpec,
    ParallelStageSpec,
    StageSpec,
    TrainedStageSpec,
)
from likewise.recipes.sources import load_source
from likewise.records import Record, Relation
from likewise.wording import counted

if TYPE_CHECKING:
    from likewise.recipes.context import RunContext

Entry = TypeVar("Entry")

# Seeds share the sample of parallel text, and so its vectors in the cache.
_SAMPLE = 1


@dataclass(frozen=True, slots=True)
class StageData:
    """What one stage trains on and is selected by."""

    train: list[Record]
    weights: list[float] | None
    groups: list[int] | None
    dev: tuple[DevSet, ...]
    leakage: list[str]
    parallel: tuple[ParallelText, ...] = ()
    paraphrases: tuple[LinkedPair, ...] = ()

    def all_records(self) -> Iterator[Record]:
        """Training and dev rows."""
        yield from self.train
        for entry in self.dev:
            yield from entry.records


def load_stages(recipe: Recipe, *, context: RunContext) -> list[StageData]:
    """The rows of every stage; parallel text that several stages name is read once."""
    read: dict[ParallelSpec, ParallelText] = {}
    return [load_stage(recipe, number, read, context=context) for number in range(len(recipe.stage))]


def load_stage(
    recipe: Recipe, number: int, read: dict[ParallelSpec, ParallelText], *, context: RunContext
) -> StageData:
    """Read, map, filter and split the rows of stage `number`; parallel text is kept in `read`."""
    stage = recipe.stage[number]
    if isinstance(stage, InjectStageSpec):
        from likewise.recipes.injection import load_paraphrases

        pairs, told = load_paraphrases(
            stage, data_dir=context.data_dir, tables=context.tables, tell=context.tell
        )
        return StageData([], None, None, (), told, paraphrases=tuple(pairs))
    if isinstance(stage, JointStageSpec):
        stage = one_relation(recipe, stage)
    relations = stage_relations(recipe, stage)
    leakage: list[str] = []

    def rows(spec: DataSpec) -> list[Record]:
        found = load_source(
            spec,
            relations,
            data_dir=context.data_dir,
            tables=context.tables,
            seed=recipe.seed,
            pairs=reads_pairs(stage, spec, context),
            tell=context.tell,
        )
        found = without_languages(found, recipe.hold_out, spec.source, leakage)
        if isinstance(stage, JointStageSpec):
            found = only_rated(found, next(iter(relations)), leakage)
        return found

    parallel = load_translations(recipe, number, read, context=context, notes=leakage)
    train = [(spec, rows(spec)) for spec in rated_data(stage)]
    fold = stage.fold if isinstance(stage, TrainedStageSpec) else None
    dev = [(spec, rows(spec)) for spec in stage.dev] if fold is None else []
    if rated_against(stage):
        train, dev, lines = _filter(stage, train, dev, context)
        leakage += lines
    records = [record for _, part in train for record in part]
    if not records and not parallel:
        raise DataError(f"stage {number}: no training pairs are left")
    weights = [spec.weight for spec, part in train for _ in part]
    groups = [number for number, (_, part) in enumerate(train) for _ in part]
    names = _set_names([spec for spec, _ in dev])
    sets = tuple(DevSet(name, part) for name, (_, part) in zip(names, dev, strict=True) if part)
    if not sets and records and stage.dev_share:
        if fold is not None:
            chosen, clean, sets = _hold_fold(fold, recipe.seed, records, groups, rated_data(stage))
        else:
            chosen, clean = split_rows(records, stage.dev_share, recipe.seed)
            sets = (DevSet("split-off dev", [records[row] for row in sorted(chosen)]),)
        kept = [row for row in range(len(records)) if row not in chosen]
        records, weights, groups = _take(kept, records), _take(kept, weights), _take(kept, groups)
        if not clean:
            drawn = "split off" if fold is None else "drawn as a fold"
            leakage.append(f"dev was {drawn} at random: the rows hang together through shared texts")
    kept = _drawn(stage, recipe.seed, len(records))
    records, weights, groups = _take(kept, records), _take(kept, weights), _take(kept, groups)
    return StageData(
        records, weights if len(set(weights)) > 1 else None, groups, sets, leakage, tuple(parallel)
    )


def _take(rows: Sequence[int], entries: Sequence[Entry]) -> list[Entry]:
    return [entries[row] for row in rows]


def _drawn(stage: object, seed: int, rows: int) -> list[int]:
    """The rows that a stage draws from those it has: all, unless it names a number of them."""
    if not isinstance(stage, JointStageSpec) or stage.sample is None:
        return list(range(rows))
    return sorted(np.random.default_rng([seed, rows]).permutation(rows).tolist()[: stage.sample])


def only_rated(records: Sequence[Record], relation: str, notes: list[str]) -> list[Record]:
    """The rows that answer a relation, where it is the only one that is learnt."""
    rated = [record for record in records if record.values.get(relation) is not None]
    if len(rated) < len(records):
        notes.append(f"{counted(len(records) - len(rated), 'row')} without {relation} left out")
    return rated


def _hold_fold(
    fold: tuple[int, int],
    seed: int,
    records: Sequence[Record],
    groups: Sequence[int],
    data: Sequence[DataSpec],
) -> tuple[set[int], bool, tuple[DevSet, ...]]:
    """The rows of a fold, whether their texts stand nowhere else, and a dev set per data entry."""
    folds, apart = fold_rows(records, fold[1], seed, groups)
    chosen = [row for row, number in enumerate(folds) if number == fold[0] - 1]
    sets = tuple(
        DevSet(f"{name} fold {fold[0]} of {fold[1]}", held)
        for place, name in enumerate(_set_names(data))
        if (held := [records[row] for row in chosen if groups[row] == place])
    )
    return set(chosen), apart, sets


def _set_names(specs: Sequence[DataSpec]) -> list[str]:
    """What dev sets are called: by their sources, with path and number where two would be alike."""
    names = [short_name(spec.source) for spec in specs]
    if len(set(names)) == len(names):
        return names
    return [f"{spec.source} ({place})" for place, spec in enumerate(specs)]


def stage_relations(recipe: Recipe, stage: AnyStage) -> dict[str, Relation]:
    """The relations that a stage's rated rows are read for."""
    known = build_relations(recipe)
    if isinstance(stage, StageSpec):
        return {objective.relation: known[objective.relation] for objective in stage.objective}
    if isinstance(stage, LabelStageSpec):
        return {name: known[name] for name in stage.task or known}
    if isinstance(stage, InjectStageSpec):
        return {}
    name = getattr(stage, "relation", "") or next(iter(known))
    return {name: known[name]}


def one_relation(recipe: Recipe, stage: JointStageSpec) -> JointStageSpec:
    """The stage with its relation named, and of its data what rates it: what says no columns, or this one."""
    name = stage.relation or next(iter(recipe.relation))
    chosen = {"relation": name, "data": rating(stage.data, [name]), "dev": rating(stage.dev, [name])}
    if not chosen["data"]:
        found = f"no data entry rates {name!r}"
        raise RecipeError([Problem("stage.0.data", found, "name its column in the entry (columns)")])
    return stage.model_copy(update=chosen)


def rating(specs: tuple[DataSpec, ...], names: Collection[str]) -> tuple[DataSpec, ...]:
    """The data entries that may rate one of these relations: those that name no columns, or one of theirs."""
    return tuple(spec for spec in specs if not spec.columns or not set(names).isdisjoint(spec.columns))


def reads_pairs(stage: AnyStage, spec: DataSpec, context: RunContext) -> bool:
    """Whether a row of a data entry holds two texts; a joint encoder reads what there is."""
    if not isinstance(stage, JointStageSpec):
        return not isinstance(stage, LabelStageSpec)
    named = find_named_corpus(spec.source)
    if named is not None:
        return len(named[0].texts) == 2
    if spec.text_a or spec.text_b:
        return bool(spec.text_b)
    table = open_table(context.tables.get(spec.source, spec.source))
    return len(find_any_texts(table.columns, source=table.name)) == 2


def rated_data(stage: AnyStage) -> tuple[DataSpec, ...]:
    """A stage's entries of rated training pairs."""
    return () if isinstance(stage, ParallelStageSpec | InjectStageSpec) else stage.data


def rated_against(stage: AnyStage) -> list[str]:
    """The evaluation sets of rated pairs that a stage is filtered against."""
    return [name for name in stage.filter_against if not is_parallel(name)]


def without_languages(
    records: list[Record], held: Sequence[str], source: str, notes: list[str]
) -> list[Record]:
    """Rows without a side in a held-out language; what was left out is noted."""
    if not held:
        return records
    kept = [record for record in records if not set(record.language.split("-")) & set(held)]
    if len(kept) < len(records):
        notes.append(f"{len(records) - len(kept):,} rows of {source} left out: {', '.join(held)} held out")
    elif any(not record.language for record in records):
        notes.append(f"{source} does not say its language: holding out {', '.join(held)} does not touch it")
    return kept


def load_translations(
    recipe: Recipe,
    number: int,
    read: dict[ParallelSpec, ParallelText],
    *,
    context: RunContext,
    notes: list[str],
) -> list[ParallelText]:
    """The parallel text of a stage, held-out languages left out, what was dropped noted."""
    found = []
    against = [name for name in recipe.stage[number].filter_against if is_parallel(name)]
    keys = parallel_keys(against, data_dir=context.data_dir)
    for entry in getattr(recipe.stage[number], "parallel", ()):
        new = entry not in read
        if new:
            text = read_parallel(
                entry.source, entry.languages, columns=entry.columns, data_dir=context.data_dir
            )
            read[entry] = text.sample(entry.limit, _SAMPLE) if entry.limit else text
        text = read[entry]
        held = {text.language_a, text.language_b} & set(recipe.hold_out)
        if held:
            notes.append(f"{text.name} left out: {', '.join(sorted(held))} held out")
            continue
        notes += [str(note) for note in text.report.notes] if new else []
        clean = text.without(keys) if keys else text
        if keys:
            notes.append(
                f"leak filter: {len(clean):,} of {len(text):,} {text.name} rows kept, "
                f"others have a side in {', '.join(against)}"
            )
        found.append(clean)
    if not found and getattr(recipe.stage[number], "kind", "") == "parallel":
        raise DataError(f"stage {number}: no parallel text is left; hold_out covers every pair of languages")
    return found


def short_name(source: str) -> str:
    """A source as people call it: a corpus by its name, a file without its folders."""
    return source if find_named_corpus(source) else Path(source).name


def _filter(
    stage: AnyStage,
    train: list[tuple[DataSpec, list[Record]]],
    dev: list[tuple[DataSpec, list[Record]]],
    context: RunContext,
) -> tuple[list[tuple[DataSpec, list[Record]]], list[tuple[DataSpec, list[Record]]], list[str]]:
    """Drop pairs that stand in the evaluation sets.

    Dev always, training unless the recipe allows the leak.
    """
    chosen = rated_against(stage)
    pairs = not isinstance(stage, LabelStageSpec)
    asked = [stage.relation] if isinstance(stage, JointStageSpec) else None
    against = evaluation_sets(chosen, data_dir=context.data_dir, pairs=pairs, asked=asked)
    names = f"{len(chosen)} evaluation sets" if len(chosen) > 2 else ", ".join(chosen)
    lines = []
    kept_train = []
    for spec, part in train:
        kept, _ = filter_overlap(part, against)
        if stage.allow_leak:
            lines.append(
                f"LEAK LET IN: {len(part) - len(kept):,} of {len(part):,} {spec.source} rows stand in {names}"
            )
            kept = part
        else:
            lines.append(
                f"leak filter: {len(kept):,} of {len(part):,} {spec.source} rows kept, "
                f"others stand in {names}"
            )
        kept_train.append((spec, kept))
    kept_dev = []
    for spec, part in dev:
        kept, _ = filter_overlap(part, against)
        lines.append(f"dev: {len(kept):,} of {len(part):,} {spec.source} rows kept, others stand in {names}")
        kept_dev.append((spec, kept))
    return kept_train, kept_dev, lines
