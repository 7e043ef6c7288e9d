"""Across languages: language pairs, probes, grids, means, the README's table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tabling.baselines import COSINE, FREE, free_ways
from tabling.common import markdown, read


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
    rows.append(["language predicted from the vector by logistic regression, %", *logistic, chance])
    nearest = [f"{probes[view]['nearest']:.1f}" for view in views]
    rows.append(["nearest vector of another sentence has the same language, %", *nearest, chance])
    spread = {entry["view"]: entry for entry in result["spread"]}
    rows.append(
        ["standard deviation of the cosine", *(f"{spread[view]['deviation']:.2f}" for view in views), "–"]
    )
    return markdown(["measure", "frozen encoder", "model", "goal"], rows)


def retrieval_rows(result: dict[str, Any]) -> list[list[str]]:
    """Retrieval before and after: over all languages, and over those without training text."""
    kinds = {"all languages": "languages", "held-out languages": "of them without training text"}
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
        "with a held-out language": "2 of them with Portuguese, not in training, Pearson",
    }
    rows = [
        [label, f"{averages[name]['raw_pearson']['value']:.1f}", f"{averages[name]['pearson']['value']:.1f}"]
        for name, label in labels.items()
    ]
    rows.append(["English alone, Pearson", f"{english['raw_pearson']:.1f}", f"{english['pearson']:.1f}"])
    rows += retrieval_rows(result)
    return markdown(["measure", "multilingual-e5-small", "after `multilingual`"], rows)


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
    raw = [[free_ways("language-pairs", pair, "")[COSINE] for pair in pairs] for pairs in groups.values()]
    rows = [[f"{FREE}: {COSINE}", *(f"{sum(values) / len(values):.2f}" for values in raw), "–"]]
    rows += [
        [
            setting["setting"],
            *(f"{sum(setting['mean'][p] for p in pairs) / len(pairs):.2f}" for pairs in groups.values()),
            str(len(setting["seeds"])),
        ]
        for setting in settings
    ]
    return markdown(["setting", *groups, "seeds"], rows)


# Settings of the grid as the results name them, and as the table does.
GRID_SETTINGS = {
    "raw": f"{FREE}: {COSINE}",
    "S1": "stage 1",
    "S1 + prelayer": "stage 1 with a prelayer",
    "S2": "both stages",
    "S2 + convolution": "both stages, convolution",
    "S2 + sigmoid": "both stages, sigmoid",
    "S2 + Smooth K2 on the sigmoid": "both stages, Smooth K2 on the sigmoid",
}


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
                GRID_SETTINGS[setting["setting"]],
                *(f"{sum(mean[p] for p in pairs) / len(pairs):.2f}" for pairs in groups.values()),
                "–" if setting["setting"] == "raw" else f"{better} of {len(pairs_of)}",
            ]
        )
    return markdown(["encoder", "setting", *groups, "cross-lingual pairs above the raw cosine"], rows)


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
    header = [
        f"{metric.capitalize()}, {shown}" for metric in ("pearson", "spearman") for shown in (COSINE, ways[1])
    ]
    return markdown(["language pairs", *header], rows)
