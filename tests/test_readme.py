"""The README is true: its Python prints what it says, its commands run, map and tables are current."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def test_readme_is_short():
    assert len(README.splitlines()) < 200


def test_readme_python_prints_what_it_says(minilm):
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert len(blocks) == 1
    for code in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, "README.md", "exec"), {})
        expected = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
        assert said.getvalue().splitlines() == expected


def test_readme_commands_are_understood(tmp_path, minilm, monkeypatch, capsys):
    from likewise.cli import main

    commands = [line for language, code in BLOCKS if language == "bash" for line in code.splitlines()]
    ours = [shlex.split(line, comments=True) for line in commands if line.startswith("likewise")]
    assert len(ours) == 9
    rows = "".join(f"the dog {i},a cat {i},{i % 5},{i % 4}\n" for i in range(30))
    for name in ("ratings.csv", "pairs.csv", "test.csv"):
        (tmp_path / name).write_text(f"text_a,text_b,similarity,topic\n{rows}", encoding="utf8")
    monkeypatch.chdir(tmp_path)
    for words in ours:
        if "sts7" in words or (words[1] == "train" and "--dry-run" not in words):
            words = [*words, "--help"]
        words = ["default" if word == "my-model" and words[1] == "score" else word for word in words]
        monkeypatch.setattr(sys, "argv", words)
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        assert code == 0, (words, capsys.readouterr())
    assert (tmp_path / "scored.csv").is_file()
    assert (tmp_path / "clean.csv").is_file()


def test_readme_map_names_every_room():
    named = set(re.findall(r"`(?:src/likewise/)?(\w+)(?:\.py|/)`", README))
    rooms = {
        p.name.removesuffix(".py")
        for p in (ROOT / "src" / "likewise").iterdir()
        if not p.name.startswith("_")
    }
    rooms -= {"py.typed", "samples", "errors"}
    assert rooms <= named


def test_tables_are_what_the_results_say():
    result = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "tables.py", "--check"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_numbers_in_prose_say_where_they_come_from():
    result = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "tables.py", "--unmarked"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"], ids=lambda p: p.name
)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
