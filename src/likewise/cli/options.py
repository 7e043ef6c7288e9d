"""Options that several verbs share, spelt once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="CSV and TSV for spreadsheets: a text that would run as a formula (= + - @) gets a quote (').",
    ),
]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, mps; chosen if left out.")]
Precision = Annotated[str, typer.Option("--precision", help="fp32, bf16 or fp16.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", envvar="LIKEWISE_DATA", help="Folder of the named corpora (`likewise data list`)."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that exist already.")]
Model = Annotated[str, typer.Option("--model", help="Model folder, hub id or 'default'.")]
TextA = Annotated[str | None, typer.Option("--text-a", help="Column of the first text; guessed if left out.")]
TextB = Annotated[
    str | None, typer.Option("--text-b", help="Column of the second text; guessed if left out.")
]
