"""`likewise demo`: train, evaluate and score on the bundled sample, from start to end."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli import options
from likewise.cli.console import TrainingView, out, quiet_libraries
from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from likewise.evaluation.suites import Suite
    from likewise.predict import Answerer

RELATIONS = ("similarity:0..5", "topic:0..4")
DEFAULT_OUTPUT = Path("demo-model")
NAME = "likewise-demo"
PAIR = (
    "The pharmacy on Mill Road is open on Sundays.",
    "The pharmacy on Mill Road is never open on Sundays.",
)


def demo(
    output: Annotated[Path, typer.Option("--output", help="Folder to write the model to.")] = DEFAULT_OUTPUT,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a model that the demo did not write."),
    ] = False,
    device: options.Device = None,
) -> None:
    """Train a model of two relations on the bundled sample, evaluate it, and score a pair.

    Example: likewise demo
    """
    quiet_libraries()
    from likewise.api import train
    from likewise.predict import load

    raw = load("default", device=device)
    with resources.as_file(resources.files("likewise").joinpath("samples")) as samples:
        out.print(
            (
                "[bold]1. Train[/bold] on 280 rated pairs. They rate two relations, and some ratings "
                "are missing."
            ),
            end="\n\n",
        )
        with TrainingView() as view:
            model = train(
                samples / "train.csv",
                output,
                relations=RELATIONS,
                overrides={
                    "stage.0.dev": [{"source": str(samples / "dev.csv")}],
                    "stage.0.epochs": 8,
                    "name": NAME,
                },
                device=device,
                overwrite=overwrite or _may_start_again(output),
                tell=view.tell,
                emit=view.emit,
            )
        suite = _sample_suite(samples)
        out.print(
            "\n[bold]2. Evaluate[/bold] on 80 held-out pairs, and compare with the raw encoder",
            end="\n\n",
        )
        _show_evaluation(suite, raw, model)
    out.print("\n[bold]3. Score[/bold] a pair whose texts share words but differ in meaning", end="\n\n")
    _show_pair(raw, model)
    _show_next(output)


def _is_demo(output: Path) -> bool:
    """Whether a folder holds what an earlier demo wrote, which may be replaced without asking."""
    from likewise.encoders.manifest import DOCUMENT
    from likewise.folders import read_document

    try:
        document = read_document(output / DOCUMENT)
    except LikewiseError:
        return False
    return document.get("name") == NAME


def _may_start_again(output: Path) -> bool:
    """Whether the model folder and the run folder beside it are absent or the demo's own.

    An interrupted demo starts again instead of resuming, because it takes only a minute. A run of the user's
    own, which may be about to replace the demo's model, is kept.
    """
    from likewise.recipes.runfiles import begun_recipe, run_folder

    run = run_folder(output)
    return (not os.path.lexists(output) or _is_demo(output)) and (
        not os.path.lexists(run) or begun_recipe(run) == NAME
    )


def _sample_suite(samples: Path) -> Suite:
    from likewise.evaluation.suites import Suite
    from likewise.evaluation.tasks import Task
    from likewise.records import Relation

    relations = [Relation.parse(text) for text in RELATIONS]
    return Suite("sample", tuple(Task(r.name, file=samples / "test.csv", relation=r) for r in relations))


def _show_evaluation(suite: Suite, raw: Answerer, model: Answerer) -> None:
    from rich.table import Table

    from likewise.evaluation.asking import measure

    before = measure(raw, suite, source="cosine")
    after = measure(model, suite, source="head")
    table = Table("relation", "raw cosine", "trained head", "pairs", box=None, pad_edge=False)
    for old, new in zip(before.tasks, after.tasks, strict=True):
        table.add_row(old.name, *(_with_interval(task) for task in (old, new)), str(new.n))
    out.print(table)
    out.print(
        "Spearman ×100 with its 95 % confidence interval. 80 pairs are few, so the intervals are wide.",
        style="dim",
    )


def _with_interval(task: object) -> str:
    interval = getattr(task, "interval", None)
    value = f"{getattr(task, 'value', 0.0):5.1f}"
    return f"{value}  [dim]({interval.low:.0f} to {interval.high:.0f})[/dim]" if interval else value


def _show_pair(raw: Answerer, model: Answerer) -> None:
    out.print(f"   {PAIR[0]}\n   {PAIR[1]}\n", markup=False)
    cosine = float(raw.score([PAIR], source="cosine")["similarity"][0])
    out.print(f"   raw cosine        {cosine:.2f} on -1..1", markup=False)
    scores = model.score([PAIR])
    for relation in scores.relations:
        out.print(
            f"   {relation.name:<16}  {float(scores[relation.name][0]):.2f} on {relation.scale}", markup=False
        )


def _show_next(output: Path) -> None:
    out.print(f"\nThe model is in {output}. Try next:\n", markup=False)
    for line in (
        f'likewise score "It is raining." "It is not raining." --model {output}',
        f"likewise score your-pairs.csv --model {output} --output scored.csv",
        "likewise data check your-pairs.csv",
        "likewise train your-pairs.csv --output my-model",
    ):
        out.print(f"   {line}", markup=False)
