"""The leak filter by side: whose texts, whole corpora, suites and files; translations as before."""

from __future__ import annotations

import json

import pytest

from likewise.data import catalogue, text_key
from likewise.data.catalogue import Corpus, Split, find_corpus, is_parallel_corpus
from likewise.data.paraphrases import read_paraphrases, without_texts
from likewise.errors import UsageError
from likewise.kinds.context import RunContext
from likewise.kinds.leaks import SideFilter, evaluation_sets, leak_line, side_keys
from likewise.recipes.prepared import read_stages
from likewise.recipes.run import jobs_of
from likewise.schema.recipe import parse_recipe

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


PARALLEL = find_corpus("tatoeba_laser").kind


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


def test_filter_line_says_what_was_kept(folder):
    found = leak_line(
        "tatoeba_paraphrases/train",
        kept=36112,
        total=40000,
        others="have a side in mrpc, stsb",
        rows="pairs",
    )
    assert found == (
        "leak filter: 36,112 of 40,000 tatoeba_paraphrases/train pairs kept, others have a side in mrpc, stsb"
    )
    pairs = read_paraphrases([("A hut.", "A cabin."), ("A hill.", "A mound.")])
    for allow, kept, line in (
        (False, 1, "leak filter: 1 of 2 mine pairs kept, others have a side in rte, cola"),
        (True, 2, "LEAK LET IN: 1 of 2 mine pairs have a side in rte, cola"),
    ):
        notes: list[str] = []
        leaks = SideFilter(["rte", "cola"], allow=allow, data_dir=folder)
        assert len(leaks.paraphrases("mine", pairs, notes)) == kept
        assert notes == [line]


def test_translations_are_filtered_against_parallel_sets_alone(folder, monkeypatch):
    """One row has a side in the parallel set, one in a set of rated pairs: the second one stays."""
    split = Split("de-en_test", "retrieval/de-en.tsv", 1, language="de-en")
    corpus = Corpus("retrieval", "Retrieval", "CC0", "nobody", (), (), {split.name: split}, kind=PARALLEL)
    known = {**catalogue._catalogue(), "retrieval": corpus}
    monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
    (folder / "retrieval").mkdir()
    (folder / "retrieval" / "de-en.tsv").write_text("de\ten\nEin See.\tThe lake.\n", encoding="utf-8")
    (folder / "mine.tsv").write_text(
        "en\tde\nThe lake!\tDer See.\nA hut.\tEine Hütte.\nA hill.\tEin Hügel.\n", encoding="utf-8"
    )
    against = ["retrieval/de-en_test", "rte/train"]
    assert [is_parallel_corpus(name) for name in against] == [True, False]
    stage = {
        "kind": "parallel",
        "parallel": [{"source": str(folder / "mine.tsv"), "languages": ["en", "de"]}],
        "filter_against": against,
    }
    recipe = parse_recipe({"name": "x", "relation": {"similarity": {}}, "stage": [stage]}, "x")
    [data] = read_stages(jobs_of(recipe, RunContext(data_dir=folder)))
    [text] = data.rows.parallel
    assert list(text) == [("A hut.", "Eine Hütte."), ("A hill.", "Ein Hügel.")]
    [line] = [line for line in data.notes if line.startswith("leak filter")]
    assert line.endswith("rows kept, others have a side in retrieval/de-en_test")
    assert "2 of 3 " in line


@pytest.mark.realdata
def test_keys_of_the_parallel_sets_among_others(data_dir):
    against = ["tatoeba_laser/de-en_test", "stsb/test"]
    found = side_keys([name for name in against if is_parallel_corpus(name)], data_dir=data_dir)
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
