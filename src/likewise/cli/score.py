"""`likewise score`: two texts, or a file of pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.console import counting, note, out, quiet_libraries
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.data.rows import Row
    from likewise.predict import Predictor

WINDOW = 4096


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

    return load(model, device=device, precision=precision)


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
    from likewise.data import TableWriter, count_rows, find_text_columns, open_table

    if name != "-" and not Path(name).exists() and (" " in name or "." not in name):
        raise UsageError(f"{name!r} is no file; for two texts give both, each in quotes")
    table = open_table(name)
    text_columns = find_text_columns(table.columns, *columns, source=table.name)
    note(f"{table.name}: texts from columns {text_columns[0]!r} and {text_columns[1]!r}")
    rows = iter(table)
    first = list(islice(rows, WINDOW))
    if not first:
        from likewise.data.reading import no_rows
        from likewise.errors import DataError

        raise DataError([no_rows(table)])
    predictor = load()
    names = _answer_columns(
        [r.name for r in predictor.relations if not relation or r.name in relation], table.columns
    )
    with ExitStack() as stack:
        advance = stack.enter_context(counting("scoring", "pairs", count_rows(name)))
        if output is None:
            write = _line_writer([*table.columns, *names.values()], as_json=as_json)
        else:
            write = stack.enter_context(TableWriter(output, [*table.columns, *names.values()])).write_row
        done = 0
        for window in _windows(first, rows):
            for row in _scored(window, text_columns, predictor, relation, names):
                write(row)
            done += len(window)
            advance(len(window))
    if output is not None:
        note(f"{done:,} pairs scored: {output} (added {', '.join(names.values())})")


def _windows(first: list[Row], rows: Iterator[Row]) -> Iterator[list[Row]]:
    window = first
    while window:
        yield window
        window = list(islice(rows, WINDOW))


def _scored(
    window: list[Row],
    columns: tuple[str, str],
    predictor: Predictor,
    relation: list[str] | None,
    names: dict[str, str],
) -> Iterator[dict[str, object]]:
    from likewise.data.values import to_text
    from likewise.encoders.inputs import MAX_CHARS

    pairs = [
        tuple(to_text(row.fields.get(c), column=c, source=row.source, max_chars=MAX_CHARS) for c in columns)
        for row in window
    ]
    answers = predictor.score(pairs, relation=relation).rows()
    for row, answer in zip(window, answers, strict=True):
        added = {names[n]: v if isinstance(v, str) else round(v, 6) for n, v in answer.items()}
        yield {**row.fields, **added}


def _answer_columns(relations: list[str], present: tuple[str, ...]) -> dict[str, str]:
    """Relation → name of its new column; a column that the input already has is never overwritten."""
    return {name: name if name not in present else f"predicted_{name}" for name in relations}


def _line_writer(columns: list[str], *, as_json: bool) -> Any:
    import csv

    if as_json:
        return lambda row: sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    writer = csv.DictWriter(sys.stdout, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    return writer.writerow
