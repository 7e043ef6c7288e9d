"""Paraphrases: corpora by name, tables and files of links; what is dropped, drawn, refused and filtered."""

from __future__ import annotations

import bz2
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from likewise.cli.data import app
from likewise.data import catalogue, check, corpus_names, find_corpus, load_records, text_key
from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import verify
from likewise.data.links import Link, LinkedPair, read_links, write_links
from likewise.data.parallel import read_parallel
from likewise.data.paraphrases import read_paraphrases, without_texts
from likewise.errors import DataError, UsageError

PARAPHRASES = [name for name in corpus_names() if find_corpus(name).kind == "paraphrases"]
SAME = {"paraphrase": "paraphrase"}
ROWS = [
    {"plain": "The owl sleeps.", "short": "An owl naps.", "said": ["The owl is asleep.", "the OWL sleeps"]},
    {"plain": "It rained.", "short": "Rain fell.", "said": ["There was rain.", "rain fell!"]},
]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A data folder, and a catalogue with one invented corpus: two rows, six pairs, two of them dropped."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    splits = {
        "train": Split("train", "owls/train.jsonl.xz", 2),
        "test": Split("test", "owls/test.jsonl.xz", 2),
    }
    corpus = Corpus(
        "owls", "Owls", "CC0", "nobody", ("plain", "short", "said"), (), splits, kind="paraphrases"
    )
    known = {**catalogue._catalogue(), "owls": corpus}
    monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
    write_rows(tmp_path, ROWS)
    return tmp_path


def write_rows(folder, rows):
    (folder / "owls").mkdir(exist_ok=True)
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "owls" / "train.jsonl.bz2").write_bytes(bz2.compress(content))


def texts(pairs):
    return [(pair.text_a, pair.text_b) for pair in pairs]


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_paraphrases_of_a_corpus_are_the_first_text_with_each_other(tiny):
    told = []
    pairs = read_paraphrases("owls/train", data_dir=tiny, tell=told.append)
    assert texts(pairs) == [
        ("The owl sleeps.", "An owl naps."),
        ("The owl sleeps.", "The owl is asleep."),
        ("It rained.", "Rain fell."),
        ("It rained.", "There was rain."),
    ]
    assert told == [
        "owls/train: kept 4 of 6 pairs, dropped 1 with the same text twice, 1 that repeat another"
    ]
    assert [pair.source for pair in pairs[1:3]] == ["owls/train.jsonl.bz2:1", "owls/train.jsonl.bz2:2"]


def test_paraphrases_without_links_are_not_aligned(tiny, tmp_path):
    (pair,) = read_paraphrases("owls/train", text_b="short", only={"plain": "It rained."}, data_dir=tiny)
    assert not pair.aligned
    assert (pair.words_a, pair.words_b, pair.links, pair.spans_a, pair.spans_b) == ((), (), (), (), ())
    # That survives a file: one that was aligned without finding anything is told apart.
    looked = LinkedPair("It rained.", "Snow fell.", ((0, 2), (3, 10)), ((0, 4), (5, 10)), ())
    write_links(tmp_path / "links.jsonl", [pair, looked])
    assert [found.aligned for found in read_paraphrases(tmp_path / "links.jsonl")] == [False, True]


def test_paraphrases_text_columns_of_a_corpus_can_be_chosen(tiny):
    assert texts(read_paraphrases("owls/train", text_a="short", text_b="plain", data_dir=tiny)) == [
        ("An owl naps.", "The owl sleeps."),
        ("Rain fell.", "It rained."),
    ]
    with pytest.raises(DataError) as caught:
        read_paraphrases("owls/train", text_b="shirt", only={"plane": "x"}, data_dir=tiny)
    assert [problem.message for problem in caught.value.problems] == [
        "there is no column 'shirt' (did you mean 'short'?). The columns are plain, short, said",
        "there is no column 'plane' (did you mean 'plain'?). The columns are plain, short, said",
    ]


def test_paraphrases_wrong_rows_and_absent_files_are_errors(tiny):
    write_rows(tiny, ROWS[:1])
    with pytest.raises(
        DataError,
        match=r"corpus owls/train: the file has 1 rows, but 2 are expected\. Copy or download it again",
    ):
        read_paraphrases("owls/train", data_dir=tiny)
    with pytest.raises(DataError, match=r"owls/test\.jsonl\.xz was not found"):
        read_paraphrases("owls/test", data_dir=tiny)
    write_rows(tiny, [{"plain": "x"}])
    with pytest.raises(
        DataError, match=r"there is no column short, said\. The columns are plain\. Use the file as published"
    ):
        read_paraphrases("owls/train", data_dir=tiny)


def test_paraphrases_a_text_that_is_none_is_an_error_with_its_line(tiny):
    write_rows(tiny, [ROWS[0], {**ROWS[1], "said": ["There was rain.", " "]}])
    with pytest.raises(
        DataError, match=r"owls/train\.jsonl\.bz2:2: said is empty, but a text is expected\. Fill it"
    ):
        read_paraphrases("owls/train", data_dir=tiny)


def test_paraphrases_corpora_are_not_mistaken_for_others(tiny):
    with pytest.raises(
        UsageError, match=r"'owls' holds paraphrases, but rated pairs are expected\. Read it with read_para"
    ):
        load_records("owls/train", data_dir=tiny)
    with pytest.raises(
        UsageError, match=r"'owls' holds paraphrases, but translations are expected\. Read it with read_para"
    ):
        read_parallel("owls/train", data_dir=tiny)
    with pytest.raises(
        UsageError, match=r"'tatoeba' holds translations, but paraphrases are expected\. Use it under `par"
    ):
        read_paraphrases("tatoeba/en-en_train", data_dir=tiny)
    with pytest.raises(UsageError, match=r"'owls' has several splits"):
        read_paraphrases("owls", data_dir=tiny)


@pytest.fixture
def rated(tmp_path, monkeypatch):
    """Invented rows in the place of a rated corpus, and a catalogue that expects three."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    (tmp_path / "paws_wiki").mkdir()
    rows = ["id\tsentence1\tsentence2\tlabel", "1\tAnn met Bo.\tBo was met by Ann.\t1"]
    rows += ["2\tAnn met Bo.\tBo met Ann.\t0", "3\tIt is hot.\tIt is warm.\t1"]
    (tmp_path / "paws_wiki" / "dev.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    corpus = find_corpus("paws_wiki")
    monkeypatch.setitem(corpus.splits, "dev", Split("dev", "paws_wiki/dev.tsv.xz", 3))
    return tmp_path


def test_paraphrases_of_a_rated_corpus_are_picked_by_label(rated):
    pairs = read_paraphrases("paws_wiki/dev", only=SAME, data_dir=rated)
    assert texts(pairs) == [("Ann met Bo.", "Bo was met by Ann."), ("It is hot.", "It is warm.")]
    with pytest.raises(
        UsageError, match=r"Choose those that are, such as only = \{'paraphrase': 'paraphrase'\}"
    ):
        read_paraphrases("paws_wiki/dev", data_dir=rated)
    with pytest.raises(UsageError, match=r"such as only = \{'similarity': '5'\}"):
        read_paraphrases("stsb/dev", data_dir=rated)
    with pytest.raises(UsageError, match=r"'sst2' holds single texts, but pairs are expected"):
        read_paraphrases("sst2/dev", only={"sentiment": "positive"}, data_dir=rated)
    expected = (
        r"no row has paraphrase = 'yes', because paraphrase holds 'paraphrase', "
        r"'not_paraphrase'\. Correct `only`"
    )
    with pytest.raises(DataError, match=expected):
        read_paraphrases("paws_wiki/dev", only={"paraphrase": "yes"}, data_dir=rated)


def test_paraphrases_of_a_table(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(
        "one,two,score\nA hut.,A shed.,5.0\nA hut.,A whale.,1\nA shed.,A HUT,5\n", encoding="utf-8"
    )
    found = read_paraphrases(str(path), text_a="one", text_b="two", only={"score": "5"})
    assert [(pair.text_a, pair.text_b, pair.source) for pair in found] == [
        ("A hut.", "A shed.", "pairs.csv:2")  # its repeat stands the other way round
    ]
    with pytest.raises(DataError) as caught:
        read_paraphrases(path, only={"scare": "5"})
    assert [str(problem) for problem in caught.value.problems] == [
        "pairs.csv: no two columns have known names for texts. The columns are one, two, score. "
        'Name the text columns: text_a="NAME", text_b="NAME".',
        "pairs.csv: there is no column 'scare' (did you mean 'score'?). The columns are one, two, score. "
        "Name an existing column in `only`.",
    ]
    assert len(read_paraphrases([("A hut.", "A shed."), ("A hut.", "A cabin.")])) == 2


def test_paraphrases_of_a_table_may_hold_lists(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"a": "A hut.", "b": ["A shed.", "A cabin."]}\n', encoding="utf-8")
    assert texts(read_paraphrases(path)) == [("A hut.", "A shed."), ("A hut.", "A cabin.")]


def test_paraphrases_with_nothing_left_are_an_error(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\nA hut.\ta hut!\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"pairs\.tsv: this holds no pair of two different texts\. Check the text"
    ):
        read_paraphrases(path)


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_paraphrases_of_a_file_of_links_keep_them(tmp_path, ending):
    path = tmp_path / f"links.jsonl{ending}"
    words = ((0, 1), (2, 5)), ((0, 1), (2, 6))
    link = Link((0, 2), (0, 2), 0.5)
    written = LinkedPair("A hut", "A shed", *words, (link,), ((0, 2),), ((0, 2),), by="Ann")
    write_links(path, [written, LinkedPair("A shed", "a hut", *words[::-1], ())])
    told = []
    (found,) = read_paraphrases(path, tell=told.append)
    assert found == next(read_links(path))
    assert (found.links, found.words_a, found.spans_b, found.aligned) == ((link,), words[0], ((0, 2),), True)
    assert told == [f"links.jsonl{ending}: kept 1 of 2 pairs, dropped 1 that repeat another"]
    with pytest.raises(UsageError, match=r"holds phrase links, .*Leave out text_a, text_b and only"):
        read_paraphrases(path, only={"by": "Ann"})
    path = tmp_path / "broken.jsonl"
    path.write_text('{"text_a": "A", "text_b": "B", "links": [3]}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"broken\.jsonl:1: links\[0\] is 3, but"):
        read_paraphrases(path)


def test_paraphrases_with_links_that_would_be_lost_are_refused(tmp_path):
    plain = {"text_a": "The owl sleeps.", "text_b": "An owl naps."}
    linked = {"text_a": "It rained.", "text_b": "Rain fell.", "links": [{"a": [0, 2], "b": [0, 2]}]}
    file = tmp_path / "mixed.jsonl"
    file.write_text(f"{json.dumps(plain)}\n{json.dumps(linked)}\n")
    with pytest.raises(DataError, match=r"mixed.jsonl:2: this row has links, which would be ignored"):
        read_paraphrases(file)
    with pytest.raises(DataError, match="which would be ignored"):
        read_paraphrases([linked, linked])


def test_paraphrases_sample_does_not_hang_on_the_order_of_the_file():
    rows = [(f"Boat {n} sails.", f"Ship {n} is at sea.") for n in range(200)]
    few = read_paraphrases(rows, limit=20)
    assert len(few) == 20
    assert set(texts(few)) == set(texts(read_paraphrases(rows[::-1], limit=20)))
    assert texts(few) == [pair for pair in rows if pair in texts(few)]  # as they stand
    assert set(texts(few)) < set(texts(read_paraphrases(rows, limit=50)))
    assert set(texts(few)) != set(texts(read_paraphrases(rows, limit=20, seed=2)))
    assert len(read_paraphrases(rows, limit=500)) == 200
    with pytest.raises(UsageError, match="limit is 0, but it must be at least 1"):
        read_paraphrases(rows, limit=0)


def test_paraphrases_without_texts_drops_a_pair_by_either_side():
    pairs = read_paraphrases([("A hut.", "A shed."), ("A cabin.", "A lodge."), ("A barn.", "A stable.")])
    kept = without_texts(pairs, {text_key("a SHED"), text_key("A barn")})
    assert texts(kept) == [("A cabin.", "A lodge.")]
    assert without_texts(pairs, set()) == pairs


def test_paraphrases_of_marks_are_other_texts_unless_they_are_written_alike():
    told = []
    rows = [("?!", "🙂"), ("🙂", "? !"), ("…", "🙃"), ("!", " !")]
    pairs = read_paraphrases(rows, tell=told.append)
    assert [(pair.text_a, pair.text_b) for pair in pairs] == [("?!", "🙂"), ("…", "🙃")]
    assert without_texts(pairs, {text_key("!")}) == pairs
    assert [pair.text_a for pair in without_texts(pairs, {text_key("…")})] == ["?!"]


def test_paraphrases_check_reports_what_reading_drops(tiny):
    report = check("owls/train", data_dir=tiny)
    assert (report.ok, report.rows, report.texts) == (True, 2, ("plain", "short", "said"))
    assert report.counts == {"same text on both sides": 1, "duplicate row": 1}
    assert str(report.findings[0].problem) == (
        "owls/train.jsonl.bz2:1: 1 of 6 pairs were dropped (the same text on "
        "both sides). This is the first one."
    )
    write_rows(tiny, [*ROWS, ROWS[0]])
    report = check("owls/train", data_dir=tiny)
    assert report.counts["other version"] == 1
    corpus = find_corpus("owls")
    (problem,) = verify(corpus, corpus.find_split("train"), tiny)
    assert problem.message == "the file has 3 rows, but 2 are expected"
    assert check("owls/test", data_dir=tiny).counts == {"unreadable": 1}
    with pytest.raises(UsageError, match="holds paraphrases, but rated pairs"):
        check("owls/train", relations=["similarity:0..5"], data_dir=tiny)


def test_paraphrases_command_line_lists_and_checks(tiny, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    listed = call("list", "--data-dir", tiny).output
    below = listed.partition(
        "Paraphrases: texts with the same meaning; the first is paired with each of the others"
    )[2]
    assert all(name in below for name in (*PARAPHRASES, "owls"))
    assert "crowd_simplifications" in below
    assert "train 59,168" in below
    entries = {entry["name"]: entry for entry in json.loads(call("list", "--json").stdout)}
    assert (entries["asset"]["kind"], entries["asset"]["relations"]) == ("paraphrases", [])
    result = call("check", "owls/train", "--data-dir", tiny)
    assert result.exit_code == 0
    assert "owls/train.jsonl.bz2: 2 rows, texts in columns plain and short and said" in result.output
    assert call("check", "owls", "--data-dir", tiny).exit_code == 1  # its test file is not there


def test_paraphrases_catalogue():
    assert PARAPHRASES == ["qqp_duplicates", "tatoeba_paraphrases", "asset", "turkcorpus", "paranmt"]
    for corpus in map(find_corpus, PARAPHRASES):
        assert len(corpus.texts) >= 2
        assert all(len(split.sha256) == 64 for split in corpus.splits.values())


def test_paraphrases_import_nothing_heavy():
    code = (
        "import sys, likewise.data.paraphrases\n"
        "sys.exit(', '.join({'torch', 'scipy', 'pandas', 'pyarrow', 'datasets'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("source", "pairs"),
    [
        ("qqp_duplicates", 58_804),
        ("tatoeba_paraphrases/train", 39_324),
        ("tatoeba_paraphrases/test", 9_845),
        ("asset/valid", 19_096),
        ("asset/test", 3_473),
        ("turkcorpus/tune", 14_413),
        ("turkcorpus/test", 2_656),
        ("paranmt", 1_099),
        ("paws_wiki/dev", 3_488),
        ("mrpc/train", 2_460),
    ],
)
def test_paraphrases_real_counts(source, pairs, data_dir):
    only = SAME if source.startswith(("paws", "mrpc")) else None
    assert len(read_paraphrases(source, only=only, data_dir=data_dir)) == pairs
