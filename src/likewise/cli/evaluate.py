"""`likewise evaluate`: models on a suite, with the protocol beside the numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import counting, note, out, quiet_libraries
from likewise.data import write_json_aside


def evaluate(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL…", help="Model folders, hub ids or 'default'.")
    ],
    suite: Annotated[
        str, typer.Option("--suite", help="sts7, relations, or a FILE.toml with tasks of your own.")
    ] = "sts7",
    source: Annotated[
        str, typer.Option("--source", help="Scores from the cosine or from the head.")
    ] = "cosine",
    aggregation: Annotated[
        str, typer.Option("--aggregation", help="Over subsets: all, mean or wmean.")
    ] = "all",
    metric: Annotated[
        str, typer.Option("--metric", help="spearman, pearson, …, where a task names none.")
    ] = "spearman",
    output: Annotated[
        Path | None, typer.Option("--output", help="Also write the result as JSON to this file.")
    ] = None,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Measure models on a suite of rated pairs.

    Example: likewise evaluate default my-model --suite sts7 --data-dir corpora
    """
    quiet_libraries()
    from likewise.api import evaluate as measure
    from likewise.evaluation.protocol import Protocol
    from likewise.evaluation.suites import get_suite

    chosen = get_suite(suite)
    Protocol(metric=metric, aggregation=aggregation, source=source)  # type: ignore[arg-type]
    results = []
    for model in models:
        with counting(f"evaluating {Path(model).name}", "texts", None) as advance:
            results.append(
                measure(
                    model,
                    chosen,
                    source=source,
                    aggregation=aggregation,
                    metric=metric,
                    data_dir=data_dir,
                    device=device,
                    precision=precision,
                    progress=advance,
                )
            )
    documents = [{"model": model, **result.to_dict()} for model, result in zip(models, results, strict=True)]
    if output is not None:
        write_json_aside(output, documents[0] if len(documents) == 1 else documents)
        note(f"written: {output}")
    if as_json:
        out.print_json(json.dumps(documents[0] if len(documents) == 1 else documents))
        return
    for model, result in zip(models, results, strict=True):
        if len(models) > 1:
            out.print(f"\n{model}", style="bold", markup=False)
        out.print(result.to_text(), markup=False)
