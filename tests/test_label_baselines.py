"""What label models are measured against: a bag of words that trains, and word2vec that saw no label."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import likewise
from likewise.encoders.words import average_encoder, load_vectors, word_list
from likewise.errors import DataError, MissingExtraError, RecipeError
from likewise.experiments.plan import ExperimentPlan
from likewise.experiments.schema import read_experiment
from likewise.kinds.building import start_encoder
from likewise.kinds.context import RunContext
from likewise.recipes.prepared import read_stages
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of

ROOT = Path(__file__).resolve().parents[1]
ANIMALS, TOOLS = ["dog", "cat", "cow", "horse"], ["saw", "drill", "hammer", "chisel"]


def sentences(count=400, seed=1):
    """Two kinds of things that never meet: each is known by the words around it."""
    generator = random.Random(seed)
    rows = []
    for number in range(count):
        things, label = ((ANIMALS, "animal"), (TOOLS, "tool"))[number % 2]
        about = ("eats hay in the stable", "cuts wood in the shed")[number % 2]
        first, second = generator.sample(things, 2)
        rows.append((f"the {first} and the {second} {about} {number % 9}", label))
    return rows


@pytest.fixture
def tasks(tmp_path, tiny_vectors):
    for part, count, seed in (("train", 400, 1), ("dev", 40, 2)):
        lines = [f"{text},{label}" for text, label in sentences(count, seed)]
        (tmp_path / f"{part}.csv").write_text("text,kind\n" + "\n".join(lines) + "\n")
    dev = (tmp_path / "dev.csv").read_text().replace("shed", "shed zzz")
    (tmp_path / "dev.csv").write_text(dev)
    words = sorted({word for text, _ in sentences() for word in word_list(text)} | {"animal", "tool"})
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "words.txt").write_text("\n".join(words) + "\n")
    table = np.random.default_rng(1).normal(size=(len(words), 8)).astype("float32")
    np.save(tmp_path / "vectors" / "vectors.npy", table)
    (tmp_path / "tasks.toml").write_text(
        f"""
name = "kinds"
method = "labels"
encoder = {{ kind = "average", vectors = "{tmp_path}/vectors" }}
[relation.kind]
kind = "classes"
labels = ["animal", "tool"]
texts = {{ animal = ["dog", "a living quadruped"], tool = "hammer" }}
[[stage]]
kind = "labels"
data = [{{ source = "{tmp_path}/train.csv", columns = {{ kind = "kind" }} }}]
dev = [{{ source = "{tmp_path}/dev.csv", columns = {{ kind = "kind" }} }}]
matcher = "one-hot"
batch_size = 32
order = "random"
epochs = 8
learning_rate = 2e-2
"""
    )
    return tmp_path


def vectors_of(model):
    return model.model.encoder[0].embedding.weight.detach().clone()


@pytest.mark.parametrize("trains", [True, False])
def test_a_bag_of_words_trains_its_vectors_if_it_is_to(tasks, trains):
    encoder = {"kind": "average", "vectors": str(tasks / "vectors"), "words": "data", "train_vectors": trains}
    model = likewise.train(
        str(tasks / "tasks.toml"), tasks / "model", device="cpu", overrides={"encoder": encoder}
    )
    texts = [text for text, _ in sentences(40, 3)]
    assert model.classify(texts, task="kind").best == [label for _, label in sentences(40, 3)]
    words, table = load_vectors(tasks / "vectors")
    before = torch.from_numpy(table)
    known = [place for place, word in enumerate(words) if word not in ("animal", "tool")]
    moved = (vectors_of(model)[4:] - before[known]).abs().max()
    assert (moved > 1e-3) == trains
    again = SentenceTransformer(str(tasks / "model"), device="cpu")
    assert np.abs(again.encode(texts) - model.encode(texts)).max() < 1e-6


def test_an_average_that_stays_leaves_nothing_to_train_under_a_cosine(tiny_vectors, tiny_pairs, tmp_path):
    overrides = {
        "encoder": {"kind": "average", "vectors": str(tiny_vectors)},
        "stage.0.anchor": 0,
        "stage.0.max_steps": 1,
    }
    options = {"device": "cpu", "overrides": overrides, "relations": ["similarity:0..5"]}
    with pytest.raises(likewise.LikewiseError, match=r"encoder\.train_vectors = true"):
        likewise.train(str(tiny_pairs), tmp_path / "model", **options)
    overrides["encoder"] |= {"train_vectors": True}
    assert likewise.train(str(tiny_pairs), tmp_path / "other", **options)


WORD2VEC = {"kind": "average", "word2vec": {"width": 12, "epochs": 20, "window": 3}}


def learnt(tasks, **changes):
    pytest.importorskip("gensim")
    overrides = {"encoder": {**WORD2VEC, "word2vec": {**WORD2VEC["word2vec"], **changes}}}
    recipe = read_recipe(str(tasks / "tasks.toml"), overrides=overrides)
    return start_encoder(recipe, read_stages(jobs_of(recipe, RunContext())), RunContext(device="cpu"))


def known_words(encoder):
    return encoder[0].tokenizer.get_vocab()


def test_word2vec_learns_from_training_texts_and_knows_every_word_of_a_label(tasks):
    told = []
    pytest.importorskip("gensim")
    recipe = read_recipe(str(tasks / "tasks.toml"), overrides={"encoder": WORD2VEC})
    context = RunContext(device="cpu", tell=told.append)
    encoder = start_encoder(recipe, read_stages(jobs_of(recipe, context)), context)
    words = known_words(encoder)
    assert {"a", "living", "quadruped", *ANIMALS, *TOOLS} <= set(words)
    assert "zzz" not in words  # it stands in dev texts alone
    assert "animal" not in words  # a label is known by its texts
    distinct = len({text for text, _ in sentences()})
    learning = f"word2vec: learning vectors of width 12 from {distinct} training texts"
    assert any(learning in line for line in told)
    near = encoder.encode([*ANIMALS, *TOOLS])
    near = near / np.linalg.norm(near, axis=1, keepdims=True)
    alike = near @ near.T
    assert min(alike[:4, :4].mean(), alike[4:, 4:].mean()) > alike[:4, 4:].mean()


def test_word2vec_leaves_rare_words_out_unless_a_label_needs_them(tasks):
    words = known_words(learnt(tasks, least=150))
    assert "the" in words
    assert "dog" in words  # of a label; the others stand in about a quarter of the texts
    assert "cat" not in words
    assert "cat" in known_words(learnt(tasks, least=1))


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.test_label_baselines import sentences
from likewise.encoders.word2vec import Word2VecSettings, train_word2vec
settings = Word2VecSettings(width=6, epochs=2)
words, table = train_word2vec([text for text, _ in sentences(60)], ["a dog"], settings, seed=int(sys.argv[2]))
print(json.dumps([words, table.tolist()]))
"""


@pytest.mark.slow
def test_word2vec_gives_the_same_vectors_in_every_process():
    pytest.importorskip("gensim")

    def run(seed, hashes):
        return subprocess.run(
            [sys.executable, "-c", SCRIPT, str(ROOT), str(seed)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hashes},
        ).stdout

    first = run(1, "1")
    assert first == run(1, "2")
    assert first != run(2, "1")


def test_word2vec_of_nothing_is_refused(tasks):
    from likewise.encoders.word2vec import Word2VecSettings, train_word2vec

    pytest.importorskip("gensim")
    with pytest.raises(DataError, match="no word occurs 3 times in 2 texts"):
        train_word2vec(["one two", "two three"], [], Word2VecSettings(least=3), seed=1)


def test_word2vec_without_gensim_says_what_to_install(tasks, monkeypatch):
    from likewise.encoders.word2vec import Word2VecSettings, train_word2vec

    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(
        MissingExtraError,
        match=r"gensim is not installed\. Install it with: pip install 'likewise\[word2vec\]'",
    ):
        train_word2vec(["one"], [], Word2VecSettings(), seed=1)


@pytest.mark.parametrize(
    "encoder",
    [
        {"kind": "pretrained", "word2vec": {}},
        {"kind": "average", "vectors": "glove100", "word2vec": {}},
        {"kind": "average", "word2vec": {"width": 0}},
        {"kind": "average", "word2vec": {"depth": 3}},
    ],
)
def test_word2vec_where_it_cannot_be_is_refused_by_its_place(tasks, encoder):
    with pytest.raises(RecipeError, match="word2vec"):
        read_recipe(str(tasks / "tasks.toml"), overrides={"encoder": encoder})


def test_word_vectors_must_come_from_somewhere(tasks, here):
    recipe = (tasks / "tasks.toml").read_text()
    (tasks / "tasks.toml").write_text(recipe.replace(f', vectors = "{tasks}/vectors"', ""))
    code, said = here("train", "tasks.toml", "--output", "out", "--device", "cpu")
    assert code == 2
    assert "kind 'average' needs word vectors" in said
    assert "encoder.word2vec" in said
    assert not list(tasks.glob("out*"))


@pytest.mark.parametrize("kind", ["lstm", "bilstm"])
def test_an_lstm_may_begin_with_the_vectors_of_word2vec(tasks, kind):
    pytest.importorskip("gensim")
    encoder = {**WORD2VEC, "kind": kind, "hidden": 8, "train_vectors": False}
    overrides = {"encoder": encoder, "stage.0.matcher": "concat-mlp", "stage.0.max_steps": 2}
    model = likewise.train(str(tasks / "tasks.toml"), tasks / "model", device="cpu", overrides=overrides)
    again = likewise.load_classifier(tasks / "model", device="cpu")
    texts = [text for text, _ in sentences(5, 3)]
    np.testing.assert_allclose(
        again.classify(texts, task="kind").probabilities,
        model.classify(texts, task="kind").probabilities,
        atol=1e-6,
    )
    lookup = again.model.encoder[0]
    assert lookup.emb_layer.weight.shape[1] == 12


def test_model_one_compares_word2vec_by_the_cosine_without_a_label(tasks):
    pytest.importorskip("gensim")
    (tasks / "suite.toml").write_text(
        f'name = "mine"\ntexts = 1\n[[task]]\nname = "kind"\nfile = "{tasks}/dev.csv"\nmetric = "accuracy"\n'
        'relation = "kind:animal|tool"\n'
    )
    (tasks / "compare.toml").write_text(
        f"""
name = "compare"
recipe = "{tasks}/tasks.toml"
suite = "{tasks}/suite.toml"
sources = ["matcher"]
seeds = [1]
[[setting]]
name = "Model-I, word2vec"
stages = 0
set = {{ encoder = {{ kind = "average", word2vec = {{ width = 12, epochs = 20, window = 3 }} }} }}
[[setting]]
name = "NBOW"
set = {{ "encoder.train_vectors" = true, "encoder.words" = "data" }}
"""
    )
    rows = likewise.experiment(tasks / "compare.toml", tasks / "cells", device="cpu").rows
    assert {row.setting: row.dev for row in rows}["Model-I, word2vec"] == (None,)
    assert all(row.numbers["kind"][0] > 95 for row in rows)


@pytest.mark.parametrize("scenario", ["cardinality", "domain", "objective"])
def test_the_baselines_stand_in_the_experiment_files(scenario):
    file = ROOT / "benchmarks" / "experiments" / f"labels-{scenario}-lstm.toml"
    experiment = read_experiment(file)
    settings = {setting.name: setting for setting in experiment.setting}
    assert settings["NBOW"].each == "relation"
    assert settings["Model-I, word2vec"].stages == 0
    cells = [
        cell
        for runs in ExperimentPlan(experiment, "cpu", "fp32", None).final_cells()
        for run in runs
        for cell in run
    ]
    bags = [cell.recipe for cell in cells if cell.setting.startswith("NBOW")]
    assert {len(recipe["stage"][0]["task"]) for recipe in bags} == {1}
    assert all(
        recipe["encoder"]["kind"] == "average" and recipe["encoder"]["train_vectors"] for recipe in bags
    )
    assert all(recipe["stage"][0]["matcher"] == "one-hot" for recipe in bags)
    learnt = [cell.recipe["encoder"] for cell in cells if cell.setting == "Model-I, word2vec"]
    assert all(not encoder["vectors"] and encoder["word2vec"] is not None for encoder in learnt)
    assert len(learnt) == 3


def test_a_table_of_vectors_is_taken_as_it_is():
    words, table = ["dog", "cat"], np.eye(2, dtype=np.float32)
    encoder = average_encoder((words, table), device="cpu")
    np.testing.assert_allclose(encoder.encode(["dog cat", "cat zzz"]), [[0.5, 0.5], [0.0, 0.5]])
