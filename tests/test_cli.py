"""The command line as a user meets it: real processes, files in and out, and every kind of bad input."""

from __future__ import annotations

import csv
import json
import lzma
import os
import re
import resource
import subprocess
import sys

import pytest

from tests import forks

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "120"}


def call(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, forked from one that has imported torch."""
    return forks.run(*arguments, env=ENVIRONMENT, **options)


def start(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that begins as a user's does."""
    command = [sys.executable, "-m", "likewise", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, **options)


@pytest.fixture(scope="module")
def model(tiny_encoder, tiny_pairs, tmp_path_factory):
    """A model trained from the command line."""
    folder = tmp_path_factory.mktemp("cli") / "model"
    result = call(
        "train", tiny_pairs, "--encoder", tiny_encoder, "--output", folder, "--device", "cpu",
        "--relation", "similarity:0..5", "--relation", "topic:-2..2", "--set", "stage.0.max_steps=3",
        "--set", "stage.0.keep_start=false",  # a kept start would answer by an untrained head
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert f"model: {folder}" in result.stdout
    assert "stage 0 pairs: 30 pairs" in result.stderr
    return folder


def test_help_answers_quickly_with_panels_and_examples():
    # Processor time, not wall time: the machine that runs the tests may be busy.
    assert min(_seconds("--help") for _ in range(3)) < 0.5
    assert all(panel in start("--help").stdout for panel in ("Start", "Use", "Train", "Evaluate", "Data"))
    for verb in ("score", "train", "evaluate", "audit", "experiment", "demo"):
        assert "Example" in start(verb, "--help").stdout, verb


def _seconds(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert start(*arguments).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_score_two_texts_prints_every_relation_on_its_scale(model):
    result = call("score", "a man", "a dog", "--model", model)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.strip().splitlines()
    assert lines[0].startswith("similarity")
    assert re.search(r"on 0\.\.5, from the (cosine|head|mean)$", lines[0])
    assert re.search(r"on -2\.\.2, from the (cosine|head|mean)", lines[1])


def test_score_two_texts_as_json(model):
    document = json.loads(call("score", "a man", "a dog", "--model", model, "--json").stdout)
    assert document["relations"]["similarity"]["scale"] == "0..5"
    assert 0 <= document["relations"]["similarity"]["value"] <= 5


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "csv.gz", "tsv.xz", "parquet"])
def test_score_file_keeps_order_and_columns(model, tmp_path, ending):
    from likewise.data import TableWriter, open_table

    rows = [
        {"id": i, "sentence1": f"a man {i}", "sentence2": "the dog", "similarity": 1.0} for i in range(30)
    ]
    with TableWriter(tmp_path / f"in.{ending}", list(rows[0])) as writer:
        for row in rows:
            writer.write_row(row)
    result = call(
        "score", tmp_path / f"in.{ending}", "--model", model, "--output", tmp_path / f"out.{ending}"
    )
    assert result.returncode == 0, result.stderr
    assert "texts from columns 'sentence1' and 'sentence2'" in result.stderr
    scored = [row.fields for row in open_table(tmp_path / f"out.{ending}")]
    assert [str(row["id"]) for row in scored] == [str(i) for i in range(30)]
    assert list(scored[0]) == ["id", "sentence1", "sentence2", "similarity", "predicted_similarity", "topic"]
    assert {float(row["similarity"]) for row in scored} == {1.0}


def test_score_does_not_write_over_what_it_reads(model, tmp_path):
    (tmp_path / "in.csv").write_text("a,b\na man,a dog\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    for output in ("in.csv", "link.csv"):
        result = call("score", tmp_path / "in.csv", "--model", model, "--output", tmp_path / output)
        assert result.returncode == 2
        assert "is an input of this command. Choose another name for the output" in result.stderr
    assert (tmp_path / "in.csv").read_text() == "a,b\na man,a dog\n"


def test_score_of_an_unknown_relation_writes_nothing(model):
    result = call("score", "-", "--model", model, "--relation", "mood", input="a,b\na man,a dog\n")
    assert result.returncode == 2
    assert result.stdout == ""
    assert "'mood'" in result.stderr


def test_score_reads_standard_input_and_writes_standard_output(model):
    result = start("score", "-", "--model", model, input="a,b\na man,a dog\nthe cat,a cat\n")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["a"] for row in rows] == ["a man", "the cat"]
    assert set(rows[0]) == {"a", "b", "similarity", "topic"}
    lines = call("score", "-", "--json", "--model", model, input="a,b\na man,a dog\n").stdout.splitlines()
    assert json.loads(lines[0])["b"] == "a dog"


def test_dry_run_prints_recipe_and_plan_and_writes_nothing(tiny_encoder, tiny_pairs, tmp_path):
    result = call(
        "train",
        tiny_pairs,
        "--encoder",
        tiny_encoder,
        "--relation",
        "similarity:0..5",
        "--dry-run",
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert "[[stage]]" in result.stdout
    assert "per epoch)" in result.stdout
    assert not list(tmp_path.iterdir())


def test_evaluate_on_a_suite_of_ones_own(model, tiny_pairs, tmp_path):
    suite = tmp_path / "mine.toml"
    suite.write_text(
        f'name = "mine"\n[[task]]\nname = "pairs"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n'
    )
    environment = {**os.environ, "LIKEWISE_TEST_LOG": str(tmp_path / "log.jsonl")}
    for source in ("cosine", "head"):
        result = forks.run("evaluate", model, "--suite", suite, "--source", source, env=environment)
        assert result.returncode == 0, result.stderr
        assert f"scores from {source}" in result.stdout
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 2


HEADER = "text_a,text_b,similarity\n"
GOOD = "".join(f"the dog {i},a cat {i},{i % 5}\n" for i in range(20))
BAD = {
    "empty file": ("p.csv", b"", "p.csv"),
    "header only": ("p.csv", HEADER.encode(), "no rows"),
    "missing column": ("p.csv", b"one,two,similarity\nx,y,1\n", "--text-a"),
    "non-numeric score": ("p.csv", (HEADER + GOOD + "a,b,high\n").encode(), "p.csv:22"),
    "out-of-range score": ("p.csv", (HEADER + GOOD + "a,b,7.5\n").encode(), "p.csv:22"),
    "NaN": ("p.csv", (HEADER + GOOD + "a,b,nan\n").encode(), "p.csv:22: similarity is NaN"),
    "empty text": ("p.csv", (HEADER + GOOD + ",b,2\n").encode(), "p.csv:22"),
    "one-column tsv": ("p.tsv", b"similarity\n1\n2\n", "p.tsv"),
    "wrong encoding": ("p.csv", (HEADER + GOOD + "café,b,2\n").encode("latin-1"), "UTF-8"),
    "truncated xz": ("p.csv.xz", lzma.compress((HEADER + GOOD * 50).encode())[:-60], "p.csv.xz"),
    "over-long text": ("p.csv", (HEADER + GOOD + "a" * 100_001 + ",b,2\n").encode(), "p.csv:22"),
    "ragged row": ("p.csv", (HEADER + GOOD + "a,b\n").encode(), "p.csv:22"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("verb", ["train", "check"])
def test_bad_input_is_one_message_with_file_line_and_remedy(case, verb, tmp_path, tiny_encoder, here):
    name, content, expected = BAD[case]
    (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    if verb == "train":
        arguments = [
            "train",
            name,
            "--encoder",
            tiny_encoder,
            "--relation",
            "similarity:0..5",
            "--output",
            "m",
            "--device",
            "cpu",
        ]
    else:
        arguments = ["data", "check", name, "--relation", "similarity:0..5"]
    code, said = here(*arguments)
    assert code in (1, 2), said
    assert expected in said
    assert "Traceback" not in said
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("verb", ["score", "train"])
def test_bad_model_or_recipe_is_one_message(verb, tmp_path, tiny_encoder):
    import shutil

    shutil.copytree(tiny_encoder, tmp_path / "broken")
    next((tmp_path / "broken").rglob("model.safetensors")).write_bytes(b"x")
    (tmp_path / "r.toml").write_text('name = "x"\nencodr = "y"\n')
    if verb == "score":
        result = call("score", "a", "b", "--model", "broken", cwd=tmp_path)
        assert "damaged" in result.stderr
    else:
        result = call("train", "r.toml", cwd=tmp_path)
        assert "r.toml: encodr: this is not a known key. Did you mean 'encoder'?" in result.stderr
        assert "r.toml: relation" in result.stderr
    assert result.returncode in (1, 2)
    assert "Traceback" not in result.stderr


def test_scoring_stops_at_a_bad_row_and_leaves_nothing_half_written(model, tmp_path):
    rows = "".join(f"a man {i},a dog\n" for i in range(50))
    (tmp_path / "p.csv").write_text(f"text_a,text_b\n{rows},the cat\n")
    stop = ("--on-bad", "stop")
    result = call("score", "p.csv", "--model", model, "--output", "out.csv", *stop, cwd=tmp_path)
    assert result.returncode == 1
    assert "p.csv:52" in result.stderr
    assert "Traceback" not in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]


def test_duplicate_and_conflicting_rows_are_reported_by_check(tmp_path):
    (tmp_path / "p.csv").write_text(HEADER + GOOD + "the dog 1,a cat 1,1\nA CAT 2!,the dog 2,5\n")
    plain = call("data", "check", "p.csv", "--relation", "similarity:0..5", cwd=tmp_path)
    assert plain.returncode == 0
    assert "p.csv:22" in plain.stdout + plain.stderr
    assert "p.csv:23" in plain.stdout + plain.stderr
    strict = call("data", "check", "p.csv", "--relation", "similarity:0..5", "--strict", cwd=tmp_path)
    assert strict.returncode == 1


@pytest.mark.slow
def test_scoring_a_long_file_stays_in_bounded_memory(tiny_vectors, tmp_path):
    from likewise.encoders.words import average_encoder

    average_encoder(tiny_vectors, device="cpu").save(str(tmp_path / "model"), create_model_card=False)
    script = (
        "import atexit, resource, sys; sys.argv = ['likewise', *sys.argv[1:]]\n"
        "atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))\n"
        "from likewise.cli import main\n"
        "main()"
    )
    peaks = []
    for rows in (20_000, 300_000):
        with (tmp_path / "p.csv").open("w") as file:
            file.write("text_a,text_b\n")
            file.writelines(f"the dog {i},a cat {i} sleeps\n" for i in range(rows))
        files = {"--model": tmp_path / "model", "--output": tmp_path / "o.csv"}
        arguments = ["score", tmp_path / "p.csv", *(word for option in files.items() for word in option)]
        command = [sys.executable, "-c", script, *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(result.stdout.split()[-1]) / 1024)
        with (tmp_path / "o.csv").open() as file:
            assert sum(1 for _ in file) == rows + 1
    # 300,000 rows are 600,000 distinct texts: kept whole, they would need hundreds of MB more.
    assert peaks[1] - peaks[0] < 120
