"""`likewise evaluate`: models on a suite, with the protocol beside the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.console import counting, note, out, quiet_libraries
from likewise.data import write_json_aside
from likewise.errors import LikewiseError, UsageError

if TYPE_CHECKING:
    from likewise.evaluation.crosslingual import CrosslingualResult
    from likewise.evaluation.results import SuiteResult


def evaluate(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL…", help="Model folders, hub ids or 'default'.")
    ],
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            help="sts7, relations, crosslingual, language-pairs, paraphrase, classification, a FILE.toml.",
        ),
    ] = "sts7",
    source: Annotated[
        str, typer.Option("--source", help="Scores from the cosine or from the head.")
    ] = "cosine",
    aggregation: Annotated[
        str, typer.Option("--aggregation", help="Over subsets: all, mean or wmean.")
    ] = "all",
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="spearman, pearson, f1, …, where a task names none. Left out: the relation's own, "
            "spearman for numbers, accuracy for labels.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Also write the result as JSON to this file.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="crosslingual: also write tables and a plot to this folder.", metavar="FOLDER"
        ),
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
    from likewise import api
    from likewise.evaluation.protocol import Protocol
    from likewise.evaluation.suites import CROSSLINGUAL, get_suite

    chosen = suite if suite == CROSSLINGUAL else get_suite(suite)
    Protocol(metric=metric or "spearman", aggregation=aggregation, source=source)  # type: ignore[arg-type]
    results: list[SuiteResult | CrosslingualResult] = []
    for model in models:
        with counting(f"evaluating {Path(model).name}", "texts", None) as advance:
            try:
                found = api.evaluate(
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
            except LikewiseError:
                # What was measured before is not lost.
                if results:
                    _show(models[: len(results)], results, None, as_json)
                if len(models) > 1:
                    note(f"{model} is not measured")
                raise
        results.append(found)
        if report is not None:
            _write_report(found, report if len(models) == 1 else report / Path(model).name)
    _show(models, results, output, as_json)


def _write_report(found: SuiteResult | CrosslingualResult, folder: Path) -> None:
    from likewise.evaluation.crosslingual import CrosslingualResult, write_report

    if not isinstance(found, CrosslingualResult):
        raise UsageError("--report goes with --suite crosslingual; --output writes any result as JSON")
    for file in write_report(found, folder):
        note(f"written: {file}")


def _show(models: list[str], results: Sequence[Any], output: Path | None, as_json: bool) -> None:
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
