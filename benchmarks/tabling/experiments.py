"""Families that show experiments of several methods: as the paper prints them, searches on dev."""

from __future__ import annotations

from tabling.baselines import free_rows
from tabling.common import markdown, printed, published_rows, read


def paper(name: str) -> str:
    """An experiment over relations as its paper prints it: what costs nothing, means with arrows, the paper's
    rows below.
    """
    result = read(name)
    settings = result["settings"]
    columns = list(dict.fromkeys(column for setting in settings for column in setting["metrics"]))
    arrows = {(c["start"], c["setting"], c["column"]): c["arrow"] for c in result["comparisons"]}
    free, rows = free_rows(result), []
    for setting in settings:
        start = setting["start"]
        if start in free:
            label, cells = free.pop(start)
            rows.append([start or "–", label, *cells, "–"])
        cells = [printed(setting, c) + arrows.get((start, setting["setting"], c), "") for c in columns]
        rows.append([start or "–", setting["setting"], *cells, str(len(setting["seeds"]))])
    for label, cells in published_rows(name).items():
        rows.append(["paper", label, *cells, ""])
    return markdown(["encoder", "setting", *columns, "seeds"], rows)


def search(name: str) -> str:
    """Candidates of a recipe: dev chooses, test numbers stand beside it, what costs nothing above."""
    result = read(name)
    settings = result["settings"]
    columns = list(settings[0]["metrics"])
    rows = [[label, "–", *cells, "–"] for label, cells in free_rows(result).values()]
    rows += [
        [
            setting["setting"],
            f"**{100 * sum(setting['dev']) / len(setting['dev']):.2f}**",
            *(printed(setting, column) for column in columns),
            str(len(setting["seeds"])),
        ]
        for setting in settings
    ]
    return markdown(["candidate", "dev", *columns, "seeds"], rows)
