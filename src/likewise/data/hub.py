"""Datasets by hub id, and folders that `save_to_disk` wrote; `datasets` is imported only here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from likewise.data.memory import memory_table
from likewise.data.opened import note_file
from likewise.data.rows import Table
from likewise.errors import FormatError, LikewiseError, MissingExtraError, Problem
from likewise.files import refuse_endless

_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_STATE, _SPLITS = "state.json", "dataset_dict.json"
_LARGEST = 16 * 2**20


def is_hub_id(source: str) -> bool:
    """Whether a text has the form owner/name."""
    return _HUB_ID.fullmatch(source) is not None


def is_saved_dataset(folder: Path) -> bool:
    """Whether `save_to_disk` wrote a folder."""
    return (folder / _STATE).is_file() or (folder / _SPLITS).is_file()


def saved_table(folder: Path, *, split: str | None = None, name: str | None = None) -> Table:
    """The table of a folder that `save_to_disk` wrote. Its rows are read where they lie, without a copy."""
    for file in _arrow_files(folder):
        note_file(file)
    return _table(str(folder), lambda: _datasets().load_from_disk(str(folder)), split, name)


def hub_table(
    source: str, *, split: str | None = None, name: str | None = None, config: str | None = None
) -> Table:
    """The table of a hub id."""
    return _table(source, lambda: _datasets().load_dataset(source, config), split, name)


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "tables") from None
    return datasets


def _table(source: str, load: Callable[[], Any], split: str | None, name: str | None) -> Table:
    try:
        data = load()
    except LikewiseError:
        raise
    except Exception as error:  # the hub client and its file readers raise some twenty kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        found = f"this is neither a file nor a dataset that could be loaded ({reason})"
        raise FormatError(
            [Problem(source, found, "check the name and the network, or give the path of a file")]
        ) from error
    if isinstance(data, dict):
        data = {key: _with_plain_columns(part) for key, part in data.items()}
    table = memory_table(_with_plain_columns(data), split=split, name=name or source)
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


def _with_plain_columns(data: Any) -> Any:
    """A dataset without columns such as pictures and sounds, whose values name files that would be opened."""
    features = getattr(data, "features", None)
    if not features or not hasattr(data, "remove_columns"):
        return data
    others = [name for name, feature in features.items() if not _is_plain(feature)]
    return data.remove_columns(others) if others else data


def _is_plain(feature: Any) -> bool:
    """Whether a feature holds numbers, texts or labels, or lists and groups of these."""
    if isinstance(feature, dict):
        return all(map(_is_plain, feature.values()))
    if isinstance(feature, list):
        return all(map(_is_plain, feature))
    inner = getattr(feature, "feature", None)
    return _is_plain(inner) if inner is not None else type(feature).__name__ in ("Value", "ClassLabel")


def _arrow_files(folder: Path) -> Iterator[Path]:
    """The files of rows that a saved dataset names, each of which must lie in its folder."""
    places = [folder]
    if (folder / _SPLITS).is_file():
        names = _read(folder / _SPLITS).get("splits")
        places = [folder / _plain_name(one, folder / _SPLITS) for one in _list(names, folder / _SPLITS)]
    for place in places:
        state = place / _STATE
        for entry in _list(_read(state).get("_data_files"), state):
            file = place / _plain_name(entry.get("filename") if isinstance(entry, dict) else None, state)
            refuse_endless(file)
            yield file


def _read(path: Path) -> dict[str, Any]:
    """A JSON object in a dataset's folder."""
    refuse_endless(path)
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _damaged(path, "it cannot be read as a JSON object")
    return found


def _list(found: object, path: Path) -> list[Any]:
    if not isinstance(found, list):
        raise _damaged(path, "the list of its files is missing")
    return found


def _plain_name(name: object, path: Path) -> str:
    """A name in a dataset's folder; a path could lead anywhere."""
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or "\0" in name:
        raise _damaged(path, f"it names {str(name)[:80]!r}, but rows must lie beside it")
    return name


def _damaged(path: Path, found: str) -> FormatError:
    return FormatError([Problem(str(path), found, "save the dataset again with save_to_disk")])
