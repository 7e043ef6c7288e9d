"""Runs cells, here or in processes side by side, and reads what they wrote."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import EvaluationError, LikewiseError
from likewise.experiments.cell import Cell, run_cell, take_former
from likewise.experiments.related import Arrays

_WATCH_SECONDS = 1.0


class CellRunner:
    """Runs cells side by side and reads their files."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        progress: Callable[[int], None] | None,
        tell: Callable[[str], None],
    ) -> None:
        self._folder, self._workers = folder, workers
        self._progress, self._tell = progress, tell

    def run(self, cells: Iterable[Cell]) -> None:
        """Run the cells that have no file yet, each once."""
        distinct = {cell.key: cell for cell in cells}
        waiting = [cell for key, cell in distinct.items() if not self._is_there(cell)]
        if self._progress is not None:
            self._progress(len(distinct) - len(waiting))
        failed = list(self._run_here(waiting) if self._workers == 1 else self._run_beside(waiting))
        if failed:
            raise EvaluationError("\n".join([f"{len(failed)} of {len(distinct)} cells failed:", *failed]))

    def _is_there(self, cell: Cell) -> bool:
        """Whether a cell is done, under its key or its former one; those that do not count are named."""
        if self._file(cell.key).is_file() or take_former(cell, self._folder):
            return True
        former = self._file(cell.former_key)
        if former.is_file():
            self._tell(f"STALE {former.name}: a default of its recipe has changed since; it is trained again")
        return False

    def _run_here(self, cells: Sequence[Cell]) -> Iterator[str]:
        for cell in cells:
            yield from self._finish(cell, partial(run_cell, cell, self._folder))

    def _run_beside(self, cells: Sequence[Cell]) -> Iterator[str]:
        os.environ.setdefault("LIKEWISE_CELL_THREADS", str(max(1, (os.cpu_count() or 1) // self._workers)))
        with ProcessPoolExecutor(
            self._workers, mp_context=get_context("spawn"), initializer=end_with, initargs=(os.getpid(),)
        ) as pool:
            futures = {pool.submit(run_cell, cell, self._folder): cell for cell in cells}
            try:
                for future in as_completed(futures):
                    yield from self._finish(futures[future], future.result)
            except BaseException:  # a bug of ours, or Ctrl-C: the cells that wait would only delay it
                pool.shutdown(cancel_futures=True)
                raise

    def _finish(self, cell: Cell, result: Callable[[], Path]) -> Iterator[str]:
        """Tell how a cell went; one that failed is named, and the others go on: they do not need it."""
        try:
            path = result()
        except LikewiseError as error:
            line = f"{cell.setting} seed {cell.seed}: {error}"
            self._tell(f"FAILED {line}")
            yield line
            return
        self._finished(cell, path)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _finished(self, cell: Cell, path: Path) -> None:
        found = json.loads(path.read_text(encoding="utf8"))
        results = found.get("results", {})
        averages = {s: round(r["average"], 2) for s, r in results.items() if r["average"] is not None}
        dev = "–" if found["dev"] is None else f"{found['dev']:.4f}"
        self._tell(
            f"{cell.setting} seed {cell.seed} {cell.overrides}: dev {dev} {averages} {found['seconds']:.0f} s"
        )
        if self._progress is not None:
            self._progress(1)

    def arrays(self, cell: Cell) -> Arrays:
        """The predictions a finished cell left, and their gold."""
        with np.load(self._folder / f"{cell.key}.npz", allow_pickle=False) as file:
            return dict(file.items())

    def read(self, cell: Cell) -> dict[str, Any]:
        """What a finished cell wrote."""
        document: dict[str, Any] = json.loads(self._file(cell.key).read_text(encoding="utf8"))
        return document


def end_with(parent: int) -> None:
    """End this process when the one that started it is gone: nobody would read what it computes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
