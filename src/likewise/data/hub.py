"""Datasets by hub id, read through the package `datasets`, which is imported only here."""

from __future__ import annotations

import re
from typing import Any

from likewise.data.memory import memory_table
from likewise.data.rows import Table
from likewise.errors import FormatError, LikewiseError, MissingExtraError, Problem

_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def is_hub_id(source: str) -> bool:
    """Whether a text has the form owner/name."""
    return _HUB_ID.fullmatch(source) is not None


def hub_table(
    source: str, *, split: str | None = None, name: str | None = None, config: str | None = None
) -> Table:
    """The table of a hub id."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "tables") from None
    try:
        data = datasets.load_dataset(source, config)
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
