"""A row of an experiment's table: one setting from one start, with all its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One setting from one start: numbers by column, one per seed; `metrics` names the tasks' metrics.

    A run trains `models` models: one, or one for each relation. `fit_seconds` and `steps` are of their last
    stage. `relations` gives the relation of each column's ratings, `averages` the columns of an average.
    A row of a setting that is run as every set of tasks has the setting's name as `family`, and its `tasks`.
    """

    start: str
    setting: str
    overrides: dict[str, Any]
    seeds: tuple[int, ...]
    dev: tuple[float | None, ...]
    numbers: dict[str, tuple[float, ...]]
    seconds: tuple[float, ...]
    peak_memory_mib: tuple[float | None, ...]
    metrics: dict[str, str]
    schedule: str
    models: int
    fit_seconds: tuple[float, ...]
    steps: int
    relations: dict[str, str] = field(default_factory=dict)
    averages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    family: str = ""
    tasks: tuple[str, ...] = ()

    def mean(self, column: str) -> float:
        """The mean over seeds."""
        return sum(self.numbers[column]) / len(self.numbers[column])


def whole(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows whose models learn all relations of their setting; of sets of tasks, only the largest."""
    return [
        row
        for row in rows
        if all(
            len(other.tasks) <= len(row.tasks)
            for other in rows
            if (other.start, other.family) == (row.start, row.family)
        )
    ]


def make_row(
    start: str,
    setting: str,
    point: dict[str, Any],
    runs: Sequence[Sequence[dict[str, Any]]],
    *,
    family: str = "",
    tasks: tuple[str, ...] = (),
) -> ResultRow:
    """Make a row from its cells; a run has one cell, or one for each relation."""
    numbers: dict[str, list[float]] = {}
    for run in runs:
        for name, value in _numbers(run).items():
            numbers.setdefault(name, []).append(value)
    dev = [[cell["dev"] for cell in run] for run in runs]
    memory = [[cell["peak_memory_mib"] for cell in run] for run in runs]
    return ResultRow(
        start,
        setting,
        point,
        tuple(int(run[0]["seed"]) for run in runs),
        tuple(None if None in values else sum(values) / len(values) for values in dev),
        {name: tuple(values) for name, values in numbers.items()},
        tuple(sum(float(cell["train_seconds"]) for cell in run) for run in runs),
        tuple(None if None in values else max(values) for values in memory),
        _of_tasks(runs[0], "metric"),
        str(runs[0][0]["recipe"]["stage"][-1].get("schedule", "")),
        len(runs[0]),
        tuple(sum(float(s["seconds"]) for cell in run for s in cell["stages"][-1:]) for run in runs),
        sum(int(s["steps"]) for cell in runs[0] for s in cell["stages"][-1:]),
        _of_tasks(runs[0], "relation"),
        _averages(runs[0]),
        family,
        tasks,
    )


def _of_tasks(run: Sequence[dict[str, Any]], key: str) -> dict[str, str]:
    """A property of every task column, such as its metric; averages and checks have none."""
    prefixes = _prefixes(run)
    return {
        prefixes[source] + task["name"]: task.get(key, "")
        for cell in run
        for source, result in cell["results"].items()
        for task in result["tasks"]
    }


def _prefixes(run: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The prefix of each source's columns; the cosine has none, nor has a source that is the only one."""
    sources = list(dict.fromkeys(source for cell in run for source in cell["results"]))
    return {source: "" if source == "cosine" or len(sources) == 1 else f"{source} " for source in sources}


def _averages(run: Sequence[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The columns of each average."""
    return {
        prefix + "average": tuple(
            prefix + task["name"]
            for cell in run
            for task in cell["results"].get(source, {"tasks": []})["tasks"]
        )
        for source, prefix in _prefixes(run).items()
    }


def _numbers(run: Sequence[dict[str, Any]]) -> dict[str, float]:
    """All numbers of one run by column: the tasks, their average if they share a metric, and the checks."""
    found: dict[str, float] = {}
    for source, prefix in _prefixes(run).items():
        tasks = [task for cell in run for task in cell["results"].get(source, {"tasks": []})["tasks"]]
        found |= {prefix + task["name"]: float(task["value"]) for task in tasks}
        if len({task["metric"] for task in tasks}) == 1:
            found[prefix + "average"] = sum(float(task["value"]) for task in tasks) / len(tasks)
    for cell in run:
        found |= {name: float(value) for name, value in cell["checks"].items()}
    return found
