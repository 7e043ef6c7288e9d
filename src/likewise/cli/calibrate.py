"""`likewise calibrate`: make the probabilities of a label model say how often it is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.classify import read_labels
from likewise.cli.console import note, out, quiet_libraries


def calibrate(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model with label texts, or an encoder that was not trained."),
    ],
    data: Annotated[
        str, typer.Argument(metavar="FILE", help="Labelled texts that the model was not trained on.")
    ],
    output: Annotated[
        Path, typer.Option("--output", help="Folder to write the calibrated model to. The old model stays.")
    ],
    task: Annotated[
        str | None, typer.Option("--task", help="Task to calibrate. Defaults to the only one.")
    ] = None,
    text: options.TextColumn = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Column of the labels. Defaults to the name of the task.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            help="Labels in words, for an encoder that was not trained: 'NAME = WORDS, NAME = WORDS'.",
        ),
    ] = None,
    template: options.Templates = None,
    use: Annotated[
        int | None,
        typer.Option("--use", min=1, help="Number of texts to draw from the file. Defaults to all."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the draw.")] = 1,
    overwrite: options.Overwrite = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Fit the probabilities of a classifier to labelled texts, so that they tell how often it is right.

    A temperature and an offset for each label are fitted and kept with the model. Use about 100 texts that
    resemble those to classify. Nothing is written if they do not make the probabilities better.

    Example: likewise calibrate my-intents checked.csv --text ticket --label intent --output calibrated
    """
    quiet_libraries()
    from likewise import api

    report = api.calibrate(
        model,
        data,
        output,
        task=task,
        text=text,
        label=label,
        labels=None if labels is None else read_labels(labels, fewest=1),
        templates=template or (),
        use=use,
        seed=seed,
        overwrite=overwrite,
        device=device,
        precision=precision,
        data_dir=data_dir,
        tell=note,
    )
    if as_json:
        document = {
            "output": str(report.output),
            "task": report.task,
            "texts": report.texts,
            "calibration_error": {"before": report.before, "after": report.after},
            "temperature": report.temperature,
        }
        out.print_json(json.dumps(document))
        return
    out.print(
        f"{report.task}: {report.texts:,} texts; calibration error {report.before:.3f} before, "
        f"{report.after:.3f} after (cross-validated)",
        markup=False,
    )
    note(f"model: {report.output}")
