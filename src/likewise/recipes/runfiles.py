"""The run folder `OUTPUT.run/`: its checkpoints, the reports of its stages, and when it may be resumed.

OUTPUT.run/likewise-run.json    the mark: what the run began with; a folder without it is not a run
OUTPUT.run/lock                 locked while a process trains
OUTPUT.run/stage-N/             checkpoints, the best weights, and done.json when the stage is complete
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from likewise.data.filecache import content_key
from likewise.disk import (
    BusyError,
    UnwritableError,
    folder_aside,
    locked,
    remove_folder,
    sweep,
    to_json,
)
from likewise.errors import LikewiseError, UsageError
from likewise.kinds.base import RULES, Job, StageData
from likewise.naming import kept_recipe, recipe_in_keys
from likewise.outputs import (
    RUN_MARK,
    check_beside_inputs,
    check_model_folder,
    check_run_folder,
    is_model_folder,
    is_run_folder,
    read_mark,
)
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.spelling import spelt, spelt_together
from likewise.training.checkpoints import complete_checkpoints
from likewise.wording import listed, quoted

if TYPE_CHECKING:
    from torch import nn

_LOCK = "lock"
_log = logging.getLogger("likewise")


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run keeps its checkpoints, whether it resumes from them, and the rows of its stages.

    `settle` changes the weights that the last stage ends with, before they are measured and kept.
    """

    work: Path
    resume: bool
    resumable: bool
    stages: Sequence[StageData] = ()
    settle: Callable[[nn.Module], None] | None = None

    def options(self, number: int) -> dict[str, Any]:
        """The arguments `run`, `resume` and, for the last stage, `settle` of `training.fit`."""
        last = self.settle is not None and number == len(self.stages) - 1
        beside = {"settle": self.settle} if last else {}
        return {"run": self.work / f"stage-{number}", "resume": self.resume, **beside}

    @contextmanager
    def kept(self, job: Job[Any], encoder: str) -> Iterator[dict[str, Any]]:
        """The arguments for a stage whose files stay in its run folder or in a folder that other runs share.

        Runs share a stage if all stages up to it have the same keys, rows and encoder (by its fingerprint).
        If several runs need the same stage at once, the others wait for the first.
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
            sweep(folder)
            yield {"run": folder, "resume": True, "resumable": True}


def _begins_with(recipe: Recipe, number: int, beside: Sequence[object]) -> str:
    """A name that depends on everything that decides the result of a recipe's first stages."""
    # With defaults: one that a later version changes makes another stage.
    document = recipe_in_keys(recipe.model_dump(mode="json", exclude={"name", "description", "evaluation"}))
    document["stage"] = document["stage"][: number + 1]
    return content_key(document, *beside, RULES, length=16)


def run_folder(output: Path) -> Path:
    """The run folder that belongs to a model folder."""
    named = output if output.name not in ("", "..") else Path(os.path.abspath(output))
    if named.is_symlink():  # by whatever name a model is called, it has one run
        named = Path(os.path.realpath(named))
    if not named.name:
        raise UsageError(f"{spelt('output')} {output} is the root folder. Name a folder inside it.")
    return named.with_name(named.name + ".run")


def can_resume(work: Path) -> bool:
    """Whether a run folder can be resumed: it holds a checkpoint or a complete stage."""
    return any(
        (stage / "done.json").is_file() or bool(complete_checkpoints(stage)) for stage in work.glob("stage-*")
    )


@dataclass(frozen=True, slots=True)
class RunMark:
    """What a run began with. It is resumed only with the same recipe, rows, encoder and precision.

    `rows` are the fingerprints of each stage's rows. `start` holds hashes of the encoder's files by name.
    `precision` is the precision of computing. The `id` distinguishes the run's own model from an earlier one.
    """

    recipe: Recipe
    rows: Sequence[Mapping[str, str]]
    start: Mapping[str, str]
    precision: str = "fp32"
    id: str = ""

    def to_json(self) -> str:
        """The content of the mark."""
        return to_json(
            {
                "likewise": "run",
                "id": self.id,
                "recipe": self.recipe.model_dump(mode="json"),
                "rows": [dict(prints) for prints in self.rows],
                "start": dict(self.start),
                "precision": self.precision,
            },
            indent=1,
        )


def run_folders(
    folder: Path, *, inputs: Iterable[object], resume: bool, overwrite: bool
) -> tuple[Path, Path]:
    """The model folder and the run folder; nothing is written yet, so bad data leaves no files."""
    work, inputs = run_folder(folder), list(inputs)
    if resume and not overwrite and is_model_folder(folder) and is_run_folder(work) and can_resume(work):
        both = spelt_together(resume=None, overwrite=None)
        raise UsageError(f"{work} holds an unfinished run that replaces {folder}. Continue it with {both}.")
    check_model_folder(folder, inputs=inputs, overwrite=overwrite)
    check_beside_inputs(work, inputs)
    if resume and not work.exists():
        found = f"{work} does not exist, so there is no run to resume"
        raise UsageError(f"{found}. Leave {spelt('resume')} out.")
    if work.exists():
        check_run_folder(work)
    if work.exists() and not resume and not overwrite and can_resume(work):
        raise UsageError(
            f"{work} holds an unfinished run. Continue it with {spelt('resume')}, or start over with "
            f"{spelt('overwrite')}."
        )
    return folder, work


def is_finished(folder: Path, work: Path) -> bool:
    """Whether a run was stopped after its model was complete but before its run folder was removed."""
    if not (is_run_folder(work) and (folder / "likewise" / "model.json").is_file()):
        return False
    try:
        document = json.loads((folder / "likewise" / "model.json").read_text(encoding="utf8"))
        return bool(document["run"]) and document["run"] == _read_mark(work)["id"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


@contextmanager
def working_in(work: Path, mark: RunMark, *, resume: bool) -> Iterator[str]:
    """Create or resume a run folder and hold its lock; yields the id of the run.

    A run that ends before it could be resumed leaves no folder.
    """
    busy = f"{work} is in use by another training. Wait until it ends, or choose another {spelt('output')}."
    sweep(work.parent)
    if work.exists():
        with locked(work / _LOCK, busy):
            if resume:
                mark = same_run(work, mark)
            else:
                remove_run(work)
    if not work.exists():
        mark = replace(mark, id=secrets.token_hex(8))
        with _beginning(work, busy), folder_aside(work) as place:
            (place / RUN_MARK).write_text(mark.to_json() + "\n", encoding="utf8")
    with locked(work / _LOCK, busy):
        try:
            yield mark.id
        except BaseException:
            if not can_resume(work):
                remove_run(work)
            raise


@contextmanager
def _beginning(work: Path, busy: str) -> Iterator[None]:
    """Raise BusyError if another training creates the same run folder at the same moment."""
    try:
        yield
    except (UsageError, UnwritableError):
        if work.exists():
            raise BusyError(busy) from None
        raise


def remove_run(work: Path) -> None:
    """Remove a run folder; a folder that holds other files is kept, with a warning."""
    if not remove_folder(work, may_go=is_run_folder):
        _log.warning("%s is kept, because it holds files that Likewise did not write", work)


def _starting_over() -> str:
    return f"start over with {spelt('overwrite')} and without {spelt('resume')}"


def same_run(work: Path, mark: RunMark) -> RunMark:
    """The mark of a resumed run; raises an error for another recipe, other rows or another encoder."""
    kept = _read_mark(work)
    again = f"Resume with the same ones, or {_starting_over()}."
    recipe = _recipe_in(kept, work)
    if recipe != mark.recipe:
        changed = "" if recipe is None else f" ({_differences(recipe, mark.recipe)})"
        raise UsageError(f"{work} was started with another recipe or other overrides{changed}. {again}")
    rows = kept.get("rows")
    whole = isinstance(rows, list) and all(isinstance(prints, dict) for prints in rows)
    if rows is None or not whole or len(rows) != len(mark.rows):
        raise UsageError(f"{work / RUN_MARK} is damaged. Start over with {spelt('overwrite')}.")
    for number, (then, now) in enumerate(zip(rows, mark.rows, strict=True)):
        others = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
        if others:
            raise UsageError(
                f"{work}: the rows of stage {number} ({', '.join(others)}) have changed since it was "
                f"started. {again}"
            )
    if kept.get("precision") != mark.precision:
        raise UsageError(
            f"{work} was started with precision {kept.get('precision')}, not {mark.precision}. Resume with "
            f"the same precision, or {_starting_over()}."
        )
    before = kept.get("start")
    if before != dict(mark.start):
        known = before if isinstance(before, dict) else {}
        names = sorted(
            name for name in {*known, *mark.start} if known.get(name) != dict(mark.start).get(name)
        )
        raise UsageError(
            f"{work}: the files of the encoder that the run started from have changed since then "
            f"({listed(names)}). {again}"
        )
    return replace(mark, id=str(kept.get("id", "")))


def _differences(before: Recipe, now: Recipe) -> str:
    """The first three keys of a recipe that differ, each with its old and new value."""
    changed: list[str] = []

    def compare(path: str, one: Any, other: Any) -> None:
        if isinstance(one, dict) and isinstance(other, dict):
            for key in dict.fromkeys([*one, *other]):
                compare(f"{path}.{key}" if path else key, one.get(key), other.get(key))
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            for number, (old, new) in enumerate(zip(one, other, strict=True)):
                compare(f"{path}.{number}", old, new)
        elif one != other:
            changed.append(f"{path} was {quoted(one, most=60)} and is now {quoted(other, most=60)}")

    compare("", before.model_dump(mode="json"), now.model_dump(mode="json"))
    more = f", and {len(changed) - 3} more" if len(changed) > 3 else ""
    return "; ".join(changed[:3]) + more


def _read_mark(work: Path) -> dict[str, Any]:
    """The mark of a run as it was written; empty if it cannot be read."""
    return read_mark(work / RUN_MARK) or {}


def begun_recipe(work: Path) -> str:
    """The name of the recipe that a run began with; "" if there is no run."""
    recipe = _read_mark(work).get("recipe")
    return str(recipe.get("name", "")) if isinstance(recipe, dict) else ""


def _recipe_in(kept: Mapping[str, Any], work: Path) -> Recipe | None:
    """The recipe of a run as an object, so that only its meaning is compared; None if it cannot be read."""
    try:
        return parse_recipe(kept_recipe(kept["recipe"]), str(work))
    except (KeyError, ValueError, TypeError, AttributeError, LikewiseError):
        return None
