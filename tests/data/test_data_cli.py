"""`likewise data`: what it prints, how it ends, and what it does not load."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from likewise.cli.data import app
from likewise.data import corpus_names
from likewise.spelling import speaking_flags

HEAVY = (
    "torch",
    "datasets",
    "scipy",
    "pandas",
    "transformers",
    "sentence_transformers",
    "pyarrow",
    "zstandard",
)


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text("text_a,text_b,similarity\nA [cat].,A kitten.,4.5\nRain.,Snow.,1\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)


def call(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def test_cli_check_good_file(good):
    result = call("check", good)
    assert result.exit_code == 0
    assert (
        "good.csv: 2 rows, texts in columns text_a and text_b, 5 to 9 characters, median 5" in result.output
    )
    assert (
        "similarity 1..5, 2 rated, 1 to 4.5, mean 2.75, scale inferred (to declare another one:"
        in result.output
    )
    assert "0 problems, 0 warnings" in result.output


def test_cli_check_bad_file(good):
    result = call("check", good, "--relation", "similarity:0..4")
    assert result.exit_code == 1
    assert (
        "problem: out of range (1)\n  good.csv:2: similarity is 4.5, but the "
        "scale is 0 to 4. Correct the value"
    ) in result.output
    assert "1 problem, 0 warnings" in result.output


def test_cli_check_shows_how_many_are_left_out(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("a,b,score\n" + "x,,1\n" * 1500, encoding="utf-8")
    assert "problem: empty text (1,500, the first 10 shown)" in call("check", path).output


def test_cli_check_json(good):
    result = call("check", good, "--json", "--relation", "similarity:0..4")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["ok"]) == (1, False)
    (report,) = answer["reports"]
    assert (report["source"], report["rows"], report["problems"]) == ("good.csv", 2, 1)
    assert report["findings"][0]["kind"] == "out of range"


def test_cli_check_strict_and_columns(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("one,two,score\nx,y,1\nY,X,5\n", encoding="utf-8")
    arguments = ["check", path, "--text-a", "one", "--text-b", "two"]
    assert call(*arguments).exit_code == 0
    assert call(*arguments, "--strict").exit_code == 1
    with speaking_flags():
        result = call("check", path)
    assert result.exit_code == 1
    assert "--text-a NAME --text-b NAME" in result.output


def test_cli_check_standard_input():
    result = call(
        "check", "-", "--relation", "similarity:0..5", input="text_a\ttext_b\tsimilarity\nx\ty\t3\n"
    )
    assert result.exit_code == 0
    assert "stdin: 1 row, texts in" in result.output


def test_cli_check_usage_errors(good):
    assert call("check").exit_code == 2
    assert call("check", good, "--max-chars", "0").exit_code == 2
    result = call("check", good, "--relation", "similarity")
    assert result.exception.exit_code == 2  # a UsageError, which the program turns into its message


@pytest.mark.realdata
def test_cli_check_corpus_goes_through_all_splits(data_dir):
    result = call("check", "human_activity_phrases", "--data-dir", data_dir)
    assert result.exit_code == 0
    assert result.output.count("0 problems") == 3
    assert call("check", "sts13/test", "--data-dir", data_dir, "--json").exit_code == 0


def test_cli_check_absent_corpus(tmp_path):
    result = call("check", "sick/test", "--data-dir", tmp_path)
    assert result.exit_code == 1
    assert "LIKEWISE_DATA" in result.output


def test_cli_list(tmp_path):
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick" / "trial.tsv").write_text("x", encoding="utf-8")
    result = call("list", "--data-dir", tmp_path)
    assert result.exit_code == 0
    assert all(name in result.output for name in corpus_names())
    assert "similarity 0..5" in result.output
    assert "train 5,749" in result.output
    assert "in part" in result.output
    assert "no; on the hub" in result.output
    entries = {
        entry["name"]: entry for entry in json.loads(call("list", "--data-dir", tmp_path, "--json").stdout)
    }
    assert list(entries) == list(corpus_names())
    assert [split["here"] for split in entries["sick"]["splits"]] == [False, True, False]
    assert entries["stsb"]["hub"] == "mteb/stsbenchmark-sts"


@pytest.mark.parametrize("verb", ["list", "check"])
def test_cli_help_has_an_example(verb):
    assert f"Example: likewise data {verb}" in call(verb, "--help").output


def run(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_cli_checking_a_csv_loads_nothing_heavy(good):
    code = (
        "import sys; import likewise.data; from likewise.cli.data import app\n"
        "try: app(['check', sys.argv[1]])\n"
        "except SystemExit as end: print('end', end.code)\n"
        f"print('loaded', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    output = run(code, good)
    assert "end 0" in output
    assert output.splitlines()[-1] == "loaded []"


def test_cli_checking_a_csv_answers_quickly(good):
    def once():
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("import sys; from likewise.cli.data import app; app(['check', sys.argv[1]])", good)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime

    # Processor time, which other tests on the same machine disturb less; alone it is 0.35 s.
    assert min(once() for _ in range(3)) < 0.7
