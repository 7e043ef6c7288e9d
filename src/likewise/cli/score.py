"""`likewise score`: score two texts or a file of pairs. A model of single texts scores one text or a file
of texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.answering import Work, Written, answer_columns, begin_rows, names_file, write_answers
from likewise.cli.console import note, out, quiet_libraries
from likewise.errors import UsageError
from likewise.wording import quoted

if TYPE_CHECKING:
    from likewise.answering import Scores
    from likewise.data.rows import Table
    from likewise.predict import Answerer


def score(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT_A TEXT_B | FILE | -",
            help=(
                "Two texts, a file of pairs, or - for standard input. Some models take single texts instead."
            ),
        ),
    ],
    model: options.Model = "default",
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", help="Relation to answer. Can be repeated. Defaults to all relations."),
    ] = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help=(
                "File to write the scores to (.csv .tsv .jsonl .parquet, also compressed). "
                "Defaults to standard output."
            ),
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    resume: options.Resume = False,
    on_bad: options.OnBad = "blank",
    delimiter: options.Delimiter = None,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    long: options.LongTexts = "cut",
) -> None:
    """Score how two texts relate, or score every pair of a file.

    Compressed files end in .gz, .xz, .zst or .bz2, such as pairs.csv.gz.

    Example: likewise score "A man is playing a flute." "A man is playing a bamboo flute."

    Example: likewise score pairs.csv --output scored.csv
    """
    from likewise.folders import texts_of_model

    single = texts_of_model(model) == 1
    if len(texts) > (1 if single else 2):
        one = "one text" if single else "two texts"
        raise UsageError(
            f"found {len(texts)} arguments, but {model} reads {one}. Give {one} in quotes, or one file."
        )
    if len(texts) == 2 or (single and not names_file(texts[0])):
        if output is not None or text_a or text_b or delimiter or resume:
            raise UsageError(
                "--output, --text-a, --text-b, --delimiter and --resume need a file, but texts were given. "
                "Leave them out, or name a file."
            )
        _score_texts(tuple(texts), _load(model, device, precision, long), relation, as_json=as_json)
        return
    written = Written(output, as_json, safe_csv, overwrite, on_bad, resume)
    written.check([texts[0], model])
    table = _open(texts[0], delimiter)
    columns = _text_columns(table, (text_a, text_b), single=single)
    _score_file(texts[0], table, columns, (model, device, precision, long), relation, written)


def _load(model: str, device: str | None, precision: str, long: str) -> Answerer:
    quiet_libraries()
    from likewise.predict import load

    return load(model, device=device, precision=precision, long=long)  # type: ignore[arg-type]


def _score_texts(
    texts: tuple[str, ...], predictor: Answerer, relation: list[str] | None, *, as_json: bool
) -> None:
    import numpy as np

    from likewise.records import nearest_labels

    scores = predictor.score([texts if len(texts) == 2 else texts[0]], relation=relation)
    values, chances = scores.rows()[0], scores.chances(0)
    if as_json:
        relations = first_answers(scores)
        names = ("text_a", "text_b") if len(texts) == 2 else ("text",)
        out.print_json(json.dumps({**dict(zip(names, texts, strict=True)), "relations": relations}))
        return
    width = max(len(r.name) for r in scores.relations)
    for r in scores.relations:
        value = values[r.name]
        shown = f"{value} ({chances[r.name][value]:.1%})" if isinstance(value, str) else f"{value:.3f}"
        if r.kind == "ordered" and not isinstance(value, str):
            shown = f"{nearest_labels(r, np.array([value]))[0]} ({value:.2f} of {r.lo:g}..{r.hi:g})"
        line = f"{r.name:<{width}}  {shown}  on {r.scale}, from the {scores.source[r.name]}"
        out.print(line, markup=False)


def first_answers(scores: Scores) -> dict[str, dict[str, Any]]:
    """The answers to the first row, by relation, in a JSON-ready form."""
    values, chances = scores.rows()[0], scores.chances(0)
    return {
        r.name: {"value": values[r.name], "scale": r.scale, "source": scores.source[r.name]}
        | ({"probabilities": chances[r.name]} if r.name in chances else {})
        for r in scores.relations
    }


def _open(name: str, delimiter: str | None) -> Table:
    from likewise.data import open_table

    if not names_file(name) and (" " in name or "." not in name):
        raise UsageError(f"{quoted(name)} is not a file. For two texts, give both, each in quotes.")
    return open_table(name, delimiter=delimiter)


def _score_file(
    name: str,
    table: Table,
    columns: tuple[str, ...],
    loading: tuple[str, str | None, str, str],
    relation: list[str] | None,
    written: Written,
) -> None:
    from likewise.answering import chance_column

    begun = begin_rows(table, columns, written.on_bad)
    predictor = _load(*loading)
    asked = [r for r in predictor.relations if not relation or r.name in relation]
    # Labels without an order come with their probabilities.
    labels = {r.name: r.labels for r in asked if r.kind == "classes"}
    given = [
        column
        for r in asked
        for column in [r.name, *(chance_column(r.name, label) for label in labels.get(r.name, ()))]
    ]
    names = answer_columns(given, table.columns)
    single = len(columns) == 1

    def answer(rows: list[tuple[str, ...]]) -> Iterator[list[object]]:
        scores = predictor.score([text for (text,) in rows] if single else rows, relation=relation)
        for row, found in enumerate(scores.rows()):
            answers: dict[str, float | str] = dict(found)
            chances = scores.chances(row)
            for name in labels:
                answers |= {chance_column(name, label): p for label, p in chances[name].items()}
            yield [v if isinstance(v, str) else round(v, 6) for v in map(answers.__getitem__, names)]

    work = Work(
        name,
        table,
        columns,
        loading[0],
        list(names.values()),
        answer,
        predictor,
        {"verb": "score", "relation": relation, "running": list(loading[1:])},
        ("scoring", "texts" if single else "pairs", "scored"),
    )
    write_answers(work, begun, written)


def _text_columns(table: Table, columns: tuple[str | None, str | None], *, single: bool) -> tuple[str, ...]:
    """The text columns, which are also printed. For single texts, --text-a names the column."""
    from likewise.data.columns import find_text_column, find_text_columns

    if single:
        note("this model reads single texts")
        place = find_text_column(table.columns, columns[0], source=table.name)
        note(f"{table.name}: reading texts from column {place!r}")
        return (place,)
    a, b = find_text_columns(table.columns, *columns, source=table.name)
    note(f"{table.name}: reading texts from columns {a!r} and {b!r}")
    return a, b
