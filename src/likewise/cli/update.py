"""`likewise update`: add a task to a trained label model, or a relation to a trained model of pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli import options
from likewise.cli.classify import read_labels
from likewise.cli.completion import corpora, models, offering
from likewise.cli.console import TrainingView, note, out, quiet_libraries

if TYPE_CHECKING:
    from likewise.recipes.update import UpdateReport


def update(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A model with label texts, or one with a head that reads descriptions.",
            autocompletion=offering(models),
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", help="Folder to write the new model to. The old model stays.")
    ],
    task: Annotated[
        str, typer.Option("--task", help="Name of the new task or relation, and of its column in DATA.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Labelled texts or rated pairs for the new task or relation: a file or a named corpus.",
            autocompletion=offering(corpora),
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help=(
                "Kind of update: zero (no training), hot (train on the new data) "
                "or cold (train on all data from the beginning). Defaults to hot, and to zero for labels "
                "without DATA."
            ),
        ),
    ] = None,
    add_label: Annotated[
        list[str] | None,
        typer.Option(
            "--add-label",
            help="Label to add to a task of the model: 'NAME = WORDS', or NAME alone. Can be repeated.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            help="Labels of a new task in words, as for `likewise classify`. Defaults to the labels in DATA.",
        ),
    ] = None,
    describe: Annotated[
        str | None,
        typer.Option("--describe", help="The question that a new relation of pairs asks, in words."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="Scale of the new relation: lo..hi, or low<middle<high.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Column of the text. Detected by its name if left out.")
    ] = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    column: Annotated[
        str | None,
        typer.Option("--column", help="Column of the labels or ratings in DATA. Defaults to the task name."),
    ] = None,
    rehearse: Annotated[
        float | None,
        typer.Option(
            "--rehearse",
            min=0.0,
            max=1.0,
            help="Share of the old rows to train on again (only with --mode hot).",
        ),
    ] = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option("--freeze", help="Parameters to leave unchanged, such as encoder. Can be repeated."),
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", min=0.0, help="Number of epochs. Defaults to the recipe's number."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted update with the same --output.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output folder if it exists.")
    ] = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Add a task to a model with label texts, or a relation to a model that reads descriptions.

    The result shows how the old tasks or relations changed.

    Example: likewise update my-model mails.csv --task urgency --mode hot --rehearse 0.1 --output new-model

    Example: likewise update my-intents --task intent --add-label "gift card = buying a gift card" --output
    more-intents

    Example: likewise update my-model --task actor --describe "would the same person do both?" --scale -2..2
    --mode zero --output new-model
    """
    quiet_libraries()
    from likewise import api

    changes: dict[str, object] = {"freeze": freeze} if freeze else {}
    if epochs is not None:
        changes["epochs"] = epochs
    with TrainingView() as view:
        report = api.update(
            model,
            output,
            task=task,
            data=data,
            mode=mode,  # type: ignore[arg-type]
            labels=None if labels is None else read_labels(labels),
            add_labels=read_labels(", ".join(add_label), fewest=1) if add_label else None,
            describe=describe,
            scale=scale,
            text=text,
            text_a=text_a,
            text_b=text_b,
            column=column,
            rehearse=rehearse,
            overrides=changes,
            device=device,
            precision=precision,
            data_dir=data_dir,
            resume=resume,
            overwrite=overwrite,
            tell=view.tell,
            emit=view.emit,
        )
    _show(report, as_json=as_json)


def _show(report: UpdateReport, *, as_json: bool) -> None:
    if as_json:
        document = {
            "output": str(report.output),
            "mode": report.mode,
            "before": report.before,
            "after": report.after,
        }
        out.print_json(json.dumps(document))
        return
    names = [name for name in report.after if name != "score"]
    width = max(map(len, names), default=0)
    for name in names:
        before, after = report.before.get(name), report.after[name]
        change = "" if before is None else f"  before {before:.3f}  {after - before:+.3f}"
        out.print(f"{name:<{width}}  {after:.3f}{change}", markup=False)
    note(f"model: {report.output}")
