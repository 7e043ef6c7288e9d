"""Checkpoints without pickle: safetensors and JSON files, with a marker that lists their hashes.

checkpoint-000120/
  model.safetensors        all parameters and buffers
  optimizer.safetensors    the optimiser's tensors
  average.safetensors      the running mean of the weights, if there is one
  state.json               the optimiser's other values, the rate schedule, selection state
  trainer_state.json       the Trainer's own counters
  COMPLETE                 the step, and the sha256 of every other file

A checkpoint folder gets its name only when all its files are on disk. Before a run resumes from it, its files
and the file of the best weights are compared with their hashes. A damaged checkpoint is reported and removed,
and the one before it is used.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from likewise import ranks
from likewise.disk import folder_aside, path_aside, remove_folder
from likewise.errors import EvaluationError, LikewiseError, ModelError
from likewise.files import file_sha256
from likewise.spelling import spelt
from likewise.training.runstate import RunState

_log = logging.getLogger("likewise")

AVERAGE = "average.safetensors"
MARKER = "COMPLETE"
KEPT = 2
_MODEL, _OPTIMISER, _STATE, _TRAINER = (
    "model.safetensors",
    "optimizer.safetensors",
    "state.json",
    "trainer_state.json",
)
_FILES = {_MODEL, _OPTIMISER, _STATE, _TRAINER, AVERAGE}
_FOLDER = re.compile(r"checkpoint-\d{8}")


class DamagedError(ModelError):
    """A file of a run is missing or has changed since it was written."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint whose files are verified, and its JSON part."""

    folder: Path
    state: Mapping[str, Any]


def checkpoint_folder(run: Path, step: int) -> Path:
    """The folder of the checkpoint of a step."""
    return run / f"checkpoint-{step:08d}"


def complete_checkpoints(run: Path) -> list[Path]:
    """The completely written checkpoints, oldest first; their files are not verified."""
    return [folder for folder in _checkpoints(run) if (folder / MARKER).is_file()]


def _checkpoints(run: Path) -> list[Path]:
    """The folders with names of checkpoints, oldest first; links are ignored."""
    if run.is_symlink():
        return []
    found = sorted(folder for folder in run.glob("checkpoint-*") if _FOLDER.fullmatch(folder.name))
    return [folder for folder in found if folder.is_dir() and not folder.is_symlink()]


def best_file(run: Path, step: int) -> Path:
    """The file of the weights that are best on dev."""
    return run / f"best-{step:08d}.safetensors"


def write_checkpoint(
    run: Path,
    step: int,
    *,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: Mapping[str, Any],
    trainer_state: Callable[[Path], None] = lambda path: None,
    average: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write one checkpoint, whole or not at all, and remove the oldest ones beyond KEPT.

    `trainer_state` writes the Trainer's own counters to the path that it receives.
    """
    final = checkpoint_folder(run, step)
    with folder_aside(final, replace=lambda old: True) as place:
        _save_tensors(model, place / _MODEL)
        tensors, values = flatten_optimiser(optimiser.state_dict())
        save_file(tensors, place / _OPTIMISER)
        if average is not None:
            save_file(dict(average), place / AVERAGE)
        (place / _STATE).write_text(json.dumps({**state, "optimiser": values}), encoding="utf8")
        trainer_state(place / _TRAINER)
        files = {file.name: file_sha256(file) for file in sorted(place.iterdir())}
        marker = json.dumps({"step": step, "files": files}, indent=1)
        (place / MARKER).write_text(marker + "\n", encoding="utf8")
    _drop_old_checkpoints(run)
    return final


def _drop_old_checkpoints(run: Path) -> None:
    for old in complete_checkpoints(run)[:-KEPT]:
        remove_folder(old)


def newest_whole(run: Path) -> Checkpoint | None:
    """The newest undamaged checkpoint; damaged ones are reported and removed.

    Under torchrun the first process looks for it, and all processes resume from what it found.
    """
    found = _newest_whole(run) if ranks.is_first() else None
    return ranks.from_first(found)


def _newest_whole(run: Path) -> Checkpoint | None:
    folders = _checkpoints(run)[::-1]
    for folder in folders:
        try:
            found = _verified(run, folder)
            # A run may have been stopped between writing a checkpoint and dropping an old one.
            _drop_old_checkpoints(run)
            return found
        except DamagedError as error:
            _log.warning("%s; this checkpoint is removed, and an earlier one is used if there is one", error)
            remove_folder(folder)
    if folders:
        _log.warning("%s: no undamaged checkpoint is left, so this stage is trained from its beginning", run)
    return None


def _verified(run: Path, folder: Path) -> Checkpoint:
    """A checkpoint compared with its marker."""
    marker = _read_json(folder / MARKER)
    files = marker.get("files")
    if not isinstance(files, dict) or checkpoint_folder(run, _number(marker.get("step"))) != folder:
        raise DamagedError(f"{folder / MARKER} does not list the checkpoint's files with their hashes")
    wrong = ({_MODEL, _OPTIMISER, _STATE} - set(files)) | (set(files) - _FILES)
    if wrong:
        raise DamagedError(f"{folder / MARKER} does not name the right files ({', '.join(sorted(wrong))})")
    # The Trainer would open what it finds here by the names of its own files, which are pickles.
    others = {entry.name for entry in folder.iterdir()} - {*files, MARKER}
    if others:
        raise DamagedError(f"{folder} holds {', '.join(sorted(others))}, which does not belong to it")
    for name, digest in files.items():
        check_file(folder / name, str(digest))
    state = _read_json(folder / _STATE)
    try:
        selected = RunState.read(state.get("run"))
    except ValueError as error:
        raise DamagedError(f"{folder / _STATE}: {error}") from error
    if selected.best_sha256:
        check_file(best_file(run, selected.best_step), selected.best_sha256)
    return Checkpoint(folder, state)


def check_file(path: Path, digest: str) -> None:
    """Raise an error if a file is missing or has changed since it was written."""
    try:
        found = file_sha256(path)
    except PermissionError as error:
        raise ModelError(
            f"{path} cannot be read ({error.strerror}). Correct its permissions and run the command again."
        ) from error
    except OSError as error:
        raise DamagedError(f"{path} cannot be read ({error.strerror})") from error
    if found != digest:
        raise DamagedError(f"{path} has changed since it was written (its sha256 is different)")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except PermissionError as error:
        raise ModelError(
            f"{path} cannot be read ({error.strerror}). Correct its permissions and run the command again."
        ) from error
    except OSError as error:
        raise DamagedError(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise DamagedError(f"{path} does not hold a JSON object")
    return found


def _number(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else -1


@contextmanager
def restoring(folder: Path) -> Iterator[None]:
    """Raise a ModelError that names the checkpoint if its state does not fit the training."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, SafetensorError) as error:
        if isinstance(error, LikewiseError):
            raise
        found = f"its state does not fit this training ({type(error).__name__}: {error})"
        remedy = f"Start over with {spelt('overwrite')} and without {spelt('resume')}"
        raise ModelError(f"{folder}: {found}. {remedy}.") from error


def restore_optimiser(optimiser: torch.optim.Optimizer, folder: Path, values: Mapping[str, Any]) -> None:
    """Restore the optimiser's state from a checkpoint."""
    found = unflatten_optimiser(load_file(folder / _OPTIMISER), values)
    _check_optimiser(optimiser, found)
    optimiser.load_state_dict(found)


def _check_optimiser(optimiser: torch.optim.Optimizer, found: Mapping[str, Any]) -> None:
    """Raise a ValueError if a state does not fit the parameters: a fused step reads it without checks."""
    parameters = [one for group in optimiser.param_groups for one in group["params"]]
    for index, entries in found["state"].items():
        for name, value in entries.items():
            wanted = () if name == "step" else tuple(parameters[index].shape)
            if isinstance(value, Tensor) and tuple(value.shape) != wanted:
                raise ValueError(f"{name} of parameter {index} has the shape {tuple(value.shape)}")
    for held, group in zip(found["param_groups"], optimiser.param_groups, strict=True):
        for name, value in held.items():
            if name != "params" and _kind(value) is not _kind(group.get(name)):
                raise ValueError(f"{name} = {value!r} is of the wrong kind")


def _kind(value: object) -> type:
    return float if type(value) is int else type(value)


def drop_old_bests(run: Path, best_step: int) -> None:
    """Remove old best weights, except those that a checkpoint still needs."""
    needed = {best_step}
    for folder in complete_checkpoints(run):
        try:
            needed.add(int(_read_json(folder / _STATE)["run"]["best_step"]))
        except (DamagedError, KeyError, TypeError, ValueError):
            continue  # nobody will go on from it
    for file in run.glob("best-*.safetensors"):
        if file.stem.partition("-")[2] not in {f"{step:08d}" for step in needed}:
            file.unlink(missing_ok=True)


# Weights by themselves.


def save_weights(model: nn.Module, path: Path) -> str:
    """Write all parameters and buffers as safetensors, whole or not at all; returns the file's sha256."""
    with path_aside(path, ".safetensors") as aside:
        _save_tensors(model, aside)
        digest = file_sha256(aside)
    return digest


def load_weights(model: nn.Module, path: Path, digest: str = "") -> None:
    """Load weights that `save_weights` wrote into a model of the same shape; `digest` verifies the file."""
    if digest:
        check_file(path, digest)
    model.load_state_dict(load_file(path), strict=True)


def refuse_lost_weights(model: nn.Module, step: int) -> None:
    """Raise an error if any weight is not a finite number."""
    lost = _first_lost(model.named_parameters())
    if lost is not None:
        raise EvaluationError(
            f"the weights of {lost} became infinite or NaN by step {step}. "
            "Lower learning_rate, set clip, or use precision fp32."
        )


@torch.no_grad()
def _first_lost(parameters: Iterable[tuple[str, Tensor]]) -> str | None:
    """The name of the first parameter that is not finite; waits for the device only once."""
    named = [(name, value) for name, value in parameters if value.is_floating_point() and value.numel()]
    if not named:
        return None
    # A sum over squares may overflow where the weights do not; the largest of the absolute values cannot.
    largest = torch.stack([value.abs().amax().float() for _, value in named])
    lost = (~torch.isfinite(largest)).nonzero()
    return named[int(lost[0])][0] if len(lost) else None


def _save_tensors(model: nn.Module, path: Path) -> None:
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(_unshared(state), path)


def _unshared(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Clone tensors that share memory, because safetensors does not accept them."""
    seen: set[int] = set()
    result = {}
    for name, tensor in state.items():
        address = tensor.untyped_storage().data_ptr()
        result[name] = tensor.clone() if address in seen else tensor
        seen.add(address)
    return result


def flatten_optimiser(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split an optimiser's state into named tensors and JSON values."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {"param_groups": state["param_groups"], "state": {}}
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{index}.{name}"] = value.detach().cpu().contiguous()
            else:
                values["state"].setdefault(str(index), {})[name] = value
    return tensors, values


def unflatten_optimiser(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten_optimiser`."""
    state: dict[int, dict[str, Any]] = {int(index): dict(entry) for index, entry in values["state"].items()}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    groups = [
        {**group, "betas": tuple(group["betas"])} if "betas" in group else group
        for group in values["param_groups"]
    ]
    return {"state": state, "param_groups": groups}
