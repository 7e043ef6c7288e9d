"""Estimators whose trained model travels in a pickle as the files of its model folder.

joblib sends fitted estimators between processes as pickles. Modules of torch in them would tie a pickle to
the versions of several libraries, so the model travels as what `save` writes: safetensors and JSON. It is
opened with the same checks as any model folder. A pickle itself is only as safe as its sender: keep a model
with `model_.save(folder)`, and open folders with `likewise.load`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from likewise.disk import scratch_folder
from likewise.sklearn.training import quietly

if TYPE_CHECKING:
    from likewise.predict import Answerer

_MODEL, _FILES = "model_", "_model_files"


class ModelEstimator(BaseEstimator):
    """An estimator with a trained model in `model_`, and the parameters `device` and `precision`."""

    device: str | None
    precision: str
    model_: Answerer

    def __getstate__(self) -> dict[str, Any]:
        """The state, with the files of the model in place of the model."""
        state: dict[str, Any] = dict(super().__getstate__())
        if _MODEL in state:
            state[_FILES] = _packed(state.pop(_MODEL))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of `__getstate__` and load the model, if there is one."""
        files = state.pop(_FILES, None)
        super().__setstate__(state)
        if files is not None:
            self.model_ = _unpacked(files, device=self.device, precision=self.precision)


def _packed(model: Answerer) -> dict[str, bytes]:
    """The files of a model folder by their places in it."""
    with scratch_folder() as place, quietly():
        folder = model.save(place / "model")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _unpacked(files: dict[str, bytes], *, device: str | None, precision: str) -> Answerer:
    """The model of such files."""
    from likewise.predict import load

    with scratch_folder() as place, quietly():
        for name, content in files.items():
            target = place / "model" / Path(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return load(place / "model", device=device, precision=precision)
