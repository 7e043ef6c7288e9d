"""`likewise data next`: which pairs of a pool to rate next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli import options
from likewise.cli.console import out, progress_bar, quiet_libraries
from likewise.disk import to_json
from likewise.outputs import check_output_file

if TYPE_CHECKING:
    from likewise.predict import Answerer


def next_to_rate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Model folder, hub id, 'raw' or 'default'. Random choice does not use it.",
        ),
    ],
    pool: Annotated[
        str, typer.Argument(metavar="POOL", help="A file of pairs without ratings, or - for standard input.")
    ],
    output: Annotated[Path, typer.Option("--output", help="File to write the chosen pairs to.")],
    count: Annotated[int, typer.Option("--count", min=1, help="Number of pairs to choose.")] = 50,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="How pairs are chosen: random, scores, doubt, cover, mixed, scores+doubt or scores+cover.",
        ),
    ] = "random",
    rated: Annotated[
        list[str] | None,
        typer.Option("--rated", help="File of pairs that are rated already and left out. Can be repeated."),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option("--relation", help="Relation whose answers the strategy uses. Defaults to the first."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Format of the output: csv (any table), label-studio or argilla.")
    ] = "csv",
    per_text: Annotated[
        int, typer.Option("--per-text", min=1, help="Maximum number of chosen pairs with the same text.")
    ] = 1,
    candidates: Annotated[
        int,
        typer.Option(
            "--candidates", min=1, help="Pairs that are drawn at random and among which a strategy chooses."
        ),
    ] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 1,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    overwrite: options.Overwrite = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
) -> None:
    """Choose the pairs of a pool that people should rate next.

    Pairs are drawn at random by default. In simulations on STS-B and SICK, no other strategy was clearly
    better. The numbers are in docs/annotation.md.

    Example: likewise data next model pool.csv --rated ratings.csv --count 50 --output to-rate.csv
    """
    check_output_file(output, inputs=[pool, *(rated or ())], overwrite=overwrite)
    from likewise.annotation.selection import next_pairs
    from likewise.data import count_rows

    def load() -> Answerer:
        quiet_libraries()
        from likewise.predict import load

        return load(model, device=device, precision=precision)

    with progress_bar("{task.fields[unit]}") as bar:
        rows = bar.add_task("reading", total=None if pool == "-" else count_rows(pool), unit="pairs")
        asked = bar.add_task("asking the model", total=None, unit="texts", visible=False)
        found = next_pairs(
            load,
            pool,
            output,
            count=count,
            strategy=strategy,
            relation=relation,
            rated=rated or (),
            candidates=candidates,
            per_text=per_text,
            form=form,
            text_a=text_a,
            text_b=text_b,
            seed=seed,
            safe=safe_csv,
            overwrite=overwrite,
            progress=lambda number: bar.advance(rows, number),
            asking=lambda number: bar.update(asked, advance=number, visible=True),
        )
    if as_json:
        out.print_json(to_json(found.to_dict()))
        return
    for line in found.lines():
        out.print(line, markup=False)
