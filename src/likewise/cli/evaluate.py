"""`likewise evaluate`: measure models on a suite, and state the protocol beside the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.completion import corpora, models, offering, suites
from likewise.cli.console import counting, note, out, quiet_libraries
from likewise.data import write_json_aside
from likewise.errors import EvaluationError, LikewiseError, UsageError
from likewise.outputs import check_output_file, is_same

if TYPE_CHECKING:
    from likewise.evaluation.challenge_result import ChallengeResult
    from likewise.evaluation.crosslingual import CrosslingualResult
    from likewise.evaluation.differences import Difference
    from likewise.evaluation.results import SuiteResult
    from likewise.evaluation.suites import Suite

    Result = SuiteResult | CrosslingualResult | ChallengeResult
    Results = dict[str, Result]


_NO_REPORT = "--report works only with --suite crosslingual. Use --output to write any result as JSON."


def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL…",
            help="Model folders, hub ids, 'raw' or 'default'.",
            autocompletion=offering(models),
        ),
    ],
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            help=(
                "Suite: sts7, challenge, relations, crosslingual, language-pairs, paraphrase, "
                "classification or a FILE.toml. Defaults to sts7."
            ),
            autocompletion=offering(suites),
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="File with rated pairs or labelled texts, instead of a suite.",
            autocompletion=offering(corpora),
        ),
    ] = None,
    relation: options.Relations = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    delimiter: options.Delimiter = None,
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
    long: options.LongTexts = "cut",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Measure models on a suite or on a file of your own. With two models, also the difference.

    The source "answer" is what `likewise score` answers, and "matcher" exists only for label models. The
    suites sts7 and language-pairs measure the cosine by default, challenge measures the answer and the
    cosine, and other suites measure the answer. The default metric is spearman or accuracy. The log is
    runs/likewise-test-runs.jsonl.

    Example: likewise evaluate raw my-model --data test.csv --relation similarity:0..5
    """
    quiet_libraries()
    from likewise.data.dialects import name_delimiter
    from likewise.evaluation.protocol import Protocol
    from likewise.evaluation.suites import CROSSLINGUAL

    if delimiter is not None and data is None:
        raise UsageError("--delimiter describes a file of your own. Name it with --data.")
    name_delimiter([data], delimiter)
    chosen = _chosen(suite, data, relation, text_a, text_b, data_dir)
    Protocol(metric=metric or "spearman", aggregation=aggregation, source=source or "answer")  # type: ignore[arg-type]
    if report is not None and chosen != CROSSLINGUAL:
        raise UsageError(_NO_REPORT)
    read = [name for name in (suite, data) if name is not None]
    _check_outputs(output, report, models, [*_files(chosen, data_dir), *read], overwrite)
    results: Results = {}
    failed: dict[str, LikewiseError] = {}
    options_of_all: dict[str, Any] = {
        "source": source,
        "aggregation": aggregation,
        "metric": metric,
        "data_dir": data_dir,
        "device": device,
        "precision": precision,
        "long": long,
        "keep_predictions": len(models) > 1,
    }
    for model in dict.fromkeys(models):
        try:
            results[model] = _evaluate(model, chosen, options_of_all)
        except LikewiseError as error:
            # The others are measured all the same.
            failed[model] = error
            continue
        if report is not None:
            _write_report(results[model], _report_folder(report, models, model), replace=overwrite)
    if output is not None and results:
        _write_result(output, _documents(results), replace=overwrite)
    if results:
        _show(results, as_json)
    _tell_failed(failed, len(models))


def _chosen(
    suite: str | None,
    data: str | None,
    relation: Sequence[str] | None,
    text_a: str | None,
    text_b: str | None,
    data_dir: Path | None,
) -> str | Suite:
    """The suite, or the one over a file of the user's own."""
    from likewise.api import own_suite
    from likewise.evaluation.suites import NOT_TASKS, get_suite

    if data is not None:
        if suite is not None:
            raise UsageError("--suite and --data are both given. Choose one of them.")
        return own_suite(data, relation or (), text_a, text_b, data_dir, tell=note)
    if relation or text_a or text_b:
        raise UsageError(
            "--relation, --text-a and --text-b describe a file of your own. Name it with --data."
        )
    return suite if suite in NOT_TASKS else get_suite(suite or "sts7")


def _files(chosen: str | Suite, data_dir: Path | None) -> list[Path]:
    """The files that the measurement reads."""
    from likewise.evaluation.tasks import task_files

    if isinstance(chosen, str):
        return []
    return [file for task in chosen.tasks for file in task_files(task, data_dir=data_dir)]


def _check_outputs(
    output: Path | None, report: Path | None, models: Sequence[str], files: Sequence[object], overwrite: bool
) -> None:
    """Refuse outputs that are inputs, that exist already, or that would replace each other."""
    from likewise.evaluation.runlog import log_path

    if output is not None:
        # The log of looks at test data is appended to by this very command.
        check_output_file(output, inputs=[*models, *files], overwrite=overwrite)
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


def _evaluate(model: str, chosen: str | Suite, settings: dict[str, Any]) -> Result:
    from likewise.api import evaluate

    with counting(f"evaluating {Path(model).name}", "texts", None) as advance:
        return evaluate(model, chosen, progress=advance, **settings)


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


def _write_report(found: Result, folder: Path, *, replace: bool) -> None:
    from likewise.evaluation.crosslingual import CrosslingualResult, write_report

    if not isinstance(found, CrosslingualResult):
        raise UsageError(_NO_REPORT)
    for file in write_report(found, folder, replace=replace):
        note(f"wrote {file}")


def _documents(results: Results) -> list[dict[str, Any]]:
    """The results in JSON form; every model but the first also has its differences from the first."""
    found = [{"model": model, **result.to_dict()} for model, result in results.items()]
    for document, differences in zip(found[1:], _differences(results).values(), strict=True):
        told = {name: one.to_dict() for name, one in differences.items()}
        document["differences"] = {"from": found[0]["model"], "tasks": told}
    return found


def _differences(results: Results) -> dict[str, dict[str, Difference]]:
    """The differences of each later model from the first, task by task."""
    from likewise.evaluation.differences import compare_results
    from likewise.evaluation.results import SuiteResult

    (_, first), *others = results.items()
    found: dict[str, dict[str, Difference]] = {}
    for model, result in others:
        found[model] = {}
        if isinstance(first, SuiteResult) and isinstance(result, SuiteResult):
            with suppress(EvaluationError):  # they share no task
                found[model] = compare_results(result, first)
    return found


def _write_result(output: Path, documents: list[dict[str, Any]], *, replace: bool) -> None:
    write_json_aside(output, documents[0] if len(documents) == 1 else documents, replace=replace)
    note(f"wrote {output}")


def _show(results: Results, as_json: bool) -> None:
    if as_json:
        documents = _documents(results)
        out.print_json(json.dumps(documents[0] if len(documents) == 1 else documents))
        return
    for model, result in results.items():
        if len(results) > 1:
            out.print(f"\n{model}", style="bold", markup=False)
        out.print(result.to_text(), markup=False)
    first = next(iter(results))
    for model, differences in _differences(results).items():
        if differences:
            out.print(f"\n{model} against {first}", style="bold", markup=False)
        for name, one in differences.items():
            out.print(f"{name}: {one}", markup=False)
