"""`likewise data import`: from an export of an annotation tool to a file of ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from likewise.cli import options
from likewise.cli.console import note, out
from likewise.disk import to_json
from likewise.errors import UsageError
from likewise.outputs import check_output_file


def import_export(
    export: Annotated[
        str,
        typer.Argument(
            metavar="EXPORT",
            help=(
                "Export of Label Studio (JSON, JSON-MIN, CSV) or Argilla (JSON, JSON lines, parquet, "
                "folder), or a table with one column or one row per annotator."
            ),
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", help="File to write the ratings to (.csv .tsv .jsonl .parquet)."),
    ],
    relation: options.Relations = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    annotator: Annotated[
        list[str] | None,
        typer.Option(
            "--annotator",
            help=(
                "Column with the ratings of one annotator. Can be repeated. Found by names such as rater1, "
                "rater2 if left out."
            ),
        ),
    ] = None,
    ties: Annotated[
        str,
        typer.Option(
            "--ties",
            help="What a tie between labels becomes: empty, or the label that is declared first (first).",
        ),
    ] = "empty",
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Call the annotators r1, r2, … in the output.")
    ] = False,
    overwrite: options.Overwrite = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
) -> None:
    """Turn an export of annotations into a file of ratings, and measure how far the annotators agree.

    Each relation gets a column with the mean rating (of labels: the majority), a column NAME@ANNOTATOR for
    each annotator, and NAME@raters with the number of ratings. Agreement is Krippendorff's α.

    Example: likewise data import project-1.json --relation similarity:0..5 --output ratings.csv
    """
    check_output_file(output, inputs=[export], overwrite=overwrite)
    if ties not in ("empty", "first"):
        raise UsageError(f"--ties is {ties!r}. Choose empty or first.")
    from likewise.annotation.importing import import_annotations

    report = import_annotations(
        export,
        output,
        relations=relation or (),
        text_a=text_a,
        text_b=text_b,
        annotators=annotator or (),
        ties=cast(Literal["empty", "first"], ties),
        pseudonyms=pseudonyms,
        safe=safe_csv,
        overwrite=overwrite,
    )
    if as_json:
        out.print_json(to_json(report.to_dict()))
        return
    for line in report.lines():
        out.print(line, markup=False)
    for command in report.commands:
        note(f"next: {command}")
