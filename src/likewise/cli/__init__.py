"""The command line, with one file per verb. Importing it loads no torch; a verb loads what it needs when
it runs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from likewise.cli import (
    audit,
    cache,
    calibrate,
    classify,
    data,
    demo,
    evaluate,
    experiment,
    explain,
    export,
    score,
    train,
    update,
)
from likewise.cli.console import err, flush_output, prepare_streams, printable, silence_output
from likewise.errors import Interrupted, LikewiseError
from likewise.files import os_message, remembering_inputs
from likewise.spelling import speaking_flags
from likewise.wording import clipped


class _Verbs(TyperGroup):
    """The group of verbs. It reports an interrupt itself, because typer would end the program without a
    message.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        with speaking_flags():
            return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _printable_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _printable_errors():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None


@contextmanager
def _printable_errors() -> Iterator[None]:
    """Make typer's messages about wrong options printable, because they quote what the user typed."""
    try:
        yield
    except Exception as error:
        said = vars(error).get("message")
        if isinstance(said, str) and not isinstance(error, LikewiseError):
            error.message = printable(said)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=_Verbs,
    help="Train small text encoders to judge how two texts relate, and measure how good their answers are.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("demo", rich_help_panel="Start")(demo.demo)
app.command("score", rich_help_panel="Use")(score.score)
app.command("explain", rich_help_panel="Use")(explain.explain)
app.command("classify", rich_help_panel="Use")(classify.classify)
app.command("train", rich_help_panel="Train")(train.train)
app.command("update", rich_help_panel="Train")(update.update)
app.command("export", rich_help_panel="Train")(export.export)
app.command("calibrate", rich_help_panel="Evaluate")(calibrate.calibrate)
app.command("evaluate", rich_help_panel="Evaluate")(evaluate.evaluate)
app.command("audit", rich_help_panel="Evaluate", cls=audit.AuditCommand)(audit.audit)
app.command("experiment", rich_help_panel="Evaluate")(experiment.experiment)
app.add_typer(data.app, name="data", rich_help_panel="Data")
app.add_typer(cache.app, name="cache", rich_help_panel="Data")


def _version(show: bool) -> None:
    if show:
        from likewise import __version__

        typer.echo(f"likewise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", callback=_version, is_eager=True
    ),
) -> None:
    """Train small text encoders to judge how two texts relate, and measure how good their answers are."""


class _Stop(KeyboardInterrupt):
    """The process was asked to end (SIGTERM, SIGHUP). It ends as after Ctrl-C and cleans up."""


def _stop(number: int, frame: object) -> None:
    # A second signal, while files are being removed, changes nothing.
    signal.signal(number, signal.SIG_IGN)
    _stopped_by.append(number)
    raise _Stop


_stopped_by: list[int] = []


def main() -> None:
    """Run the command line. An error that a user can act on becomes one message and an exit code, not a
    traceback.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    prepare_streams()
    try:
        try:
            with remembering_inputs():
                app()
        except SystemExit:
            flush_output()
            raise
    except (Interrupted, KeyboardInterrupt) as stop:
        _say(str(stop) or "interrupted", "yellow")
        sys.exit(128 + _stopped_by[0] if _stopped_by else Interrupted.exit_code)
    except LikewiseError as error:
        _say(f"error: {error}", "red")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away (| head): say nothing, and keep Python from complaining at exit.
        silence_output()
        sys.exit(0)
    except BaseException as error:
        if os.environ.get(_TRACEBACK) or not isinstance(error, (Exception, *_panics())):
            raise
        message, code = _explained(error)
        _say(f"error: {message}", "red")
        silence_output()
        sys.exit(code)


_TRACEBACK = "LIKEWISE_TRACEBACK"
# What sysexits.h calls an internal error: the program is wrong, not its input.
_BUG = 70


def _panics() -> tuple[type[BaseException], ...]:
    """The exceptions of the tokenizer when it fails. They do not inherit from Exception, and no module
    exports them.
    """
    return tuple(kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException")


def _explained(error: BaseException) -> tuple[str, int]:
    """One message about an error that no check caught, and the exit code of the program."""
    if isinstance(error, _panics()):
        return f"the model's tokenizer failed on a text ({clipped(str(error))}). Use another model.", 1
    if isinstance(error, OSError):
        return os_message(error), 1
    if isinstance(error, MemoryError) or _is_out_of_memory(error):
        return "there is not enough memory. Use a smaller batch, fewer rows at a time, or shorter texts.", 1
    if isinstance(error, RecursionError):
        return "a file, or the name of one, is nested too deeply. Use fewer levels.", 1
    if isinstance(error, UnicodeError):
        return f"a text cannot be read or written ({clipped(str(error))}). Save it as UTF-8.", 1
    found = " ".join(f"{type(error).__name__}: {error}".split())
    told = f"this is a bug in likewise ({clipped(found)})"
    return f"{told}. Please report it, together with what the command prints after {_TRACEBACK}=1.", _BUG


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether torch ran out of memory, on a GPU or on this machine. For the latter it has no class of its
    own.
    """
    said = "not enough memory" in str(error) or "can't allocate memory" in str(error)
    return type(error).__name__ == "OutOfMemoryError" or (isinstance(error, RuntimeError) and said)


def _say(line: str, style: str) -> None:
    with suppress(OSError):  # standard error may be closed or full; the exit code still tells
        err.print(line, style=style, markup=False)
