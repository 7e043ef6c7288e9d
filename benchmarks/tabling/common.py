"""What the tables of several methods use: result files, numbers of papers, cells, Markdown."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def read(name: str) -> dict[str, Any]:
    """One result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf8"))
    return found


def is_there(name: str) -> bool:
    """Whether a result file was written."""
    return (RESULTS / f"{name}.json").is_file()


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def spread(setting: dict[str, Any], column: str) -> str:
    """Mean ± half of the 95 % t interval."""
    mean, interval = setting["mean"][column], setting["interval"][column]
    return f"{mean:.2f}" if interval is None else f"{mean:.2f} ± {(interval[1] - interval[0]) / 2:.2f}"


def printed(setting: dict[str, Any], column: str) -> str:
    """.720 for a correlation, 86.7 for an accuracy."""
    if column not in setting["metrics"]:
        return "–"
    return markdown_number(setting["mean"][column], setting["metrics"][column])


def markdown_number(value: float, metric: str) -> str:
    """A value ×100 by its metric, as papers print it: .720 for a correlation, 86.7 for an accuracy."""
    correlation = metric in ("spearman", "pearson")
    return f"{value / 100:.3f}".replace("0.", ".", 1) if correlation else f"{value:.1f}"


def published_numbers() -> dict[str, Any]:
    """What papers print, by experiment."""
    return tomllib.loads((ROOT / "benchmarks" / "published.toml").read_text(encoding="utf8"))


def published_rows(name: str) -> dict[str, list[str]]:
    """Rows of the paper's own table, as it prints them."""
    rows: dict[str, list[str]] = published_numbers().get("rows", {}).get(name, {})
    return rows
