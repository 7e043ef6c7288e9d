"""`likewise experiment`: train every setting with every seed, as one file describes."""

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
        list[Path],
        typer.Argument(metavar="FILE.toml...", help="Experiment files: recipe, settings, seeds and grid."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            help="Folder for the results of the runs. Experiments with the same folder share their runs.",
        ),
    ] = Path("runs/cells"),
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="Number of runs to train in parallel.")
    ] = 1,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            help="Also write FOLDER/NAME.json for each experiment, with its predictions beside it.",
            metavar="FOLDER",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help=(
                "Also write FOLDER/NAME.md and a plot, NAME.svg. Sets of tasks also get NAME-affinity.svg."
            ),
            metavar="FOLDER",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Train every setting with every seed. Runs that are done already are not repeated.

    Example: likewise experiment benchmarks/experiments/regression-table2.toml --workers 2 --data-dir corpora
    """
    quiet_libraries()
    import json

    from likewise.data import write_text_aside
    from likewise.experiments import read_inputs, run_experiments
    from likewise.experiments.predictions import write_summary

    inputs = [*files, *read_inputs(files, data_dir)]
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output {output} is a file, but the runs need a folder. Name a folder.")
    written = _written(files, summary, report)
    for path in written:
        check_output_file(path, inputs=inputs, overwrite=overwrite, option="--summary or --report")
    if len(set(written)) < len(written):
        raise UsageError(
            "two experiments have the same name, so one would replace the other. Rename one of them."
        )
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
            note(f"wrote {', '.join(map(str, written))}")
        if report is not None:
            from likewise.experiments.affinity_plot import draw_affinity
            from likewise.experiments.plot import draw

            draw(result, report / f"{result.name}.svg", replace=overwrite)
            write_text_aside(report / f"{result.name}.md", result.to_markdown() + "\n", replace=overwrite)
            note(f"wrote {report / result.name}.md and .svg")
            if affinity := result.affinity():
                heat_maps = report / f"{result.name}-affinity.svg"
                draw_affinity(affinity, heat_maps, title=result.name, replace=overwrite)
                note(f"wrote {report / result.name}-affinity.svg")
        if not as_json:
            out.print(result.to_text(), markup=False)
    if as_json:
        documents = [result.to_dict() for result in results]
        out.print_json(json.dumps(documents[0] if len(files) == 1 else documents))


def _written(files: list[Path], summary: Path | None, report: Path | None) -> list[Path]:
    """The files that experiments will write, known before the first run is trained."""
    from likewise.experiments.schema import read_experiment

    names = [read_experiment(file).name for file in files] if summary or report else []
    found = []
    if summary is not None:
        found = [summary / f"{name}.json" for name in names]
    if report is not None:
        endings = (".md", ".svg", "-affinity.svg")
        found += [report / f"{name}{ending}" for name in names for ending in endings]
    return found
