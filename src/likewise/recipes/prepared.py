"""Keep the rows that a recipe's stages read, so that a second run over the same files starts at once.

    CACHE/prepared/KEY.json    distinct texts, stages as rows of them, further files that were read

KEY depends on everything that decides which rows are read, including the content of the files. If a file
changes, the rows are read again. Only the user can read the folder (mode 700); `likewise cache clear` removes
it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from likewise import ranks
from likewise.data.corpora import DATA_VARIABLE
from likewise.data.dialects import named_delimiters
from likewise.data.filecache import FileCache, content_digest, content_key
from likewise.data.opened import watching
from likewise.kinds.base import Job, Shared, StageData, runner_of
from likewise.kinds.context import RunContext
from likewise.recipes.contents import digest_files, source_files
from likewise.schema.base import Stage
from likewise.schema.recipe import Recipe
from likewise.versions import versions

_FORMAT = 5
# Reading that is quicker than this is not worth a file.
WORTH_SECONDS = 1.0
# The newest files are kept; the oldest go.
_KEPT = FileCache("prepared", ".json", keep=16)


def prepared_stages(jobs: Sequence[Job[Any]]) -> list[StageData]:
    """The rows of every stage, from the cache, or read now and cached.

    Rows are cached only for recipes with a stage that asks for it. The others train for so long that reading
    does not matter, and texts are not copied without need.
    """
    context = jobs[0].context
    if not any(job.stage.reusable for job in jobs):
        return read_stages(jobs)
    contents, named = _contents(jobs)
    key = _key(jobs[0].recipe, context, contents)
    kept = None if context.tables else _find(key)
    if kept is not None:
        for line in kept["told"]:
            context.tell(line)
        return _restore(jobs, kept)
    told: list[str] = []
    started = time.monotonic()
    with watching() as watch:
        telling = replace(context, tell=_both(context.tell, told))
        stages = read_stages([replace(job, context=telling) for job in jobs])
    slow = time.monotonic() - started > WORTH_SECONDS
    if slow and watch.complete and watch.files and ranks.is_first() and _contents(jobs) == (contents, named):
        document = _document(jobs, stages)
        if document is not None:
            others = [path for path in watch.files if path not in named]
            digests = {path: content_digest(Path(path)) for path in others}
            _KEPT.write_json(key, {"files": digests, "told": told, **document})
    return stages


def read_stages(jobs: Sequence[Job[Any]]) -> list[StageData]:
    """Read the rows of every stage now; parallel text that several stages name is read once."""
    shared = Shared()
    return [runner_of(job.stage).read(job, shared) for job in jobs]


def _both(tell: Callable[[str], None], told: list[str]) -> Callable[[str], None]:
    def say(line: str) -> None:
        told.append(line)
        tell(line)

    return say


def _contents(jobs: Sequence[Job[Any]]) -> tuple[dict[str, str], set[str]]:
    """A hash of the present content behind each name of a recipe's data, and the files that were hashed.

    A name counts as it is written: two links that are exchanged are other data, though the same files.
    """
    names = [source for job in jobs for source in job.stage.sources()]
    known: dict[Path, str] = {}
    found = source_files(names, jobs[0].context.data_dir)
    contents = {name: digest_files(files, known, name=name) for name, files in found.items()}
    return contents, {str(path.resolve()) for path in known}


def _key(recipe: Recipe, context: RunContext, contents: Mapping[str, str]) -> str:
    stages = [[_row_keys(stage), sorted(stage.rates(recipe.relation))] for stage in recipe.stage]
    relations = {name: spec.model_dump(mode="json") for name, spec in recipe.relation.items()}
    # Corpora are looked for in both.
    home = [str(context.data_dir or ""), os.environ.get(DATA_VARIABLE, "")]
    seed = recipe.seed if any(stage.draws_rows() for stage in recipe.stage) else None
    # A file holds other rows if its fields are separated by another character.
    where = [os.getcwd(), named_delimiters()]
    version = versions()["likewise"]
    return content_key(_FORMAT, version, stages, relations, recipe.hold_out, seed, home, where, contents)


def _row_keys(stage: Stage) -> dict[str, Any]:
    """The keys of a stage that decide its rows: those that it names, or all of them."""
    return stage.model_dump(mode="json", include={"kind", *stage.row_keys} if stage.row_keys else None)


def _find(key: str) -> dict[str, Any] | None:
    kept: dict[str, Any] | None = _KEPT.read_json(key)
    try:
        same = kept is not None and all(
            content_digest(Path(path)) == digest for path, digest in kept["files"].items()
        )
    except (OSError, KeyError, TypeError, AttributeError):
        return None  # it is made again
    return kept if same else None


class _Texts:
    """Distinct texts by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, texts: Sequence[str]) -> list[int]:
        return [self.numbers.setdefault(text, len(self.numbers)) for text in texts]


def _document(jobs: Sequence[Job[Any]], stages: Sequence[StageData]) -> dict[str, Any] | None:
    """Everything that was read, as one document; None if a stage's rows are not kept."""
    texts = _Texts()
    made = [runner_of(job.stage).pack(data, texts) for job, data in zip(jobs, stages, strict=True)]
    return None if None in made else {"texts": list(texts.numbers), "stages": made}


def _restore(jobs: Sequence[Job[Any]], kept: dict[str, Any]) -> list[StageData]:
    return [
        runner_of(job.stage).unpack(job, stage, kept["texts"])
        for job, stage in zip(jobs, kept["stages"], strict=True)
    ]
