"""Phrases: alignment, explanations, phrase injection and what it gives fine-tuned tasks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tabling.baselines import COSINE, FREE, MAJORITY, free_ways
from tabling.common import is_there, markdown, published_rows, read, spread

# Settings as the results name them, and as the tables do; others have the same name in both.
_SHOWN = {
    "as it is": "no injection",
    "taught, seed 1": "injected, seed 1",
    "taught, seed 2": "injected, seed 2",
    "taught, seed 3": "injected, seed 3",
    "half of the links astray": "half of the links wrong",
    "all links astray": "all links wrong",
    "phrases alone, as aligned": "phrases alone, links as aligned",
    "phrases alone, all astray": "phrases alone, all links wrong",
    "as they are": "raw ratings",
    "around their mean": "standardised ratings",
}
# Variants of injection by the names of their checkpoints (benchmarks/inject.py).
_VARIANTS = {
    "both": "sentences and phrases",
    "simple": "simple features",
    "sentences": "sentences alone",
    "phrases": "phrases alone",
    "phrases-simple": "phrases alone, simple",
    "binary": "phrases, two classes",
    "near": "near negatives",
}


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
            best = max(numbers, key=float)
            shown = [f"**{number}**" if number == best else number for number in numbers]
            rows.append([encoder, label, "chunks" if chunks else "words", *shown, tokens])
    return markdown(
        ["encoder", "data", "links of", "ours", "best cosines", "word overlap", "ours, counted by word"], rows
    )


def explaining() -> str:
    """What people made against our explanations, beside what needs no fitted weights and no encoder."""
    result = read("explaining")
    rows = []
    for name, found in result["chunks"].items():
        ways = ("unlinked f1", "unlinked f1, best cosines", "unlinked f1, overlap")
        numbers = [f"{100 * found[way]:.1f}" for way in ways]
        rows.append([f"iSTS {name}: chunks that people left unlinked, F1", *numbers, "–"])
        strengths = [f"{found[way]:.3f}" for way in ("strength spearman", "strength spearman, overlap")]
        label = f"iSTS {name}: strength of a link against people's score, Spearman"
        rows.append([label, strengths[0], "–", strengths[1], "–"])
    for name, found in result["edits"].items():
        rows.append(
            [
                f"edited {name} ({found['edits']}): the least matched phrase holds every new word, %",
                f"{100 * found['covered']:.1f} (at least one: {100 * found['touched']:.1f}; "
                f"length {100 * found['share of the sentence']:.0f} % of the sentence)",
                *"––",
                f"{100 * found['covered by a drawn phrase']:.1f}",
            ]
        )
    edits = list(result["edits"].values())
    total = sum(found["edits"] for found in edits)
    pooled = [
        f"{100 * sum(found['edits'] * found[way] for found in edits) / total:.1f}"
        for way in ("covered", "covered by a drawn phrase")
    ]
    label = f"all {total} edits: the least matched phrase holds every new word, %"
    rows.append([label, pooled[0], *"––", pooled[1]])
    free = [f"{FREE}: {way}" for way in ("mutual best cosines", "common words", "a phrase at random")]
    return markdown(["measure", "ours", *free], rows)


def injection() -> str:
    """How well encoders learn phrases in each variant: accuracies on held-out paraphrases, in per cent."""
    results = read("injection")
    rows = [["–", f"{FREE}: {MAJORITY}", f"{100 * commonest_phrases(results):.1f}", *"–––", "50.0", "–", "–"]]
    for name, found in results.items():
        _, encoder, way = name.split("-", 2)
        # Runs by another seed, two towers and noised links have tables of their own.
        if way.startswith(("both-", "towers")) or "noise" in way:
            continue
        held = found["held_out"]
        columns = (
            "phrases",
            *(f"phrases {c}" for c in ("paraphrase", "random", "in-paraphrase")),
            "sentences",
        )
        numbers = [f"{100 * held[column]:.1f}" if column in held else "–" for column in columns]
        counts = [f"{found['pairs_of']['train']:,}", f"{found['steps']:,}"]
        rows.append([encoder, _VARIANTS[way], *numbers, *counts])
    header = ["encoder", "injection variant", "phrases", "paraphrase", "random", "in-paraphrase", "sentences"]
    return markdown([*header, "training pairs", "steps"], rows)


def commonest_phrases(results: dict[str, Any]) -> float:
    """The share of the commonest of the three classes of held-out phrases.

    The accuracy over all phrases is the mean of those of the classes, weighted by their shares. Several
    variants are judged by the same phrases, so their accuracies give the shares away.
    """
    import numpy as np

    classes = [f"phrases {one}" for one in ("paraphrase", "random", "in-paraphrase")]
    ways = ("both", "simple", "phrases", "phrases-simple")
    held = [results[f"injected-minilm-{way}"]["held_out"] for way in ways]
    matrix = np.array([[one[name] for name in classes] for one in held] + [[1.0, 1.0, 1.0]])
    shares = np.linalg.lstsq(matrix, np.array([*(one["phrases"] for one in held), 1.0]), rcond=None)[0]
    return float(shares.max())


# Columns of the table of fine-tuned tasks: name, experiment without its encoder, column there.
TASKS_AFTER_PHRASES = (
    ("MRPC, 1k pairs", "paraphrase-1k", "MRPC"),
    ("STS-B, 1k pairs", "paraphrase-1k", "STS-B"),
    ("MRPC", "paraphrase", "MRPC"),
    ("STS-B", "paraphrase", "STS-B"),
    ("RTE", "paraphrase", "RTE"),
    ("MNLI", "paraphrase-mnli", "MNLI"),
    ("CoLA, in domain", "paraphrase-single", "CoLA in-domain"),
    ("CoLA, out of domain", "paraphrase-single", "CoLA out-of-domain"),
    ("SST-2", "paraphrase-single", "SST-2"),
)


def injected_tasks() -> str:
    """Fine-tuned tasks by the injection before; the difference to none, * if significant."""
    columns = [column for _, _, column in TASKS_AFTER_PHRASES]
    rows = [["–", f"{FREE}: {MAJORITY}", *(_free(column, MAJORITY) for column in columns)]]
    for encoder in ("minilm", "mpnet"):
        rows.append([encoder, f"{FREE}: {COSINE}", *(_free(column, COSINE, encoder) for column in columns)])
        found = {stem: _if_there(f"{stem}-{encoder}") for _, stem, _ in TASKS_AFTER_PHRASES}
        for setting in found["paraphrase-1k"]["settings"]:
            name = setting["setting"]
            cells = [_with_gain(found[stem], name, column) for _, stem, column in TASKS_AFTER_PHRASES]
            rows.append([encoder, _shown(name), *cells])
    rows += [
        ["paper, BERT-base", _shown(name), *cells] for name, cells in published_rows("paraphrase").items()
    ]
    return markdown(["encoder", "injection", *(name for name, _, _ in TASKS_AFTER_PHRASES)], rows)


def _shown(name: str) -> str:
    """A setting of the results as the tables name it."""
    return _SHOWN.get(name, name)


def _free(column: str, way: str, encoder: str = "") -> str:
    """What a task's column reaches without training, in one way; a dash where that way cannot answer it."""
    ways = free_ways("paraphrase", column, encoder)
    return f"{ways[way]:.1f}" if way in ways else "–"


def _if_there(name: str) -> dict[str, Any]:
    return read(name) if is_there(name) else {"settings": [], "comparisons": []}


def _with_gain(result: dict[str, Any], name: str, column: str) -> str:
    """86.7 (+3.5*): a mean, what it has over the baseline, a star where Holm's p is below .05."""
    means = [s["mean"][column] for s in result["settings"] if s["setting"] == name and column in s["mean"]]
    if not means:
        return "–"
    [compared] = [c for c in result["comparisons"] if (c["setting"], c["column"]) == (name, column)] or [None]
    if compared is None:
        return f"{means[0]:.1f}"
    return f"{means[0]:.1f} ({-compared['difference']:+.1f}{'*' if compared['p_holm'] < 0.05 else ''})"


# Variants of injection against each other: Tables 5 to 7 of Arase & Tsujii 2019.
WAYS_COMPARED = (
    ("sentences and phrases", "sentences alone"),
    ("sentences and phrases", "phrases alone"),
    ("sentences and phrases", "simple features"),
    ("phrases alone", "phrases alone, simple"),
    ("phrases alone", "phrases, two classes"),
    ("near negatives", "sentences and phrases"),
)


def phrases_first() -> str:
    """The README's table: the raw cosine, a joint model of 1,000 pairs, the same after injection."""
    rows = []
    for encoder, shown in (("minilm", "all-MiniLM-L6-v2"), ("mpnet", "all-mpnet-base-v2")):
        means = {s["setting"]: s["mean"] for s in read(f"paraphrase-1k-{encoder}")["settings"]}
        before, after = means["as it is"], means["sentences and phrases"]
        cells = [
            f"{_free(task, COSINE, encoder)} → {before[task]:.1f} → **{after[task]:.1f}**"
            for task in ("MRPC", "STS-B")
        ]
        rows.append([shown, *cells])
    steps = "raw cosine → fine-tuned → fine-tuned after phrase injection"
    always = f"all paraphrases: {_free('MRPC', MAJORITY)}"
    return markdown(["encoder", f"MRPC, F1 ({always}): {steps}", f"STS-B, Pearson × 100: {steps}"], rows)


def joint_targets() -> str:
    """STS-B on 1,000 pairs without injection, by how ratings are learnt; the difference to raw ratings."""
    rows = []
    for encoder in ("minilm", "mpnet"):
        result = _if_there(f"paraphrase-targets-{encoder}")
        rows.append([encoder, f"{FREE}: {COSINE}", _free("STS-B", COSINE, encoder), "–"])
        for setting in result["settings"]:
            name, seeds = setting["setting"], len(setting["numbers"]["STS-B"])
            rows.append([encoder, _shown(name), _with_gain(result, name, "STS-B"), f"{seeds}"])
    return markdown(["encoder", "training targets", "STS-B, 1k pairs, no injection", "seeds"], rows)


def injected_ways() -> str:
    """Variants of injection against each other, 1,000 pairs."""
    tasks = [
        (f"paraphrase-1k-{encoder}", column, f"{column}, {encoder}")
        for encoder in ("minilm", "mpnet")
        for column in ("MRPC", "STS-B")
    ]
    return _against_each_other(WAYS_COMPARED, tasks)


def injected_features() -> str:
    """Elaborate against simple features, all rows of a task: Tables 6 and 7."""
    tasks = [
        (f"{stem}-{encoder}", column, f"{column}, {encoder}")
        for encoder in ("minilm", "mpnet")
        for stem, column in (
            ("paraphrase", "MRPC"),
            ("paraphrase", "STS-B"),
            ("paraphrase", "RTE"),
            ("paraphrase-mnli", "MNLI"),
        )
    ]
    return _against_each_other([("sentences and phrases", "simple features")], tasks)


def _against_each_other(ways: Sequence[tuple[str, str]], tasks: Sequence[tuple[str, str, str]]) -> str:
    """One way minus another, per (experiment, column, title); *: Welch's p, Holm over all, below .05."""
    from likewise.evaluation.significance import holm, welch

    numbers = {
        (name, setting["setting"], column): setting["numbers"][column]
        for name, column, _ in tasks
        for setting in read(name)["settings"]
    }
    pairs = [
        (numbers[name, one, column], numbers[name, other, column])
        for one, other in ways
        for name, column, _ in tasks
    ]
    p = holm([welch(one, other).p for one, other in pairs])
    cells = [
        f"{statistics.mean(one) - statistics.mean(other):+.2f}{'*' if p[place] < 0.05 else ''}"
        for place, (one, other) in enumerate(pairs)
    ]
    rows = [
        [one, other, *cells[number * len(tasks) : (number + 1) * len(tasks)]]
        for number, (one, other) in enumerate(ways)
    ]
    return markdown(["injection variant", "minus", *(title for _, _, title in tasks)], rows)


def injected_checkpoints() -> str:
    """The gain with 1,000 pairs after each of three runs of the same injection."""
    injected, rows = read("injection"), []
    for encoder in ("minilm", "mpnet"):
        result = read(f"paraphrase-checkpoints-{encoder}")
        rows += [[encoder, label, "–", *cells] for label, *cells in _free_rows(encoder)]
        for setting in result["settings"]:
            name = setting["setting"]
            cells = [_with_gain(result, name, column) for column in ("MRPC", "STS-B")]
            held = (
                "–" if name == result["baseline"] else _held_out(injected, encoder, name.rpartition(" ")[2])
            )
            rows.append([encoder, _shown(name), held, *cells])
    header = ["encoder", "injection", "held-out phrases, accuracy in %", "MRPC, 1k pairs", "STS-B, 1k pairs"]
    return markdown(header, rows)


def _free_rows(encoder: str) -> list[list[str]]:
    """MRPC and STS-B without training: every pair a paraphrase, the raw cosine."""
    cells = [[_free(task, way, encoder) for task in ("MRPC", "STS-B")] for way in (MAJORITY, COSINE)]
    return [[f"{FREE}: {way}", *found] for way, found in zip((MAJORITY, COSINE), cells, strict=True)]


def _held_out(injected: dict[str, Any], encoder: str, seed: str) -> str:
    name = f"injected-{encoder}-both" + ("" if seed == "1" else f"-{seed}")
    return f"{100 * injected[name]['held_out']['phrases']:.1f}"


# The injection of each setting of paraphrase-noise-ENCODER.
NOISED = {
    "links as aligned": "both",
    "half of the links astray": "both-noise50",
    "all links astray": "both-noise100",
    "phrases alone, as aligned": "phrases",
    "phrases alone, all astray": "phrases-noise100",
}


def injected_noise() -> str:
    """The gain with 1,000 pairs after injection of links of which a share is wrong."""
    injected, rows = read("injection"), []
    for encoder in ("minilm", "mpnet"):
        result = read(f"paraphrase-noise-{encoder}")
        rows += [[encoder, label, "–", *cells] for label, *cells in _free_rows(encoder)]
        for setting in result["settings"]:
            name = setting["setting"]
            way = NOISED.get(name)
            held = f"{100 * injected[f'injected-{encoder}-{way}']['held_out']['phrases']:.1f}" if way else "–"
            cells = [_with_gain(result, name, column) for column in ("MRPC", "STS-B")]
            rows.append([encoder, _shown(name), held, *cells])
    header = ["encoder", "injection", "held-out phrases, accuracy in %", "MRPC, 1k pairs", "STS-B, 1k pairs"]
    return markdown(header, rows)


# Columns of the table of two towers, those to choose by first.
TOWERS_BY = ("STS-B dev", "headlines train", "images train")
TOWERS_TEST = ("sts7", "headlines test", "images test")


def two_towers() -> str:
    """Cosines of sentences and of phrases, of the raw encoder and after injection into two towers."""
    injected, rows = read("injection"), []
    for name, found in read("two-towers").items():
        held = f"{100 * injected[name]['held_out']['phrases']:.1f}" if name in injected else "–"
        _, _, rest = name.partition("-")
        encoder, _, way = (rest or name).partition("-")
        numbers = [f"{found[column]:.1f}" if column in found else "–" for column in TOWERS_BY + TOWERS_TEST]
        mean = statistics.mean(found[column] for column in TOWERS_BY)
        rows.append([encoder, way or "no injection", held, *numbers[:3], f"{mean:.1f}", *numbers[3:]])
    chosen_by = [*TOWERS_BY, "mean of the three"]
    header = ["encoder", "injection variant", "held-out phrases, accuracy in %"]
    return markdown([*header, *chosen_by, *TOWERS_TEST], rows)


def injected_sizes() -> str:
    """QQP by the number of training pairs: without injection, with it, what that gives."""
    rows = []
    for encoder in ("minilm", "mpnet"):
        result = _if_there(f"paraphrase-qqp-{encoder}")
        for way in (MAJORITY, COSINE):
            rows.append([encoder, f"{FREE}: {way}", _free("QQP", way, encoder), *"––––"])
        rows += [[encoder, c["start"], *_before_and_after(result, c)] for c in result["comparisons"]]
    rows += [["paper, BERT-base", *cells] for cells in published_rows("paraphrase-qqp").values()]
    return markdown(["encoder", "training pairs", *BEFORE_AND_AFTER], rows)


def injected_epochs() -> str:
    """1,000 pairs by how long they are fine-tuned on: without injection, with it, what that gives."""
    rows = []
    for encoder in ("minilm", "mpnet"):
        result = read(f"paraphrase-epochs-{encoder}")
        for column in ("MRPC", "STS-B"):
            compared = [c for c in result["comparisons"] if c["column"] == column]
            for way in (MAJORITY, COSINE):
                if (value := _free(column, way, encoder)) != "–":
                    rows.append([encoder, column, f"{FREE}: {way}", value, *"––––"])
            rows += [[encoder, column, c["start"], *_before_and_after(result, c)] for c in compared]
    return markdown(["encoder", "task", "fine-tuned for", *BEFORE_AND_AFTER], rows)


BEFORE_AND_AFTER = ("no injection", "with injection", "gain", "95 % interval", "p")


def _before_and_after(result: dict[str, Any], compared: dict[str, Any]) -> list[str]:
    """Means from one start without and with phrases, and their difference; p is Holm's over the columns."""
    from likewise.evaluation.tables import p_value

    settings = {(s["start"], s["setting"]): s for s in result["settings"]}
    start, column, interval = compared["start"], compared["column"], compared["interval"]
    return [
        spread(settings[start, result["baseline"]], column),
        spread(settings[start, compared["setting"]], column),
        f"{-compared['difference']:+.2f}",
        f"{-interval[1]:+.2f} to {-interval[0]:+.2f}",
        p_value(compared["p_holm"]),
    ]
