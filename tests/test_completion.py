"""The Tab key: names and files come quickly, and none of them can make the shell do anything."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys

import pytest

from likewise.cli.completion import SUITES, models, offering, recipes
from likewise.schema.shipped import shipped_recipes

SHELLS = ("bash", "zsh", "fish")


def completed(words: str, *, shell: str = "bash", **environment: str) -> list[str]:
    """What the shell is told after these words; the last one is not finished."""
    told = {
        "_LIKEWISE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words,
    }
    code = "import sys; sys.argv = ['likewise']; from likewise.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **told, **environment},
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pairs.csv").write_text("a,b\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "pa$(touch broken).csv").write_text("a,b\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sick-model").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path / "models"))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("likewise train pa", ["paraphrase-injection", "pairs.csv", "parts/"]),
        ("likewise train x.toml --data stsb/d", ["stsb/dev"]),
        ("likewise evaluate raw --suite pa", ["paraphrase", "pairs.csv", "parts/"]),
    ],
)
def test_completion_offers_names_and_files(folder, words, expected):
    assert completed(words) == expected


def test_completion_never_offers_what_a_shell_would_act_on(folder):
    assert offering(models)("pa") == ["pairs.csv", "parts/"]
    assert "broken" not in "".join(completed("likewise train pa", shell="zsh"))
    assert offering(models)("no/such/place/x") == []
    assert offering(models)("si") == ["sick-model"]
    assert offering(recipes)("rel") == [name for name in shipped_recipes() if name.startswith("rel")]
    assert not (folder / "broken").exists()


def test_completion_knows_the_suites():
    from likewise.evaluation.suites import NOT_TASKS
    from likewise.evaluation.suites import SUITES as KNOWN

    assert set(SUITES) == {*KNOWN, *NOT_TASKS}


def test_completion_answers_quickly_without_torch(folder):
    # Processor time, not wall time: the machine that runs the tests may be busy.
    assert min(_seconds(folder) for _ in range(2)) < 0.5
    code = (
        "import sys; sys.argv = ['likewise']\nfrom likewise.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('HEAVY', {'torch', 'transformers', 'pandas', 'scipy'} & set(sys.modules))"
    )
    told = {"_LIKEWISE_COMPLETE": "complete_bash", "COMP_WORDS": "likewise train --data s", "COMP_CWORD": "3"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **told}
    )
    assert "stsb/train" in result.stdout
    assert "HEAVY set()" in result.stdout


def _seconds(folder) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    completed("likewise train --data s")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_script_is_shown_for_every_shell(shell, tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "_LIKEWISE_COMPLETE": f"source_{shell}"}
    code = "import sys; sys.argv = ['likewise']; from likewise.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert result.returncode == 0
    assert re.search(r"_LIKEWISE_COMPLETE=complete_" + shell, result.stdout)
    assert list(tmp_path.iterdir()) == []
