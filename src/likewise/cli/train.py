"""`likewise train`: train by a recipe, given as a file or a name, or on a table of rated pairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise import ranks
from likewise.cli import options
from likewise.cli.classify import read_labels
from likewise.cli.completion import corpora, models, offering, recipes
from likewise.cli.console import TrainingView, counting, err, note, out, quiet_libraries
from likewise.errors import DataError, Interrupted, UsageError

if TYPE_CHECKING:
    from likewise.evaluation.challenge_result import ChallengeResult
    from likewise.evaluation.crosslingual import CrosslingualResult
    from likewise.evaluation.results import SuiteResult
    from likewise.predict import Answerer
    from likewise.recipes.run import RunReport
    from likewise.schema.recipe import Recipe


def train(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE | FILE",
            help=(
                "A recipe file (.toml), the name of a shipped recipe, or a table of rated pairs or labelled "
                "texts."
            ),
            autocompletion=offering(recipes),
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder to write the model to. Defaults to NAME-model.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            help=(
                "Model to start from instead of the recipe's encoder: a folder, a hub id, 'raw' or 'default'."
            ),
            autocompletion=offering(models),
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="File to train on instead of the recipe's data.",
            autocompletion=offering(corpora),
        ),
    ] = None,
    relation: options.Relations = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    delimiter: options.Delimiter = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Column of the text in a table of single texts.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Column of labels in a table of single texts. Can be repeated."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Labels in words: 'NAME = WORDS, NAME = WORDS | OTHER WORDS'."),
    ] = None,
    template: options.Templates = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Override a recipe value, such as stage.0.learning_rate=3e-5. Can be repeated."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Random seed. Defaults to the recipe's seed.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the recipe and the plan, then stop.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run with the same --output.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing model folder or run.")
    ] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Run the recipe's evaluation at the end.")
    ] = True,
    tracker: Annotated[
        list[str] | None,
        typer.Option("--tracker", help="Experiment tracker: tensorboard, wandb, mlflow, … Can be repeated."),
    ] = None,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Train a model and write it to a folder.

    On several GPUs: torchrun --nproc_per_node 2 -m likewise train pairs.csv --output my-model

    Example: likewise train pairs.csv --output my-model

    Example: likewise train tickets.csv --text ticket --label intent --output my-intents

    Example: likewise train similarity --data-dir corpora --set stage.0.epochs=2
    """
    quiet_libraries()
    from likewise import api
    from likewise.encoders.sentence import check_precision
    from likewise.recipes.own import recipe_toml

    check_precision(precision)
    _name_delimiter(source, data, delimiter)
    with TrainingView(shown=ranks.is_first()) as view:
        training = api.prepare_training(
            source,
            encoder=encoder,
            data=data,
            relations=relation or (),
            text_a=text_a,
            text_b=text_b,
            text=text,
            label=label or (),
            labels=None if labels is None else read_labels(labels, fewest=1),
            templates=template or (),
            overrides=override or (),
            seed=seed,
            device=device,
            precision=precision,
            data_dir=data_dir,
            trackers=tracker or (),
            tell=view.tell,
            emit=view.emit,
        )
        recipe = training.recipe
        # What was inferred from a table is shown: its relation, and batch and epochs by its size.
        if ranks.is_first() and (dry_run or data is not None or not api.is_recipe(source)):
            (out if dry_run and not as_json else err).print(recipe_toml(recipe), markup=False)
        if dry_run:
            for line in training.plan():
                out.print(line, markup=False)
            return
        target = output or Path(f"{recipe.name}-model")
        with _saying_how_to_go_on(target):
            report = training.run(target, resume=resume, overwrite=overwrite)
    ranks.leave()
    if not ranks.is_first():
        return
    results = _evaluate(report.predictor, recipe, data_dir) if evaluate and recipe.evaluation.suite else []
    _show(report, results, as_json=as_json)


def _show(
    report: RunReport, results: list[SuiteResult | CrosslingualResult | ChallengeResult], *, as_json: bool
) -> None:
    """Print what was trained and measured."""
    if as_json:
        document = {
            "output": str(report.output),
            "stages": report.stages,
            "gains": report.gains,
            "evaluation": [result.to_dict() for result in results],
        }
        out.print_json(json.dumps(document))
        return
    for result in results:
        out.print(result.to_text() + "\n", markup=False)
    out.print(f"model: {report.output}", markup=False)


def _name_delimiter(source: str, data: str | None, delimiter: str | None) -> None:
    """Read the user's table with the delimiter that was named."""
    from likewise.api import is_recipe
    from likewise.data.dialects import name_delimiter

    if delimiter is not None and data is None and is_recipe(source):
        raise UsageError("--delimiter describes your own table. Name it with --data, or leave it out.")
    name_delimiter([source if data is None else data], delimiter)


@contextmanager
def _saying_how_to_go_on(target: Path) -> Iterator[None]:
    """Turn an interrupt into a message that says whether and how the run can be resumed."""
    from likewise.recipes.runfiles import can_resume, run_folder

    try:
        yield
    except KeyboardInterrupt:
        if not can_resume(run_folder(target)):
            raise Interrupted("interrupted before the first checkpoint. Nothing was saved.") from None
        kept = "Everything up to the last checkpoint is saved"
        raise Interrupted(f"interrupted. {kept}. To continue, repeat the command with --resume.") from None


def _evaluate(
    model: Answerer, recipe: Recipe, data_dir: Path | None
) -> list[SuiteResult | CrosslingualResult | ChallengeResult]:
    """Run the recipe's evaluation by the model's own answer and by the suite's source; skip it if the data
    is missing.
    """
    from likewise.answering import ANSWER
    from likewise.api import evaluate
    from likewise.evaluation.suites import CHALLENGE, CROSSLINGUAL, get_suite

    suite, results = recipe.evaluation.suite, []
    try:
        # These two are measured at once; other suites by the model's answer and by their own source.
        whole = {CROSSLINGUAL: ("cosine",), CHALLENGE: (ANSWER,)}
        asked = whole.get(suite) or tuple(dict.fromkeys((ANSWER, get_suite(suite).source)))
        for source in asked:
            with counting(f"evaluating by {source}", "texts", None) as advance:
                results.append(
                    evaluate(
                        model,
                        suite,
                        source=source,
                        aggregation=recipe.evaluation.aggregation,
                        data_dir=data_dir,
                        progress=advance,
                    )
                )
    except DataError as error:
        note(f"not evaluated: {error}")
    return results
