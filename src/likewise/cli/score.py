"""`likewise score`: two texts, or a file of pairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.answering import answer_columns, first_rows, texts_of, write_answers
from likewise.cli.console import note, out, quiet_libraries
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.data.rows import Row
    from likewise.predict import Predictor


def score(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT_A TEXT_B | FILE | -", help="Two texts, a file of pairs, or - for standard input."
        ),
    ],
    model: options.Model = "default",
    relation: Annotated[
        list[str] | None, typer.Option("--relation", help="Answer only this relation; repeatable.")
    ] = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Scored file (.csv .tsv .jsonl .parquet, .gz .xz .zst .bz2); standard output if left out.",
        ),
    ] = None,
    as_json: options.Json = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
) -> None:
    """Score how two texts relate, or every pair of a file.

    Example: likewise score "A man is playing a flute." "A man is playing a bamboo flute."

    Example: likewise score pairs.csv --output scored.csv
    """
    if len(texts) > 2:
        raise UsageError(f"{len(texts)} arguments: give two texts in quotes, or one file")
    if len(texts) == 2:
        if output is not None or text_a or text_b:
            raise UsageError(
                "--output, --text-a and --text-b go with a file; two texts are answered on the terminal"
            )
        _score_texts(texts[0], texts[1], _load(model, device, precision), relation, as_json=as_json)
        return
    _score_file(
        texts[0], lambda: _load(model, device, precision), relation, (text_a, text_b), output, as_json=as_json
    )


def _load(model: str, device: str | None, precision: str) -> Predictor:
    quiet_libraries()
    from likewise.predict import load

    loaded: Predictor = load(model, device=device, precision=precision)
    return loaded


def _score_texts(a: str, b: str, predictor: Predictor, relation: list[str] | None, *, as_json: bool) -> None:
    import numpy as np

    from likewise.records import nearest_labels

    scores = predictor.score([(a, b)], relation=relation)
    values = scores.rows()[0]
    if as_json:
        relations = {
            r.name: {"value": values[r.name], "scale": r.scale, "source": scores.source[r.name]}
            for r in scores.relations
        }
        out.print_json(json.dumps({"text_a": a, "text_b": b, "relations": relations}))
        return
    width = max(len(r.name) for r in scores.relations)
    for r in scores.relations:
        value = values[r.name]
        shown = value if isinstance(value, str) else f"{value:.3f}"
        if r.kind == "ordered" and not isinstance(value, str):
            shown = f"{nearest_labels(r, np.array([value]))[0]} ({value:.2f} of {r.lo:g}..{r.hi:g})"
        line = f"{r.name:<{width}}  {shown}  on {r.scale}, from the {scores.source[r.name]}"
        out.print(line, markup=False)


def _score_file(
    name: str,
    load: Any,
    relation: list[str] | None,
    columns: tuple[str | None, str | None],
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    from likewise.data import find_text_columns, open_table

    if name != "-" and not Path(name).exists() and (" " in name or "." not in name):
        raise UsageError(f"{name!r} is no file; for two texts give both, each in quotes")
    table = open_table(name)
    text_columns = find_text_columns(table.columns, *columns, source=table.name)
    note(f"{table.name}: texts from columns {text_columns[0]!r} and {text_columns[1]!r}")
    opened = first_rows(table)
    predictor = load()
    names = answer_columns(
        [r.name for r in predictor.relations if not relation or r.name in relation], table.columns
    )

    def answer(window: list[Row]) -> Iterator[dict[str, object]]:
        for found in predictor.score(texts_of(window, text_columns), relation=relation).rows():
            yield {names[n]: v if isinstance(v, str) else round(v, 6) for n, v in found.items()}

    write_answers(
        name,
        table,
        opened,
        list(names.values()),
        answer,
        output=output,
        as_json=as_json,
        words=("scoring", "pairs", "scored"),
    )
