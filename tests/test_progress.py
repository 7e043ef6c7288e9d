"""Progress of long work in Python: the view of the terminal, on standard error, unless the caller says no."""

from __future__ import annotations

import io

import pytest
from rich.progress import Progress
from transformers.utils import logging as advice

import likewise
from likewise import progress
from likewise.errors import UsageError
from likewise.progress import PrintableConsole, TrainingView


@pytest.fixture(autouse=True)
def library_bars():
    """The bars of transformers are on, as in a program of a user."""
    advice.enable_progress_bar()
    yield
    advice.disable_progress_bar()


@pytest.fixture
def training(tiny_pairs, tiny_encoder):
    """A training of four steps with two evaluations, in memory."""
    keys = {"stage.0.max_steps": 4, "stage.0.evaluate_every": 2}

    def run(**options):
        given = {"encoder": tiny_encoder, "relations": "similarity:0..5", "device": "cpu"}
        return likewise.train(tiny_pairs, overrides=keys, **given, **options)

    return run


def test_progress_of_training_is_shown_as_in_the_terminal(training, here, tiny_pairs, tiny_encoder, capsys):
    training()
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert any(line.startswith("stage 0 pairs: 30 pairs") for line in lines)
    assert sum("/4: dev " in line for line in lines) == 2
    code, told = here(
        "train", tiny_pairs, "--encoder", tiny_encoder, "--relation", "similarity:0..5", "--device", "cpu",
        "--set", "stage.0.max_steps=4", "--set", "stage.0.evaluate_every=2", "--output", "m",
    )  # fmt: skip
    assert code == 0
    assert set(lines) <= set(told.splitlines())


def test_progress_of_training_is_silent_if_quiet_or_replaced(training, capsys):
    training(quiet=True)
    lines, events = [], []
    training(tell=lines.append, emit=events.append)
    training(emit=events.append)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert any(line.startswith("stage 0 pairs") for line in lines)
    assert [one.kind for one in events] == 2 * ["evaluate", "evaluate", "evaluate"]  # step 0, 2 and 4
    assert advice.is_progress_bar_enabled()  # as the program had them


@pytest.mark.parametrize("wrong", [{"quiet": "yes"}, {"tell": 3}, {"emit": "print"}])
def test_progress_options_are_checked(training, wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        training(**wrong)


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal as standard error receives."""
    shown = io.StringIO()
    console = PrintableConsole(file=shown, force_terminal=True, width=100, soft_wrap=True)
    monkeypatch.setattr(progress, "err", console)
    return shown


def test_progress_bar_is_drawn_on_a_terminal_and_vanishes(training, terminal):
    training()
    assert "━" in terminal.getvalue()
    assert "/4" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")  # the bar's line is erased


def test_progress_of_evaluation_counts_texts_unless_quiet(tiny_encoder, tiny_pairs, terminal, capsys):
    rows = {"data": tiny_pairs, "relations": "similarity:0..5", "device": "cpu", "log": False}
    likewise.evaluate(tiny_encoder, **rows, quiet=True)
    done = []
    likewise.evaluate(tiny_encoder, **rows, progress=done.append)
    assert terminal.getvalue() == ""
    assert sum(done) > 0
    likewise.evaluate(tiny_encoder, **rows)
    assert f"evaluating {tiny_encoder.name}" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_progress_stops_when_training_is_interrupted(training, terminal, monkeypatch):
    def interrupt(view, event):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingView, "emit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        training()
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")  # cursor is back
    with Progress(console=progress.err):  # and another bar may start
        pass


def test_progress_of_an_experiment_is_a_line_per_run(tmp_path, tiny_pairs, tiny_encoder, capsys):
    recipe, plan = tmp_path / "recipe.toml", tmp_path / "plan.toml"
    recipe.write_text(
        f'name = "small"\nencoder = "{tiny_encoder}"\n[relation.similarity]\n[[stage]]\n'
        f'data = [{{ source = "{tiny_pairs}" }}]\nmax_steps = 2\n'
        'objective = [{ relation = "similarity", head = "cosine", loss = "mse" }]\n'
    )
    suite = tmp_path / "suite.toml"
    suite.write_text(f'[[task]]\nname = "own"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n')
    plan.write_text(
        f'name = "one"\nrecipe = "{recipe}"\nsuite = "{suite}"\nseeds = [1]\n[[setting]]\nname = "a"\n'
    )
    likewise.experiment(plan, tmp_path / "cells", device="cpu")
    said = capsys.readouterr()
    assert said.out == ""
    assert "a seed 1" in said.err
    likewise.experiment(plan, tmp_path / "others", device="cpu", quiet=True)
    assert capsys.readouterr().err == ""
