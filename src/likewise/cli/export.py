"""`likewise export`: write a trained model in another form."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.completion import models, offering
from likewise.cli.console import note, out, quiet_libraries


def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A trained model.", autocompletion=offering(models))
    ],
    output: Annotated[Path, typer.Option("--output", help="Folder to write to. The old model stays.")],
    to: Annotated[
        str,
        typer.Option("--to", help="Form: delta (the change of the encoder's weights, cut to a low rank)."),
    ] = "delta",
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            help="Encoder that the model was trained from. Defaults to the one that its recipe names.",
            autocompletion=offering(models),
        ),
    ] = None,
    rank: Annotated[
        int, typer.Option("--rank", min=1, help="Largest rank of the change of a weight matrix.")
    ] = 32,
    storage: Annotated[
        str, typer.Option("--storage", help="Numbers that are stored: float16, or int8 (half the size).")
    ] = "float16",
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Write a model as a delta: a small folder that holds the change of its encoder's weights.

    The encoder that it changes, its base, must be on the machine that loads the folder.

    Example: likewise export my-model --to delta --rank 32 --output my-delta
    """
    quiet_libraries()
    from likewise import api

    report = api.export(
        model, output, to=to, base=base, rank=rank, storage=storage, overwrite=overwrite, tell=note
    )
    if as_json:
        out.print_json(json.dumps({**asdict(report), "output": str(report.output), "to": to}))
        return
    out.print(
        f"{report.bytes / 1e6:.1f} MB as a change of {report.base}; rank {report.rank} in {report.storage} "
        f"keeps {100 * report.kept:.1f} % of the change (Frobenius norm)",
        markup=False,
    )
    out.print(
        f"vectors of {report.texts} texts differ from the whole model's by at most "
        f"{100 * report.difference:.2f} % of their length",
        markup=False,
    )
    note(f"model: {report.output}")
