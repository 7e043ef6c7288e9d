"""The leak filter by side: whose texts, whole corpora, suites and files; translations as before."""

from __future__ import annotations

import json

import pytest

from likewise.data import catalogue, text_key
from likewise.data.catalogue import Corpus, Split, find_corpus, is_parallel_corpus
from likewise.data.paraphrases import read_paraphrases, without_texts
from likewise.errors import RecipeError, UsageError
from likewise.kinds.context import RunContext
from likewise.kinds.leaks import SideFilter, evaluation_sets, leak_line, side_keys
from likewise.recipes.prepared import read_stages
from likewise.recipes.run import jobs_of
from likewise.registry import KINDS
from likewise.schema.base import Stage
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
        others="with a side in mrpc, stsb",
        rows="pairs",
    )
    assert found == (
        "leak filter: kept 36,112 of 40,000 pairs of tatoeba_paraphrases/train; "
        "dropped 3,888 with a side in mrpc, stsb"
    )
    pairs = read_paraphrases([("A hut.", "A cabin."), ("A hill.", "A mound.")])
    for allow, kept, line in (
        (False, 1, "leak filter: kept 1 of 2 pairs of mine; dropped 1 with a side in rte, cola"),
        (True, 2, "leak not filtered: 2 pairs of mine, 1 of them with a side in rte, cola"),
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
    assert line.endswith("; dropped 1 with a side in retrieval/de-en_test")
    assert "kept 2 of 3 rows of " in line


TEST = "text_a,text_b,similarity\nThe old grey ship left port at dawn.,A boat sailed away.,4\n"
# Its pair, swapped; one text; nearly all words; nothing.
ROWS = (
    "text_a,text_b,similarity\na boat sailed away,The old grey ship left port at dawn,4\n"
    "A boat sailed away!,Birds fly.,1\n"
    "At dawn the old grey ship left port.,Away sailed a boat.,3\n"
    "Fish swim.,Birds sing.,2\nCows graze.,Sheep graze.,3\n"
)


def notes_of(stage, folder, relation=None):
    """The notes and rows that the stage of a recipe is read with."""
    relations = relation or {"similarity": {}}
    recipe = parse_recipe({"name": "x", "relation": relations, "stage": [stage]}, "x")
    [data] = read_stages(jobs_of(recipe, RunContext(data_dir=folder)))
    return data, [line for line in data.notes if "leak" in line.lower() or line.startswith("dev:")]


@pytest.fixture
def ships(folder):
    """Training, dev and test files, and the beginning of a stage over them."""
    (folder / "test.csv").write_text(TEST, encoding="utf8")
    (folder / "train.csv").write_text(ROWS, encoding="utf8")
    (folder / "dev.csv").write_text(ROWS, encoding="utf8")
    return {
        "data": [{"source": str(folder / "train.csv")}],
        "dev": [{"source": str(folder / "dev.csv")}],
        "filter_against": [str(folder / "test.csv")],
    }


PAIRS = {"objective": [{"relation": "similarity", "head": "cosine", "loss": "mse"}]}


@pytest.mark.parametrize("kind", [PAIRS, {"kind": "joint"}, {"kind": "refine"}])
def test_strict_drops_rows_that_share_a_text_and_near_copies_from_training_and_dev(folder, ships, kind):
    data, lines = notes_of({**ships, **kind, "leak_filter": "strict"}, folder)
    assert [record.a for record in data.rows.train] == ["Fish swim.", "Cows graze."]
    assert [record.a for entry in data.dev for record in entry.records] == ["Fish swim.", "Cows graze."]
    found = f"their pair (1), one text (1) or a near-duplicate (1) with {folder}/test.csv"
    assert lines == [
        f"leak filter: kept 2 of 5 rows of {folder}/train.csv; dropped 3 sharing {found}",
        f"leak filter, dev set: kept 2 of 5 rows of {folder}/dev.csv; dropped 3 sharing {found}",
    ]


def test_the_filter_by_pair_is_the_default_and_says_what_it_said(folder, ships):
    plain, lines = notes_of({**ships, **PAIRS}, folder)
    said, again = notes_of({**ships, **PAIRS, "leak_filter": "pair"}, folder)
    assert (
        lines
        == again
        == [
            f"leak filter: kept 4 of 5 rows of {folder}/train.csv; dropped 1 found in {folder}/test.csv",
            "leak filter, dev set: "
            f"kept 4 of 5 rows of {folder}/dev.csv; dropped 1 found in {folder}/test.csv",
        ]
    )
    assert plain.rows.train == said.rows.train


def test_strict_leak_that_is_let_in_is_counted_by_reason_and_dev_stays_strict(folder, ships):
    data, lines = notes_of({**ships, **PAIRS, "leak_filter": "strict", "allow_leak": True}, folder)
    assert len(data.rows.train) == 5
    assert sum(len(entry.records) for entry in data.dev) == 2
    assert lines[0] == (
        f"leak not filtered: 5 rows of {folder}/train.csv, 3 of them sharing their pair (1), one text (1) "
        f"or a near-duplicate (1) with {folder}/test.csv"
    )


def test_strict_without_evaluation_sets_says_that_it_drops_nothing(folder, ships):
    data, lines = notes_of({**ships, **PAIRS, "filter_against": [], "leak_filter": "strict"}, folder)
    assert len(data.rows.train) == 5
    assert lines == ['leak filter: "strict" drops nothing, because filter_against is empty']


def test_another_leak_filter_is_an_error_with_its_path(ships):
    stage = {**ships, **PAIRS, "leak_filter": "text"}
    with pytest.raises(RecipeError, match=r"stage\.0.*leak_filter.*pair.*strict"):
        parse_recipe({"name": "x", "relation": {"similarity": {}}, "stage": [stage]}, "x")


def test_strict_for_labels_drops_near_copies_of_a_text(folder):
    (folder / "news.csv").write_text(
        "text,mood\nRain in the north and sun in the south.,bad\nWe won.,good\nWe lost.,bad\n"
        "snow FALLS,bad\n",
        encoding="utf8",
    )
    (folder / "seen.csv").write_text(
        "text,mood\nSun in the north and rain in the south.,good\nSnow falls.,bad\n", encoding="utf8"
    )
    stage = {
        "kind": "labels",
        "data": [{"source": str(folder / "news.csv")}],
        "dev": [{"source": str(folder / "news.csv")}],
        "filter_against": [str(folder / "seen.csv")],
        "leak_filter": "strict",
    }
    relation = {"mood": {"kind": "classes", "labels": ["good", "bad"]}}
    data, lines = notes_of(stage, folder, relation)
    assert [record.a for record in data.rows.train] == ["We won.", "We lost."]
    assert [record.a for entry in data.dev for record in entry.records] == ["We won.", "We lost."]
    assert lines[0].endswith(
        f"news.csv; dropped 2 sharing their text (1) or a near-duplicate (1) with {folder}/seen.csv"
    )
    data, _ = notes_of({**stage, "leak_filter": "pair"}, folder, relation)
    assert len(data.rows.train) == 3


SIDES = [
    ("A boat sailed away.", "Ein Boot fuhr weg."),
    ("Port left at dawn the old grey ship.", "Das Schiff lief aus."),
    ("Birds sing.", "Vögel singen."),
]


def test_strict_for_paraphrases_drops_near_copies_of_a_side(folder, ships):
    table = "text_a,text_b\n" + "".join(f"{a},{b}\n" for a, b in SIDES)
    (folder / "same.csv").write_text(table, encoding="utf8")
    stage = {
        "kind": "inject",
        "data": [{"source": str(folder / "same.csv")}],
        "filter_against": ships["filter_against"],
    }
    data, lines = notes_of(stage, folder)
    assert [pair.text_a for pair in data.rows] == [SIDES[1][0], SIDES[2][0]]
    data, lines = notes_of({**stage, "leak_filter": "strict"}, folder)
    assert [pair.text_a for pair in data.rows] == ["Birds sing."]
    assert lines == [
        f"leak filter: kept 1 of 3 pairs of {folder}/same.csv; dropped 2 with a side (1) or a "
        f"near-duplicate of one (1) in {folder}/test.csv"
    ]
    data, lines = notes_of({**stage, "leak_filter": "strict", "allow_leak": True}, folder)
    assert len(data.rows) == 3
    assert lines[0].startswith("leak not filtered: 3 pairs of ")
    assert ", 2 of them with a side (1) or " in lines[0]


def test_strict_for_translations_drops_near_copies_of_a_side(folder, monkeypatch):
    split = Split("de-en_test", "retrieval/de-en.tsv", 1, language="de-en")
    corpus = Corpus("retrieval", "Retrieval", "CC0", "nobody", (), (), {split.name: split}, kind=PARALLEL)
    monkeypatch.setattr(catalogue, "_catalogue", lambda: {"retrieval": corpus})
    (folder / "retrieval").mkdir()
    (folder / "retrieval" / "de-en.tsv").write_text(
        "de\ten\nEin Boot fuhr weg.\tThe old grey ship left port at dawn.\n", encoding="utf-8"
    )
    (folder / "mine.tsv").write_text("en\tde\n" + "".join(f"{a}\t{b}\n" for a, b in SIDES), encoding="utf-8")
    stage = {
        "kind": "parallel",
        "parallel": [{"source": str(folder / "mine.tsv"), "languages": ["en", "de"]}],
        "filter_against": ["retrieval/de-en_test"],
    }
    data, _ = notes_of(stage, folder)
    assert len(data.rows.parallel[0]) == 2
    data, lines = notes_of({**stage, "leak_filter": "strict"}, folder)
    assert list(data.rows.parallel[0]) == [("Birds sing.", "Vögel singen.")]
    assert lines[0].endswith(
        "mine.tsv; dropped 2 with a side (1) or a near-duplicate of one (1) in retrieval/de-en_test"
    )


def test_rows_that_were_kept_belong_to_one_leak_filter():
    """Rows read under one filter must not answer for the other."""
    stages = [Stage.shape_of({"kind": kind}) for kind in KINDS]
    filtered = [stage for stage in stages if "filter_against" in stage.model_fields]
    assert len(filtered) == len(KINDS)
    for stage in filtered:
        assert {"filter_against", "leak_filter", "allow_leak"} <= stage.row_keys


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
