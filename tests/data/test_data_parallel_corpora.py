"""Parallel corpora by name: found, counted, checked and listed; never taken for rated pairs."""

from __future__ import annotations

import bz2
import json

import pytest
from typer.testing import CliRunner

from likewise.cli.data import app
from likewise.data import catalogue, check, corpus_names, find_corpus, load_corpus, load_records
from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import verify
from likewise.data.parallel import find_language, parallel_names, read_parallel
from likewise.errors import DataError, UsageError

PARALLEL = [name for name in corpus_names() if find_corpus(name).kind == "translations"]
ROWS = ["en\tde\tsource", "One day.\tEin Tag.\tx", "Tom\tTom\tx", "\tLeer.\tx", "One day.\tEin Tag.\ty"]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A data folder and a catalogue with one invented parallel corpus of four rows."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    splits = {
        "en-de_train": Split("en-de_train", "tiny/en-de.train.tsv.xz", 4, language="en-de"),
        "de-en_test": Split("de-en_test", "tiny/de-en.test.tsv.xz", 4, language="de-en"),
    }
    corpus = Corpus("tiny", "Tiny", "CC0", "nobody", (), (), splits, kind="translations")
    known = {**catalogue._catalogue(), "tiny": corpus}
    monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
    write(tmp_path, ROWS)
    return tmp_path


def write(folder, rows):
    (folder / "tiny").mkdir(exist_ok=True)
    content = "".join(f"{row}\n" for row in rows).encode()
    (folder / "tiny" / "en-de.train.tsv.bz2").write_bytes(bz2.compress(content))


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_parallel_corpora_are_read_by_name(tiny, monkeypatch):
    for source in ("tiny/en-de_train", "corpus:tiny/en-de_train"):
        text = read_parallel(source, data_dir=tiny)
        assert (list(text), text.language_a, text.language_b) == ([("One day.", "Ein Tag.")], "en", "de")
        assert (text.name, text.report.rows) == ("tiny/en-de.train.tsv.bz2", 4)
    assert list(read_parallel("tiny/en-de_train", ("de", "en"), data_dir=tiny)) == [("Ein Tag.", "One day.")]
    assert read_parallel("tiny/en-de_train", name="mine", data_dir=tiny).name == "mine"
    monkeypatch.setenv("LIKEWISE_DATA", str(tiny))
    assert len(read_parallel("tiny/en-de_train", keep_identical=True)) == 2


def test_parallel_corpora_wrong_rows_and_absent_files_are_errors(tiny):
    with pytest.raises(
        DataError, match=r"tiny/de-en_test: tiny/de-en\.test\.tsv\.xz was not found .*data_dir="
    ):
        read_parallel("tiny/de-en_test", data_dir=tiny)
    write(tiny, ROWS[:-1])
    with pytest.raises(
        DataError,
        match=r"corpus tiny/en-de_train: the file has 3 rows, but 4 are expected\. Copy or download",
    ):
        read_parallel("tiny/en-de_train", data_dir=tiny)
    corpus = find_corpus("tiny")
    (problem,) = verify(corpus, corpus.find_split("en-de_train"), tiny)
    assert problem.message == "the file has 3 rows, but 4 are expected"


def test_parallel_corpora_files_that_are_there_win(tiny, monkeypatch):
    monkeypatch.chdir(tiny)
    for language, line in {"en": "from a file", "de": "aus einer Datei"}.items():
        (tiny / "tiny" / f"en-de_train.{language}").write_text(f"{line}\n", encoding="utf-8")
    assert read_parallel("tiny/en-de_train", ("en", "de")).a == ["from a file"]
    assert read_parallel("tiny/en-de_train", data_dir=tiny).a == ["One day."]


def test_parallel_corpora_and_rated_ones_are_not_mistaken_for_each_other(tiny):
    expected = r"'tiny' holds translations, but rated pairs are expected. Use it under `parallel`"
    for take in (load_corpus, lambda name, split, **more: load_records(f"{name}/{split}", **more)):
        with pytest.raises(UsageError, match=expected):
            take("tiny", "en-de_train", data_dir=tiny)
    with pytest.raises(UsageError, match=expected):
        check("tiny/en-de_train", relations=["similarity:0..5"], data_dir=tiny)
    for source in ("stsb/dev", "stsb_multi_mt/en-de_test"):
        with pytest.raises(
            UsageError, match=r"holds rated pairs, but translations are expected\. Use it under `data`"
        ):
            read_parallel(source, data_dir=tiny)


def test_parallel_corpora_unknown_splits():
    with pytest.raises(
        UsageError, match=r"corpus 'tatoeba' has no split 'en-xx_train'\. Choose one of en-ar_t"
    ):
        read_parallel("tatoeba/en-xx_train")
    with pytest.raises(UsageError, match=r"corpus 'tatoeba_laser' has several splits \(ar-en_test, "):
        read_parallel("tatoeba_laser")


def test_parallel_names_lists_what_can_be_read(tiny):
    assert parallel_names("tiny") == ("tiny/en-de_train", "tiny/de-en_test")
    assert parallel_names("tiny", "test") == ("tiny/de-en_test",)
    assert find_corpus("tiny").language_pairs == (("en", "de"), ("de", "en"))
    assert find_corpus("stsb").language_pairs == ()
    with pytest.raises(UsageError, match=r"has no part 'dev'\. Choose one of train, test"):
        parallel_names("tiny", "dev")
    with pytest.raises(UsageError, match="holds rated pairs"):
        parallel_names("stsb")


def test_parallel_catalogue_uses_our_language_codes():
    assert PARALLEL == ["tatoeba", "tatoeba_laser"]
    for corpus in map(find_corpus, PARALLEL):
        for name, split in corpus.splits.items():
            assert name == f"{split.language}_{split.part}"
            assert [find_language(code).code for code in split.languages] == list(split.languages)
            assert len(split.languages) == 2
            assert len(split.sha256) == 64
    assert len(parallel_names("tatoeba", "train")) == 18
    assert parallel_names("tatoeba", "pivot_train")[0] == "tatoeba/es-zh_pivot_train"
    laser = find_corpus("tatoeba_laser").splits
    assert laser["zh-en_test"].file == "tatoeba_laser/cmn-eng.tsv.xz"
    assert laser["nb-en_test"].file == "tatoeba_laser/nob-eng.tsv.xz"


def test_parallel_check_reports_what_reading_drops(tiny):
    report = check("tiny/en-de_train", data_dir=tiny)
    assert (report.ok, report.rows, report.texts, report.relations) == (True, 4, ("en", "de"), [])
    assert report.counts == {"same text on both sides": 1, "empty side": 1, "duplicate row": 1}
    assert report.length_range == (8, 8, 8)
    first = report.findings[0].problem
    assert str(first) == (
        "tiny/en-de.train.tsv.bz2:3: 1 of 4 rows were dropped (the same text on "
        "both sides). This is the first one."
    )
    write(tiny, [*ROWS, *ROWS[1:2] * 40])
    report = check("tiny/en-de_train", data_dir=tiny)
    assert report.counts["duplicate row"] == 41
    assert report.findings[0].kind == "other version"


def test_parallel_check_warns_of_another_language(tiny):
    german = [f"Das ist der Satz mit der Nummer {n}, und er ist nicht auf Englisch." for n in range(60)]
    write(tiny, ["en\tde", *(f"{line}\tUnd {line}" for line in german)])
    assert check("tiny/en-de_train", data_dir=tiny).counts == {"other version": 1, "another language": 1}


def test_parallel_check_of_an_absent_and_a_broken_file(tiny):
    (finding,) = check("tiny/de-en_test", data_dir=tiny).findings
    assert (finding.kind, "was not found" in finding.problem.message) == ("unreadable", True)
    (tiny / "tiny" / "en-de.train.tsv.bz2").write_bytes(b"BZh9")
    assert set(check("tiny/en-de_train", data_dir=tiny).counts) == {"other version", "unreadable"}
    result = call("check", "tiny", "--data-dir", tiny)
    assert (result.exit_code, result.output.count("unreadable")) == (1, 2)


def test_parallel_cli_list_shows_them_apart(tiny, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    rated, _, parallel = call("list", "--data-dir", tiny).output.partition("Parallel text:")
    assert "tatoeba" not in rated
    assert "stsb" not in parallel
    assert "in 18 pairs" in parallel
    assert "XX-YY_pivot_train 16,938" in parallel
    assert "in part" in parallel
    entries = {entry["name"]: entry for entry in json.loads(call("list", "--json").stdout)}
    assert (entries["tatoeba"]["kind"], entries["stsb"]["kind"]) == ("translations", "rated")
    assert entries["tiny"]["languages"] == ["en", "de"]
    assert entries["tiny"]["splits"][1]["language"] == "de-en"


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name", ["tatoeba/en-en_test", "tatoeba/tr-pl_pivot_train", *parallel_names(PARALLEL[-1])]
)
def test_parallel_real_corpora_have_the_catalogues_languages(name, data_dir):
    corpus, _, split = name.partition("/")
    if not (data_dir / corpus).is_dir():
        pytest.skip(f"{corpus} is not in {data_dir}")
    text = read_parallel(name, data_dir=data_dir)
    assert f"{text.language_a}-{text.language_b}" == find_corpus(corpus).find_split(split).language
