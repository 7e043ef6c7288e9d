"""The catalogue: counts, checksums and scales on the real files; where a corpus is looked for."""

from __future__ import annotations

import lzma
import shutil
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from likewise.data import (
    check,
    corpus_names,
    find_corpus,
    infer_relations,
    load_corpus,
    load_records,
    pair_key,
    text_key,
)
from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import corpus_table, locate, verify
from likewise.data.values import to_value
from likewise.errors import DataError, UsageError
from likewise.records import Relation

STORED = [name for name in corpus_names() if name != "sick9840"]
RATED = [name for name in STORED if find_corpus(name).kind == "rated"]
NLI = ("contradiction", "neutral", "entailment")

SICK_HEADER = (
    "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tentailment_BA\t"
    "sentence_A_original\tsentence_B_original\tsentence_A_dataset\tsentence_B_dataset\tSemEval_set\n"
)


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)


@pytest.fixture
def tiny(tmp_path, alone):
    """A data folder with an invented file in the place of a corpus."""
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick" / "trial.tsv").write_text(
        "pair_id\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        "1\tA boat floats.\tA ship is on the water.\t4.1\tENTAILMENT\n"
        "2\tA boat floats.\tA man sings.\t1.2\tNEUTRAL\n",
        encoding="utf-8",
    )
    return tmp_path


def test_catalogue_holds_what_others_build_on():
    wanted = {"stsb", "sick", "sick9840", "snli", "mnli", "snli_counterfactual", "human_activity_phrases"}
    wanted |= {"mrpc", "qqp", "paws_wiki", "rte", "sts12", "sts13", "sts14", "sts15", "sts16"}
    wanted |= {"cxc", "semrel", "semrel_other", "jsts", "joci", "parade"}
    assert wanted <= set(corpus_names())
    for name in corpus_names():
        corpus = find_corpus(name)
        assert isinstance(corpus, Corpus)
        assert corpus.title
        assert corpus.licence
        assert corpus.citation
        assert bool(corpus.relations) == (corpus.kind == "rated")
        assert all(split.rows > 0 for split in corpus.splits.values())


@pytest.mark.parametrize(
    ("name", "scales"),
    [
        ("stsb", {"similarity": "0..5"}),
        ("sts12", {"similarity": "0..5"}),
        ("sick", {"relatedness": "1..5", "entailment": " | ".join(NLI)}),
        ("snli", {"entailment": " | ".join(NLI)}),
        ("human_activity_phrases", {"sim": "0..4", "rel": "0..4", "ma": "0..4", "pac": "-2..2"}),
        ("cxc", {"similarity": "0..5"}),
        ("jsts", {"similarity": "0..5"}),
        ("semrel", {"relatedness": "0..1"}),
        ("semrel_other", {"relatedness": "0..1"}),
    ],
)
def test_catalogue_relations(name, scales):
    assert {relation.name: relation.scale for relation in find_corpus(name).relations} == scales
    assert {r.name: r.labels for r in find_corpus(name).relations if r.kind == "classes"} in (
        {},
        {"entailment": NLI},
    )


def test_catalogue_labels_are_the_same_words_in_every_corpus():
    labels = {"entailment": {}, "paraphrase": {}}
    for corpus in map(find_corpus, corpus_names()):
        for relation in corpus.relations:
            if relation.name in labels:
                labels[relation.name][corpus.name] = relation.labels
    binary = labels["entailment"].pop("rte")  # it does not tell neutral from contradiction
    assert binary == ("not_entailment", "entailment")
    assert set(labels["entailment"]) == {"sick", "sick9840", "snli", "snli_counterfactual", "mnli"}
    assert set(labels["entailment"].values()) == {NLI}
    assert set(labels["paraphrase"]) == {"mrpc", "qqp", "paws_wiki", "paws_wiki_split", "parade"}
    assert set(labels["paraphrase"].values()) == {("not_paraphrase", "paraphrase")}


@pytest.mark.realdata
@pytest.mark.parametrize("name", STORED)
def test_catalogue_files_have_their_rows_and_checksums(name, data_dir):
    corpus = find_corpus(name)
    for split in corpus.splits.values():
        assert verify(corpus, split, data_dir) == []


@pytest.mark.realdata
@pytest.mark.parametrize("name", RATED)
def test_catalogue_every_split_loads(name, data_dir):
    corpus = find_corpus(name)
    for split in corpus.splits.values():
        records = load_corpus(name, split.name, data_dir=data_dir)
        assert len(records) == split.rows
        assert set(records[0].values) == {relation.name for relation in corpus.relations}
        assert all(len(record.texts) == len(corpus.texts) for record in records)
        if (name, split.name) != ("rte", "test"):  # GLUE keeps those labels back
            assert all(value is not None for record in records for value in record.values.values())


@pytest.mark.realdata
def test_catalogue_human_activity_is_on_its_published_scales(data_dir):
    records = [
        r
        for part in ("train", "dev", "test")
        for r in load_corpus("human_activity_phrases", part, data_dir=data_dir)
    ]
    for name, lo, hi in (("sim", 0, 4), ("rel", 0, 4), ("ma", 0, 4), ("pac", -2, 2)):
        values = [record.values[name] for record in records]
        assert lo <= min(values) < lo + 1
        assert max(values) == hi


@pytest.mark.realdata
def test_catalogue_single_texts_and_languages(data_dir):
    record = load_corpus("trec_qc", "test", data_dir=data_dir)[0]
    assert (len(record.texts), record.values) == (1, {"question_type": "numeric"})
    assert len(find_corpus("reuters46").relations[0].labels) == 46
    assert load_corpus("stsb_multi_mt", "de_dev", data_dir=data_dir)[0].language == "de"
    english = [(r.texts, r.values) for r in load_corpus("stsb_multi_mt", "en_test", data_dir=data_dir)]
    assert english == [(r.texts, r.values) for r in load_corpus("stsb", "test", data_dir=data_dir)]


@pytest.mark.realdata
def test_catalogue_subsets(data_dir):
    subsets = {record.subset for record in load_corpus("sts12", "test", data_dir=data_dir)}
    assert subsets == {"MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews"}


@pytest.mark.realdata
def test_catalogue_overlap_counts_as_pinned(data_dir):
    """4,760 STS-B train rows stand in the STS12-16 tests; 363 + 486 dev rows are clean."""

    def keys(name, split):
        return [pair_key(record.a, record.b) for record in load_corpus(name, split, data_dir=data_dir)]

    years = {key for year in range(12, 17) for key in keys(f"sts{year}", "test")}
    tests = years | set(keys("stsb", "test")) | set(keys("sick", "test"))
    assert sum(key in years for key in keys("stsb", "train")) == 4760
    assert sum(key not in tests for key in keys("stsb", "train")) == 951
    assert sum(key not in tests for key in keys("sick", "train")) == 4367
    assert sum(key not in tests for key in keys("stsb", "dev")) == 363
    assert sum(key not in tests for key in keys("sick", "dev")) == 486


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("source", "pairs"),
    [
        ("semrel/train", 216),
        ("semrel/dev", 12),
        ("cxc/test", 0),
        ("cxc/val", 0),
        ("jsts/train", 0),
        ("joci/all", 0),
        ("parade/train", 0),
    ],
)
def test_catalogue_rows_that_are_pairs_of_the_seven_tests(source, pairs, data_dir):
    tests = [("stsb", "test"), ("sick", "test"), *((f"sts{year}", "test") for year in range(12, 17))]
    held = {
        pair_key(record.a, record.b)
        for corpus, split in tests
        for record in load_corpus(corpus, split, data_dir=data_dir)
    }
    rows = load_records(source, data_dir=data_dir)
    assert sum(pair_key(record.a, record.b) in held for record in rows) == pairs


@pytest.mark.realdata
def test_catalogue_parts_of_paws_wiki_share_no_text(data_dir):
    parts = {
        name: load_corpus(*name.split("/"), data_dir=data_dir)
        for name in ("paws_wiki_split/train", "paws_wiki_split/dev", "paws_wiki/test")
    }
    keys = [{text_key(text) for record in part for text in record.texts} for part in parts.values()]
    assert all(one.isdisjoint(other) for one, other in combinations(keys, 2))
    found = Counter(record.source for part in list(parts.values())[:2] for record in part)
    assert (len(found), set(found.values())) == (8000, {1})
    for part, share in zip(parts.values(), (0.441, 0.442, 0.442), strict=True):
        paraphrases = sum(record.values["paraphrase"] == "paraphrase" for record in part)
        assert paraphrases / len(part) == pytest.approx(share, abs=0.03)


@pytest.mark.realdata
def test_catalogue_captions_recur_in_many_pairs(data_dir):
    keys = [text_key(t) for record in load_corpus("cxc", "test", data_dir=data_dir) for t in record.texts]
    assert max(Counter(keys).values()) >= 30
    assert {record.subset for record in load_corpus("cxc", "val", data_dir=data_dir)} == {
        "c2c_isim",
        "c2c_cocaption",
    }


@pytest.mark.realdata
def test_catalogue_paraphrases_of_parade_are_those_with_two_votes(data_dir):
    for split in ("train", "dev"):
        for record in load_corpus("parade", split, data_dir=data_dir):
            assert (record.values["paraphrase"] == "paraphrase") == (record.values["votes"] >= 2)


@pytest.mark.realdata
def test_catalogue_languages_of_semrel_and_likelihoods_of_joci(data_dir):
    assert len(find_corpus("semrel_other").languages) == 8
    assert load_corpus("semrel_other", "mr_train", data_dir=data_dir)[0].language == "mr"
    likelihoods = Counter(record.values["likelihood"] for record in load_corpus("joci", data_dir=data_dir))
    assert likelihoods == {
        "impossible": 9267,
        "technically possible": 8735,
        "plausible": 9783,
        "likely": 4098,
        "very likely": 7155,
    }


def test_catalogue_corpus_sources(tiny):
    for source, split in (
        ("corpus:sick/trial", None),
        ("sick/trial", None),
        ("sick", "dev"),
        ("sick/dev", None),
    ):
        records = load_records(source, split=split, data_dir=tiny)
        assert [record.values for record in records] == [
            {"relatedness": 4.1, "entailment": "entailment"},
            {"relatedness": 1.2, "entailment": "neutral"},
        ]
        assert (records[0].source, records[0].language) == ("sick/trial.tsv:2", "en")
    similarity = Relation.graded("similarity", 1, 5)
    records = load_records(
        "sick/trial", data_dir=tiny, relations=[similarity], columns={"similarity": "relatedness"}
    )
    assert records[0].values == {"similarity": 4.1}
    with pytest.raises(DataError, match="no column 'similarity'"):
        load_records("sick/trial", data_dir=tiny, relations=[similarity])
    ordered = Relation.ordered("entailment", NLI)
    assert load_records("sick/trial", data_dir=tiny, relations=[ordered])[1].values == {
        "entailment": "neutral"
    }


def test_catalogue_relations_of_a_corpus(tiny):
    assert [r.name for r in infer_relations("sick/trial", data_dir=tiny)] == ["relatedness", "entailment"]
    assert infer_relations("sick/trial", data_dir=tiny, declared=["entailment:classes"])[0].labels == NLI
    assert infer_relations("sick/trial", data_dir=tiny, declared=["relatedness:0..5"])[0].scale == "0..5"


def test_catalogue_environment_names_the_folder_and_any_compression_will_do(tiny, monkeypatch):
    plain = tiny / "sick" / "trial.tsv"
    (tiny / "sick" / "trial.tsv.xz").write_bytes(lzma.compress(plain.read_bytes()))
    plain.unlink()
    monkeypatch.setenv("LIKEWISE_DATA", str(tiny))
    assert len(load_records("sick/trial")) == 2
    assert len(load_records("sick/trial", data_dir=tiny / "elsewhere")) == 2


def test_catalogue_wrong_rows_and_checksum_are_reported(tiny):
    with pytest.raises(
        DataError,
        match=r"corpus sick/trial: the file has 2 rows, but 500 are expected\. Copy or download it again",
    ):
        load_corpus("sick", "trial", data_dir=tiny)
    corpus = find_corpus("sick")
    problems = [str(problem) for problem in verify(corpus, corpus.find_split("trial"), tiny)]
    assert "the file has 2 rows, but 500 are expected" in problems[0]
    assert "1ca1455f1111… is expected" in problems[1]
    assert check("sick/trial", data_dir=tiny).counts == {"other version": 2}


def test_catalogue_verify_reports_an_absent_a_broken_and_a_foreign_file(tiny):
    corpus = find_corpus("sick")
    (absent,) = verify(corpus, corpus.find_split("test"), tiny)
    assert "was not found" in absent.message
    (tiny / "sick" / "train.tsv.xz").write_bytes(b"no xz")
    (broken,) = verify(corpus, corpus.find_split("train"), tiny)
    assert "cut short or damaged" in broken.message
    (tiny / "sick" / "test.tsv").write_text("x\ty\n1\t2\n", encoding="utf-8")
    (foreign,) = verify(corpus, corpus.find_split("test"), tiny)
    assert "no column sentence_A" in foreign.message


def test_catalogue_absent_corpus_says_how_to_get_it(tmp_path, alone):
    with pytest.raises(
        DataError, match=r"sick/test: sick/test\.tsv\.xz was not found \(searched in: .*data_dir=.DIR. or"
    ):
        load_corpus("sick", "test", data_dir=tmp_path)
    with pytest.raises(DataError, match="no folder was named"):
        load_corpus("sick", "test")


def test_catalogue_falls_back_to_the_hub(tmp_path, alone, monkeypatch):
    datasets = pytest.importorskip("datasets")
    asked = []

    def load_dataset(name, config):
        asked.append((name, config))
        rows = [{"sentence1": "x", "sentence2": "y", "label": 1, "idx": 0}]
        return datasets.DatasetDict({"validation": datasets.Dataset.from_list(rows)})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    records = load_records("mrpc/dev", data_dir=tmp_path)
    assert records[0].values == {"paraphrase": "paraphrase"}
    assert asked == [("nyu-mll/glue", "mrpc")]
    with pytest.raises(DataError, match="the file has 1 rows, but 408 are expected"):
        load_corpus("mrpc", "dev")


def test_catalogue_hub_out_of_reach_says_both_ways(tmp_path, alone, monkeypatch):
    datasets = pytest.importorskip("datasets")

    def load_dataset(name, config):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError, match=r"(?s)data_dir=.DIR. or LIKEWISE_DATA\.\nnyu-mll/glue: .*no route"):
        load_corpus("mrpc", "dev")


def test_catalogue_unknown_names():
    with pytest.raises(UsageError, match=r"there is no corpus 'stbs'\. Did you mean stsb\?"):
        find_corpus("stbs")
    with pytest.raises(UsageError, match=r"Run `likewise data list` to see all names"):
        load_records("corpus:zzzzzz/train")
    with pytest.raises(
        UsageError, match=r"corpus 'stsb' has no split 'held'\. Choose one of train, dev, test"
    ):
        load_records("stsb/held")
    with pytest.raises(
        UsageError,
        match=r"corpus 'stsb' has several splits \(train, dev, test\)\. Name one of them, such as stsb/train",
    ):
        load_records("stsb")
    with pytest.raises(UsageError, match=r"names one split, but the call names another, 'dev'"):
        load_records("stsb/test", split="dev")
    assert find_corpus("sts13").find_split().name == "test"


def test_catalogue_a_file_of_that_name_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stsb").mkdir()
    with pytest.raises(DataError, match="is a folder without data files"):
        load_records("stsb")


@pytest.fixture
def treebank(tmp_path, alone):
    """A data folder with invented sentences in the places of both sentiment treebanks."""
    files = {
        "sst1/train.tsv": "label\tsentence\n0\tAwful.\n1\tPoor.\n2\tA film.\n3\tGood.\n4\tGreat.\n",
        "sst2/dev.tsv": "sentence\tlabel\nDull.\t0\nLively.\t1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_catalogue_where_takes_several_values_and_a_split_its_own_labels(treebank):
    def found(part):
        records = load_records(f"sst2_sentences/{part}", data_dir=treebank)
        return [(record.texts[0], record.values["sentiment"], record.source) for record in records]

    assert found("train") == [
        ("Awful.", "negative", "sst1/train.tsv:2"),
        ("Poor.", "negative", "sst1/train.tsv:3"),
        ("Good.", "positive", "sst1/train.tsv:5"),
        ("Great.", "positive", "sst1/train.tsv:6"),
    ]
    assert found("dev") == [
        ("Dull.", "negative", "sst2/dev.tsv:2"),
        ("Lively.", "positive", "sst2/dev.tsv:3"),
    ]
    assert load_records("sst1/train", data_dir=treebank)[2].values == {"sentiment": "neutral"}
    with pytest.raises(
        DataError, match="corpus sst2_sentences/train: the file has 4 rows, but 6,920 are expected"
    ):
        load_corpus("sst2_sentences", "train", data_dir=treebank)


def test_catalogue_a_label_that_a_split_does_not_name_is_refused(treebank):
    corpus = find_corpus("sst2_sentences")
    (sentiment,) = corpus.relations
    whole = replace(corpus.splits["train"], where={})
    row = list(corpus_table(corpus, whole, data_dir=treebank))[2]
    with pytest.raises(
        DataError, match=r"sst1/train\.tsv:4: sentiment is '2', but it must be one of negative, positive"
    ):
        to_value(sentiment, row.fields["sentiment"], row.source)


def test_catalogue_where_compares_numbers_as_labels(tmp_path, alone):
    rows = (
        '{"label": 0, "sentence": "Awful."}\n{"label": 2.0, "sentence": "A film."}\n{"sentence": "None."}\n'
    )
    (tmp_path / "own.jsonl").write_text(rows, encoding="utf-8")
    corpus = find_corpus("sst2_sentences")
    for values, kept in ((["0", "3"], ["Awful."]), (["2"], ["A film."]), (["1"], [])):
        split = Split("own", "own.jsonl", 1, where={"label": values})
        table = corpus_table(corpus, split, data_dir=tmp_path)
        assert [row.fields["sentence"] for row in table] == kept


def test_catalogue_splits_label_and_draw_what_they_can():
    for corpus in map(find_corpus, corpus_names()):
        relations = {relation.name: relation for relation in corpus.relations}
        for split in corpus.splits.values():
            assert not any(isinstance(values, str) for values in split.where.values())
            for name, labels in split.labels.items():
                assert set(labels.values()) <= set(relations[name].labels)
            if split.draw is not None:
                assert 0 <= split.draw.start < split.draw.stop <= split.draw.of
                assert split.rows == split.draw.stop - split.draw.start


@pytest.mark.realdata
def test_catalogue_sst2_sentences_are_those_of_the_treebank(data_dir):
    """Dev and test are the non-neutral rows of SST-1; the files differ in how they write a few characters."""

    def plain(name, part):
        for record in load_corpus(name, part, data_dir=data_dir):
            text = record.texts[0].replace("-lrb-", "(").replace("-rrb-", ")")
            sentiment = record.values["sentiment"].removeprefix("very ")
            if sentiment != "neutral":
                yield text_key(text), sentiment

    for part, labels, respelt in (
        ("train", {"negative": 3310, "positive": 3610}, 0),
        ("dev", {"negative": 428, "positive": 444}, 0),
        ("test", {"negative": 912, "positive": 909}, 4),  # favour and favor
    ):
        found, treebank = Counter(plain("sst2_sentences", part)), Counter(plain("sst1", part))
        assert Counter(sentiment for _, sentiment in found.elements()) == labels
        assert (found - treebank).total() == (treebank - found).total() == respelt
    phrases = load_corpus("sst2", "test", data_dir=data_dir)
    sentences = load_corpus("sst2_sentences", "test", data_dir=data_dir)
    assert [(r.texts, r.values) for r in sentences] == [(r.texts, r.values) for r in phrases]


@pytest.mark.parametrize("place", ["SICK.txt", "sick9840/SICK.txt"])
def test_catalogue_sick9840_reads_the_users_own_file(tmp_path, alone, place):
    def line(number, score, label, part):
        return f"{number}\tA boat.\tA ship.\t{label}\t{score}\t\t\t\t\t\t\t{part}\n"

    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    rows = line(1, "4.5", "ENTAILMENT", "TRAIN") + line(2, "1.5", "NEUTRAL", "TEST")
    rows += line(3, "2", "CONTRADICTION", "TRAIN")
    path.write_text(SICK_HEADER + rows, encoding="utf-8")
    records = load_records("sick9840/train", data_dir=tmp_path)
    assert [record.values["entailment"] for record in records] == ["entailment", "contradiction"]
    assert [record.source.rpartition(":")[2] for record in records] == ["2", "4"]
    assert load_records("sick9840/test", data_dir=path)[0].values["relatedness"] == 1.5


@pytest.mark.realdata
def test_catalogue_real_file_cut_short_is_noticed(data_dir, tmp_path, alone):
    corpus = find_corpus("sick")
    split = corpus.find_split("trial")
    (tmp_path / "sick").mkdir()
    copy = shutil.copyfile(locate(corpus, split, data_dir), tmp_path / "sick" / "trial.tsv.xz")
    copy.write_bytes(copy.read_bytes()[:-2000])
    with pytest.raises(DataError, match=r"sick/trial\.tsv\.xz:\d+: the file is cut short or damaged"):
        load_corpus("sick", "trial", data_dir=tmp_path)
