"""`likewise experiment`: settings × seeds from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import counting, note, out, quiet_libraries
from likewise.errors import UsageError
from likewise.outputs import check_output_file


def experiment(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE.toml...", help="Experiments: recipe, settings, seeds, grid.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", help="Folder of the cells' results; experiments share the cells in it."),
    ] = Path("runs/cells"),
    workers: Annotated[int, typer.Option("--workers", min=1, help="Cells trained side by side.")] = 1,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            help="Also write FOLDER/NAME.json per experiment, and its predictions beside it.",
            metavar="FOLDER",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Also write FOLDER/NAME.md and NAME.svg (a plot); NAME-affinity.svg for sets of tasks.",
            metavar="FOLDER",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
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

    from likewise.data import write_text_aside
    from likewise.experiments import read_inputs, run_experiments
    from likewise.experiments.predictions import write_summary

    inputs = [*files, *read_inputs(files, data_dir)]
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output {output} is a file: cells get a folder; name another one")
    written = _written(files, summary, report)
    for path in written:
        check_output_file(path, inputs=inputs, overwrite=overwrite, option="--summary or --report")
    if len(set(written)) < len(written):
        raise UsageError("two experiments have the same name, so one would replace the other; rename one")
    with counting("cells", "cells", None) as advance:
        results = run_experiments(
            files,
            output=output,
            workers=workers,
            device=device,
            precision=precision,
            data_dir=data_dir,
            keep_predictions=summary is not None,
            progress=advance,
            tell=note,
        )
    for result in results:
        if summary is not None:
            written = write_summary(result, summary, replace=overwrite)
            note(f"written: {', '.join(map(str, written))}")
        if report is not None:
            from likewise.experiments.affinity_plot import draw_affinity
            from likewise.experiments.plot import draw

            draw(result, report / f"{result.name}.svg", replace=overwrite)
            write_text_aside(report / f"{result.name}.md", result.to_markdown() + "\n", replace=overwrite)
            note(f"written: {report / result.name}.md, .svg")
            if affinity := result.affinity():
                heat_maps = report / f"{result.name}-affinity.svg"
                draw_affinity(affinity, heat_maps, title=result.name, replace=overwrite)
                note(f"written: {report / result.name}-affinity.svg")
        if not as_json:
            out.print(result.to_text(), markup=False)
    if as_json:
        documents = [result.to_dict() for result in results]
        out.print_json(json.dumps(documents[0] if len(files) == 1 else documents))


def _written(files: list[Path], summary: Path | None, report: Path | None) -> list[Path]:
    """The files that experiments are written to, known before the first cell is trained."""
    from likewise.experiments.schema import read_experiment

    names = [read_experiment(file).name for file in files] if summary or report else []
    found = []
    if summary is not None:
        found = [summary / f"{name}.json" for name in names]
    if report is not None:
        endings = (".md", ".svg", "-affinity.svg")
        found += [report / f"{name}{ending}" for name in names for ending in endings]
    return found
