"""Meaning split from language on parallel text, refined on rated pairs, over a frozen encoder."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from torch import nn

import likewise
from likewise.data import text_key
from likewise.data.opened import watching
from likewise.data.parallel import read_parallel
from likewise.errors import DataError, LikewiseError, RecipeError
from likewise.experiments import experiment
from likewise.kinds.frozen import RefineRunner, language_means
from likewise.kinds.vector_tasks import (
    ParallelTask,
    ParallelVectors,
    RatedTask,
    RatedVectors,
    _same_in_batch,
    balanced_rows,
)
from likewise.losses import make_loss
from likewise.methods.multilingual import PAPER_WEIGHTS, CosineMap, MeaningSplit, SplitLoss, SplitSides
from likewise.recipes import prepared
from likewise.recipes import run as running
from likewise.recipes.reading import named_document, read_recipe, recipe_from

WIDTH, LANGUAGES = 6, 3
SUBJECTS = ["the man", "a woman", "the dog", "one child", "the old band"]
DEEDS = ["plays guitar", "sings", "runs in the park", "cooks soup", "reads a book", "sleeps", "eats bread"]


def number(tensor):
    return float(tensor.detach())


def cos(x, y):
    return (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)


@pytest.fixture
def split():
    torch.manual_seed(1)
    return MeaningSplit(WIDTH, LANGUAGES)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(2)
    source, target, far_s, far_t, same_s, same_t = torch.randn(6, 4, WIDTH, generator=generator)
    sides = SplitSides(torch.cat([source, target]), torch.tensor([0, 1, 0, 2, 1, 2, 2, 0]))
    return sides, torch.cat([far_s, far_t]), torch.cat([same_s, same_t])


def test_terms_are_those_of_the_paper(split, batch):
    sides, far, same = batch
    with torch.no_grad():
        terms = {name: float(value) for name, value in split.terms(sides, far, same, SplitLoss()).items()}

    def layer(name, x):
        linear = getattr(split, name).linear
        return x.numpy() @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()

    e = sides.vectors
    m, lang = layer("meaning", e), layer("language", e)
    m_far, l_same = layer("meaning", far), layer("language", same)
    near = 1 - cos(m[:4], m[4:])
    apart = np.maximum(0, cos(m, m_far))
    assert terms["meaning"] == pytest.approx(near.mean() + apart[:4].mean() + apart[4:].mean(), rel=1e-5)
    alike = 1 - cos(lang, l_same)
    assert terms["language"] == pytest.approx(alike[:4].mean() + alike[4:].mean(), rel=1e-5)
    logits = lang @ split.identify.weight.detach().numpy().T + split.identify.bias.detach().numpy()
    surprise = np.log(np.exp(logits).sum(1)) - logits[np.arange(8), sides.languages.numpy()]
    assert terms["identification"] == pytest.approx(surprise[:4].mean() + surprise[4:].mean(), rel=1e-5)
    missed = (m + lang - e.numpy()) ** 2
    assert terms["reconstruction"] == pytest.approx(missed[:4].mean() + missed[4:].mean(), rel=1e-5)
    assert terms["push"] == pytest.approx(np.maximum(0, cos(lang[:4], lang[4:])).mean(), rel=1e-5)


def test_total_is_the_sum_of_four_terms_and_push_is_only_shown(split, batch):
    """The authors' code computes the push and leaves it out of the total."""
    assert "push" not in split.terms(*batch, SplitLoss())  # not learnt from, so not computed in a step
    with torch.no_grad():
        terms = split.terms(*batch, SplitLoss())
    four = ("meaning", "language", "identification", "reconstruction")
    total = SplitLoss().total(terms)
    assert number(total) == pytest.approx(sum(number(terms[name]) for name in four), rel=1e-6)
    pushed = SplitLoss({**PAPER_WEIGHTS, "push": 1.0}).total(terms)
    assert number(pushed) == pytest.approx(number(total + terms["push"]), rel=1e-6)


@pytest.mark.parametrize("how", ["mean", "sum", "cosine"])
def test_reconstruction_is_counted_three_ways(split, batch, how):
    terms = split.terms(*batch, SplitLoss(reconstruction=how))
    mean = number(split.terms(*batch, SplitLoss())["reconstruction"])
    if how == "sum":
        assert number(terms["reconstruction"]) == pytest.approx(WIDTH * mean, rel=1e-5)
    else:
        assert number(terms["reconstruction"]) >= 0


def test_reversible_form_reconstructs_exactly(batch):
    split = MeaningSplit(WIDTH, LANGUAGES, reversible=True)
    assert number(split.terms(*batch, SplitLoss())["reconstruction"]) == pytest.approx(0, abs=1e-10)


def test_cross_reconstruction_is_computed_when_it_counts(split, batch):
    assert "cross" not in split.terms(*batch, SplitLoss())
    assert number(split.terms(*batch, SplitLoss({**PAPER_WEIGHTS, "cross": 1.0}))["cross"]) > 0


def test_fused_positives_share_the_language_and_are_another_row():
    languages = np.array([0, 1, 0, 2, 1, 1, 3, 0])
    same = _same_in_batch(languages).numpy()
    assert (languages[same] == languages).all()
    alone = np.isin(languages, [2, 3])
    assert (same[~alone] != np.arange(8)[~alone]).all()
    assert (same[alone] == np.arange(8)[alone]).all()


def test_fused_form_equals_the_paper_form_on_the_same_negatives_and_positives(split, batch):
    sides, *_ = batch
    same = _same_in_batch(sides.languages.numpy())
    fused = split.fused_terms(sides, same, SplitLoss())
    far = torch.cat([part.roll(1, 0) for part in sides.vectors.chunk(2)])
    paper = split.terms(sides, far, sides.vectors[same], SplitLoss())
    assert {k: number(v) for k, v in fused.items()} == pytest.approx({k: number(v) for k, v in paper.items()})


@pytest.mark.parametrize(("balance", "share"), [(1.0, 0.01), (0.0, 0.5)])
def test_balance_draws_small_language_pairs_more_often(balance, share):
    group = np.repeat([0, 1], [9_900, 100])
    drawn = group[balanced_rows(group, balance, np.random.default_rng(1))]
    assert len(drawn) == len(group)
    assert (drawn == 1).mean() == pytest.approx(share, abs=0.02)


def parallel_vectors(rows=300, offset=3.0):
    """Translations that differ by their language's offset and a little noise."""
    generator = np.random.default_rng(3)
    meaning = generator.normal(size=(rows, WIDTH))
    offsets = offset * generator.normal(size=(LANGUAGES, WIDTH))
    language_a, language_b = generator.integers(0, LANGUAGES, (2, rows))
    a = meaning + offsets[language_a] + 0.1 * generator.normal(size=(rows, WIDTH))
    b = meaning + offsets[language_b] + 0.1 * generator.normal(size=(rows, WIDTH))
    place = np.arange(rows)
    vectors = np.concatenate([a, b]).astype(np.float32)
    return ParallelVectors(vectors, place, place + rows, language_a, language_b, np.zeros(rows, np.int64))


def test_means_start_forgets_what_sets_the_languages_apart():
    data = parallel_vectors()
    split = MeaningSplit(WIDTH, LANGUAGES, start="identity")
    split.forget(language_means(data))
    with torch.no_grad():
        m = split.meaning_of(torch.from_numpy(data.vectors)).numpy()
    means = [m[np.r_[data.a[data.language_a == n], data.b[data.language_b == n]]].mean(0) for n in range(3)]
    assert np.abs(np.diff(means, axis=0)).max() < 1e-4


@pytest.mark.parametrize("form", ["paper", "fused"])
def test_task_draws_by_seed_and_epoch_and_keeps_dev_apart(form):
    data = parallel_vectors()
    split = MeaningSplit(WIDTH, LANGUAGES)
    tasks = [ParallelTask(split, SplitLoss(), data, form=form, batch_size=32, seed=5) for _ in range(2)]
    first, again = ([number(loss) for loss in task.losses(0)] for task in tasks)
    assert first == again
    assert first != [number(loss) for loss in tasks[0].losses(1)]
    assert tasks[0].pairs == 240
    assert tasks[0].evaluate() == tasks[1].evaluate()


@pytest.mark.parametrize("name", ["identity", "affine", "clamp", "sigmoid", "tanh", "arccos"])
def test_maps_of_the_cosine_are_monotone(name):
    cosines = torch.linspace(-1, 1, 101)
    with torch.no_grad():
        mapped = CosineMap(name)(cosines)
    assert (mapped.diff() >= 0).all()
    assert mapped[-1] > mapped[50]


# ---- the whole way, on a tiny encoder ----


def sentences(count, seed):
    generator = random.Random(seed)
    return [f"{generator.choice(SUBJECTS)} {generator.choice(DEEDS)} {n % 7}" for n in range(count)]


@pytest.fixture
def world(tmp_path, tiny_encoder, monkeypatch):
    """Parallel text, rated pairs and a recipe of both stages, in a folder."""
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "vectors"))
    for other, marker in (("de", "no never"), ("fr", "not or"), ("pt", "and one")):
        texts = sentences(120, 1)
        (tmp_path / f"text.{other}.en").write_text("\n".join(texts) + "\n")
        (tmp_path / f"text.{other}.{other}").write_text("\n".join(f"{marker} {t}" for t in texts) + "\n")
    generator = random.Random(4)
    rows = ["a,b,similarity"]
    for a in sentences(90, 5):
        b = generator.choice([a, generator.choice(sentences(90, 6))])
        same = sum(x == y for x, y in zip(a.split(), b.split(), strict=False))
        rows.append(f"{a} {generator.random():.6f},{b},{min(5, same)}")
    (tmp_path / "rated.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "recipe.toml").write_text(recipe_text(tmp_path, tiny_encoder))
    return tmp_path


def recipe_text(folder, encoder):
    entries = [
        f'{{ source = ["{folder}/text.{code}.en", "{folder}/text.{code}.{code}"] }}'
        for code in ("de", "fr", "pt")
    ]
    return f"""
name = "tiny-multilingual"
method = "multilingual"
encoder = {{ name = "{encoder}", prompt = "the " }}
[relation.similarity]
metric = "pearson"
[[stage]]
kind = "parallel"
name = "meaning"
parallel = [{", ".join(entries)}]
batch_size = 32
learning_rate = 1e-3
epochs = 4
keep_start = false
[[stage]]
kind = "refine"
name = "similarity"
data = [{{ source = "{folder}/rated.csv" }}]
dev_share = 0.3
batch_size = 16
learning_rate = 1e-3
epochs = 4
keep_start = false
"""


def train(world, output, **options):
    return likewise.train(str(world / "recipe.toml"), world / output, device="cpu", **options)


def test_multilingual_model_loads_anywhere_and_answers_on_the_scale(world):
    predictor = train(world, "model")
    stock = SentenceTransformer(str(world / "model"), device="cpu")
    texts = sentences(9, 8)
    np.testing.assert_allclose(stock.encode(texts), predictor.encode(texts), rtol=1e-4, atol=1e-4)
    again = likewise.load(world / "model", device="cpu")
    pairs = [(texts[0], text) for text in texts]
    scores = again.score(pairs)["similarity"]
    np.testing.assert_allclose(scores, predictor.score(pairs)["similarity"], rtol=1e-4, atol=1e-4)
    assert scores[0] == scores.max()
    rated = likewise.data.load_records(world / "rated.csv", relations=[likewise.Relation("similarity", hi=5)])
    said = again.score([r.texts for r in rated])["similarity"]
    # Dev puts answers where ratings lie, whatever the loss did to the cosine's level.
    assert said.mean() == pytest.approx(np.mean([r.values["similarity"] for r in rated]), abs=0.4)
    assert ((scores >= 0) & (scores <= 5)).all()
    modules = json.loads((world / "model" / "modules.json").read_text())
    assert [m["type"].rpartition(".")[2] for m in modules] == ["Transformer", "Pooling", "Dense", "Dense"]


def test_views_show_the_frozen_encoder_and_the_language_beside_the_model(world, tiny_encoder):
    train(world, "model")
    loaded = likewise.load(world / "model", device="cpu")
    texts = sentences(5, 9)
    views = loaded.views(texts)
    raw = SentenceTransformer(str(tiny_encoder), device="cpu").encode(texts, prompt="the ")
    np.testing.assert_allclose(views["raw"], raw, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(views["model"], loaded.encode(texts), rtol=1e-4, atol=1e-4)
    assert views["language"].shape == raw.shape
    assert loaded.model.frozen.languages == ("de", "en", "fr", "pt")


def test_a_language_is_held_out_by_one_line(world):
    told = []
    predictor = train(world, None or "model", overrides={"hold_out": ["pt"]}, tell=told.append)
    assert predictor.model.frozen.languages == ("de", "en", "fr")
    assert any(line.endswith("(held-out language: pt)") for line in told)
    assert any("names no language, so holding out pt does not affect it" in line for line in told)


def test_holding_out_every_language_is_refused(world):
    with pytest.raises(DataError, match="has no parallel text left"):
        train(world, "model", overrides={"hold_out": ["en"]})
    assert not (world / "model.run").exists()


def test_a_second_run_encodes_nothing_and_ends_the_same(world, monkeypatch):
    first = train(world, "one")
    monkeypatch.setattr("likewise.encoders.cache.encode_texts", None)  # would fail if it were called
    second = train(world, "two")
    texts = sentences(4, 2)
    np.testing.assert_array_equal(first.views(texts[:0])["raw"].shape, (0, 32))
    weights = [load_file(world / name / "3_Dense" / "model.safetensors") for name in ("one", "two")]
    np.testing.assert_array_equal(weights[0]["linear.weight"], weights[1]["linear.weight"])
    assert second.about["stages"][1]["history"] == first.about["stages"][1]["history"]


def test_a_second_run_neither_reads_the_files_nor_opens_the_encoder_before_it_trains(world, monkeypatch):
    monkeypatch.setattr(prepared, "WORTH_SECONDS", 0.0)
    told: list[list[str]] = [[], []]
    first = train(world, "one", tell=told[0].append)
    monkeypatch.setattr(prepared, "read_stages", None)  # would fail if it were called
    monkeypatch.setattr(running, "start_encoder", None)
    with pytest.raises(TypeError):  # at the end, to be saved
        train(world, "two", tell=told[1].append)
    assert (world / "two.run" / "stage-1" / "done.json").is_file()
    assert told[0][:-1] == told[1]  # the last line compares the model with its encoder
    assert (world / "vectors" / "prepared").stat().st_mode & 0o777 == 0o700
    monkeypatch.undo()
    monkeypatch.setenv("LIKEWISE_CACHE", str(world / "vectors"))
    rated = world / "rated.csv"
    rated.write_text(rated.read_text() + "one more pair,one more row,5\n")
    again = train(world, "three")
    prints = [model.about["stages"][1]["fingerprints"]["train"] for model in (first, again)]
    assert prints[0] != prints[1]


def rewritten(path, content):
    """Other content in a file of the same size and time."""
    before = path.stat()
    assert len(content) == before.st_size
    assert content != path.read_bytes()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swapped(content, one, other):
    return content.replace(one, b"\0").replace(other, one).replace(b"\0", other)


def test_rows_of_another_file_of_the_same_size_and_time_are_read_again(world, monkeypatch):
    monkeypatch.setattr(prepared, "WORTH_SECONDS", 0.0)
    first = train(world, "one")
    rated = world / "rated.csv"
    rewritten(rated, swapped(rated.read_bytes(), b"sings", b"reads"))
    again = train(world, "two")
    prints = [model.about["stages"][1]["fingerprints"]["train"] for model in (first, again)]
    assert prints[0] != prints[1]
    # A file that is only touched is the same file.
    os.utime(rated, (1, 1))
    monkeypatch.setattr(prepared, "read_stages", None)  # would fail if it were called
    third = train(world, "three")
    assert third.about["stages"][1]["fingerprints"]["train"] == prints[1]


def test_rows_that_are_kept_and_damaged_are_read_again(world, monkeypatch):
    monkeypatch.setattr(prepared, "WORTH_SECONDS", 0.0)
    train(world, "one")
    [kept] = (world / "vectors" / "prepared").iterdir()
    kept.write_bytes(swapped(kept.read_bytes(), b"sings", b"reads"))
    train(world, "two")
    weights = [load_file(world / name / "3_Dense" / "model.safetensors") for name in ("one", "two")]
    np.testing.assert_array_equal(weights[0]["linear.weight"], weights[1]["linear.weight"])


@pytest.mark.parametrize("changed", ["weights", "tokenizer"])
def test_vectors_of_another_encoder_of_the_same_size_and_time_are_made_anew(
    world, tiny_encoder, changed, tmp_path
):
    encoder = tmp_path / "own-encoder"
    shutil.copytree(tiny_encoder, encoder)
    train(world, "one", encoder=str(encoder))
    if changed == "weights":
        path = next(encoder.rglob("model.safetensors"))
        rng = np.random.default_rng(1)
        tensors = {name: value + rng.normal(size=value.shape) for name, value in load_file(path).items()}
        rewritten(path, save({n: v.astype("float32") for n, v in tensors.items()}, {"format": "pt"}))
    else:
        path = next(encoder.rglob("tokenizer.json"))
        rewritten(path, swapped(path.read_bytes(), b'"soup"', b'"book"'))
    train(world, "two", encoder=str(encoder))
    texts = sentences(20, 9)
    views = likewise.load(world / "two", device="cpu").views(texts)
    fresh = SentenceTransformer(str(encoder), device="cpu").encode(texts, prompt="the ")
    np.testing.assert_allclose(views["raw"], fresh, rtol=1e-4, atol=1e-4)
    layers = [load_file(world / name / "3_Dense" / "model.safetensors") for name in ("one", "two")]
    assert np.abs(layers[0]["linear.weight"] - layers[1]["linear.weight"]).max() > 1e-6


def test_rows_in_memory_are_never_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(prepared, "WORTH_SECONDS", 0.0)
    with watching() as watch:
        likewise.data.load_records([("a cat", "a dog", 1.0)], relations=[likewise.Relation("score")])
    assert not watch.complete


def test_settings_that_begin_alike_share_their_first_stage(world, tiny_encoder):
    (world / "suite.toml").write_text(
        f'name = "mine"\n[[task]]\nname = "all"\nfile = "{world}/rated.csv"\nrelation = "similarity:0..5"\n'
    )
    (world / "grid.toml").write_text(
        f"""
name = "grid"
recipe = "{world}/recipe.toml"
suite = "{world}/suite.toml"
sources = ["cosine"]
seeds = [1]
[[setting]]
name = "raw"
stages = 0
[[setting]]
name = "S1"
stages = 1
[[setting]]
name = "S2"
[[setting]]
name = "S2 + convolution"
set = {{ "stage.1.convolution" = 3 }}
"""
    )
    result = experiment(world / "grid.toml", world / "cells", device="cpu")
    numbers = {row.setting: row.numbers["all"][0] for row in result.rows}
    rated = likewise.data.load_records(world / "rated.csv", relations=[likewise.Relation("similarity", hi=5)])
    stock = SentenceTransformer(str(tiny_encoder), device="cpu")
    u, v = (stock.encode([r.texts[side] for r in rated], prompt="the ") for side in (0, 1))
    gold = [r.values["similarity"] for r in rated]
    assert numbers["raw"] == pytest.approx(100 * spearmanr(cos(u, v), gold).statistic, abs=1e-3)
    assert len({round(value, 6) for value in numbers.values()}) == 4
    kept = [path for path in (world / "cells" / "stages").iterdir() if path.is_dir()]
    assert len(kept) == 3  # one first stage, two second ones
    stages = {
        d["setting"]: d["stages"]
        for f in (world / "cells").glob("*.json")
        if (d := json.loads(f.read_text()))
    }
    assert stages["S1"][0] == stages["S2"][0] == stages["S2 + convolution"][0]
    # Other texts under the same names are another first stage.
    text = world / "text.de.en"
    text.write_text(text.read_text().replace("guitar", "bread"))
    for cell in (world / "cells").glob("*.json"):
        cell.unlink()
    experiment(world / "grid.toml", world / "cells", device="cpu")
    assert len([path for path in (world / "cells" / "stages").iterdir() if path.is_dir()]) == 6


def test_a_run_that_died_goes_on_as_if_nothing_had_happened(world, monkeypatch):
    train(world, "whole")
    real = RefineRunner.learn

    def die(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(RefineRunner, "learn", die)
    with pytest.raises(KeyboardInterrupt):
        train(world, "torn")
    monkeypatch.setattr(RefineRunner, "learn", real)
    # As if the first stage had died in its last epoch: its newest checkpoint is what is left.
    stage = world / "torn.run" / "stage-0"
    (stage / "done.json").unlink()
    shutil.rmtree(sorted(stage.glob("checkpoint-*"))[-1])
    train(world, "torn", resume=True)
    for file in ("2_Dense", "3_Dense"):
        weights = [load_file(world / name / file / "model.safetensors") for name in ("whole", "torn")]
        np.testing.assert_array_equal(weights[0]["linear.weight"], weights[1]["linear.weight"])


def test_refinement_leaves_the_first_stage_alone_unless_it_is_joint(world):
    def first_layer(output, **overrides):
        train(world, output, overrides={"stage.1.convolution": 3, **overrides})
        return load_file(world / output / "likewise" / "language.safetensors")["identify.weight"]

    np.testing.assert_array_equal(first_layer("frozen"), first_layer("joint", **{"stage.1.joint": True}))
    dense = [
        load_file(world / name / "2_Dense" / "model.safetensors")["linear.weight"]
        for name in ("frozen", "joint")
    ]
    assert np.abs(dense[0] - dense[1]).max() > 1e-6


@pytest.mark.parametrize("loss", ["smooth_k2", "pearson", "cosent"])
@pytest.mark.parametrize("bend", ["identity", "sigmoid", "arccos"])
def test_losses_and_maps_train_and_survive_saving(world, loss, bend):
    predictor = train(world, "model", overrides={"stage.1.loss": loss, "stage.1.map": bend})
    pairs = [(a, b) for a, b in zip(sentences(6, 1), sentences(6, 2), strict=True)]
    scores = likewise.load(world / "model", device="cpu").score(pairs)["similarity"]
    np.testing.assert_allclose(scores, predictor.score(pairs)["similarity"], rtol=1e-3, atol=1e-3)
    assert ((scores >= 0) & (scores <= 5)).all()


def test_translations_go_on_finding_each_other_while_ratings_are_learnt(world):
    source = [str(world / "text.de.en"), str(world / "text.de.de")]
    parallel = [{"source": source}]
    plain = train(world, "plain")
    aligned = train(world, "aligned", overrides={"stage.1.parallel": parallel, "stage.1.align": 1.0})
    text = read_parallel(source)

    def found(predictor):
        u, v = (predictor.encode(side) for side in (text.a, text.b))
        u, v = u / np.linalg.norm(u, axis=1)[:, None], v / np.linalg.norm(v, axis=1)[:, None]
        return (u * v).sum(1).mean() - (u @ v.T).mean()

    assert found(aligned) > found(plain)


def test_weights_of_data_entries_say_how_often_their_rows_are_drawn():
    vectors = np.random.default_rng(1).normal(size=(4, WIDTH)).astype(np.float32)
    rows, target = np.array([0, 1]), np.array([0.0, 1.0], dtype=np.float32)
    data = RatedVectors(vectors, rows, rows + 2, target, rows, weight=np.array([1.0, 0.0]))
    task = RatedTask(
        nn.Identity(), nn.Identity(), make_loss("mse", "cosine"), data, evaluate=dict, at_start=dict
    )
    [loss] = task.losses(0)
    drawn = cos(vectors[:1], vectors[2:3])[0]
    assert float(loss) == pytest.approx(drawn**2, rel=1e-5)


def test_a_pairs_stage_may_follow_and_train_the_whole(world):
    text = (world / "recipe.toml").read_text()
    (world / "recipe.toml").write_text(
        text
        + f"""
[[stage]]
name = "all"
data = [{{ source = "{world / "rated.csv"}" }}]
objective = [{{ relation = "similarity", head = "cosine", loss = "mse" }}]
max_steps = 3
"""
    )
    predictor = train(world, "model")
    assert [stage["name"] for stage in predictor.about["stages"]] == ["meaning", "similarity", "all"]


def test_frozen_stages_come_before_those_that_train_the_encoder(world):
    text = (world / "recipe.toml").read_text()
    head, first, _ = text.split("[[stage]]")
    pairs = f"""
data = [{{ source = "{world / "rated.csv"}" }}]
objective = [{{ relation = "similarity" }}]
"""
    (world / "recipe.toml").write_text(head + f"[[stage]]{pairs}[[stage]]{first}")
    with pytest.raises(
        RecipeError,
        match=r"stage\.1\.kind: kind 'parallel' cannot follow kind 'pairs': .* its encoder is frozen",
    ):
        train(world, "model")


def test_files_of_unequal_length_are_named_with_their_counts(world):
    with (world / "text.de.de").open("a") as file:
        file.write("one more\n")
    with pytest.raises(LikewiseError) as caught:
        train(world, "model")
    assert "text.de.de" in str(caught.value)
    assert "120" in str(caught.value)
    assert "121" in str(caught.value)
    assert not (world / "model.run").exists()


def test_an_unknown_language_is_named_with_the_nearest(world):
    (world / "text.de.en").rename(world / "text.de.xq")
    with pytest.raises(LikewiseError, match="xq"):
        train(
            world,
            "model",
            overrides={
                "stage.0.parallel": [{"source": [str(world / "text.de.xq"), str(world / "text.de.de")]}]
            },
        )


def test_a_reconstruction_that_holds_nothing_is_told(world):
    told = []
    train(world, "model", overrides={"stage.0.weights.reconstruction": 1e-6}, tell=told.append)
    assert any("reconstruction is only 0.00 % of the loss" in line for line in told)


def test_dry_run_says_what_both_stages_will_do(world):
    lines = running.dry_run(read_recipe(str(world / "recipe.toml")), context=running.RunContext(device="cpu"))
    assert lines[0].startswith(
        "stage 0 meaning: 282 translations in 4 languages (de, en, fr, pt); dev set: 20% of them"
    )
    assert any("refines meaning with the mse loss" in line for line in lines)


@pytest.mark.parametrize("name", ["multilingual", "multilingual-paper"])
def test_shipped_recipe_runs_on_tiny_data(world, tiny_encoder, name):
    document, where = named_document(name)
    document["encoder"]["name"] = str(tiny_encoder)
    sides = [str(world / "text.de.en"), str(world / "text.de.de")]
    for stage in document["stage"]:
        stage |= {"epochs": 2, "filter_against": [], "batch_size": 16}
        stage |= {key: [{"source": sides}] for key in stage if key == "parallel"}
        stage |= {key: [{"source": str(world / "rated.csv")}] for key in stage if key in ("data", "dev")}
    report = running.run_recipe(recipe_from(document, where), None, context=running.RunContext(device="cpu"))
    assert [stage["name"] for stage in report.stages] == ["meaning", "similarity"]
    assert report.predictor.score([("the man sings", "the man sings")])["similarity"][0] > 4.5


@pytest.mark.parametrize("name", ["multilingual", "multilingual-paper"])
def test_shipped_recipe_holds_portuguese_out(name):
    text = Path(running.__file__).with_name(f"{name}.toml").read_text()
    assert read_recipe(name).hold_out == ("pt",)
    assert "-pt" not in text
    assert "pt-" not in text


def counted_letters(texts):
    """An encoder of another framework: how often each letter stands in a text."""
    return np.array([[1 + text.count(letter) for letter in "abcdefghilmnoprstuvw"] for text in texts])


def test_any_function_is_an_encoder_and_is_asked_for_again(world):
    predictor = train(world, "model", encoder=counted_letters)
    pairs = list(zip(sentences(6, 1), sentences(6, 2), strict=True))
    with pytest.raises(LikewiseError, match=r"grown on the vectors of 'counted_letters'"):
        likewise.load(world / "model")
    loaded = likewise.load(world / "model", encoder=counted_letters)
    wanted = predictor.score(pairs)["similarity"]
    np.testing.assert_allclose(loaded.score(pairs)["similarity"], wanted, rtol=1e-4, atol=1e-4)
    texts = [text for pair in pairs for text in pair]
    raw = counted_letters([f"the {text}" for text in texts])
    np.testing.assert_allclose(loaded.views(texts)["raw"], raw, rtol=1e-6)
    with pytest.raises(LikewiseError, match="width"):
        likewise.load(world / "model", encoder=lambda texts: np.ones((len(texts), 3)))


def test_vectors_in_a_file_are_an_encoder(world):
    lines = [line for file in world.glob("text.*.*") for line in file.read_text().splitlines()]
    rows = [row.split(",")[:2] for row in (world / "rated.csv").read_text().splitlines()[1:]]
    texts = list(dict.fromkeys([*lines, *(text for row in rows for text in row)]))
    np.savez(world / "vectors.npz", texts=np.array(texts), vectors=counted_letters(texts))
    changes = {"encoder": {"kind": "vectors", "vectors": str(world / "vectors.npz")}}
    predictor = train(world, "model", overrides=changes)
    assert predictor.score([tuple(rows[0])])["similarity"].shape == (1,)
    np.savez(world / "vectors.npz", texts=np.array(texts[:9]), vectors=counted_letters(texts[:9]))
    with pytest.raises(DataError, match=r"vectors\.npz: this file has no vector for .* texts?, such as"):
        train(world, "other", overrides=changes)


def test_a_function_that_gives_nonsense_is_refused(world):
    with pytest.raises(LikewiseError, match=r"returned shape \(3,\) for 3 texts"):
        train(world, "model", encoder=lambda texts: np.ones(len(texts)))


def test_a_function_cannot_be_trained(world, tiny_pairs):
    with pytest.raises(
        RecipeError, match=r"stage\.0: this stage trains the encoder, but the encoder is a function"
    ):
        likewise.train(str(tiny_pairs), encoder=counted_letters)


@pytest.mark.slow
def test_crosslingual_suite_by_the_command_line(world, data_dir):
    """The whole evaluation of a trained model, its frozen encoder beside it, by a real process."""
    train(world, "model")
    command = [sys.executable, "-m", "likewise", "evaluate", str(world / "model"), "--suite", "crosslingual"]
    command += ["--data-dir", str(data_dir), "--report", str(world / "report"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=world)
    result = json.loads(done.stdout)
    assert [pair["name"] for pair in result["pairs"]][:2] == ["en-en", "en-de"]
    assert {probe["view"] for probe in result["probes"]} == {"raw", "model", "language"}
    assert {file.name for file in (world / "report").iterdir()} == {
        "crosslingual.md",
        "crosslingual.json",
        "spread.svg",
        "spread.png",
    }
    # Portuguese text was among the parallel text here, Chinese was not.
    marks = {pair["name"]: pair["held_out_language"] for pair in result["pairs"]}
    assert marks["en-pt"] is False
    assert marks["es-zh"] is True


@pytest.mark.realdata
def test_translations_are_filtered_against_a_retrieval_test(data_dir):
    """Tatoeba's training text and LASER's retrieval test share sentences."""
    first = {"stage.0.parallel": [{"source": "tatoeba/en-ar_train", "limit": 10_000}], "stage.0.dev": []}
    recipe = read_recipe("multilingual", overrides={**first, "stage.0.filter_against": ["tatoeba_laser"]})
    recipe = recipe.model_copy(update={"stage": recipe.stage[:1]})
    [data] = prepared.read_stages(running.jobs_of(recipe, running.RunContext(data_dir=data_dir)))
    test = read_parallel("tatoeba_laser/ar-en_test", data_dir=data_dir)
    keys = {text_key(line) for line in (*test.a, *test.b)}
    assert not any(text_key(line) in keys for text in data.rows.parallel for line in (*text.a, *text.b))
    [line] = [line for line in data.notes if line.startswith("leak filter")]
    assert "of 10,000 rows of tatoeba/en-ar_train" in line or "with a side in tatoeba_laser" in line
    assert len(data.rows.parallel[0]) < 9_800


@pytest.mark.realdata
def test_shipped_recipe_plans_its_real_data(data_dir):
    lines = running.dry_run(read_recipe("multilingual"), context=running.RunContext(data_dir=data_dir))
    assert lines[0].startswith("stage 0 meaning: 125,046 translations in 12 languages")
    assert any("34,433 rated pairs" in line for line in lines)


def test_vectors_that_unpack_to_far_more_than_they_are_packed_to_are_refused(tmp_path):
    from likewise.encoders.external import vectors_file

    np.savez_compressed(tmp_path / "v.npz", texts=np.array(["a"] * 30_000), vectors=np.zeros((30_000, 1000)))
    with pytest.raises(DataError, match="unpacks from"):
        vectors_file(tmp_path / "v.npz")


def test_a_cache_may_lie_inside_the_encoder_it_is_about(tmp_path, tiny_encoder, monkeypatch):
    from likewise.encoders.cache import EmbeddingCache, identify
    from likewise.encoders.sentence import load_encoder
    from likewise.files import note_input, remembering_inputs

    encoder = load_encoder(tiny_encoder, device="cpu")
    with remembering_inputs():
        note_input(tmp_path)
        cache = EmbeddingCache(lambda: encoder, identify(encoder), name="tiny", folder=tmp_path / "cache")
        assert cache.matrix(["a man", "a dog"]).shape == (2, 32)
    assert list((tmp_path / "cache").rglob("*.safetensors"))


def test_a_run_is_told_from_one_that_began_with_another_function():
    from likewise.kinds.building import start_of
    from likewise.kinds.context import RunContext
    from likewise.schema.parts import EncoderSpec

    def lengths(texts):
        return [[float(len(text)), 1.0] for text in texts]

    def others(texts):
        return [[float(len(text)), 2.0] for text in texts]

    marks = [start_of(EncoderSpec(), RunContext(encoder=one)) for one in (lengths, lengths, others)]
    assert marks[0] == marks[1] != marks[2]
