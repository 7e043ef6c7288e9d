"""A relation that a model never saw, by its description: Human Activity Phrases without PAC, then without MA.

    python benchmarks/described_relations.py --encoder minilm --seeds 1 2 3 --data-dir corpora
    python benchmarks/described_relations.py --encoder minilm --seeds 1 --epochs 1 --sample 100     a trial

For each relation left out `relations-described` is trained on the other three. Spearman on 1,000 test pairs:

    zero              the relation is described; and as controls: by its name alone, by another question
    hot               50 pairs of it, with and without a tenth of the old pairs
    nearest known     the answers of one of the three as they are, chosen on dev, where the relation is rated
    raw cosine        of the encoder before training
    own head          `relations-activity` on the same 50 pairs: from the encoder, and after the other three
    supervised        all training pairs: by the described head of all four, and by heads of their own

The 50 pairs are drawn by the seed; a tenth of them is dev, too few to choose an epoch by, so the last one is
kept everywhere. A cell is one number of one seed; cells in runs/described are not run again. Trials
(--epochs, --sample) go there too, and never into the results.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

import likewise
from likewise.data import load_corpus, write_json_aside
from likewise.evaluation.correlations import compare_correlations
from likewise.evaluation.intervals import mean_interval
from likewise.evaluation.leakage import filter_overlap
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.experiments.parts import only
from likewise.kinds.context import RunContext
from likewise.predict import Predictor
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import run_recipe
from likewise.schema.pairs import settings_for_few
from likewise.schema.parts import DataSpec
from likewise.schema.recipe import Recipe
from likewise.versions import versions

HERE = Path(__file__).parent
CORPUS = "human_activity_phrases"
RELATIONS = ("sim", "rel", "ma", "pac")
LEFT_OUT = ("pac", "ma")
# Controls of zero: what is left of it if the words say less, and if they ask something else.
NAMES = {"pac": "perceived actor congruence", "ma": "motivational alignment"}
OTHER_QUESTION = "Is the weather better tomorrow than it was today?"
Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class Study:
    """What all cells share."""

    encoder: str
    pairs: int
    rehearse: tuple[float, ...]
    epochs: float | None
    sample: int | None
    device: str | None
    precision: str
    data_dir: Path | None
    work: Path

    @property
    def trial(self) -> bool:
        """Whether it is cut short, so that its numbers mean nothing."""
        return self.epochs is not None or self.sample is not None

    @property
    def context(self) -> RunContext:
        """Where trainings read and compute."""
        return RunContext(self.data_dir, self.device, self.precision)

    def recipe(self, name: str, seed: int) -> Recipe:
        """A shipped recipe with this study's encoder and, in a trial, its cuts."""
        changes: dict[str, Any] = {"seed": seed}
        if self.epochs is not None:
            changes["stage.0.epochs"] = self.epochs
        if self.sample is not None:
            changes["stage.0.data.0.limit"] = self.sample
        return read_recipe(name, encoder=self.encoder, overrides=changes)

    def few(self) -> dict[str, Any]:
        """The optimisation on a few pairs: as `likewise train FILE` has it; the last step is kept."""
        chosen = {**settings_for_few(self.pairs), "select": False}
        return chosen if self.epochs is None else {**chosen, "epochs": self.epochs}

    def key(self, *parts: object) -> str:
        """A name for a cell that changes with all that could change its numbers."""
        recipes = [
            read_recipe(name, encoder=self.encoder).model_dump(mode="json", exclude_defaults=True)
            for name in ("relations-described", "relations-activity")
        ]
        said = [self.pairs, self.epochs, self.sample, self.precision, recipes, NAMES, OTHER_QUESTION]
        digest = hashlib.sha256(json.dumps([parts, said], sort_keys=True).encode()).hexdigest()[:10]
        stem = "-".join(str(part) for part in (Path(self.encoder).name, *parts))
        return "".join(c if c.isalnum() or c in ".-" else "-" for c in stem) + f"-{digest}"

    def cell(self, make: Callable[[], Mapping[str, Any]], *parts: object) -> dict[str, Any]:
        """A cell's document: as it lies there, or made now and written when it is whole."""
        file = self.work / f"{self.key(*parts)}.json"
        if not file.is_file():
            started = time.monotonic()
            document = {**make(), "versions": versions(), "seconds": time.monotonic() - started}
            write_json_aside(file, document)
            print(f"{' '.join(map(str, parts))}: {_shown(document['numbers'])}", flush=True)
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf8"))
        return found


def measure(
    study: Study,
    predictor: Predictor,
    asked: Mapping[str, tuple[str, str]],
    *,
    split: str = "test",
    source: str = "head",
) -> dict[str, Any]:
    """Spearman and predictions; `asked` names what is measured: (the relation rated, the one answered)."""
    tasks = tuple(
        Task(name, CORPUS, split, relation=rated, asks=answered, metric="spearman")
        for name, (rated, answered) in asked.items()
    )
    result = likewise.evaluate(
        predictor,
        Suite(f"described-{split}", tasks),
        source=source,
        data_dir=study.data_dir,
        keep_predictions=True,
        log=split == "test",
    )
    predicted = {
        name: [round(float(x), 5) for x in kept.predicted] for name, kept in result.predictions.items()
    }
    return {"numbers": {task.name: task.value / 100 for task in result.tasks}, "predicted": predicted}


def themselves(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Each relation measured by its own answers."""
    return {name: (name, name) for name in names}


def raw_cosine(study: Study) -> dict[str, Any]:
    """The encoder as it is, against all four."""
    predictor = likewise.load(study.encoder, device=study.device, precision=study.precision)
    return measure(study, predictor, themselves(RELATIONS), source="cosine")


def supervised(study: Study, recipe: str, seed: int) -> dict[str, Any]:
    """All four relations on all training pairs."""
    found = run_recipe(study.recipe(recipe, seed), None, context=study.context)
    return measure(study, found.predictor, themselves(RELATIONS))


class LeftOut:
    """The cells of one relation and seed; the model of the other three is trained when it is needed."""

    def __init__(self, study: Study, relation: str, seed: int) -> None:
        self.study, self.relation, self.seed = study, relation, seed
        self.known = [name for name in RELATIONS if name != relation]
        self.recipe = study.recipe("relations-described", seed)
        self.place = study.work / study.key(relation, "model", seed)

    def base(self) -> Path:
        """The folder of the model that knows three relations."""
        if not self.place.exists():
            run_recipe(only(self.recipe, self.known), self.place, context=self.study.context, overwrite=True)
        return self.place

    def known_answers(self) -> dict[str, Any]:
        """What the three are worth by themselves, and as answers to the fourth question, on dev and test."""
        predictor = likewise.load(self.base(), device=self.study.device, precision=self.study.precision)
        reused = {f"{name} as it is": (self.relation, name) for name in self.known}
        dev = measure(self.study, predictor, reused, split="dev")
        test = measure(self.study, predictor, {**themselves(self.known), **reused})
        return {**test, "dev": dev["numbers"]}

    def zero(self) -> dict[str, Any]:
        """The fourth question in words: as the recipe says it, by its name, and another question instead."""
        words = {
            "zero": self.recipe.relation[self.relation].description,
            "zero, name alone": NAMES[self.relation],
            "zero, another question": OTHER_QUESTION,
        }
        found: dict[str, Any] = {"numbers": {}, "predicted": {}, "said": words}
        for name, said in words.items():
            predictor = self._updated(mode="zero", describe=said).model
            measured = measure(self.study, predictor, {name: (self.relation, self.relation)})
            for part in ("numbers", "predicted"):
                found[part] |= measured[part]
        return found

    def hot(self, rehearse: float) -> dict[str, Any]:
        """The fourth relation learnt from a few pairs; the other three before and after."""
        said = self.recipe.relation[self.relation].description
        with self._few_pairs() as file:
            report = self._updated(
                mode="hot", describe=said, data=file, rehearse=rehearse, overrides=self.study.few()
            )
        return measure(self.study, report.model, themselves([*self.known, self.relation]))

    def own_head(self, *, after_others: bool) -> dict[str, Any]:
        """A head of its own on the same pairs: over the encoder, or over one that learnt the other three."""
        recipe = self.study.recipe("relations-activity", self.seed)
        with self._few_pairs() as file:
            data = {"data": (DataSpec(source=str(file)),), "dev": ()}
            alone = only(recipe, [self.relation]).stage[0].model_copy(update={**data, **self.study.few()})
            first = only(recipe, self.known).stage if after_others else ()
            found = run_recipe(
                recipe.model_copy(update={"stage": (*first, alone)}), None, context=self.study.context
            )
        return measure(self.study, found.predictor, themselves([self.relation]))

    def drop_model(self) -> None:
        """Remove the folder of the three."""
        shutil.rmtree(self.place, ignore_errors=True)

    def _updated(self, **options: Any) -> Any:
        spec = self.recipe.relation[self.relation]
        with tempfile.TemporaryDirectory(prefix="described-") as folder:
            return likewise.update(
                self.base(),
                Path(folder) / "model",
                task=self.relation,
                scale=f"{spec.lo:g}..{spec.hi:g}",
                device=self.study.device,
                precision=self.study.precision,
                data_dir=self.study.data_dir,
                **options,
            )

    @contextmanager
    def _few_pairs(self) -> Iterator[Path]:
        """A file of the drawn pairs, there for as long as the block lasts."""
        train, test = (load_corpus(CORPUS, part, data_dir=self.study.data_dir) for part in ("train", "test"))
        clean, _ = filter_overlap(train, {"test": test})
        drawn = random.Random(f"{self.seed}:{self.relation}").sample(clean, self.study.pairs)
        with tempfile.TemporaryDirectory(prefix="described-pairs-") as folder:
            file = Path(folder) / "few.csv"
            with file.open("w", newline="", encoding="utf8") as handle:
                writer = csv.writer(handle)
                writer.writerow(["text_a", "text_b", self.relation])
                writer.writerows((pair.a, pair.b, pair.values[self.relation]) for pair in drawn)
            yield file


def run_left_out(study: Study, relation: str, seed: int, *, keep: bool) -> dict[str, dict[str, Any]]:
    """All cells of one relation and seed, by setting."""
    part = LeftOut(study, relation, seed)
    found = {
        "known": study.cell(part.known_answers, relation, "known", seed),
        "zero": study.cell(part.zero, relation, "zero", seed),
    }
    for share in study.rehearse:
        name = f"hot, {share:.0%} rehearsed" if share else "hot"
        found[name] = study.cell(partial(part.hot, share), relation, "hot", share, seed)
    for name, after in (("own head", False), ("own head after the others", True)):
        found[name] = study.cell(partial(part.own_head, after_others=after), relation, name, seed)
    if not keep:
        part.drop_model()
    return found


def run_study(study: Study, seeds: Sequence[int], *, keep: bool) -> dict[str, Any]:
    """All cells, and the table of them."""
    cosine = study.cell(partial(raw_cosine, study), "raw cosine")
    whole = {
        name: [study.cell(partial(supervised, study, recipe, seed), recipe, seed) for seed in seeds]
        for name, recipe in (("described", "relations-described"), ("own heads", "relations-activity"))
    }
    relations = {}
    for relation in LEFT_OUT:
        runs = [run_left_out(study, relation, seed, keep=keep) for seed in seeds]
        gold = gold_of(study, relation)
        relations[relation] = {
            "description": runs[0]["zero"]["said"]["zero"],
            "settings": settings_of(relation, runs, cosine, whole),
            "tests": tests_of(relation, runs, cosine, gold),
            "known": known_of(relation, runs),
        }
    return {
        "encoder": study.encoder,
        "seeds": list(seeds),
        "pairs": study.pairs,
        "trial": study.trial,
        "precision": study.precision,
        "versions": cosine["versions"],
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "left_out": relations,
    }


def settings_of(
    relation: str,
    runs: Sequence[Mapping[str, Any]],
    cosine: Mapping[str, Any],
    whole: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Per setting the numbers of all seeds, their mean and its interval."""
    rows: dict[str, list[float]] = {"raw cosine": [cosine["numbers"][relation]]}
    rows["nearest known, chosen on dev"] = [run["known"]["numbers"][nearest(run)] for run in runs]
    for name in [name for name in runs[0]["known"]["numbers"] if name.endswith(" as it is")]:
        rows[name] = [run["known"]["numbers"][name] for run in runs]
    for name in runs[0]["zero"]["numbers"]:
        rows[name] = [run["zero"]["numbers"][name] for run in runs]
    for name in [name for name in runs[0] if name not in ("known", "zero")]:
        rows[name] = [run[name]["numbers"][relation] for run in runs]
    for name, cells in whole.items():
        rows[f"supervised, {name}"] = [cell["numbers"][relation] for cell in cells]
    return {name: {"numbers": values, **_mean(values)} for name, values in rows.items()}


def nearest(run: Mapping[str, Any]) -> str:
    """The known relation whose answers fit the new one best on dev."""
    dev: Numbers = run["known"]["dev"]
    return max(dev, key=lambda name: dev[name])


def tests_of(
    relation: str, runs: Sequence[Mapping[str, Any]], cosine: Mapping[str, Any], gold: Sequence[float]
) -> list[dict[str, Any]]:
    """Zero against the two things one could do without it, seed by seed (Williams, the same 1,000 pairs)."""
    made = []
    for run in runs:
        mine = run["zero"]["predicted"]["zero"]
        others = {
            "raw cosine": cosine["predicted"][relation],
            "nearest known, chosen on dev": run["known"]["predicted"][nearest(run)],
        }
        for name, theirs in others.items():
            test = compare_correlations(gold, mine, theirs, test="williams")
            made.append({"zero minus": name, "difference": test.effect, "p": test.p})
    return made


def known_of(relation: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The three known relations before and after each hot update, means over seeds."""
    names = [name for name in RELATIONS if name != relation]
    stages = ["known", *(name for name in runs[0] if name.startswith("hot"))]
    return {
        stage: {name: _mean([run[stage]["numbers"][name] for run in runs])["mean"] for name in names}
        for stage in stages
    }


def gold_of(study: Study, relation: str) -> list[float]:
    """The ratings of the test pairs."""
    records = load_corpus(CORPUS, "test", data_dir=study.data_dir)
    return [float(value) for r in records if (value := r.values[relation]) is not None]


def _mean(values: Sequence[float]) -> dict[str, Any]:
    if len(values) < 2:
        return {"mean": values[0], "interval": None}
    interval = mean_interval(values)
    return {"mean": interval.value, "interval": [interval.low, interval.high]}


def _shown(numbers: Numbers) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())


def show(found: Mapping[str, Any]) -> None:
    """The table on the terminal."""
    for relation, part in found["left_out"].items():
        print(f"\n{relation} left out: {part['description']}")
        width = max(map(len, part["settings"]))
        for name, row in part["settings"].items():
            print(f"  {name:<{width}}  {row['mean']:.3f}  {[round(value, 3) for value in row['numbers']]}")
        for stage, numbers in part["known"].items():
            print(f"  {'the others, ' + stage:<{width}}  {_shown(numbers)}")


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="minilm", help="folder, name under LIKEWISE_MODELS, hub id")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--pairs", type=int, default=50, help="rated pairs of the new relation")
    parser.add_argument("--rehearse", type=float, nargs="+", default=[0.0, 0.1], help="shares of old pairs")
    parser.add_argument("--epochs", type=float, help="a trial: instead of the recipes'")
    parser.add_argument("--sample", type=int, help="a trial: the first so many training pairs")
    parser.add_argument("--device")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--work", type=Path, default=Path("runs") / "described", help="finished cells")
    parser.add_argument("--output", type=Path, help="benchmarks/results/relations-described.json if left out")
    parser.add_argument("--keep-models", action="store_true", help="keep the models of three relations")
    return parser.parse_args()


def main() -> None:
    """Run what is missing, print the table, write it beside the other encoders'."""
    options = read_options()
    study = Study(
        options.encoder,
        options.pairs,
        tuple(options.rehearse),
        options.epochs,
        options.sample,
        options.device,
        options.precision,
        options.data_dir,
        options.work,
    )
    study.work.mkdir(parents=True, exist_ok=True)
    found = run_study(study, options.seeds, keep=options.keep_models)
    show(found)
    results = study.work / "trial.json" if study.trial else HERE / "results" / "relations-described.json"
    target = options.output or results
    known = json.loads(target.read_text(encoding="utf8")) if target.is_file() else {"encoders": {}}
    known["encoders"][Path(study.encoder).name] = found
    write_json_aside(target, known)
    print(f"\nwritten: {target}")


if __name__ == "__main__":
    main()
