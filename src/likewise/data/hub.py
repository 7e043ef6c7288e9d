"""Datasets by hub id or local folder, read through the `datasets` package, which is imported only here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from likewise.data.memory import memory_table
from likewise.data.rows import Table
from likewise.errors import FormatError, LikewiseError, MissingExtraError, Problem
from likewise.files import refuse_endless

_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_DATA_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow")


def is_hub_id(source: str) -> bool:
    """Whether a text has the form owner/name."""
    return _HUB_ID.fullmatch(source) is not None


def is_dataset_folder(folder: Path) -> bool:
    """Whether a folder holds files that `datasets` can read."""
    found = False
    for path in (path for pattern in ("*", "*/*") for path in folder.glob(pattern)):
        if path.name.lower().endswith(_DATA_ENDINGS) and not path.is_dir():
            refuse_endless(path)  # `datasets` would open a pipe and wait
            found = True
    return found


def hub_table(
    source: str, *, split: str | None = None, name: str | None = None, config: str | None = None
) -> Table:
    """The table of a hub id, a folder of data files, or a folder written by `save_to_disk`."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "tables") from None
    try:
        data: Any
        if (Path(source) / "state.json").is_file() or (Path(source) / "dataset_dict.json").is_file():
            data = datasets.load_from_disk(source)
        else:
            data = datasets.load_dataset(source, config)
    except LikewiseError:
        raise
    except Exception as error:  # the hub client and its file readers raise some twenty kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        found = f"this is neither a file nor a dataset that could be loaded ({reason})"
        raise FormatError(
            [Problem(source, found, "check the name and the network, or give the path of a file")]
        ) from error
    table = memory_table(data, split=split, name=name or source)
    if table is None:
        raise FormatError(
            [
                Problem(
                    source,
                    f"this was loaded as {type(data).__name__}, but rows are expected",
                    "give the path of a file",
                )
            ]
        )
    return table
