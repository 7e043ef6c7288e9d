"""Write pairs to be rated: as a table, as tasks of Label Studio, or as records of Argilla."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from likewise.annotation.candidates import Candidate, Candidates
from likewise.annotation.reading import KEPT
from likewise.data.writing import TableWriter, write_json_aside
from likewise.errors import UsageError
from likewise.spelling import spelt

TaskFormat = Literal["csv", "label-studio", "argilla"]
FORMATS: tuple[TaskFormat, ...] = ("csv", "label-studio", "argilla")


def check_format(output: Path, form: str) -> None:
    """Refuse an unknown format, and a file name that does not fit the format."""
    if form not in FORMATS:
        raise UsageError(f"there is no format {form!r}. Choose {', '.join(FORMATS)}.")
    if form != "csv" and output.suffix.lower() != ".json":
        raise UsageError(f"the format {form} is JSON, but the file is {output.name}. Name a .json file.")
    if form == "csv" and output.suffix.lower() == ".json":
        raise UsageError(
            f"{output.name} is a JSON file. Choose {spelt('form', 'label-studio')} or "
            f"{spelt('form', 'argilla')}, or name a table (.csv .tsv .jsonl .parquet)."
        )


def write_tasks(
    output: Path,
    pairs: Sequence[Candidate],
    pool: Candidates,
    *,
    form: str = "csv",
    safe: bool = False,
    replace: bool = False,
) -> None:
    """Write pairs in a format. A table has the columns and the delimiter of the pool; tasks and records have
    the texts as text_a and text_b and keep `id`, `subset` and `language`.
    """
    if form == "csv":
        with TableWriter(
            output, pool.columns, safe=safe, replace=replace, delimiter=pool.delimiter, bom=pool.bom
        ) as writer:
            for pair in pairs:
                writer.write_row({column: pair.fields.get(column) for column in pool.columns})
        return
    make = _task if form == "label-studio" else _record
    write_json_aside(output, [make(pair) for pair in pairs], replace=replace)


def _task(pair: Candidate) -> dict[str, Any]:
    """A task as Label Studio imports it."""
    return {"data": {**_texts(pair), **_kept(pair)}}


def _record(pair: Candidate) -> dict[str, Any]:
    """A record as `records.from_json` of Argilla 2 reads it."""
    kept = _kept(pair)
    named = {"id": str(kept.pop("id"))} if "id" in kept else {}
    return {
        **named,
        "fields": _texts(pair),
        "metadata": kept,
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }


def _texts(pair: Candidate) -> dict[str, str]:
    return {"text_a": pair.texts[0], "text_b": pair.texts[1]}


def _kept(pair: Candidate) -> dict[str, Any]:
    fields: Mapping[str, Any] = pair.fields
    return {name: fields[name] for name in KEPT if isinstance(fields.get(name), str | int)}
