"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.completion import models, offering

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="In CSV and TSV, put a quote (') before texts that a spreadsheet runs as formulas (= + - @).",
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="Device: cpu, cuda, cuda:1 or mps. Chosen automatically if left out."),
]
Precision = Annotated[str, typer.Option("--precision", help="Numeric precision: fp32, bf16 or fp16.")]
LongTexts = Annotated[
    str,
    typer.Option(
        "--long",
        help=(
            "Texts longer than the encoder's limit: cut (only the beginning is read) or chunk (all is read, "
            "in windows)."
        ),
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="LIKEWISE_DATA",
        help="Folder that holds the named corpora (see `likewise data list`).",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that exist already.")]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="Model folder, hub id, 'raw' (the untrained encoder) or 'default' (likewise-mini).",
        autocompletion=offering(models),
    ),
]
TextColumn = Annotated[
    str | None, typer.Option("--text", help="Column of the text. Detected by its name if left out.")
]
Templates = Annotated[
    list[str] | None,
    typer.Option(
        "--template",
        help="Sentence around a label's words, such as 'This text is about {}.' Can be repeated.",
    ),
]
Relations = Annotated[
    list[str] | None,
    typer.Option(
        "--relation",
        help="Relation: NAME:lo..hi, NAME:classes, NAME:a|b or NAME:low<high. Can be repeated.",
    ),
]
TextA = Annotated[
    str | None, typer.Option("--text-a", help="Column of the first text. Detected by its name if left out.")
]
TextB = Annotated[
    str | None,
    typer.Option("--text-b", help="Column of the second text. Detected by its name if left out."),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="Character between the fields of a CSV file: , ; | or tab. Detected if left out.",
    ),
]
OnBad = Annotated[
    str,
    typer.Option(
        "--on-bad",
        help=(
            "What to do with rows whose texts are empty or unreadable: blank (keep them without answers), "
            "skip (leave them out) or stop."
        ),
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run with the same --output.")]
