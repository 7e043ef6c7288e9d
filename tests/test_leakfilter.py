"""The leak filter by side: whose texts, whole corpora, suites and files; translations as before."""

from __future__ import annotations

import json

import pytest

from likewise.data import text_key
from likewise.data.paraphrases import read_paraphrases, without_texts
from likewise.errors import UsageError
from likewise.kinds.leaks import evaluation_sets, parallel_keys, side_keys, sides_line

FILES = {
    "rte/train.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA hut.\tA shed.\tentailment\n",
    "rte/dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA barn.\tA cow.\tnot_entailment\n",
    "rte/test.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA lake.\tWater.\t\n",
    "cola/train.tsv": "source\tlabel\tauthor_mark\tsentence\nx\t1\t\tBirds fly.\n",
    "cola/dev_in_domain.tsv": "source\tlabel\tauthor_mark\tsentence\nx\t0\t*\tFly birds they.\n",
    "cola/dev_out_of_domain.tsv": "source\tlabel\tauthor_mark\tsentence\nx\t1\t\tFish swim.\n",
    "asset/simple_wikipedia/asset.test.jsonl": json.dumps(
        {"normal": "It rained.", "crowd_simplifications": ["it rained", "Rain fell."]}
    ),
    "own.csv": "text_a,text_b\nOne.,Two.\n",
    "single.csv": "text,label\nThree.,x\n",
}


def keys(*texts):
    return {text_key(text) for text in texts}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Invented rows in the places of named corpora, and two files."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_side_keys_of_a_corpus_without_a_split_are_those_of_all_of_it(folder):
    assert side_keys(["rte"], data_dir=folder) == keys(
        "A hut.", "A shed.", "A barn.", "A cow.", "A lake.", "Water."
    )
    assert side_keys(["cola"], data_dir=folder) == keys("Birds fly.", "Fly birds they.", "Fish swim.")
    assert side_keys(["rte/test", "cola/train"], data_dir=folder) == keys("A lake.", "Water.", "Birds fly.")
    assert side_keys([], data_dir=folder) == set()


def test_side_keys_of_files(folder):
    assert side_keys([str(folder / "own.csv"), str(folder / "single.csv")], data_dir=None) == keys(
        "One", "Two", "Three"
    )


def test_side_keys_of_paraphrases_hold_those_that_reading_drops(folder, monkeypatch):
    from likewise.data.catalogue import Split, find_corpus

    monkeypatch.setitem(
        find_corpus("asset").splits, "test", Split("test", "simple_wikipedia/asset.test.jsonl", 1)
    )
    assert side_keys(["asset/test"], data_dir=folder) == keys("It rained", "Rain fell")


@pytest.mark.realdata
def test_side_keys_of_a_suite_are_those_of_its_tests(data_dir):
    found = side_keys(["paraphrase"], data_dir=data_dir)
    assert found == side_keys(
        [
            *("mrpc/test", "stsb/test", "qqp/test", "mnli/dev", "rte/dev", "sst2/test"),
            *("cola/dev_in_domain", "cola/dev_out_of_domain"),
        ],
        data_dir=data_dir,
    )


def test_filter_by_side_is_stricter_than_by_pair(folder):
    pairs = read_paraphrases([("A hut.", "A cabin."), ("A hill.", "A mound.")])
    assert len(without_texts(pairs, side_keys(["rte"], data_dir=folder))) == 1
    sets = evaluation_sets(["rte/train"], data_dir=folder)
    assert [record.texts for record in sets["rte/train"]] == [("A hut.", "A shed.")]  # the pair is another


def test_filter_by_pair_still_wants_a_split(folder):
    with pytest.raises(UsageError, match="corpus 'rte' has several splits"):
        evaluation_sets(["rte"], data_dir=folder)


def test_filter_line_says_what_was_kept():
    assert sides_line("tatoeba_paraphrases/train", kept=36112, total=40000, against=["mrpc", "stsb"]) == (
        "leak filter: 36,112 of 40,000 tatoeba_paraphrases/train pairs kept, others have a side in mrpc, stsb"
    )


@pytest.mark.realdata
def test_parallel_keys_take_parallel_sets_alone(data_dir):
    found = parallel_keys(["tatoeba_laser/de-en_test", "stsb/test"], data_dir=data_dir)
    assert found == side_keys(["tatoeba_laser/de-en_test"], data_dir=data_dir)
    assert 1_000 < len(found) <= 2_000


@pytest.mark.realdata
def test_filter_by_side_on_real_data(data_dir):
    found = side_keys(["mrpc", "stsb", "qqp", "mnli", "rte", "sst2", "cola"], data_dir=data_dir)
    for source, kept in (
        ("qqp_duplicates", 29_833),
        ("tatoeba_paraphrases/train", 39_271),
        ("asset/valid", 19_096),
    ):
        assert len(without_texts(read_paraphrases(source, data_dir=data_dir), found)) == kept
    positives = read_paraphrases("mrpc/dev", only={"paraphrase": "paraphrase"}, data_dir=data_dir)
    assert without_texts(positives, found) == []
