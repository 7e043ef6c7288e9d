"""Make a table from cells: means over seeds with t intervals, and tests against the baseline setting."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from likewise.errors import EvaluationError
from likewise.evaluation.intervals import mean_interval
from likewise.evaluation.significance import holm, welch
from likewise.evaluation.tables import TextTable, align, markdown, p_value
from likewise.experiments.advice import MARGIN, advise, costs
from likewise.experiments.affinity import AffinityReport, affinities
from likewise.experiments.affinity_tables import affinity_lines
from likewise.experiments.compare import compare, comparison_lines
from likewise.experiments.predictions import Gathered
from likewise.experiments.related import RelatedReport
from likewise.experiments.rows import ResultRow, whole


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The result of an experiment: all its settings with their numbers."""

    name: str
    description: str
    recipe: str
    baseline: str
    rows: tuple[ResultRow, ...]
    grid: list[dict[str, Any]]
    about: dict[str, Any]
    related: tuple[RelatedReport, ...] = ()
    margin: float = MARGIN
    predictions: Gathered | None = field(default=None, compare=False, repr=False)

    def columns(self) -> list[str]:
        """The names of all numbers in order."""
        return list(dict.fromkeys(name for row in self.rows for name in row.numbers))

    def tests(self, column: str) -> dict[tuple[str, str], float]:
        """Welch's p values of every row against the baseline from the same start, Holm-corrected per start.

        Averages over different tasks are not compared.
        """
        corrected: dict[tuple[str, str], float] = {}
        for base in self.rows:
            if base.setting != self.baseline or column not in base.numbers:
                continue
            found: dict[tuple[str, str], float] = {}
            for row in self.rows:
                if row is base or row.start != base.start or column not in row.numbers:
                    continue
                if set(row.averages.get(column, ())) != set(base.averages.get(column, ())):
                    continue
                with contextlib.suppress(EvaluationError):  # one seed, or no spread: no test
                    found[row.start, row.setting] = welch(row.numbers[column], base.numbers[column]).p
            if found:
                corrected |= dict(zip(found, holm(list(found.values())), strict=True))
        return corrected

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready summary, from which the tables of the docs are made."""
        return {
            "name": self.name,
            "description": self.description,
            "recipe": self.recipe,
            "baseline": self.baseline,
            "settings": [self._row_dict(row) for row in self.rows],
            "tests": [
                {"column": column, "start": start, "setting": setting, "p": p}
                for column in self.columns()
                if column.endswith("average")
                for (start, setting), p in self.tests(column).items()
            ],
            "comparisons": [asdict(c) for c in compare(self.rows, self.baseline)],
            "advice": [asdict(advice) for advice in advise(self.rows, self.margin)],
            "costs": [asdict(cost) for cost in costs(self.rows)],
            "related": [report.to_dict() for report in self.related],
            "affinity": [asdict(report) for report in self.affinity()],
            "grid": self.grid,
            **self.about,
        }

    def affinity(self) -> list[AffinityReport]:
        """The gains of tasks from each other, if a setting was run as every set of them."""
        return affinities(self.rows, self.baseline)

    def _row_dict(self, row: ResultRow) -> dict[str, Any]:
        return {
            "start": row.start,
            "setting": row.setting,
            "overrides": row.overrides,
            "seeds": list(row.seeds),
            "dev": list(row.dev),
            "metrics": row.metrics,
            "numbers": {name: list(values) for name, values in row.numbers.items()},
            "mean": {name: sum(values) / len(values) for name, values in row.numbers.items()},
            "interval": {name: _interval(values) for name, values in row.numbers.items()},
            "seconds": list(row.seconds),
            "fit_seconds": list(row.fit_seconds),
            "steps": row.steps,
            "peak_memory_mib": list(row.peak_memory_mib),
        }

    def table(self) -> TextTable:
        """The header and rows of the table: means, and averages with their interval and p."""
        columns = self.columns()
        header = ("setting", *columns, "seeds", "dev")
        starts = {row.start for row in self.rows}
        corrected = {column: self.tests(column) for column in columns if column.endswith("average")}
        rows = []
        for row in self.rows:
            cells = [_cell(row, column, corrected.get(column, {})) for column in columns]
            dev = [value for value in row.dev if value is not None]
            rows.append(
                (
                    f"{row.start} {row.setting}" if len(starts) > 1 else row.setting,
                    *cells,
                    str(len(row.seeds)),
                    f"{100 * sum(dev) / len(dev):.2f}" if dev else "–",
                )
            )
        return header, rows

    def to_text(self) -> str:
        """Aligned plain-text tables: the numbers, then every setting compared with the baseline."""
        against = comparison_lines(whole(self.rows), self.baseline)
        lines = [self.name, *align(*self.table()), self.legend(), *_apart(against)]
        return "\n".join([*lines, *affinity_lines(self.affinity()), *self._ending()])

    def to_markdown(self) -> str:
        """The same tables in Markdown."""
        against = comparison_lines(whole(self.rows), self.baseline, form="markdown")
        ending = ["", "```", *self._ending()[1:], "```"] if self._ending() else []
        lines = [*markdown(*self.table()), "", self.legend(), *_apart(against)]
        return "\n".join([*lines, *affinity_lines(self.affinity(), form="markdown"), *ending])

    def _ending(self) -> list[str]:
        """Lines of plain text: correlations of relations, costs of settings, and advice."""
        lines = [line for report in self.related for line in ("", *report.lines())]
        advice = advise(self.rows, self.margin)
        return [*lines, *_titled("cost", costs(whole(self.rows))), *_titled("advice", advice)]

    def legend(self) -> str:
        """The explanation of the numbers."""
        return (
            "mean over seeds ± half of the 95 % confidence interval (t); p: Welch's t-test against "
            f"{self.baseline}, Holm-corrected"
        )


def _titled(title: str, entries: Sequence[object]) -> list[str]:
    return ["", f"{title}:", *(f"  {entry}" for entry in entries)] if entries else []


def _apart(lines: list[str]) -> list[str]:
    return ["", *lines] if lines else []


def _cell(row: ResultRow, column: str, corrected: dict[tuple[str, str], float]) -> str:
    values = row.numbers.get(column)
    if values is None:
        return "–"
    text = f"{sum(values) / len(values):.2f}"
    if column.endswith("average") and len(values) > 1:
        interval = mean_interval(values)
        text += f" ± {(interval.high - interval.low) / 2:.2f}"
        if (row.start, row.setting) in corrected:
            text += f" (p {p_value(corrected[row.start, row.setting])})"
    return text


def _interval(values: Sequence[float]) -> list[float] | None:
    if len(values) < 2:
        return None
    interval = mean_interval(values)
    return [interval.low, interval.high]
