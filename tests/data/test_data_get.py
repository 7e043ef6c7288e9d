"""`data get`: published layouts become files of the catalogue; what is not as expected is refused."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import heed_interrupts
from tests.data.published import MADE, PUBLISHED, serving, tarred, tsv, write, zipped

from likewise.cli.data_get import trial_words
from likewise.data import canonical, catalogue, corpus_names, find_corpus, get, load_corpus, open_table
from likewise.data.canonical import RowDigest, plain_name, row_key, stored_checksums
from likewise.data.corpora import corpus_table, data_home, file_in, locate, paraphrase_table, verify
from likewise.data.getting import file_checksums
from likewise.data.parallel import read_parallel
from likewise.data.sources import bundle as bundles
from likewise.data.sources import listing
from likewise.data.sources.fetching import FetchError, Patience, check_address, fetch_file
from likewise.data.sources.layouts import _sampled
from likewise.data.sources.listing import (
    GROUPS,
    Download,
    all_sources,
    corpora_of,
    corpus_sources,
    make_source,
)
from likewise.data.sources.samples import Sample, decode, encode, key_number, read_sample
from likewise.errors import DataError, FormatError, UsageError

QUICK = Patience(timeout=0.5, tries=3, pause=0.01)
HEAD = "sentence1|sentence2|score|label"
ROWS = ["A boat floats.|A ship floats.|4.5|yes", 'It "rains".|Snow falls.|1.0|no', "Rain.|Rain!|5|yes"]


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def server():
    with serving() as found:
        yield found


@pytest.fixture
def standin(monkeypatch, server):
    """A corpus of its own in the catalogue, with checksums, and its published zip on a server."""
    digest = RowDigest(("sentence1", "sentence2", "score:number", "label"))
    for row in ROWS:
        digest.add(dict(zip(HEAD.split("|"), row.split("|"), strict=True)))
    sums = digest.result()
    entry = {
        "title": "Invented pairs",
        "licence": "CC0",
        "citation": "nobody",
        "texts": ["sentence1", "sentence2"],
        "relations": {"similarity": {"column": "score", "scale": "0..5"}},
        "splits": {"test": {"file": "standin/test.tsv.xz", "rows": 3, "sha256": "0" * 64}},
    }
    corpus = catalogue._corpus("standin", entry)
    known = {**catalogue._catalogue(), "standin": corpus}
    monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
    stored = {
        "columns": list(sums.columns),
        "rows": 3,
        "exact": sums.exact,
        "keys": sums.keys,
        "bag": sums.bag,
    }
    sums_of = {**canonical._stored(), "standin/test.tsv": stored}
    monkeypatch.setattr(canonical, "_stored", lambda: sums_of)
    source = {
        "page": "https://example.org",
        "downloads": [{"url": server.url("/standin.zip"), "most": 1}],
        "targets": [{"file": "standin/test.tsv", "layout": "table", "member": "pairs.txt"}],
    }

    def offer(*rows: str, member: str = "inner/pairs.txt", **changes: object) -> None:
        server.files["/standin.zip"] = zipped({member: tsv(HEAD, *(rows or ROWS))})
        made = {**all_sources(), "standin": make_source("standin", {**source, **changes})}
        monkeypatch.setattr(listing, "all_sources", lambda: made)

    offer()
    return offer


def left(folder: Path) -> list[str]:
    """The files below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# The list of sources.


def test_sources_make_every_file_or_say_which_not():
    for name in corpus_names():
        corpus = find_corpus(name)
        assert corpus_sources(corpus), name
        absent = listing.unobtainable(corpus)
        assert all("train" in file and file.startswith("tatoeba/") for file in absent)
    for source in all_sources().values():
        assert corpora_of(source), source.name
        assert bool(source.downloads) != bool(source.manual)
        assert source.page.startswith("https://")
        assert source.confidence in ("documented", "listed", "from memory")
        for download in source.downloads:
            check_address(download.url)
            assert download.url.startswith("https://")
            assert "{" not in download.url + download.name
            assert 0 < download.most <= 1024


def test_sources_say_that_no_address_was_ever_fetched():
    """True of every source until somebody with a network has tried it and changes its entry."""
    assert not any(source.fetched for source in all_sources().values())


def test_sources_of_restricted_corpora_ask_for_acceptance():
    for source in all_sources().values():
        licences = " ".join(corpus.licence for corpus in corpora_of(source)).lower()
        if any(word in licences for word in ("-nc-", "-nc ", "research", "non-commercial", "quora")):
            assert source.terms, source.name


def test_sources_group_has_the_corpora_of_the_suite():
    from likewise.evaluation.suites import SUITES

    assert set(GROUPS["sts7"]) == {task.corpus for task in SUITES["sts7"].tasks}


def test_checksums_are_stated_for_every_file_that_we_had():
    for name in corpus_names():
        for split in find_corpus(name).splits.values():
            stored = stored_checksums(split.file)
            assert (stored is None) == (name == "sick9840")
            if stored is not None and not split.where and split.draw is None:
                assert stored.rows == split.rows


# Layouts.


def test_layouts_of_every_source_are_tested():
    assert set(PUBLISHED) == set(all_sources())


# Samples by name: which rows they take of the invented files, written as our copies may write them.
SAMPLED = {
    "snli_train": [
        ("Rain falls", "It rains", "entailment"),
        ("A boat floats", "the boat is old.", "neutral"),
    ],
    "mnli_train": [("Rain falls .", "It rains .", "entailment")],
    "mnli_mismatched": [("-LRB- A boat -RRB- floats", "The boat is old .", "neutral")],
    "qqp_duplicates": [("Why does a 'boat' float?", "How does a boat float")],
    "paranmt": [("A boat floats.", "A ship floats.")],
    "cxc_val": [("a boat `` floating ''", "rain falls .", 0.25, "c2c_isim")],
}


@pytest.fixture
def _invented_samples(monkeypatch):
    """In the place of our samples of keys, samples of invented rows."""

    def columns(row):
        return [f"{n}:number" if isinstance(cell, float) else str(n) for n, cell in enumerate(row)]

    def sample(name):
        if name not in SAMPLED:
            return read_sample(name)
        keys = [row_key(dict(enumerate_names(row)), columns(row)) for row in SAMPLED[name]]
        return Sample("keys", tuple(map(key_number, keys)))

    monkeypatch.setattr("likewise.data.sources.layouts.read_sample", sample)


def enumerate_names(row):
    return ((str(n), cell) for n, cell in enumerate(row))


@pytest.mark.usefixtures("_invented_samples")
@pytest.mark.parametrize("name", sorted(all_sources()))
def test_layouts_convert_what_is_published(name, tmp_path):
    source = all_sources()[name]
    PUBLISHED[name](tmp_path / "published")
    corpora = corpora_of(source)
    report = get(
        [corpus.name for corpus in corpora],
        data_dir=tmp_path / "data",
        source=tmp_path / "published",
        accept=[one.name for corpus in corpora for one in corpus_sources(corpus)],
        allow_different=True,
    )
    assert name not in report.failed
    written = {file.file: file for file in report.files if file.source == name}
    assert set(written) == set(source.files)
    for file in set(MADE) & set(source.files):
        rows = [row.fields for row in open_table(written[file].path)]
        assert len(rows) == len(MADE[file]), file
        for found, expected in zip(rows, MADE[file], strict=True):
            assert {column: found[column] for column in expected} == expected, file
    for corpus in corpora:
        for split in corpus.splits.values():
            if plain_name(split.file) in source.files and not split.draw:
                assert _rows_read(corpus, split, tmp_path / "data") > 0


def _rows_read(corpus, split, folder):
    """The rows of a split as the catalogue's own readers give them."""
    if corpus.kind == "translations":
        path = locate(corpus, split, folder)
        return len(
            read_parallel(
                path,
                split.languages,
                columns=("en1", "en2") if "en-en" in path.name else None,
                keep_identical=True,
            )
        )
    open_split = corpus_table if corpus.kind == "rated" else paraphrase_table
    return sum(1 for _ in open_split(corpus, split, data_dir=folder))


def test_layouts_name_file_and_line_of_what_is_not_as_published(tmp_path):
    def told(name, files, source):
        folder = tmp_path / name
        write(folder, files)
        accept = [one.name for one in corpus_sources(find_corpus(name))]
        with pytest.raises(FormatError) as error:
            get(name, data_dir=tmp_path / "data", source=folder / source, accept=accept)
        return str(error.value)

    assert "snli_1.0_dev.jsonl:1: this line is no JSON object" in told(
        "snli", {"snli_1.0_dev.jsonl": "[1]\n"}, "snli_1.0_dev.jsonl"
    )
    rows = tsv("a|b|c|d|1|x|y", "a|b|c")
    assert "sts-dev.csv:2: there are 3 fields, but 7 are expected (genre" in told(
        "stsb", {"sts-dev.csv": rows}, "sts-dev.csv"
    )
    assert "train_5500.label:1: this line does not begin with a label such as NUM:dist" in told(
        "trec_qc", {"train_5500.label": "How far?\n"}, "train_5500.label"
    )
    assert "trees/dev.txt:1: this line is no tree" in told("sst1", {"trees/dev.txt": "0 Awful\n"}, ".")
    files = {"test-gs/STS.input.FNWN.txt": tsv("a|b", "c|d"), "test-gs/STS.gs.FNWN.txt": "1\n"}
    assert "STS.input.FNWN.txt:2: there is a pair without a line of scores" in told("sts13", files, ".")
    assert "there is no msr_paraphrase_train.txt in it. It holds mrpc_dev_ids.tsv" in told(
        "mrpc", {"mrpc_dev_ids.tsv": "1\t2\n"}, "."
    )
    assert "valid-v1.3.json:1: this line is no JSON object with sentence1, sentence2, label" in told(
        "jsts", {"valid-v1.3.json": '{"sentence1": "x"}\n'}, "."
    )
    one_text = "PairID,Text,Score\nENG-7,A boat floats.,0.5\n"
    assert "eng_train.csv: ENG-7 has 1 line of text, but 2 are expected" in told(
        "semrel", {"eng_train.csv": one_text}, "."
    )
    files = {
        "dataset_coco.json": "{}",
        "sts_test.csv": "caption1,caption2,agg_score,sampling_method\n:1,:2,3,x\n",
    }
    assert "dataset_coco.json: the caption '1', which sts_test.csv rates, is not in it" in told(
        "cxc", files, "."
    )
    assert not (tmp_path / "data").is_dir() or left(tmp_path / "data") == []


def test_samples_survive_their_files():
    for sample in (Sample("keys", (0, 2**36 - 1, 5)), Sample("ids", (7,)), Sample("topics", ())):
        assert decode(encode(sample)) == sample
    shipped = Path(listing.__file__).parent.glob("*.rows")
    assert sum(path.stat().st_size for path in shipped) < 540 * 1024
    for source in all_sources().values():
        for target in source.targets:
            if "sample" in target.options:
                assert len(read_sample(target.options["sample"]).rows) == stored_checksums(target.file).rows


# Checksums over rows.


def digest(*rows, columns=("a", "b:number")):
    found = RowDigest(columns)
    for row in rows:
        found.add(row)
    return found.result()


def test_canonical_checksums_tell_what_differs():
    rows = [{"a": "A boat  floats.", "b": "5.000"}, {"a": "Rain", "b": 1}]
    ours = digest(*rows)
    assert (
        ours.likeness(digest({"a": " A boat floats. ", "b": 5, "c": 1}, {"a": "Rain", "b": "1.0"})) == "same"
    )
    assert ours.likeness(digest({"a": "a boat floats", "b": 5}, rows[1])) == "respelt"
    assert ours.likeness(digest(*rows[::-1])) == "reordered"
    assert ours.likeness(digest(rows[0])) == "other"
    assert ours.likeness(digest(rows[0], {"a": "Rain", "b": 2})) == "other"
    assert ours.likeness(digest(*rows, rows[1])) == "other"
    assert digest({"a": ["x", "y"]}).exact != digest({"a": ["xy"]}).exact
    assert digest({"a": "e\u0301"}).exact == digest({"a": "\u00e9"}).exact


def test_canonical_cells_cannot_run_into_each_other():
    columns = ("a", "b")
    assert digest({"a": "x", "b": "y z"}, columns=columns) != digest({"a": "x y", "b": "z"}, columns=columns)
    hostile = {"a": "x\x1fy", "b": ""}
    assert digest(hostile, columns=columns) != digest({"a": "x", "b": "y"}, columns=columns)


@pytest.mark.slow
@pytest.mark.realdata
def test_canonical_checksums_are_those_of_our_copies(data_dir):
    seen = set()
    for name in corpus_names():
        for split in find_corpus(name).splits.values():
            stored, file = stored_checksums(split.file), file_in(data_dir, split.file)
            if stored is not None and split.file not in seen:
                seen.add(split.file)
                assert file_checksums(file, stored.columns) == stored, split.file
    assert len(seen) > 120


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["mnli_mismatched"])
def test_samples_are_found_in_our_copies(name, data_dir):
    """The rows of a sample come out of a file that holds them among others, in the sample's order."""
    source = all_sources()[name.partition("_")[0]]
    (target,) = (one for one in source.targets if one.options.get("sample") == name)
    stored = stored_checksums(target.file)
    rows = [row.fields for row in open_table(file_in(data_dir, target.file))]
    others = [{**row, "hypothesis": f"not {row['hypothesis']}"} for row in rows]
    mixed = [row for pair in zip(others, rows[::-1], strict=True) for row in pair]
    found = RowDigest(stored.columns)
    for row in _sampled(mixed, read_sample(name), stored.columns, ()):
        found.add(row)
    assert stored.likeness(found.result()) in ("same", "respelt")  # one row of mnli_mismatched is there twice


# Downloads.


def fetched(server, tmp_path, path="/file", **options):
    target = tmp_path / "fetched"
    fetch_file(Download(server.url(path), "file", **options), target, patience=QUICK)
    return target.read_bytes()


def test_fetch_resumes_after_a_broken_connection(server, tmp_path):
    server.files["/file"] = bytes(range(256)) * 1000
    server.faults["/file"] = ["break", "503"]
    assert fetched(server, tmp_path) == server.files["/file"]
    assert server.asked == [("/file", ""), ("/file", "bytes=128000-"), ("/file", "bytes=128000-")]


def test_fetch_begins_again_if_the_server_cannot_resume_or_the_file_changed(server, tmp_path):
    server.files["/file"] = bytes(range(256)) * 1000
    server.faults["/file"] = ["break", "no-range"]
    assert fetched(server, tmp_path) == server.files["/file"]
    server.faults["/file"] = ["break"]

    def changed(_: str) -> None:
        server.files["/file"], server.etag = b"another file", '"two"'

    download = Download(server.url("/file"), "file")
    fetch_file(download, tmp_path / "second", patience=QUICK, tell=changed)
    assert (tmp_path / "second").read_bytes() == b"another file"


def test_fetch_gives_up_after_some_tries(server, tmp_path):
    server.faults["/file"] = ["503"] * 3
    with pytest.raises(
        FetchError, match=r"/file: the server answers 503 .*tried 3 times\. Download it by hand"
    ):
        fetched(server, tmp_path)
    server.files["/slow"] = b"x" * 1000
    server.faults["/slow"] = ["stall"] * 3
    with pytest.raises(FetchError, match="the connection failed"):
        fetched(server, tmp_path, "/slow")


def test_fetch_refuses_what_cannot_be_the_file(server, tmp_path):
    server.files |= {"/file": b"x" * 2**20, "/big": b"x" * (2**20 + 1), "/odd": b"x"}
    server.faults |= {"/page": ["html"], "/huge": ["huge"]}
    with pytest.raises(FetchError, match="the server answers 404"):
        fetched(server, tmp_path, "/absent")
    with pytest.raises(FetchError, match="the server sends a web page"):
        fetched(server, tmp_path, "/page")
    with pytest.raises(FetchError, match=r"the file has 1,048,576 MiB, but at most 256 are expected"):
        fetched(server, tmp_path, "/huge")
    assert len(fetched(server, tmp_path, most=1)) == 2**20
    with pytest.raises(FetchError, match="the file has 2 MiB, but at most 1 are expected"):
        fetched(server, tmp_path, "/big", most=1)
    with pytest.raises(FetchError, match=r"the sha256 is 2d711642b726…, but 000000000000… is expected"):
        fetched(server, tmp_path, "/odd", sha256="0" * 64)
    assert len(server.asked) == 6  # none of these is asked for twice


def test_fetch_follows_redirects_only_over_tls(server, tmp_path):
    server.files["/file"] = b"here"
    server.faults["/moved"] = [f"to:{server.url('/file')}"]
    assert fetched(server, tmp_path, "/moved") == b"here"
    for address in ("http://example.org/file", "file:///etc/passwd", "ftp://example.org/x"):
        server.faults["/moved"] = [f"to:{address}"]
        with pytest.raises((UsageError, FetchError)):
            fetched(server, tmp_path, "/moved")


def test_fetch_survives_what_a_server_makes_up(server, tmp_path):
    server.files["/file"] = b"here"
    for address in ("https://[bad", "https://localhost:abc/x", "https://a b/x"):
        server.faults["/moved"] = [f"to:{address}"] * QUICK.tries
        with pytest.raises((UsageError, FetchError)):
            fetched(server, tmp_path, "/moved")
    digits = "9" * 5000
    server.faults["/file"] = [f"says:200 Content-Length: {digits}"]
    with pytest.raises(FetchError, match="but at most 256 are expected"):
        fetched(server, tmp_path)
    server.faults["/file"] = ["break", f"says:206 Content-Range: bytes {digits}-/1"]
    assert fetched(server, tmp_path) == b"here"
    server.faults["/file"] = ["junk"] * QUICK.tries
    with pytest.raises(FetchError, match="the connection failed") as caught:
        fetched(server, tmp_path)
    assert len(str(caught.value)) < 600


@pytest.mark.usefixtures("standin")
def test_get_takes_no_address_that_is_none(tmp_path):
    with pytest.raises(UsageError, match="is not an https address"):
        get("standin", data_dir=tmp_path / "data", source="https://[bad")


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "ftp://a/x", "file:///etc/passwd", "https:///x", "x", "https://[bad"]
)
def test_fetch_takes_no_other_addresses(url, tmp_path):
    with pytest.raises(UsageError, match="is not an https address"):
        fetch_file(Download(url, "x"), tmp_path / "x")


# Archives.


def test_bundle_refuses_members_that_lead_out_of_the_archive(tmp_path):
    for name, content in (
        ("a.zip", zipped({"../out.txt": "x"})),
        ("b.tar.gz", tarred({"/etc/out.txt": "x"})),
    ):
        write(tmp_path, {name: content})
        with pytest.raises(FormatError, match=rf"{name}: its member '.*out.txt' leads out of the archive"):
            get("sick9840", data_dir=tmp_path / "data", source=tmp_path / name, accept=["sick9840"])
    assert not (tmp_path / "out.txt").exists()


def test_bundle_refuses_bombs_and_damaged_archives(tmp_path, monkeypatch):
    bomb = zipped({"SICK.txt": b"0" * (80 * 2**20)})
    assert len(bomb) < 2**20
    write(tmp_path, {"SICK.zip": bomb})
    with pytest.raises(FormatError, match="unpacks to 80 MiB or more, which no published corpus does"):
        get("sick9840", data_dir=tmp_path / "data", source=tmp_path / "SICK.zip", accept=["sick9840"])
    whole = zipped({"SICK.txt": "a\tb\n"})
    for broken in (whole[:-30], b"no zip"):
        write(tmp_path, {"SICK.zip": broken})
        with pytest.raises(FormatError, match=r"SICK\.zip: the archive is cut short, damaged or encrypted"):
            get("sick9840", data_dir=tmp_path / "data", source=tmp_path / "SICK.zip", accept=["sick9840"])
    monkeypatch.setattr(bundles, "MOST_MEMBERS", 3)
    write(tmp_path, {"SICK.zip": zipped({f"{n}.txt": "x" for n in range(5)})})
    with pytest.raises(FormatError, match="there are more than 3 files"):
        get("sick9840", data_dir=tmp_path / "data", source=tmp_path / "SICK.zip", accept=["sick9840"])


def test_bundle_reads_no_more_than_its_limit_whatever_an_archive_states(tmp_path):
    write(tmp_path, {"x.zip": zipped({"x.txt": "line\n" * 100})})
    with bundles.Bundle([tmp_path / "x.zip"]) as bundle:
        assert len(list(bundle.lines("x.txt"))) == 100
    with bundles.Bundle([tmp_path / "x.zip"], limit=500) as bundle:
        bundle._limit = 400
        with pytest.raises(FormatError, match="unpacks to"):
            list(bundle.lines("x.txt"))


@pytest.mark.parametrize("kind", ["GNUTYPE_LONGNAME", "XHDTYPE", "XGLTYPE"])
@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
def test_bundle_holds_no_header_of_a_tar_that_no_name_fills(tmp_path, kind, ending):
    import tarfile

    header = tarfile.TarInfo("header")
    header.type, header.size = getattr(tarfile, kind), 3 * 2**30
    pack = {".tar": bytes, ".tar.gz": gzip.compress, ".tar.xz": lzma.compress, ".tar.bz2": bz2.compress}
    (tmp_path / f"x{ending}").write_bytes(pack[ending](header.tobuf(tarfile.GNU_FORMAT) + b"a" * 2**21))
    with pytest.raises(FormatError, match=rf"x{ending}: it has headers of 3,072 MiB or more"):
        bundles.Bundle([tmp_path / f"x{ending}"]).__enter__()


def test_bundle_bounds_the_headers_of_a_tar_in_all_and_reads_long_names(tmp_path, monkeypatch):
    name = "folder/" * 40 + "x.txt"
    (tmp_path / "x.tar.gz").write_bytes(tarred({name: "line\n" * 2**18}))
    with bundles.Bundle([tmp_path / "x.tar.gz"]) as bundle:
        assert sum(1 for _ in bundle.lines("x.txt")) == 2**18
        with bundle.open(bundle.require("x.txt")) as stream:
            assert len(stream.read(2**22)) == 5 * 2**18
    monkeypatch.setattr(bundles, "_ALL_HEADER_BYTES", 1024)
    with pytest.raises(FormatError, match="which no published corpus has"):
        bundles.Bundle([tmp_path / "x.tar.gz"]).__enter__()


def test_bundle_takes_no_links_of_a_tar_and_ignores_files_of_a_mac(tmp_path):
    import tarfile

    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        link = tarfile.TarInfo("SICK.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(FormatError, match=r"there is no SICK.txt in it. It holds nothing"):
        get("sick9840", data_dir=tmp_path / "data", source=tmp_path / "x.tar", accept=["sick9840"])


# Getting.


def test_get_fetches_converts_and_compares(standin, server, tmp_path, monkeypatch):
    report = get("standin", data_dir=tmp_path / "data")
    (file,) = report.files
    assert (file.rows, file.written, file.likeness, report.complete) == (3, True, "same", True)
    assert left(tmp_path / "data") == ["standin/test.tsv.gz"]
    records = load_corpus("standin", "test", data_dir=tmp_path / "data")
    assert [record.values["similarity"] for record in records] == [4.5, 1.0, 5.0]
    corpus = find_corpus("standin")
    assert verify(corpus, corpus.splits["test"], tmp_path / "data") == []  # other bytes, the same rows
    again = get("standin", data_dir=tmp_path / "data")
    assert (again.files[0].written, again.files[0].likeness, len(server.asked)) == (False, "same", 1)


@pytest.mark.parametrize(
    ("rows", "likeness"),
    [
        (["a BOAT floats|A ship floats.|4.50|yes", *ROWS[1:]], "respelt"),
        (ROWS[::-1], "reordered"),
    ],
)
def test_get_accepts_the_same_rows_in_another_form(standin, tmp_path, rows, likeness):
    standin(*rows)
    assert get("standin", data_dir=tmp_path).files[0].likeness == likeness
    corpus = find_corpus("standin")
    assert verify(corpus, corpus.splits["test"], tmp_path) == []


def test_get_refuses_other_rows_and_keeps_them_only_if_told(standin, tmp_path):
    standin(*ROWS[:2], "Rain.|Hail!|5|yes")
    with pytest.raises(
        DataError, match=r"standin/test\.tsv: the 3 rows are not those that the published numbers"
    ):
        get("standin", data_dir=tmp_path)
    standin(*ROWS[:2])
    with pytest.raises(DataError, match=r"2 rows came out, but 3 are expected\. Nothing was written"):
        get("standin", data_dir=tmp_path)
    assert left(tmp_path) == []
    report = get("standin", data_dir=tmp_path, allow_different=True)
    assert (report.files[0].likeness, report.complete) == ("other", False)
    corpus = find_corpus("standin")
    assert "other ones too" in str(verify(corpus, corpus.splits["test"], tmp_path)[-1])
    kept = get("standin", data_dir=tmp_path)
    assert (kept.files[0].written, kept.files[0].likeness, kept.complete) == (False, "other", False)
    standin()
    assert get("standin", data_dir=tmp_path, overwrite=True).files[0].likeness == "same"


def test_get_needs_acceptance_of_terms_before_anything_is_fetched(standin, server, tmp_path):
    standin(terms="no commercial use")
    with pytest.raises(UsageError, match=r"(?s)standin: no commercial use .*add: accept=\[\"standin\"\]$"):
        get("standin", data_dir=tmp_path)
    with pytest.raises(UsageError, match="must be accepted"):
        get("standin", data_dir=tmp_path, ask=lambda source: False)
    assert server.asked == []
    assert get("standin", data_dir=tmp_path, ask=lambda source: source.terms == "no commercial use").complete


def test_get_leaves_nothing_after_an_error(standin, server, tmp_path):
    server.faults["/standin.zip"] = ["break", "503", "503"]
    with pytest.raises(FetchError):
        get("standin", data_dir=tmp_path / "data", patience=QUICK)
    standin(member="../pairs.txt")
    with pytest.raises(FormatError, match="leads out"):
        get("standin", data_dir=tmp_path / "data")
    assert list((tmp_path / "data").rglob("*")) == []


def test_get_several_goes_on_after_one_has_failed(standin, server, tmp_path):
    write(tmp_path / "here", {"pairs.txt": tsv(HEAD, *ROWS)})
    report = get(
        ["standin", "sick9840"], data_dir=tmp_path / "data", source=tmp_path / "here", accept=["sick9840"]
    )
    assert [file.file for file in report.files] == ["standin/test.tsv"]
    assert "there is no SICK.txt in it" in str(report.failed["sick9840"])
    assert not report.complete


def test_get_goes_to_the_cache_where_every_command_looks(standin, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"Get it with `likewise data get standin`, or name"):
        load_corpus("standin")
    get("standin")
    assert left(data_home()) == ["standin/test.tsv.gz"]
    assert len(load_corpus("standin")) == 3
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "own"))
    get("standin")
    assert left(tmp_path / "own") == ["standin/test.tsv.gz"]


def test_get_does_not_write_over_its_input(standin, tmp_path):
    from likewise.files import remembering_inputs

    write(tmp_path / "data/standin", {"test.tsv.xz": b""})
    (tmp_path / "pairs.txt").write_text(tsv(HEAD, *ROWS))
    (tmp_path / "data/standin/test.tsv.xz").unlink()
    os.link(tmp_path / "pairs.txt", tmp_path / "data/standin/test.tsv.xz")
    with remembering_inputs(), pytest.raises(UsageError, match="which is an input"):
        get("standin", data_dir=tmp_path / "data", source=tmp_path / "pairs.txt", overwrite=True)
    assert (tmp_path / "pairs.txt").read_text() == tsv(HEAD, *ROWS)


def test_get_says_what_a_person_must_do(tmp_path):
    with pytest.raises(UsageError, match=r"paranmt must be downloaded by hand .*source=\"FILE_OR_FOLDER\""):
        get("paranmt", data_dir=tmp_path, accept=["paranmt"])
    with pytest.raises(UsageError, match="there is no corpus 'snil'"):
        get("snil", data_dir=tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        get("stsb", data_dir=tmp_path, source=tmp_path / "absent")
    with pytest.raises(UsageError, match="one address cannot hold the files of stsb, cola"):
        get(["stsb", "cola"], data_dir=tmp_path, source="https://example.org/x.zip")


# The command.


def test_cli_get_then_evaluate(standin, server, tmp_path, here, tiny_encoder, monkeypatch):
    """A table's command runs on a corpus that was just fetched."""
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    server.faults["/standin.zip"] = ["break"]
    code, said = here("data", "get", "standin")
    assert code == 0, said
    assert "standin: Invented pairs. Licence: CC0. From 127.0.0.1, which Likewise has never fetched" in said
    assert "3 rows, the same rows" in said
    assert "in your cache, where every command finds them." in said
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\n[[task]]\nname = "one"\ncorpus = "standin/test"\nrelation = "similarity"\n'
    )
    code, said = here(
        "evaluate", tiny_encoder, "--suite", "mine.toml", "--source", "cosine", "--device", "cpu"
    )
    assert code == 0, said
    assert "one" in said


def test_cli_get_json_and_exit_codes(standin, tmp_path, here, monkeypatch):
    code, said = here("data", "get", "standin", "--data-dir", "d", "--json")
    document = json.JSONDecoder().raw_decode(said)[0]
    assert (code, document["complete"], document["files"][0]["likeness"]) == (0, True, "same")
    code, said = here("data", "get", "sick", "--data-dir", "d")
    assert code == 2
    assert "If you accept them, add: --accept-licence sick" in said
    code, said = here("data", "get", "human_activity_phrases", "--data-dir", "d")
    assert code == 2
    assert "test.csv, train.csv and dev.csv" in said
    standin(*ROWS[:2])
    code, said = here("data", "get", "standin", "--data-dir", "e", "--allow-different")
    assert code == 1
    assert "other rows than those that the published numbers were measured on" in said
    assert "Name it with --data-dir e, or set LIKEWISE_DATA=e." in said


def test_cli_get_from_another_address(standin, server, tmp_path, here):
    server.files["/mirror/pairs.txt"] = tsv(HEAD, *ROWS).encode()
    code, said = here("data", "get", "standin", "--data-dir", "d", "--from", server.url("/mirror/pairs.txt"))
    assert code == 0, said
    assert server.asked == [("/mirror/pairs.txt", "")]


def test_cli_list_shows_sources(here):
    code, said = here("data", "list", "qqp")
    assert code == 0
    assert "https://qim.fs.quoracdn.net/quora_duplicate_questions.tsv" in said
    assert "never fetched by us" in said
    assert "Quora_question_pair_partition.zip by hand" in said
    assert "(question1, question2, label)" in said
    code, said = here("data", "list", "--json")
    entries = {entry["name"]: entry for entry in json.loads(said)}
    assert entries["sick"]["sources"][0]["terms"] == "CC BY-NC-SA 3.0: no commercial use"
    assert entries["sick"]["sources"][0]["fetched"] is False
    assert entries["snli"]["splits"][1]["columns"] == ["premise", "hypothesis", "label"]
    assert trial_words() in here("data", "list")[1]
    assert trial_words().startswith("We have fetched 0 of the ")


def test_cli_get_interrupted_leaves_nothing(server, tmp_path):
    """Ctrl-C while a download stalls."""
    server.files["/SICK.zip"] = zipped({"SICK.txt": "x" * 100000})
    server.faults["/SICK.zip"] = ["stall"]
    command = [sys.executable, "-m", "likewise", "data", "get", "sick9840", "--accept-licence", "sick9840"]
    process = subprocess.Popen(
        [*command, "--data-dir", tmp_path / "data", "--from", server.url("/SICK.zip")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    until = time.monotonic() + 20
    while not server.asked and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert list((tmp_path / "data").rglob("*")) == []
