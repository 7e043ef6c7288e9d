"""What the stages of a recipe read, kept beside the vectors: a second run over the same files starts at once.

    CACHE/prepared/KEY.json    files with size and time, distinct texts, stages as rows of them

KEY names all that decides which rows come out; a file that changed since makes them be read again. The folder
is the user's alone (mode 700), and `likewise cache clear` removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise import ranks
from likewise.data.aside import write_text_aside
from likewise.data.corpora import DATA_VARIABLE
from likewise.data.opened import unchanged, watching
from likewise.data.parallel import ParallelText
from likewise.data.parallel.reading import ReadReport
from likewise.encoders.cache import default_folder
from likewise.recipes.devscore import DevSet
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import VectorStageSpec
from likewise.recipes.stages import StageData, load_stages, stage_relations
from likewise.records import Record
from likewise.versions import versions

if TYPE_CHECKING:
    from likewise.recipes.context import RunContext

_FORMAT = 1
# Reading that is quicker than this is not worth a file.
WORTH_SECONDS = 1.0
# Kept files at most; the oldest go.
_KEPT = 16
# What of a stage decides its rows.
_ROWS = (
    "kind",
    "relation",
    "objective",
    "data",
    "dev",
    "dev_share",
    "fold",
    "parallel",
    "filter_against",
    "allow_leak",
)


def prepared_stages(recipe: Recipe, *, context: RunContext) -> list[StageData]:
    """The rows of every stage, as they were kept, or read and kept.

    Only for recipes over a frozen encoder: others train for so long that reading does not matter, and texts
    are not copied without need.
    """
    if not any(isinstance(stage, VectorStageSpec) for stage in recipe.stage):
        return load_stages(recipe, context=context)
    file = default_folder() / "prepared" / f"{_key(recipe, context)}.json"
    kept = None if context.tables else _find(file)
    if kept is not None:
        for line in kept["told"]:
            context.tell(line)
        return _restore(kept)
    told: list[str] = []
    started = time.monotonic()
    with watching() as watch:
        stages = load_stages(recipe, context=replace(context, tell=_both(context.tell, told)))
    slow = time.monotonic() - started > WORTH_SECONDS
    if slow and watch.complete and watch.files and ranks.is_first():
        # Room on the disk is welcome, not needed.
        with contextlib.suppress(OSError):
            _keep(file, {"files": watch.files, "told": told, **_document(stages)})
    return stages


def _both(tell: Callable[[str], None], told: list[str]) -> Callable[[str], None]:
    def say(line: str) -> None:
        told.append(line)
        tell(line)

    return say


def _key(recipe: Recipe, context: RunContext) -> str:
    stages = [
        [stage.model_dump(mode="json", include=set(_ROWS)), sorted(stage_relations(recipe, stage))]
        for stage in recipe.stage
    ]
    relations = {name: spec.model_dump(mode="json") for name, spec in recipe.relation.items()}
    home = str(context.data_dir or os.environ.get(DATA_VARIABLE, ""))
    seed = recipe.seed if _draws(recipe) else None
    parts = [_FORMAT, versions()["likewise"], stages, relations, recipe.hold_out, seed, home, os.getcwd()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _draws(recipe: Recipe) -> bool:
    """Whether rows depend on the seed: a dev set split off, a fold, or noise."""
    return any(
        not getattr(stage, "dev", ())
        or getattr(stage, "fold", None) is not None
        or any(spec.noise for spec in getattr(stage, "data", ()))
        for stage in recipe.stage
    )


def _find(file: Path) -> dict[str, Any] | None:
    try:
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf8"))
        return kept if unchanged(kept["files"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is made again


def _keep(file: Path, document: dict[str, Any]) -> None:
    # Texts of the user's: nobody else on this machine is to read them.
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_text_aside(file, json.dumps(document, ensure_ascii=False, separators=(",", ":")))
    newest = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in newest[_KEPT:]:
        old.unlink(missing_ok=True)


class _Texts:
    """Distinct texts by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, texts: Sequence[str]) -> list[int]:
        return [self.numbers.setdefault(text, len(self.numbers)) for text in texts]


def _document(stages: Sequence[StageData]) -> dict[str, Any]:
    texts = _Texts()

    def rows(records: Sequence[Record]) -> list[list[Any]]:
        return [[texts(r.texts), dict(r.values), r.source, r.subset, r.language, r.links] for r in records]

    made = [
        {
            "train": rows(stage.train),
            "weights": stage.weights,
            "groups": stage.groups,
            "dev": [[entry.name, rows(entry.records)] for entry in stage.dev],
            "leakage": stage.leakage,
            "parallel": [
                [text.name, text.language_a, text.language_b, texts(text.a), texts(text.b)]
                for text in stage.parallel
            ],
        }
        for stage in stages
    ]
    return {"texts": list(texts.numbers), "stages": made}


def _restore(kept: dict[str, Any]) -> list[StageData]:
    texts: list[str] = kept["texts"]

    def records(rows: Sequence[Sequence[Any]]) -> list[Record]:
        return [
            Record(
                tuple(texts[number] for number in numbers),
                values,
                source,
                subset,
                language,
                tuple((tuple(a), tuple(b)) for a, b in links),
            )
            for numbers, values, source, subset, language, links in rows
        ]

    def translations(name: str, a: str, b: str, first: list[int], second: list[int]) -> ParallelText:
        sides = [[texts[number] for number in side] for side in (first, second)]
        return ParallelText(name, a, b, sides[0], sides[1], ReadReport(name, rows=len(first)))

    return [
        StageData(
            records(stage["train"]),
            stage["weights"],
            stage["groups"],
            tuple(DevSet(name, records(rows)) for name, rows in stage["dev"]),
            stage["leakage"],
            tuple(translations(*entry) for entry in stage["parallel"]),
        )
        for stage in kept["stages"]
    ]
