"""A run killed with SIGKILL and resumed ends with the weights of an undisturbed one, bit for bit."""

from __future__ import annotations

import random
import signal

import pytest
from safetensors.numpy import load_file

from likewise.errors import UsageError
from tests.forks import CONTEXT
from tests.training.killing import train_and_maybe_die

# 36 training pairs in batches of 4: 9 steps an epoch, 27 in all.
PLAIN = {
    "stage.0.epochs": 3,
    "stage.0.batch_size": 4,
    "stage.0.save_every": 4,
    "stage.0.evaluate_every": 5,
    "stage.0.anchor": 3.0,
    "stage.0.keep_start": False,
}
# Early stopping after three evaluations without a gain, two micro-batches a step.
STOPPING = {
    **PLAIN,
    "stage.0.accumulation": 2,
    "stage.0.evaluate_every": 2,
    "stage.0.save_every": 3,
    "stage.0.patience": 3,
    "stage.0.epochs": 6,
    "stage.0.learning_rate": 2e-3,
}
# Rates that shrink by what dev said, and weights that are learnt.
SHRINKING = {
    **PLAIN,
    "stage.0.optimiser": "sgd",
    "stage.0.rate_schedule": "infersent",
    "stage.0.learning_rate": 0.5,
    "stage.0.weighting": "uncertainty",
    "stage.0.evaluate_every": 2,
}
# A running mean of the weights is what dev sees and what is kept.
AVERAGED = {**PLAIN, "stage.0.average": 0.9}
STEPS = sorted(random.Random(7).sample(range(2, 27), 3))


@pytest.fixture(scope="module")
def launch(tiny_encoder, tiny_pairs):
    """Run a training in a fresh process; gives its exit code (−9 when it was killed)."""

    def start(folder, settings, *, resume=False, die_in_step=None, die_in_save=None) -> int:
        recipe = {**settings, "encoder.name": str(tiny_encoder)}
        process = CONTEXT.Process(
            target=train_and_maybe_die,
            args=(str(folder), recipe, str(tiny_pairs)),
            kwargs={"resume": resume, "die_in_step": die_in_step, "die_in_save": die_in_save},
        )
        process.start()
        process.join(300)
        return process.exitcode

    return start


def weights_of(folder):
    """Every tensor of a model folder."""
    found = {}
    for file in sorted((folder / "model").rglob("*.safetensors")):
        found |= {f"{file.name}:{name}": value for name, value in load_file(file).items()}
    return found


@pytest.fixture(scope="module")
def undisturbed(launch, tmp_path_factory):
    """Weights of runs that nobody killed, by settings."""
    results = {}
    for name, settings in (
        ("plain", PLAIN),
        ("stopping", STOPPING),
        ("shrinking", SHRINKING),
        ("averaged", AVERAGED),
    ):
        folder = tmp_path_factory.mktemp(name)
        assert launch(folder, settings) == 0
        results[name] = weights_of(folder)
    return results


def assert_same(one, other):
    assert one.keys() == other.keys()
    different = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    assert not different


@pytest.mark.parametrize("step", [*STEPS, 10], ids=[*(f"step{s}" for s in STEPS), "epoch-boundary"])
def test_resume_after_a_kill_in_a_step(launch, undisturbed, tmp_path, step):
    assert launch(tmp_path, PLAIN, die_in_step=step) == -signal.SIGKILL
    assert not (tmp_path / "model").exists()
    assert launch(tmp_path, PLAIN, resume=True) == 0
    assert_same(weights_of(tmp_path), undisturbed["plain"])


@pytest.mark.parametrize("save", [1, 4], ids=["first-save", "later-save"])
def test_resume_after_a_kill_during_a_save(launch, undisturbed, tmp_path, save):
    assert launch(tmp_path, PLAIN, die_in_save=save) == -signal.SIGKILL
    assert launch(tmp_path, PLAIN, resume=True) == 0
    assert_same(weights_of(tmp_path), undisturbed["plain"])


@pytest.mark.parametrize("step", [7, 12])
def test_resume_with_accumulation_and_early_stop(launch, undisturbed, tmp_path, step):
    code = launch(tmp_path, STOPPING, die_in_step=step)
    assert code == -signal.SIGKILL
    assert launch(tmp_path, STOPPING, resume=True) == 0
    assert_same(weights_of(tmp_path), undisturbed["stopping"])


def test_resume_with_rates_that_shrink(launch, undisturbed, tmp_path):
    assert launch(tmp_path, SHRINKING, die_in_step=11) == -signal.SIGKILL
    assert launch(tmp_path, SHRINKING, resume=True) == 0
    assert_same(weights_of(tmp_path), undisturbed["shrinking"])


def test_resume_with_averaged_weights(launch, undisturbed, tmp_path):
    assert launch(tmp_path, AVERAGED, die_in_step=14) == -signal.SIGKILL
    assert launch(tmp_path, AVERAGED, resume=True) == 0
    assert_same(weights_of(tmp_path), undisturbed["averaged"])
    plain = undisturbed["plain"]
    assert any(weights_of(tmp_path)[name].tobytes() != plain[name].tobytes() for name in plain)


def test_resume_twice_killed(launch, undisturbed, tmp_path):
    assert launch(tmp_path, PLAIN, die_in_step=14) == -signal.SIGKILL
    assert launch(tmp_path, PLAIN, resume=True, die_in_step=5) == -signal.SIGKILL
    assert launch(tmp_path, PLAIN, resume=True) == 0
    assert_same(weights_of(tmp_path), undisturbed["plain"])


def test_unfinished_run_is_not_overwritten_by_accident(launch, tmp_path, tiny_pairs, tiny_encoder):
    from likewise.api import train

    assert launch(tmp_path, PLAIN, die_in_step=6) == -signal.SIGKILL
    with pytest.raises(UsageError, match=r"unfinished run\. Continue it with resume=True"):
        train(str(tiny_pairs), tmp_path / "model", encoder=str(tiny_encoder), device="cpu")
    with pytest.raises(UsageError, match="another recipe"):
        train(str(tiny_pairs), tmp_path / "model", encoder=str(tiny_encoder), device="cpu", resume=True)


def test_checkpoints_hold_no_pickle(launch, tmp_path):
    assert launch(tmp_path, PLAIN, die_in_step=20) == -signal.SIGKILL
    files = [file for file in (tmp_path / "model.run").rglob("*") if file.is_file()]
    assert any(file.name == "COMPLETE" for file in files)
    assert {file.suffix for file in files} <= {".json", ".safetensors", ""}
