"""Similarity regression: experiments on the seven STS tasks, noise, the README's encoders."""

from __future__ import annotations

from typing import Any

from tabling.baselines import COSINE, MAJORITY, STARTS, encoder_of, free_ways, label_of, sts7_average
from tabling.common import is_there, markdown, published_numbers, read, spread

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def shown(setting: str) -> str:
    """A setting of the results as the tables name it, in a cell."""
    return setting.replace("LEAK LET IN", "leak not filtered").replace("|", "\\|")


def experiment(name: str) -> str:
    """Every setting of an experiment: the seven tasks, average with interval, dev, chosen grid point."""
    from likewise.evaluation.tables import p_value

    result = read(name)
    tests = {(t["start"], t["setting"]): t["p"] for t in result["tests"] if t["column"] == "average"}
    raw = encoder_of(name, "")
    cosines = [f"{free_ways('sts7', task, raw)[COSINE]:.2f}" for task in TASKS]
    rows = [[label_of(raw, [COSINE]), *cosines, f"**{sts7_average(raw):.2f}**", "–", "–", "–", "–"]]
    for setting in result["settings"]:
        p = tests.get((setting["start"], setting["setting"]))
        chosen = ", ".join(
            f"{key.rpartition('.')[2]} {value:g}" for key, value in setting["overrides"].items()
        )
        dev = [value for value in setting["dev"] if value is not None]
        rows.append(
            [
                shown(f"{setting['setting']} {setting['start']}".strip()),
                *(f"{setting['mean'][task]:.2f}" for task in TASKS if task in setting["mean"]),
                f"**{spread(setting, 'average')}**",
                "–" if p is None else p_value(p),
                f"{100 * sum(dev) / len(dev):.2f}",
                chosen or "–",
                str(len(setting["seeds"])),
            ]
        )
    against = f"p against {shown(result['baseline'])}"
    return markdown(["setting", *TASKS, "average", against, "dev", "chosen on dev", "seeds"], rows)


def by_start(name: str) -> str:
    """Every start × setting: cosine and head on sts7, further checks, beside what the paper printed."""
    from likewise.evaluation.tables import p_value

    result = read(name)
    published = published_numbers().get(name, {})
    tests = {(t["start"], t["setting"]): t["p"] for t in result["tests"] if t["column"] == "average"}
    settings = result["settings"]
    extra = [column for column in settings[-1]["mean"] if "accuracy" in column]
    papers = [model for model in ("BERT", "RoBERTa") if any(model in row for row in published.values())]
    with_head = any("head average" in setting["mean"] for setting in settings)
    with_memory = name == "regression-infonce"
    header = ["encoder", "setting", "cosine, sts7", f"p against {shown(result['baseline'])}"]
    header += ["head, sts7"] * with_head + extra + ["dev"] + ["most GPU memory, MiB"] * with_memory
    header += [f"paper, {model}" for model in papers]
    rows: list[list[str]] = []
    for setting in settings:
        if not rows or rows[-1][0] != setting["start"]:
            rows.append(free_by_start(setting["start"], header, extra))
        p = tests.get((setting["start"], setting["setting"]))
        row = [setting["start"], shown(setting["setting"]), f"**{spread(setting, 'average')}**"]
        row += ["–" if p is None else p_value(p)]
        row += [mean_of(setting, "head average")] * with_head
        row += [mean_of(setting, column) for column in extra]
        row += [f"{100 * sum(setting['dev']) / len(setting['dev']):.2f}"]
        if with_memory:
            row += [f"{max(setting['peak_memory_mib']):,.0f}"]
        paper = published.get(setting["setting"], {})
        row += [f"{paper[model]:.2f}" if model in paper else "–" for model in papers]
        rows.append(row)
    return markdown(header, rows)


def free_by_start(start: str, header: list[str], extra: list[str]) -> list[str]:
    """The row of a start without training: the raw cosine on sts7, the majority class of further checks."""
    ways = [COSINE, *(MAJORITY for _ in extra)]
    cells = {"encoder": start, "setting": label_of(STARTS[start], ways)}
    cells["cosine, sts7"] = f"**{sts7_average(STARTS[start]):.2f}**"
    cells |= {column: f"{free_ways('', column, '')[MAJORITY]:.2f}" for column in extra}
    return [cells.get(column, "–") for column in header]


def mean_of(setting: dict[str, Any], column: str) -> str:
    """A mean over seeds, or a dash where the setting has no such number."""
    return f"{setting['mean'][column]:.2f}" if column in setting["mean"] else "–"


def noise() -> str:
    """Smooth K2 against Translated ReLU at each share of wrong labels."""
    from likewise.evaluation.significance import holm, welch

    settings = {(s["start"], s["setting"]): s for s in read("regression-noise")["settings"]}
    levels = ["0 %", "10 %", "20 %", "40 %"]
    starts = list(dict.fromkeys(start for start, _ in settings))
    column, check = "average", "SNLI test accuracy"
    pairs = [
        (start, level, settings[start, f"Smooth K2, {level}"], settings[start, f"Translated ReLU, {level}"])
        for start in starts
        for level in levels
    ]
    p = holm([welch(k2["numbers"][column], relu["numbers"][column]).p for _, _, k2, relu in pairs])
    chance = f"{free_ways('', check, '')[MAJORITY]:.1f}"
    rows = []
    for number, (start, level, k2, relu) in enumerate(pairs):
        if level == levels[0]:
            raw = f"{sts7_average(STARTS[start]):.2f}"
            label = label_of(STARTS[start], [COSINE, MAJORITY])
            rows.append([start, label, raw, raw, "–", "–", chance, chance])
        rows.append(
            [
                start,
                level,
                spread(k2, column),
                spread(relu, column),
                f"{k2['mean'][column] - relu['mean'][column]:+.2f}",
                f"{p[number]:.3f}",
                f"{k2['mean'][check]:.1f}",
                f"{relu['mean'][check]:.1f}",
            ]
        )
    header = ["encoder", "wrong labels", "Smooth K2", "Translated ReLU", "difference"]
    header += ["p (Holm over all rows)", "SNLI accuracy, Smooth K2", "SNLI accuracy, Translated ReLU"]
    return markdown(header, rows)


def headline() -> str:
    """The README's table: raw and trained encoders on sts7."""
    rows = []
    for model, raw in (("minilm", "sts7-minilm"), ("mpnet", "sts7-mpnet")):
        encoder = {"minilm": "all-MiniLM-L6-v2", "mpnet": "all-mpnet-base-v2"}[model]
        if is_there(raw):
            values = {task["name"]: task["value"] for task in read(raw)["tasks"]}
            rows.append(
                [
                    encoder,
                    "none: raw cosine",
                    *(f"{values[t]:.1f}" for t in TASKS),
                    f"{read(raw)['average']:.2f}",
                    "–",
                ]
            )
        for name, label in (
            (f"similarity-{model}-strict", "`similarity`, strict filter"),
            (f"similarity-{model}", "`similarity`, filter by pair"),
            (f"similarity-{model}-leak", "`similarity`, leak not filtered"),
        ):
            if is_there(name):
                setting = read(name)["settings"][0]
                cells = [f"{setting['mean'][t]:.1f}" for t in TASKS]
                rows.append([encoder, label, *cells, spread(setting, "average"), str(len(setting["seeds"]))])
    return markdown(["encoder", "training", *TASKS, "average", "seeds"], rows)
