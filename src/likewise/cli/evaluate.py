"""`likewise evaluate`: measure models on a suite, and state the protocol beside the numbers."""

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
from likewise.outputs import check_output_file, is_same

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
            help=(
                "Suite: sts7, relations, crosslingual, language-pairs, paraphrase, classification "
                "or a FILE.toml."
            ),
        ),
    ] = "sts7",
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help=(
                "Source of the answers: answer, cosine, head, mean or matcher. Defaults to the source that "
                "the suite names."
            ),
        ),
    ] = None,
    aggregation: Annotated[
        str,
        typer.Option(
            "--aggregation", help="How to combine subsets: all (pooled), mean, or wmean (weighted by size)."
        ),
    ] = "all",
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help=(
                "Metric for tasks that name none: spearman, pearson, f1, … "
                "Defaults to the metric of the relation."
            ),
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="File to write the result to, as JSON.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Folder to write tables and a plot to. Only for the suite crosslingual.",
            metavar="FOLDER",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Measure models on a suite of rated pairs or labelled texts.

    The source "answer" is what `likewise score` answers, and "matcher" exists only for label models. The
    suites sts7 and language-pairs measure the cosine by default. Other suites measure the answer. The
    default metric is spearman or accuracy. The log is runs/likewise-test-runs.jsonl.

    Example: likewise evaluate default my-model --suite sts7 --data-dir corpora
    """
    quiet_libraries()
    from likewise import api
    from likewise.evaluation.protocol import Protocol
    from likewise.evaluation.runlog import log_path
    from likewise.evaluation.suites import CROSSLINGUAL, get_suite, suite_files

    chosen = suite if suite == CROSSLINGUAL else get_suite(suite)
    Protocol(metric=metric or "spearman", aggregation=aggregation, source=source or "answer")  # type: ignore[arg-type]
    if output is not None:
        # The log of looks at test data is appended to by this very command.
        check_output_file(output, inputs=[*models, suite, *suite_files(suite, data_dir)], overwrite=overwrite)
        if is_same(output, log_path()):
            raise UsageError(
                f"--output {output} is the log of test runs, which this command appends to. Choose "
                "another name for the output."
            )
    reported = _report_files(report, models)
    if len(set(reported)) < len(reported):
        raise UsageError(
            "two of the models have the same name, so one report would replace the "
            "other. Rename one of the folders."
        )
    for file in reported:
        check_output_file(file, inputs=models, overwrite=overwrite, option="--report")
    results: dict[str, SuiteResult | CrosslingualResult] = {}
    failed: dict[str, LikewiseError] = {}
    for model in dict.fromkeys(models):
        with counting(f"evaluating {Path(model).name}", "texts", None) as advance:
            try:
                results[model] = api.evaluate(
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
            except LikewiseError as error:
                # The others are measured all the same.
                failed[model] = error
                continue
        if report is not None:
            _write_report(results[model], _report_folder(report, models, model), replace=overwrite)
    measured = list(results.values())
    if output is not None and results:
        _write_result(output, _documents(list(results), measured), replace=overwrite)
    if results:
        _show(list(results), measured, as_json)
    _tell_failed(failed, len(models))


def _tell_failed(failed: dict[str, LikewiseError], count: int) -> None:
    """Raise the error of the last model that could not be measured, after a note for each such model."""
    if count > 1:
        for model, error in failed.items():
            note(f"{model} was not measured: {error}")
    if failed:
        raise list(failed.values())[-1]


def _report_folder(report: Path, models: Sequence[str], model: str) -> Path:
    return report if len(models) == 1 else report / Path(model).name


def _report_files(report: Path | None, models: Sequence[str]) -> list[Path]:
    """The files of the report, for every model."""
    from likewise.evaluation.crosslingual import REPORT_FILES

    if report is None:
        return []
    return [_report_folder(report, models, model) / name for model in models for name in REPORT_FILES]


def _write_report(found: SuiteResult | CrosslingualResult, folder: Path, *, replace: bool) -> None:
    from likewise.evaluation.crosslingual import CrosslingualResult, write_report

    if not isinstance(found, CrosslingualResult):
        raise UsageError(
            "--report works only with --suite crosslingual. Use --output to write any result as JSON."
        )
    for file in write_report(found, folder, replace=replace):
        note(f"wrote {file}")


def _documents(models: Sequence[str], results: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"model": model, **result.to_dict()} for model, result in zip(models, results, strict=True)]


def _write_result(output: Path, documents: list[dict[str, Any]], *, replace: bool) -> None:
    write_json_aside(output, documents[0] if len(documents) == 1 else documents, replace=replace)
    note(f"wrote {output}")


def _show(models: Sequence[str], results: Sequence[Any], as_json: bool) -> None:
    documents = _documents(models, results)
    if as_json:
        out.print_json(json.dumps(documents[0] if len(documents) == 1 else documents))
        return
    for model, result in zip(models, results, strict=True):
        if len(models) > 1:
            out.print(f"\n{model}", style="bold", markup=False)
        out.print(result.to_text(), markup=False)
