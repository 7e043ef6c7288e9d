"""open_table: every format and compression gives the same rows; every kind of source opens."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from likewise import disk
from likewise.data import TableWriter, count_rows, open_table
from likewise.data.opened import watching
from likewise.errors import DataError, FormatError, MissingExtraError, UsageError
from likewise.files import find_input, remembering_inputs

ROWS = [
    {"text_a": "A small cat sleeps.", "text_b": "The kitten, asleep.", "similarity": "4.5"},
    {"text_a": 'She said "now".', "text_b": "Jetzt! – sofort", "similarity": "3"},
    {"text_a": "猫が眠る", "text_b": "line\u2028separator \x85 stays", "similarity": ""},
]
FORMATS = ("csv", "tsv", "jsonl", "ndjson", "parquet")
COMPRESSIONS = ("", ".gz", ".xz", ".zst", ".bz2")


def write(path: Path, rows=ROWS) -> Path:
    with TableWriter(path) as writer:
        for row in rows:
            writer.write_row(row)
    return path


def stdin(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("ending", FORMATS)
def test_tables_every_format_gives_the_same_rows(tmp_path, ending, compression):
    path = write(tmp_path / f"pairs.{ending}{compression}")
    table = open_table(path)
    assert table.name == path.name
    assert table.columns == ("text_a", "text_b", "similarity")
    for _ in range(2):  # a file can be gone through again
        assert [row.fields for row in table] == ROWS
    first = {"csv": 2, "tsv": 2}.get(ending, 1)
    assert [row.source for row in table] == [f"{path.name}:{first + i}" for i in range(3)]
    expected = None if ending == "parquet" and compression else 3
    assert count_rows(path) == expected


@pytest.mark.parametrize("ending", ["TSV.XZ", "CSV", "Jsonl.GZ"])
def test_tables_endings_have_no_case(tmp_path, ending):
    path = write(tmp_path / f"pairs.{ending.lower()}").rename(tmp_path / f"PAIRS.{ending}")
    assert len(list(open_table(str(path)))) == 3


def test_tables_csv_row_is_numbered_by_the_line_it_starts_on(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'text_a,text_b\r\n"one\r\ntwo\n",b\r\n\r\n  \nc,d\n')
    rows = list(open_table(path))
    assert [(row.source, row.fields["text_a"]) for row in rows] == [
        ("pairs.csv:2", "one\r\ntwo\n"),
        ("pairs.csv:7", "c"),
    ]


def test_tables_tsv_has_no_quoting(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text('a\tb\r\n"open\tx\r\n""\t"y"\n\nlast\trow', encoding="utf-8", newline="")
    assert [tuple(row.fields.values()) for row in open_table(path)] == [
        ('"open', "x"),
        ('""', '"y"'),
        ("last", "row"),
    ]
    assert [row.source for row in open_table(path)] == ["pairs.tsv:2", "pairs.tsv:3", "pairs.tsv:5"]


def test_tables_byte_order_mark_and_blank_names_are_no_trouble(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes("\ufeff,text_a, text_b \n0,x,y\n".encode())
    assert open_table(path).columns == ("column 1", "text_a", "text_b")


def test_tables_jsonl_rows_may_lack_keys(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"a": "x", "b": "y", "score": 1}\n\n{"a": "z", "b": null}\n', encoding="utf-8")
    rows = list(open_table(path))
    assert rows[0].fields == {"a": "x", "b": "y", "score": 1}
    assert (rows[1].fields, rows[1].source) == ({"a": "z", "b": None}, "pairs.jsonl:3")


def test_tables_concatenated_bzip2_streams_are_one_file(tmp_path):
    path = tmp_path / "pairs.csv.bz2"
    path.write_bytes(bz2.compress(b"a,b\n1,2\n") + bz2.compress(b"3,4\n"))
    assert [row.fields["a"] for row in open_table(path)] == ["1", "3"]


def test_tables_concatenated_zstandard_frames_are_one_file(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    compress = zstandard.ZstdCompressor().compress
    path = tmp_path / "pairs.csv.zst"
    path.write_bytes(compress(b"a,b\n1,2\n") + compress(b"3,4\n"))
    assert [row.fields["a"] for row in open_table(path)] == ["1", "3"]


@pytest.mark.parametrize(
    "content",
    [
        b"text_a,text_b\nx,y\n",
        b"text_a\ttext_b\nx\ty\n",
        b'{"text_a": "x", "text_b": "y"}\n',
        b"\xef\xbb\xbftext_a\ttext_b\nx\ty\n",
    ],
)
def test_tables_standard_input_is_sniffed_and_read_once(monkeypatch, content):
    stdin(monkeypatch, content)
    table = open_table("-")
    assert table.once
    assert [row.fields for row in table] == [{"text_a": "x", "text_b": "y"}]
    with pytest.raises(UsageError, match=r"stdin can be read only once\. Save it to a file first"):
        list(table)


def test_tables_lists_of_pairs_and_of_dicts():
    pairs = open_table([("a", "b", 1.0), ["c", "d", 2.0]])
    assert pairs.columns == ("text_a", "text_b", "score")
    assert [tuple(row.fields.values()) for row in pairs] == [("a", "b", 1.0), ("c", "d", 2.0)]
    assert [row.source for row in pairs] == ["rows:1", "rows:2"]
    assert open_table([("a", "b")]).columns == ("text_a", "text_b")
    dicts = open_table([{"x": 1, "y": 2}], name="mine")
    assert [(row.fields, row.source) for row in dicts] == [({"x": 1, "y": 2}, "mine:1")]
    assert count_rows([("a", "b")]) == 1


def test_tables_ragged_list_names_the_row():
    with pytest.raises(
        DataError, match=r"rows:2: there are 3 values, but 2 are expected \(text_a, text_b\)\. Give every row"
    ):
        list(open_table([("a", "b"), ("a", "b", 1)]))
    with pytest.raises(DataError, match=r"rows:2: found tuple, but a dict"):
        list(open_table([{"a": 1, "b": 2}, ("a", "b")]))


@pytest.mark.parametrize("source", [[1, 2], [("a",)], [("a", "b", 1, 2)], 42, None])
def test_tables_other_objects_are_refused(source):
    with pytest.raises(UsageError, match="Pass a "):
        open_table(source)


def test_tables_empty_list_is_refused():
    with pytest.raises(DataError, match="the list is empty"):
        open_table([])


def test_tables_pandas_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", None], "b": ["y", "z"], "score": [1, 2], "name": ["n", "m"]})
    table = open_table(frame)
    assert table.columns == ("a", "b", "score", "name")
    rows = list(table)
    assert rows[0].fields == {"a": "x", "b": "y", "score": 1, "name": "n"}
    assert type(rows[0].fields["score"]) is int
    frame["score"] = pandas.array([1, pandas.NA], dtype="Int64")
    assert [row.fields["score"] for row in open_table(frame)] == [1, None]
    with pytest.raises(FormatError, match="two columns have the same name: 'a'"):
        open_table(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_tables_dataset_and_its_splits():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([{"a": "x", "b": "y"}, {"a": "z", "b": "w"}])
    table = open_table(data)
    assert table.columns == ("a", "b")
    assert [row.fields["a"] for row in table] == ["x", "z"]
    both = datasets.DatasetDict({"train": data, "dev": data.select([1])})
    assert [row.fields["a"] for row in open_table(both, split="dev")] == ["z"]
    with pytest.raises(DataError, match=r"has several splits \(train, dev\)\. Name one"):
        open_table(both)
    with pytest.raises(DataError, match=r"there is no split 'test'\. Choose one of train, dev"):
        open_table(both, split="test")


def test_tables_folder_that_datasets_wrote(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([{"a": "x", "b": "y"}]).save_to_disk(tmp_path / "saved")
    assert [row.fields for row in open_table(tmp_path / "saved")] == [{"a": "x", "b": "y"}]


@pytest.mark.parametrize("change", ["parent", "absolute", "number"])
def test_tables_saved_folder_names_no_file_elsewhere(tmp_path, change):
    datasets = pytest.importorskip("datasets")
    for name in ("saved", "private"):
        datasets.Dataset.from_list([{"a": name, "b": "y"}]).save_to_disk(tmp_path / name)
    state = tmp_path / "saved" / "state.json"
    document = json.loads(state.read_text(encoding="utf8"))
    [entry] = document["_data_files"]
    there = tmp_path / "private" / entry["filename"]
    entry["filename"] = {"parent": f"../private/{there.name}", "absolute": str(there), "number": 3}[change]
    state.write_text(json.dumps(document), encoding="utf8")
    with pytest.raises(FormatError, match="but rows must lie beside it"):
        open_table(tmp_path / "saved")


def test_tables_saved_folder_is_an_input_and_opens_no_picture(tmp_path):
    datasets = pytest.importorskip("datasets")
    picture = {"bytes": b"x", "path": str(tmp_path / "absent.png")}
    datasets.Dataset.from_dict({"a": ["x"], "b": ["y"], "look": [picture]}).save_to_disk(tmp_path / "saved")
    about = tmp_path / "saved" / "dataset_info.json"
    document = json.loads(about.read_text(encoding="utf8"))
    document["features"]["look"] = {"_type": "Image"}
    about.write_text(json.dumps(document), encoding="utf8")
    with remembering_inputs():
        assert [row.fields for row in open_table(tmp_path / "saved")] == [
            {"a": "x", "b": "y", "look": picture}
        ]
        assert find_input(next((tmp_path / "saved").glob("*.arrow")))


def save_stream(folder, batch, **options):
    """A saved dataset with one batch of ours."""
    ipc = pytest.importorskip("pyarrow").ipc
    folder.mkdir()
    with ipc.new_stream(folder / "data.arrow", batch.schema, options=ipc.IpcWriteOptions(**options)) as out:
        out.write_batch(batch)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}', encoding="utf8")
    return folder


def test_tables_saved_folder_of_several_splits_and_files(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = [{"a": f"x{n}", "b": "y", "tags": ["p", "q"][: n % 3]} for n in range(2500)]
    data = datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)})
    data["dev"] = data["train"].select([1])
    data.save_to_disk(tmp_path / "saved", num_shards={"train": 2, "dev": 1})
    table = open_table(tmp_path / "saved", split="train")
    assert [row.fields for row in table] == rows
    assert [row.source for row in table][:2] == ["data-00000-of-00002.arrow:1", "data-00000-of-00002.arrow:2"]
    assert [row.fields["a"] for row in open_table(tmp_path / "saved", split="dev")] == ["x1"]
    (tmp_path / "saved" / "state.json").write_text('{"_data_files": [{"filename": "../x"}]}', encoding="utf8")
    with pytest.raises(FormatError, match=r"holds both state\.json and dataset_dict\.json"):
        open_table(tmp_path / "saved", split="train")


def test_tables_saved_rows_are_neither_packed_nor_shared_nor_damaged(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    texts = arrow.record_batch({"a": ["x"] * 9, "b": ["y"] * 9})
    with pytest.raises(FormatError, match="its batches are packed"):
        list(open_table(save_stream(tmp_path / "packed", texts, compression="zstd")))
    shared = arrow.record_batch({"a": arrow.array(["x"]).dictionary_encode()})
    with pytest.raises(FormatError, match="which is not supported here"):
        open_table(save_stream(tmp_path / "shared", shared))
    folder = save_stream(tmp_path / "damaged", texts)
    whole = (folder / "data.arrow").read_bytes()
    places = arrow.py_buffer(texts.column(0).buffers()[1]).to_pybytes()
    start = whole.index(places)
    (folder / "data.arrow").write_bytes(whole[: start + 36] + b"\xa0\x0f\0\0" + whole[start + 40 :])
    with pytest.raises(FormatError, match="not a whole file of Arrow batches"):
        list(open_table(folder))
    for cut in (*(whole[:length] for length in range(0, len(whole), 7)), whole[:-8], whole[:-8] + bytes(8)):
        (folder / "data.arrow").write_bytes(cut)
        with pytest.raises(FormatError):
            list(open_table(folder))
    (folder / "data.arrow").write_bytes(whole + whole)
    with pytest.raises(FormatError):
        list(open_table(folder))
    (folder / "data.arrow").write_bytes(whole)
    assert len(list(open_table(folder))) == 9


def test_tables_folder_of_files_is_read_by_split(tmp_path):
    folder = tmp_path / "corpus"
    write(folder / "train-0.csv")
    write(folder / "train-1.csv", ROWS[:1])
    write(folder / "test" / "part.csv", ROWS[:1])
    write(folder / ".hidden.csv", ROWS[:1])
    assert [row.fields["text_a"] for row in open_table(folder, split="test")] == [ROWS[0]["text_a"]]
    rows = list(open_table(folder, split="train"))
    assert [row.fields["text_a"] for row in rows] == [row["text_a"] for row in [*ROWS, ROWS[0]]]
    assert [rows[0].source, rows[-1].source] == ["corpus/train-0.csv:2", "corpus/train-1.csv:2"]
    with pytest.raises(DataError, match=r"has several splits \(test, train\)"):
        open_table(folder)
    (folder / "train-2.jsonl").write_text('{"other": 1}\n', encoding="utf8")
    with pytest.raises(FormatError, match=r"train-2\.jsonl: the columns are other, but those"):
        list(open_table(folder, split="train"))
    (folder / "train-2.jsonl").unlink()
    (folder / "train-2.csv").symlink_to(folder / "train-1.csv")
    with pytest.raises(FormatError, match=r"train-2\.csv is the same file as train-1\.csv"):
        open_table(folder, split="train")


def test_tables_folder_is_read_as_it_is_now(tmp_path):
    """A copy of the rows that was known by name and time was read after the file had been replaced."""
    write(tmp_path / "d" / "train.csv")
    os.utime(tmp_path / "d" / "train.csv", (1e9, 1e9))
    assert len(list(open_table(tmp_path / "d"))) == len(ROWS)
    write(tmp_path / "d" / "train.csv", ROWS[:1])
    os.utime(tmp_path / "d" / "train.csv", (1e9, 1e9))
    assert len(list(open_table(tmp_path / "d"))) == 1


def test_tables_folder_chooses_no_file_elsewhere_and_unpacks_nothing(tmp_path):
    write(tmp_path / "d" / "a.csv", ROWS[:1])
    write(tmp_path / "private.csv")
    header = '---\nconfigs:\n- config_name: default\n  data_files: "../private.csv"\n---\n'
    (tmp_path / "d" / "README.md").write_text(header, encoding="utf8")
    (tmp_path / "d" / "a.tar").write_bytes(b"no archive")
    (tmp_path / "d" / "b.tar").write_bytes(b"no archive")
    assert len(list(open_table(tmp_path / "d"))) == 1


def test_tables_file_behind_a_folder_is_an_input(tmp_path):
    write(tmp_path / "mine.csv")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train.csv").symlink_to(tmp_path / "mine.csv")
    with remembering_inputs():
        assert len(list(open_table(tmp_path / "d"))) == len(ROWS)
        with pytest.raises(UsageError, match="is an input"):
            disk.write_text_aside(tmp_path / "mine.csv", "other")


def test_tables_hub_id_goes_through_datasets(monkeypatch):
    datasets = pytest.importorskip("datasets")
    asked = []

    def load_dataset(name, config):
        asked.append((name, config))
        return {"test": datasets.Dataset.from_list([{"a": "x", "b": "y"}])}

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    table = open_table("someone/pairs")
    assert [(row.fields["a"], row.source) for row in table] == [("x", "someone/pairs:1")]
    assert asked == [("someone/pairs", None)]


def test_tables_hub_rows_leave_out_pictures_which_would_be_opened(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    rows = {"a": ["x"], "b": ["y"], "look": [str(tmp_path / "absent.png")]}
    features = {**dict.fromkeys("ab", datasets.Value("string")), "look": datasets.Image(decode=True)}
    data = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    monkeypatch.setattr(datasets, "load_dataset", lambda name, config: datasets.DatasetDict({"test": data}))
    assert [row.fields for row in open_table("someone/pairs")] == [{"a": "x", "b": "y"}]


def test_tables_hub_id_that_cannot_be_loaded_says_both_readings(monkeypatch):
    datasets = pytest.importorskip("datasets")

    def load_dataset(name, config):
        raise ConnectionError("no route\nmore")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(
        FormatError, match=r"data/pairs: this is neither a file nor a dataset .*no route\)\. Check"
    ):
        open_table("data/pairs")


@pytest.mark.parametrize(
    ("package", "source"), [("datasets", "someone/pairs"), ("zstandard", "pairs.csv.zst")]
)
def test_tables_absent_package_names_the_extra(tmp_path, monkeypatch, package, source):
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtraError,
        match=rf"{package} is not installed\. Install it with: pip install 'likewise\[tables\]'",
    ):
        open_table(source)


def test_tables_count_rows_is_none_where_it_is_not_cheap(tmp_path):
    assert count_rows("-") is None
    assert count_rows(tmp_path / "absent.csv") is None
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    assert count_rows(tmp_path / "bad.parquet") is None
    (tmp_path / "pairs.csv").write_text("a,b\n1,2\n3,4", encoding="utf-8")
    assert count_rows(tmp_path / "pairs.csv") == 2


def test_tables_reading_is_lazy(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"a": "x", "b": "y"}) + "\nnot json\n", encoding="utf-8")
    rows = iter(open_table(path))
    assert next(rows).fields == {"a": "x", "b": "y"}
    with pytest.raises(FormatError, match=r"pairs\.jsonl:2"):
        next(rows)


def test_tables_may_be_read_again_and_at_the_same_time(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\n" + "".join(f"x{n},y\n" for n in range(5)), encoding="utf8")
    table = open_table(path)
    whole = list(open_table(path))
    both = list(zip(table, table, strict=True))
    assert [row for row, _ in both] == [row for _, row in both] == whole
    assert next(iter(table)) == whole[0]
    assert list(table) == whole


def test_tables_that_change_after_they_were_opened_are_read_as_they_are(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\nx,y\n", encoding="utf8")
    table = open_table(path)
    path.write_text("a,b\nlonger,y\n", encoding="utf8")
    assert [row.fields["a"] for row in table] == ["longer"]
    table = open_table(path)
    path.unlink()
    with pytest.raises(FormatError, match="cannot be opened"):
        list(table)


def test_tables_tell_every_reader_what_is_wrong_before_the_first_row(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('nonsense\n{"a": "x", "b": "y"}\n{"a"\n', encoding="utf8")
    told = []
    table = open_table(path, fail=told.append)
    assert [problem.source for problem in told] == ["pairs.jsonl:1"]
    for _ in range(2):
        heard = []
        assert [row.source for row in table.scan(heard.append)] == ["pairs.jsonl:2"]
        assert [problem.source for problem in heard] == ["pairs.jsonl:1", "pairs.jsonl:3"]
    assert len(told) == 1


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz"])
def test_tables_close_their_file_whoever_reads_them(tmp_path, ending):
    path = tmp_path / f"pairs.{ending}"
    content = b"a,b\nx,y\nz,y\n" if ending == "csv" else gzip.compress(b'{"a": "x"}\n{"a": "z"}\n')
    path.write_bytes(content)

    def handles():
        return sum(os.path.realpath(f"/proc/self/fd/{n}") == str(path) for n in os.listdir("/proc/self/fd"))

    table = open_table(path)
    assert handles() == 1
    rows = iter(table)
    next(rows)
    assert handles() == 1
    rows.close()
    assert handles() == 0
    table = open_table(path)
    del table, rows
    assert handles() == 0
    path.write_bytes(content[:-30] if ending != "csv" else b'a,"a\n')
    with pytest.raises(FormatError):
        list(open_table(path))
    assert handles() == 0


def test_tables_are_read_whole_on_both_sides_of_a_fork(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\n" + "".join(f"x{n},y\n" for n in range(20_000)), encoding="utf8")
    code = f"""
import os
from likewise.data import open_table
table = open_table({str(path)!r})
child = os.fork()
count = sum(1 for _ in table)
if child == 0:
    os._exit(count != 20_000)
print(count, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["20000", "0"]


def test_tables_that_are_watched_name_their_file_for_every_reader(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\nx,y\n", encoding="utf8")
    table = open_table(path)
    for _ in range(2):
        with watching() as watch:
            list(table)
        assert list(watch.files) == [str(path.resolve())]
