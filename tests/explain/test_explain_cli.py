"""`likewise explain` as a user meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from likewise.data.links import read_links
from tests import forks

PAIR = ("The old man plays guitar in the park.", "A woman reads one book near the river.")


def call(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "100", "NO_COLOR": "1"}
    return forks.run("explain", *arguments, env=environment, **options)


@pytest.fixture
def explain(here, tiny_encoder):
    """The verb in this process, by the tiny encoder and the rules."""
    return lambda *more: here(
        "explain", *more, "--model", tiny_encoder, "--phrases", "rules", "--device", "cpu"
    )


def test_two_texts_in_a_process_of_their_own(tiny_encoder, tmp_path):
    options = ("--model", tiny_encoder, "--phrases", "rules", "--device", "cpu")
    plain = call(*PAIR, *options, cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    lines = plain.stdout.splitlines()
    assert lines[0].endswith("similarity, on -1..1, from the cosine")
    assert {"strength", "chance"} <= set(plain.stdout.split())
    assert "least matched in the first text" in plain.stdout
    assert "\x1b[" not in plain.stdout
    told = call(*PAIR, *options, "--json", "--html", "page.html", cwd=tmp_path)
    document = json.loads(told.stdout)
    assert document["a"]["text"] == PAIR[0]
    for phrase in document["a"]["phrases"]:
        assert phrase["text"] in lines[2]
    assert (tmp_path / "page.html").read_text(encoding="utf8").startswith("<!doctype html>")
    assert "1 pair explained: page.html" in told.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_a_file_becomes_a_corpus_of_links(explain, tmp_path, ending):
    from likewise.data import TableWriter

    rows = [{"id": n, "premise": f"a man {n}", "hypothesis": "the man plays"} for n in range(5)]
    with TableWriter(tmp_path / f"in.{ending}", list(rows[0])) as writer:
        for row in rows:
            writer.write_row(row)
    code, said = explain(f"in.{ending}", "--output", "aligned.jsonl.gz")
    assert code == 0, said
    assert "texts from columns 'premise' and 'hypothesis'" in said
    assert "5 pairs aligned: aligned.jsonl.gz (phrases by rules)" in said
    found = list(read_links(tmp_path / "aligned.jsonl.gz"))
    assert [pair.id for pair in found] == ["0", "1", "2", "3", "4"]
    assert all("phrases by rules" in pair.by for pair in found)
    assert all(0 <= link.score <= 1 for pair in found for link in pair.links)


def test_a_file_is_told_line_by_line_or_as_a_page(explain, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.cli.explain.PAGE_LIMIT", 2)
    rows = "".join(f"the dog {n},a cat\n" for n in ("one", "two", "three"))
    (tmp_path / "p.csv").write_text(f"text_a,text_b\n{rows}", encoding="utf8")
    code, said = explain("p.csv", "--json", "--html", "p.html")
    assert code == 0, said
    documents = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [one["source"] for one in documents] == ["p.csv:2", "p.csv:3", "p.csv:4"]
    assert "2 pairs explained: p.html (only the first 2 of 3 pairs; --json gives all of them)" in said
    assert (tmp_path / "p.html").read_text(encoding="utf8").count("<article") == 2
    assert "p.csv:4" in explain("p.csv")[1]


PAGES = {
    "all of them": (["the dog", "a dog"], None),
    "cut": (["the dog", "a dog", "a cat", "one cat"], "the first 2 of 4 pairs"),
    "cut, and a wrong one further down": (
        ["the dog", "a dog", *["a cat"] * 300, ""],
        "the first 2 pairs",
    ),
}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("case", PAGES)
def test_a_page_that_is_cut_says_so_itself(explain, tmp_path, monkeypatch, case, links):
    monkeypatch.setattr("likewise.cli.explain.PAGE_LIMIT", 2)
    texts, expected = PAGES[case]
    rows = [{"text_a": text, "text_b": "a man", "links": []} for text in texts]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    code, said = explain(*(["--links"] if links else []), "p.jsonl", "--html", "p.html")
    assert code == 0, said
    page = (tmp_path / "p.html").read_text(encoding="utf8")
    if expected is None:
        assert "the first 2" not in page
    else:
        assert (
            f'<p class="part">This page shows {expected}. Run likewise explain '
            f"with --json to get all of them.</p>"
        ) in page


def test_links_that_were_written_are_shown_as_they_were_before(explain, tmp_path):
    texts = [PAIR, ("A man reads; a dog sleeps!", "The dog sleeps, one man reads.")]
    rows = "".join(f"{a}\t{b}\n" for a, b in texts)
    (tmp_path / "p.tsv").write_text(f"text_a\ttext_b\n{rows}", encoding="utf8")
    code, said = explain("p.tsv", "--output", "l.jsonl")
    assert code == 0, said
    direct, again = explain("p.tsv")[1], explain("--links", "l.jsonl")[1]
    direct = direct.replace("p.tsv: reading texts from columns 'text_a' and 'text_b'\n", "")
    assert again == direct.replace("p.tsv:2", "l.jsonl:1").replace("p.tsv:3", "l.jsonl:2")
    assert "phrases by rules, links by likewise" in again
    assert again.count("phrases by") == 2


BY = {
    "nobody is named": ({}, "phrases and links as given; carries: change in similarity"),
    "one is named": ({"by": "Ann"}, "phrases as given, links by Ann; carries: change in similarity"),
    "both are named": (
        {"by": "Ann, phrases by Bob"},
        "phrases by Bob, links by Ann; carries: change in similarity",
    ),
}


@pytest.mark.parametrize("case", BY)
def test_who_made_phrases_and_links_is_one_line(explain, tmp_path, case):
    fields, expected = BY[case]
    row = {"text_a": "the man", "text_b": "a man", "links": [], **fields}
    (tmp_path / "their.jsonl").write_text(json.dumps(row) + "\n", encoding="utf8")
    assert explain("--links", "their.jsonl")[1].rstrip().splitlines()[-1].strip() == expected
    explain("--links", "their.jsonl", "--html", "page.html")
    line = expected[0].upper() + expected[1:]
    assert f'<p class="by">{line}.</p>' in (tmp_path / "page.html").read_text(encoding="utf8")


def test_words_beyond_the_encoder_are_told_everywhere(explain, tmp_path):
    expected = (
        "the last 8 words of the second text are beyond the encoder's limit "
        "of 64 tokens and were not compared"
    )
    texts = ("the dog", "dog " * 70 + "!")
    assert expected in " ".join(explain(*texts)[1].split())
    code, said = explain(*texts, "--json", "--html", "page.html")
    assert code == 0, said
    assert expected in json.loads(said[said.index("{") : said.rindex("}") + 1])["notes"]
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert expected.replace("'", "&#x27;") in page


def test_links_of_others_are_shown(explain, tmp_path):
    line = {
        "text_a": "the old man",
        "text_b": "a man",
        "links": [{"a": [1, 3], "b": [1, 2], "score": 3}],
        "by": "Ann",
    }
    (tmp_path / "their.jsonl").write_text(json.dumps(line) + "\n", encoding="utf8")
    code, said = explain("--links", "their.jsonl")
    assert code == 0, said
    assert "links by Ann" in said
    assert "[the]" in said
    code, said = explain("--links", "their.jsonl", "--json")
    assert json.loads(said)["links"][0]["score"] == 3
    code, said = explain("their.jsonl", "--json")
    assert "To explain with them: --links their.jsonl" in said


WRONG = {
    "out of bounds": (
        '"links": [{"a": [0, 9], "b": [0, 1]}]',
        "their.jsonl:2: links[0].a is [0, 9], which is outside the 3 words",
    ),
    "crossing": (
        '"links": [], "spans_a": [[0, 2], [1, 3]]',
        "their.jsonl:2: spans_a holds [0, 2] and [1, 3], which cross",
    ),
    "links that cross": (
        '"links": [{"a": [0, 2], "b": [0, 1]}, {"a": [1, 3], "b": [1, 2]}]',
        "their.jsonl:2: in text_a, [0, 2] 'the old' of links crosses [1, 3] 'old man' of links",
    ),
    "overlapping words": (
        '"links": [], "words_b": [[0, 2], [1, 3]]',
        "their.jsonl:2: words_b[1] is [1, 3]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_links_are_refused_with_file_line_and_remedy(explain, tmp_path, case):
    fields, expected = WRONG[case]
    texts = '"text_a": "the old man", "text_b": "a man"'
    good = f'{{{texts}, "links": []}}\n'
    (tmp_path / "their.jsonl").write_text(f"{good}{{{texts}, {fields}}}\n", encoding="utf8")
    code, said = explain("--links", "their.jsonl", "--html", "page.html")
    assert code == 1
    assert expected in said
    assert re.search(r"\. [A-Z]", said.partition(expected)[2])
    assert not (tmp_path / "page.html").exists()


CALLS = {
    "nothing": ([], "Give two texts in quotes, a file of pairs, or --links FILE"),
    "one text": (["only one"], "'only one' is not a file. For two texts, give both"),
    "missing file": (["missing.csv"], "missing.csv: there is no such file"),
    "file and text": (["p.csv", "a text"], "'p.csv' is a file. Give two texts in quotes, or one file alone"),
    "three": (["a", "b", "c"], "3 arguments"),
    "empty text": (["a", " "], "one of the two texts is empty"),
    "texts to a corpus": (
        ["a", "b", "--output", "x.jsonl"],
        "need a file of pairs, but two texts were given",
    ),
    "corpus as a table": (["p.csv", "--output", "x.csv"], "Choose a name that ends in .jsonl"),
    "corpus as a page": (["p.csv", "--output", "x.jsonl", "--html", "x.html"], "--output writes links"),
    "links and texts": (["a", "b", "--links", "p.csv"], "--links brings its own texts"),
    "missing links": (["--links", "no.jsonl"], "there is no such file"),
    "no links": (["--links", "empty.jsonl"], "holds no pair"),
    "other relation": (
        ["a", "b", "--relation", "topic"],
        "does not answer relation 'topic'. It answers similarity",
    ),
    "not UTF-8": (["a", "\udcff"], "not UTF-8"),
    "long text": (["a", "dog " * 1001], "the second text has 1,001 words, but at most 1,000"),
    "no rows": (["head.csv", "--output", "x.jsonl"], "no rows"),
    "bad row": (["bad.csv", "--output", "x.jsonl"], "bad.csv:3"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_wrong_call_is_one_message_and_leaves_nothing(explain, tmp_path, case):
    (tmp_path / "p.csv").write_text("text_a,text_b\na man,a dog\n", encoding="utf8")
    (tmp_path / "head.csv").write_text("text_a,text_b\n", encoding="utf8")
    (tmp_path / "bad.csv").write_text("text_a,text_b\na man,a dog\n,a dog\n", encoding="utf8")
    (tmp_path / "empty.jsonl").write_text("", encoding="utf8")
    before = sorted(tmp_path.iterdir())
    arguments, expected = CALLS[case]
    code, said = explain(*arguments)
    assert code in (1, 2), said
    assert expected in said
    assert "Traceback" not in said
    assert sorted(tmp_path.iterdir()) == before


def test_a_model_of_word_vectors_is_refused(here, tiny_vectors, tmp_path):
    from likewise.encoders.words import average_encoder

    average_encoder(tiny_vectors, device="cpu").save(str(tmp_path / "m"), create_model_card=False)
    code, said = here("explain", "a man", "a dog", "--model", "m", "--device", "cpu")
    assert code == 1
    assert "phrases need the states of a transformer and a fast tokenizer, which this encoder lacks" in said
    assert said.endswith("; choose another --model\n")


def test_rules_stand_in_for_a_parser_and_say_so_once(here, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    (tmp_path / "p.csv").write_text("a,b\n" + "a man,a dog\n" * 300, encoding="utf8")
    code, said = here("explain", "p.csv", "--output", "x.jsonl", "--model", tiny_encoder, "--device", "cpu")
    assert code == 0
    assert (
        said.count(
            "spaCy is not installed, so phrases are found by rules. For better phrases, run pip install"
        )
        == 1
    )


def test_terminal_breaks_no_line_and_moves_no_cursor(explain):
    code, said = explain("a man\n\x1b[2Jplays", "הכלב 🙂 ישן")
    assert code == 0
    assert "\x1b[2J" not in said
    assert "הכלב" in said


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_no_file(tiny_encoder, tmp_path, stop, code):
    rows = "".join(f"the dog {n} plays in the park,a cat {n} sleeps\n" for n in range(20_000))
    (tmp_path / "p.csv").write_text(f"text_a,text_b\n{rows}", encoding="utf8")
    options = ("--output", "x.jsonl", "--phrases", "rules", "--model", tiny_encoder, "--device", "cpu")
    process = forks.Fork("explain", "p.csv", *options, cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".likewise-*/whole")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(stop)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]
