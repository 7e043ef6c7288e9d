"""Measure models that come with Likewise, or any other: one command, each text encoded once per model.

    python benchmarks/shipped.py minilm --output benchmarks/results/shipped-raw.json --baselines
    python benchmarks/shipped.py run-1 run-2 run-3 --seed-label 1 2 3 --name likewise-mini --raw minilm \
        --output benchmarks/results/shipped-mini.json --device cuda
    python benchmarks/shipped.py bge-small e5-small mpnet --ensemble --output teachers.json
    python benchmarks/shipped.py --summary RESULT.json…

A model is anything that `likewise.load` takes. Every part is also a value of --only:

sts7         Spearman ×100 of the seven STS tasks, by the cosine and by the answer to `similarity`
dev          the same on the 849 clean dev rows, which settings and seeds are chosen on
entailment   accuracy on SICK test and SNLI test of models that answer `entailment`
paraphrase   accuracy and F1 on PAWS-Wiki test and MRPC test: the answer to `paraphrase`, and the cosine with
             a threshold that is chosen on dev
relatedness  Spearman and Pearson on SICK test
challenge    the share of the challenge set's items that are in order, by phenomenon
retrieval    English paraphrases of Tatoeba: is the partner the nearest of 9,999 sentences?
zero-shot    TREC (six labels) and SST-2 by label texts
clustering   v-measure of 46 clusters of Reuters test
regression   with --baselines: logistic regression for entailment over the vectors of untrained encoders

With --raw, differences from that encoder have 95 % intervals: those of the seven tasks by `compare_results`,
the others by a paired bootstrap over rows. A result file keeps what is in it, so parts can be measured one by
one; the parts of one file must come from the same versions and device. Corpora are read from --data-dir,
LIKEWISE_DATA or ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shipping.asked import Asked, shown_name
from shipping.challenge import Challenge
from shipping.document import Results, read_entries
from shipping.ensembles import measure_ensembles
from shipping.general import Clustering, Retrieval, ZeroShot
from shipping.labelled import Entailment, Paraphrase
from shipping.parts import Part
from shipping.regression import Regression
from shipping.rows import Rows, find_data
from shipping.similarity import Dev, Relatedness, Sts7
from shipping.summary import numbers, summary_lines

ABOUT_PAIRS: tuple[Part, ...] = (Sts7(), Dev(), Entailment(), Paraphrase(), Relatedness(), Challenge())
ABOUT_VECTORS: tuple[Part, ...] = (Retrieval(), ZeroShot(), Clustering())
PARTS = {part.name: part for part in (*ABOUT_PAIRS, *ABOUT_VECTORS)}
BASELINE = Regression()


def main() -> None:
    """Measure models, or summarise results."""
    parser = make_parser()
    options = parser.parse_args()
    if options.summary:
        print("\n".join(summary_lines(read_entries(options.summary), options.name)))
        return
    if not options.models or options.output is None:
        parser.error("name the models to measure, and the file to write with --output")
    if options.seed_label and len(options.seed_label) != len(options.models):
        parser.error(f"--seed-label has {len(options.seed_label)} labels for {len(options.models)} models")
    if options.ensemble and len(set(options.models)) < 2:
        parser.error("--ensemble needs two models or more")
    if options.name and len(set(options.seed_label or [None])) < len(options.models):
        parser.error("--name gives all models one name, so each needs another --seed-label")
    measure(options)


def make_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", type=named_parts, help="parts, separated by commas")
    parser.add_argument("--raw", help="the untrained encoder that models are compared with; measured too")
    parser.add_argument("--name", help="what all models of this run are called in tables")
    parser.add_argument("--seed-label", nargs="+", help="one for each model")
    parser.add_argument("--baselines", action="store_true", help="logistic regression over raw encoders")
    parser.add_argument("--ensemble", action="store_true", help="also the mean of the models' cosines")
    parser.add_argument("--device")
    parser.add_argument("--token-budget", type=int)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--summary", nargs="+", type=Path, metavar="RESULT")
    return parser


def named_parts(text: str) -> list[str]:
    """Names of parts, in the order in which they are measured."""
    asked = text.split(",")
    if unknown := [name for name in asked if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    return [name for name in PARTS if name in asked]


def measure(options: argparse.Namespace) -> None:
    """Measure every model, the raw encoder first, and write the file after each."""
    rows, results = Rows(find_data(options.data_dir)), Results(options.output)
    parts = wanted_parts(options)
    raw: Asked | None = None
    measured: list[Asked] = []
    for name, seed in in_order(options):
        asked, seconds = opened(name, options)
        if raw is None and not measured:
            results.begin(asked.device())
            results.add_facts({part.name: part.facts(rows) for part in parts})
        is_raw = name == options.raw
        entry = entry_of(asked, parts, rows, None if is_raw else raw, seconds)
        title = shown_name(name) if is_raw or not options.name else options.name
        compared = None if is_raw or options.raw is None else shown_name(options.raw)
        # An encoder without heads may have been trained too: then --raw names another one.
        entry["untrained"] = asked.untrained and (is_raw or options.raw is None)
        results.add_model({"name": title, "model": shown_name(name), "seed": seed, "raw": compared, **entry})
        results.write()
        asked.release()
        raw = asked if is_raw else raw
        measured.append(asked)
    if options.ensemble:
        mine = [asked for asked in measured if asked.name in options.models and asked.outcomes]
        results.add_ensembles(measure_ensembles(mine, [shown_name(asked.name) for asked in mine], rows))
        results.write()
        tell("ensembles", {"parts": results.document["ensembles"]})


def wanted_parts(options: argparse.Namespace) -> list[Part]:
    """The parts that are asked for. A mean of cosines needs the seven tasks and dev, and nothing else."""
    needed = ["sts7", "dev"] if options.ensemble else []
    wanted = {*(options.only or needed or PARTS), *needed}
    return [part for name, part in PARTS.items() if name in wanted] + [BASELINE] * options.baselines


def in_order(options: argparse.Namespace) -> list[tuple[str, str | None]]:
    """The models with their seeds, the raw encoder before all others."""
    seeds = options.seed_label or [None] * len(options.models)
    models = [(name, seed) for name, seed in zip(options.models, seeds, strict=True) if name != options.raw]
    return models if options.raw is None else [(options.raw, None), *models]


def opened(name: str, options: argparse.Namespace) -> tuple[Asked, dict[str, float]]:
    """A loaded model, and how long that took."""
    begun = time.monotonic()
    asked = Asked(name, device=options.device, token_budget=options.token_budget)
    return asked, {"load": time.monotonic() - begun}


def entry_of(
    asked: Asked, parts: Sequence[Part], rows: Rows, raw: Asked | None, seconds: dict[str, float]
) -> dict[str, Any]:
    """All parts of a model. The texts of all of them are encoded first, in one go."""
    begun = time.monotonic()
    mine = [part for part in parts if part is not BASELINE or asked.untrained]
    texts = asked.encode(text for part in mine for text in part.texts(asked, rows))
    seconds["encode"] = time.monotonic() - begun
    found: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for part in mine:
        begun = time.monotonic()
        said = part.measure(asked, rows, raw)
        seconds[part.name] = time.monotonic() - begun
        if isinstance(said, str):
            left_out[part.name] = said
        else:
            found[part.name] = said
        tell(f"{shown_name(asked.name)}, {part.name}, {seconds[part.name]:.1f} s", said)
    rounded = {name: round(value, 2) for name, value in seconds.items()}
    return {**asked.described(), "texts": texts, "parts": found, "left_out": left_out, "seconds": rounded}


def tell(what: str, said: dict[str, Any] | str) -> None:
    """Print the numbers of a part, or why there are none."""
    shown = said if isinstance(said, str) else {" > ".join(p): round(v, 2) for p, v in numbers(said)}
    print(f"{what}: {shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)}", flush=True)


if __name__ == "__main__":
    main()
