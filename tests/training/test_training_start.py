"""The model before training is a candidate of every selection, and of nothing else."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

import likewise
from likewise.data import load_records
from likewise.encoders.sentence import load_encoder
from likewise.heads import Layers
from likewise.kinds.base import DevSet
from likewise.kinds.devscore import Measured, measured_parts, set_numbers
from likewise.kinds.pair_steps import pair_batches
from likewise.methods.pairs import Objective, PairModel
from likewise.predict.pairs import Predictor
from likewise.records import Record, Relation
from likewise.training.sampler import Share
from likewise.training.settings import FitSettings
from tests.training.test_training_fit import ONE, SIMILARITY, TOPIC, fit_pairs, weights

SETTINGS = FitSettings(batch_size=8, epochs=2, evaluate_every=2, device="cpu", learning_rate=1e-3)


@pytest.fixture(scope="module")
def records(tiny_pairs):
    return load_records(tiny_pairs, relations=[SIMILARITY, TOPIC])


def fitted(tiny_encoder, records, folder, scores, **changes):
    """A model trained against given dev numbers, the weights that it came with, and what training told."""
    torch.manual_seed(0)
    model, events = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE), []
    began, values = weights(model), iter(scores)
    report = fit_pairs(
        model,
        records,
        settings=FitSettings(**{**vars_of(SETTINGS), **changes}),
        run=folder,
        evaluate=lambda _: {"score": next(values)},
        metric="score",
        emit=events.append,
    )
    return model, began, report, events


def vars_of(settings):
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}


def test_a_start_that_no_step_beats_is_kept(tiny_encoder, records, tmp_path):
    model, began, report, events = fitted(tiny_encoder, records, tmp_path, [0.9, *[0.5] * 20])
    assert (report.best_step, report.best_value) == (0, 0.9)
    assert report.history[0] == {"step": 0, "score": 0.9}
    assert next(event.step for event in events if event.kind == "evaluate") == 0
    assert all(torch.equal(value, began[name]) for name, value in weights(model).items())


@pytest.mark.parametrize("changes", [{"keep_start": False}, {"select": False}])
def test_a_start_is_left_out_if_the_settings_say_so(changes, tiny_encoder, records, tmp_path):
    scores = [0.9, *[0.5] * 20]
    model, began, report, _ = fitted(tiny_encoder, records, tmp_path, scores, **changes)
    assert report.best_step > 0
    assert report.history[0] == {"step": 0, "score": 0.9}  # it is looked at all the same
    assert not all(torch.equal(value, began[name]) for name, value in weights(model).items())


def test_patience_waits_for_what_training_reaches_not_for_the_start(tiny_encoder, records, tmp_path):
    """Training that climbs below its start may pass it yet."""
    scores = [0.9, 0.1, 0.2, 0.3, 0.2, 0.1, 0.0]
    _, _, report, _ = fitted(tiny_encoder, records, tmp_path, scores, patience=2, epochs=20)
    assert report.steps == 2 * 5  # the third look was the best, two more were not
    assert report.best_step == 0


def write_ratings(path, sign):
    """Sixty pairs whose ratings follow shared words, or go against them."""
    words = "old man plays guitar park woman sings child runs cat sleeps river".split()
    rows = ["text_a,text_b,similarity"]
    draw = random.Random(3)
    for _ in range(60):
        a, b = draw.sample(words, 4), draw.sample(words, 4)
        b[: draw.randrange(4)] = a[: draw.randrange(4)]
        shared = len(set(a) & set(b))
        rows.append(f"{' '.join(a)},{' '.join(b)},{shared if sign > 0 else 4 - shared}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_training_that_ruins_the_encoder_keeps_it_and_says_so(tiny_encoder, tmp_path):
    """A rate that destroys: what is saved answers like the encoder, and the sentence and the card tell it."""
    told = []
    model = likewise.train(
        str(write_ratings(tmp_path / "pairs.csv", +1)),
        tmp_path / "model",
        relations=["similarity:0..4"],
        encoder=str(tiny_encoder),
        overrides={"stage.0.learning_rate": 0.5, "stage.0.dev": [{"source": str(tmp_path / "pairs.csv")}]},
        device="cpu",
        tell=told.append,
    )
    texts = ["old man plays guitar", "child runs"]
    raw = likewise.load(tiny_encoder, device="cpu")
    assert np.allclose(model.encode(texts), raw.encode(texts), atol=1e-6)
    kept = "no evaluation step was better than the starting model, so the starting model was kept"
    assert kept in told[-1]
    document = json.loads((tmp_path / "model" / "likewise" / "model.json").read_text())
    assert document["stages"][0]["best_step"] == 0
    [gain] = document["gains"]
    assert gain["kept_start"]
    assert gain["difference"]["difference"] == 0
    assert kept in (tmp_path / "model" / "README.md").read_text()


def test_a_training_that_gains_says_so_with_an_interval(tiny_encoder, tmp_path):
    """Ratings against shared words: the cosine cannot answer them, what was trained can."""
    told = []
    source = str(write_ratings(tmp_path / "pairs.csv", -1))
    objective = {"relation": "similarity", "head": "scalar", "loss": "mse", "scale_features": True}
    model = likewise.train(
        source,
        relations=["similarity:0..4"],
        encoder=str(tiny_encoder),
        overrides={
            "stage.0.dev": [{"source": source}],
            "stage.0.objective": [{**objective, "pairing": ["prod", "absdiff"]}],
            "stage.0.head_learning_rate": 0.05,
        },
        device="cpu",
        tell=told.append,
    )
    by = {"head": "its head", "mean": "the mean of its cosine and its head"}[model.source("similarity")]
    assert told[-1].startswith("similarity: spearman ×100 on 60 dev rows is -")
    assert " for the encoder's cosine before training and " in told[-1]
    assert "% confidence interval +" in told[-1]
    assert f" for the model, which answers by {by}. The difference is +" in told[-1]
    assert told[-1].endswith(" Verdict: better.")


def test_few_dev_rows_tell_nothing_and_the_sentence_says_what_would(tiny_encoder, tmp_path):
    told = []
    source = write_ratings(tmp_path / "pairs.csv", -1)
    likewise.train(
        str(source),
        relations=["similarity:0..4"],
        encoder=str(tiny_encoder),
        overrides={"stage.0.learning_rate": 1e-3},
        device="cpu",
        tell=told.append,
    )
    assert "on 15 dev rows" in told[-1]
    verdict = "Verdict: cannot tell (only 15 rows are there, but at least 30 are needed). "
    assert told[-1].endswith(
        f"{verdict}Give more dev rows, or measure both on a test file with `likewise evaluate`."
    )


def test_a_head_that_sees_the_cosine_begins_as_the_line_from_cosine_to_rating(tiny_encoder, records):
    """Before its first step it ranks as the encoder does, and answers where people rated."""
    pairing = ("absdiff", "cosine")
    one = Objective(SIMILARITY, "scalar", "mse", pairing=pairing, layers=Layers(scale=True))
    torch.manual_seed(0)
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), [one])
    pair_batches(model, records, SETTINGS, Share(0, 1, True))
    ready = Predictor(model)
    rows = [record.texts for record in records]
    cosine = ready.embedding().cosines(rows)
    rated = np.array([record.values["similarity"] for record in records], dtype=float)
    slope, offset = np.polyfit(cosine, rated, 1)
    said = ready.said(rows, "similarity")["head"]
    assert np.allclose(said, slope * cosine + offset, atol=1e-3)
    assert np.ptp(said) > 0


def test_a_small_dev_set_does_not_count_beside_a_larger_one():
    """Ten rows would weigh as much as three hundred, and say next to nothing."""
    small = DevSet("small", rows_rated([0, 1, 2] * 3))
    large = DevSet("large", rows_rated([0, 1, 2] * 12))
    one = Measured(Relation("r", lo=0, hi=2), "spearman")
    assert [part.name for part in measured_parts(one, [small, large])] == ["large"]
    assert measured_parts(one, [small, large])[0].places == list(range(9, 45))
    assert [part.name for part in measured_parts(one, [small])] == ["small"]
    wrong = np.concatenate([np.arange(9.0), [record.values["r"] for record in large.records]])
    assert set_numbers([small, large], {one: wrong}) == {"spearman r large": pytest.approx(1.0)}


def rows_rated(values):
    return [Record((f"a {n}", f"b {n}"), {"r": value}) for n, value in enumerate(values)]
