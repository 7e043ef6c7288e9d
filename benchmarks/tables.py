"""Write the tables of README and docs from benchmarks/results: between `<!-- table NAME -->` and `<!-- end
-->`.

python benchmarks/tables.py            rewrite
python benchmarks/tables.py --check    fail if a page is not what the results say
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
MARKED = re.compile(r"(<!-- table ([\w:.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def read(name: str) -> dict[str, Any]:
    """One result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf8"))
    return found


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def spread(setting: dict[str, Any], column: str) -> str:
    """Mean ± half of the 95 % t interval."""
    mean, interval = setting["mean"][column], setting["interval"][column]
    return f"{mean:.2f}" if interval is None else f"{mean:.2f} ± {(interval[1] - interval[0]) / 2:.2f}"


def experiment(name: str) -> str:
    """Every setting of an experiment: the seven tasks, average with interval, dev, chosen grid point."""
    result = read(name)
    tests = {(t["start"], t["setting"]): t["p"] for t in result["tests"] if t["column"] == "average"}
    rows = []
    for setting in result["settings"]:
        p = tests.get((setting["start"], setting["setting"]))
        chosen = ", ".join(
            f"{key.rpartition('.')[2]} {value:g}" for key, value in setting["overrides"].items()
        )
        dev = [value for value in setting["dev"] if value is not None]
        rows.append(
            [
                f"{setting['setting']} {setting['start']}".strip().replace("|", "\\|"),
                *(f"{setting['mean'][task]:.2f}" for task in TASKS if task in setting["mean"]),
                f"**{spread(setting, 'average')}**",
                "–" if p is None else f"{p:.3f}",
                f"{100 * sum(dev) / len(dev):.2f}",
                chosen or "–",
                str(len(setting["seeds"])),
            ]
        )
    return markdown(
        ["setting", *TASKS, "average", f"p against {result['baseline']}", "dev", "chosen on dev", "seeds"],
        rows,
    )


def by_start(name: str) -> str:
    """Every start × setting: cosine and head on sts7, further checks, beside what the paper printed."""
    result = read(name)
    printed = tomllib.loads((ROOT / "benchmarks" / "published.toml").read_text(encoding="utf8"))
    published = printed.get(name, {})
    tests = {(t["start"], t["setting"]): t["p"] for t in result["tests"] if t["column"] == "average"}
    settings = result["settings"]
    extra = [column for column in settings[-1]["mean"] if "accuracy" in column]
    papers = [model for model in ("BERT", "RoBERTa") if any(model in row for row in published.values())]
    with_head = any("head average" in setting["mean"] for setting in settings)
    with_memory = name == "regression-infonce"
    header = ["start", "setting", "cosine, sts7", f"p against {result['baseline']}"]
    header += ["head, sts7"] * with_head + extra + ["dev"] + ["most GPU memory, MiB"] * with_memory
    header += [f"paper, {model}" for model in papers]
    rows = []
    for setting in settings:
        p = tests.get((setting["start"], setting["setting"]))
        row = [setting["start"], setting["setting"].replace("|", "\\|"), f"**{spread(setting, 'average')}**"]
        row += ["–" if p is None else f"{p:.3f}"]
        row += [mean_of(setting, "head average")] * with_head
        row += [mean_of(setting, column) for column in extra]
        row += [f"{100 * sum(setting['dev']) / len(setting['dev']):.2f}"]
        if with_memory:
            row += [f"{max(setting['peak_memory_mib']):,.0f}"]
        shown = published.get(setting["setting"], {})
        row += [f"{shown[model]:.2f}" if model in shown else "–" for model in papers]
        rows.append(row)
    return markdown(header, rows)


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
    rows = [
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
        for number, (start, level, k2, relu) in enumerate(pairs)
    ]
    header = ["start", "wrong labels", "Smooth K2", "Translated ReLU", "difference", "p (Holm over all rows)"]
    return markdown([*header, "SNLI accuracy, Smooth K2", "SNLI accuracy, Translated ReLU"], rows)


def headline() -> str:
    """The README's table: raw and trained encoders on sts7."""
    rows = []
    for model, raw in (("minilm", "sts7-minilm"), ("mpnet", "sts7-mpnet")):
        shown = {"minilm": "all-MiniLM-L6-v2", "mpnet": "all-mpnet-base-v2"}[model]
        if (RESULTS / f"{raw}.json").is_file():
            values = {task["name"]: task["value"] for task in read(raw)["tasks"]}
            rows.append(
                [
                    shown,
                    "as published",
                    *(f"{values[t]:.1f}" for t in TASKS),
                    f"{read(raw)['average']:.2f}",
                    "–",
                ]
            )
        for name, label in (
            (f"similarity-{model}", "`similarity`"),
            (f"similarity-{model}-leak", "the same, leak let in"),
        ):
            if (RESULTS / f"{name}.json").is_file():
                setting = read(name)["settings"][0]
                cells = [f"{setting['mean'][t]:.1f}" for t in TASKS]
                rows.append([shown, label, *cells, spread(setting, "average"), str(len(setting["seeds"]))])
    return markdown(["encoder", "training", *TASKS, "average", "seeds"], rows)


def speed() -> str:
    """Training speed against the peer."""
    result = read("train_speed")
    rows = []
    for precision, ratio in result["ratio"].items():
        dev = {
            side: [r["dev"] for r in result["runs"] if (r["precision"], r["side"]) == (precision, side)]
            for side in ("likewise", "sentence-transformers")
        }
        rows.append(
            [
                precision,
                f"**{ratio['median']:.2f}×**",
                ", ".join(f"{value:.2f}" for value in ratio["each"]),
                *(f"{sum(values) / len(values):.2f}" for values in dev.values()),
            ]
        )
    return markdown(
        ["precision", "pairs/s ratio", "each turn", "dev, Likewise", "dev, sentence-transformers"], rows
    )


def paper(name: str) -> str:
    """An experiment over relations as its paper prints it: means with arrows, the paper's rows below."""
    result = read(name)
    settings = result["settings"]
    columns = list(dict.fromkeys(column for setting in settings for column in setting["metrics"]))
    arrows = {(c["start"], c["setting"], c["column"]): c["arrow"] for c in result["comparisons"]}
    rows = [
        [
            setting["start"] or "–",
            setting["setting"],
            *(
                printed(setting, column) + arrows.get((setting["start"], setting["setting"], column), "")
                for column in columns
            ),
            str(len(setting["seeds"])),
        ]
        for setting in settings
    ]
    for label, cells in published_rows(name).items():
        rows.append(["paper", label, *cells, ""])
    return markdown(["start", "setting", *columns, "seeds"], rows)


def printed(setting: dict[str, Any], column: str) -> str:
    """.720 for a correlation, 86.7 for an accuracy."""
    if column not in setting["metrics"]:
        return "–"
    mean = setting["mean"][column]
    correlation = setting["metrics"][column] in ("spearman", "pearson")
    return f"{mean / 100:.3f}".replace("0.", ".", 1) if correlation else f"{mean:.1f}"


def published_rows(name: str) -> dict[str, list[str]]:
    """Rows of the paper's own table, as it prints them."""
    document = tomllib.loads((ROOT / "benchmarks" / "published.toml").read_text(encoding="utf8"))
    rows: dict[str, list[str]] = document.get("rows", {}).get(name, {})
    return rows


def search(name: str) -> str:
    """Candidates of a recipe: dev chooses, test numbers stand beside it."""
    settings = read(name)["settings"]
    columns = list(settings[0]["metrics"])
    rows = [
        [
            setting["setting"],
            f"**{100 * sum(setting['dev']) / len(setting['dev']):.2f}**",
            *(printed(setting, column) for column in columns),
            str(len(setting["seeds"])),
        ]
        for setting in settings
    ]
    return markdown(["candidate", "dev", *columns, "seeds"], rows)


def tests(name: str) -> str:
    """Every setting against the baseline: difference, interval, effect, corrected p."""
    from likewise.evaluation.tables import p_value

    result = read(name)
    rows = [
        [
            c["start"] or "–",
            c["setting"],
            c["column"],
            f"{c['difference']:+.2f}",
            f"{c['interval'][0]:+.2f} to {c['interval'][1]:+.2f}",
            f"{c['effect']:+.2f}",
            p_value(c["p_holm"]),
        ]
        for c in result["comparisons"]
    ]
    header = ["start", f"{result['baseline']} minus", "relation", "difference", "95 % interval", "Hedges g"]
    return markdown([*header, "p (Holm)"], rows)


def cost(name: str) -> str:
    """What the settings cost against one relation alone."""
    rows = [
        [c["setting"], str(c["models"]), f"{c['steps']:,}", f"{c['seconds']:.0f}", f"**{c['ratio']:.2f}×**"]
        for c in read(name)["costs"]
    ]
    return markdown(["setting", "models", "steps", "seconds", "against one relation alone"], rows)


def language_pairs(name: str) -> str:
    """Pearson and Spearman per language pair, the frozen encoder beside them, with averages."""
    result = read(name)
    rows = []
    for pair in result["pairs"]:
        marks = [word for word in ("pair", "language") if pair[f"held_out_{word}"]]
        numbers = [pair[key] for key in ("raw_pearson", "pearson", "raw_spearman", "spearman")]
        rows.append([pair["name"], ", ".join(marks), *compared(numbers, pair["difference"])])
    for average in result["averages"]:
        numbers = [average[key]["value"] for key in ("raw_pearson", "pearson", "raw_spearman", "spearman")]
        label = f"**{average['name']}, mean of {len(average['pairs'])}**"
        rows.append([label, "", *compared(numbers, average["pearson_difference"])])
    header = ["pair", "held out", "Pearson, frozen encoder", "Pearson", "difference", "95 % interval"]
    return markdown([*header, "Spearman, frozen encoder", "Spearman"], rows)


def compared(numbers: list[float], difference: dict[str, float]) -> list[str]:
    """Cells of a row: raw and trained Pearson, their difference with interval, raw and trained Spearman."""
    raw, trained, *ranks = (f"{value:.2f}" for value in numbers)
    interval = f"{difference['low']:+.2f} to {difference['high']:+.2f}"
    return [raw, trained, f"{difference['value']:+.2f}", interval, *ranks]


def language_probes(name: str) -> str:
    """What else the crosslingual evaluation says: retrieval, probes, spread."""
    result = read(name)
    rows = [[label, *cells, "100"] for label, *cells in retrieval_rows(result)]
    views = ("raw", "model")
    probes = {probe["view"]: probe for probe in result["probes"]}
    chance = f"{probes['model']['chance']:.0f}"
    logistic = [f"{probes[view]['accuracy']['value']:.1f}" for view in views]
    rows.append(["language from the vector, logistic, %", *logistic, chance])
    rows.append(
        ["language of the nearest vector, %", *(f"{probes[v]['nearest']:.1f}" for v in views), chance]
    )
    spread = {entry["view"]: entry for entry in result["spread"]}
    rows.append(["deviation of the cosine", *(f"{spread[view]['deviation']:.2f}" for view in views), "–"])
    return markdown(["", "frozen encoder", "model", "goal"], rows)


def retrieval_rows(result: dict[str, Any]) -> list[list[str]]:
    """Retrieval before and after: over all languages, and over those without training text."""
    kinds = {"all languages": "languages", "held-out languages": "of them never seen"}
    return [
        [
            f"Tatoeba retrieval, {average['languages']} {kinds[average['name']]}, %",
            f"{average['raw']:.1f}",
            f"{average['model']:.1f}",
        ]
        for average in result["retrieval_averages"]
    ]


def languages() -> str:
    """The README's table: across languages, before and after."""
    result = read("crosslingual-multilingual")
    averages = {average["name"]: average for average in result["averages"]}
    english = next(pair for pair in result["pairs"] if pair["name"] == "en-en")
    labels = {
        "cross-lingual": "14 language pairs, Pearson",
        "held-out pairs": "8 of them without a rated pair, Pearson",
        "with a held-out language": "2 of them with Portuguese, never seen, Pearson",
    }
    rows = [
        [label, f"{averages[name]['raw_pearson']['value']:.1f}", f"{averages[name]['pearson']['value']:.1f}"]
        for name, label in labels.items()
    ]
    rows.append(["English alone, Pearson", f"{english['raw_pearson']:.1f}", f"{english['pearson']:.1f}"])
    rows += retrieval_rows(result)
    return markdown(["", "multilingual-e5-small", "after `multilingual`"], rows)


def pair_groups(pairs: Iterable[str]) -> dict[str, list[str]]:
    """Language pairs in groups; held out are those that no training row of the shipped recipes rates."""
    held = ("en-pl", "en-pt", "en-ru", "ru-de", "fr-es", "es-zh", "zh-ru", "pt-pl")
    return {
        "14 cross-lingual pairs": [pair for pair in pairs if pair != "en-en"],
        "8 held-out pairs": list(held),
        "en-en": ["en-en"],
    }


def language_groups(name: str) -> str:
    """An experiment over language pairs, Pearson averaged over groups of them, then over seeds."""
    settings = read(name)["settings"]
    groups = pair_groups(settings[0]["metrics"])
    rows = [
        [
            setting["setting"],
            *(f"{sum(setting['mean'][p] for p in pairs) / len(pairs):.2f}" for pairs in groups.values()),
            str(len(setting["seeds"])),
        ]
        for setting in settings
    ]
    return markdown(["", *groups, "seeds"], rows)


def language_grid(name: str) -> str:
    """The paper's grid, base by base: Pearson averaged over groups of language pairs, then over seeds."""
    settings = read(name)["settings"]
    groups = {
        "6 rated pairs": ("en-de", "en-es", "en-fr", "en-it", "en-nl", "fr-de"),
        "en-pl, en-ru": ("en-pl", "en-ru"),
        "4 held out, without English": ("ru-de", "fr-es", "es-zh", "zh-ru"),
        "en-pt, pt-pl": ("en-pt", "pt-pl"),
        "en-en": ("en-en",),
    }
    raw = {s["start"]: s["mean"] for s in settings if s["setting"] == "raw"}
    rows = []
    for setting in settings:
        mean, before = setting["mean"], raw[setting["start"]]
        pairs_of = [pair for pair in setting["metrics"] if pair != "en-en"]
        better = sum(mean[pair] > before[pair] for pair in pairs_of)
        rows.append(
            [
                setting["start"],
                setting["setting"],
                *(f"{sum(mean[p] for p in pairs) / len(pairs):.2f}" for pairs in groups.values()),
                "–" if setting["setting"] == "raw" else f"{better} of {len(pairs_of)}",
            ]
        )
    return markdown(["base", "", *groups, "cross-lingual pairs above raw"], rows)


def language_means() -> str:
    """The trivial baseline: raw cosines, and those with language means subtracted."""
    result = read("language-means")
    groups = pair_groups(result["pairs"])
    ways = ("raw", "means subtracted")
    keys = [f"{metric} {way}" for metric in ("pearson", "spearman") for way in ways]
    rows = []
    for label, pairs in groups.items():
        means = [sum(result["pairs"][pair][key] for pair in pairs) / len(pairs) for key in keys]
        rows.append([label, *(f"{100 * value:.2f}" for value in means)])
    return markdown(["", *(key.capitalize() for key in keys)], rows)


def label_speed() -> str:
    """Training label models by length against random order: ratios of tokens/s, and what is padding."""
    names = {"lstm": "LSTM", "minilm": "MiniLM"}
    sides = {"random": "random, chunks", "random, one piece": "random, one piece"}
    rows = []
    for name, found in read("label-speed")["encoders"].items():
        share = found["padding"]
        speeds = sorted(run["tokens_per_second"] for run in found["runs"] if run["side"] == "length")
        for side, padding in sides.items():
            ratio = found["length_against"][side]
            rows.append(
                [
                    f"{names[name]}, batch {found['batch']}",
                    padding,
                    f"**{ratio['median']:.2f}×**",
                    ", ".join(f"{value:.2f}" for value in ratio["each"]),
                    f"{speeds[0]:,.0f} to {speeds[-1]:,.0f}",
                    f"{share['length, chunks']:.1%}",
                    f"{share[padding]:.1%}",
                ]
            )
    header = ["", "by length against", "ratio", "each turn", "tokens/s by length"]
    return markdown([*header, "padding by length", "padding at random"], rows)


def stage_speed() -> str:
    """Pairs a second of stage 1 from the cache."""
    result = read("parallel_speed")
    rows = [
        [name, f"**{median:,.0f}**", f"{min(result['runs'][name]):,.0f} to {max(result['runs'][name]):,.0f}"]
        for name, median in result["median"].items()
    ]
    return markdown(["form", "pairs/s", "turns"], rows)


def start_speed() -> str:
    """Seconds from the start of a process to its first training step."""
    found = read("start_speed")["seconds"]
    rows = [
        [kind, f"**{seconds['median']:.1f}**", f"{seconds['least']:.1f} to {seconds['most']:.1f}"]
        for kind, seconds in found.items()
    ]
    return markdown(["", "seconds to the first step", "turns"], rows)


def advice(name: str) -> str:
    """Joint or single for each relation, and why."""
    rows = [
        [a["start"] or "–", a["column"], f"**{a['choice']}**", f"{a['difference']:+.2f}", a["reason"]]
        for a in read(name)["advice"]
    ]
    return markdown(["start", "relation", "choose", "joint − single", "because"], rows)


def affinity(name: str) -> str:
    """The task-by-task gain matrix of every report."""
    from likewise.experiments.affinity_tables import matrix_table

    return affinity_parts(name, matrix_table)


def affinity_pairs(name: str) -> str:
    """Mean gain of two tasks over the baseline, one alone on the diagonal: the paper's last graph."""
    from likewise.experiments.affinity_tables import pairs_table

    return affinity_parts(name, pairs_table)


def affinity_sets(name: str) -> str:
    """The gain of every task in every set of tasks."""
    from likewise.experiments.affinity_tables import sets_table

    return affinity_parts(name, sets_table)


def affinity_together(name: str) -> str:
    """What 1, 2, … tasks in one model reach, and gain over one task and over the baseline."""
    from likewise.experiments.affinity_tables import together_table

    return affinity_parts(name, together_table)


def affinity_parts(name: str, table: Callable[..., Any]) -> str:
    """One table per report of an experiment; each under its name where there are several."""
    from pydantic import TypeAdapter

    from likewise.experiments.affinity import AffinityReport
    from likewise.experiments.affinity_tables import bold_gain

    reports = TypeAdapter(list[AffinityReport]).validate_python(read(name)["affinity"])
    parts = []
    for report in reports:
        header, rows = table(report, bold_gain)
        title = f"{report.start} {report.setting}".strip()
        parts.append((f"**{title}**\n\n" if len(reports) > 1 else "") + markdown(list(header), rows))
    return "\n".join(parts)


def relations() -> str:
    """The README's table: several relations by one model, against the papers' best."""
    best = published_rows("relations-best")
    rows = []
    for family, label in (("relations-activity", "Human Activity Phrases"), ("relations-sick", "SICK")):
        for file in sorted(RESULTS.glob(f"{family}-m*.json")):
            joint = next(s for s in read(file.stem)["settings"] if s["setting"] == "multi-label")
            columns = list(joint["metrics"])
            rows.append(
                [
                    label,
                    ", ".join(column.partition(" ")[2] for column in columns),
                    joint["start"],
                    " / ".join(printed(joint, column) for column in columns),
                    " / ".join(best[family]),
                    str(len(joint["seeds"])),
                ]
            )
    return markdown(["data", "relations", "encoder", "one model", "best published", "seeds"], rows)


def alignment() -> str:
    """F1 of links on test: ours, mutual best cosines, overlap; per encoder."""
    files = {"headlines": "iSTS headlines", "images": "iSTS images", "mtref": "MTRef", "wiki": "Wiki"}
    rows = []
    for encoder, found in read("alignment")["encoders"].items():
        for name, label in files.items():
            ways = found[f"{name} test"]
            chunks = "token f1" in ways["ours"]
            numbers = [f"{100 * ways[way]['f1']:.1f}" for way in ("ours", "best cosines", "overlap")]
            tokens = f"{100 * ways['ours']['token f1']:.1f}" if chunks else ""
            rows.append(
                [encoder, label, "chunks" if chunks else "words", f"**{numbers[0]}**", *numbers[1:], tokens]
            )
    return markdown(
        ["encoder", "data", "links of", "ours", "best cosines", "overlap", "ours, words of chunks"], rows
    )


def alignment_speed() -> str:
    """Pairs aligned a second by one thread."""
    rows = [
        [
            run["encoder"],
            f"{run['words a text']:.0f}",
            f"**{statistics.median(run['pairs a second']):.0f}**",
            f"{run['pairs a second'][0]:.0f} to {run['pairs a second'][-1]:.0f}",
        ]
        for run in read("alignment-speed")["runs"]
    ]
    return markdown(["encoder", "words a text", "pairs a second", "turns"], rows)


def explaining() -> str:
    """What people made against our explanations."""
    result = read("explaining")
    rows = []
    for name, found in result["chunks"].items():
        rows.append([f"iSTS {name}: chunks people left unlinked, F1", f"{100 * found['unlinked f1']:.1f}"])
        rows.append(
            [f"iSTS {name}: strength against people's score, Spearman", f"{found['strength spearman']:.3f}"]
        )
    for name, found in result["edits"].items():
        rows.append(
            [
                f"edited {name} ({found['edits']}): the least matched phrase holds every new word, %",
                f"{100 * found['covered']:.1f} (at least one: {100 * found['touched']:.1f}; "
                f"length {100 * found['share of the sentence']:.0f} % of the sentence)",
            ]
        )
    return markdown(["", ""], rows)


DESCRIBED = (
    "raw cosine",
    "nearest known, chosen on dev",
    "zero",
    "zero, another question",
    "hot",
    "hot, 10% rehearsed",
    "own head",
    "supervised, described",
    "supervised, own heads",
)


def described() -> str:
    """A relation that was left out, then described: Spearman on it, and on the others after the update."""
    left_out = read("relations-described")["encoders"]["minilm"]["left_out"]
    rows = []
    for name in DESCRIBED:
        row = [name]
        for about in left_out.values():
            found = about["settings"][name]
            spread = "" if found["interval"] is None else f" ± {(found['interval'][1] - found['mean']):.3f}"
            kept = about["known"].get({"zero": "known"}.get(name, name))
            row += [f"{found['mean']:.3f}{spread}".replace("0.", "."), "" if kept is None else known(kept)]
        rows.append(row)
    return markdown(["", *(part for name in left_out for part in (f"{name} left out", "the others"))], rows)


def known(values: dict[str, float]) -> str:
    """Spearman of the relations that were there before, in their order."""
    return " / ".join(f"{value:.3f}".replace("0.", ".") for value in values.values())


SCENARIOS = ("cardinality", "domain", "objective")


def classification(ending: str) -> str:
    """All three scenarios of label embedding in one table: accuracy, and the mean difference to the baseline.

    `ending` names the class of encoders: "-lstm", or "-" for sentence encoders.
    """
    results = [read(f"labels-{scenario}{ending.removesuffix('-')}") for scenario in SCENARIOS]
    columns = [list(result["settings"][0]["metrics"]) for result in results]
    by_name = [{setting["setting"]: setting for setting in result["settings"]} for result in results]
    rows = []
    for name in by_name[0]:
        if not all(name in settings for settings in by_name):
            continue
        chosen = [settings[name] for settings in by_name]
        cells = [printed(s, column) for s, names in zip(chosen, columns, strict=True) for column in names]
        gains = [
            setting["mean"][column] - settings[result["baseline"]]["mean"][column]
            for setting, settings, result, names in zip(chosen, by_name, results, columns, strict=True)
            for column in names
        ]
        alone = all(name == result["baseline"] for result in results)
        average = "–" if alone else f"{sum(gains) / len(gains):+.1f}"
        rows.append([name, *cells, average, str(len(chosen[0]["seeds"]))])
    rows += [[f"paper: {label}", *cells, ""] for label, cells in published_rows("labels").items()]
    header = [column for names in columns for column in names]
    return markdown(["setting", *header, "average gain", "seeds"], rows)


def injection() -> str:
    """How well encoders learn phrases in each way: accuracies on held-out paraphrases, in per cent."""
    rows = []
    for name, found in read("injection").items():
        _, encoder, way = name.split("-", 2)
        held = found["held_out"]
        columns = (
            "phrases",
            *(f"phrases {c}" for c in ("paraphrase", "random", "in-paraphrase")),
            "sentences",
        )
        numbers = [f"{100 * held[column]:.1f}" if column in held else "–" for column in columns]
        rows.append([encoder, way, *numbers, f"{found['pairs_of']['train']:,}", f"{found['steps']:,}"])
    header = ["encoder", "taught", "phrases", "paraphrase", "random", "in-paraphrase", "sentences"]
    return markdown([*header, "training pairs", "steps"], rows)


# Columns of the table of fine-tuned tasks: name, experiment without its encoder, column there.
TASKS_AFTER_PHRASES = (
    ("MRPC, 1k pairs", "paraphrase-1k", "MRPC"),
    ("STS-B, 1k pairs", "paraphrase-1k", "STS-B"),
    ("MRPC", "paraphrase", "MRPC"),
    ("STS-B", "paraphrase", "STS-B"),
    ("RTE", "paraphrase", "RTE"),
    ("MNLI", "paraphrase-mnli", "MNLI"),
    ("CoLA, in domain", "paraphrase-single", "CoLA in-domain"),
    ("CoLA, out of it", "paraphrase-single", "CoLA out-of-domain"),
    ("SST-2", "paraphrase-single", "SST-2"),
)


def injected_tasks() -> str:
    """Fine-tuned tasks by what the encoder was taught before; the difference to none, * if significant."""
    rows = []
    for encoder in ("minilm", "mpnet"):
        found = {stem: _if_there(f"{stem}-{encoder}") for _, stem, _ in TASKS_AFTER_PHRASES}
        for setting in found["paraphrase-1k"]["settings"]:
            name = setting["setting"]
            cells = [_with_gain(found[stem], name, column) for _, stem, column in TASKS_AFTER_PHRASES]
            rows.append([encoder, name, *cells])
    rows += [["paper, BERT-base", name, *cells] for name, cells in published_rows("paraphrase").items()]
    return markdown(["encoder", "taught before", *(name for name, _, _ in TASKS_AFTER_PHRASES)], rows)


def _if_there(name: str) -> dict[str, Any]:
    return read(name) if (RESULTS / f"{name}.json").is_file() else {"settings": [], "comparisons": []}


def _with_gain(result: dict[str, Any], name: str, column: str) -> str:
    """86.7 (+3.5*): a mean, what it has over the baseline, a star where Holm's p is below .05."""
    means = [s["mean"][column] for s in result["settings"] if s["setting"] == name and column in s["mean"]]
    if not means:
        return "–"
    [compared] = [c for c in result["comparisons"] if (c["setting"], c["column"]) == (name, column)] or [None]
    if compared is None:
        return f"{means[0]:.1f}"
    return f"{means[0]:.1f} ({-compared['difference']:+.1f}{'*' if compared['p_holm'] < 0.05 else ''})"


# Ways of teaching against each other, METHODS 4.7: Tables 5 to 7.
WAYS_COMPARED = (
    ("sentences and phrases", "sentences alone"),
    ("sentences and phrases", "phrases alone"),
    ("sentences and phrases", "simple features"),
    ("phrases alone", "phrases alone, simple"),
    ("phrases alone", "phrases, two classes"),
)


def injected_ways() -> str:
    """Ways of teaching against each other, 1,000 pairs; * where Welch's p, Holm over all, is below .05."""
    from likewise.evaluation.significance import holm, welch

    tasks = [(encoder, column) for encoder in ("minilm", "mpnet") for column in ("MRPC", "STS-B")]
    numbers = {
        (encoder, setting["setting"], column): setting["numbers"][column]
        for encoder, column in tasks
        for setting in read(f"paraphrase-1k-{encoder}")["settings"]
    }
    pairs = [
        (numbers[encoder, one, column], numbers[encoder, other, column])
        for one, other in WAYS_COMPARED
        for encoder, column in tasks
    ]
    p = holm([welch(one, other).p for one, other in pairs])
    cells = [
        f"{statistics.mean(one) - statistics.mean(other):+.2f}{'*' if p[place] < 0.05 else ''}"
        for place, (one, other) in enumerate(pairs)
    ]
    rows = [
        [one, other, *cells[number * len(tasks) : (number + 1) * len(tasks)]]
        for number, (one, other) in enumerate(WAYS_COMPARED)
    ]
    return markdown(["taught", "minus", *(f"{column}, {encoder}" for encoder, column in tasks)], rows)


def injected_sizes() -> str:
    """QQP by the number of training pairs: as it is, taught phrases before, what that gives."""
    from likewise.evaluation.tables import p_value

    rows = []
    for encoder in ("minilm", "mpnet"):
        result = _if_there(f"paraphrase-qqp-{encoder}")
        means = {(s["start"], s["setting"]): s for s in result["settings"]}
        for compared in result["comparisons"]:
            start, interval = compared["start"], compared["interval"]
            rows.append(
                [
                    encoder,
                    start,
                    spread(means[start, result["baseline"]], "QQP"),
                    spread(means[start, compared["setting"]], "QQP"),
                    f"{-compared['difference']:+.2f}",
                    f"{-interval[1]:+.2f} to {-interval[0]:+.2f}",
                    p_value(compared["p"]),
                ]
            )
    rows += [["paper, BERT-base", *cells] for cells in published_rows("paraphrase-qqp").values()]
    header = ["encoder", "training pairs", "as it is", "taught before", "gain", "95 % interval", "p"]
    return markdown(header, rows)


UPDATED = {"cardinality": "IMDB", "domain": "Kitchen", "objective": "IMDB"}


def updates() -> str:
    """A task that comes later, all scenarios: what the old tasks lose, how near the new one is to cold."""
    rows = []
    for scenario, new in UPDATED.items():
        settings = {one["setting"]: one for one in read(f"labels-{scenario}-update")["settings"]}
        before, cold = settings["before"]["mean"], settings["cold"]
        old = [column for column in settings["before"]["metrics"] if column != new]
        for name in ("hot", "hot, a tenth rehearsed", "zero"):
            found = settings[name]
            change = sum(found["mean"][column] - before[column] for column in old) / len(old)
            steps = 0 if name == "zero" else found["steps"]
            time = 0.0 if name == "zero" else sum(found["fit_seconds"]) / sum(cold["fit_seconds"])
            rows.append(
                [
                    f"{new} after {', '.join(old)}",
                    name,
                    f"{change:+.2f}",
                    f"{found['mean'][new]:.1f}",
                    f"{found['mean'][new] - cold['mean'][new]:+.2f}",
                    f"{steps:,} of {cold['steps']:,}",
                    f"{time:.0%}",
                ]
            )
    header = ["scenario", "update", "old tasks, change", "new task", "against cold", "steps, of cold's"]
    return markdown([*header, "time, of cold's"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "alignment": alignment,
    "alignment-speed": alignment_speed,
    "described": described,
    "explaining": explaining,
    "headline": headline,
    "injected-sizes": injected_sizes,
    "injected-tasks": injected_tasks,
    "injected-ways": injected_ways,
    "injection": injection,
    "label-speed": label_speed,
    "language-means": language_means,
    "languages": languages,
    "noise": noise,
    "relations": relations,
    "speed": speed,
    "stage-speed": stage_speed,
    "start-speed": start_speed,
    "updates": updates,
}
FAMILIES: dict[str, Callable[[str], str]] = {
    "advice": advice,
    "affinity": affinity,
    "affinity-pairs": affinity_pairs,
    "affinity-sets": affinity_sets,
    "affinity-together": affinity_together,
    "by-start": by_start,
    "classification": classification,
    "cost": cost,
    "experiment": experiment,
    "language-grid": language_grid,
    "language-groups": language_groups,
    "language-pairs": language_pairs,
    "language-probes": language_probes,
    "paper": paper,
    "search": search,
    "tests": tests,
}


def make(name: str) -> str:
    """A table by its marker: a name of ours, or `experiment:RESULT`, `by-start:RESULT`."""
    kind, _, argument = name.partition(":")
    return FAMILIES[kind](argument) if argument else TABLES[name]()


def main() -> None:
    """Rewrite or check all pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = page.read_text(encoding="utf8")
        new = MARKED.sub(lambda m: m.group(1) + make(m.group(2)) + m.group(3), old)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new, encoding="utf8")
    if stale:
        print(("stale: " if check else "rewritten: ") + ", ".join(stale))
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
