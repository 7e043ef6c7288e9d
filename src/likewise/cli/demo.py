"""`likewise demo`: the main job on the bundled sample, start to end."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import TrainingView, out, quiet_libraries

PAIR = ("The pharmacy on Mill Road closes at nine.", "The pharmacy on Mill Road never closes.")


def demo(
    output: Annotated[Path, typer.Option("--output", help="Where the model is left.")] = Path("demo-model"),
    device: options.Device = None,
) -> None:
    """Train a two-relation model on the bundled sample, evaluate it with intervals, score a pair.

    Example: likewise demo
    """
    quiet_libraries()
    from likewise.api import evaluate, load, train

    folder = resources.files("likewise").joinpath("samples")
    with resources.as_file(folder) as samples:
        out.print("[bold]1. Train[/bold] on 280 rated pairs, two relations, some ratings missing")
        with TrainingView() as view:
            model = train(
                samples / "train.csv", output, relations=("similarity:0..5", "topic:0..4"), device=device,
                overrides={"stage.0.dev": [{"source": str(samples / "dev.csv")}]}, overwrite=True,
                tell=view.tell, emit=view.emit,
            )
        out.print("\n[bold]2. Evaluate[/bold] on 80 pairs it never saw")
        for name, candidate in (("before training (cosine)", load("default", device=device)), ("after training", model)):
            out.print(f"\n{name}", style="bold")
            for relation in ("similarity", "topic"):
                suite = _suite(samples, relation)
                out.print(evaluate_relation(candidate, suite, relation, evaluate), markup=False)
    out.print("\n[bold]3. Score[/bold] a pair that shares its words but not its meaning")
    out.print(f"   {PAIR[0]}\n   {PAIR[1]}", markup=False)
    for relation, values in model.score([PAIR]).items():
        scale = next(r.scale for r in model.relations if r.name == relation)
        out.print(f"   {relation} {float(values[0]):.2f} on {scale}", markup=False)
    out.print(f"\nThe model lies in [bold]{output}[/bold]. Try next:")
    for line in (
        f'likewise score "It is raining." "It is not raining." --model {output}',
        f"likewise score your-pairs.csv --model {output} --output scored.csv",
        "likewise data check your-pairs.csv",
        "likewise train your-pairs.csv --output my-model",
    ):
        out.print(f"   {line}", markup=False)
