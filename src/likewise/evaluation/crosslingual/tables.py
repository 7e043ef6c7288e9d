"""The tables of a crosslingual result, with columns for raw vectors and held-out marks if they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.evaluation.crosslingual.language_pairs import AverageResult, PairResult
from likewise.evaluation.crosslingual.probes import ProbeResult
from likewise.evaluation.crosslingual.retrieval import RetrievalAverage, RetrievalResult
from likewise.evaluation.crosslingual.spread import Spread
from likewise.evaluation.crosslingual.views import LANGUAGE, MODEL, RAW
from likewise.evaluation.intervals import Interval
from likewise.evaluation.tables import TextTable

if TYPE_CHECKING:
    from likewise.evaluation.crosslingual.measuring import CrosslingualResult

INTERVAL = "95 % interval"
VIEW_NAMES = {RAW: "raw", MODEL: "model", LANGUAGE: "language vector"}


def tables(result: CrosslingualResult) -> list[TextTable]:
    """All tables that the result has rows for: a header and rows of cells each."""
    made = [pair_table(result.pairs)]
    if result.averages:
        made.append(average_table(result.averages))
    if result.retrieval:
        made.append(retrieval_table(result.retrieval, result.retrieval_averages))
    if result.probes:
        made.append(probe_table(result.probes))
    if result.meaning is not None:
        average = result.meaning.average
        cells = ("average over pairs", _shown(average.value), _range(average))
        made.append((("meaning in the language vector", "pearson", INTERVAL), [cells]))
    return [*made, spread_table(result.spread)]


def pair_table(pairs: Sequence[PairResult]) -> TextTable:
    """One row per language pair."""
    raw = any(pair.raw_pearson is not None for pair in pairs)
    marked = any(pair.held_out_pair is not None or pair.held_out_language is not None for pair in pairs)
    compared = ("raw", "difference", INTERVAL) if raw else ()
    header = ("pair", "pearson", *compared, "spearman", *(("raw",) if raw else ()), "rows")
    rows = []
    for pair in pairs:
        gap = (_shown(pair.raw_pearson), *_difference(pair.difference)) if raw else ()
        rank = (_shown(pair.raw_spearman),) if raw else ()
        cells = (pair.name, _shown(pair.pearson), *gap, _shown(pair.spearman), *rank, f"{pair.n:,}")
        rows.append((*cells, _marks(pair)) if marked else cells)
    return ((*header, "held out") if marked else header), rows


def average_table(averages: Sequence[AverageResult]) -> TextTable:
    """One row per average over language pairs: Pearson, then Spearman."""
    raw = any(average.raw_pearson is not None for average in averages)
    compared = ("raw", "difference", INTERVAL) if raw else (INTERVAL,)
    rows = []
    for found in averages:
        cells = [found.name, str(len(found.pairs))]
        for own, base, gap in (
            (found.pearson, found.raw_pearson, found.pearson_difference),
            (found.spearman, found.raw_spearman, found.spearman_difference),
        ):
            beside = (_shown(base.value), *_difference(gap)) if base is not None else (_range(own),)
            cells += [_shown(own.value), *beside]
        rows.append(tuple(cells))
    return ("average", "pairs", "pearson", *compared, "spearman", *compared), rows


def retrieval_table(results: Sequence[RetrievalResult], averages: Sequence[RetrievalAverage]) -> TextTable:
    """One row per parallel text, then the averages, in per cent."""
    raw = any(result.raw is not None for result in results)
    marked = any(result.held_out_language is not None for result in results)
    compared = ("raw", "difference", INTERVAL) if raw else ()
    header = ("retrieval", "forward", "backward", "mean", *compared, "rows")
    rows = []
    for found in results:
        gap = (_shown(found.raw.mean), _signed(found.difference), "") if found.raw is not None else ()
        ways = (_shown(found.model.forward), _shown(found.model.backward), _shown(found.model.mean))
        cells = (found.name, *ways, *gap, f"{found.n:,}")
        rows.append((*cells, "language" if found.held_out_language else "") if marked else cells)
    for mean in averages:
        gap = (_shown(mean.raw), *_difference(mean.difference)) if raw else ()
        cells = (f"average, {mean.name}", "", "", _shown(mean.model), *gap, "")
        rows.append((*cells, "") if marked else cells)
    return ((*header, "held out") if marked else header), rows


def probe_table(probes: Sequence[ProbeResult]) -> TextTable:
    """One row per view: accuracy with chance, in per cent."""
    header = ("language probe", "accuracy", INTERVAL, "nearest", "chance", "texts")
    return header, [
        (
            VIEW_NAMES[found.view],
            _shown(found.accuracy.value),
            _range(found.accuracy),
            _shown(found.nearest),
            _shown(found.chance),
            f"{found.test:,}",
        )
        for found in probes
    ]


def spread_table(spreads: Sequence[Spread]) -> TextTable:
    """One row per bin of ratings, then deviation and inter-quartile range of all cosines."""
    header = ["rating", "rows"]
    for found in spreads:
        header += [f"{VIEW_NAMES[found.view]} mean", "5 %", "95 %"]
    rows: list[tuple[str, ...]] = []
    for parts in zip(*(found.bins for found in spreads), strict=True):
        cells = [f"{parts[0].low:g}–{parts[0].high:g}", f"{parts[0].n:,}"]
        for part in parts:
            cells += [f"{part.mean:.3f}", f"{part.q05:.3f}", f"{part.q95:.3f}"]
        rows.append(tuple(cells))
    for name in ("deviation", "quartile range"):
        cells = [name, f"{spreads[0].n:,}"]
        for found in spreads:
            number = found.deviation if name == "deviation" else found.quartile_range
            cells += [f"{number:.3f}", "", ""]
        rows.append(tuple(cells))
    return tuple(header), rows


def _marks(pair: PairResult) -> str:
    marks = {"pair": pair.held_out_pair, "language": pair.held_out_language}
    return ", ".join(name for name, marked in marks.items() if marked)


def _difference(gap: Interval | None) -> tuple[str, str]:
    return ("–", "–") if gap is None else (_signed(gap.value), _signed(gap.low) + " to " + _signed(gap.high))


def _range(interval: Interval) -> str:
    return f"{_shown(interval.low)} – {_shown(interval.high)}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"
