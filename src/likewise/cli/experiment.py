"""`likewise experiment`: settings × seeds from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import counting, note, out, quiet_libraries


def experiment(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.toml", help="The experiment: recipe, settings, seeds, grid.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder of the cells' results; runs/NAME if left out.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Cells trained side by side.")] = 1,
    summary: Annotated[
        Path | None, typer.Option("--summary", help="Also write the summary as JSON to this file.")
    ] = None,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Run settings × seeds, cell by cell; cells that are done are not run again.

    Example: likewise experiment benchmarks/experiments/regression-table2.toml --workers 2 --data-dir corpora
    """
    quiet_libraries()
    import json

    from likewise.data import write_json_aside
    from likewise.experiments import experiment as run

    with counting("cells", "cells", None) as advance:
        result = run(
            file,
            output=output,
            workers=workers,
            device=device,
            precision=precision,
            data_dir=data_dir,
            progress=advance,
            tell=note,
        )
    if summary is not None:
        write_json_aside(summary, result.to_dict())
        note(f"written: {summary}")
    if as_json:
        out.print_json(json.dumps(result.to_dict()))
    else:
        out.print(result.to_text(), markup=False)
