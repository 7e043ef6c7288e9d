"""K folds of training rows, and grid points that are chosen over them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import likewise
from likewise.data.splits import fold_rows, text_groups
from likewise.errors import DataError, RecipeError
from likewise.experiments.plan import ExperimentPlan
from likewise.experiments.schema import read_experiment
from likewise.kinds.context import RunContext
from likewise.recipes.prepared import read_stages
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of
from likewise.records import Record


def labelled(count=103, repeats=17):
    """Texts with an uneven label; some stand there several times, written in other ways."""
    rows = [Record((f"text {n}",), {"mood": "good" if n % 4 else "bad"}, f"x:{n}") for n in range(count)]
    return rows + [Record((f"TEXT, {n}!",), {"mood": "good"}, f"y:{n}") for n in range(repeats)]


def pairs(count=60, shared=1):
    """Rated pairs; each first text stands in `shared` pairs."""
    return [Record((f"a {n // shared}", f"b {n}"), {"similarity": n % 6 + 0.2}) for n in range(count)]


@pytest.mark.parametrize(("records", "count"), [(labelled(), 5), (pairs(), 10), (pairs(shared=3), 4)])
def test_folds_cover_every_row_evenly_and_keep_groups_whole(records, count):
    folds, apart = fold_rows(records, count, seed=3)
    assert apart
    assert set(folds) == set(range(count))
    assert len(folds) == len(records)
    sizes = Counter(folds).values()
    largest = max(map(len, text_groups(records)))
    assert max(sizes) - min(sizes) <= 2 * largest
    for group in text_groups(records):
        assert len({folds[row] for row in group}) == 1


def test_folds_spread_labels_and_sources_evenly():
    records = [Record((f"text {n}",), {"mood": "bad" if n % 10 == 0 else "good"}) for n in range(300)]
    sources = [0] * 100 + [1] * 200
    folds, _ = fold_rows(records, 5, 1, sources)
    kinds = Counter(
        (fold, record.values["mood"], source)
        for fold, record, source in zip(folds, records, sources, strict=True)
    )
    for fold in range(5):
        assert kinds[fold, "bad", 0] == 2
        assert kinds[fold, "good", 0] == 18
        assert kinds[fold, "bad", 1] == 4
        assert kinds[fold, "good", 1] == 36


def test_folds_of_rare_labels_still_have_the_same_size():
    """Forty labels of two rows each: none of them reaches all folds."""
    records = [Record((f"text {n}",), {"topic": f"topic {n % 40}"}) for n in range(80)]
    assert set(Counter(fold_rows(records, 5, 1)[0]).values()) == {16}


def test_folds_depend_on_the_rows_and_the_seed_alone():
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.test_folds import labelled; from likewise.data.splits import fold_rows\n"
        "print(json.dumps(fold_rows(labelled(), 5, 3)[0]))"
    )
    root = str(Path(__file__).resolve().parents[1])
    found = [
        subprocess.run(
            [sys.executable, "-c", script, root],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    here = fold_rows(labelled(), 5, 3)[0]
    assert [json.loads(text) for text in found] == [here, here]
    assert fold_rows(labelled(), 5, 4)[0] != here


def test_rows_that_hang_together_are_dealt_pair_by_pair_and_it_is_said():
    texts = [f"s {n}" for n in range(12)]
    rng = random.Random(1)
    records = [Record(tuple(rng.sample(texts, 2)), {"similarity": 1.0}) for _ in range(80)]
    records += [Record((r.b, r.a), r.values) for r in records[:20]]
    folds, apart = fold_rows(records, 5, seed=1)
    assert not apart
    assert max(Counter(folds).values()) - min(Counter(folds).values()) <= 6
    assert all(folds[n] == folds[80 + n] for n in range(20))


def test_too_few_rows_for_so_many_folds_are_refused():
    with pytest.raises(DataError, match="3 different rows are too few for 5 folds"):
        fold_rows([Record((f"t {n % 3}",), {}) for n in range(30)], 5, 1)


@pytest.fixture
def tasks(tmp_path, tiny_encoder):
    """Two labelled files, a recipe with a dev set of its own, an evaluation file that shares a text."""
    kinds = {"mood": ("sings", "sleeps"), "place": ("park", "kitchen")}
    for name, words in kinds.items():
        rows = [f"the man {n} {words[n % 2]},{words[n % 2]}" for n in range(40)]
        (tmp_path / f"{name}.csv").write_text(f"text,{name}\n" + "\n".join(rows) + "\n")
        (tmp_path / f"{name}-dev.csv").write_text(
            f"text,{name}\n" + "\n".join(rows[:6]).replace("man", "dog") + "\n"
        )
    (tmp_path / "test.csv").write_text("text,mood\nthe man 0 sings,sings\nthe dog 77,sleeps\n")
    relations = "".join(
        f'[relation.{name}]\nkind = "classes"\nlabels = ["{a}", "{b}"]\n' for name, (a, b) in kinds.items()
    )
    entries = ", ".join(f'{{ source = "{tmp_path}/{name}PART.csv"WEIGHT }}' for name in kinds)
    data = entries.replace("PART", "").replace("WEIGHT", ", weight = 2", 1).replace("WEIGHT", "")
    (tmp_path / "tasks.toml").write_text(
        f'name = "tiny"\nmethod = "labels"\nencoder = {{ name = "{tiny_encoder}" }}\n{relations}'
        f'[[stage]]\nkind = "labels"\ndata = [{data}]\n'
        f"dev = [{entries.replace('PART', '-dev').replace('WEIGHT', '')}]\n"
        f'filter_against = ["{tmp_path}/test.csv"]\nmax_steps = 2\n'
    )
    return tmp_path


def stage_of(tasks, **overrides):
    recipe = read_recipe(
        str(tasks / "tasks.toml"), overrides={f"stage.0.{k}": v for k, v in overrides.items()}
    )
    return read_stages(jobs_of(recipe, RunContext()))[0]


def test_a_fold_replaces_the_dev_set_and_leaves_the_rest_to_training(tasks):
    whole = stage_of(tasks)
    assert len(whole.rows.train) == 79  # one text stands in the evaluation file
    seen: list[str] = []
    for number in (1, 2, 3):
        data = stage_of(tasks, fold=[number, 3])
        assert [entry.name for entry in data.dev] == [
            f"mood.csv fold {number} of 3",
            f"place.csv fold {number} of 3",
        ]
        held = [record.texts[0] for entry in data.dev for record in entry.records]
        trained = [record.texts[0] for record in data.rows.train]
        assert not set(held) & set(trained)
        assert sorted(held + trained) == sorted(record.texts[0] for record in whole.rows.train)
        rows = data.rows
        assert len(rows.weights) == len(rows.groups) == len(rows.train)
        assert {(g, w) for g, w in zip(rows.groups, rows.weights, strict=True)} == {(0, 2.0), (1, 1.0)}
        seen += held
    assert sorted(seen) == sorted(record.texts[0] for record in whole.rows.train)


def test_the_dev_files_of_a_recipe_are_not_read_for_a_fold(tasks):
    (tasks / "mood-dev.csv").unlink()
    assert stage_of(tasks, fold=[1, 2]).dev


@pytest.mark.parametrize("fold", [[0, 5], [6, 5], [1, 1], [1], "1/5"])
def test_a_fold_that_is_none_is_refused(tasks, fold):
    with pytest.raises(RecipeError, match=r"stage\.0\.fold"):
        stage_of(tasks, fold=fold)


EXPERIMENT = """
name = "choice"
recipe = "{folder}/tasks.toml"
suite = "{folder}/suite.toml"
sources = ["matcher"]
seeds = [1, 2]
grid_seeds = [1]
folds = {folds}
[grid]
"stage.0.learning_rate" = [1e-4, 1e-3, 1e-2]
[[setting]]
name = "joint"
[[setting]]
name = "single"
each = "relation"
"""


def write_experiment(folder, text=EXPERIMENT, folds=4):
    (folder / "suite.toml").write_text(
        f'name = "mine"\ntexts = 1\n[[task]]\nname = "mood"\nfile = "{folder}/mood-dev.csv"\n'
        'metric = "accuracy"\nrelation = "mood:sings|sleeps"\n'
    )
    (folder / "choice.toml").write_text(text.format(folder=folder, folds=folds))
    return folder / "choice.toml"


def single_tasks(tasks):
    """Each file says which task it labels, so that tasks can be taken apart."""
    text = (tasks / "tasks.toml").read_text()
    for name in ("mood", "place"):
        for part in ("", "-dev"):
            source = f'source = "{tasks}/{name}{part}.csv"'
            text = text.replace(source, f'{source}, columns = {{ {name} = "{name}" }}')
    (tasks / "tasks.toml").write_text(text)


def test_a_grid_over_folds_has_a_cell_per_point_and_fold_and_the_best_mean_wins(tasks):
    single_tasks(tasks)
    plan = ExperimentPlan(read_experiment(write_experiment(tasks)), "cpu", "fp32", None)
    cells = plan.grid_cells()
    assert len(cells) == 3 * 4 + 3 * 4 * 2
    assert len({cell.key for cell in cells}) == len(cells)
    assert not any(cell.measure for cell in cells)
    joint = [cell.recipe["stage"][0] for cell in cells if cell.setting == "joint"]
    assert sorted(stage["fold"] for stage in joint) == sorted([n, 4] for n in (1, 2, 3, 4) for _ in range(3))
    # 1e-3 is best in no fold but second in each; 1e-4 and 1e-2 each win two.
    scores = {1e-4: (0.9, 0.1, 0.9, 0.1), 1e-3: (0.8, 0.8, 0.8, 0.8), 1e-2: (0.1, 0.9, 0.1, 0.9)}

    def read(cell):
        stage = cell.recipe["stage"][0]
        return {"dev": scores[stage["learning_rate"]][stage["fold"][0] - 1]}

    plan.choose(read)
    for runs in plan.final_cells():
        for run in runs:
            for cell in run:
                assert cell.recipe["stage"][0]["learning_rate"] == 1e-3
                assert cell.recipe["stage"][0]["fold"] is None
                assert len(cell.recipe["stage"][0]["dev"]) == (2 if cell.setting == "joint" else 1)
    tried = plan._grid
    assert {entry["folds"] for entry in tried} == {4}
    assert tried[0]["dev"] == list(scores[1e-4])


def test_an_experiment_is_chosen_over_folds_from_end_to_end(tasks):
    text = EXPERIMENT.replace("1e-4, 1e-3, 1e-2", "1e-4, 1e-3").partition('[[setting]]\nname = "single"')[0]
    file = write_experiment(tasks, text.replace("seeds = [1, 2]\n", "seeds = [1]\n", 1), folds=2)
    result = likewise.experiment(file, tasks / "cells", device="cpu")
    assert len(list((tasks / "cells").glob("*.json"))) == 2 * 2 + 1
    assert [len(entry["dev"]) for entry in result.grid] == [2, 2]
    best = max(result.grid, key=lambda entry: sum(entry["dev"]))
    assert result.rows[0].overrides == best["point"]
    assert set(result.rows[0].numbers) == {"mood", "average"}


def test_folds_without_anything_to_choose_are_refused(tasks):
    text = EXPERIMENT.replace('[grid]\n"stage.0.learning_rate" = [1e-4, 1e-3, 1e-2]\n', "")
    with pytest.raises(RecipeError, match="folds: no setting has a grid"):
        read_experiment(write_experiment(tasks, text))
    with pytest.raises(RecipeError, match="folds: input should be greater than or equal to 2"):
        read_experiment(write_experiment(tasks, folds=1))


def test_stages_over_a_frozen_encoder_have_no_folds(tasks):
    text = EXPERIMENT.replace('recipe = "{folder}/tasks.toml"', 'recipe = "multilingual"')
    file = write_experiment(tasks, text.partition('[[setting]]\nname = "single"')[0])
    with pytest.raises(RecipeError, match=r"of kind 'refine', but only .* have folds; remove folds"):
        ExperimentPlan(read_experiment(file), "cpu", "fp32", None).grid_cells()
