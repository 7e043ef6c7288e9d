"""Notes and progress on standard error: lines, bars that vanish when done, and the view of a training.

The command line and the Python functions show the same. In a notebook, lines and bars appear below the cell.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.errors import LiveError
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

# What a terminal obeys or is confused by: control characters but tab and line feed, line separators, marks
# that turn the direction of writing around, halves of surrogate pairs (bytes that are not UTF-8).
OBEYED = r"\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNPRINTABLE = re.compile(rf"[\x00-\x08\x0b-\x1f{OBEYED}]")


def printable(text: str) -> str:
    """The text with each character that a terminal would act on escaped as in Python, such as \\x1b."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class PrintableConsole(Console):
    """A console that prints every text harmlessly: none can make the terminal do anything."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, with their texts made printable."""
        super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **options)


err = PrintableConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)

# What is done once before the first step, and in which unit, by kind of event.
# Where no bar can be shown, as in a log file, a line is printed every so many seconds.
LINE_SECONDS = 30.0
_BEFORE = {
    "encode": ("encoding", "texts"),
    "align": ("aligning", "pairs"),
    "neighbours": ("finding neighbours", "texts"),
}


def note(line: str) -> None:
    """Print one dimmed line of remark on standard error."""
    err.print(line, style="dim", markup=False)


def _shows_bars() -> bool:
    """Whether standard error can redraw a line: a terminal, or a notebook with widgets."""
    return err.is_terminal or (err.is_jupyter and find_spec("ipywidgets") is not None)


def progress_bar(unit: str) -> Progress:
    """A progress bar with count, elapsed and remaining time. It vanishes when done, and shows only on a
    terminal or in a notebook.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit, markup=False),
    )
    return Progress(
        *columns,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not _shows_bars(),
    )


@contextmanager
def counting(label: str, unit: str, total: int | None) -> Iterator[Any]:
    """A progress bar as a function: call it with the number of items just done. Away from a terminal it
    prints a line now and then.
    """
    bar = progress_bar(unit)
    task = bar.add_task(printable(label), total=total)
    done, told = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, told
        done += count
        bar.advance(task, count)
        if not err.is_terminal and time.monotonic() - told >= LINE_SECONDS:
            told = time.monotonic()
            note(f"{label}: {done:,}{'' if total is None else f' of {total:,}'} {unit}")

    with suppress(LiveError):
        bar.start()
    try:
        yield advance
    finally:
        bar.stop()


@contextmanager
def asked_progress(
    progress: Callable[[int], None] | None, *, quiet: bool, label: str, unit: str
) -> Iterator[Callable[[int], None] | None]:
    """What a Python caller asked for: a function of their own, nothing, or else a progress bar."""
    with _without_library_bars():
        if progress is not None or quiet:
            yield progress
            return
        with counting(label, unit, None) as advance:
            yield advance


@contextmanager
def viewed(
    tell: Callable[[str], None] | None,
    emit: Callable[[FitEvent], None] | None,
    *,
    quiet: bool,
    shown: bool = True,
) -> Iterator[tuple[Callable[[str], None], Callable[[FitEvent], None]]]:
    """Where a training reports, as a Python caller asked for: own functions, nothing, or else the view.

    If only one of the functions is given, nothing takes the reports of the other. `shown` is false in a
    process whose reports nobody reads.
    """
    with _without_library_bars():
        if quiet or tell is not None or emit is not None:
            yield tell or _unheard, emit or _unheard
            return
        with TrainingView(shown=shown) as view:
            yield view.tell, view.emit


@contextmanager
def _without_library_bars() -> Iterator[None]:
    """Keep the bars of transformers ("Loading weights") off the screen meanwhile."""
    from transformers.utils import logging as advice

    if not advice.is_progress_bar_enabled():
        yield
        return
    advice.disable_progress_bar()
    try:
        yield
    finally:
        advice.enable_progress_bar()


def _unheard(report: object) -> None:
    """Take a report and do nothing with it."""


class TrainingView:
    """Show a training: a bar per stage and a line per evaluation step.

    Without `shown` it prints nothing, as in the other processes of a distributed run.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown
        self._bar = progress_bar("{task.fields[unit]}")
        self._task: Any = None
        self._before: Any = None
        self._total = 0

    def __enter__(self) -> TrainingView:
        if self._shown:
            with suppress(LiveError):  # the caller's own bar is shown: this one stays away, its lines come
                self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tell(self, line: str) -> None:
        """Print a line of the plan."""
        if not self._shown:
            return
        self._task = None if line.startswith("stage ") else self._task
        err.print(line, markup=False)

    def emit(self, event: FitEvent) -> None:
        """Show one event of a fit."""
        if not self._shown:
            return
        if event.kind in _BEFORE:
            self._show_before(event)
            return
        if self._task is None:
            self._task = self._bar.add_task("training", total=event.total, unit="steps")
        if event.kind == "resume":
            self._bar.update(self._task, completed=event.step)
            note(f"  resuming after step {event.step:,} of {event.total:,}")
        elif event.kind == "step":
            self._bar.update(self._task, completed=event.step, description=f"loss {event.values['loss']:.4f}")
        elif event.kind == "evaluate":
            self._bar.update(self._task, completed=event.step)
            details = ", ".join(
                f"{name} {dev_score(value)}" for name, value in event.values.items() if name != "score"
            )
            when = f"step {event.step:,}/{event.total:,}" if event.step else "starting model"
            note(f"  {when}: dev {dev_score(event.values['score'])}  ({details})")

    def _show_before(self, event: FitEvent) -> None:
        """Show a bar of its own for work that is done once before the first step. It vanishes when done."""
        if self._before is None:
            doing, unit = _BEFORE[event.kind]
            self._before = self._bar.add_task(doing, total=event.total, unit=unit)
        self._bar.update(self._before, completed=event.step, total=event.total)
        if event.step >= event.total:
            self._bar.remove_task(self._before)
            self._before = None
