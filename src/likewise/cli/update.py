"""`likewise update`: add a task to a trained label model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli import options
from likewise.cli.classify import read_labels
from likewise.cli.console import TrainingView, note, out, quiet_libraries
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.recipes.update import UpdateReport


def update(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model trained on labelled texts.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Its labelled texts: a file or a corpus.")],
    output: Annotated[Path, typer.Option("--output", help="Folder of the new model; the old one stays.")],
    task: Annotated[str, typer.Option("--task", help="Name of the new task, and of its column in DATA.")],
    mode: Annotated[str, typer.Option("--mode", help="zero, hot (train on it) or cold (on all).")] = "hot",
    labels: Annotated[
        str | None, typer.Option("--labels", help="Labels in words, between commas; DATA's if left out.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Column of the text; guessed if left out.")
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", help="Column of the labels; the task's name if left out.")
    ] = None,
    rehearse: Annotated[
        float, typer.Option("--rehearse", min=0.0, max=1.0, help="Share of the old texts shown again (hot).")
    ] = 0.0,
    freeze: Annotated[
        list[str] | None, typer.Option("--freeze", help="Parameters that stay, such as encoder; repeatable.")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option("--epochs", min=0.0, help="Instead of the recipe's.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT.")] = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Add a task to a model whose labels are texts; what the old tasks lose is said.

    Example: likewise update my-model mails.csv --task urgency --mode hot --rehearse 0.1 --output new-model
    """
    quiet_libraries()
    from likewise.recipes.run import RunContext
    from likewise.recipes.update import MODES, NewTask, update_model

    if mode not in MODES:
        raise UsageError(f"--mode {mode!r} is not one of {', '.join(MODES)}")
    changes: dict[str, object] = {"freeze": freeze} if freeze else {}
    if epochs is not None:
        changes["epochs"] = epochs
    with TrainingView() as view:
        report = update_model(
            model,
            NewTask(task, data, text, column, None if labels is None else read_labels(labels)),
            output,
            mode=mode,  # type: ignore[arg-type]
            context=RunContext(data_dir, device, precision, tell=view.tell, emit=view.emit),
            rehearse=rehearse,
            overrides=changes,
            overwrite=overwrite,
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
