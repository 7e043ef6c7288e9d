"""An output is never an input; nothing is replaced or removed that is not ours. Every verb that writes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from likewise import disk
from likewise.api import train
from likewise.cli import main
from likewise.cli.answering import answer_columns
from likewise.cli.demo import NAME, _is_demo, _may_start_again
from likewise.errors import UsageError
from likewise.outputs import (
    RUN_MARK,
    check_beside_inputs,
    check_model_folder,
    check_output_file,
    check_run_folder,
)

ROWS = "text_a,text_b,similarity\n" + "".join(
    f"the dog {n} sleeps {m},a cat {m} plays {n},{(n * m) % 6}\n" for n in range(12) for m in range(6)
)


class Done(NamedTuple):
    """How a command ended, and what it said on standard error."""

    returncode: int
    stderr: str


@pytest.fixture
def likewise(capfd, monkeypatch):
    """The command line in this process: torch is imported once for all."""

    def run(*arguments: object) -> Done:
        disk._swept.cache_clear()  # each command is a process of its own in life
        monkeypatch.setattr(sys, "argv", ["likewise", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, capfd.readouterr().err)

    return run


def tree(folder: Path) -> dict[str, str]:
    """Every file of a folder with a hash of what it holds."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if "runs" not in path.relative_to(folder).parts
    }


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with a table in it, and a folder of documents with another; nothing else lies beside it."""
    folder = tmp_path / "world"
    (folder / "docs").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "pairs.csv").write_text(ROWS)
    (folder / "docs" / "pairs.csv").write_text(ROWS)
    (folder / "docs" / "thesis.txt").write_text("five years of work")
    return folder


@pytest.fixture(scope="module")
def trained(tiny_encoder, tmp_path_factory):
    """A small trained model."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "pairs.csv").write_text(ROWS)
    overrides = {"stage.0.max_steps": 2}
    train(folder / "pairs.csv", folder / "m", encoder=tiny_encoder, device="cpu", overrides=overrides)
    return folder / "m"


def train_command(encoder: Path) -> list[object]:
    return ["train", "pairs.csv", "--encoder", encoder, "--device", "cpu", "--set", "stage.0.max_steps=2"]


@pytest.mark.parametrize("output", ["docs", "docs/", ".", "..", "docs/../docs", "link"])
@pytest.mark.parametrize("source", ["pairs.csv", "docs/pairs.csv"])
def test_train_never_replaces_a_folder_that_is_no_model(likewise, world, tiny_encoder, output, source):
    (world / "link").symlink_to("docs")
    before = tree(world.parent)
    done = likewise(*("train", source, "--encoder", tiny_encoder, "--output", output, "--overwrite"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert tree(world.parent) == before


def test_demo_never_replaces_a_folder_that_is_no_model(likewise, world):
    before = tree(world)
    done = likewise("demo", "--output", "docs")
    assert done.returncode == 2
    assert "docs" in done.stderr
    assert tree(world) == before


def test_train_leaves_a_strangers_partial_folder_and_run_folder_alone(likewise, world, tiny_encoder):
    for name in ("m.partial", "m.run"):
        (world / name).mkdir()
        (world / name / "mine.txt").write_text("mine")
    done = likewise(*train_command(tiny_encoder), "--output", "m", "--overwrite")
    assert done.returncode == 2
    assert "m.run is not a run of Likewise" in done.stderr
    shutil.rmtree(world / "m.run")
    done = likewise(*train_command(tiny_encoder), "--output", "m", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert (world / "m.partial" / "mine.txt").read_text() == "mine"


def test_train_replaces_a_model_of_ours_that_holds_nothing_else(likewise, world, tiny_encoder, trained):
    shutil.copytree(trained, world / "m")
    (world / "m" / "thesis.txt").write_text("mine")
    done = likewise(*train_command(tiny_encoder), "--output", "m", "--overwrite")
    assert done.returncode == 2
    assert "thesis.txt" in done.stderr
    (world / "m" / "thesis.txt").unlink()
    done = likewise(*train_command(tiny_encoder), "--output", "m", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in world.iterdir()) == ["docs", "m", "pairs.csv"]


def test_train_refuses_an_output_that_holds_its_encoder(likewise, world, trained):
    shutil.copytree(trained, world / "m")
    before = tree(world)
    done = likewise(*train_command(Path("m")), "--output", "m", "--overwrite")
    assert done.returncode == 2
    assert "is an input" in done.stderr
    assert tree(world) == before


def test_update_refuses_its_own_model_as_output(likewise, world, trained):
    shutil.copytree(trained, world / "m")
    before = tree(world)
    for output in ("m", "m/new"):
        done = likewise(
            *("update", "m", "--task", "x", "--describe", "same?", "--scale", "0..1", "--mode", "zero"),
            *("--output", output, "--overwrite"),
        )
        assert done.returncode == 2
        assert "is an input" in done.stderr
    assert tree(world) == before


AUDIT = ("audit", "pairs.csv", "--against", "t.csv", "--output")
EVALUATE = ("evaluate", "raw", "--suite", "s.toml", "--output")
SPLIT = ("data", "split", "s/train.csv", "--test", "0.3")
WRITERS = {
    "split over its input": (*SPLIT, "--output", "s"),
    "split over its input, told to": (*SPLIT, "--output", "s", "--overwrite"),
    "split over files that are there": ("data", "split", "pairs.csv", "--output", "s"),
    "audit over its test set": (
        "audit",
        "pairs.csv",
        "--against",
        "t.csv",
        "--output",
        "t.csv",
        "--overwrite",
    ),
    "audit over its training set": (*AUDIT, "./pairs.csv"),
    "audit over a file that is there": (*AUDIT, "k.csv"),
    "audit over a hard link": (
        "audit",
        "pairs.csv",
        "--against",
        "t.csv",
        "--output",
        "hard.csv",
        "--overwrite",
    ),
    "score over its input": ("score", "pairs.csv", "--output", "link.csv", "--overwrite"),
    "score over a file that is there": ("score", "pairs.csv", "--output", "k.csv"),
    "classify over its input": ("classify", "t.csv", "--labels", "a, b", "--output", "t.csv", "--overwrite"),
    "classify over a file that is there": ("classify", "t.csv", "--labels", "a, b", "--output", "k.csv"),
    "explain over its input": ("explain", "p.jsonl", "--output", "p.jsonl", "--overwrite"),
    "explain over a file that is there": ("explain", "p.jsonl", "--output", "k.jsonl"),
    "a page over the input": ("explain", "p.jsonl", "--html", "p.jsonl", "--overwrite"),
    "a page over links": ("explain", "--links", "p.jsonl", "--html", "p.jsonl", "--overwrite"),
    "a page over a file that is there": ("explain", "a text", "b text", "--html", "k.csv"),
    "a result over a test set": (
        "evaluate",
        "raw",
        "--suite",
        "s.toml",
        "--output",
        "t.csv",
        "--overwrite",
    ),
    "a result over its suite": (
        "evaluate",
        "raw",
        "--suite",
        "s.toml",
        "--output",
        "s.toml",
        "--overwrite",
    ),
    "a result over a file that is there": (*EVALUATE, "k.csv"),
    "a summary over a file that is there": ("experiment", "e.toml", "--summary", "sum"),
}


@pytest.mark.parametrize("case", WRITERS)
def test_verbs_write_over_no_input_and_replace_nothing_unasked(likewise, world, case):
    (world / "s").mkdir()
    (world / "sum").mkdir()
    for name in ("s/train.csv", "s/test.csv", "t.csv", "k.csv", "k.jsonl", "sum/small.json"):
        (world / name).write_text(ROWS)
    (world / "link.csv").symlink_to("pairs.csv")
    os.link(world / "pairs.csv", world / "hard.csv")
    (world / "p.jsonl").write_text('{"text_a": "a dog", "text_b": "a cat"}\n')
    (world / "s.toml").write_text(
        'name = "s"\n[[task]]\nname = "t"\nfile = "t.csv"\nrelation = "similarity:0..5"\n'
    )
    (world / "e.toml").write_text(
        'name = "small"\nrecipe = "similarity"\nseeds = [1]\n[[setting]]\nname = "a"\n'
    )
    before = tree(world)
    done = likewise(*WRITERS[case])
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "is an input" in done.stderr or "exists already" in done.stderr
    assert tree(world) == before


def test_split_writes_again_when_told(likewise, world):
    assert likewise("data", "split", "pairs.csv", "--output", "s").returncode == 0
    first = tree(world / "s")
    done = likewise("data", "split", "pairs.csv", "--output", "s", "--seed", "2", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert tree(world / "s").keys() == first.keys()
    assert tree(world / "s") != first


@pytest.mark.parametrize("output", ["docs", "."])
def test_split_wants_a_folder_of_its_own(likewise, world, output):
    before = tree(world)
    done = likewise("data", "split", "pairs.csv", "--output", output, "--overwrite")
    assert done.returncode == 2
    assert "holds other files" in done.stderr
    assert tree(world) == before


def test_split_of_another_shape_does_not_leave_a_stale_part(likewise, world):
    assert likewise("data", "split", "pairs.csv", "--output", "s", "--dev", "0.2").returncode == 0
    done = likewise("data", "split", "pairs.csv", "--output", "s", "--overwrite")
    assert done.returncode == 2
    assert "dev.csv" in done.stderr


def test_demo_replaces_its_own_model_and_not_a_users(world, trained):
    shutil.copytree(trained, world / "demo-model")
    assert not _is_demo(world / "demo-model")
    document = json.loads((trained / "likewise" / "model.json").read_text())
    (world / "demo-model" / "likewise" / "model.json").write_text(json.dumps({**document, "name": NAME}))
    assert _is_demo(world / "demo-model")


@pytest.mark.parametrize("model", ["", NAME, "mine"])
@pytest.mark.parametrize("run", ["", NAME, "mine"])
def test_demo_starts_again_over_its_own_model_and_run_alone(world, trained, model, run):
    output = world / "demo-model"
    if model:
        shutil.copytree(trained, output)
        document = json.loads((trained / "likewise" / "model.json").read_text())
        (output / "likewise" / "model.json").write_text(json.dumps({**document, "name": model}))
    if run:
        (world / "demo-model.run").mkdir()
        mark = json.dumps({"likewise": "run", "recipe": {"name": run}})
        (world / "demo-model.run" / "likewise-run.json").write_text(mark)
    assert _may_start_again(output) is ("mine" not in (model, run))


def test_a_model_that_appears_while_another_is_trained_is_kept(world, trained, tiny_encoder):
    """`demo` may replace its own model and therefore trained with the permission to replace any."""
    output = world / "late"

    def appear(line: str) -> None:
        if not output.exists():
            shutil.copytree(trained, output)

    before = (trained / "likewise" / "model.json").read_bytes()
    with pytest.raises(UsageError, match="was written by somebody else since this command began"):
        train(
            str(world / "pairs.csv"),
            output,
            relations=["similarity:0..5"],
            encoder=str(tiny_encoder),
            overrides={"stage.0.max_steps": 2},
            device="cpu",
            overwrite=True,
            tell=appear,
        )
    assert (output / "likewise" / "model.json").read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_demo_does_not_wait_for_a_run_mark_that_is_a_pipe(world):
    (world / "demo-model.run").mkdir()
    os.mkfifo(world / "demo-model.run" / "likewise-run.json")
    assert not _may_start_again(world / "demo-model")


def test_scores_never_replace_a_column_of_the_input():
    present = ("similarity", "predicted_similarity", "p(x)")
    found = answer_columns(["similarity", "p(x)"], present)
    assert found == {"similarity": "predicted_predicted_similarity", "p(x)": "predicted_p(x)"}


def test_outputs_former_models_hold_no_documents_of_the_users(tmp_path):
    for name in ("2024_thesis/README.md", "likewise/mynotes.docx", "1_Pooling/README.md"):
        model = make_model(tmp_path / name.partition("/")[0] / "m")
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_text("mine")
        with pytest.raises(UsageError, match="did not write"):
            check_model_folder(model, overwrite=True)


def test_outputs_a_device_is_always_written_to(tmp_path):
    check_output_file(Path("/dev/null"), inputs=[tmp_path])


def test_outputs_an_input_that_is_no_file_is_nothing_to_guard(tmp_path):
    check_output_file(tmp_path / "out.csv", inputs=["-", "", "stsb/train", None, object(), "\0", "n" * 300])


def test_outputs_a_file_inside_a_model_that_is_read_is_refused(tmp_path):
    with pytest.raises(UsageError, match="which is an input"):
        check_output_file(tmp_path / "m" / "model.safetensors", inputs=[make_model(tmp_path / "m")])


def test_outputs_folders_of_earlier_versions_are_known_by_the_names_of_their_files(tmp_path):
    model = make_model(tmp_path / "m")
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text("{}")
    check_model_folder(model, overwrite=True)
    (model / "1_Pooling" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"1_Pooling/notes\.txt"):
        check_model_folder(model, overwrite=True)


def test_outputs_a_folder_with_its_list_of_files_is_ours_as_long_as_nothing_else_is_in_it(tmp_path):
    model = make_model(tmp_path / "m", files={"anything.bin": "0"})
    (model / "anything.bin").write_text("x")
    check_model_folder(model, overwrite=True)
    (model / "linked").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="linked"):
        check_model_folder(model, overwrite=True)


@pytest.mark.parametrize("mark", ["", "[]", "{}", '{"likewise": "walk"}', "[" * 100_000])
def test_outputs_a_run_folder_without_our_mark_is_not_ours(tmp_path, mark):
    (tmp_path / "m.run").mkdir()
    (tmp_path / "m.run" / RUN_MARK).write_text(mark)
    with pytest.raises(UsageError, match="not a run of Likewise"):
        check_run_folder(tmp_path / "m.run")


def test_outputs_a_run_folder_that_holds_something_else_is_kept(tmp_path):
    (tmp_path / "m.run" / "stage-0").mkdir(parents=True)
    (tmp_path / "m.run" / RUN_MARK).write_text('{"likewise": "run"}')
    check_run_folder(tmp_path / "m.run")
    (tmp_path / "m.run" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"thesis\.txt"):
        check_run_folder(tmp_path / "m.run")


def test_outputs_a_folder_beside_its_inputs_is_fine(tmp_path):
    (tmp_path / "data").mkdir()
    check_beside_inputs(tmp_path / "data-model", [tmp_path / "data"])


def make_model(folder: Path, files: dict[str, str] | None = None) -> Path:
    (folder / "likewise").mkdir(parents=True)
    document = {"format": 1} if files is None else {"format": 1, "files": files}
    (folder / "likewise" / "model.json").write_text(json.dumps(document))
    for name in () if files else ("config.json", "model.safetensors", "modules.json", "README.md"):
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize("name", ["notes.txt", "checkpoint-00000001/rng_state.pth", "a.pt"])
def test_outputs_a_run_folder_with_a_strangers_file_deep_in_it_is_kept(tmp_path, name):
    work = tmp_path / "m.run"
    for own in (RUN_MARK, "lock", "stage-0/done.json", "stage-0/checkpoint-00000001/COMPLETE"):
        (work / own).parent.mkdir(parents=True, exist_ok=True)
        (work / own).write_text('{"likewise": "run"}')
    check_run_folder(work)
    (work / "stage-0" / name).write_text("mine")
    with pytest.raises(UsageError, match="did not write"):
        check_run_folder(work)


def test_outputs_a_stage_that_is_a_link_is_somebody_elses(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "m.run").mkdir()
    (tmp_path / "m.run" / RUN_MARK).write_text('{"likewise": "run"}')
    (tmp_path / "m.run" / "stage-0").symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match="stage-0"):
        check_run_folder(tmp_path / "m.run")


def test_outputs_a_name_that_no_file_can_have_is_told():
    with pytest.raises(UsageError, match="NUL"):
        check_output_file(Path("a\0b.csv"))


@pytest.fixture
def corpus(tmp_path) -> Path:
    """A named corpus in a data folder, and suite.toml, which asks about it by its name."""
    import lzma

    source = Path(__file__).resolve().parents[2] / "shared" / "data" / "sick" / "trial.tsv.xz"
    if not source.is_file():
        pytest.skip("needs the corpora (LIKEWISE_DATA)")
    file = tmp_path / "corpora" / "sick" / "trial.tsv"
    file.parent.mkdir(parents=True)
    file.write_bytes(lzma.open(source).read())
    (tmp_path / "suite.toml").write_text(
        '[[task]]\nname = "sick"\ncorpus = "sick/trial"\nrelation = "relatedness"\n', encoding="utf8"
    )
    return file


@pytest.mark.realdata
def test_verbs_write_over_no_corpus_that_is_read_by_name(likewise, tmp_path, corpus, tiny_encoder):
    before = corpus.read_bytes()
    (tmp_path / "pairs.csv").write_text(ROWS, encoding="utf8")
    where = ("--data-dir", tmp_path / "corpora", "--output", corpus, "--overwrite")
    for command in (
        ("evaluate", tiny_encoder, "--suite", tmp_path / "suite.toml", "--device", "cpu"),
        ("audit", tmp_path / "pairs.csv", "--against", tmp_path / "suite.toml"),
    ):
        done = likewise(*command, *where)
        assert done.returncode == 2
        assert "is an input" in done.stderr
        assert corpus.read_bytes() == before


def test_evaluate_writes_into_no_model_that_is_read_by_its_name(
    likewise, tmp_path, tiny_encoder, monkeypatch
):
    shutil.copytree(tiny_encoder, tmp_path / "models" / "mine")
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path / "models"))
    (tmp_path / "pairs.csv").write_text(ROWS, encoding="utf8")
    (tmp_path / "suite.toml").write_text(
        f'[[task]]\nname = "pairs"\nfile = "{tmp_path}/pairs.csv"\nrelation = "similarity:0..5"\n',
        encoding="utf8",
    )
    config = tmp_path / "models" / "mine" / "config.json"
    before = config.read_bytes()
    done = likewise("evaluate", "mine", "--suite", tmp_path / "suite.toml", "--output", config, "--overwrite")
    assert done.returncode == 2
    assert "is an input" in done.stderr
    assert config.read_bytes() == before


def test_disk_refuses_what_a_command_has_read_by_whatever_name(tmp_path):
    from likewise.files import note_input, remembering_inputs

    (tmp_path / "folder").mkdir()
    file = tmp_path / "folder" / "in.csv"
    file.write_text("mine", encoding="utf8")
    os.link(file, tmp_path / "same.csv")
    (tmp_path / "linked").symlink_to(tmp_path / "folder")
    with remembering_inputs():
        note_input(file)
        for name in (file, tmp_path / "same.csv", tmp_path / "linked" / "in.csv"):
            with pytest.raises(UsageError, match="is an input"):
                disk.write_text_aside(name, "other")
        with (
            pytest.raises(UsageError, match="is an input"),
            disk.folder_aside(tmp_path / "folder", replace=lambda folder: True),
        ):
            pass
        with pytest.raises(UsageError, match="is an input"):
            _write_what_is_opened_meanwhile(tmp_path / "late.csv")
        note_input(tmp_path / "folder")
        with pytest.raises(UsageError, match="is an input"):
            disk.write_text_aside(tmp_path / "folder" / "new.json", "{}")
        disk.write_text_aside(tmp_path / "beside.csv", "fine")
    assert file.read_text(encoding="utf8") == "mine"
    assert (tmp_path / "late.csv").read_text(encoding="utf8") == "also mine"
    disk.write_text_aside(file, "read by nobody now")


def _write_what_is_opened_meanwhile(path):
    from likewise.files import note_input

    with disk.open_aside(path) as out:
        path.write_text("also mine", encoding="utf8")
        note_input(path)
        out.write(b"other")


def test_a_thread_may_write_what_another_reads_but_not_what_it_reads_itself(tmp_path):
    from likewise.files import note_input, remembering_inputs

    (tmp_path / "a.csv").write_text("mine", encoding="utf8")
    both_began, first_ended = threading.Barrier(2, timeout=30), threading.Event()
    refused = []

    def read_then_write(name: str, *, waits: bool) -> None:
        with remembering_inputs():
            note_input(tmp_path / name)
            both_began.wait()
            if waits:
                assert first_ended.wait(timeout=30)
            try:
                disk.write_text_aside(tmp_path / "a.csv", "other")
            except UsageError:
                refused.append(name)
        first_ended.set()

    (tmp_path / "b.csv").write_text("mine", encoding="utf8")
    threads = [
        threading.Thread(target=read_then_write, args=("b.csv",), kwargs={"waits": False}),
        threading.Thread(target=read_then_write, args=("a.csv",), kwargs={"waits": True}),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["a.csv"]


def test_train_takes_an_empty_folder_and_says_at_once_what_it_does_not_take(likewise, tmp_path, tiny_encoder):
    (tmp_path / "pairs.csv").write_text(ROWS, encoding="utf8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf8")
    command = ("train", tmp_path / "pairs.csv", "--encoder", tiny_encoder, "--device", "cpu")
    few = ("--set", "stage.0.max_steps=1", "--output")
    done = likewise(*command, *few, tmp_path / "full")
    assert done.returncode == 2
    assert "is not a model that Likewise wrote" in done.stderr
    assert "--overwrite" not in done.stderr
    done = likewise(*command, *few, tmp_path / "empty")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "empty" / "likewise" / "model.json").is_file()


def test_split_tells_a_file_and_the_parts_of_another_split_apart(likewise, tmp_path):
    (tmp_path / "pairs.csv").write_text(ROWS, encoding="utf8")
    (tmp_path / "file").write_text("mine", encoding="utf8")
    done = likewise("data", "split", tmp_path / "pairs.csv", "--output", tmp_path / "file", "--overwrite")
    assert done.returncode == 2
    assert "is a file" in done.stderr
    assert (tmp_path / "file").read_text(encoding="utf8") == "mine"
    parts = tmp_path / "parts"
    assert (
        likewise("data", "split", tmp_path / "pairs.csv", "--dev", "0.2", "--output", parts).returncode == 0
    )
    done = likewise("data", "split", tmp_path / "pairs.csv", "--output", parts, "--overwrite")
    assert done.returncode == 2
    assert "holds dev.csv of another split" in done.stderr


def test_evaluate_writes_no_report_over_that_of_another_model(likewise, tmp_path):
    done = likewise("evaluate", "a/m", "b/m", "--suite", "crosslingual", "--report", tmp_path / "r")
    assert done.returncode == 2
    assert "have the same name" in done.stderr


def test_evaluate_writes_over_no_file_behind_a_link_of_its_model(
    likewise, tmp_path, tiny_encoder, tiny_pairs
):
    encoder, store = tmp_path / "enc", tmp_path / "store"
    shutil.copytree(tiny_encoder, encoder)
    store.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (encoder / name).rename(store / name)
        (encoder / name).symlink_to(store / name)
    (tmp_path / "suite.toml").write_text(
        f'[[task]]\nname = "pairs"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n',
        encoding="utf8",
    )
    before = tree(store)
    for name in before:
        command = ("evaluate", encoder, "--suite", tmp_path / "suite.toml", "--overwrite", "--output")
        done = likewise(*command, store / name)
        assert done.returncode == 2
        assert "is an input" in done.stderr
    assert tree(store) == before


@pytest.mark.parametrize("root", ["/", "//"])
def test_train_writes_no_model_to_the_root(likewise, tmp_path, tiny_encoder, root):
    (tmp_path / "pairs.csv").write_text(ROWS, encoding="utf8")
    command = ("train", tmp_path / "pairs.csv", "--encoder", tiny_encoder, "--device", "cpu")
    done = likewise(*command, "--output", root, "--overwrite")
    assert done.returncode == 2
    assert "is the root folder" in done.stderr


def test_train_in_python_replaces_no_model_that_its_encoder_leads_to(tmp_path, tiny_encoder, tiny_pairs):
    few = {"overrides": {"stage.0.max_steps": 1}, "relations": ["similarity:0..5"], "device": "cpu"}
    train(str(tiny_pairs), tmp_path / "m", encoder=tiny_encoder, **few)
    encoder = tmp_path / "linked"
    shutil.copytree(tiny_encoder, encoder)
    (encoder / "0_T").symlink_to(tmp_path / "m")
    modules = json.loads((encoder / "modules.json").read_text())
    modules[0]["path"] = "0_T"
    (encoder / "modules.json").write_text(json.dumps(modules))
    before = tree(tmp_path / "m")
    with pytest.raises(UsageError, match="is an input"):
        train(str(tiny_pairs), tmp_path / "m", encoder=encoder, overwrite=True, **few)
    assert tree(tmp_path / "m") == before
    train(str(tiny_pairs), tmp_path / "m", encoder=tiny_encoder, overwrite=True, **few)


def run_with(tmp_path, arguments, *, stdin=None, stdout=None):
    """The real command, with files as its standard input or output."""
    command = [sys.executable, "-m", "likewise", *map(str, arguments)]
    with ExitStack() as stack:
        given = stack.enter_context(open(stdin, "rb")) if stdin else subprocess.DEVNULL
        taken = stack.enter_context(open(stdout, "ab")) if stdout else subprocess.PIPE
        done = subprocess.run(
            command, cwd=tmp_path, stdin=given, stdout=taken, stderr=subprocess.PIPE, timeout=120
        )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "-", "--output", "rows.csv"],
        ["classify", "-", "--labels", "a, b", "--output", "rows.csv"],
        ["explain", "-", "--phrases", "rules", "--html", "rows.csv"],
        ["audit", "other.csv", "--against", "-", "--output", "rows.csv"],
        ["audit", "-", "--against", "other.csv", "--output", "rows.csv"],
        ["score", "-", "--output", "link.csv"],
    ],
    ids=" ".join,
)
def test_standard_input_is_an_input_where_it_is_a_file(tmp_path, tiny_encoder, here, monkeypatch, arguments):
    (tmp_path / "rows.csv").write_text("text_a,text_b\na dog,a cat\n", encoding="utf8")
    (tmp_path / "other.csv").write_text("text_a,text_b\na man,a cat\n", encoding="utf8")
    os.link(tmp_path / "rows.csv", tmp_path / "link.csv")
    before = (tmp_path / "rows.csv").read_bytes()
    kept = os.dup(0)
    with open(tmp_path / "rows.csv", "rb") as rows:
        os.dup2(rows.fileno(), 0)
        model = [] if arguments[0] == "audit" else ["--model", tiny_encoder]
        try:
            with io.TextIOWrapper(os.fdopen(os.dup(0), "rb")) as stream:
                monkeypatch.setattr("sys.stdin", stream)
                code, said = here(*arguments, *model, "--overwrite")
        finally:
            os.dup2(kept, 0)
            os.close(kept)
    assert code == 2, said
    assert "is an input of this command" in " ".join(said.split())
    assert (tmp_path / "rows.csv").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["score", "explain"])
def test_answers_do_not_go_into_the_file_that_is_read(tmp_path, tiny_encoder, verb):
    rows = [{"text_a": f"a dog {number}", "text_b": "a cat"} for number in range(50)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    before = path.read_bytes()
    code, said = run_with(tmp_path, [verb, path, "--json", "--model", tiny_encoder], stdout=path)
    assert code == 2
    assert "standard output is" in said
    assert path.read_bytes() == before


def test_evaluate_does_not_write_over_its_log_to_be(tmp_path, tiny_encoder, here, monkeypatch):
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    (tmp_path / "pairs.csv").write_text(
        "text_a,text_b,similarity\na dog,a cat,1\na man,a man,5\na,b,2\n", encoding="utf8"
    )
    (tmp_path / "mine.toml").write_text(
        '[[task]]\nname = "mine"\nfile = "pairs.csv"\nrelation = "similarity:0..5"\n', encoding="utf8"
    )
    code, said = here("evaluate", tiny_encoder, "--suite", "mine.toml", "--output", "log.jsonl")
    assert code == 2
    assert "is the log of test runs" in " ".join(said.split())
    assert not (tmp_path / "log.jsonl").exists()
