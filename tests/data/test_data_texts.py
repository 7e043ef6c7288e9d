"""Every corpus, and any table, can be read as single texts without ratings."""

from __future__ import annotations

import json

import pytest

from likewise.data import catalogue, corpus_names, find_corpus
from likewise.data.catalogue import Corpus, Split
from likewise.data.texts import read_texts
from likewise.errors import DataError, UsageError

FILES = {
    "own/rated.tsv": "one\ttwo\tscore\nA boat floats.\tRain falls.\t1\nRain falls.\tSnow falls.\t2\n",
    "own/crossed.tsv": "one\ttwo\nEin Boot.\tEin Schiff.\nRegen.\tSchnee.\n",
    "own/translations.tsv": "tr\tpl\nBir gemi.\tStatek.\nYağmur.\tDeszcz.\nBir gemi.\tStatek.\n",
    "own/said.jsonl": json.dumps({"plain": "A boat.", "said": ["A ship.", "A boat.", "It floats."]}) + "\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder and a catalogue with an invented corpus of each kind."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def corpus(name, split, texts, **options):
        return Corpus(name, name, "CC0", "nobody", texts, (), {split.name: split}, **options)

    english = Split("en_test", "own/rated.tsv", 2)
    german = Split("de_test", "own/crossed.tsv", 2, language="de")
    pair = Split("tr-pl_train", "own/translations.tsv", 3, language="tr-pl")
    known = {
        "boats": corpus("boats", english, ("one", "two")),
        "two": Corpus(
            "two",
            "two",
            "CC0",
            "nobody",
            ("one", "two"),
            (),
            {"en_test": english, "de_test": german},
            translated=True,
        ),
        "words": corpus("words", pair, (), kind="translations"),
        "said": corpus("said", Split("all", "own/said.jsonl", 1), ("plain", "said"), kind="paraphrases"),
    }
    monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
    monkeypatch.setattr("likewise.data.reading.corpus_names", lambda: tuple(known))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "options", "texts"),
    [
        ("boats", {}, ["A boat floats.", "Rain falls.", "Snow falls."]),
        ("boats", {"columns": ["two"]}, ["Rain falls.", "Snow falls."]),
        ("boats", {"language": "en"}, ["A boat floats.", "Rain falls.", "Snow falls."]),
        ("words", {}, ["Bir gemi.", "Yağmur.", "Statek.", "Deszcz."]),
        ("words", {"language": "pl"}, ["Statek.", "Deszcz."]),
        ("words", {"columns": ["tr"]}, ["Bir gemi.", "Yağmur."]),
        ("two/en-de_test", {"language": "de"}, ["Ein Schiff.", "Schnee."]),
        ("said", {}, ["A boat.", "A ship.", "It floats."]),
        ("said", {"columns": ["plain"]}, ["A boat."]),
    ],
)
def test_texts_of_corpora_of_every_kind(folder, source, options, texts):
    assert read_texts(source, data_dir=folder, **options) == texts


def test_texts_of_tables(folder):
    assert read_texts([{"text": "One."}, {"text": "Two."}, {"text": "One."}]) == ["One.", "Two."]
    table = str(folder / "own" / "rated.tsv")
    assert read_texts(table, columns=["two"]) == ["Rain falls.", "Snow falls."]


def test_texts_say_what_is_not_there(folder):
    with pytest.raises(UsageError, match=r"corpus 'boats' has no text column three\. Choose from one, two"):
        read_texts("boats", columns=["three"], data_dir=folder)
    with pytest.raises(
        UsageError, match=r"words/tr-pl_train has no texts in 'de'\. Its languages are tr, pl"
    ):
        read_texts("words", language="de", data_dir=folder)
    with pytest.raises(UsageError, match="chooses a side of a named corpus"):
        read_texts([{"text": "One."}], language="de")
    with pytest.raises(DataError, match="column 'three'"):
        read_texts(str(folder / "own" / "rated.tsv"), columns=["three"])
    (folder / "empty.tsv").write_text("text\tlabel\n", encoding="utf-8")
    with pytest.raises(DataError, match="no rows"):
        read_texts(folder / "empty.tsv")
    (folder / "own" / "said.jsonl").write_text(FILES["own/said.jsonl"] * 2, encoding="utf-8")
    with pytest.raises(DataError, match="the file has 2 rows, but 1 are expected"):
        read_texts("said", data_dir=folder)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("source", "language", "count"),
    [
        ("cxc/test", None, 24824),
        ("tatoeba/en-de_train", "en", None),
        ("asset/valid", None, None),
        ("turkcorpus/tune", None, None),
        ("snli/train", None, None),
        ("mnli/train", None, None),
    ],
)
def test_texts_of_the_corpora_to_distil_on(data_dir, source, language, count):
    found = read_texts(source, language=language, data_dir=data_dir)
    assert len(found) == len(set(found)) > 10_000
    assert count is None or len(found) == count


@pytest.mark.slow
@pytest.mark.realdata
def test_texts_of_every_corpus(data_dir):
    for name in corpus_names():
        if name != "sick9840":
            split = next(iter(find_corpus(name).splits))
            assert read_texts(f"{name}/{split}", data_dir=data_dir)
