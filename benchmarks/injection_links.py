"""Align the paraphrases of a recipe and write them as files of phrase links, to be trained on elsewhere.

    python benchmarks/injection_links.py runs/injection --part 1/2 &
    python benchmarks/injection_links.py runs/injection --part 2/2

Training machines then need neither the corpora nor a parser: a recipe's data names the files instead.
Leaks are filtered here already, and again by the recipe.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from likewise.data.links import write_links
from likewise.encoders.sentence import load_encoder
from likewise.kinds.context import RunContext
from likewise.phrases.aligner import Aligner
from likewise.phrases.linking import link_pairs
from likewise.phrases.parsing import phraser
from likewise.recipes.prepared import read_stages
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of
from likewise.schema.inject import InjectStage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", default="paraphrase-injection")
    parser.add_argument("--part", default="1/1", help="1/2: every second pair, from the first")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    recipe = read_recipe(given.recipe)
    stage = recipe.stage[0]
    if not isinstance(stage, InjectStage):
        raise SystemExit(f"recipe {given.recipe} teaches no phrases")
    [data] = read_stages(jobs_of(recipe, RunContext(tell=print)))
    print(*data.notes, sep="\n")
    mine = data.rows[part - 1 :: parts]
    started, done = time.monotonic(), 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        print(f"{done:,} of {len(mine):,}, {done / (time.monotonic() - started):.0f} pairs/s", flush=True)

    linked = link_pairs(
        mine,
        phraser(stage.phraser, print),
        Aligner(load_encoder(stage.aligner)),
        by=stage.aligner,
        progress=progress,
    )
    given.folder.mkdir(parents=True, exist_ok=True)
    file = given.folder / f"links-{part}.jsonl.gz"
    print(f"{write_links(file, linked):,} pairs in {file}")


if __name__ == "__main__":
    main()
