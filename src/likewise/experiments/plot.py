"""The plot of an experiment: per column the seeds, their mean and its 95 % interval, a line per setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.disk import path_aside
from likewise.errors import EvaluationError, MissingExtraError
from likewise.evaluation.intervals import mean_interval

if TYPE_CHECKING:
    from likewise.experiments.rows import ResultRow
    from likewise.experiments.summary import ExperimentResult

INK, SEEDS, LINES = "#1b4965", "#9fb8c8", "#d9dee2"
_PANELS_A_ROW = 4


def draw(result: ExperimentResult, path: Path, *, replace: bool = True) -> None:
    """Write the plot; the format follows the file's ending (.svg, .png, .pdf)."""
    plt = load_pyplot()
    columns = list(dict.fromkeys(column for row in result.rows for column in row.metrics))
    names = [f"{row.start} {row.setting}".strip() for row in result.rows]
    wide = min(len(columns), _PANELS_A_ROW)
    high = -(-len(columns) // wide)
    labels = max(2.2, 0.07 * max(map(len, names)))
    size = (labels + 2.6 * wide, 0.6 + (0.9 + 0.3 * len(names)) * high)
    figure, axes = plt.subplots(high, wide, figsize=size, squeeze=False, sharey=True, layout="constrained")
    for panel, axis in enumerate(axes.flat):
        if panel >= len(columns):
            axis.set_visible(False)
            continue
        column = columns[panel]
        for place, row in enumerate(result.rows):
            _draw_row(axis, row, column, place)
        axis.set_title(column.removeprefix("head "), fontsize=9, color=INK)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.tick_params(axis="both", length=0, labelsize=8)
        axis.grid(axis="x", color=LINES, linewidth=0.6)
        for side in ("top", "right", "left", "bottom"):
            axis.spines[side].set_visible(False)
    figure.suptitle(
        f"{result.name}: seeds, mean and 95 % interval", fontsize=10, color=INK, x=0.01, ha="left"
    )
    save(figure, path, replace=replace)


def load_pyplot() -> Any:
    """matplotlib's pyplot, drawing into files alone."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    mpl.use("agg")
    from matplotlib import pyplot as plt

    return plt


def save(figure: Any, path: Path, *, replace: bool) -> None:
    """Write a figure, without the date: the same numbers give the same file."""
    with path_aside(path, path.suffix, replace=replace) as aside:
        figure.savefig(aside, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    load_pyplot().close(figure)


def _draw_row(axis: Any, row: ResultRow, column: str, place: int) -> None:
    values = row.numbers.get(column)
    if values is None:
        return
    axis.plot(values, [place] * len(values), "o", color=SEEDS, markersize=3.5, zorder=2)
    axis.plot([row.mean(column)], [place], "o", color=INK, markersize=5, zorder=4)
    try:
        interval = mean_interval(values)
    except EvaluationError:
        return
    axis.plot([interval.low, interval.high], [place, place], color=INK, linewidth=1.4, zorder=3)
