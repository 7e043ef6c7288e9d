"""Cross-lingual pairs of a translated corpus: any two languages, row by row, with the same ratings."""

from __future__ import annotations

import json
from itertools import product

import pytest
from typer.testing import CliRunner

from likewise.cli.data import app
from likewise.data import check, corpus_names, find_corpus, infer_relations, load_corpus, load_records
from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import locate, verify
from likewise.data.reading import find_named_corpus
from likewise.errors import DataError, UsageError

ROWS = {
    "en": [("5.0", "A boat floats.", "A ship floats."), ("1.2", "A man sings.", "A dog sleeps.")],
    "de": [("5.0", "Ein Boot schwimmt.", "Ein Schiff schwimmt."), ("1.20", "Ein Mann singt.", "Ein Hund.")],
}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A data folder with two invented rows in two languages in the place of the translated corpus."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    (tmp_path / "stsb_multi_mt").mkdir()
    for language, rows in ROWS.items():
        write_side(tmp_path, language, rows)
    return tmp_path


def write_side(folder, language, rows):
    lines = ["\t".join(row) for row in [("score", "sentence1", "sentence2"), *rows]]
    path = folder / "stsb_multi_mt" / f"{language}.test.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_crosslingual_texts_come_from_two_languages(tiny):
    records = load_records("stsb_multi_mt/en-de_test", data_dir=tiny)
    assert [record.texts for record in records] == [
        ("A boat floats.", "Ein Schiff schwimmt."),
        ("A man sings.", "Ein Hund."),
    ]
    assert [record.values for record in records] == [{"similarity": 5.0}, {"similarity": 1.2}]
    assert {record.language for record in records} == {"en-de"}
    assert records[1].source == "stsb_multi_mt/en.test.tsv + de.test.tsv:3"
    reverse = load_records("corpus:stsb_multi_mt", split="de-en_test", data_dir=tiny)
    assert (reverse[0].texts, reverse[0].language) == (("Ein Boot schwimmt.", "A ship floats."), "de-en")
    assert infer_relations("stsb_multi_mt/en-de_test", data_dir=tiny)[0].scale == "0..5"


def test_crosslingual_one_language_twice_is_that_language(tiny):
    corpus = find_corpus("stsb_multi_mt")
    assert corpus.find_split("en-en_test") is corpus.find_split("en_test")
    assert [record.language for record in load_records("stsb_multi_mt/en-en_test", data_dir=tiny)] == [
        "en",
        "en",
    ]


def test_crosslingual_names_are_found_and_derived():
    corpus, split = find_named_corpus("stsb_multi_mt/zh-ru_dev")
    assert (corpus.name, split.name, split.language, split.rows) == (
        "stsb_multi_mt",
        "zh-ru_dev",
        "zh-ru",
        1500,
    )
    assert [side.name for side in split.sides] == ["zh_dev", "ru_dev"]
    assert (split.part, corpus.find_split("zh_dev").part) == ("dev", "dev")
    assert not any("-" in name for name in corpus.splits)


def test_crosslingual_translated_corpora_can_be_crossed():
    translated = [find_corpus(name) for name in corpus_names() if find_corpus(name).translated]
    assert translated
    for corpus in translated:
        assert len(corpus.texts) == 2
        for part in {split.part for split in corpus.splits.values()}:
            sides = [corpus.splits[f"{language}_{part}"] for language in corpus.languages]
            assert len({side.rows for side in sides}) == 1


@pytest.mark.parametrize(
    "split", ["en-xx_test", "xx-en_test", "xx_test", "en-de_held", "en-de-fr_test", "-_"]
)
def test_crosslingual_unknown_split_names_languages_and_parts(split):
    with pytest.raises(
        UsageError, match=r"XX-YY_SPLIT.*the languages de, en, es.* and the splits train, dev"
    ):
        load_corpus("stsb_multi_mt", split)


def test_crosslingual_needs_a_translated_corpus():
    with pytest.raises(UsageError, match=r"has no split 'en-de_test'\. Choose one of train, dev, test"):
        load_corpus("stsb", "en-de_test")
    splits = {name: Split(name, name, 1, language=name[:2]) for name in ("en_test", "de_test")}
    corpus = Corpus("other", "", "", "", ("a", "b"), (), splits)
    with pytest.raises(UsageError, match="Choose one of en_test, de_test"):
        corpus.find_split("en-de_test")


def test_crosslingual_unequal_rows_name_both_files(tiny):
    write_side(tiny, "de", ROWS["de"][:1])
    with pytest.raises(
        DataError,
        match=r"en\.test\.tsv:3: this row has no translation, because stsb_multi_mt/de\.test\.tsv ends",
    ):
        load_corpus("stsb_multi_mt", "en-de_test", data_dir=tiny)
    with pytest.raises(
        DataError,
        match=r"en\.test\.tsv:3: this row has no translation, because stsb_multi_mt/de\.test\.tsv ends",
    ):
        load_corpus("stsb_multi_mt", "de-en_test", data_dir=tiny)


def test_crosslingual_other_ratings_name_both_files_and_the_row(tiny):
    write_side(tiny, "de", [ROWS["de"][0], ("3.1", *ROWS["de"][1][1:])])
    expected = (
        r"en\.test\.tsv:3: similarity is '1\.2' here, but '3\.1' in its translation "
        r"at .*/de\.test\.tsv:3\. Take"
    )
    with pytest.raises(DataError, match=expected):
        load_records("stsb_multi_mt/en-de_test", data_dir=tiny)
    assert check("stsb_multi_mt/en-de_test", data_dir=tiny).counts["unreadable"] == 1


def test_crosslingual_malformed_row_is_not_stepped_over(tiny):
    write_side(tiny, "de", [("5.0", "Ein Boot schwimmt."), ROWS["de"][1]])
    report = check("stsb_multi_mt/en-de_test", data_dir=tiny)
    assert report.rows == 0
    assert any(finding.problem.source == "stsb_multi_mt/de.test.tsv:2" for finding in report.findings)


def test_crosslingual_wrong_rows_and_checksums_are_reported(tiny):
    with pytest.raises(
        DataError, match="corpus stsb_multi_mt/en-de_test: the file has 2 rows, but 1,379 are expected"
    ):
        load_corpus("stsb_multi_mt", "en-de_test", data_dir=tiny)
    corpus = find_corpus("stsb_multi_mt")
    problems = verify(corpus, corpus.find_split("en-de_test"), tiny)
    assert [problem.source for problem in problems] == [
        "corpus stsb_multi_mt/en_test",
        "stsb_multi_mt/en.test.tsv.xz",
        "corpus stsb_multi_mt/de_test",
        "stsb_multi_mt/de.test.tsv.xz",
    ]


def test_crosslingual_absent_side_is_named(tiny):
    with pytest.raises(
        DataError, match=r"stsb_multi_mt/fr_test: stsb_multi_mt/fr\.test\.tsv\.xz was not found"
    ):
        load_records("stsb_multi_mt/en-fr_test", data_dir=tiny)
    corpus = find_corpus("stsb_multi_mt")
    assert locate(corpus, corpus.find_split("en-fr_test"), tiny) is None
    assert locate(corpus, corpus.find_split("en-de_test"), tiny).name == "en.test.tsv"


def test_crosslingual_verify_compares_sides_that_are_pinned_by_rows_only(tiny):
    splits = {
        f"{language}_test": Split(
            f"{language}_test", f"stsb_multi_mt/{language}.test.tsv", 2, language=language
        )
        for language in ROWS
    }
    known = find_corpus("stsb_multi_mt")
    corpus = Corpus("own", "", "", "", known.texts, known.ratings, splits, translated=True)
    assert verify(corpus, corpus.find_split("en-de_test"), tiny) == []
    write_side(tiny, "de", [ROWS["de"][1], ROWS["de"][0]])
    (problem,) = verify(corpus, corpus.find_split("en-de_test"), tiny)
    assert "similarity is '5.0' here, but '1.20'" in problem.message


def test_crosslingual_cli_list_mentions_it(tiny, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, ["list", "--data-dir", str(tiny)])
    assert "33 splits 94,908" in result.output
    assert "and any XX-YY_SPLIT" in result.output
    entries = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)
    crossed = {entry["name"]: entry["crossed"] for entry in entries}
    assert (crossed["stsb_multi_mt"], crossed["stsb"]) == ("XX-YY_SPLIT", None)


@pytest.mark.realdata
def test_crosslingual_real_corpus_crosses_in_any_pair(data_dir):
    corpus = find_corpus("stsb_multi_mt")
    if locate(corpus, corpus.find_split("en-de_dev"), data_dir) is None:
        pytest.skip(f"stsb_multi_mt is not in {data_dir}")
    texts = {code: load_corpus(corpus.name, f"{code}_dev", data_dir=data_dir) for code in corpus.languages}
    for a, b in product(("en", "zh"), corpus.languages):
        records = load_corpus(corpus.name, f"{a}-{b}_dev", data_dir=data_dir)
        wanted = [(r.a, s.b, r.values) for r, s in zip(texts[a], texts[b], strict=True)]
        assert [(record.a, record.b, record.values) for record in records] == wanted
        assert {record.language for record in records} == {a if a == b else f"{a}-{b}"}
