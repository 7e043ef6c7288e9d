"""Distillation: the target, the loss, neighbours and batches; a whole run, resumed and followed by pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import likewise
from likewise.encoders.features import TextFeatures
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError, ModelError, RecipeError
from likewise.kinds.base import Shared
from likewise.kinds.context import RunContext
from likewise.kinds.distil import DistilRunner, TextRows, text_batches
from likewise.kinds.teachers import find_neighbours
from likewise.methods.distillation import CosineLearner, Taught, matrix_loss, random_pairs, unit_rows
from likewise.recipes.run import jobs_of
from likewise.schema.recipe import parse_recipe
from likewise.training.sampler import Share, StepSampler
from tests.tiny import WORDS, build_encoder

PLAIN = [word for word in WORDS if word.isalpha()]


def made_texts(count: int) -> list[str]:
    rng = np.random.default_rng(2)
    drawn = [" ".join(rng.choice(PLAIN, int(rng.integers(3, 8)))) for _ in range(count * 2)]
    return list(dict.fromkeys(drawn))[:count]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """Vectors of words, averaged: a teacher with another geometry than the tiny encoder."""
    folder = tmp_path_factory.mktemp("teacher")
    texts = made_texts(120)
    rng = np.random.default_rng(7)
    words = {word: rng.normal(size=12) for word in PLAIN}
    vectors = np.array([np.mean([words[word] for word in text.split()], axis=0) for text in texts])
    np.savez(folder / "teacher.npz", texts=np.array(texts), vectors=vectors.astype(np.float32))
    return folder / "teacher.npz"


@pytest.fixture
def folder(tmp_path, monkeypatch, tiny_encoder, tiny_pairs, teacher):
    """A folder with a recipe, its texts and its teacher."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    lines = ["sentence", *made_texts(120)]
    Path("texts.csv").write_text("\n".join(lines) + "\n")
    Path("recipe.toml").write_text(tomli_w.dumps(recipe(str(tiny_encoder), str(teacher))))
    return tmp_path


def recipe(encoder: str, *teachers: str, **keys: object) -> dict[str, object]:
    stage = {
        "kind": "distil",
        "name": "teachers",
        "teachers": list(teachers),
        "data": [{"source": "texts.csv", "text": "sentence"}],
        "held_out": 0.2,
        "neighbours": 6,
        "drawn": 3,
        "batch_size": 8,
        "epochs": 4,
        "learning_rate": 3e-3,
        "evaluate_every": 12,
        "save_every": 12,
        **keys,
    }
    return {"name": "small", "method": "distillation", "encoder": encoder, "stage": [stage]}


def test_distillation_joins_teachers_by_their_standardised_cosines():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(40, 5)), rng.normal(size=(40, 9)) + 2.0  # the second is squeezed
    taught = Taught.of([first.astype(np.float32), second.astype(np.float32)], ["a", "b"])
    a, b = random_pairs(40)
    cosines = [(unit_rows(x)[a] * unit_rows(x)[b]).sum(axis=1) for x in (first, second)]
    joined = sum(c / c.std() for c in cosines) / 2
    own = sum(1 / c.std() for c in cosines) / 2
    expected = (joined - joined.mean()) / (own - joined.mean())
    np.testing.assert_allclose(taught.proximity_of(a, b), expected, atol=5e-3)
    matrix = taught.proximity(torch.arange(40)).numpy()
    np.testing.assert_allclose(matrix[a, b], expected, atol=5e-3)
    np.testing.assert_allclose(np.diag(matrix), 1.0, atol=5e-3)


def test_distillation_loss_is_the_weighted_mean_of_squares():
    said = torch.tensor([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]])
    proximity = torch.tensor([[1.0, 0.8, -0.2], [0.8, 1.0, 0.1], [-0.2, 0.1, 1.0]])
    floor, near = 0.2, 10.0
    total, weights = 0.0, 0.0
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        p = float(proximity[i, j])
        weight = 1 + near * max(p, 0.0) ** 2
        total += weight * ((float(said[i, j]) - (floor + (1 - floor) * p)) / (1 - floor)) ** 2
        weights += weight
    target = floor + (1 - floor) * proximity
    assert matrix_loss(said, target, proximity, floor, near).item() == pytest.approx(total / weights)


def test_distillation_refuses_a_teacher_without_differences():
    flat = np.ones((10, 3), dtype=np.float32)
    with pytest.raises(DataError, match="teacher flat gives all texts the same cosine"):
        Taught.of([flat], ["flat"])


def test_teachers_neighbours_are_those_of_a_full_search():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(60, 8)).astype(np.float32)
    taught = Taught.of([vectors], ["one"])
    near = find_neighbours(taught, 5, torch.device("cpu"))
    cosines = unit_rows(vectors) @ unit_rows(vectors).T
    np.fill_diagonal(cosines, -2)
    order = np.argsort(-cosines, axis=1)[:, :5]
    # Half precision may exchange two that are equally near.
    assert np.mean([len(set(a) & set(b)) for a, b in zip(near, order, strict=True)]) > 4.9


def test_distil_batches_depend_on_seed_and_epoch_alone_and_hold_no_held_out_text(tiny_encoder):
    texts = made_texts(50)
    rows = TextRows(texts, np.arange(0, 40), np.arange(40, 50))
    near = np.array([[(row + k) % 50 for k in range(1, 7)] for row in range(50)])
    parsed = parse_recipe(recipe("x", "y", batch_size=7), "here")
    stage, features = parsed.stage[0], TextFeatures(load_encoder(tiny_encoder, device="cpu"))

    def epochs(seed: int) -> list[list[list[int]]]:
        batches = text_batches(rows, near, stage, seed, features, Share(0, 1, chunked=True))
        return [list(batches.of_epoch(epoch)) for epoch in (0, 1)]

    first, again, other = epochs(1), epochs(1), epochs(2)
    assert first == again
    assert first[0] != first[1]
    assert first != other
    assert [len(epoch) for epoch in first] == [40 // 7] * 2
    for batch in (batch for epoch in first for batch in epoch):
        assert len(set(batch)) == len(batch)
        assert max(batch) < 40


def test_distil_processes_take_whole_batches_and_idle_ones_have_no_weight(tiny_encoder):
    texts = made_texts(24)
    rows = TextRows(texts, np.arange(24), np.arange(0))
    near = np.array([[(row + 1) % 24, (row + 2) % 24] for row in range(24)])
    parsed = parse_recipe(recipe("x", "y", batch_size=8, neighbours=2, drawn=1), "here")
    encoder = load_encoder(tiny_encoder, device="cpu")
    features = TextFeatures(encoder)
    batches = text_batches(rows, near, parsed.stage[0], 1, features, Share(0, 2, chunked=True))
    whole = list(batches.of_epoch(0))
    mine = [list(StepSampler(batches, Share(rank, 2, chunked=True))) for rank in (0, 1)]
    assert [mine[0][0], mine[1][0], mine[0][1]] == whole
    idle = mine[1][1]
    assert all(item < 0 for item in idle)
    taught = Taught.of([np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)], ["t"])
    learner = CosineLearner(encoder, taught, floor=0.0, near=1.0)
    assert learner(**batches.collate(idle))["loss"].item() == 0.0
    assert learner(**batches.collate(whole[0]))["loss"].item() > 0.0


def test_a_distilled_encoder_agrees_with_its_teacher_and_loads_elsewhere(folder):
    told: list[str] = []
    model = likewise.train("recipe.toml", "model", device="cpu", tell=told.append)
    assert told[0] == "stage 0 teachers: 96 texts; dev set: 24 held-out texts"
    assert "3 of the 6 nearest neighbours join each text of a batch" in told[1]
    [stage] = model.about["stages"]
    before, after = stage["history"][0]["agreement"], stage["agreement"]
    assert after > before + 0.2
    assert after == pytest.approx(max(step["agreement"] for step in stage["history"]))
    encoder = SentenceTransformer("model", device="cpu")
    texts = made_texts(5)
    np.testing.assert_allclose(encoder.encode(texts), likewise.load("model").encode(texts), atol=1e-5)


def test_distil_resumes_with_the_same_weights(folder):
    class Stop(Exception):
        pass

    def stop(event):
        if event.kind == "checkpoint" and event.step == 24:
            raise Stop

    likewise.train("recipe.toml", "whole", device="cpu")
    with pytest.raises(Stop):
        likewise.train("recipe.toml", "torn", device="cpu", emit=stop)
    likewise.train("recipe.toml", "torn", device="cpu", resume=True)
    whole, torn = (load_file(f"{name}/model.safetensors") for name in ("whole", "torn"))
    assert all(torch.equal(whole[name], torn[name]) for name in whole)


def test_distil_keeps_neighbours_and_vectors_for_the_next_run(folder, monkeypatch):
    likewise.train("recipe.toml", "model", device="cpu", overrides={"stage.0.max_steps": 1})
    kept = list((folder / "cache" / "neighbours").glob("*.json"))
    assert len(kept) == 1
    monkeypatch.setattr(
        "likewise.kinds.teachers.find_neighbours", lambda *_: pytest.fail("neighbours are searched again")
    )
    likewise.train("recipe.toml", "again", device="cpu", overrides={"stage.0.max_steps": 1})
    # A file of other size or content counts as absent.
    head, _, body = kept[0].read_bytes().partition(b"\n")
    kept[0].write_bytes(head + b"\n" + body[:-10])
    with pytest.raises(pytest.fail.Exception):
        likewise.train("recipe.toml", "third", device="cpu", overrides={"stage.0.max_steps": 1})


def test_distil_is_followed_by_rated_pairs(folder, tiny_encoder, teacher, tiny_pairs):
    document = recipe(str(tiny_encoder), str(teacher), dev=[{"source": str(tiny_pairs)}], max_steps=4)
    pairs = {
        "name": "rated",
        "data": [{"source": str(tiny_pairs)}],
        "objective": [{"relation": "similarity", "head": "cosine", "loss": "mse"}],
        "max_steps": 3,
    }
    document |= {
        "relation": {"similarity": {"lo": 0, "hi": 5}},
        "stage": [*document["stage"], pairs],
    }
    Path("both.toml").write_text(tomli_w.dumps(document))
    model = likewise.train("both.toml", "model", device="cpu")
    assert [stage["name"] for stage in model.about["stages"]] == ["teachers", "rated"]
    assert {"score", "agreement"} <= set(model.about["stages"][0]["history"][0])
    assert [relation.name for relation in model.relations] == ["similarity"]
    saved = json.loads(Path("model/likewise/model.json").read_text())
    assert saved["recipe"]["stage"][0]["kind"] == "distil"


def test_distil_leaves_out_long_texts_and_those_of_evaluation_sets(folder, tiny_encoder, teacher):
    texts = made_texts(120)
    Path("test.csv").write_text("sentence\n" + texts[3].upper() + "\n" + texts[5] + "\n")
    long = sorted(map(len, texts))[-10]
    entry = {"source": "texts.csv", "text": "sentence", "max_chars": long - 1}
    document = recipe(str(tiny_encoder), str(teacher), data=[entry], filter_against=["test.csv"])
    found = read(document)
    assert not {texts[3], texts[5]} & set(found.rows.texts)
    assert all(len(text) < long for text in found.rows.texts)
    assert any("dropped 2 in test.csv" in note for note in found.notes)
    kept = [*found.rows.train, *found.rows.held_out]
    assert sorted(kept) == list(range(len(found.rows.texts)))


def test_distil_reads_the_same_sample_for_all_seeds_and_both_texts_of_pairs(folder, tiny_encoder, tiny_pairs):
    entries = [{"source": "texts.csv", "text": "sentence", "limit": 20}, {"source": str(tiny_pairs)}]
    document = recipe(str(tiny_encoder), "raw", data=entries)
    found = [read({**document, "seed": seed}) for seed in (1, 2)]
    assert found[0].rows.texts == found[1].rows.texts
    assert not np.array_equal(found[0].rows.held_out, found[1].rows.held_out)
    pairs = likewise.data.load_records(str(tiny_pairs), relations=())
    assert {pairs[0].a, pairs[0].b} <= set(found[0].rows.texts)


def read(document):
    parsed = parse_recipe(document, "here")
    [job] = jobs_of(parsed, RunContext(device="cpu"))
    return DistilRunner().read(job, Shared())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"drawn": 9}, "drawn: is 9, but each text has only 6 neighbours"),
        ({"teachers": []}, "teachers"),
        ({"order": "random"}, "order: is set, but the batches of this kind"),
        ({"token_budget": 100}, "token_budget: is set"),
    ],
)
def test_distil_keys_that_cannot_work_are_refused(keys, message):
    with pytest.raises(RecipeError, match=message):
        parse_recipe(recipe("x", "y", **keys), "here")


def test_distil_needs_texts(folder, tiny_encoder, teacher):
    Path("texts.csv").write_text("sentence\n")
    with pytest.raises(DataError, match=r"texts\.csv"):
        likewise.train("recipe.toml", "model", device="cpu")
    assert not Path("model").exists()


def test_distil_adopts_a_table_of_texts(folder):
    Path("mine.csv").write_text("sentence\n" + "\n".join(made_texts(120)[:60]) + "\n")
    model = likewise.train("recipe.toml", device="cpu", data="mine.csv", overrides={"stage.0.max_steps": 2})
    assert model.about["recipe"]["stage"][0]["data"][0]["source"] == "mine.csv"
    assert model.about["stages"][0]["pairs"] == 48


def test_distil_learns_from_another_encoder(folder, tmp_path_factory, tiny_encoder):
    other = build_encoder(tmp_path_factory.mktemp("other"))
    weights = load_file(other / "model.safetensors") if (other / "model.safetensors").exists() else None
    assert weights is not None
    document = recipe(str(tiny_encoder), str(other), max_steps=2)
    Path("encoder.toml").write_text(tomli_w.dumps(document))
    model = likewise.train("encoder.toml", "model", device="cpu")
    assert model.about["stages"][0]["teachers"] == [str(other)]


def test_distil_asks_for_its_teachers_before_it_reads_anything(folder, tiny_encoder):
    for name in ("./nowhere", "nowhere.npz"):
        Path("recipe.toml").write_text(tomli_w.dumps(recipe(str(tiny_encoder), name)))
        with pytest.raises((ModelError, DataError), match="nowhere"):
            likewise.train("recipe.toml", "model", device="cpu")
        assert not Path("model.run").exists()


def test_distil_says_when_the_start_is_kept_and_when_the_scale_has_no_effect(folder, tiny_encoder):
    document = recipe(str(tiny_encoder), str(tiny_encoder), max_steps=3)
    document["relation"] = {"similarity": {"lo": 0, "hi": 5}}
    Path("recipe.toml").write_text(tomli_w.dumps(document))
    told: list[str] = []
    likewise.train("recipe.toml", "model", device="cpu", tell=told.append)
    assert any("no step was better than the encoder before the stage" in line for line in told)
    assert any("the relation has no effect" in line for line in told)
