"""The heat map of an affinity report: what tasks give each other, and the gains of every set of tasks.

Numbers stand in the cells, so colours need no scale beside them: blue is a gain, red a loss, white is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.experiments.affinity import AffinityReport, Gain
from likewise.experiments.affinity_tables import shown_number
from likewise.experiments.plot import INK, load_pyplot, save

COLOURS, QUIET, GREY = "RdBu", "#6b7a85", "#eceff1"
# Inches: a cell of a matrix, a cell of the sets, a letter of a label, what stands above and beside a panel.
_CELL, _SLIM, _LETTER, _HEAD, _GAP = (1.0, 0.52), (1.2, 0.3), 0.072, 0.72, 0.3
_MARGIN, _TITLE, _LEGEND = 0.2, 0.25, 0.45


@dataclass(frozen=True, slots=True)
class _Panel:
    """One matrix of gains; `instead` is what stands in a cell without one."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    gains: list[list[Gain | None]]
    cell: tuple[float, float]
    instead: dict[tuple[int, int], str]

    @property
    def labels(self) -> float:
        return _LETTER * max(map(len, self.rows)) + 0.15

    @property
    def size(self) -> tuple[float, float]:
        title = _LETTER * max(map(len, self.title.splitlines()))
        wide = max(self.labels + self.cell[0] * len(self.columns), title)
        return wide, _HEAD + self.cell[1] * len(self.rows)


def draw_affinity(reports: Sequence[AffinityReport], path: Path, *, title: str, replace: bool = True) -> None:
    """Write the heat maps of all reports, one below the other; the format follows the file's ending."""
    plt = load_pyplot()
    pages = [(_left(report), _sets(report)) for report in reports]
    heights = [
        max(sum(panel.size[1] + _GAP for panel in left) - _GAP, right.size[1]) for left, right in pages
    ]
    widths = [max(panel.size[0] for panel in left) + _GAP + right.size[0] for left, right in pages]
    size = (2 * _MARGIN + max(widths), 2 * _MARGIN + sum(height + _TITLE + _LEGEND for height in heights))
    figure = plt.figure(figsize=size)
    top = _MARGIN
    for report, (left, right), height in zip(reports, pages, heights, strict=True):
        name = f"{title}: {report.start} {report.setting}".replace(":  ", ": ")
        _write(figure, name, top, fontsize=12, color=INK, weight="bold")
        top += _TITLE
        below = top
        for panel in left:
            _draw(figure, panel, _MARGIN, below)
            below += panel.size[1] + _GAP
        _draw(figure, right, _MARGIN + max(panel.size[0] for panel in left) + _GAP, top)
        top += height + 0.1
        _write(figure, _legend(report), top, fontsize=8, color=QUIET)
        top += _LEGEND - 0.1
    save(figure, path, replace=replace)


def _left(report: AffinityReport) -> list[_Panel]:
    """The task-by-task matrix, and the paper's below it where there is a baseline."""
    measured = tuple(report.metrics)
    alone = report.together[0].numbers
    instead = {
        (row, report.tasks.index(task)): shown_number(alone[task]).replace(" ± ", "\n± ")
        for row, task in enumerate(measured)
    }
    title = "Gain of the row's task beside the column's\nover the task alone, whose number stands in grey"
    panels = [_Panel(title, measured, report.tasks, report.matrix, _CELL, instead)]
    if report.pairs:
        title = (
            f"Two tasks in one model, mean of their gains over\n{report.baseline}; on the diagonal one alone"
        )
        panels.append(_Panel(title, measured, measured, report.pairs, _CELL, {}))
    return panels


def _sets(report: AffinityReport) -> _Panel:
    """Every set of tasks that has gains; tasks that are not in a set leave a blank."""
    shown = [one for one in report.sets if one.gains]
    over = report.baseline or "the task alone"
    return _Panel(
        f"Every set of tasks in one model, gain\nof the column's task over {over}",
        tuple(" + ".join(one.tasks) for one in shown),
        tuple(report.metrics),
        [[one.gains.get(task) for task in report.metrics] for one in shown],
        _SLIM,
        {},
    )


def _draw(figure: Any, panel: _Panel, left: float, top: float) -> None:
    """A panel whose labels begin at `left` and whose title begins at `top`, in inches."""
    high, wide = len(panel.rows), len(panel.columns)
    axis = _axis(
        figure, left + panel.labels, top + _HEAD, wide=panel.cell[0] * wide, high=panel.cell[1] * high
    )
    axis.set_xlim(0, wide)
    axis.set_ylim(high, 0)
    found = [abs(gain.mean) for row in panel.gains for gain in row if gain is not None]
    # A loss and a gain of one size have colours of one depth; no gain at all leaves everything white.
    most = max(found, default=0.0) or 1.0
    for y, row in enumerate(panel.gains):
        for x, gain in enumerate(row):
            instead = panel.instead.get((y, x), "")
            _draw_cell(axis, gain, x, y, most=most, slim=panel.cell == _SLIM, instead=instead)
    axis.set_xticks([x + 0.5 for x in range(wide)], panel.columns)
    axis.set_yticks([y + 0.5 for y in range(high)], panel.rows)
    axis.tick_params(length=0, labelsize=9, top=False, labeltop=True, bottom=False, labelbottom=False)
    begins = -panel.labels / (panel.cell[0] * wide)
    axis.set_title(panel.title, fontsize=9.5, color=INK, loc="left", pad=8, x=begins)
    for side in axis.spines.values():
        side.set_visible(False)


def _draw_cell(
    axis: Any, gain: Gain | None, x: int, y: int, *, most: float, slim: bool, instead: str
) -> None:
    plt = load_pyplot()
    colour: Any = GREY if instead else "white"
    text, ink, weight = instead, QUIET, "normal"
    if gain is not None:
        # The map's outer tenth is too dark to read numbers on.
        colour = plt.get_cmap(COLOURS)(0.5 + 0.4 * gain.mean / most)
        half = "" if gain.interval is None else f"± {(gain.interval[1] - gain.interval[0]) / 2:.2f}"
        text = f"{gain.mean:+.2f}{' ' if slim else chr(10)}{half}".rstrip()
        ink = "white" if _is_dark(colour) else "black"
        weight = "bold" if gain.clear else "normal"
    axis.add_patch(plt.Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
    axis.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=8.5, color=ink, weight=weight)


def _is_dark(colour: Sequence[float]) -> bool:
    """Whether white letters read better on it than black ones (luma of Rec. 601)."""
    red, green, blue = colour[:3]
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.45


def _axis(figure: Any, left: float, top: float, *, wide: float, high: float) -> Any:
    """Axes by inches from the figure's upper left corner."""
    width, height = figure.get_size_inches()
    return figure.add_axes((left / width, 1 - (top + high) / height, wide / width, high / height))


def _write(figure: Any, text: str, top: float, **style: Any) -> None:
    width, height = figure.get_size_inches()
    figure.text(_MARGIN / width, 1 - top / height, text, va="top", ha="left", **style)


def _legend(report: AffinityReport) -> str:
    metric = ", ".join(dict.fromkeys(report.metrics.values()))
    return (
        f"{metric}, differences within a seed, mean over {report.seeds} seeds ± half of the 95 % t interval\n"
        "bold: interval without zero; blue: gain, red: loss, each panel on its own scale"
    )
