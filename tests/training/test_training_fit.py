"""fit(): schedules, selection, precision, trackers, refusals."""

from __future__ import annotations

import itertools

import pytest
import torch

from likewise.data import load_records
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError, EvaluationError, UsageError
from likewise.heads import Layers
from likewise.kinds import chunks
from likewise.kinds.pair_steps import PairSteps, learnt_names, pair_batches, row_lengths
from likewise.methods.pairs import Objective, PairModel
from likewise.records import Relation
from likewise.training.fit import fit
from likewise.training.optimiser import make_optimiser, make_rate_schedule
from likewise.training.settings import FitSettings

SIMILARITY, TOPIC = Relation.graded("similarity", 0, 5), Relation.graded("topic", -2, 2)
ONE = [Objective(SIMILARITY, "scalar", "smooth_k2")]
TWO = [*ONE, Objective(TOPIC, "distribution", "kl_grid", pairing=("prod", "absdiff"))]


@pytest.fixture(scope="module")
def records(tiny_pairs):
    return load_records(tiny_pairs, relations=[SIMILARITY, TOPIC])


def fit_pairs(model, records, *, settings, weights=None, **options):
    """Train a model on rated pairs."""

    def prepare(share):
        return pair_batches(model, records, settings, share, weights=weights)

    return fit(model, prepare, settings=settings, **options)


def trained(tiny_encoder, records, tmp_path, objectives, dropout=0.1, **settings):
    """A model after a short run, and its report."""
    torch.manual_seed(0)
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), objectives)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    options = {"batch_size": 8, "max_steps": 4, "device": "cpu", "learning_rate": 1e-3, **settings}
    report = fit_pairs(model, records, settings=FitSettings(**options), run=tmp_path)
    return model, report


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("schedule", ["single", "multi-task"])
def test_fit_one_relation_is_the_same_under_every_schedule(tiny_encoder, records, tmp_path, schedule):
    first, _ = trained(tiny_encoder, records, tmp_path / "a", ONE, schedule="multi-label")
    other, _ = trained(tiny_encoder, records, tmp_path / "b", ONE, schedule=schedule)
    for name, value in weights(first).items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_fit_multi_task_takes_one_step_per_relation(tiny_encoder, records):
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), TWO)
    joint, turns = (
        PairSteps(row_lengths(records), learnt_names(model), FitSettings(batch_size=8, schedule=schedule))
        for schedule in ("multi-label", "multi-task")
    )
    assert turns.count() == 2 * joint.count() == 10
    assert [len(list(steps.of_epoch(0))) for steps in (joint, turns)] == [5, 10]


def test_fit_refuses_schedules_that_do_not_fit(tiny_encoder, records, tmp_path):
    with pytest.raises(UsageError, match="'single' trains one relation"):
        trained(tiny_encoder, records, tmp_path, TWO, schedule="single")
    with pytest.raises(UsageError, match=r"Set accumulation to 1\."):
        trained(tiny_encoder, records, tmp_path, TWO, schedule="multi-task", accumulation=2)


def test_fit_accumulation_equals_the_larger_batch(tiny_encoder, records, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "length_chunks", lambda distinct, features: iter([list(distinct)]))
    options = {
        "order": "fixed",
        "epochs": 1,
        "max_steps": None,
        "clip": 0.0,
        "optimiser": "sgd",
        "dropout": 0.0,
    }
    one, _ = trained(
        tiny_encoder, records[:32], tmp_path / "a", ONE, batch_size=16, freeze=("encoder",), **options
    )
    two, _ = trained(
        tiny_encoder,
        records[:32],
        tmp_path / "b",
        ONE,
        batch_size=8,
        accumulation=2,
        freeze=("encoder",),
        **options,
    )
    head = ONE[0].head_key
    for a, b in zip(one.heads[head].parameters(), two.heads[head].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


def test_fit_selects_the_best_step_and_stops_early(tiny_encoder, records, tmp_path):
    torch.manual_seed(0)
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE)
    scores = iter([0.0, 0.1, 0.5, 0.4, 0.3, 0.2])  # the first before training
    kept = {}

    def evaluate(current):
        value = next(scores)
        kept[value] = weights(current)
        return {"score": value}

    settings = FitSettings(
        batch_size=8, epochs=5, evaluate_every=2, patience=2, device="cpu", learning_rate=1e-3
    )
    report = fit_pairs(model, records, settings=settings, run=tmp_path, evaluate=evaluate, metric="score")
    assert (report.best_step, report.best_value, report.steps) == (4, 0.5, 8)
    for name, value in kept[0.5].items():
        assert torch.equal(value, model.state_dict()[name])


def test_fit_that_is_not_resumable_writes_no_checkpoint_and_learns_the_same(tiny_encoder, records, tmp_path):
    models, files = [], []
    for resumable in (True, False):
        torch.manual_seed(0)
        model, scores = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE), itertools.count()
        run = tmp_path / str(resumable)
        settings = FitSettings(batch_size=8, epochs=2, save_every=3, device="cpu", learning_rate=1e-3)
        fit_pairs(
            model,
            records,
            settings=settings,
            run=run,
            evaluate=lambda current, scores=scores: {"score": float(next(scores))},
            metric="score",
            resumable=resumable,
        )
        models.append(model.state_dict())
        files.append({path.name for path in run.iterdir()})
    assert any(name.startswith("checkpoint") for name in files[0])
    assert {name.partition("-")[0] for name in files[1]} == {"best", "final.safetensors", "done.json"}
    assert len(files[1]) == 3
    for name, value in models[0].items():
        assert torch.equal(value, models[1][name])


def test_fit_bf16_stays_close_to_fp32(tiny_encoder, records, tmp_path):
    full, _ = trained(tiny_encoder, records, tmp_path / "a", ONE, learning_rate=1e-4)
    half, _ = trained(tiny_encoder, records, tmp_path / "b", ONE, learning_rate=1e-4, precision="bf16")
    for name, value in full.state_dict().items():
        assert half.state_dict()[name].dtype == value.dtype
        if value.is_floating_point():
            assert (half.state_dict()[name] - value).abs().max() < 5e-3


@pytest.mark.skipif(torch.accelerator.is_available(), reason="about machines without a GPU")
def test_fit_without_a_gpu_and_without_a_word_about_it(tiny_encoder, records, tmp_path):
    given = {"learning_rate": 1e-4, "precision": "bf16"}
    named, _ = trained(tiny_encoder, records, tmp_path / "a", ONE, **given)
    found, _ = trained(tiny_encoder, records, tmp_path / "b", ONE, device=None, **given)
    for name, value in named.state_dict().items():
        assert torch.equal(value, found.state_dict()[name]), name
    with pytest.raises(UsageError, match=r"fp16 needs a GPU\. Use bf16"):
        trained(tiny_encoder, records, tmp_path / "c", ONE, device=None, precision="fp16")


def test_fit_writes_to_a_tracker_by_name(tiny_encoder, records, tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    trained(tiny_encoder, records, tmp_path, ONE, max_steps=12, trackers=("tensorboard",))
    assert list((tmp_path / "board").rglob("events.out.tfevents*"))


def test_fit_names_a_loss_that_is_no_number(tiny_encoder, records, tmp_path):
    with pytest.raises(EvaluationError, match="Lower learning_rate"):
        trained(tiny_encoder, records, tmp_path, ONE, learning_rate=1e30, max_steps=30, clip=0.0, warmup=0.0)


def test_fit_needs_pairs_and_ratings(tiny_encoder, records, tmp_path):
    with pytest.raises(DataError, match="no training pairs are left"):
        trained(tiny_encoder, [], tmp_path, ONE)
    mood = [Objective(Relation.graded("mood", 0, 1), "scalar", "mse")]
    with pytest.raises(
        DataError, match=r"'mood' has no rating in any of the .* training pairs\W+[Nn]ame its column"
    ):
        trained(tiny_encoder, records, tmp_path, mood)


def test_fit_refuses_a_relation_that_never_varies(tiny_encoder, tmp_path):
    rows = [{"a": f"the cat {i}", "b": f"a dog {i}", "similarity": 3} for i in range(12)]
    records = load_records(rows, relations=[SIMILARITY])
    with pytest.raises(
        DataError, match=r"rows: relation 'similarity' is 3.0 in all 12 rated .*Check the column"
    ):
        trained(tiny_encoder, records, tmp_path, ONE)


def test_fit_missing_relation_leaves_its_head_bit_identical(tiny_encoder, records, tmp_path):
    rated = [record for record in records if record.values["topic"] is not None][:1]
    holes = [record for record in records if record.values["topic"] is None]
    torch.manual_seed(0)
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), TWO)
    before = {n: p.clone() for n, p in model.heads[TWO[1].head_key].named_parameters()}
    weights_of_rows = [1e-9, *[1.0] * len(holes)]
    settings = FitSettings(batch_size=4, max_steps=2, device="cpu", learning_rate=1e-2, weight_decay=0.0)
    fit_pairs(model, [*rated, *holes], settings=settings, run=tmp_path, weights=weights_of_rows)
    for name, parameter in model.heads[TWO[1].head_key].named_parameters():
        assert torch.equal(parameter, before[name])


def test_optimiser_layer_decay_follows_the_paper(tiny_encoder):
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE)
    groups = make_optimiser(model, FitSettings(learning_rate=1.0, layer_decay=0.95)).param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    rates = {names[id(p)]: group["lr"] for group in groups for p in group["params"]}
    decays = {names[id(p)]: group["weight_decay"] for group in groups for p in group["params"]}
    top = next(rate for name, rate in rates.items() if ".layer.1." in name)
    bottom = next(rate for name, rate in rates.items() if ".layer.0." in name)
    assert (top, bottom) == (1.0, 0.95)
    assert next(rate for name, rate in rates.items() if "embeddings" in name) == 1.0
    assert next(rate for name, rate in rates.items() if name.startswith("heads")) == 1.0
    assert all(decay == 0 for name, decay in decays.items() if name.endswith("bias") or "LayerNorm" in name)


@pytest.mark.parametrize(("name", "warm", "end"), [("paper", 0.2, 0.0), ("code", 0.8, 0.9375)])
def test_rate_schedules_of_the_paper_and_of_its_code(name, warm, end):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=1.0)
    settings = FitSettings(rate_schedule=name)
    schedule = make_rate_schedule(optimiser, settings, 1000, steps_per_epoch=1000, shrinks=lambda: 0)
    rates = []
    for _ in range(1000):
        rates.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    assert rates.index(max(rates)) / 1000 == pytest.approx(warm, abs=0.002)
    assert rates[-1] == pytest.approx(end, abs=0.002)


def test_fit_infersent_decays_shrinks_and_stops(tiny_encoder, records, tmp_path):
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE)
    options = {"optimiser": "sgd", "learning_rate": 0.1, "rate_schedule": "infersent", "epochs": 20}
    settings = FitSettings(batch_size=8, device="cpu", select=False, **options)
    values, rates = iter([0.9, 0.5, 0.6, *[0.1] * 20]), {}  # the first before training: no measure for rates
    report = fit_pairs(
        model,
        records,
        settings=settings,
        run=tmp_path,
        evaluate=lambda _: {"score": next(values)},
        metric="score",
        emit=lambda e: rates.update({e.step: e.values["learning_rate"]}) if e.kind == "step" else None,
    )
    # Five steps an epoch; two better evaluations, then ÷ 5 per epoch until the rate is below 1e-5.
    assert rates[10] == pytest.approx(0.1 * 0.99)
    assert rates[20] == pytest.approx(0.1 * 0.99**3 / 5)
    assert report.steps == 5 * 8


@pytest.mark.parametrize("schedule", ["multi-label", "multi-task"])
def test_fit_uncertainty_turns_the_noisier_relation_down(tiny_encoder, records, tmp_path, schedule):
    model, _ = trained(
        tiny_encoder,
        records,
        tmp_path,
        [Objective(SIMILARITY, "scalar", "mse"), Objective(TOPIC, "scalar", "mse", weight=0.01)],
        weighting="uncertainty",
        schedule=schedule,
        head_learning_rate=0.05,
        max_steps=40,
    )
    noisy, quiet = (model.weights()[key] for key in sorted(model.weights()))
    assert noisy < 1.0
    assert quiet / 0.01 > 1.0  # learnt factor of the relation with the small loss


def test_fit_mean_weighting_halves_the_sum(tiny_encoder, records, tmp_path):
    rate = {
        "optimiser": "sgd",
        "max_steps": 1,
        "clip": 0.0,
        "dropout": 0.0,
        "rate_schedule": "constant",
        "warmup": 0.0,
        "weight_decay": 0.0,
    }
    mean, _ = trained(
        tiny_encoder, records, tmp_path / "a", TWO, weighting="mean", **rate | {"learning_rate": 0.02}
    )
    total, _ = trained(
        tiny_encoder, records, tmp_path / "b", TWO, weighting="sum", **rate | {"learning_rate": 0.01}
    )
    for name, value in weights(mean).items():
        torch.testing.assert_close(value, total.state_dict()[name], atol=1e-6, rtol=1e-5)


def test_optimiser_freeze_by_prefix(tiny_encoder):
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE)
    optimiser = make_optimiser(model, FitSettings(freeze=("encoder",)))
    assert sum(len(group["params"]) for group in optimiser.param_groups) == 2
    with pytest.raises(UsageError, match="matches no parameter"):
        make_optimiser(model, FitSettings(freeze=("encodr",)))
    with pytest.raises(UsageError, match="no parameter is left to train"):
        make_optimiser(model, FitSettings(freeze=("encoder", "heads")))


def test_fit_measures_features_once_so_that_an_encoder_s_length_does_not_matter(
    tiny_encoder, records, tmp_path
):
    objectives = [Objective(TOPIC, "distribution", "kl_grid", ("prod", "absdiff"), Layers(scale=True))]
    results = []
    for factor in (1.0, 100.0):
        torch.manual_seed(0)
        model = PairModel(load_encoder(tiny_encoder, device="cpu"), objectives)
        model.encoder.append(_Longer(factor))
        settings = FitSettings(batch_size=8, max_steps=4, device="cpu", freeze=("encoder",))
        fit_pairs(model, records, settings=settings, run=tmp_path / str(factor))
        results.append(model.heads[objectives[0].head_key].layers)
    short, long = results
    assert torch.allclose(long[0].spread[-1] / short[0].spread[-1], torch.tensor(100.0), rtol=1e-3)
    assert torch.allclose(long[1].weight, short[1].weight, atol=1e-5)


class _Longer(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, features):
        return {**features, "sentence_embedding": features["sentence_embedding"] * self.factor}
