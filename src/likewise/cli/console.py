"""Terminal output: results go to standard output; notes, progress and errors go to standard error.

Everything a person reads passes through `printable`, so that no text, label or file name can move the cursor
or change the colour or title of the terminal. JSON and tables for programs keep all characters; JSON escapes
them.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.highlighter import JSONHighlighter
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
_OBEYED = r"\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNPRINTABLE = re.compile(rf"[\x00-\x08\x0b-\x1f{_OBEYED}]")
_UNSAFE_IN_JSON = re.compile(rf"[{_OBEYED}]")


def printable(text: str) -> str:
    """The text with each character that a terminal would act on escaped as in Python, such as \\x1b."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    """The JSON text with each character that a terminal would act on escaped as in JSON."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PrintableConsole(Console):
    """A console that prints every text harmlessly: none can make the terminal do anything."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, with their texts made printable."""
        super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **options)

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Print JSON over several lines, with characters that a terminal would act on escaped."""
        self.print(JSONHighlighter()(written_json(json or "null")), soft_wrap=True)


def written_json(text: str, *, indent: int | None = 2) -> str:
    """The JSON text in a new layout, in characters that standard output can write and no terminal acts on."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    laid_out = json.dumps(json.loads(text), indent=indent, ensure_ascii=not encoding.startswith("utf"))
    return printable_json(laid_out)


out = PrintableConsole(highlight=False, soft_wrap=True, emoji=False)
err = PrintableConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)


class _Told(logging.Handler):
    """Show what the library logs, one line each, on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a record."""
        err.print(record.getMessage(), markup=False)


class _Closed(io.TextIOBase):
    """A standard output that nobody opened. Writing to it is an error, so that no output is lost silently."""

    encoding = "utf-8"

    def write(self, text: Any) -> int:
        """Refuse to write."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")

    @property
    def buffer(self) -> _Closed:
        """The same object, for bytes."""
        return self


def prepare_streams() -> None:
    """Prepare the standard streams for any text, and keep files from taking the place of closed streams."""
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            # Otherwise the next file that is opened would be standard output to every library.
            _occupy(number)
        elif number and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = _Closed()
    logger = logging.getLogger("likewise")
    if not logger.hasHandlers():
        logger.addHandler(_Told(logging.WARNING))


def _occupy(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != number:
            os.dup2(null, number)
            os.close(null)


def flush_output() -> None:
    """Write the rest of the output. A full disk, or a reader that has gone away, shows up only here."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def silence_output() -> None:
    """Drop what standard output could not take, so that Python does not complain about it at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # no real file stands behind it
        return


# What is done once before the first step, and in which unit, by kind of event.
_BEFORE = {"encode": ("encoding", "texts"), "align": ("aligning", "pairs")}


def note(line: str) -> None:
    """Print one dimmed line of remark on standard error."""
    err.print(line, style="dim", markup=False)


def quiet_libraries() -> None:
    """Keep the libraries' own progress bars and advice off the terminal. Call it before torch is loaded."""
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
    """A progress bar with count, elapsed and remaining time. It vanishes when done, and shows only on a
    terminal.
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
        disable=not err.is_terminal,
    )


# Where no bar can be shown, as in a log file, a line is printed every so many seconds.
LINE_SECONDS = 30.0


@contextmanager
def counting(label: str, unit: str, total: int | None) -> Iterator[Any]:
    """A progress bar as a function: call it with the number of items just done. Away from a terminal it
    prints a line now and then.
    """
    done, told = 0, time.monotonic()

    def tell(count: int) -> None:
        nonlocal done, told
        done += count
        if not err.is_terminal and time.monotonic() - told >= LINE_SECONDS:
            told = time.monotonic()
            note(f"{label}: {done:,}{'' if total is None else f' of {total:,}'} {unit}")

    with progress_bar(unit) as bar:
        task = bar.add_task(printable(label), total=total)

        def advance(count: int) -> None:
            bar.advance(task, count)
            tell(count)

        yield advance


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
