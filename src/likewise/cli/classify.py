"""`likewise classify`: label a text or a file of texts, by a task of the model or by labels in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli import options
from likewise.cli.answering import Work, Written, answer_columns, begin_rows, names_file, write_answers
from likewise.cli.console import note, out, quiet_libraries
from likewise.errors import DataError, Problem, UsageError
from likewise.wording import quoted

if TYPE_CHECKING:
    from likewise.data.rows import Table
    from likewise.predict import Answerer


def classify(
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT | FILE | -", help="A text, a file of texts, or - for standard input."),
    ],
    model: options.Model = "default",
    task: Annotated[str | None, typer.Option("--task", help="Task that the model was trained on.")] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            help="Labels in words: 'LABEL, LABEL'. With several texts per label: 'NAME = TEXT | TEXT, …'.",
        ),
    ] = None,
    template: options.Templates = None,
    none_below: Annotated[
        float | None,
        typer.Option(
            "--none-below",
            min=0.0,
            max=1.0,
            help="Answer 'none of these' if no label reaches this probability.",
        ),
    ] = None,
    column: options.TextColumn = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="File to write the answers to (.csv .tsv .jsonl .parquet). Defaults to standard output.",
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
    """Choose the label that fits a text, with probabilities. The labels may be new to the model.

    A model tells labels that it was not trained on apart by similarity alone. Their probabilities rank the
    labels but are not calibrated. The default model and other models of pairs do so by the cosine of their
    vectors.

    Example: likewise classify "My parcel arrived two weeks late." --labels "delivery, payment, account"

    Example: likewise classify mails.csv --model my-model --task topic --output sorted.csv
    """
    asked: dict[str, Any] = {
        "task": task,
        "labels": None if labels is None else read_labels(labels),
        "templates": template or None,
        "none_below": none_below,
    }
    if not text.strip():
        raise DataError([Problem("TEXT", "the text is empty", "give a text, a file or -")])
    if not names_file(text):
        if output is not None or column is not None or delimiter or resume:
            raise UsageError(
                f"{quoted(text)} is not a file, but --output, --text, --delimiter and --resume need one. "
                "Name a file, or leave them out."
            )
        _classify_text(text, _load(model, device, precision, long), asked, as_json=as_json)
        return
    written = Written(output, as_json, safe_csv, overwrite, on_bad, resume)
    written.check([text, model])
    from likewise.data import open_table

    table = open_table(text, delimiter=delimiter)
    _classify_file(text, table, (model, device, precision, long), asked, column, written)


def read_labels(text: str, *, fewest: int = 2) -> dict[str, list[str]]:
    """Labels of the command line, "praise, complaint | grievance", each with the label texts that describe
    it.

    A label is named after the first of its texts. A name that says nothing to the model stands before an
    equals sign: "acq = mergers | acquisitions".
    """
    found: dict[str, list[str]] = {}
    for entry in text.split(","):
        name, equals, said = entry.partition("=")
        ways = [way.strip() for way in (said if equals else entry).split("|") if way.strip()]
        if equals and not (ways and name.strip()):
            raise UsageError(f"--labels: one side of {quoted(entry.strip())} is empty. Write NAME = WORDS.")
        if not ways:
            continue
        label = name.strip() if equals else ways[0]
        if label in found:
            raise UsageError(f"--labels {quoted(text)} names a label twice. Name each label once.")
        found[label] = ways
    if len(found) < fewest:
        names = f"only {quoted(next(iter(found)))}" if found else "no label"
        said = " The character | separates different texts of one label." if "|" in text else ""
        needed = "two or more are needed" if fewest > 1 else "one is needed"
        raise UsageError(
            f"--labels {quoted(text)} names {names}, but {needed}. Separate labels with commas.{said}"
        )
    return found


def _load(model: str, device: str | None, precision: str, long: str) -> Answerer:
    quiet_libraries()
    from likewise.predict import load_classifier

    return load_classifier(model, device=device, precision=precision, long=long)  # type: ignore[arg-type]


def _classify_text(text: str, classifier: Answerer, asked: dict[str, Any], *, as_json: bool) -> None:
    found = classifier.classify([text], **asked)
    [answers], [best] = found, found.best
    if as_json:
        out.print_json(json.dumps({"text": text, "label": best, "probabilities": answers}))
        return
    if best not in answers:
        out.print(f"{best} (no label reaches {asked['none_below']:.0%})", markup=False)
    width = max(map(len, answers))
    for label, share in sorted(answers.items(), key=lambda item: -item[1]):
        out.print(f"{label:<{width}}  {share:6.1%}", markup=False)


def _classify_file(
    name: str,
    table: Table,
    loading: tuple[str, str | None, str, str],
    asked: dict[str, Any],
    column: str | None,
    written: Written,
) -> None:
    from likewise.data.columns import find_text_column

    place = find_text_column(table.columns, column, source=table.name, option="text")
    note(f"{table.name}: reading texts from column {place!r}")
    begun = begin_rows(table, [place], written.on_bad)
    classifier = _load(*loading)
    wanted = classifier.wanted(asked["task"], asked["labels"])
    shown, answer_name = wanted.labels, "label" if asked["labels"] else wanted.name
    names = answer_columns([answer_name, *(f"p({label})" for label in shown)], table.columns)

    def answer(rows: list[tuple[str, ...]]) -> Iterator[list[object]]:
        found = classifier.classify([text for (text,) in rows], **asked)
        for best, shares in zip(found.best, found.probabilities, strict=True):
            yield [best, *(round(float(p), 6) for p in shares)]

    work = Work(
        name,
        table,
        [place],
        loading[0],
        list(names.values()),
        answer,
        classifier,
        {"verb": "classify", **asked, "running": list(loading[1:])},
        ("classifying", "texts", "classified"),
    )
    write_answers(work, begun, written)
