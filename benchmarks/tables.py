"""Write the tables of README and docs, which stand between `<!-- table NAME -->` and `<!-- end -->`, and the
numbers in prose that have a marker `<!-- numbers: … -->` (tabling/numbers.py). Tables are made from
benchmarks/results, and those of the keys of a recipe from src/likewise/schema.

python benchmarks/tables.py               rewrite
python benchmarks/tables.py --check       fail if a page is not what the results say
python benchmarks/tables.py --unmarked    list the decimal numbers that no marker accounts for, on the pages
                                          that report results
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tabling import (
    annotation,
    corpora,
    experiments,
    few,
    house,
    kept,
    keys,
    labels,
    leaks,
    long_texts,
    multilingual,
    numbers,
    phrases,
    regression,
    relations,
    reliability,
    shipped,
    simulations,
    speed,
)
from tabling.common import ROOT

MARKED = re.compile(r"(<!-- table ([\w:.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

TABLES: dict[str, Callable[[], str]] = {
    "alignment": phrases.alignment,
    "alignment-speed": speed.alignment_speed,
    "bad-inputs": reliability.bad_inputs,
    "corpora": corpora.corpora,
    "described": relations.described,
    "explaining": phrases.explaining,
    "faults": reliability.faults,
    "few-calibration": few.calibration,
    "few-eight": few.eight,
    "few-hold": few.holding,
    "few-more": few.more,
    "few-templates": few.templates,
    "score-file": reliability.score_file,
    "headline": regression.headline,
    "house": house.house,
    "injected-epochs": phrases.injected_epochs,
    "injected-features": phrases.injected_features,
    "injected-sizes": phrases.injected_sizes,
    "injected-tasks": phrases.injected_tasks,
    "injected-ways": phrases.injected_ways,
    "joint-targets": phrases.joint_targets,
    "kept-activity": kept.activity,
    "kept-answers": kept.answers,
    "kept-draws": kept.draws,
    "kept-full": kept.full,
    "kept-nli": kept.nli,
    "selection": kept.selection,
    "injected-checkpoints": phrases.injected_checkpoints,
    "injected-noise": phrases.injected_noise,
    "two-towers": phrases.two_towers,
    "injection": phrases.injection,
    "label-speed": speed.label_speed,
    "language-means": multilingual.language_means,
    "languages": multilingual.languages,
    "leaks": leaks.splits,
    "leaks-tests": leaks.tests,
    "long-texts": long_texts.windows,
    "next-pairs": annotation.whole,
    "next-pairs-pearson": annotation.pearson,
    "next-pairs-skewed": annotation.skewed,
    "noise": regression.noise,
    "phrases-first": phrases.phrases_first,
    "relations": relations.relations,
    "shipped-challenge": shipped.challenge,
    "shipped-ensembles": shipped.ensembles,
    "shipped-general": shipped.general,
    "shipped-relations": shipped.relations,
    "shipped-sts7": shipped.sts7,
    "speed": speed.speed,
    "stage-speed": speed.stage_speed,
    "start-speed": speed.start_speed,
    "statistics": simulations.statistics,
    "sync-cost": reliability.sync_cost,
    "updates": labels.updates,
    "verify-cost": reliability.verify_cost,
}
FAMILIES: dict[str, Callable[[str], str]] = {
    "advice": relations.advice,
    "affinity": labels.affinity,
    "affinity-pairs": labels.affinity_pairs,
    "affinity-sets": labels.affinity_sets,
    "affinity-together": labels.affinity_together,
    "by-start": regression.by_start,
    "classification": labels.classification,
    "cost": relations.cost,
    "experiment": regression.experiment,
    "keys": keys.keys,
    "language-grid": multilingual.language_grid,
    "language-groups": multilingual.language_groups,
    "language-pairs": multilingual.language_pairs,
    "language-probes": multilingual.language_probes,
    "paper": experiments.paper,
    "search": experiments.search,
    "shipped-card": shipped.card,
    "shipped-phenomena": shipped.phenomena,
    "tests": relations.tests,
}


@cache
def make(name: str) -> str:
    """A table by its marker: a name in TABLES, or one in FAMILIES with an argument (`experiment:RESULT`)."""
    kind, _, argument = name.partition(":")
    return FAMILIES[kind](argument) if argument else TABLES[name]()


def pages() -> list[Path]:
    """All pages with tables or numbers of results."""
    cards = sorted((ROOT / "src" / "likewise" / "shipped").glob("*/README.md"))
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *cards]


def reporting_pages() -> list[Path]:
    """The pages that report results: every decimal number there says where it comes from."""
    docs = ROOT / "docs"
    single = [ROOT / "README.md", docs / "evaluation.md", docs / "models.md", docs / "results.md"]
    return [*single, *sorted((docs / "methods").glob("*.md"))]


def updated(page: str) -> str:
    """The text of a page with tables and numbers as the results say."""
    tables = MARKED.sub(lambda m: m.group(1) + make(m.group(2)) + m.group(3), page)
    return numbers.refreshed(tables, make)


def unmarked() -> list[str]:
    """Decimal numbers in the prose of reporting pages without a marker."""
    return [
        f"{page.relative_to(ROOT)}:{line}"
        for page in reporting_pages()
        for line in numbers.unmarked(page.read_text(encoding="utf8"))
    ]


def main() -> None:
    """Rewrite or check all pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--unmarked", action="store_true")
    options = parser.parse_args()
    if options.unmarked:
        found = unmarked()
        print("\n".join(found))
        sys.exit(1 if found else 0)
    stale = []
    for page in pages():
        old = page.read_text(encoding="utf8")
        try:
            new = updated(old)
        except numbers.NumberError as error:
            sys.exit(f"{page.relative_to(ROOT)}: {error}")
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if not options.check:
                page.write_text(new, encoding="utf8")
    if stale:
        print(("stale: " if options.check else "rewritten: ") + ", ".join(stale))
    if options.check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
