"""The tables of an affinity report: text for the terminal, Markdown for reports and docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from likewise.evaluation.tables import TextTable, align, markdown
from likewise.experiments.affinity import AVERAGE, AffinityReport, Gain, Number
from likewise.experiments.compare import ALPHA
from likewise.wording import counted

Show = Callable[[Gain | None], str]


def shown_number(number: Number | None) -> str:
    """The mean ± half of the interval."""
    if number is None:
        return "–"
    return f"{number.mean:.2f}{_half(number.interval)}"


def shown_gain(gain: Gain | None) -> str:
    """The mean ± half of the interval; * if the interval excludes zero, † if also p < .05 after Holm."""
    if gain is None:
        return "–"
    return f"{gain.mean:+.2f}{_half(gain.interval)}{'*' if gain.clear else ''}{_sure(gain)}"


def bold_gain(gain: Gain | None) -> str:
    """The same in Markdown, with bold type instead of the star."""
    if gain is None or not gain.clear:
        return shown_gain(gain)
    return f"**{gain.mean:+.2f}{_half(gain.interval)}**{_sure(gain)}"


def matrix_table(report: AffinityReport, show: Show = shown_gain) -> TextTable:
    """The gain of the row's task with the column's; in brackets on the diagonal, the task's number alone."""
    alone = report.together[0].numbers
    rows = []
    for task, gains in zip(report.metrics, report.matrix, strict=True):
        cells = [
            f"({shown_number(alone[task])})" if beside == task else show(gain)
            for beside, gain in zip(report.tasks, gains, strict=True)
        ]
        rows.append((task, *cells))
    return ("gain of row with column", *report.tasks), rows


def pairs_table(report: AffinityReport, show: Show = shown_gain) -> TextTable:
    """The paper's form: the mean gain of two tasks over the baseline; on the diagonal, of one task alone."""
    rows = zip(report.metrics, report.pairs, strict=True)
    return ("", *report.metrics), [(task, *map(show, gains)) for task, gains in rows]


def together_table(report: AffinityReport, show: Show = shown_gain) -> TextTable:
    """The numbers of 1, 2, … tasks in one model, and their mean gains over one task and the baseline."""
    columns = _columns(report)
    levels = report.together
    rows = [_numbers_row(report.baseline, report.baseline_numbers, columns)] if report.baseline else []
    rows += [_numbers_row(_tasks(level.number), level.numbers, columns) for level in levels]
    for title, gains in (
        ("over one task", [(level.number, level.over_one) for level in levels[1:]]),
        (f"over {report.baseline}", [(level.number, level.over_baseline) for level in levels]),
    ):
        rows += [
            (f"{_tasks(number)} {title}", *(show(found[name]) for name in columns))
            for number, found in gains
            if found
        ]
    return ("tasks in one model", *columns), rows


def sets_table(report: AffinityReport, show: Show = shown_gain) -> TextTable:
    """The gains of every set over the baseline or, without one, over the task alone."""
    rows = [
        (" + ".join(one.tasks), *(show(one.gains.get(task)) for task in report.metrics))
        for one in report.sets
        if one.gains
    ]
    return ("learnt together", *report.metrics), rows


def affinity_lines(reports: Sequence[AffinityReport], *, form: str = "text") -> list[str]:
    """All tables of all reports, each with its title."""
    draw, show = (align, shown_gain) if form == "text" else (markdown, bold_gain)
    gap = [""] if form == "markdown" else []
    lines: list[str] = []
    for report in reports:
        for title, (header, rows) in _tables(report, show):
            lines += ["", title, *gap, *draw(header, rows)]
        lines += [*gap, legend(form=form)]
    return lines


def legend(*, form: str = "text") -> str:
    """The explanation of the marks."""
    mark = "*" if form == "text" else "bold"
    return (
        f"differences within a seed, mean over seeds ± half of the 95 % confidence interval (t); {mark}: the "
        f"interval excludes zero; †: paired t-test, p < .05 after Holm over all gains of a kind"
    )


def _tables(report: AffinityReport, show: Show) -> list[tuple[str, TextTable]]:
    where = f"{report.start} {report.setting}".strip()
    metric = ", ".join(dict.fromkeys(report.metrics.values()))
    over = report.baseline or "the task alone"
    found = [
        (
            f"{where}: gains of tasks from each other, {metric} over the task alone",
            matrix_table(report, show),
        ),
        (f"{where}: results by the number of tasks in one model, {metric}", together_table(report, show)),
        (f"{where}: gains in every set of tasks, {metric} over {over}", sets_table(report, show)),
    ]
    if report.pairs:
        title = f"{where}: mean gains of two tasks, on the diagonal of one task, {metric} over {over}"
        found.append((title, pairs_table(report, show)))
    return found


def _columns(report: AffinityReport) -> list[str]:
    return [name for name in (*report.metrics, AVERAGE) if name in report.together[0].numbers]


def _numbers_row(name: str, numbers: Mapping[str, Number], columns: Sequence[str]) -> tuple[str, ...]:
    return (name, *(shown_number(numbers.get(column)) for column in columns))


def _tasks(number: int) -> str:
    return counted(number, "task")


def _half(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ± {(interval[1] - interval[0]) / 2:.2f}"


def _sure(gain: Gain) -> str:
    return "†" if gain.p_holm is not None and gain.p_holm < ALPHA else ""
