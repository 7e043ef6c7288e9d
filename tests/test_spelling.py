"""Messages name options as the caller writes them: `--text-a` on the command line, `text_a=` in Python."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
import typer

import likewise
from likewise import spelling
from likewise.annotation import import_annotations, next_pairs
from likewise.cli import app
from likewise.data import get, open_table
from likewise.data.splits import split_file
from likewise.errors import DataError, UsageError
from likewise.experiments import run_experiments
from likewise.predict import Answerer
from likewise.spelling import ANY, OPTIONS, speaking_flags, spelt, spelt_call, spelt_together

SOURCE = Path(spelling.__file__).parent
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name != "cli"]
# Where flags stand for both callers: the table itself, and what a person reads in a shell all the same.
ALLOWED = {
    "spelling.py": r"--[a-z-]+",
    "predict/injected.py": r"train finetune --encoder | --data ratings.csv --output my-model",  # a card
    "evaluation/leakage.py": r"likewise audit TRAIN --against TEST --output FILE",  # chosen by speaks_flags
    "experiments/predictions.py": r"--summary --overwrite",  # chosen by speaks_flags
    "versions.py": r"--porcelain|--untracked-files=no",  # of git
}
STYLE = {"explain/style.py", "explain/page.py"}


def texts(path: Path) -> list[tuple[int, str]]:
    """The texts in a file's code, with their lines: no docstrings, no descriptions of a recipe's keys."""
    tree, left_out = ast.parse(path.read_text(encoding="utf8")), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        if isinstance(node, ast.keyword) and node.arg == "description":
            left_out |= set(ast.walk(node.value))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out
    ]


def test_spelling_no_message_outside_the_command_line_names_a_flag():
    found = []
    for path in FILES:
        name = path.relative_to(SOURCE).as_posix()
        for line, text in texts(path) if name not in STYLE else ():
            rest = re.sub(ALLOWED[name], "", text) if name in ALLOWED else text
            if re.search(r"(?<![\w-])--[a-z]", rest):
                found.append(f"{name}:{line} {text!r}")
    assert not found, "name options by likewise.spelling.spelt"


def test_spelling_every_use_names_an_option_of_the_table():
    used = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "spelt" and isinstance(node.args[0], ast.Constant):
                used.add(node.args[0].value)
            elif node.func.id in ("spelt_together", "spelt_call"):
                used |= {one.arg for one in node.keywords if one.arg}
    assert used <= set(OPTIONS)
    assert len(used) >= 15


def flags() -> set[str]:
    """Every option of every command."""
    found, waiting = set(), [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        found |= {flag for one in command.params for flag in one.opts if flag.startswith("--")}
        waiting += getattr(command, "commands", {}).values()
    return found


def test_spelling_every_option_exists_on_the_command_line_and_in_python():
    calls = (likewise.train, likewise.update, likewise.evaluate, run_experiments, split_file)
    calls = (*calls, Answerer.score, Answerer.classify, likewise.calibrate, likewise.export, open_table, get)
    calls = (*calls, import_annotations, next_pairs)
    keywords = {name for one in calls for name in inspect.signature(one).parameters}
    for one in OPTIONS.values():
        assert one.flag in flags(), one
        assert one.keyword in keywords, one


@pytest.mark.parametrize(
    ("keyword", "value", "flag", "python"),
    [
        ("overwrite", None, "--overwrite", "overwrite=True"),
        ("output", None, "--output", "output"),
        ("text_a", "NAME", "--text-a NAME", 'text_a="NAME"'),
        ("relations", "NAME:lo..hi", "--relation NAME:lo..hi", 'relations=["NAME:lo..hi"]'),
        ("relations", "a b:yes|no", "--relation 'a b:yes|no'", 'relations=["a b:yes|no"]'),
        ("labels", "NAME = WORDS", "--labels 'NAME = WORDS'", 'labels={"NAME": "WORDS"}'),
        ("labels", ANY, "--labels", "labels=…"),
        ("workers", "2", "--workers 2", "workers=2"),
        ("delimiter", ANY, "--delimiter", "delimiter=…"),
        ("annotators", "NAME", "--annotator NAME", 'annotators=["NAME"]'),
        ("place", "pairs.zip", "--from pairs.zip", 'source="pairs.zip"'),
    ],
)
def test_spelling_of_an_option(keyword, value, flag, python):
    assert spelt(keyword, value) == python
    with speaking_flags():
        assert spelt(keyword, value) == flag
    assert spelt(keyword, value) == python


def test_spelling_of_several_options_and_of_a_call():
    assert spelt_together(resume=None, overwrite=None) == "resume=True, overwrite=True"
    told = 'likewise.train("finetune", data="my file.csv", output="m")'
    assert spelt_call("train", "finetune", data="my file.csv", output="m") == told
    with speaking_flags():
        assert spelt_together(resume=None, overwrite=None) == "--resume --overwrite"
        told = "likewise train finetune --data 'my file.csv' --output m"
        assert spelt_call("train", "finetune", data="my file.csv", output="m") == told


def test_spelling_of_an_option_that_is_repeated_and_of_a_call_of_two_words():
    assert spelt("annotators", ["anna", "ben b"]) == 'annotators=["anna", "ben b"]'
    assert spelt_call("data get", "sick", place="FILE") == 'likewise.data.get("sick", source="FILE")'
    with speaking_flags():
        assert spelt("annotators", ["anna", "ben b"]) == "--annotator anna --annotator 'ben b'"
        assert spelt_call("data get", "sick", place="FILE") == "likewise data get sick --from FILE"


def test_spelling_of_errors_follows_who_called(here, tmp_path):
    file = tmp_path / "odd.csv"
    file.write_text("left side,right side,similarity\na,b,1\nc,d,2\n", encoding="utf8")
    with pytest.raises(DataError) as raised:
        likewise.train(file)
    assert 'text_a="NAME", text_b="NAME"' in str(raised.value)
    assert "--" not in str(raised.value)
    code, said = here("train", file)
    assert code == 1
    assert "--text-a NAME --text-b NAME" in said
    assert "text_a=" not in said
    with pytest.raises(UsageError, match=r"mode 'warm' is not one of"):
        likewise.update("m", tmp_path / "n", task="t", mode="warm")


def test_spelling_of_a_worker_follows_the_process_that_started_it(monkeypatch):
    from likewise.experiments import runner

    monkeypatch.setattr(spelling, "_speaking", [])
    monkeypatch.setattr(runner, "end_with", lambda parent: None)
    runner.begin_worker(1, False)
    assert spelt("overwrite") == "overwrite=True"
    runner.begin_worker(1, True)
    assert spelt("overwrite") == "--overwrite"
