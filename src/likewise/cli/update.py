"""`likewise update`: add a task to a trained model of labels, or a relation to one of pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli import options
from likewise.cli.classify import read_labels
from likewise.cli.console import TrainingView, note, out, quiet_libraries

if TYPE_CHECKING:
    from likewise.recipes.update import UpdateReport


def update(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model whose labels are texts, or that reads descriptions."),
    ],
    output: Annotated[Path, typer.Option("--output", help="Folder of the new model; the old one stays.")],
    task: Annotated[
        str, typer.Option("--task", help="Name of the new task or relation, and of its column in DATA.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Its labelled texts or rated pairs: a file or a corpus."),
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="zero, hot (train on it) or cold (on all).")] = "hot",
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", help="Labels in words, between commas; NAME = WORDS | WORDS; DATA's if left out."
        ),
    ] = None,
    describe: Annotated[
        str | None, typer.Option("--describe", help="What a new relation of pairs asks, in words.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="Its scale: lo..hi, or low<middle<high.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Column of the text; guessed if left out.")
    ] = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    column: Annotated[
        str | None, typer.Option("--column", help="Column of the answers; the task's name if left out.")
    ] = None,
    rehearse: Annotated[
        float, typer.Option("--rehearse", min=0.0, max=1.0, help="Share of the old rows shown again (hot).")
    ] = 0.0,
    freeze: Annotated[
        list[str] | None, typer.Option("--freeze", help="Parameters that stay, such as encoder; repeatable.")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option("--epochs", min=0.0, help="Instead of the recipe's.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted update of the same --output.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT.")] = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Add a task to a model whose labels are texts, or a relation to one that reads descriptions.

    What the old ones lose is said.

    Example: likewise update my-model mails.csv --task urgency --mode hot --rehearse 0.1 --output new-model

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
