"""Label embedding: classification, tasks that come later, what tasks give each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tabling.baselines import MAJORITY, SUITES, free_row, free_ways
from tabling.common import markdown, printed, published_rows, read

SCENARIOS = ("cardinality", "domain", "objective")


def classification(ending: str) -> str:
    """All three scenarios of label embedding in one table: accuracy, and the mean difference to the baseline.

    `ending` names the class of encoders: "-lstm", or "-" for sentence encoders.
    """
    results = [read(f"labels-{scenario}{ending.removesuffix('-')}") for scenario in SCENARIOS]
    columns = [list(result["settings"][0]["metrics"]) for result in results]
    by_name = [{setting["setting"]: setting for setting in result["settings"]} for result in results]
    rows = [majority_row(results)]
    for name in by_name[0]:
        if not all(name in settings for settings in by_name):
            continue
        chosen = [settings[name] for settings in by_name]
        cells = [printed(s, column) for s, names in zip(chosen, columns, strict=True) for column in names]
        gains = [
            setting["mean"][column] - settings[result["baseline"]]["mean"][column]
            for setting, settings, result, names in zip(chosen, by_name, results, columns, strict=True)
            for column in names
        ]
        alone = all(name == result["baseline"] for result in results)
        average = "–" if alone else f"{sum(gains) / len(gains):+.1f}"
        rows.append([name, *cells, average, str(len(chosen[0]["seeds"]))])
    rows += [[f"paper: {label}", *cells, ""] for label, cells in published_rows("labels").items()]
    header = [column for names in columns for column in names]
    return markdown(["setting", *header, "average gain", "seeds"], rows)


def majority_row(results: list[dict[str, Any]]) -> list[str]:
    """The row of one answer for every text, with its mean difference to the baselines."""
    cells, gains = [], []
    for result in results:
        base = next(s for s in result["settings"] if s["setting"] == result["baseline"])
        label, found = free_row(result["suite"], base["metrics"], "")
        cells += found
        gains += [
            free_ways(result["suite"], column, "")[MAJORITY] - base["mean"][column]
            for column in base["metrics"]
        ]
    return [label, *cells, f"{sum(gains) / len(gains):+.1f}", "–"]


UPDATED = {"cardinality": "IMDB", "domain": "Kitchen", "objective": "IMDB"}


def updates() -> str:
    """A task that comes later, all scenarios: what the old tasks lose, how near the new one is to cold."""
    rows = []
    for scenario, new in UPDATED.items():
        settings = {one["setting"]: one for one in read(f"labels-{scenario}-update")["settings"]}
        before, cold = settings["before"]["mean"], settings["cold"]
        old = [column for column in settings["before"]["metrics"] if column != new]
        chance = free_ways("classification", new, "")[MAJORITY]
        rows.append(
            [
                f"{new} after {', '.join(old)}",
                f"no training: {MAJORITY}",
                "–",
                f"{chance:.1f}",
                f"{chance - cold['mean'][new]:+.2f}",
                "–",
                "–",
            ]
        )
        for name in ("hot", "hot, a tenth rehearsed", "zero"):
            found = settings[name]
            change = sum(found["mean"][column] - before[column] for column in old) / len(old)
            steps = 0 if name == "zero" else found["steps"]
            time = 0.0 if name == "zero" else sum(found["fit_seconds"]) / sum(cold["fit_seconds"])
            rows.append(
                [
                    f"{new} after {', '.join(old)}",
                    name,
                    f"{change:+.2f}",
                    f"{found['mean'][new]:.1f}",
                    f"{found['mean'][new] - cold['mean'][new]:+.2f}",
                    f"{steps:,} ({cold['steps']:,})",
                    f"{time:.0%}",
                ]
            )
    header = ["scenario", "update", "change on the old tasks", "accuracy on the new task"]
    return markdown(
        [*header, "difference from cold", "steps (cold update)", "time, share of the cold update"], rows
    )


def affinity(name: str) -> str:
    """The task-by-task gain matrix of every report."""
    from likewise.experiments.affinity_tables import matrix_table

    return affinity_parts(name, matrix_table)


def affinity_pairs(name: str) -> str:
    """Mean gain of two tasks over the baseline, one alone on the diagonal: the paper's last graph."""
    from likewise.experiments.affinity_tables import pairs_table

    return affinity_parts(name, pairs_table)


def affinity_sets(name: str) -> str:
    """The gain of every task in every set of tasks."""
    from likewise.experiments.affinity_tables import sets_table

    return affinity_parts(name, sets_table)


def affinity_together(name: str) -> str:
    """What 1, 2, … tasks in one model reach, and gain over one task and over the baseline."""
    from likewise.experiments.affinity_tables import together_table

    result = read(name)
    if result.get("suite") not in SUITES:
        return affinity_parts(name, together_table)
    columns = list(result["settings"][0]["metrics"])
    chance = [free_ways(result["suite"], column, "")[MAJORITY] for column in columns]

    def with_majority(report: Any, show: Callable[..., str]) -> tuple[Sequence[str], list[Sequence[str]]]:
        header, rows = together_table(report, show)
        values = [*chance, sum(chance) / len(chance)]
        cells = [f"{value:.2f}" for value in values][: len(header) - 1]
        return header, [(f"no training: {MAJORITY}", *cells), *rows]

    return affinity_parts(name, with_majority)


def affinity_parts(name: str, table: Callable[..., Any]) -> str:
    """One table per report of an experiment; each under its name where there are several."""
    from pydantic import TypeAdapter

    from likewise.experiments.affinity import AffinityReport
    from likewise.experiments.affinity_tables import bold_gain

    reports = TypeAdapter(list[AffinityReport]).validate_python(read(name)["affinity"])
    parts = []
    for report in reports:
        header, rows = table(report, bold_gain)
        title = f"{report.start} {report.setting}".strip()
        parts.append((f"**{title}**\n\n" if len(reports) > 1 else "") + markdown(list(header), rows))
    return "\n".join(parts)
