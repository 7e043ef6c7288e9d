"""From an annotation file to one model that answers every question in it.

    python examples/several_ratings.py                the bundled sample
    python examples/several_ratings.py mine.csv --relation similarity:0..5 --relation entailment:classes
    python examples/several_ratings.py --compare      also: is a relation better off with a model of its own?

Your file has two texts a row and a column per rating. Cells may be empty: a pair that nobody rated on some
question still teaches the others. An export of Label Studio or Argilla becomes such a file with
`likewise data import EXPORT --output mine.csv`. Nothing is uploaded; everything lies in the output folder.
"""

from __future__ import annotations

import argparse
from importlib import resources
from pathlib import Path

import likewise
from likewise.data.splits import split_file

SAMPLE = str(resources.files("likewise.samples") / "train.csv")


def main() -> None:
    """Split, train, measure, score; and compare if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", default=SAMPLE, help="rated pairs: csv, tsv, jsonl or parquet")
    parser.add_argument("--relation", action="append", help="NAME:lo..hi, NAME:classes, NAME:a|b")
    parser.add_argument("--encoder", default="raw", help="folder or hub id to start from")
    parser.add_argument("--output", default="several-ratings", help="folder for everything that is written")
    parser.add_argument("--compare", action="store_true", help="train every relation alone as well, 3 seeds")
    chosen = parser.parse_args()
    relations = chosen.relation or ["similarity:0..5", "topic:0..4"]
    folder = Path(chosen.output)

    # 1. Keep some rows back. No text stands on both sides, or the test would flatter the model.
    parts = split_file(chosen.file, folder, test=0.2)
    for name, part in parts.items():
        print(f"{name}: {part.rows} rows in {part.file}")

    # 2. One encoder, one head per relation, one step for all of them. Dev rows are split off by themselves.
    model = likewise.train(
        str(parts["train"].file),
        folder / "model",
        relations=relations,
        encoder=chosen.encoder,
        overwrite=True,
        tell=print,
    )

    # 3. How good is it, relation by relation, on pairs it never saw?
    suite = write_suite(folder / "test.toml", parts["test"].file, relations)
    print(likewise.evaluate(model, suite).to_text())

    # 4. Use it: one pass, every relation on its own scale.
    pairs = [
        ("She plays the violin every evening.", "Every evening she practises the cello."),
        ("The bakery opens at six.", "The bakery does not open at six."),
    ]
    for pair, answer in zip(pairs, model.score(pairs).rows(), strict=True):
        print(*pair, sep="\n")
        print("  " + ", ".join(f"{name} {shown(value)}" for name, value in answer.items()))

    # 5. Together or alone? Several seeds of each, tested; the advice is at the end.
    if chosen.compare:
        plan = write_experiment(folder, parts["train"].file, relations, chosen.encoder, suite)
        print(likewise.experiment(plan, folder / "cells", tell=print).to_text())


def write_suite(path: Path, test: Path, relations: list[str]) -> Path:
    """A suite with one task per relation."""
    tasks = [
        f'[[task]]\nname = "{r.partition(":")[0]}"\nfile = "{test.name}"\nrelation = "{r}"\n'
        + ('metric = "accuracy"\n' if is_label(r) else "")
        for r in relations
    ]
    path.write_text("by_name = true\n" + "\n".join(tasks), encoding="utf8")
    return path


def write_experiment(folder: Path, train: Path, relations: list[str], encoder: str, suite: Path) -> Path:
    """Joint against single, three seeds each, with the recipe that step 2 ran."""
    from likewise.api import make_recipe
    from likewise.recipes.own import recipe_toml

    recipe, _ = make_recipe(str(train), relations=relations, encoder=encoder)
    (folder / "recipe.toml").write_text(recipe_toml(recipe), encoding="utf8")
    plan = folder / "joint-or-single.toml"
    plan.write_text(
        f'name = "joint-or-single"\nrecipe = "{folder / "recipe.toml"}"\nsuite = "{suite}"\n'
        "seeds = [1, 2, 3]\n"
        '[[setting]]\nname = "joint"\n[[setting]]\nname = "single"\neach = "relation"\n',
        encoding="utf8",
    )
    return plan


def is_label(relation: str) -> bool:
    """Whether a relation is answered by labels."""
    form = relation.partition(":")[2]
    return form == "classes" or "|" in form


def shown(value: float | str) -> str:
    """A score with two digits, a label as it is."""
    return value if isinstance(value, str) else f"{value:.2f}"


if __name__ == "__main__":
    main()
