"""Nothing damaged is gone on from, no lost weights are saved, and after a full disk a run goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import multiprocessing
import os
import resource
import shutil
import signal

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from likewise.data import load_records
from likewise.disk import UnwritableError
from likewise.encoders.sentence import load_encoder
from likewise.errors import EvaluationError, ModelError
from likewise.methods.pairs import PairModel
from likewise.training import checkpoints
from likewise.training.checkpoints import complete_checkpoints, newest_whole
from likewise.training.settings import FitSettings
from likewise.training.vectors import VectorSettings, fit_vectors
from tests.training.test_training_fit import ONE, SIMILARITY, TOPIC, fit_pairs, weights

# Five steps an epoch; checkpoints after every second step, dev after every third: a kill in the evaluation
# after step 12 leaves checkpoints 8 (best so far: 6) and 10 (best: 9).
SETTINGS = FitSettings(
    batch_size=8, epochs=3, evaluate_every=3, save_every=2, device="cpu", learning_rate=1e-3, average=0.9
)


@pytest.fixture(scope="module")
def records(tiny_pairs):
    return load_records(tiny_pairs, relations=[SIMILARITY, TOPIC])


@pytest.fixture(scope="module")
def train(tiny_encoder, records):
    """Train a fresh model on dev scores that rise; `until` is the step whose evaluation never ends."""

    def run(folder, *, until=None, resume=False, settings=SETTINGS):
        torch.manual_seed(0)
        model, events = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE), []

        def evaluate(current):
            seen = sum(event.kind == "evaluate" and event.step > 0 for event in events)
            if until is not None and seen == until // 3 - 1:
                raise KeyboardInterrupt
            return {"score": float(next(current.heads.parameters()).detach().sum())}

        fit_pairs(
            model,
            records,
            settings=settings,
            run=folder,
            evaluate=evaluate,
            metric="score",
            resume=resume,
            emit=events.append,
        )
        return model, [event.step for event in events if event.kind == "resume"]

    return run


@pytest.fixture(scope="module")
def undisturbed(train, tmp_path_factory):
    return weights(train(tmp_path_factory.mktemp("undisturbed"))[0])


@pytest.fixture(scope="module")
def interrupted(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    with pytest.raises(KeyboardInterrupt):
        train(folder, until=12)
    return folder


@pytest.fixture
def run(interrupted, tmp_path):
    shutil.copytree(interrupted, tmp_path / "run")
    assert [folder.name[-2:] for folder in complete_checkpoints(tmp_path / "run")] == ["08", "10"]
    return tmp_path / "run"


def flip(path, at=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * at)] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def rewrite_state(change):
    """Another state with a hash that fits, as a later version or a stranger may write it."""

    def rewrite(path):
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held))
        hash_again(path)

    return rewrite


def hash_again(path):
    marker = json.loads((path.parent / "COMPLETE").read_text())
    marker["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "COMPLETE").write_text(json.dumps(marker))


DAMAGES = {
    "state-unknown": ("state.json", rewrite_state(lambda held: held["run"].update(later=1))),
    "state-word": ("state.json", rewrite_state(lambda held: held["run"].update(best_step="x"))),
    "state-null": ("state.json", rewrite_state(lambda held: held["run"].update(best_value=None))),
    "state-history": ("state.json", rewrite_state(lambda held: held["run"].update(history="x"))),
    "state-stopped": ("state.json", rewrite_state(lambda held: held["run"].update(stopped=True, history=[]))),
    "state-entries": ("state.json", rewrite_state(lambda held: held["run"].update(history=[{"step": "x"}]))),
    "state-without": ("state.json", rewrite_state(lambda held: held.pop("run"))),
    "model-bit": ("model.safetensors", flip),
    "model-header": ("model.safetensors", lambda path: flip(path, 0.0)),
    "model-cut": ("model.safetensors", cut),
    "optimiser-bit": ("optimizer.safetensors", flip),
    "optimiser-missing": ("optimizer.safetensors", os.remove),
    "average-bit": ("average.safetensors", flip),
    "state-cut": ("state.json", cut),
    "state-number": ("state.json", lambda path: path.write_text(path.read_text().replace("0", "1", 1))),
    "trainer-state-cut": ("trainer_state.json", cut),
    "marker-of-before": ("COMPLETE", lambda path: path.write_text("10")),
    "marker-missing": ("COMPLETE", os.remove),
    "marker-empty": ("COMPLETE", lambda path: path.write_text("{}")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_checkpoint_that_is_damaged_is_told_and_the_one_before_it_is_used(
    damage, train, run, undisturbed, caplog
):
    name, spoil = DAMAGES[damage]
    spoil(run / "checkpoint-00000010" / name)
    model, resumed = train(run, resume=True)
    assert resumed == [8]
    assert f"checkpoint-00000010/{name}" in caplog.text
    assert "this checkpoint is removed, and an earlier one is used if there is one" in caplog.text
    assert all(torch.equal(value, undisturbed[key]) for key, value in weights(model).items())


def test_state_of_the_optimiser_that_does_not_fit_is_refused(train, run):
    """The fused optimiser read beyond the end of tensors that were too short."""
    path = run / "checkpoint-00000010" / "optimizer.safetensors"
    held = load_file(path)
    save_file({name: value.reshape(-1)[:1].clone() for name, value in held.items()}, path)
    hash_again(path)
    with pytest.raises(ModelError, match=r"checkpoint-00000010: its state does not fit .* has the shape"):
        train(run, resume=True)


def test_checkpoint_that_is_whole_is_used_without_a_word(train, run, undisturbed, caplog):
    model, resumed = train(run, resume=True)
    assert (resumed, caplog.text) == ([10], "")
    assert all(torch.equal(value, undisturbed[key]) for key, value in weights(model).items())


def test_checkpoint_whose_best_weights_are_damaged_is_not_used(train, run, undisturbed, caplog):
    best = sorted(run.glob("best-*.safetensors"))
    flip(best[-1])
    model, resumed = train(run, resume=True)
    assert best[-1].name in caplog.text
    assert resumed in ([8], [])
    assert all(torch.equal(value, undisturbed[key]) for key, value in weights(model).items())


def test_checkpoints_none_of_which_is_whole_let_the_stage_begin_anew(train, run, undisturbed, caplog):
    for folder in complete_checkpoints(run):
        cut(folder / "optimizer.safetensors")
    model, resumed = train(run, resume=True)
    assert resumed == []
    assert "no undamaged checkpoint is left, so this stage is trained from its beginning" in caplog.text
    assert all(torch.equal(value, undisturbed[key]) for key, value in weights(model).items())


@pytest.mark.parametrize(("name", "spoil"), [("final.safetensors", flip), ("done.json", cut)])
def test_finished_stage_that_is_damaged_is_told_and_finished_again(
    name, spoil, train, run, undisturbed, caplog
):
    train(run, resume=True)
    spoil(run / name)
    model, resumed = train(run, resume=True)
    assert f"{run / name}" in caplog.text
    assert resumed
    assert all(torch.equal(value, undisturbed[key]) for key, value in weights(model).items())
    caplog.clear()
    again, resumed = train(run, resume=True)
    assert (resumed, caplog.text) == ([], "")
    assert all(torch.equal(value, undisturbed[key]) for key, value in weights(again).items())


def test_done_report_names_the_hash_of_weights_that_are_there(train, run):
    train(run, resume=True)
    done = json.loads((run / "done.json").read_text())
    assert done["final_sha256"] == checkpoints.file_sha256(run / "final.safetensors")


# Vectors have a loop of their own.


class Line:
    """A line through eight points, for the loop over vectors; `dev` gives the score of an evaluation."""

    pairs = 8

    def __init__(self, module, dev=None, spoil=None):
        self.module, self.dev, self.spoil, self.seen = module, dev, spoil, 0

    def losses(self, epoch):
        x = torch.linspace(-1, 1, 8)[:, None]
        for step in range(3):
            loss = (self.module(x) - 3 * x + 1).square().mean()
            yield loss * math.nan if self.spoil == (epoch, step) else loss

    def at_start(self):
        return {"score": -math.inf}

    def evaluate(self):
        self.seen += 1
        with torch.no_grad():
            return {"score": self.dev(self.seen) if self.dev else -float(self.module.weight.sum())}


def fit_line(folder, *, resume=False, epochs=6, resumable=True, **task):
    torch.manual_seed(0)
    module = nn.Linear(1, 1)
    settings = VectorSettings(epochs=epochs, patience=None, learning_rate=0.1)
    fit_vectors(module, Line(module, **task), settings, run=folder, resume=resume, resumable=resumable)
    return weights(module)


def stop_at(number):
    def dev(seen):
        if seen == number:
            raise KeyboardInterrupt
        return float(seen)

    return dev


@pytest.mark.parametrize(
    "damage", [name for name in DAMAGES if "average" not in name and "trainer" not in name]
)
def test_vector_checkpoint_that_is_damaged_is_told_and_the_one_before_it_is_used(damage, tmp_path, caplog):
    wanted = fit_line(tmp_path / "whole", dev=float)
    with pytest.raises(KeyboardInterrupt):
        fit_line(tmp_path / "run", dev=stop_at(5))
    name, spoil = DAMAGES[damage]
    folder = complete_checkpoints(tmp_path / "run")[-1]
    assert folder.name == "checkpoint-00000012"
    spoil(folder / name)
    found = fit_line(tmp_path / "run", resume=True, dev=lambda seen: float(seen + 3))
    assert f"{folder.name}/{name}" in caplog.text
    assert found == wanted


def test_vector_run_that_is_killed_between_a_best_and_its_checkpoint_goes_on_where_it_was(
    tmp_path, monkeypatch, caplog
):
    wanted = fit_line(tmp_path / "whole", dev=float)
    write = checkpoints.write_checkpoint

    def die(run, step, **parts):
        if step == 12:
            raise KeyboardInterrupt
        return write(run, step, **parts)

    monkeypatch.setattr("likewise.training.vectors.write_checkpoint", die)
    with pytest.raises(KeyboardInterrupt):
        fit_line(tmp_path / "run", dev=float)
    monkeypatch.undo()
    assert newest_whole(tmp_path / "run").folder.name == "checkpoint-00000009"
    assert fit_line(tmp_path / "run", resume=True, dev=lambda seen: float(seen + 3)) == wanted
    assert caplog.text == ""
    assert len(list((tmp_path / "run").glob("best-*"))) <= 2


# Numbers that are none.


def test_fit_looks_at_the_loss_of_every_step(train, tmp_path, monkeypatch):
    """Twelve steps: the tenth is looked at, and what is lost after it was saved with exit 0 before."""
    forward, steps = PairModel.forward, []

    def spoilt(self, *given, **options):
        found = forward(self, *given, **options)
        steps.append(1)
        if len(steps) == 11:
            found["loss"] = found["loss"] * math.nan
        return found

    monkeypatch.setattr(PairModel, "forward", spoilt)
    settings = FitSettings(batch_size=8, max_steps=12, device="cpu", select=False, evaluate_every=100)
    with pytest.raises(EvaluationError, match=r"Lower learning_rate, set clip, or use precision fp32"):
        train(tmp_path / "run", settings=settings)
    assert not (tmp_path / "run" / "done.json").exists()


def test_fit_saves_no_weights_that_are_lost_in_the_last_step(tiny_encoder, records, tmp_path, monkeypatch):
    from likewise.training.callbacks import SelectAndSave

    torch.manual_seed(0)
    model = PairModel(load_encoder(tiny_encoder, device="cpu"), ONE)
    end = SelectAndSave.on_step_end

    def lose(self, args, state, control, **rest):
        done = end(self, args, state, control, **rest)
        if state.global_step == 4:
            next(model.heads.parameters()).data[0] = math.inf
        return done

    monkeypatch.setattr(SelectAndSave, "on_step_end", lose)
    settings = FitSettings(batch_size=8, max_steps=4, device="cpu")
    with pytest.raises(EvaluationError, match=r"the weights of heads.* became infinite or NaN"):
        fit_pairs(model, records, settings=settings, run=tmp_path)
    assert not (tmp_path / "done.json").exists()
    assert not (tmp_path / "final.safetensors").exists()


def test_fit_writes_no_checkpoint_and_no_best_of_lost_weights(train, tmp_path):
    settings = FitSettings(
        batch_size=8, max_steps=9, device="cpu", learning_rate=1e38, clip=0.0, warmup=0.0, save_every=1
    )
    with pytest.raises(EvaluationError, match="Lower learning_rate"):
        train(tmp_path / "run", settings=settings)
    for folder in complete_checkpoints(tmp_path / "run"):
        kept = checkpoints.load_file(folder / "model.safetensors")
        assert all(torch.isfinite(value).all() for value in kept.values() if value.is_floating_point())


def test_selection_never_takes_a_dev_number_that_is_none(tmp_path):
    scores = [0.5, math.nan, math.inf, 0.4, 0.6, math.nan]
    fit_line(tmp_path, dev=lambda seen: scores[seen - 1])
    done = json.loads((tmp_path / "done.json").read_text())
    assert (done["best_step"], done["best_value"]) == (15, 0.6)


def test_vector_loop_looks_at_the_loss_of_every_step(tmp_path):
    with pytest.raises(EvaluationError, match="Lower learning_rate"):
        fit_line(tmp_path, dev=float, spoil=(2, 0))
    assert not (tmp_path / "done.json").exists()
    assert len(complete_checkpoints(tmp_path)) == 2


# Disks that are full.


def grow_no_further(folder, limit):
    """Train in this process, where no file may grow beyond a limit; what is said stands in said.txt."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        fit_line(folder / "run", dev=float, resume=True)
    except UnwritableError as error:
        (folder / "said.txt").write_text(str(error))


def test_full_disk_is_said_and_the_run_goes_on_from_the_checkpoint_before(tmp_path, caplog):
    wanted = fit_line(tmp_path / "whole", dev=float)
    with pytest.raises(KeyboardInterrupt):
        fit_line(tmp_path / "run", dev=stop_at(4))
    process = multiprocessing.get_context("fork").Process(target=grow_no_further, args=(tmp_path, 600))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    said = (tmp_path / "said.txt").read_text()
    assert "cannot be written (File too large). Check the folder, its permissions and the space left" in said
    assert str(tmp_path / "run") in said
    left = {path.name.partition("-")[0] for path in (tmp_path / "run").iterdir()}
    assert left == {"checkpoint", "best"}
    assert fit_line(tmp_path / "run", resume=True, dev=lambda seen: float(seen + 3)) == wanted
    assert caplog.text == ""


def test_checkpoint_says_why_where_a_library_hides_it(tmp_path, monkeypatch):
    from safetensors import SafetensorError

    def full(tensors, path):
        path.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(UnwritableError, match="No space left on device"):
        fit_line(tmp_path / "run", dev=float)
    assert list((tmp_path / "run").iterdir()) == []


def test_run_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(UnwritableError, match=r"run/stage-0: this cannot be written"):
        fit_line(tmp_path / "run" / "stage-0", dev=float)


def test_checkpoints_of_a_run_are_logged_under_the_name_of_the_house(caplog, tmp_path):
    (tmp_path / "checkpoint-00000001").mkdir()
    with caplog.at_level(logging.WARNING, logger="likewise"):
        assert newest_whole(tmp_path) is None
    assert {record.name for record in caplog.records} == {"likewise"}


def test_a_pickle_laid_into_a_checkpoint_is_never_opened(tmp_path):
    """The Trainer looks for its own files by name; ours have none of them."""
    folder = checkpoints.checkpoint_folder(tmp_path, 1)
    model = torch.nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(model.parameters())
    checkpoints.write_checkpoint(tmp_path, 1, model=model, optimiser=optimiser, state={"run": {}})
    assert checkpoints.newest_whole(tmp_path) is not None
    (folder / "rng_state.pth").write_bytes(b"\x80\x04")
    assert checkpoints.newest_whole(tmp_path) is None


def test_a_checkpoint_that_lists_a_pickle_as_its_own_is_not_whole(tmp_path):
    folder = checkpoints.checkpoint_folder(tmp_path, 1)
    model = torch.nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(model.parameters())
    checkpoints.write_checkpoint(tmp_path, 1, model=model, optimiser=optimiser, state={"run": {}})
    (folder / "optimizer.pt").write_bytes(b"\x80\x04")
    marker = json.loads((folder / "COMPLETE").read_text())
    marker["files"]["optimizer.pt"] = checkpoints.file_sha256(folder / "optimizer.pt")
    (folder / "COMPLETE").write_text(json.dumps(marker))
    assert checkpoints.newest_whole(tmp_path) is None


def test_folders_that_are_not_called_as_ours_and_links_are_left_alone(tmp_path):
    other = tmp_path / "somebody" / "checkpoint-00000500"
    other.mkdir(parents=True)
    (tmp_path / "run" / "checkpoint-500").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint-00000007").symlink_to(other)
    (tmp_path / "linked").symlink_to(tmp_path / "somebody")
    for run in ("run", "linked"):
        assert checkpoints.newest_whole(tmp_path / run) is None
    assert other.is_dir()
    assert (tmp_path / "run" / "checkpoint-500").is_dir()


@pytest.mark.parametrize("change", [{"optimiser": None}, {"rate_schedule": None}, {"rate_schedule": 7}])
def test_checkpoint_whose_state_does_not_fit_is_named(train, run, change):
    rewrite_state(lambda held: held.update(change))(run / "checkpoint-00000010" / "state.json")
    with pytest.raises(ModelError, match="checkpoint-00000010: its state does not fit this training"):
        train(run, resume=True)
