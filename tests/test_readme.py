"""The README is true: its Python prints what it says, its commands run, map and tables are current."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.cli.demo import RELATIONS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
SAMPLES = ROOT / "src" / "likewise" / "samples"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NUMBER = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def clone(tmp_path_factory, tiny_encoder) -> Path:
    """What a reader has after `make demo`: the samples, and a demo-model, here a tiny one of one step."""
    import likewise

    folder = tmp_path_factory.mktemp("clone")
    for name in ("train.csv", "test.csv", "tickets.csv"):
        shutil.copy(SAMPLES / name, folder)
    reviews = SAMPLES / "reviews"
    likewise.train(
        reviews / "train.csv",
        folder / "demo-model",
        relations=RELATIONS,
        encoder=tiny_encoder,
        overrides={"stage.0.max_steps": 1, "stage.0.dev": [{"source": str(reviews / "dev.csv")}]},
    )
    return folder


def printed_and_shown() -> tuple[list[str], list[str]]:
    """What the README's Python prints here, and what the README shows."""
    [code] = [code for language, code in BLOCKS if language == "python"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), {})
    shown = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    return said.getvalue().splitlines(), shown


def commands() -> list[list[str]]:
    """The commands of the README: in blocks, and in the table of recipes."""
    lines = [line for language, code in BLOCKS if language == "bash" for line in code.splitlines()]
    lines += re.findall(r"\| `(likewise [^`]+)` \|", README)
    return [shlex.split(line, comments=True) for line in lines if line.startswith("likewise")]


def test_readme_is_short_and_in_order():
    assert len(README.splitlines()) < 180
    assert re.findall(r"^## (.+)$", README, re.MULTILINE) == [
        "Install",
        "A first result",
        "What Likewise adds to sentence-transformers",
        "Which recipe for which data",
        "Commands",
        "Results",
        "Where things are",
        "Limits",
        "Citation",
    ]


def test_readme_python_prints_what_it_says(clone, minilm, monkeypatch):
    monkeypatch.chdir(clone)
    printed, shown = printed_and_shown()
    answered, told = printed[:2], shown[:2]
    assert answered == told, (
        f"README.md shows {told}, but the raw encoder and likewise-mini answer {answered}"
    )
    # The trained model here is not the demo's: the form of its answers is the same, not their digits.
    assert [NUMBER.sub("x", line) for line in printed] == [NUMBER.sub("x", line) for line in shown]


@pytest.mark.slow
def test_readme_shows_what_the_demo_model_answers(here, tmp_path, minilm):
    code, said = here("demo")
    assert code == 0, said
    printed, shown = printed_and_shown()
    for mine, theirs in zip(printed, shown, strict=True):
        numbers = [[float(number) for number in NUMBER.findall(line)] for line in (mine, theirs)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.3), (mine, theirs)


def test_readme_commands_are_understood(clone, minilm, tmp_path, monkeypatch, capsys):
    from likewise.cli import main

    shutil.copytree(clone, tmp_path / "clone")
    monkeypatch.chdir(tmp_path / "clone")
    ours = commands()
    assert len(ours) == 13
    for words in ours:
        # What a training would do is enough here: `make demo` and the tests of recipes train.
        whole = [*words, "--dry-run"] if words[1] == "train" and "--dry-run" not in words else words
        monkeypatch.setattr(sys, "argv", whole)
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        assert code == 0, (words, capsys.readouterr())
    for name in ("answers.csv", "raw.csv", "scored.csv", "clean.csv", "parts/test.csv"):
        assert Path(name).is_file()


def test_readme_commands_do_not_write_over_each_other():
    outputs = [words[words.index("--output") + 1] for words in commands() if "--output" in words]
    assert len(outputs) == len(set(outputs)) > 5


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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target, place in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf8")):
        if "://" in target:
            continue
        other = page.parent / target if target else page
        assert other.exists(), f"{page.name}: {target}"
        if place:
            assert place in anchors(other.read_text(encoding="utf8")), f"{page.name}: {target}#{place}"


def anchors(page: str) -> set[str]:
    """The names that headings of a page have in addresses."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_index_leads_to_every_page():
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([^)#]+)", (docs / "index.md").read_text(encoding="utf8")))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert pages <= linked, pages - linked
