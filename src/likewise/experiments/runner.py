"""Run cells, in this process or in several, and read their files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from likewise.disk import BusyError, drop_turn, sweep
from likewise.errors import EvaluationError, LikewiseError
from likewise.experiments.cell import Cell, run_cell
from likewise.experiments.cellfiles import DamagedCellError, read_arrays, read_cell
from likewise.experiments.related import Arrays
from likewise.spelling import speak_flags, speaks_flags, spelt

_WATCH_SECONDS = 1.0
_BUSY = "another process trains this cell"


class CellRunner:
    """Runs cells, several at once if there are several workers, and reads their files."""

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
        """Run each cell that has no file yet once."""
        distinct = {cell.key: cell for cell in cells}
        sweep(self._folder)
        waiting = [cell for key, cell in distinct.items() if not self._is_there(cell)]
        if self._progress is not None:
            self._progress(len(distinct) - len(waiting))
        failed = list(self._run_here(waiting) if self._workers == 1 else self._run_beside(waiting))
        if failed:
            raise EvaluationError("\n".join([f"{len(failed)} of {len(distinct)} runs failed:", *failed]))

    def _is_there(self, cell: Cell) -> bool:
        """Whether a cell is finished; a damaged one is reported."""
        if self._file(cell.key).is_file():
            try:
                read_cell(self._folder, cell.key)
                # Whoever trained it may have been killed before it could remove its lock.
                drop_turn(self._folder / f"{cell.key}.lock")
                return True
            except DamagedCellError as error:
                [problem] = error.problems
                self._tell(f"DAMAGED {problem.source}: {problem.message}; this run is trained again")
                return False
        return False

    def _run_here(self, cells: Sequence[Cell]) -> Iterator[str]:
        postponed: list[Cell] = []

        def run_free(cell: Cell) -> Path | None:
            try:
                return run_cell(cell, self._folder, busy=_BUSY)
            except BusyError:
                postponed.append(cell)  # it may be done by the time that the others are
                return None

        for cell in cells:
            yield from self._finish(cell, partial(run_free, cell))
        for cell in postponed:
            yield from self._finish(cell, partial(run_cell, cell, self._folder))

    def _run_beside(self, cells: Sequence[Cell]) -> Iterator[str]:
        os.environ.setdefault("LIKEWISE_CELL_THREADS", str(max(1, (os.cpu_count() or 1) // self._workers)))
        with ProcessPoolExecutor(
            self._workers,
            mp_context=get_context("spawn"),
            initializer=begin_worker,
            initargs=(os.getpid(), speaks_flags()),
        ) as pool:
            futures = {pool.submit(run_cell, cell, self._folder): cell for cell in cells}
            try:
                for future in as_completed(futures):
                    yield from self._finish(futures[future], future.result)
            except BaseException:  # a bug of ours, or Ctrl-C: the cells that wait would only delay it
                pool.shutdown(cancel_futures=True)
                raise

    def _finish(self, cell: Cell, result: Callable[[], Path | None]) -> Iterator[str]:
        """Report a finished or failed cell; the others continue after a failure.

        A cell whose result is None was not run and is not reported.
        """
        try:
            done = result() is not None
        except BrokenProcessPool as error:
            again = "command" if speaks_flags() else "call"
            raise EvaluationError(
                "a training process was ended from outside (killed, or out of memory). Finished runs are "
                f"kept. Run the same {again} again, with fewer {spelt('workers')} if memory is short."
            ) from error
        except LikewiseError as error:
            line = f"{cell.setting} seed {cell.seed}: {error}"
            self._tell(f"FAILED {line}")
            yield line
            return
        if done:
            self._finished(cell)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _finished(self, cell: Cell) -> None:
        found = self.read(cell)
        results = found.get("results", {})
        averages = [f"{s} average {r['average']:.2f}" for s, r in results.items() if r["average"] is not None]
        dev = "–" if found["dev"] is None else f"{found['dev']:.4f}"
        numbers = ", ".join([f"dev score {dev}", *averages, f"{found['seconds']:.0f} s"])
        self._tell(f"{cell.setting} seed {cell.seed} {cell.overrides}: {numbers}")
        if self._progress is not None:
            self._progress(1)

    def arrays(self, cell: Cell) -> Arrays:
        """The predictions of a finished cell, with the ratings or labels."""
        return read_arrays(self._folder, cell.key)

    def read(self, cell: Cell) -> dict[str, Any]:
        """The content of a finished cell's file."""
        return read_cell(self._folder, cell.key)


def begin_worker(parent: int, flags: bool) -> None:
    """Let a new process name options as the process that started it does, and end with that process."""
    if flags:
        speak_flags()
    end_with(parent)


def end_with(parent: int) -> None:
    """End this process when the process that started it has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
