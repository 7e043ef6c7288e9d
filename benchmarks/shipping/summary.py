"""The numbers of result files, by what they measure; means over seeds. Loads neither torch nor data."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scipy.stats import t

Path = tuple[str, ...]
Entry = Mapping[str, Any]
# Fewer seeds give no interval.
SEEDS = 3


def numbers(part: Any, path: Path = ()) -> Iterator[tuple[Path, float]]:
    """Every measured number of an entry's parts, with the names that lead to it."""
    if isinstance(part, Mapping):
        if isinstance(part.get("value"), int | float):
            yield path, float(part["value"])
        for name, inner in part.items():
            yield from numbers(inner, (*path, str(name)))


def grouped(entries: Sequence[Entry], name: str | None = None) -> dict[str, list[Entry]]:
    """The entries of each name, which differ in their seed; with a `name`, all of them are one group.

    Raw encoders are left out, unless nothing else is there.
    """
    kept = [entry for entry in entries if not entry["untrained"]] or list(entries)
    groups: dict[str, list[Entry]] = {}
    for entry in kept:
        groups.setdefault(name or entry["name"], []).append(entry)
    return groups


def collected(entries: Sequence[Entry]) -> dict[Path, list[float]]:
    """The numbers of several entries by what they measure."""
    found: dict[Path, list[float]] = {}
    for entry in entries:
        for path, value in numbers(entry["parts"]):
            found.setdefault(path, []).append(value)
    return found


def half_width(values: Sequence[float]) -> float | None:
    """Half of the 95 % t interval of a mean over seeds; None of fewer than three."""
    if len(values) < SEEDS:
        return None
    return float(t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5)


def spread(values: Sequence[float], places: int = 2) -> str:
    """A mean with half of its interval over seeds, if there are enough."""
    half = half_width(values)
    mean = f"{statistics.mean(values):.{places}f}"
    return mean if half is None else f"{mean} ± {half:.{places}f}"


def summary_lines(entries: Sequence[Entry], name: str | None = None) -> Iterator[str]:
    """Each group with its means over seeds."""
    for group, mine in grouped(entries, name).items():
        seeds = ", ".join(str(entry["seed"]) for entry in mine if entry["seed"] is not None)
        yield f"{group}: {len(mine)} of one kind" + (f", seeds {seeds}" if seeds else "")
        found = collected(mine)
        width = max((len(" > ".join(path)) for path in found), default=0)
        for path, values in found.items():
            few = "" if len(values) == len(mine) else f"  ({len(values)} of {len(mine)})"
            yield f"  {' > '.join(path):<{width}}  {spread(values)}{few}"
