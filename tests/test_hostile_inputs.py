"""Command line and Python functions under hostile or unlucky inputs: they end, in words, with a code."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import re
import subprocess
import sys
import time

import numpy
import pandas
import pytest

import likewise
from likewise import progress
from likewise.cli import console
from likewise.cli.console import printable, printable_json
from likewise.documents import MAX_BYTES, parse_toml, read_toml, validate
from likewise.errors import LikewiseError, RecipeError, UsageError
from likewise.evaluation.suite_files import read_suite
from likewise.experiments.schema import read_experiment
from likewise.recipes.reading import read_recipe
from likewise.schema.recipe import Recipe

LIKEWISE = [sys.executable, "-m", "likewise"]
ESCAPE, TITLE = "\x1b[31m", "\x1b]0;owned\x07"


def run(command, folder, **options):
    """A real process: its exit code and what it said, in bytes; it has a minute."""
    shared = {"cwd": folder, "timeout": 60, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run([*LIKEWISE, *map(str, command)], **{**shared, **options}, check=False)
    assert b"Traceback" not in (done.stderr or b"")
    return done


@pytest.fixture
def pairs(tmp_path):
    """Two rated pairs."""
    path = tmp_path / "pairs.csv"
    path.write_text("text_a,text_b,score\na man,a dog,1\na cat,a child,4\n")
    return path


# Pipes, devices, folders


@pytest.mark.parametrize(
    "command",
    [
        ("data", "check", "pipe.csv"),
        ("data", "split", "pipe.csv", "--output", "o"),
        ("audit", "pipe.csv", "--against", "pairs.csv"),
        ("audit", "pairs.csv", "--against", "pipe.toml"),
        ("score", "pipe.csv"),
        ("classify", "pipe.csv", "--labels", "a, b"),
        ("explain", "pipe.csv"),
        ("explain", "--links", "pipe.jsonl"),
        ("train", "pipe.csv"),
        ("train", "pipe.toml"),
        ("train", "similarity", "--data", "pipe.csv"),
        ("train", "pairs.csv", "--set", 'stage.0.dev=[{source="pipe.csv"}]'),
        ("evaluate", "raw", "--suite", "pipe.toml"),
        ("experiment", "pipe.toml"),
    ],
    ids=" ".join,
)
def test_cli_never_waits_for_a_pipe(here, pairs, tmp_path, command):
    for ending in ("csv", "toml", "jsonl"):
        os.mkfifo(tmp_path / f"pipe.{ending}")
    code, said = here(*command)
    assert code in (1, 2)
    assert "is a named pipe, which may never end" in said


def test_cli_refuses_links_in_a_circle_and_paths_through_files(here, pairs, tmp_path):
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    (tmp_path / "folder.toml").mkdir()
    assert here("score", "circle.csv")[0] == 1
    assert here("score", "pairs.csv/x.csv")[0] == 1
    code, said = here("train", "folder.toml")
    assert (code, "is a folder" in said) == (2, True)
    code, said = here("evaluate", "--suite", "pairs.csv/x.toml", "raw")
    assert (code, "a part of the path is a file" in said) == (2, True)


@pytest.mark.parametrize("name", ["x" * 300, "😀" * 100])
def test_cli_takes_long_texts_and_names_for_what_they_are(here, tmp_path, name):
    for command in (
        ("data", "check", f"{name}.csv"),
        ("score", name),
        ("explain", name),
        ("train", f"{name}.toml"),
        ("train", f"{name}.csv"),
        ("experiment", f"{name}.toml"),
        ("data", "list", "--data-dir", name),
    ):
        code, said = here(*command)
        assert code in (1, 2), (command, said)
        assert "bug" not in said


# Standard input and output


def test_closed_standard_input_is_told(pairs, tmp_path):
    done = run(["data", "check", "-"], tmp_path, preexec_fn=lambda: os.close(0))
    assert done.returncode == 1
    assert b"stdin: standard input is closed" in done.stdout


def test_empty_standard_input_is_told(tmp_path):
    done = run(["data", "check", "-"], tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert b"is empty" in done.stdout


def test_a_terminal_as_standard_input_is_not_waited_for(tmp_path):
    ours, theirs = pty.openpty()
    try:
        done = run(["data", "check", "-"], tmp_path, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 1
    assert b"is a terminal" in done.stdout


def test_standard_input_without_line_ends_takes_no_memory(tmp_path):
    with open("/dev/zero", "rb") as zeros:
        done = run(["data", "check", "-"], tmp_path, stdin=zeros)
    assert done.returncode == 1
    assert b"this line has more than 10 MB" in done.stdout


@pytest.mark.parametrize(
    "command",
    [("data", "check", "pairs.csv"), ("data", "list", "--json"), ("--help",), ("--version",)],
    ids=str,
)
def test_a_full_standard_output_is_one_line_and_a_code(pairs, tmp_path, command):
    with open("/dev/full", "wb") as full:
        done = run(command, tmp_path, stdout=full)
    assert done.returncode == 1
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("error: ")
    assert line.endswith("there is no space left on the disk. Free some space, or write elsewhere.")


def test_a_closed_standard_output_is_one_line_and_a_code(pairs, tmp_path):
    for command in (["data", "check", "pairs.csv"], ["data", "check", "pairs.csv", "--json"], ["--version"]):
        done = run(command, tmp_path, preexec_fn=lambda: os.close(1))
        assert done.returncode == 1
        assert done.stderr == b"error: standard output: it is closed. Open it for the command.\n"


def test_all_streams_closed_still_ends_with_a_code(pairs, tmp_path):
    done = run(["data", "check", "pairs.csv"], tmp_path, preexec_fn=lambda: os.closerange(0, 3))
    assert done.returncode == 1


def test_a_reader_that_goes_away_is_no_error(pairs, tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m likewise data list | true"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""


def test_score_writes_rows_whatever_the_encoding(here, pairs, tiny_encoder, monkeypatch):
    pairs.write_text("text_a,text_b,ü\na man,a dog,日本\n", encoding="utf8")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    code, said = here("score", "pairs.csv", "--model", tiny_encoder)
    assert code == 0, said
    assert written.getvalue().decode("utf8").startswith("text_a,text_b,ü,similarity\na man,a dog,日本,")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_score_on_a_full_disk_is_one_line_and_a_code(here, pairs, tiny_encoder, monkeypatch, more):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, said = here("score", "pairs.csv", "--model", tiny_encoder, *more)
    assert code == 1
    assert (
        said.splitlines()[-1]
        == "error: standard output: there is no space left on the disk. Free some space, or write elsewhere."
    )


def test_output_in_ascii_escapes_and_stays_json(tmp_path):
    (tmp_path / "ü.csv").write_text("text_a,text_b\na,b\n")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(["data", "check", "ü.csv"], tmp_path, env=ascii_only)
    assert done.returncode == 0
    assert done.stdout.startswith(b"\\xfc.csv: 1 row")
    done = run(["data", "check", "ü.csv", "--json"], tmp_path, env=ascii_only)
    assert json.loads(done.stdout)["reports"][0]["source"] == "ü.csv"


def test_arguments_that_are_not_utf8_are_told(tmp_path):
    name = b"\xff.csv"
    (tmp_path / os.fsdecode(name)).write_text("text_a,text_b\na,b\n")
    done = run(["data", "check", os.fsdecode(name)], tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(b"\\udcff.csv: 1 row")


def test_score_refuses_texts_that_are_not_utf8(here, tiny_encoder):
    for verb, more in (("score", ["a dog"]), ("classify", ["--labels", "a man, a dog"])):
        code, said = here(verb, "\udcff", *more, "--model", tiny_encoder)
        assert code == 1, said
        assert "half of a surrogate pair" in said


def test_train_refuses_a_folder_that_is_not_utf8_before_it_trains(here, tiny_pairs, tiny_encoder):
    options = ("--relation", "similarity:0..5", "--encoder", tiny_encoder, "--output", "m\udcff")
    code, said = here("train", tiny_pairs, *options)
    assert code == 2
    assert "Choose a folder name in UTF-8" in said
    assert "step" not in said


# What a terminal would obey


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 日本 😀\n\tx", "plain ä 日本 😀\n\tx"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb\x07\x08", "a\\rb\\x07\\x08"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\udcff", "\\udcff"),
        ("a\u2028b", "a\\u2028b"),
        ("שלום عربى", "שלום عربى"),
    ],
)
def test_printable_escapes_what_terminals_obey(text, shown):
    assert printable(text) == shown


def test_printable_json_stays_the_same_json():
    value = {"a": "\x9b\u202e\ud800\u2028ä"}
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(printable_json(text)) == value
    assert "\x9b" not in printable_json(text)
    assert "ä" in printable_json(text)


def test_no_escape_from_a_file_reaches_the_terminal(here, tmp_path):
    header = f"text_a,text_b,score,{ESCAPE}red,[bold]x[/bold],:smile:"
    name = f"p{TITLE}.csv"
    (tmp_path / name).write_text(f"{header}\na{TITLE},b,9{ESCAPE},1,2,3\nc,d,x\n", encoding="utf8")
    for command in (
        ("data", "check", name),
        ("data", "check", name, "--relation", "score:0..5"),
        ("data", "check", name, "--text-a", f"q{ESCAPE}"),
        ("data", "check", name, "--json"),
        ("score", name, "--text-a", f"q{ESCAPE}"),
        ("train", f"x{TITLE}.toml"),
        ("train", name, "--relation", f"{ESCAPE}x:0..5"),
        ("score", f"--{ESCAPE}", "b"),
        (f"verb{ESCAPE}",),
        ("evaluate", f"m{ESCAPE}"),
    ):
        code, said = here(*command)
        assert code, command
        assert not {"\x1b", "\x07"} & set(said), command
    code, said = here("data", "check", name)
    assert "[bold]x[/bold]" in said
    assert ":smile:" in said
    done = run(["data", "check", name], tmp_path)
    assert b"\\x1b[31mred': the name holds a line break" in done.stderr
    assert b"\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_rows_shown_on_a_terminal_are_printable(here, pairs, tiny_encoder, monkeypatch, more):
    pairs.write_text(f"text_a,text_b,note\na man,a dog,{ESCAPE}\x9b\n", encoding="utf8")
    command = ("score", "pairs.csv", "--model", tiny_encoder, *more)
    if not more:
        assert ESCAPE in here(*command)[1]  # a program gets what the file holds
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", shown)
    code, said = here(*command)
    assert code == 0, said
    assert not {"\x1b", "\x9b"} & set(shown.getvalue())
    if more:
        assert json.loads(shown.getvalue())["note"] == f"{ESCAPE}\x9b"


def test_a_bar_takes_names_as_text(monkeypatch):
    shown = io.StringIO()
    terminal = console.PrintableConsole(force_terminal=True, width=80, file=shown)
    monkeypatch.setattr(progress, "err", terminal)
    with progress.counting(f"evaluating [/red]{TITLE}", "texts", 3) as advance:
        advance(1)
    assert "evaluating [/red]\\x1b]0;owned" in shown.getvalue()


# Documents


DEEP = "[" * 5000
DOCUMENTS = {
    "deep list": f"name = {DEEP}",
    "deep table": "name = " + "{a=" * 5000,
    "long path": "a." * 50_000 + "a = 1",
    "many digits": "seed = " + "9" * 5000,
    "more than 64 bits": "seed = 99999999999999999999",
    "a date": "name = 2024-01-02",
    "a time": "name = 10:20:30",
    "a NUL": 'name = "a\\u0000b"',
    "a NUL in a key": '"a\\u0000b" = 1',
    "not UTF-8": b"name = '\xff'",
    "not TOML": "name = ",
    "a list": "[[name]]",
    "infinite": "name = inf",
    "nested": "x = " + "[" * 40 + "]" * 40,
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_of_any_kind_are_refused_in_a_moment(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    start = time.monotonic()
    for read in (read_experiment, read_suite, lambda path: read_recipe(str(path))):
        with pytest.raises(RecipeError) as caught:
            read(path)
        assert len(str(caught.value)) < 5000
    assert time.monotonic() - start < 5


def test_documents_have_a_size(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(RecipeError, match="the file is larger than 4 MB"):
        read_toml(tmp_path / "x.toml", "recipe")


def test_dates_and_large_numbers_deep_inside_are_named_by_path(tmp_path):
    document = parse_toml(b'name = "e"\n[base]\n"stage.0.x" = [1, 2024-01-02]\ny = 99999999999999999999', "x")
    with pytest.raises(RecipeError) as caught:
        validate(Recipe, document, "x")
    assert "x: base.stage.0.x.1: 2024-01-02 is a date or a time. Put it in quotes" in str(caught.value)
    assert "x: base.y: the number has more than 64 bits" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    ["seed=" + "9" * 5000, f"seed={DEEP}", "seed=2024-01-01", "seed=-1", "seed=4294967296", "=1", "x", ""],
)
def test_cli_refuses_odd_overrides(here, pairs, change):
    code, said = here("train", "pairs.csv", "--relation", "score:0..5", "--set", change, "--dry-run")
    assert code == 2, said


@pytest.mark.parametrize("seed", ["-1", "4294967296", "99999999999999999999"])
def test_cli_refuses_seeds_that_torch_does_not_take(here, pairs, seed):
    code, said = here("train", "pairs.csv", "--relation", "score:0..5", "--seed", seed, "--dry-run")
    assert code == 2, said


# Tables that are written


def test_safe_csv_is_an_option_of_every_verb_that_writes_tables(here, tmp_path, tiny_encoder):
    (tmp_path / "p.csv").write_text(
        "text_a,text_b,note\n" + "".join(f"=a man {n},a dog {n},-0.5\n" for n in range(10))
    )
    (tmp_path / "t.csv").write_text("text_a,text_b\nsome,thing\n")
    verbs = {
        "score": ("score", "p.csv", "--model", tiny_encoder, "--output", "o.csv"),
        "classify": (
            *("classify", "p.csv", "--text", "text_a", "--labels", "a man, a dog"),
            *("--model", tiny_encoder, "--output", "o.csv"),
        ),
        "audit": ("audit", "p.csv", "--against", "t.csv", "--output", "o.csv"),
        "split": ("data", "split", "p.csv", "--output", "s"),
    }
    for verb, command in verbs.items():
        file = tmp_path / ("s/train.csv" if verb == "split" else "o.csv")
        for option, start in (((), "=a man"), (("--safe-csv",), "'=a man")):
            file.unlink(missing_ok=True)
            code, said = here(*command, *option, "--overwrite")
            assert code == 0, said
            lines = file.read_text().splitlines()
            assert lines[1].startswith(start), verb
            assert ",-0.5" in lines[1]


# What escapes every check


@pytest.mark.parametrize(
    ("error", "code", "part"),
    [
        (OSError(28, "No space left on device", "x.bin"), 1, "x.bin: there is no space left"),
        (MemoryError(), 1, "not enough memory"),
        (
            RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"),
            1,
            "not enough",
        ),
        (RecursionError("maximum recursion depth exceeded"), 1, "nested too deeply"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 1, "Save it as UTF-8"),
        (KeyError("x\x1b[31m"), 70, "this is a bug in likewise (KeyError: "),
        (AssertionError(), 70, "LIKEWISE_TRACEBACK=1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_main_tells_what_escaped_in_one_line(here, monkeypatch, error, code, part):
    from likewise.cli import data

    def fails(*_, **__):
        raise error

    monkeypatch.setattr(data, "check", fails)
    found, said = here("data", "check", "pairs.csv")
    assert found == code
    assert part in said
    assert said.count("\n") == 1
    assert "\x1b" not in said


def test_main_shows_the_traceback_of_a_bug_if_asked(here, monkeypatch):
    from likewise.cli import data

    monkeypatch.setattr(data, "check", lambda *_, **__: 1 / 0)
    monkeypatch.setenv("LIKEWISE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        here("data", "check", "pairs.csv")


# Dev rows that are trained on


def test_plan_tells_that_dev_is_the_training_file(here, tiny_encoder, tiny_pairs, tmp_path):
    (tmp_path / "pairs.csv").write_bytes(tiny_pairs.read_bytes())
    (tmp_path / "copy.csv").write_bytes(tiny_pairs.read_bytes())
    (tmp_path / "link.csv").symlink_to("pairs.csv")
    lines = tiny_pairs.read_text(encoding="utf8").splitlines(keepends=True)
    (tmp_path / "train.csv").write_text("".join(lines[:30]), encoding="utf8")
    (tmp_path / "dev.csv").write_text("".join([lines[0], *lines[30:]]), encoding="utf8")
    shared = ("--relation", "similarity:0..5", "--encoder", tiny_encoder, "--dry-run")
    for train, dev, told in (
        ("pairs.csv", "pairs.csv", "the dev set and the training data are the same file (pairs.csv)"),
        ("pairs.csv", "./pairs.csv", "the dev set and the training data are the same file (pairs.csv)"),
        ("pairs.csv", "link.csv", "the dev set and the training data are the same file (link.csv)"),
        ("pairs.csv", "copy.csv", "40 of 40 dev rows (copy.csv) are also training rows"),
        ("train.csv", "dev.csv", None),
    ):
        code, said = here("train", train, *shared, "--set", f'stage.0.dev=[{{source="{dev}"}}]')
        assert code == 0, said
        assert (told or "training rows") in said if told else "are the same file" not in said
        assert ("so the dev score measures what was memorised" in said) is (told is not None)


# Python


ODD = [
    *(
        None,
        3,
        3.5,
        True,
        b"x",
        [],
        [[]],
        {},
        (),
        set(),
        object(),
        "",
        "  ",
        "\ud800",
        "\0",
        [None],
        [3],
        ["\ud800"],
    ),
    *(numpy.zeros(3), float("nan"), "nope", ["nope"], 10**30, -1, {"a": 1}, [["a"]], "x" * 5000),
    *(pandas.DataFrame(), pandas.DataFrame({"x": [1]}), pandas.DataFrame({"text_a": [1], "text_b": ["b"]})),
]


def refused_or_answered(call) -> None:
    """Whatever a call is given, it answers or says what is wrong; anything else is a raw exception."""
    try:
        call()
    except LikewiseError as error:
        if not str(error).strip():
            raise AssertionError("an error without a word") from error


@pytest.fixture(scope="module")
def asked(tiny_encoder):
    """A loaded model of pairs."""
    return likewise.load(tiny_encoder, device="cpu")


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_a_loaded_model_refuses_odd_arguments(asked, odd):
    pair = [("a man", "a dog")]
    for call in (asked.score, asked.encode, asked.explain, lambda odd: asked.explain("a man", odd)):
        refused_or_answered(lambda call=call: call(odd))
    for name in ("relation", "source", "text_a", "text_b", "progress"):
        refused_or_answered(lambda name=name: asked.score(pair, **{name: odd}))
    for name in ("relation", "phrases", "text_a", "text_b"):
        refused_or_answered(lambda name=name: asked.explain(pair, **{name: odd}))


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_a_classifier_refuses_odd_arguments(classifier, odd):
    labels = ["a man", "a dog"]
    refused_or_answered(lambda: classifier.classify(odd, labels=labels))
    refused_or_answered(lambda: classifier.classify(["a man"], labels=odd))
    refused_or_answered(lambda: classifier.classify(["a man"], labels={"x": odd, "y": "a dog"}))
    refused_or_answered(lambda: classifier.classify(["a man"], task=odd))


@pytest.fixture(scope="module")
def classifier(tiny_encoder):
    """A loaded encoder that compares texts with labels."""
    return likewise.load_classifier(tiny_encoder, device="cpu")


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_functions_refuse_odd_arguments(odd, tiny_pairs, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(
        f'[[task]]\nname = "own"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n'
    )
    refused_or_answered(lambda: likewise.load(odd, device="cpu"))
    refused_or_answered(lambda: likewise.score([("a man", "a dog")], model=odd))
    refused_or_answered(lambda: likewise.evaluate(odd, "own.toml", log=False))
    for name in ("device", "precision"):
        refused_or_answered(lambda name=name: likewise.load(tiny_encoder, **{name: odd}))
    for name in ("suite", "source", "aggregation", "metric", "data_dir", "device", "precision", "progress"):
        given = {"suite": "own.toml", "device": "cpu", "log": False, name: odd}
        refused_or_answered(lambda given=given: likewise.evaluate(tiny_encoder, **given))
    known = {"encoder": str(tiny_encoder), "relations": "similarity:0..5", "device": "cpu"}
    for name in (
        "data",
        "relations",
        "text_a",
        "seed",
        "device",
        "precision",
        "trackers",
        "tell",
    ):
        given = {**known, "overrides": {"stage.0.max_steps": 0}, name: odd}  # if nothing else, that is wrong
        with pytest.raises(LikewiseError):
            likewise.train(tiny_pairs, **given)
    for name in (
        "task",
        "data",
        "mode",
        "labels",
        "scale",
        "text",
        "column",
        "rehearse",
        "overrides",
        "device",
    ):
        given = {"task": "x", "describe": "is it", "scale": "0..4", "mode": "zero", name: odd}
        with pytest.raises(LikewiseError):
            likewise.update(tiny_encoder, "new", **given)


@pytest.mark.parametrize(
    "path",
    [
        *("seed", "name", "relation", "relation.similarity", "relation.similarity.lo", "stage", "stage.0"),
        *(
            "stage.0.data",
            "stage.0.data.0.source",
            "stage.0.objective",
            "stage.0.objective.0.loss",
            "stage.0.kind",
        ),
        *(
            "stage.0.objective.0.hidden",
            "stage.0.epochs",
            "encoder",
            "encoder.name",
            "encoder.prompt",
            "hold_out",
        ),
    ],
)
def test_odd_overrides_are_refused_or_taken(path, tiny_pairs, tiny_encoder):
    from likewise.api import make_recipe

    for odd in ODD:
        refused_or_answered(
            lambda odd=odd: make_recipe(
                str(tiny_pairs), encoder=str(tiny_encoder), relations="similarity:0..5", overrides={path: odd}
            )
        )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"workers": "2"}, "workers"),
        ({"workers": 0}, "workers"),
        ({"workers": True}, "workers"),
        ({"output": 7}, "output"),
        ({"tell": 3}, "tell"),
        ({"progress": 3}, "progress"),
        ({"data_dir": 3}, "data_dir"),
    ],
    ids=str,
)
def test_experiments_refuse_odd_arguments(tmp_path, options, named):
    from likewise.experiments import experiment

    with pytest.raises(UsageError, match=named):
        experiment(tmp_path / "e.toml", **{"output": tmp_path / "cells", **options})
    with pytest.raises(UsageError, match="file"):
        experiment(5)


def test_loading_refuses_odd_budgets_and_devices(tiny_encoder):
    for budget in ("x", 0, -1, 1.5, True):
        with pytest.raises(UsageError, match="token_budget"):
            likewise.load(tiny_encoder, token_budget=budget)
    with pytest.raises(UsageError, match="device"):
        likewise.load(tiny_encoder, device="meta")


def test_audit_refuses_what_is_no_list_of_records():
    for train, against in (
        (5, {}),
        ("pairs.csv", {"t": []}),
        ([("a", "b")], {"t": [("a", "b")]}),
        ([], None),
    ):
        with pytest.raises(LikewiseError):
            likewise.audit(train, against)


def test_word_vectors_that_never_end_are_refused(tmp_path):
    from likewise.encoders.words import load_vectors

    folder = tmp_path / "vectors"
    folder.mkdir()
    os.mkfifo(folder / "words.txt")
    numpy.save(folder / "vectors.npy", numpy.zeros((1, 2)))
    with pytest.raises(LikewiseError, match="named pipe"):
        load_vectors(folder)
    (tmp_path / "v.txt").write_text("word " + "1 " * 1_000_000)
    with pytest.raises(LikewiseError, match="this line is not a word followed by its numbers"):
        load_vectors(tmp_path / "v.txt")


@pytest.mark.parametrize("table", [numpy.ones(2), numpy.ones((2, 2, 2)), numpy.ones((2, 3), dtype=complex),
                                   numpy.ones((2, 3), dtype=int), numpy.ones((2, 0))])  # fmt: skip
def test_word_vectors_that_are_no_rows_of_floats_are_refused(tmp_path, table):
    from likewise.encoders.words import load_vectors

    (tmp_path / "words.txt").write_text("one\ntwo\n")
    numpy.save(tmp_path / "vectors.npy", table)
    with pytest.raises(LikewiseError, match="but rows of floats are expected"):
        load_vectors(tmp_path)


def test_word_vectors_in_a_damaged_file_name_it(tmp_path):
    from likewise.encoders.words import load_vectors

    whole = gzip.compress(b"one 1 2\n" * 5000)
    (tmp_path / "cut.txt.gz").write_bytes(whole[:-20])
    (tmp_path / "plain.txt.gz").write_bytes(b"one 1 2\n")
    (tmp_path / "latin.txt").write_bytes("caf\u00e9 1 2\n".encode("latin-1"))
    (tmp_path / "nan.txt").write_text("one 1 2\ntwo nan 2\n")
    found = dict.fromkeys(("cut.txt.gz", "plain.txt.gz", "latin.txt"), "cannot be read")
    for name, told in {**found, "nan.txt": "other than finite numbers"}.items():
        with pytest.raises(LikewiseError, match=rf"{re.escape(name)}.*{told}"):
            load_vectors(tmp_path / name)
