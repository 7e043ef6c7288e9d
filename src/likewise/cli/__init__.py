"""The command line: one file per verb. Nothing here loads torch; verbs do, when they run."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from likewise.cli import (
    audit,
    cache,
    classify,
    data,
    demo,
    evaluate,
    experiment,
    explain,
    score,
    train,
    update,
)
from likewise.cli.console import err
from likewise.errors import Interrupted, LikewiseError


class _Verbs(TyperGroup):
    """The verbs. An interrupt is told from here on: typer would end the program without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None


app = typer.Typer(
    cls=_Verbs,
    help="Train small text encoders to judge how two texts relate, and say how far to trust the answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("score", rich_help_panel="Use")(score.score)
app.command("explain", rich_help_panel="Use")(explain.explain)
app.command("classify", rich_help_panel="Use")(classify.classify)
app.command("train", rich_help_panel="Make")(train.train)
app.command("update", rich_help_panel="Make")(update.update)
app.command("evaluate", rich_help_panel="Trust")(evaluate.evaluate)
app.command("audit", rich_help_panel="Trust", cls=audit.AuditCommand)(audit.audit)
app.command("experiment", rich_help_panel="Trust")(experiment.experiment)
app.add_typer(data.app, name="data", rich_help_panel="Data")
app.add_typer(cache.app, name="cache", rich_help_panel="Data")
app.command("demo", rich_help_panel="Data")(demo.demo)


def _version(show: bool) -> None:
    if show:
        from likewise import __version__

        typer.echo(f"likewise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Train small text encoders to judge how two texts relate, and say how far to trust the answer."""


def main() -> None:
    """Run the command line; an error a user can act on is one message and an exit code, never a traceback."""
    try:
        app()
    except (Interrupted, KeyboardInterrupt) as stop:
        err.print(str(stop) or "interrupted", style="yellow", markup=False)
        sys.exit(Interrupted.exit_code)
    except LikewiseError as error:
        err.print(f"error: {error}", style="red", markup=False)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away (| head): say nothing, and keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
