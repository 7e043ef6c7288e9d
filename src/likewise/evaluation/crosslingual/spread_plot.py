"""The plot of the spread: ratings on the x axis, cosines on the y axis, the raw encoder beside the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likewise.disk import path_aside
from likewise.errors import MissingExtraError
from likewise.evaluation.crosslingual.language_pairs import PairScores
from likewise.evaluation.crosslingual.spread import EDGES, Spread, measure_spread, pool
from likewise.evaluation.crosslingual.views import MODEL, RAW
from likewise.records import Array

INK, ACCENT, LINES = "#1b4965", "#c8553d", "#d9dee2"
TITLES = {RAW: "raw encoder", MODEL: "model"}
_COLUMNS, _ROWS = 20, 60


def draw_spread(scores: PairScores, path: Path, *, replace: bool = True) -> None:
    """Write the plot, with one panel per view. The format follows the file's ending (.svg, .png, .pdf)."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    mpl.use("agg")
    from matplotlib import pyplot as plt

    gold, by_view = pool(scores)
    spreads = {spread.view: spread for spread in measure_spread(scores)}
    wide = [part for _ in by_view for part in (4.0, 0.8)]
    lowest = min(float(np.quantile(cosines, 0.001)) for cosines in by_view.values())
    limits = (min(0.0, np.floor(10 * lowest) / 10), 1.0)
    with mpl.rc_context({"svg.hashsalt": "likewise", "font.size": 8.5}):
        figure, axes = plt.subplots(
            1,
            len(wide),
            figsize=(0.7 + 0.82 * sum(wide), 3.9),
            sharey=True,
            width_ratios=wide,
            layout="constrained",
        )
        figure.get_layout_engine().set(w_pad=0.02, wspace=0.01)
        for at, (view, cosines) in enumerate(by_view.items()):
            panel, side = axes[2 * at], axes[2 * at + 1]
            _draw_cloud(panel, gold, cosines, limits)
            _draw_bins(panel, spreads[view])
            _draw_side(side, cosines, limits)
            _style(panel, spreads[view], limits)
        axes[0].set_ylabel("cosine", color=INK)
        marks = [axis.get_legend_handles_labels() for axis in axes[:2]]
        handles, labels = ([mark for marked in marks for mark in marked[part]] for part in (0, 1))
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, labelcolor=INK)
        with path_aside(path, path.suffix, replace=replace) as aside:
            figure.savefig(aside, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _draw_cloud(panel: Any, gold: Array, cosines: Array, limits: tuple[float, float]) -> None:
    """The distribution of cosines at each step of the ratings. Each column is shaded by the shares of its
    own rows.
    """
    from matplotlib.colors import LinearSegmentedColormap

    across, upwards = np.linspace(EDGES[0], EDGES[-1], _COLUMNS + 1), np.linspace(*limits, _ROWS + 1)
    counts, _, _ = np.histogram2d(gold, cosines, bins=(across, upwards))
    rows = counts.sum(axis=1, keepdims=True)
    # Columns sum to 1; the square root keeps thin tails visible.
    share = np.sqrt(counts / np.maximum(rows, 1)).T
    shades = LinearSegmentedColormap.from_list("ink", ["#ffffff", "#9fb8c8", INK])
    mesh = panel.pcolormesh(across, upwards, np.ma.masked_equal(share, 0), cmap=shades, vmin=0, zorder=1)
    # As vectors the cells would show seams between them.
    mesh.set_rasterized(True)
    panel.plot(
        EDGES, np.asarray(EDGES) / EDGES[-1], "--", color="#3d4850", linewidth=1, zorder=3, label="rating / 5"
    )


def _draw_bins(panel: Any, spread: Spread) -> None:
    """Mean and 5–95 % range of each bin of ratings."""
    middle = [(part.low + part.high) / 2 for part in spread.bins]
    means = [part.mean for part in spread.bins]
    below = [part.mean - part.q05 for part in spread.bins]
    above = [part.q95 - part.mean for part in spread.bins]
    panel.errorbar(
        middle,
        means,
        yerr=(below, above),
        color=ACCENT,
        marker="o",
        markersize=4.5,
        linewidth=1.5,
        elinewidth=1.2,
        capsize=3,
        zorder=4,
        label="mean and 5–95 % range per rating step",
    )


def _draw_side(side: Any, cosines: Array, limits: tuple[float, float]) -> None:
    """The distribution of all cosines, whatever their rating."""
    side.hist(
        cosines,
        bins=np.linspace(*limits, _ROWS + 1),
        orientation="horizontal",
        color="#9fb8c8",
        label="all rows",
    )
    side.axis("off")


def _style(panel: Any, spread: Spread, limits: tuple[float, float]) -> None:
    panel.set_title(
        f"{TITLES[spread.view]}: deviation {spread.deviation:.2f}, "
        f"inter-quartile range {spread.quartile_range:.2f}",
        fontsize=9,
        color=INK,
        loc="left",
    )
    panel.set_xlabel("rated similarity", color=INK)
    panel.set_xlim(EDGES[0], EDGES[-1])
    panel.set_ylim(*limits)
    panel.tick_params(axis="both", length=0, labelcolor=INK)
    panel.grid(color=LINES, linewidth=0.6, zorder=0)
    panel.set_axisbelow(True)
    for edge in ("top", "right", "left", "bottom"):
        panel.spines[edge].set_visible(False)
