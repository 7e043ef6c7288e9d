"""What training keeps, and what answers afterwards."""

from __future__ import annotations

from typing import Any

from tabling.baselines import COSINE, MAJORITY, free_ways, label_of, sts7_average
from tabling.common import markdown, read, spread

_FORMS = ("as shipped", "step 0 left out")
_COLUMNS = {
    "relatedness spearman": "relatedness, Spearman ×100",
    "relatedness mae": "relatedness, mean absolute error",
    "entailment accuracy": "entailment, accuracy in %",
}
# Experiments on all clean rows, by what they train on. The recipes' own heads have files of their own.
_FULL = {
    "kept-recipe": "STS-B + SICK",
    "kept-regression": "STS-B + SICK",
    "kept-nli-then-sts": "NLI, then STS-B + SICK",
    "kept-table3": "NLI, then STS-B + SICK",
}
_STEPS = {"drift": "drift away from the starting model", "scatter": "scatter around it"}
_ACTIVITY = {
    "HAP similarity": "similarity",
    "HAP relatedness": "relatedness",
    "HAP motivational alignment": "motivational alignment",
    "HAP perceived actor congruence": "perceived actor congruence",
}


def draws() -> str:
    """300 rated pairs: the raw encoder and what answers after training, draw by draw."""
    rows = []
    found = read("kept-draws")["draws"]
    for one in found:
        shipped, left_out = (one[form] for form in _FORMS)
        start = shipped["head"] is None
        rows.append(
            [
                str(one["draw"]),
                _number(one["raw"]),
                f"{_number(shipped['answer'])}{' (the starting model was kept)' if start else ''}",
                _number(left_out["answer"]),
                _number(left_out["head"]),
                f"{left_out['mean_answer']:.2f} / {left_out['mean_rating']:.2f}",
            ]
        )
    mean = [
        _mean(one["raw"] for one in found),
        _mean(one["as shipped"]["answer"] for one in found),
        *(_mean(one["step 0 left out"][key] for one in found) for key in ("answer", "head")),
    ]
    rows.append(["**mean**", *(f"**{value:.2f}**" for value in mean), ""])
    header = ["draw", "raw encoder", "answer", "answer, starting model excluded"]
    return markdown([*header, "head alone, starting model excluded", "mean answer / mean rating"], rows)


def full() -> str:
    """Regression on all clean rows: the recipe's head and the paper's, with the starting model or not."""
    rows = [[label_of("minilm", [COSINE]), f"**{sts7_average('minilm'):.2f}**", "–", "–", "–"]]
    for name, title in _FULL.items():
        for setting in read(name)["settings"]:
            dev = ", ".join(f"{100 * value:.2f}" for value in setting["dev"])
            rows.append(
                [
                    f"{title}: {setting['setting'].replace('step 0 left out', 'starting model excluded')}",
                    f"**{spread(setting, 'answer average')}**",
                    spread(setting, "average"),
                    spread(setting, "head average"),
                    dev,
                ]
            )
    return markdown(["setting", "answer, sts7", "cosine, sts7", "head, sts7", "dev, seed by seed"], rows)


def nli() -> str:
    """What the head of the NLI stage sees."""
    names = ("SNLI test accuracy", "MNLI matched accuracy")
    labels = [f"{free_ways('', name, '')[MAJORITY]:.2f}" for name in names]
    # Where the start was kept, dev is that of the encoder without training.
    untrained = next(s for s in read("kept-regression")["settings"] if s["setting"] == "paper's head")["dev"]
    raw = [f"{sts7_average('minilm'):.2f}", "–", *labels, f"{100 * _mean(untrained):.2f}"]
    rows = [[label_of("minilm", [COSINE, MAJORITY]), *raw]]
    for setting in read("kept-nli")["settings"]:
        rows.append(
            [
                setting["setting"].replace("the cosine too", "with the cosine as well"),
                spread(setting, "average"),
                spread(setting, "head average"),
                *(spread(setting, name) for name in names),
                f"{100 * _mean(setting['dev']):.2f}",
            ]
        )
    header = ["head", "cosine, sts7", "head, sts7", *names, "dev: cosine on STS-B and SICK"]
    return markdown(header, rows)


def activity() -> str:
    """Which source answers four relations, against each source alone."""
    [setting] = read("kept-activity")["settings"]
    raw = [free_ways("relations", name, "minilm")[COSINE] for name in _ACTIVITY]
    rows = [[label_of("minilm", [COSINE]), *(_correlation(one) for one in raw), _correlation(_mean(raw))]]
    for prefix, title in (
        ("", "the cosine"),
        ("head ", "the heads"),
        ("mean ", "the mean of both"),
        ("answer ", "**what dev chose, which answers**"),
    ):
        values = [setting["mean"][prefix + name] for name in _ACTIVITY]
        rows.append([title, *(_correlation(value) for value in values), _correlation(_mean(values))])
    return markdown(["answered by", *_ACTIVITY.values(), "mean"], rows)


def selection() -> str:
    """How often a training that changes nothing is called better."""
    cells = read("selection")["cells"]
    rows = [
        [
            _STEPS[one["steps differ by"]],
            f"{one['rows']:,}",
            str(one["steps"]),
            f"{one['plain']:.1f}",
            f"{one['widened']:.1f}",
        ]
        for one in cells
    ]
    header = ["the steps' models", "dev rows", "evaluation steps", "plain interval, % called better"]
    return markdown([*header, "widened interval, % called better"], rows)


def answers() -> str:
    """`evaluate` beside `score`, and what costs nothing."""
    numbers = read("answers")["numbers"]
    rows = []
    for way, found in numbers.items():
        title = f"`{way}`" if way.startswith("evaluate") else way.replace("untouched", "raw")
        rows.append([title, *(_shown(found[name], name) for name in _COLUMNS)])
    return markdown(["", *_COLUMNS.values()], rows)


def _shown(value: float | None, name: str) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if name.endswith("mae") else f"{value:.1f}"


def _correlation(value: float) -> str:
    return f"{value / 100:.3f}".replace("0.", ".", 1)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _mean(values: Any) -> float:
    found = list(values)
    return sum(found) / len(found)
