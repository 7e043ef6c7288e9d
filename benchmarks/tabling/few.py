"""Few labels: eight examples of a label, beside what costs nothing and beside SetFit."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from scipy.stats import t

from tabling.common import markdown, read

TASKS = {"trec6": "TREC, 6 labels", "trec50": "TREC, 50 labels", "reuters46": "Reuters, 46 labels"}
TASKS |= {"sst2": "SST-2"}
SETFIT = "SetFit 1.2.0, 20 iterations"


def runs(**wanted: Any) -> list[dict[str, Any]]:
    """The runs with these values."""
    found = read("few-labels")["runs"]
    return [run for run in found if all(run.get(key) == value for key, value in wanted.items())]


def cells(key: str, method: str, **wanted: Any) -> list[str]:
    """The mean over the draws of each task, with half of the 95 % interval where there are several."""
    found = []
    for task in TASKS:
        values = [run[key] for run in runs(task=task, method=method, **wanted) if key in run]
        places = 3 if key.startswith("ece") else 1
        found.append(spread(values, places) if values else "–")
    return found


def spread(values: list[float], places: int) -> str:
    """A mean, and half of the t interval of 95 % over the draws."""
    if len(values) < 3:
        return f"{mean(values):.{places}f}"
    half = t.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return f"{mean(values):.{places}f} ± {half:.{places}f}"


def gains(method: str, **wanted: Any) -> list[str]:
    """The mean difference of `likewise` from a method on the same draws."""
    found = []
    for task in TASKS:
        ours, theirs = (
            {run["draw"]: run["accuracy"] for run in runs(task=task, method=name, **wanted)}
            for name in ("likewise", method)
        )
        found.append(spread([ours[draw] - theirs[draw] for draw in sorted(ours)], 1))
    return found


LOGISTIC = "logistic regression on the vectors"


def eight() -> str:
    """Accuracy on test with eight examples of a label, the mean of five draws."""
    test = {"measured on": "test", "each": 8, "settings": []}
    rows = [
        ["none: label texts alone", *cells("accuracy", "zero-shot, chosen"), "0"],
        [LOGISTIC, *cells("accuracy", LOGISTIC, **test), "8"],
        [f"{LOGISTIC}, C = 10", *cells("accuracy", "logistic regression, C = 10", **test), "8"],
        ["SetFit, 20 iterations", *cells("accuracy", SETFIT, **test), "8"],
        ["**likewise train FILE**", *cells("accuracy", "likewise", **test), "8"],
        ["difference from SetFit", *gains(SETFIT, **test), ""],
    ]
    return markdown(["training", *TASKS.values(), "examples of a label"], rows)


def more() -> str:
    """Accuracy on test with fifty examples of a label and with all."""
    rows = []
    for each, said, count in ((50, "50", 3), (1_000_000, "all", 2)):
        test = {"measured on": "test", "each": each, "settings": []}
        for method, name in (
            (LOGISTIC, LOGISTIC),
            ("likewise", "`likewise train FILE`"),
        ):
            rows.append([name, *cells("accuracy", method, **test), said, str(count)])
    return markdown(["training", *TASKS.values(), "examples of a label", "draws or seeds"], rows)


def calibration() -> str:
    """The expected calibration error on test before and after 100 texts, and what none_below finds."""
    test = {"measured on": "test", "each": 8, "settings": []}
    rows = [
        ["error, not calibrated", *cells("ece", "likewise", **test)],
        ["error, calibrated", *cells("ece fitted", "likewise", **test)],
        ["accuracy, not calibrated", *cells("accuracy", "likewise", **test)],
        ["accuracy, calibrated", *cells("accuracy fitted", "likewise", **test)],
        [
            "accuracy of logistic regression on the 8 and the 100",
            *cells("accuracy", "logistic regression on 8 and the 100", **test),
        ],
        ["texts of the task that keep their label, %", *cells("kept", "likewise", **test)],
        ["texts of another task found, %", *cells("outsiders found", "likewise", **test)],
    ]
    return markdown(["", *TASKS.values()], rows)


def holding() -> str:
    """How the weight of `hold` was chosen: accuracy on training rows outside the draw."""
    rows = []
    for weight in ("0", "0.1", "0.3"):
        found = cells("accuracy", "likewise", settings=[f"stage.0.hold={weight}"])
        average = mean(float(cell.split()[0]) for cell in found)
        rows.append([weight, f"**{average:.2f}**", *found, "3"])
    return markdown(["`hold`", "average", *TASKS.values(), "draws"], rows)


def templates() -> str:
    """Accuracy of label texts alone with each set of templates, on dev texts and on test."""
    dev = {task: runs(task=task, method="zero-shot, chosen")[0] for task in TASKS}
    names = list(dev["trec6"]["dev"])
    rows = [
        [f"`{name}`", *(f"{dev[task]['dev'][name]:.1f}" for task in TASKS)]
        for name in names
        if " / " not in name
    ]
    default = [name for name in names if name.count(" / ") == 2]
    rows += [
        ["the three default templates", *(f"**{dev[task]['dev'][name]:.1f}**" for task in TASKS)]
        for name in default
    ]
    return markdown(["template", *TASKS.values()], rows)
