"""`likewise demo`: ask the shipped model, then train on the bundled reviews, and show gains and limits."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from likewise.cli import options
from likewise.cli.console import TrainingView, out, quiet_libraries
from likewise.cli.demo_shipped import Shipped, say, show_shipped, with_interval
from likewise.errors import LikewiseError
from likewise.naming import DEFAULT_NAME
from likewise.records import Record, Relation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likewise.evaluation.results import SuiteResult
    from likewise.predict import Answerer

RELATIONS = ("similarity:0..5", "opinion:0..4")
EPOCHS = 4
# An answer that is off by so many points of 0..4 is on the wrong side, or says nothing.
FAR = 2.0
DEFAULT_OUTPUT = Path("demo-model")
NAME = "likewise-demo"


def demo(
    output: Annotated[Path, typer.Option("--output", help="Folder to write the model to.")] = DEFAULT_OUTPUT,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a model that the demo did not write."),
    ] = False,
    as_json: options.Json = False,
    device: options.Device = None,
) -> None:
    """Show what the model that comes with Likewise answers, then train one on bundled reviews.

    Both are compared with the raw encoder, and both show a limit.

    Example: likewise demo
    """
    quiet_libraries()
    from likewise.api import train
    from likewise.predict import load

    raw = load("raw", device=device)
    shipped = Shipped.of(raw, load(DEFAULT_NAME, device=device))
    if not as_json:
        show_shipped(shipped)
        _say_task()
    with resources.as_file(resources.files("likewise").joinpath("samples")) as samples:
        reviews = samples / "reviews"
        with TrainingView() as view:
            model = train(
                reviews / "train.csv",
                output,
                relations=RELATIONS,
                overrides={
                    "stage.0.dev": [{"source": str(reviews / "dev.csv")}],
                    "stage.0.epochs": EPOCHS,
                    "name": NAME,
                },
                device=device,
                overwrite=overwrite or _may_start_again(output),
                tell=view.tell,
                emit=view.emit,
            )
        tested = Tested.of(reviews / "test.csv", raw, model)
    if as_json:
        document = {"shipped": shipped.to_dict(), "trained": {"folder": str(output), **tested.to_dict()}}
        out.print_json(json.dumps(document))
        return
    _show_evaluation(tested)
    _show_pairs(tested)
    _show_limit(tested)
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


def _say_task() -> None:
    out.print(
        "[bold]3. Train[/bold] a model of your own, here on 384 pairs of reviews. Each pair is rated\n"
        "on two relations:\n\n"
        "   similarity  0..5   Do both texts say the same?\n"
        "   opinion     0..4   Do both writers judge alike? 0 is the opposite, 4 alike.\n\n"
        "A cosine is one number. It cannot answer both.",
        end="\n\n",
    )


@dataclass(frozen=True, slots=True)
class Tested:
    """The pairs of the test file, what the raw encoder and the model answer, and how both were measured."""

    records: Sequence[Record]
    before: SuiteResult
    after: SuiteResult

    @classmethod
    def of(cls, file: Path, raw: Answerer, model: Answerer) -> Tested:
        """Ask both models about every pair of a file."""
        from likewise.data import load_records
        from likewise.evaluation.asking import measure
        from likewise.evaluation.suites import Suite
        from likewise.evaluation.tasks import Task

        relations = [Relation.parse(text) for text in RELATIONS]
        suite = Suite("reviews", tuple(Task(r.name, file=file, relation=r) for r in relations))
        before = measure(raw, suite, source="cosine", keep_predictions=True)
        after = measure(model, suite, keep_predictions=True)
        return cls(load_records(file, relations=relations), before, after)

    @property
    def cosine(self) -> NDArray[Any]:
        """The raw cosine of every pair."""
        return self.before.predictions["opinion"].predicted

    def rated(self, relation: str) -> NDArray[Any]:
        """The rating of every pair."""
        return self.after.predictions[relation].gold

    def answered(self, relation: str) -> NDArray[Any]:
        """The model's answer to every pair."""
        return self.after.predictions[relation].predicted

    @property
    def far(self) -> int:
        """How many of the model's opinions are off by `FAR` or more."""
        return int((self.error >= FAR).sum())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form of the evaluation, without the single pairs."""
        from likewise.evaluation import compare_results

        gains = compare_results(self.after, self.before)
        relations = {
            old.name: {
                "raw": old.value,
                "trained": new.value,
                "gain": 100 * gains[old.name].difference,
                "interval": interval and asdict(interval.scaled(100)),
            }
            for old, new in zip(self.before.tasks, self.after.tasks, strict=True)
            for interval in [gains[old.name].interval]
        }
        return {"pairs": len(self.records), "relations": relations, "opinions far off": self.far}

    @property
    def error(self) -> NDArray[Any]:
        """By how many points the model's opinion on every pair is off."""
        return abs(self.answered("opinion") - self.rated("opinion"))


def _show_evaluation(tested: Tested) -> None:
    from rich.table import Table

    from likewise.evaluation import compare_results

    pairs = f"{len(tested.records)} held-out pairs about other things"
    say(f"\n[bold]4. Evaluate[/bold] on {pairs}, against the raw encoder\n")
    gains = compare_results(tested.after, tested.before)
    columns = ("relation", "raw cosine", "trained model", "gain")
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for old, new in zip(tested.before.tasks, tested.after.tasks, strict=True):
        gain = gains[old.name]
        cells = (with_interval(old.value, old.interval), with_interval(new.value, new.interval))
        interval = gain.interval and gain.interval.scaled(100)
        table.add_row(old.name, *cells, with_interval(100 * gain.difference, interval, "+"))
    out.print(table)
    say("Spearman ×100 with its 95 % confidence interval", style="dim")


def _show_pairs(tested: Tested) -> None:
    import numpy as np

    say(
        "\n[bold]5. Look[/bold] at three test pairs. A rule picks them: of each sort, the one with the "
        "median error of the trained model's opinions.\n"
    )
    similarity, opinion = tested.rated("similarity"), tested.rated("opinion")
    sorts = {
        "the same thing, opposite opinions": (similarity == 1) & (opinion == 0),
        "the same said in other words": similarity == 5,
        "different things, the same opinion": (similarity == 0) & (opinion == 4),
    }
    for title, chosen in sorts.items():
        rows = np.flatnonzero(chosen)
        by_error = rows[np.argsort(tested.error[rows], kind="stable")]
        _show_pair(tested, int(by_error[len(by_error) // 2]), title)


def _show_pair(tested: Tested, row: int, title: str) -> None:
    out.print(f"   [dim]{title}[/dim]")
    for text in tested.records[row].texts:
        out.print(Padding(Text(text), (0, 0, 0, 3)), soft_wrap=False)
    out.print(f"   raw cosine {tested.cosine[row]:.2f}", markup=False)
    for relation in map(Relation.parse, RELATIONS):
        answer, rating = tested.answered(relation.name)[row], tested.rated(relation.name)[row]
        told = f"   {relation.name:<10} trained model {answer:.1f}, rating in the sample {rating:g}"
        out.print(f"{told} ({relation.scale})", markup=False)
    out.print()


def _show_limit(tested: Tested) -> None:
    import numpy as np

    off = tested.error
    say(
        f"[bold]6. Its limit[/bold]: {tested.far} of the {len(off)} opinions are off by {FAR:g} points or "
        "more. This one is furthest off.\n"
    )
    _show_pair(tested, int(np.argmax(off)), "the largest error of the trained model")
    say(
        "We wrote the texts and rated the pairs by a rule, so they are tidier than real ratings. "
        "They show what training can do, not how well it works on your texts.",
        style="dim",
    )


def _show_next(output: Path) -> None:
    out.print(f"\nThe model is in {output}. Ask it about two texts:\n", markup=False)
    _show_commands(f'likewise score "A lovely flat." "I fled from that flat." --model {output}')
    say(
        "\nThen train on a table of your own. A row holds two texts and a rating. The training says how much "
        "is gained over the raw cosine:\n"
    )
    _show_commands(
        "likewise data check your-pairs.csv --relation similarity:0..5",
        "likewise train your-pairs.csv --relation similarity:0..5 --output my-model",
    )


def _show_commands(*lines: str) -> None:
    for line in lines:
        out.print(f"   {line}", markup=False)
