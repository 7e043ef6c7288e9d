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
from typing import Any

from rich.highlighter import JSONHighlighter

from likewise.progress import (
    OBEYED,
    PrintableConsole,
    TrainingView,
    counting,
    err,
    note,
    printable,
    progress_bar,
)

__all__ = [
    "PrintableConsole",
    "TrainingView",
    "counting",
    "err",
    "flush_output",
    "note",
    "out",
    "prepare_streams",
    "printable",
    "printable_json",
    "progress_bar",
    "quiet_libraries",
    "silence_output",
    "written_json",
]

_UNSAFE_IN_JSON = re.compile(rf"[{OBEYED}]")


def printable_json(text: str) -> str:
    """The JSON text with each character that a terminal would act on escaped as in JSON."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def written_json(text: str, *, indent: int | None = 2) -> str:
    """The JSON text in a new layout, in characters that standard output can write and no terminal acts on."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    laid_out = json.dumps(json.loads(text), indent=indent, ensure_ascii=not encoding.startswith("utf"))
    return printable_json(laid_out)


class _Output(PrintableConsole):
    """Standard output, which takes JSON too."""

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Print JSON over several lines, with characters that a terminal would act on escaped."""
        self.print(JSONHighlighter()(written_json(json or "null")), soft_wrap=True)


out = _Output(highlight=False, soft_wrap=True, emoji=False)


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


def quiet_libraries() -> None:
    """Keep the libraries' own progress bars and advice off the terminal. Call it before torch is loaded."""
    # OpenMP threads that spin while they wait slow training down many times over as soon as another process
    # wants the same cores. Read once, when torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # processes that this one starts are quiet too
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    if "huggingface_hub" in sys.modules:  # it has read the environment, and transformers asks it
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()
    if "transformers" not in sys.modules:
        return  # it reads the environment when it loads
    from transformers.utils import logging as advice

    advice.disable_progress_bar()
    advice.set_verbosity_error()
