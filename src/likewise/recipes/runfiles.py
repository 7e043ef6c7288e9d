"""The run folder `OUTPUT.run/`: where checkpoints lie, what a stage reports, when a run may go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from likewise import ranks
from likewise.data import write_text_aside
from likewise.data.filecache import content_key
from likewise.errors import LikewiseError, UsageError
from likewise.kinds.base import Job, StageData
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.training.checkpoints import complete_checkpoints

_RECIPE = "recipe.json"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run keeps its checkpoints, whether it goes on from some, and which rows its stages have."""

    work: Path
    resume: bool
    resumable: bool
    stages: Sequence[StageData] = ()

    def options(self, number: int) -> dict[str, Any]:
        """`run` and `resume` of a stage, as `training.fit` takes them."""
        return {"run": self.work / f"stage-{number}", "resume": self.resume}

    @contextmanager
    def kept(self, job: Job[Any], encoder: str) -> Iterator[dict[str, Any]]:
        """Where a stage leaves its files: with its run, or where others find them.

        Others are those whose stages up to this one have the same keys, rows and encoder (its fingerprint).
        Runs side by side that need the same stage wait for the first of them.
        """
        context = job.context
        if context.kept_stages is None:
            yield {**self.options(job.number), "resumable": self.resumable}
            return
        context.kept_stages.mkdir(parents=True, exist_ok=True)
        rows = [dict(data.prints) for data in self.stages[: job.number + 1]]
        beside = [context.precision, encoder, rows]
        folder = context.kept_stages / _begins_with(job.recipe, job.number, beside)
        with FileLock(f"{folder}.lock"):
            yield {"run": folder, "resume": True, "resumable": True}


def _begins_with(recipe: Recipe, number: int, beside: Sequence[object]) -> str:
    """A name for everything that the first stages of a recipe depend on."""
    # Without defaults: a recipe key that a later version adds leaves kept stages valid.
    document = recipe.model_dump(
        mode="json", exclude={"name", "description", "evaluation"}, exclude_defaults=True
    )
    document["stage"] = document["stage"][: number + 1]
    return content_key(document, *beside, length=16)


def run_folder(output: Path) -> Path:
    """Where the run lies that leads to a model folder."""
    return output.with_name(output.name + ".run")


def can_resume(work: Path) -> bool:
    """Whether a run folder holds anything to go on from: a checkpoint, or a stage that is done."""
    return any(
        (stage / "done.json").is_file() or bool(complete_checkpoints(stage)) for stage in work.glob("stage-*")
    )


def _is_empty_run(work: Path) -> bool:
    """Whether a folder holds what a run writes before its first checkpoint, and nothing of anybody else's."""
    return (
        work.is_dir()
        and all(entry.name == _RECIPE or entry.name.startswith("stage-") for entry in work.iterdir())
        and not can_resume(work)
    )


def run_folders(folder: Path, *, resume: bool, overwrite: bool) -> tuple[Path, Path]:
    """The model folder and the run folder; nothing is written yet, so bad data leaves no trace."""
    work = run_folder(folder)
    if folder.exists() and not overwrite:
        raise UsageError(f"{folder} exists already; choose another --output or pass --overwrite")
    if work.exists() and not resume and not overwrite:
        if _is_empty_run(work):
            # Not taken for nothing: its process may be on the way to the first checkpoint.
            raise UsageError(
                f"{work} holds a run without a checkpoint, at work or killed; start over with --overwrite"
            )
        raise UsageError(
            f"{work} holds an unfinished run; go on with --resume or start over with --overwrite"
        )
    if resume and not work.exists():
        raise UsageError(f"{work} does not exist: there is no run to resume; leave --resume out")
    return folder, work


def open_run(work: Path, recipe: Recipe, *, resume: bool) -> None:
    """Begin a run folder, or go on in it with the recipe it was begun with."""
    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    _same_recipe(work / _RECIPE, recipe)


@contextmanager
def leaving_no_empty_run(work: Path) -> Iterator[None]:
    """Remove the folder of a run that ends before there is anything to go on from."""
    try:
        yield
    except BaseException:
        if ranks.is_first() and _is_empty_run(work):
            shutil.rmtree(work, ignore_errors=True)
        raise


def _same_recipe(path: Path, recipe: Recipe) -> None:
    """A run is resumed with the recipe it was started with, or not at all."""
    if path.is_file() and _read_recipe(path) != recipe:
        raise UsageError(
            f"{path.parent} was started with another recipe or other overrides; resume with the same ones"
        )
    write_text_aside(path, json.dumps(recipe.model_dump(mode="json"), sort_keys=True))


def _read_recipe(path: Path) -> Recipe | None:
    """The recipe of a run, compared by what it means and not by its text; None if it cannot be read."""
    try:
        return parse_recipe(json.loads(path.read_text(encoding="utf8")), str(path))
    except (OSError, ValueError, LikewiseError):
        return None
