"""Checkpoints without pickle: safetensors and JSON, made valid by a marker that is written last.

checkpoint-000120/
  model.safetensors        all parameters and buffers
  optimizer.safetensors    the optimiser's tensors
  state.json               its other values, the rate schedule, selection state
  trainer_state.json       the Trainer's own counters
  COMPLETE                 written last; a folder without it is ignored and removed
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from likewise.errors import ModelError

AVERAGE = "average.safetensors"
MARKER = "COMPLETE"
KEPT = 2


def checkpoint_folder(run: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return run / f"checkpoint-{step:08d}"


def complete_checkpoints(run: Path) -> list[Path]:
    """Valid checkpoints, oldest first."""
    return sorted(folder for folder in run.glob("checkpoint-*") if (folder / MARKER).is_file())


def write_checkpoint(
    run: Path,
    step: int,
    *,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: Mapping[str, Any],
    trainer_state: str,
    average: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write one checkpoint aside, mark it complete, rename it into place, drop the oldest beyond KEPT."""
    aside = run / f"writing-{step:08d}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    save_weights(model, aside / "model.safetensors")
    tensors, values = flatten_optimiser(optimiser.state_dict())
    save_file(tensors, aside / "optimizer.safetensors")
    if average is not None:
        save_file(dict(average), aside / AVERAGE)
    (aside / "state.json").write_text(json.dumps({**state, "optimiser": values}), encoding="utf8")
    (aside / "trainer_state.json").write_text(trainer_state, encoding="utf8")
    (aside / MARKER).write_text(str(step), encoding="utf8")
    for file in aside.iterdir():
        _sync(file)
    final = checkpoint_folder(run, step)
    shutil.rmtree(final, ignore_errors=True)
    aside.rename(final)
    for old in complete_checkpoints(run)[:-KEPT]:
        (old / MARKER).unlink()
        shutil.rmtree(old, ignore_errors=True)
    return final


def _sync(file: Path) -> None:
    """Reach the disk before the marker counts: a power cut must not leave a valid-looking half."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_state(folder: Path) -> dict[str, Any]:
    """The JSON part of a checkpoint."""
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{folder}: the checkpoint cannot be read ({error}); remove it and resume again"
        ) from error
    return state


def restore_optimiser(optimiser: torch.optim.Optimizer, folder: Path, values: Mapping[str, Any]) -> None:
    """Put the optimiser back to where the checkpoint left it."""
    tensors = load_file(folder / "optimizer.safetensors")
    optimiser.load_state_dict(unflatten_optimiser(tensors, values))


def save_weights(model: nn.Module, path: Path) -> None:
    """All parameters and buffers as safetensors, written aside and renamed."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    aside = path.with_name(path.name + ".partial")
    save_file(_unshared(state), aside)
    aside.rename(path)


def _unshared(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Clone tensors that share memory: safetensors refuses them."""
    seen: set[int] = set()
    result = {}
    for name, tensor in state.items():
        address = tensor.untyped_storage().data_ptr()
        result[name] = tensor.clone() if address in seen else tensor
        seen.add(address)
    return result


def load_weights(model: nn.Module, path: Path) -> None:
    """Read weights that `save_weights` wrote into a model of the same shape."""
    model.load_state_dict(load_file(path), strict=True)


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
