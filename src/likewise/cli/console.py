"""Terminal output: results to standard output; notes, progress and errors to standard error."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from likewise.wording import dev_score

if TYPE_CHECKING:
    from likewise.training.state import FitEvent

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


# What is done once before the first step, and in which unit, by kind of event.
_BEFORE = {"encode": ("encoding", "texts"), "align": ("aligning", "pairs")}


def note(line: str) -> None:
    """One line of remark, dimmed, on standard error."""
    err.print(line, style="dim", markup=False)


def quiet_libraries() -> None:
    """Keep the libraries' own bars and advice off the terminal; call before torch is loaded."""
    # OpenMP threads that spin while they wait slow training down many times over as soon as another process
    # wants the same cores. Read once, when torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # processes that this one starts are quiet too
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    from transformers.utils import logging as advice

    advice.disable_progress_bar()
    advice.set_verbosity_error()


def progress_bar(unit: str) -> Progress:
    """A bar with count, elapsed and remaining time, gone when done; silent where no terminal watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    return Progress(
        *columns,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


@contextmanager
def counting(label: str, unit: str, total: int | None) -> Iterator[Any]:
    """A bar as a function: call it with how many more are done."""
    with progress_bar(unit) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


class TrainingView:
    """Shows a run: a bar per stage, a line per evaluation; silent unless `shown` (other ranks of a run)."""

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown
        self._bar = progress_bar("{task.fields[unit]}")
        self._task: Any = None
        self._before: Any = None
        self._total = 0

    def __enter__(self) -> TrainingView:
        if self._shown:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tell(self, line: str) -> None:
        """A line of the plan."""
        if not self._shown:
            return
        self._task = None if line.startswith("stage ") else self._task
        err.print(line, markup=False)

    def emit(self, event: FitEvent) -> None:
        """One event of a fit."""
        if not self._shown:
            return
        if event.kind in _BEFORE:
            self._show_before(event)
            return
        if self._task is None:
            self._task = self._bar.add_task("training", total=event.total, unit="steps")
        if event.kind == "resume":
            self._bar.update(self._task, completed=event.step)
            note(f"  going on after step {event.step:,} of {event.total:,}")
        elif event.kind == "step":
            self._bar.update(self._task, completed=event.step, description=f"loss {event.values['loss']:.4f}")
        elif event.kind == "evaluate":
            self._bar.update(self._task, completed=event.step)
            details = ", ".join(
                f"{name} {dev_score(value)}" for name, value in event.values.items() if name != "score"
            )
            note(
                f"  step {event.step:,}/{event.total:,}: dev {dev_score(event.values['score'])}  ({details})"
            )

    def _show_before(self, event: FitEvent) -> None:
        """A bar of its own for what is done once before the first step, gone when it is done."""
        if self._before is None:
            doing, unit = _BEFORE[event.kind]
            self._before = self._bar.add_task(doing, total=event.total, unit=unit)
        self._bar.update(self._before, completed=event.step, total=event.total)
        if event.step >= event.total:
            self._bar.remove_task(self._before)
            self._before = None
