"""Jobs that cross from one kind of stage, model or verb to another: each went wrong before the seam."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from safetensors.numpy import load_file

import likewise
from likewise.api import make_recipe
from likewise.data.keys import text_key
from likewise.encoders.cache import clear_cache
from likewise.errors import DataError, RecipeError, UsageError
from likewise.experiments import experiment
from likewise.recipes.reading import read_recipe
from tests.frozen import worlds


@pytest.fixture
def world(tmp_path, tiny_encoder, monkeypatch):
    """The tiny data of the frozen references; recipes name files relative to it."""
    worlds.build(tmp_path, tiny_encoder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    return tmp_path


def write_experiment(recipe: str, **more) -> Path:
    (Path() / "recipe.toml").write_text(tomli_w.dumps(worlds.recipes()[recipe]))
    document = {"name": "small", "recipe": "recipe.toml", "suite": "suite.toml", "seeds": [1], **more}
    document.setdefault("setting", [{"name": "all"}])
    Path("experiment.toml").write_text(tomli_w.dumps(document))
    task = {"name": "dev", "file": str(Path("dev.csv").resolve()), "relation": "similarity:0..5"}
    Path("suite.toml").write_text(tomli_w.dumps({"name": "mine", "task": [task]}))
    return Path("experiment.toml")


def cell_of(folder: Path) -> dict:
    [file] = folder.glob("*.json")
    return json.loads(file.read_text())


@pytest.mark.parametrize("sources", [["head"], ["cosine"]])
def test_an_experiment_files_a_joint_models_answers_under_the_head(world, sources):
    experiment(write_experiment("joint", sources=sources), "cells", device="cpu")
    assert list(cell_of(world / "cells")["results"]) == ["head"]


@pytest.mark.parametrize(
    ("recipe", "key", "value"),
    [
        ("joint", "optimiser", "exact"),
        ("labels", "optimiser", "exact"),
        ("inject", "optimiser", "exact"),
        ("joint", "head_learning_rate", 1e-3),
    ],
)
def test_a_key_that_would_have_no_effect_is_refused_by_name(world, recipe, key, value):
    Path("recipe.toml").write_text(tomli_w.dumps(worlds.recipes()[recipe]))
    with pytest.raises(RecipeError, match=key):
        make_recipe("recipe.toml", overrides={f"stage.0.{key}": value})


def test_clearing_the_cache_leaves_no_text_of_the_users(world, monkeypatch):
    folder = world / "cache"
    (folder / "alignments").mkdir(parents=True)
    (folder / "alignments" / f"{'0a' * 12}.jsonl.gz").write_bytes(b"\x1f\x8btex")
    assert clear_cache(folder) >= 5
    assert not (folder / "alignments").exists()


def test_clearing_a_folder_that_is_not_ours_leaves_what_lies_there(tmp_path):
    mine = tmp_path / "alignments" / "gold-links.jsonl"
    mine.parent.mkdir()
    mine.write_text("years of work")
    assert clear_cache(tmp_path) == 0
    assert mine.read_text() == "years of work"


def stage_of(recipe, number=-1):
    return recipe.stage[number].model_dump(mode="json")


def test_own_labelled_texts_replace_a_label_recipes_data(world):
    recipe, _ = make_recipe("labels-domain", data="moods.csv", encoder="encoder", relations=["mood:classes"])
    assert list(recipe.relation) == ["mood"]
    assert [entry["source"] for entry in stage_of(recipe)["data"]] == ["moods.csv"]
    model = likewise.train(
        "labels-domain",
        data="moods.csv",
        encoder="encoder",
        relations=["mood:classes"],
        overrides={"stage.0.max_steps": 2},
        device="cpu",
    )
    assert set(model.classify(["the child runs"], task="mood").best) <= {"fast", "slow"}


def test_own_ratings_may_be_declared_for_a_shipped_recipe(world):
    recipe, _ = make_recipe("relations-sick", data="pairs.csv", relations=["topic:-2..2"])
    stage = stage_of(recipe)
    assert list(recipe.relation) == ["topic"]
    assert [(o["relation"], o["head"], o["loss"]) for o in stage["objective"]] == [
        ("topic", "distribution", "kl_grid")
    ]


def test_ratings_that_the_table_lacks_are_not_promised(world):
    told = []
    Path("one.csv").write_text("text_a,text_b,score\na dog,a cat,4\nthe man,the dog,1.5\na band,a river,0\n")
    recipe, _ = make_recipe("relations-sick", data="one.csv", tell=told.append)
    assert list(recipe.relation) == ["score"]
    assert [o["relation"] for o in stage_of(recipe)["objective"]] == ["score"]
    assert any("entailment" in line and "one.csv" in line for line in told)


@pytest.fixture
def activity(world):
    rows = ["text_a,text_b,sim,rel,ma,pac"]
    rows += [f"a dog runs {n},a cat sleeps {n},{n % 5},{(n + 1) % 5},{n % 4},{n % 5 - 2}" for n in range(40)]
    Path("hap.csv").write_text("\n".join(rows) + "\n")
    return world


def test_own_ratings_reach_the_last_stage_of_several(activity):
    recipe, _ = make_recipe("relations-infersent", data="hap.csv")
    assert set(recipe.relation) == {"entailment", "sim", "rel", "ma", "pac"}
    assert [entry["source"] for entry in stage_of(recipe)["data"]] == ["hap.csv"]
    assert stage_of(recipe)["dev"] == []
    assert stage_of(recipe)["filter_against"] == []
    assert recipe.evaluation.suite == ""


def test_own_pairs_go_to_the_graded_stage_and_leave_the_pre_training_alone(world):
    recipe, _ = make_recipe("regression-nli-then-sts", data="pairs.csv", relations=["similarity:0..5"])
    assert [entry["source"] for entry in stage_of(recipe, 0)["data"]] == ["snli/train", "mnli/train"]
    assert [entry["source"] for entry in stage_of(recipe, 1)["data"]] == ["pairs.csv"]


def test_own_pairs_go_to_the_refining_stage_of_a_multilingual_recipe(world):
    recipe, _ = make_recipe("multilingual", data="pairs.csv", relations=["similarity:0..5"])
    assert [entry["source"] for entry in stage_of(recipe, 1)["data"]] == ["pairs.csv"]
    assert len(stage_of(recipe, 0)["parallel"]) == 15


def test_a_table_that_no_stage_can_learn_from_says_why_for_each(world):
    with pytest.raises(DataError, match=r"stage\.0.*stage\.1") as caught:
        make_recipe("multilingual", data="moods.csv")
    assert "moods.csv" in str(caught.value)


@pytest.mark.parametrize(
    "recipe",
    [
        *("pairs", "inject", "joint-labels"),
        "joint",
        "refine",
    ],
)
def test_a_baseline_cell_measures_the_encoder_as_it_is(world, recipe):
    file = write_experiment(recipe, sources=["cosine"], setting=[{"name": "raw", "stages": 0}])
    if recipe == "labels":
        task = {
            "name": "moods",
            "file": str(Path("moods.csv").resolve()),
            "relation": "mood:fast|slow",
            "texts": 1,
        }
        Path("suite.toml").write_text(tomli_w.dumps({"name": "mine", "task": [task]}))
    experiment(file, "cells", device="cpu")
    [source] = cell_of(world / "cells")["results"]
    assert source == ("matcher" if recipe == "labels" else "cosine")


def test_one_relation_alone_keeps_the_relation_that_a_refine_stage_learns(world):
    from likewise.experiments.parts import only

    document = worlds.recipes()["parallel-refine-pairs"]
    document["relation"]["topic"] = worlds.RELATIONS["topic"]
    document["stage"][1]["relation"] = "topic"
    document["stage"][2]["objective"].append({"relation": "topic", "loss": "pearson"})
    Path("recipe.toml").write_text(tomli_w.dumps(document))
    alone = only(read_recipe("recipe.toml"), ["similarity"])
    assert set(alone.relation) == {"similarity", "topic"}


def test_asked_for_the_cosine_every_verb_gives_the_plain_cosine(world):
    options = {"relations": ["similarity:0..5"], "overrides": {"stage.0.max_steps": 1}, "device": "cpu"}
    model = likewise.train("pairs.csv", encoder="encoder", **options)
    pairs = [("the old man plays", "a woman sings"), ("a dog", "the cat runs")]
    u, v = (np.asarray(model.encode([pair[side] for pair in pairs])) for side in (0, 1))
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    scores = model.score(pairs, source="cosine")
    np.testing.assert_allclose(scores["similarity"], cosines, atol=1e-6)
    assert scores.relations[0].scale == "-1..1"


def test_texts_without_letters_are_the_same_only_if_they_are_written_alike():
    assert text_key("?!") != text_key("🙂")
    assert text_key("? !") == text_key("?!")


def test_crosslingual_is_one_measurement_everywhere(data_dir, tiny_encoder, monkeypatch, tmp_path):
    from likewise.evaluation.crosslingual import CrosslingualResult

    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    monkeypatch.setattr(
        "likewise.evaluation.crosslingual.run_crosslingual",
        lambda *a, **o: CrosslingualResult.__new__(CrosslingualResult),
    )
    assert isinstance(
        likewise.evaluate(str(tiny_encoder), "crosslingual", data_dir=data_dir, log=False), CrosslingualResult
    )


class Stop(Exception):
    """Ends a run between two stages."""


def test_a_run_stopped_between_two_stages_goes_on_bit_for_bit(world):
    document = worlds.recipes()["pairs-twice"]
    document["stage"][1]["objective"] = [
        {"relation": "topic", "head": "scalar", "loss": "mse", "pairing": ["prod"]}
    ]
    Path("recipe.toml").write_text(tomli_w.dumps(document))

    def stop(line):
        if line.startswith("stage 1"):
            raise Stop

    likewise.train("recipe.toml", "whole", device="cpu")
    with pytest.raises(Stop):
        likewise.train("recipe.toml", "torn", device="cpu", tell=stop)
    likewise.train("recipe.toml", "torn", device="cpu", resume=True)
    for file in ("model.safetensors", "likewise/heads.safetensors"):
        whole, torn = load_file(Path("whole") / file), load_file(Path("torn") / file)
        assert [key for key in whole if whole[key].tobytes() != torn[key].tobytes()] == []


def test_a_cell_is_keyed_by_its_defaults_and_by_what_its_files_hold(world):
    from likewise.experiments.plan import ExperimentPlan
    from likewise.experiments.schema import read_experiment

    file = write_experiment("pairs")

    def keys() -> list[str]:
        plan = ExperimentPlan(read_experiment(file), None, "fp32", None)
        return [cell.key for runs in plan.final_cells() for run in runs for cell in run]

    first = keys()
    document = worlds.recipes()["pairs"]
    document["stage"][0]["warmup"] = 0.1  # the default, said aloud
    Path("recipe.toml").write_text(tomli_w.dumps(document))
    assert keys() == first
    rows = Path("pairs.csv").read_text().splitlines()
    Path("pairs.csv").write_text("\n".join(rows[:-1]) + "\n")
    assert keys() != first


def test_a_refine_stage_learns_a_relation_on_its_own_scale(world):
    """A column that the recipe does not know by name has a scale of its own, not the first relation's."""
    rows = Path("pairs.csv").read_text().splitlines()
    lines = [line.split(",") for line in rows[1:]]
    table = ["text_a,text_b,score", *(f"{a},{b},{float(value) / 5}" for a, b, value, *_ in lines)]
    Path("score.csv").write_text("\n".join(table) + "\n")
    Path("recipe.toml").write_text(tomli_w.dumps(worlds.recipes()["parallel-refine"]))
    options = {"relations": ["score:0..1"], "overrides": {"stage.1.epochs": 30}, "device": "cpu"}
    model = likewise.train("recipe.toml", data="score.csv", **options)
    said = model.score([(a, a) for a, *_ in lines[:5]])["score"]
    assert [relation.name for relation in model.relations] == ["score"]
    assert np.mean(said) > 0.5  # the same text twice, on 0..1; with targets of 0..0.2 it stays near 0.2


def test_a_constant_dev_set_is_refused_before_anything_is_encoded(world):
    from likewise.kinds.context import RunContext
    from likewise.recipes.run import dry_run

    rows = ["text_a,text_b,similarity", "a dog,a cat,3", "the man,a dog,3", "a cat,the man,3"]
    Path("const.csv").write_text("\n".join(rows) + "\n")
    document = worlds.recipes()["parallel-refine"]
    document["stage"][1]["dev"] = [{"source": "const.csv"}]
    Path("recipe.toml").write_text(tomli_w.dumps(document))
    with pytest.raises(DataError, match=r"const\.csv: the dev set has too few ratings of similarity"):
        dry_run(read_recipe("recipe.toml"), context=RunContext(device="cpu"))


def test_a_recipe_may_leave_its_data_to_the_users_table(world):
    document = worlds.recipes()["joint"]
    del document["stage"][0]["data"]
    Path("recipe.toml").write_text(tomli_w.dumps(document))
    recipe, _ = make_recipe("recipe.toml", data="pairs.csv", relations=["similarity:0..5"])
    assert [entry["source"] for entry in stage_of(recipe)["data"]] == ["pairs.csv"]


def test_a_table_with_one_text_column_is_told_how_to_name_two(world):
    with pytest.raises(DataError, match='text_a="NAME", text_b="NAME"'):
        make_recipe("similarity", data="moods.csv")


def test_a_recipe_that_is_completed_by_set_takes_a_table_too(world):
    document = worlds.recipes()["pairs"]
    del document["stage"][0]["objective"]
    Path("recipe.toml").write_text(tomli_w.dumps(document))
    objective = [{"relation": "similarity", "head": "scalar", "loss": "mse"}]
    options = {"relations": ["similarity:0..5"], "overrides": {"stage.0.objective": objective}}
    recipe, _ = make_recipe("recipe.toml", data="pairs.csv", **options)
    assert [one["head"] for one in stage_of(recipe)["objective"]] == ["scalar"]


def test_a_declared_relation_keeps_how_the_recipe_measures_and_describes_it(world):
    Path("sick.csv").write_text(
        "text_a,text_b,relatedness\na dog,a cat,2\nthe man,a dog,5\na cat,one cat,1\n"
    )
    recipe, _ = make_recipe("relations-sick", data="sick.csv", relations=["relatedness:0..10"])
    relation = recipe.relation["relatedness"]
    assert (relation.hi, relation.metric, bool(relation.description)) == (10, "pearson", True)


def test_a_rated_column_that_is_not_learnt_is_named(world):
    lines = ["text_a,text_b,relatedness,politeness"]
    lines += [f"a dog {n},a cat {n},{1 + n % 5},{n % 3 + 4}" for n in range(20)]
    Path("two.csv").write_text("\n".join(lines) + "\n")
    told = []
    recipe, _ = make_recipe("relations-sick", data="two.csv", tell=told.append)
    assert list(recipe.relation) == ["relatedness"]
    assert any("'politeness'" in line and 'relations=["politeness:' in line for line in told)


def test_several_ratings_get_a_head_each_and_not_one_cosine(world):
    recipe, _ = make_recipe("similarity", data="pairs.csv", relations=["topic:-2..2"])
    assert {one["head"] for one in stage_of(recipe)["objective"]} == {"cosine"}
    lines = Path("pairs.csv").read_text().replace("similarity,topic", "likeness,topic")
    Path("named.csv").write_text(lines)
    recipe, _ = make_recipe("similarity", data="named.csv", relations=["likeness:0..5", "topic:-2..2"])
    assert [one["head"] for one in stage_of(recipe)["objective"]] == ["distribution", "distribution"]


def test_rated_pairs_that_are_taught_as_paraphrases_are_named_as_that(world):
    told = []
    make_recipe("paraphrase-injection", data="pairs.csv", tell=told.append)
    assert any("counts as a paraphrase; ratings of similarity" in line for line in told)


def test_a_label_model_of_one_task_needs_no_task_and_is_not_explained_in_pairs(world):
    options = {"relations": ["mood:classes"], "overrides": {"stage.0.max_steps": 2}, "device": "cpu"}
    likewise.train("labels-domain", "model", data="moods.csv", encoder="encoder", **options)
    model = likewise.load("model")
    assert set(model.classify(["the child runs"]).best) <= {"fast", "slow"}
    with pytest.raises(UsageError, match="reads single texts"):
        model.explain("the child runs", "a dog")
    labels = {"inside": ["a house"], "outside": ["the street"]}
    added = {"task": "place", "data": "places.csv", "labels": labels, "overrides": {"epochs": 1}}
    report = likewise.update("model", "new", device="cpu", **added)
    assert report.model.about["recipe"]["stage"][0]["max_steps"] == 2  # what the old model was trained by
    stage = json.loads(Path("new/likewise/model.json").read_text())["recipe"]["stage"][0]
    assert (stage["epochs"], stage["max_steps"]) == (1, None)
