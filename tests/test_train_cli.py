"""`likewise train` as a user meets it when something is wrong: interrupts, refusals, remedies, dry runs."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import termios
import time

import pytest

import likewise
from likewise.api import make_recipe
from likewise.cli.console import TrainingView
from likewise.data.parallel import ParallelText
from likewise.data.parallel.reading import ReadReport
from likewise.disk import locked
from likewise.errors import EvaluationError, UsageError
from likewise.kinds.base import Carried, runner_of
from likewise.kinds.context import RunContext
from likewise.kinds.reading import RatedRows, rated_data
from likewise.outputs import RUN_MARK
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of
from likewise.recipes.runfiles import RunMark, same_run
from likewise.records import Record
from likewise.training.state import FitEvent
from tests import forks
from tests.conftest import heed_interrupts

LIKEWISE = [sys.executable, "-m", "likewise"]
GO_ON = (
    "interrupted. Everything up to the last checkpoint is saved. "
    "To continue, repeat the command with --resume."
)


def interrupt(command, ready, folder, stdin=None) -> tuple[int, str]:
    """Press Ctrl-C in a real process as soon as it is `ready`; its exit code and what it said."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=stdin,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    return stop(process, ready)


def stop(process, ready) -> tuple[int, str]:
    """Press Ctrl-C in a process that runs."""
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


@pytest.fixture
def command(tiny_encoder, tiny_pairs):
    """A training of 200 steps that keeps its state every other one."""
    options = ["--encoder", tiny_encoder, "--relation", "similarity:0..5", "--output", "m", "--device", "cpu"]
    settings = ["--set", "stage.0.max_steps=200", "--set", "stage.0.save_every=2"]
    return [*LIKEWISE, "train", *map(str, [tiny_pairs, *options, *settings])]


@pytest.mark.slow
def test_train_interrupted_says_how_to_go_on(command, tmp_path):
    def saved():
        return list(tmp_path.glob("m.run/stage-0/checkpoint-*/COMPLETE"))

    code, said = interrupt(command, saved, tmp_path)
    assert code == 130
    assert said.splitlines()[-1] == GO_ON
    assert "Traceback" not in said
    again = subprocess.run([*command, "--resume"], cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "m").is_dir()
    assert not (tmp_path / "m.run").exists()


def test_train_interrupted_before_a_checkpoint_leaves_nothing(command, tmp_path):
    seldom = [*command, "--set", "stage.0.save_every=100000", "--set", "stage.0.max_steps=100000"]
    process = forks.Fork(*seldom[len(LIKEWISE) :], cwd=tmp_path)
    code, said = stop(process, lambda: (tmp_path / "m.run" / "stage-0").exists())
    assert code == 130
    assert said.splitlines()[-1] == "interrupted before the first checkpoint. Nothing was saved."
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_other_verbs_interrupted_say_so_in_one_line(tmp_path):
    theirs, ours = os.pipe()
    os.write(ours, b"text_a,text_b\n")

    def reading():
        # What was written is gone as soon as somebody reads it.
        return fcntl.ioctl(theirs, termios.FIONREAD, bytes(4)) == bytes(4)

    command = [*LIKEWISE, "data", "check", "-", "--relation", "score:0..5"]
    code, said = interrupt(command, reading, tmp_path, stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert (code, said) == (130, "interrupted\n")


@pytest.fixture
def labelled(tmp_path):
    """A table of labelled pairs; `constant`: the column that says the same of all."""
    rows = "".join(f"a dog {n},the cat {n},{('no', 'yes')[n % 2]},yes\n" for n in range(24))
    (tmp_path / "pairs.csv").write_text(f"text_a,text_b,verdict,constant\n{rows}")
    return tmp_path


@pytest.fixture
def finetune(here, labelled, tiny_encoder):
    """The command line's fine-tuning of that table for two steps."""

    def run(*options):
        given = ["--data", "pairs.csv", "--encoder", tiny_encoder, "--output", "m", "--device", "cpu"]
        return here("train", "finetune", *given, "--set", "stage.0.max_steps=2", *options)

    return run


def test_train_refused_before_its_first_step_does_not_block_the_corrected_command(finetune, labelled):
    code, said = finetune("--relation", "constant:yes|no")
    assert code == 1
    assert "'constant' is yes in all" in said
    assert [file.name for file in labelled.iterdir()] == ["pairs.csv"]
    code, said = finetune("--relation", "verdict:classes")
    assert code == 0, said
    assert (labelled / "m").is_dir()


def test_train_killed_before_a_checkpoint_does_not_block_the_next_one(finetune, labelled):
    begun_run(labelled / "m.run")
    code, said = finetune("--relation", "verdict:classes")
    assert code == 0, said
    assert (labelled / "m").is_dir()
    assert not (labelled / "m.run").exists()


@pytest.mark.parametrize("flag", ["--overwrite", "--resume"])
def test_train_beside_another_into_the_same_folder_is_refused(finetune, labelled, flag):
    begun_run(labelled / "m.run")
    with locked(labelled / "m.run" / "lock", "busy"):
        code, said = finetune("--relation", "verdict:classes", flag)
    assert code == 2
    assert "is in use by another training" in said
    assert (labelled / "m.run" / RUN_MARK).is_file()


def test_train_beside_another_into_the_same_model_by_a_link_is_refused(finetune, labelled):
    code, said = finetune("--relation", "verdict:classes")
    assert code == 0, said
    (labelled / "linked").symlink_to(labelled / "m")
    begun_run(labelled / "m.run")
    with locked(labelled / "m.run" / "lock", "busy"):
        code, said = finetune("--relation", "verdict:classes", "--output", "linked", "--overwrite")
    assert code == 2
    assert "is in use by another training" in said


@pytest.mark.parametrize("flag", [[], ["--resume"], ["--overwrite"]])
def test_train_leaves_a_folder_alone_that_is_no_run(finetune, labelled, flag):
    (labelled / "m.run").mkdir()
    (labelled / "m.run" / "notes.txt").write_text("mine")
    code, said = finetune("--relation", "verdict:classes", *flag)
    assert code == 2
    assert "m.run is not a run of Likewise" in said
    assert (labelled / "m.run" / "notes.txt").read_text() == "mine"


def begun_run(work):
    """A run folder as it is before its first checkpoint."""
    (work / "stage-0").mkdir(parents=True)
    (work / RUN_MARK).write_text('{"likewise": "run", "id": "1"}')


def test_train_that_fails_after_a_checkpoint_is_kept(tiny_encoder, tiny_pairs, tmp_path):
    def fail(event):
        if event.kind == "checkpoint":
            raise EvaluationError("the loss became nan")

    options = {
        "encoder": str(tiny_encoder),
        "relations": ["similarity:0..5"],
        "device": "cpu",
        "overrides": {"stage.0.max_steps": 4, "stage.0.save_every": 2},
    }
    with pytest.raises(EvaluationError, match="became nan"):
        likewise.train(str(tiny_pairs), tmp_path / "m", emit=fail, **options)
    with pytest.raises(UsageError, match=r"unfinished run\. Continue it with resume=True"):
        likewise.train(str(tiny_pairs), tmp_path / "m", **options)
    likewise.train(str(tiny_pairs), tmp_path / "m", resume=True, **options)
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_train_remedy_for_several_relations_is_taken_as_it_stands(finetune, labelled):
    rows = "".join(f"a dog {n},the cat {n},{n % 5},{('no', 'yes')[n % 2]}\n" for n in range(60))
    (labelled / "pairs.csv").write_text(f"text_a,text_b,how near,label\n{rows}")
    code, said = finetune()
    assert code == 1
    assert "pairs.csv: rates how near, label, but only one can be learnt. Declare it: " in said
    remedies = said.strip().partition("Declare it: ")[2].split(" or ")
    assert len(remedies) == 2
    for remedy in remedies:
        code, said = finetune(*shlex.split(remedy), "--overwrite")
        assert code == 0, said


def test_train_remedy_for_no_relation_is_taken_as_it_stands(finetune, labelled):
    rows = "".join(f"a dog {n},the cat {n},{('no', 'yes')[n % 2]}\n" for n in range(60))
    (labelled / "pairs.csv").write_text(f"text_a,text_b,the verdict\n{rows}")
    code, said = finetune()
    assert code == 1
    assert "has the columns the verdict besides its texts, but none looks like a rating" in said
    code, said = finetune(*shlex.split(said.strip().removesuffix(".").partition("as labels with ")[2]))
    assert code == 0, said


@pytest.mark.parametrize("recipe", ["finetune", None])
def test_train_relations_may_be_one_text(labelled, tiny_encoder, recipe):
    source = {"source": recipe, "data": "pairs.csv"} if recipe else {"source": "pairs.csv"}
    source = {name: value if value == recipe else labelled / value for name, value in source.items()}
    made, _ = make_recipe(**source, encoder=str(tiny_encoder), relations="verdict:classes")
    assert list(made.relation) == ["verdict"]


def test_dry_run_refuses_labels_with_an_order_as_the_run_does(finetune, labelled):
    refused = [finetune("--relation", "verdict:no<yes", *option) for option in ([], ["--dry-run"])]
    assert [code for code, _ in refused] == [2, 2]
    for _, said in refused:
        assert (
            'relation.verdict.kind: a joint encoder cannot learn ordered labels. Use "graded" or "classes"'
            in said
        )
    assert [file.name for file in labelled.iterdir()] == ["pairs.csv"]


def test_dry_run_refuses_a_tracker_that_nobody_knows(finetune):
    code, said = finetune("--relation", "verdict:classes", "--tracker", "notebook", "--dry-run")
    assert code == 2
    assert "tracker 'notebook' is unknown. Choose one of" in said


@pytest.mark.parametrize(
    ("features", "two_tower", "expected"),
    [
        ("simple", "true", 'features = "simple" cannot compare texts that are encoded separately'),
        ("cosine", "false", 'features = "cosine" needs texts that are encoded separately'),
    ],
)
def test_dry_run_refuses_features_that_do_not_fit_the_towers(here, labelled, features, two_tower, expected):
    options = ["--set", f"stage.0.features={features}", "--set", f"stage.0.two_tower={two_tower}"]
    code, said = here("train", "paraphrase-injection", "--data", "pairs.csv", *options, "--dry-run")
    assert code == 2
    assert f"stage.0.two_tower: {expected}" in said


def test_dry_run_refuses_too_few_paraphrases_as_the_run_does(here, labelled, tiny_encoder):
    given = ["--data", "pairs.csv", "--encoder", tiny_encoder, "--output", "m", "--device", "cpu"]
    for option in ([], ["--dry-run"]):
        code, said = here("train", "paraphrase-injection", *given, *option)
        assert code == 1
        assert (
            "24 paraphrases leave only 2 for the dev and test sets, but 10 are needed. Use at least 100"
            in said
        )
    assert [file.name for file in labelled.iterdir()] == ["pairs.csv"]


def test_dry_run_refuses_dev_that_tells_no_model_apart(here, tiny_encoder, tiny_pairs, tmp_path):
    (tmp_path / "dev.csv").write_text("text_a,text_b,similarity\n" + "a dog,the cat,3\na man,one cat,3\n" * 5)
    given = ["--encoder", tiny_encoder, "--relation", "similarity:0..5", "--output", "m", "--device", "cpu"]
    for option in ([], ["--dry-run"]):
        code, said = here("train", tiny_pairs, *given, "--set", "stage.0.dev=[{source='dev.csv'}]", *option)
        assert code == 1
        assert "dev.csv: the dev set has too few ratings of similarity to select a model by" in said
    assert [file.name for file in tmp_path.iterdir()] == ["dev.csv"]


def test_dry_run_plans_an_injection_and_writes_nothing(here, tiny_encoder, tmp_path):
    rows = "".join(f"a dog runs {n},the dog {n} is fast\n" for n in range(120))
    (tmp_path / "mine.csv").write_text(f"text_a,text_b\n{rows}")
    code, said = here(
        "train", "paraphrase-injection", "--data", "mine.csv", "--encoder", tiny_encoder, "--dry-run"
    )
    assert code == 0, said
    assert "120 paraphrases, 0 of them with links" in said
    assert [file.name for file in tmp_path.iterdir()] == ["mine.csv"]


def test_plan_of_one_pair_is_said_in_the_singular(here, tiny_encoder, tiny_pairs, tmp_path):
    (tmp_path / "one.csv").write_text("text_a,text_b,similarity\na dog,the cat,3\n")
    given = ["--encoder", tiny_encoder, "--relation", "similarity:0..5", "--dry-run"]
    settings = ["--set", f"stage.0.dev=[{{source='{tiny_pairs}'}}]", "--set", "stage.0.max_steps=1"]
    code, said = here("train", "one.csv", *given, *settings)
    assert code == 0, said
    assert "stage 0 pairs: 1 pair; dev set: pairs.csv (40 rows)" in said
    assert "  1 step (1 per epoch)" in said


def test_plan_over_a_frozen_encoder_is_said_in_the_singular():
    recipe = read_recipe("multilingual", overrides={"stage.0.epochs": 1, "stage.1.epochs": 1})
    text = ParallelText("t", "de", "en", ["Hund"], ["dog"], ReadReport("t", rows=1))
    record = Record(("a dog", "the cat"), {"similarity": 3.0})
    nothing = Carried("", encoder=None, model=None)  # a plan over cached vectors asks for neither
    said = []
    for job in jobs_of(recipe, RunContext()):
        data = rated_data(job, RatedRows([record], None, [0], (text,)), (), [])
        said += runner_of(job.stage).plan(job, data, nothing).lines(job)
    assert ": 1 translation in 2 languages (de, en); dev set: " in said[0]
    assert "at most 1 epoch, " in said[1]
    assert ": 1 rated pair and 1 translation; dev set: none" in said[2]


def test_train_of_single_texts_says_who_learns_those(here, tmp_path):
    (tmp_path / "my notes.csv").write_text("text,score\n" + "".join(f"note {n},{n % 5}\n" for n in range(24)))
    code, said = here("train", "my notes.csv", "--output", "m")
    assert code == 1
    assert "my notes.csv: has one column of texts, 'text', but pairs need two" in said
    assert "likewise train finetune --data 'my notes.csv'" in said


@pytest.mark.parametrize("verb", [["pairs.csv"], ["finetune", "--data", "pairs.csv"]])
def test_train_says_which_labels_it_leaves_out(here, tmp_path, tiny_encoder, verb, caplog):
    rows = "".join(f"a dog {n},the cat {n},{n % 5},{('no', 'yes')[n % 2]},note {n}\n" for n in range(60))
    (tmp_path / "pairs.csv").write_text(f"text_a,text_b,score,verdict,remark\n{rows}")
    code, said = here("train", *verb, "--encoder", tiny_encoder, "--dry-run", "--device", "cpu")
    assert code == 0, said
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "column 'verdict' (no, yes) is not used. If it holds labels, declare it: --relation verdict:classes"
    ]


@pytest.mark.parametrize(
    ("rows", "batch", "epochs"), [(24, 16, 20), (900, 16, 14), (1000, 32, 12), (2999, 32, 5), (3000, 32, 4)]
)
def test_finetune_reads_a_small_table_more_often(tmp_path, tiny_encoder, rows, batch, epochs):
    table = [{"a": f"a dog {n}", "b": f"the cat {n}", "score": n % 5} for n in range(rows)]
    [stage] = make_recipe("finetune", data=table, encoder=str(tiny_encoder))[0].stage
    assert (stage.batch_size, stage.epochs) == (batch, epochs)


@pytest.mark.slow
def test_train_resumed_says_from_where(command, tmp_path):
    def saved():
        return list(tmp_path.glob("m.run/stage-0/checkpoint-*/COMPLETE"))

    interrupt(command, saved, tmp_path)
    result = subprocess.run([*command, "--resume"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    steps = [line for line in result.stderr.splitlines() if "resuming after step" in line]
    assert len(steps) == 1
    assert steps[0].endswith(" of 200")


def test_answers_all_alike_are_said_as_that(capsys):
    with TrainingView() as view:
        view.emit(FitEvent("evaluate", 10, 20, {"score": -1.0, "spearman similarity dev": -1.0}))
        view.emit(FitEvent("evaluate", 20, 20, {"score": 0.5, "spearman similarity dev": 0.5}))
    said = capsys.readouterr().err
    assert "step 10/20: dev – (all answers alike)  (spearman similarity dev – (all answers alike))" in said
    assert "step 20/20: dev 0.5000  (spearman similarity dev 0.5000)" in said


@pytest.mark.parametrize("rows", [None, 7, [1], []])
def test_train_resumes_no_run_whose_mark_is_damaged(tiny_pairs, tmp_path, rows):
    recipe, _ = make_recipe(str(tiny_pairs))
    mark = RunMark(recipe, [{"train": "1"}], {}, id="1")
    (tmp_path / RUN_MARK).write_text(mark.to_json())
    assert same_run(tmp_path, mark) == mark
    (tmp_path / RUN_MARK).write_text(json.dumps({**json.loads(mark.to_json()), "rows": rows}))
    with pytest.raises(UsageError, match=r"is damaged\. Start over with overwrite=True"):
        same_run(tmp_path, mark)


@pytest.mark.parametrize("changed", ["seed", "rows"])
def test_train_stopped_after_its_model_was_complete_is_done_only_for_the_same_run(
    here, tiny_encoder, tiny_pairs, tmp_path, monkeypatch, changed
):
    pairs = tmp_path / "p.csv"
    pairs.write_text(tiny_pairs.read_text())
    command = ("train", "p.csv", "--encoder", tiny_encoder, "--output", "m", "--device", "cpu")
    command += ("--set", "stage.0.max_steps=2")
    monkeypatch.setattr("likewise.recipes.run.remove_run", lambda work: None)
    assert here(*command)[0] == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    if changed == "rows":
        pairs.write_text(pairs.read_text().replace(",1", ",2"))
    code, said = here(*command, "--resume", *(["--seed", "5"] if changed == "seed" else []))
    assert code == 2
    assert "started with another" in said or "changed since" in said
    pairs.write_text(tiny_pairs.read_text())
    code, said = here(*command, "--resume")
    assert code == 0, said
    assert "was already complete when its run was stopped" in said
    assert not (tmp_path / "m.run").exists()


def test_train_resumes_in_the_precision_it_was_started_with(tiny_pairs, tmp_path):
    recipe, _ = make_recipe(str(tiny_pairs))
    (tmp_path / RUN_MARK).write_text(RunMark(recipe, [{}], {}, "fp32", id="1").to_json())
    with pytest.raises(UsageError, match="was started with precision fp32, not bf16"):
        same_run(tmp_path, RunMark(recipe, [{}], {}, "bf16"))


def test_train_keeps_a_file_that_somebody_put_into_its_run_folder(
    here, tiny_encoder, tiny_pairs, tmp_path, caplog
):
    def put(event):
        if event.kind == "evaluate":
            (tmp_path / "m.run" / "train-log.txt").write_text("mine")

    overrides = {"stage.0.max_steps": 2}
    likewise.train(
        str(tiny_pairs),
        tmp_path / "m",
        encoder=str(tiny_encoder),
        device="cpu",
        overrides=overrides,
        emit=put,
    )
    assert (tmp_path / "m").is_dir()
    assert (tmp_path / "m.run" / "train-log.txt").read_text() == "mine"
    assert "holds files that Likewise did not write" in caplog.text
