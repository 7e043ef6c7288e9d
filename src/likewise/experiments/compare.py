"""Compare settings with a baseline, column by column: the paper's arrows, and Welch's test with Holm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from likewise.errors import EvaluationError
from likewise.evaluation.metrics import get_metric
from likewise.evaluation.significance import arrows, holm, welch
from likewise.evaluation.tables import TextTable, align, markdown, p_value
from likewise.experiments.rows import ResultRow

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Comparison:
    """The baseline minus another setting in one column, over seeds.

    `interval` is Welch's 95 % confidence interval of the difference, `effect` is Hedges' g, `p` is two-sided,
    and `p_holm` is corrected over the columns of this setting. `arrow` is the paper's mark: ↑ if the baseline
    is better, ↓ if it is worse.
    """

    start: str
    setting: str
    column: str
    difference: float
    interval: tuple[float, float]
    effect: float
    p: float
    p_holm: float
    arrow: str


def compare(rows: Sequence[ResultRow], baseline: str) -> list[Comparison]:
    """Compare every row with the baseline from the same start, except rows with one seed or no spread."""
    found: list[Comparison] = []
    bases = {row.start: row for row in rows if row.setting == baseline}
    for row in rows:
        base = bases.get(row.start)
        if base is None or row is base:
            continue
        tested = [
            (column, *pair)
            for column in base.metrics
            if column in row.metrics and (pair := _test(base, row, column))
        ]
        corrected = holm([p for *_, p, _ in tested]) if tested else []
        for (column, interval, effect, p, arrow), p_holm in zip(tested, corrected, strict=True):
            difference = base.mean(column) - row.mean(column)
            found.append(
                Comparison(row.start, row.setting, column, difference, interval, effect, p, p_holm, arrow)
            )
    return found


def _test(
    base: ResultRow, row: ResultRow, column: str
) -> tuple[tuple[float, float], float, float, str] | None:
    from scipy import stats

    ours, theirs = base.numbers[column], row.numbers[column]
    try:
        test = welch(ours, theirs)
    except EvaluationError:
        return None
    bounds = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    better = get_metric(base.metrics[column]).higher_is_better
    arrow = arrows(ours, theirs, alpha=ALPHA, higher_is_better=better)
    return (float(bounds.low), float(bounds.high)), test.effect, test.p, arrow


def paper_table(rows: Sequence[ResultRow], baseline: str) -> TextTable:
    """Means over seeds with arrows, as the paper prints them: .720 for correlations, 86.7 for accuracy."""
    marks = {(c.start, c.setting, c.column): c.arrow for c in compare(rows, baseline)}
    columns = list(dict.fromkeys(column for row in rows for column in row.metrics))
    starts = {row.start for row in rows}
    made = []
    for row in rows:
        name = f"{row.start} {row.setting}".strip() if len(starts) > 1 else row.setting
        cells = [
            _paper_cell(row, column) + marks.get((row.start, row.setting, column), "") for column in columns
        ]
        made.append((name, *cells))
    return ("setting", *columns), made


def _paper_cell(row: ResultRow, column: str) -> str:
    if column not in row.metrics:
        return "–"
    mean = row.mean(column)
    if row.metrics[column] in ("spearman", "pearson"):
        return f"{mean / 100:.3f}".replace("0.", ".", 1)
    return f"{mean:.1f}"


def our_table(comparisons: Sequence[Comparison]) -> TextTable:
    """Every comparison with its difference, interval, effect size and corrected p."""
    header = ("baseline minus", "column", "difference", "95 % interval", "Hedges g", "p", "p (Holm)")
    return header, [
        (
            f"{c.start} {c.setting}".strip(),
            c.column,
            f"{c.difference:+.2f}",
            f"{c.interval[0]:+.2f} – {c.interval[1]:+.2f}",
            f"{c.effect:+.2f}",
            p_value(c.p),
            p_value(c.p_holm),
        )
        for c in comparisons
    ]


def comparison_lines(rows: Sequence[ResultRow], baseline: str, *, form: str = "text") -> list[str]:
    """Both tables, as aligned text or markdown."""
    draw = align if form == "text" else markdown
    comparisons = compare(rows, baseline)
    if not comparisons:
        return []
    gap = [""] if form == "markdown" else []
    return [
        *draw(*paper_table(rows, baseline)),
        *gap,
        f"means over seeds; ↑: {baseline} is better than this setting, ↓: it is worse (two-sided Student's "
        "t-test, α .05)",
        "",
        *draw(*our_table(comparisons)),
        *gap,
        "two-sided Welch's t-test; p values Holm-corrected over the columns of a setting",
    ]
