"""Tables that are hostile or unlucky: no hang, no memory, no traceback; an error says what and what to do."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from likewise.data import TableWriter, count_rows, formats, load_records, open_table, parquetpages
from likewise.data.checking import check
from likewise.data.own import open_own_table
from likewise.data.parquetpages import NotParquetError, group_memory
from likewise.data.ratings import find_relations
from likewise.data.rows import MAX_COLUMNS, Row
from likewise.data.values import to_label
from likewise.errors import DataError, FormatError, LikewiseError, UsageError
from likewise.files import is_there, os_message, refuse_endless
from likewise.records import Relation

HALF = "\ud800"


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.tsv", "pipe.jsonl", "pipe.parquet", "pipe.csv.gz"])
def test_a_named_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FormatError, match="is a named pipe, which may never end"):
        open_table(tmp_path / name)
    assert count_rows(tmp_path / name) is None


def test_a_folder_with_a_pipe_in_it_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(FormatError, match="is a named pipe"):
        open_table(tmp_path)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_a_device_is_refused_at_once(tmp_path, device):
    (tmp_path / "z.csv").symlink_to(device)
    with pytest.raises(FormatError, match="is a device, which may never end"):
        open_table(tmp_path / "z.csv")


def test_sockets_folders_and_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "circle.csv").symlink_to(tmp_path / "circle.csv")
    with pytest.raises(FormatError, match="leads nowhere, or in a circle"):
        open_table(tmp_path / "circle.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FormatError, match="folder"):
        open_table(tmp_path / "folder.csv")
    with pytest.raises(FormatError, match="is a folder"):
        refuse_endless(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(tmp_path)
        server.bind("s.csv")
        with pytest.raises(FormatError, match="is a socket"):
            open_table("s.csv")


@pytest.mark.parametrize(
    "name", ["x" * 300 + ".csv", "😀" * 100 + ".csv", "a\0b.csv", "pairs.csv/x.csv", HALF + ".csv"]
)
def test_names_that_can_be_no_file_are_no_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text("text_a,text_b\na,b\n")
    assert not is_there(name)
    assert count_rows(name) is None
    with pytest.raises(FormatError, match="no such file"):
        open_table(name)
    with pytest.raises(LikewiseError):
        load_records(name)


def test_os_message_names_the_file_and_a_remedy(tmp_path):
    with pytest.raises(OSError, match="too long") as caught:
        open(tmp_path / ("x" * 300))
    assert os_message(caught.value).endswith("the name is too long for a file. Choose a shorter name.")
    assert os_message(OSError("odd")) == "odd"
    assert (
        os_message(OSError(28, "No space left on device"))
        == "there is no space left on the disk. Free some space, or write elsewhere."
    )


def test_a_million_columns_are_refused_in_a_moment(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(1_000_000)) + "\n" + "," * 999_999 + "\n")
    start = time.monotonic()
    with pytest.raises(
        FormatError, match=r"there are 1,000,000 columns, but at most 10,000 are read"
    ) as caught:
        open_table(path)
    assert time.monotonic() - start < 5
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_as_many_columns_as_are_allowed_are_read_in_linear_time(tmp_path, ending):
    names = ["text_a", "text_b", *(f"c{n}" for n in range(MAX_COLUMNS - 2))]
    path = tmp_path / f"wide.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(dict.fromkeys(names, "1")) + "\n" for _ in range(3)))
    else:
        mark = "," if ending == "csv" else "\t"
        path.write_text((mark.join(names) + "\n") + (mark.join(["1"] * MAX_COLUMNS) + "\n") * 3)
    start = time.monotonic()
    report = check(path)
    assert report.rows == 3
    assert time.monotonic() - start < 10


def test_json_objects_and_frames_have_the_same_limit(tmp_path):
    wide = dict.fromkeys(map(str, range(MAX_COLUMNS + 1)), 1)
    (tmp_path / "wide.jsonl").write_text(json.dumps(wide) + "\n")
    with pytest.raises(FormatError, match="at most 10,000"):
        open_table(tmp_path / "wide.jsonl")
    with pytest.raises(FormatError, match="at most 10,000"):
        open_table([wide])


def test_messages_do_not_repeat_a_whole_file(tmp_path):
    names = [f"column_{n}" for n in range(5000)]
    path = tmp_path / "ragged.csv"
    path.write_text(",".join(names) + "\n1,2\n")
    with pytest.raises(FormatError) as caught:
        list(open_table(path))
    assert "… and 4,980 more" in str(caught.value)
    with pytest.raises(DataError) as caught:
        load_records(path)
    assert len(str(caught.value)) < 1000
    path.write_text(f"text_a,text_b,score\na,b,{'x' * 100_000}\n")
    with pytest.raises(LikewiseError) as caught:
        load_records(path, relations=[*find_relations([], ["score"], [], ["score:0..5"])])
    assert len(str(caught.value)) < 1000


def test_json_that_is_nested_without_end_is_a_malformed_row(tmp_path):
    good = '{"text_a": "a", "text_b": "b"}\n'
    for depth in (100_000, 3000):
        path = tmp_path / "deep.jsonl"
        path.write_text(good + '{"text_a": ' + "[" * depth + "]" * depth + "}\n")
        assert check(path).counts["malformed row"] == 1


@pytest.mark.parametrize("depth", [50, 900])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_json_that_is_nested_deeply_is_written_or_refused(tmp_path, depth, ending):
    cell = json.loads("[" * depth + "]" * depth)
    refused = nullcontext() if depth == 50 else pytest.raises(DataError, match="nested too deeply")
    with refused, TableWriter(tmp_path / f"o.{ending}", ["x", "y"]) as writer:
        writer.write_row({"x": cell, "y": 1})


def test_numbers_of_thousands_of_digits_are_no_traceback(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text(
        '{"text_a": "a", "text_b": "b", "score": 1}\n{"text_a": "a", "score": ' + "9" * 5000 + "}\n"
    )
    assert check(path).counts["malformed row"] == 1
    path.write_text('{"text_a": "a", "text_b": "b", "score": ' + "9" * 4000 + "}\n" + '{"score": 1}\n')
    assert not check(path).ok
    with pytest.raises(LikewiseError, match="too large to show"):
        load_records([{"text_a": "a", "text_b": "b", "score": 10**5000}], relations=[Relation("score")])
    assert to_label(10**5000) == "a int too large to show"


def test_numbers_beyond_any_scale_are_not_taken_for_ratings(tmp_path):
    path = tmp_path / "keys.csv"
    path.write_text("text_a,text_b,code\n" + "".join(f"a{n},b{n},{10**20 - n}\n" for n in range(5)))
    assert check(path).relations == []
    path.write_text("text_a,text_b,score\na,b,1e300\nc,d,-1e300\ne,f,3\n")
    assert check(path).relations == []


def test_a_wide_inferred_scale_has_a_small_grid():
    rows = [Row({"price": str(number)}, f"r:{number}") for number in (7, 900_000, 12)]
    [price] = find_relations(rows, ["price"], [])
    assert len(price.grid) == 2


@pytest.mark.parametrize("count", [20, 21, 50, 300])
def test_declared_classes_have_all_their_labels(tmp_path, count):
    path = tmp_path / "labels.csv"
    path.write_text("text,kind\n" + "".join(f"t{n},k{n % count}\n" for n in range(2 * count)))
    table = open_own_table(path, name="labels.csv", declared=["kind:classes"])
    assert len(table.relations[0].labels) == count
    assert check(path, relations=["kind:classes"]).ok


def test_half_characters_are_named_in_texts_columns_and_labels(tmp_path):
    path = tmp_path / "half.jsonl"
    path.write_text('{"text_a": "a\\ud800", "text_b": "b"}\n')
    with pytest.raises(DataError, match="half of a surrogate pair"):
        load_records(path)
    path.write_text('{"text_a": "a", "\\ud800": "b"}\n')
    with pytest.raises(FormatError, match="the column name"):
        open_table(path)
    path.write_text(
        '{"text_a": "a", "text_b": "b", "k": "\\ud800"}\n{"text_a": "c", "text_b": "d", "k": "x"}\n'
    )
    with pytest.raises(UsageError, match="not UTF-8"):
        open_own_table(path, name="half.jsonl", declared=["k:classes"])


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_writers_take_half_characters(tmp_path, ending):
    path = tmp_path / f"o.{ending}"
    with TableWriter(path, ["x", "y"]) as writer:
        writer.write_row({"x": f"a{HALF}b", "y": "ä"})
    [row] = open_table(path)
    assert row.fields["x"] == (f"a{HALF}b" if ending == "jsonl" else "a\ufffdb")
    assert row.fields["y"] == "ä"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_writers_take_what_parquet_holds(tmp_path, ending):
    row = {"raw": b"\xff\xfe", "day": date(2024, 1, 2), "at": datetime(2024, 1, 2, 3), "sum": Decimal("1.50")}
    path = tmp_path / f"o.{ending}"
    with TableWriter(path, list(row)) as writer:
        writer.write_row(row)
    [back] = open_table(path)
    assert list(back.fields.values()) == ["//4=", "2024-01-02", "2024-01-02T03:00:00", "1.50"]


FORMULAS = ["=1+1", "+x", "-2+3", "@SUM(A1)", "\tcmd", "\rcmd", " =1", "\n=1", "＝1", "-inf text"]
PLAIN = ["-0.5", "+3", "-1e-5", ".5", "a=b", "", "text", "'quoted"]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_safe_writers_quote_formulas_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"o.{ending}"
    mark = "," if ending == "csv" else "\t"
    cells = [*FORMULAS, *PLAIN, -0.5, float("-inf"), None]
    with TableWriter(path, ["=evil()", "n"], safe=True) as writer:
        for number, cell in enumerate(cells):
            writer.write_row({"=evil()": cell, "n": number})
    with path.open(newline="", encoding="utf8") as file:
        header, *rows = csv.reader(file, delimiter=mark)
    assert header == ["'=evil()", "n"]
    found = [row[0] for row in rows]
    assert all(cell.startswith("'") for cell in found[: len(FORMULAS)])
    assert found[len(FORMULAS) :] == [*PLAIN, "-0.5", "-inf", ""]


def test_writers_leave_formulas_as_they_are_unless_asked(tmp_path):
    with TableWriter(tmp_path / "o.csv", ["x"]) as writer:
        writer.write_row({"x": "=1+1"})
    assert (tmp_path / "o.csv").read_text() == "x\n=1+1\n"
    for ending in ("jsonl", "parquet"):
        with TableWriter(tmp_path / f"o.{ending}", ["x"], safe=True) as writer:
            writer.write_row({"x": "=1+1"})
        assert [row.fields["x"] for row in open_table(tmp_path / f"o.{ending}")] == ["=1+1"]


def text_array(values: list[bytes]) -> pyarrow.Array:
    """A column that says it holds texts, whatever its bytes are."""
    ends, offsets = 0, [0]
    for value in values:
        ends += len(value)
        offsets.append(ends)
    places = pyarrow.py_buffer(b"".join(end.to_bytes(4, "little") for end in offsets))
    return pyarrow.Array.from_buffers(
        pyarrow.string(), len(values), [None, places, pyarrow.py_buffer(b"".join(values))]
    )


def test_parquet_names_the_column_that_is_not_utf8(tmp_path):
    path = tmp_path / "p.parquet"
    table = pyarrow.table({"text_a": ["a", "b"], "text_b": text_array([b"x\xff", b"y"])})
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(FormatError, match=r"column 'text_b' holds bytes that are not UTF-8"):
        load_records(path, relations=())
    assert not check(path).ok


def test_parquet_columns_of_every_kind_are_read_or_refused(tmp_path):
    path = tmp_path / "p.parquet"
    columns = {
        "text_a": pyarrow.array(["a", "b"]).dictionary_encode(),
        "text_b": ["x", "y"],
        "raw": pyarrow.array([b"\xff", b"ok"]),
        "none": pyarrow.nulls(2),
        "nested": pyarrow.array([{"a": [1, 2]}, None]),
        "at": pyarrow.array([0, 1], pyarrow.timestamp("us")),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert len(load_records(path, relations=())) == 2
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        table = open_table(path)
        with TableWriter(tmp_path / f"o.{ending}", table.columns) as writer:
            for row in table:
                writer.write_row(row.fields)
        assert len(list(open_table(tmp_path / f"o.{ending}"))) == 2
    with pytest.raises(DataError, match="but a text is expected"):
        load_records(path, relations=(), text_a="raw", text_b="text_b")


def test_parquet_without_columns_or_with_two_of_one_name_is_refused(tmp_path):
    path = tmp_path / "p.parquet"
    pyarrow.parquet.write_table(pyarrow.table({}), path)
    with pytest.raises(FormatError, match="has no columns"):
        open_table(path)
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["x", "x"])
    pyarrow.parquet.write_table(twice, path)
    with pytest.raises(FormatError, match="two columns have the same name: 'x'"):
        open_table(path)


def test_parquet_that_repeats_a_long_text_takes_little_memory(tmp_path):
    text = pyarrow.array(["x" * 5_000_000])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 1000, pyarrow.int32()), text)
    pyarrow.parquet.write_table(
        pyarrow.table({"text_a": column, "text_b": ["y"] * 1000}), tmp_path / "p.parquet"
    )
    assert (tmp_path / "p.parquet").stat().st_size < 10**6
    code = (
        "from likewise.data.checking import check\n"
        "report = check('p.parquet')\nassert report.counts['over-long text'] == 1000\n"
        # ru_maxrss would begin at what the process had that began this one.
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 500_000


def write_packed(path, **columns):
    """A parquet file that is much smaller than what it unpacks to."""
    pyarrow.parquet.write_table(
        pyarrow.table({"text_b": ["b"] * len(columns["text_a"]), **columns}),
        path,
        compression="zstd",
        dictionary_pagesize_limit=2**30,
        store_schema=False,
    )
    assert path.stat().st_size < 10**5


def as_varint(number):
    number <<= 1
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def with_other_total(path):
    """The same file with a footer that says its row group unpacks to one byte."""
    total = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).total_byte_size
    held, old = path.read_bytes(), as_varint(total)
    new = bytes([2 | 128] + [128] * (len(old) - 2) + [0])
    at = held.rindex(old)
    path.write_bytes(held[:at] + new + held[at + len(old) :])
    assert pyarrow.parquet.ParquetFile(path).metadata.row_group(0).total_byte_size == 1


@pytest.mark.parametrize("total", ["true", "one byte"])
def test_parquet_that_unpacks_to_gigabytes_takes_little_memory(tmp_path, total):
    repeated = pyarrow.array([0] * 4000, pyarrow.int32())
    long = pyarrow.DictionaryArray.from_arrays(repeated, pyarrow.array(["x" * 2**20]))
    write_packed(tmp_path / "p.parquet", text_a=long)
    if total == "one byte":
        with_other_total(tmp_path / "p.parquet")
    said, peak = peak_of_reading(tmp_path)
    assert said == "read"
    assert peak < 1e9


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([f"{number:06d}🙂" + "a " * (2**19 - 5) for number in range(200)], "at most 128 MB are read"),
        (["🙂" + "a" * (11 * 2**20)], "holds a text of 11 MB, but at most 10 MB are read"),
        ([f"{number:06d}🙂" + "a " * (2**19 - 5) for number in range(100)], "read"),
    ],
    ids=["many", "long", "some"],
)
def test_parquet_texts_take_little_memory(tmp_path, texts, said):
    """A text beyond Latin-1 takes four bytes a character, and is copied on its way."""
    options = {"dictionary_pagesize_limit": 2**30, "data_page_size": 2**30}
    table = pyarrow.table({"text_a": texts, "text_b": ["x"] * len(texts)})
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet", compression="zstd", **options)
    found, peak = peak_of_reading(tmp_path)
    assert said in found
    assert peak < 1e9


def test_parquet_of_types_whose_memory_is_not_known_is_refused(tmp_path):
    """Extensions and views are other ways to say texts and lists, past the bounds of these."""
    text = pyarrow.array(["a b"])
    json_type = pyarrow.json_(pyarrow.utf8())
    columns = {
        "json": pyarrow.ExtensionArray.from_storage(json_type, text),
        "inside": pyarrow.StructArray.from_arrays(
            [pyarrow.ExtensionArray.from_storage(json_type, text)], ["s"]
        ),
        "view": pyarrow.array([["a"]], pyarrow.list_view(pyarrow.utf8())),
    }
    for name, column in columns.items():
        table = pyarrow.table({"text_a": text, "text_b": text, name: column})
        pyarrow.parquet.write_table(table, tmp_path / "p.parquet")
        with pytest.raises(FormatError, match=f"column '{name}' has the type .* which is not supported"):
            list(open_table(tmp_path / "p.parquet"))


def test_parquet_of_everyday_types_is_read(tmp_path):
    day = datetime(2026, 1, 2, 3, 4)
    values = {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": day,
        "e": day.date(),
        "f": None,
        "g": ["x", "y"],
        "h": {"k": 2},
    }
    rows = [{"text_a": "one", "text_b": "two", **values}]
    table = pyarrow.Table.from_pylist(rows)
    table = table.append_column("i", pyarrow.array(["u"]).dictionary_encode())
    table = table.append_column("j", pyarrow.array([Decimal("1.50")]))
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet")
    [row] = open_table(tmp_path / "p.parquet")
    assert row.fields["i"] == "u"
    assert row.fields["g"] == ["x", "y"]
    assert row.fields["h"] == {"k": 2}


def test_parquet_with_large_pages_or_very_long_lists_is_refused(tmp_path, monkeypatch):
    """The bounds are lowered here: a file that reaches them takes a minute to write."""
    monkeypatch.setattr(formats, "_PAGE_BYTES", 2**20)
    write_packed(tmp_path / "z.parquet", text_a=["a"], c=pyarrow.array([b"\0" * (3 * 2**20)]))
    with pytest.raises(
        FormatError, match=r"unpack to 3 MB at once, most of it in 'c', but at most 1 MB are read"
    ):
        list(open_table(tmp_path / "z.parquet"))
    ends = pyarrow.array([0, 100_000], pyarrow.int32())
    lists = pyarrow.ListArray.from_arrays(ends, pyarrow.array(np.zeros(100_000, "int8")))
    write_packed(tmp_path / "l.parquet", text_a=["a"], c=lists)
    assert len(next(iter(open_table(tmp_path / "l.parquet"))).fields["c"]) == 100_000
    for bound in ("_PAGE_VALUES", "_GROUP_VALUES"):
        with monkeypatch.context() as patch:
            patch.setattr(formats, bound, 10_000)
            with pytest.raises(
                FormatError, match=r"\'c\.list\.element\' holds lists of 100,000 values in one"
            ):
                list(open_table(tmp_path / "l.parquet"))
    monkeypatch.setattr(formats, "_MOST_VALUES", 10_000)
    with pytest.raises(FormatError, match=r"1 row with lists of more than 10,000 values found\. Leave that"):
        list(open_table(tmp_path / "l.parquet"))


def test_parquet_pages_are_counted_as_pyarrow_wrote_them(tmp_path):
    path = tmp_path / "p.parquet"
    rows = 3000
    table = pyarrow.table(
        {
            "text": [f"text {n} " * (n % 50) for n in range(rows)],
            "same": ["yes", "no"] * (rows // 2),
            "number": list(range(rows)),
            "vector": [[1.0, 2.0, float(n)] for n in range(rows)],
            "both": [{"a": n, "b": "x"} for n in range(rows)],
        }
    )
    for options in ({"compression": "snappy"}, {"data_page_version": "2.0"}, {"use_dictionary": False}):
        pyarrow.parquet.write_table(table, path, row_group_size=1000, data_page_size=5000, **options)
        meta = pyarrow.parquet.ParquetFile(path).metadata
        with path.open("rb") as stream:
            groups = list(group_memory(stream))
            assert stream.tell() == 0
        assert [group.rows for group in groups] == [1000] * 3
        for number, group in enumerate(groups):
            for place, column in enumerate(group.columns):
                chunk = meta.row_group(number).column(place)
                assert column.name == chunk.path_in_schema
                assert column.values == chunk.num_values
                assert 0 < column.largest <= chunk.total_uncompressed_size
                texts = chunk.physical_type == "BYTE_ARRAY"
                assert bool(column.shared) == (chunk.has_dictionary_page and not texts)
        assert [row.fields for row in open_table(path)] == table.to_pylist()


def test_parquet_with_shared_beginnings_and_lists_is_read(tmp_path):
    """Texts that share beginnings are stored as what differs; a batch of them is bounded by the page."""
    path = tmp_path / "p.parquet"
    texts = ["the same long beginning " * 400 + str(number) for number in range(500)]
    table = pyarrow.table({"text": texts, "vector": [np.arange(500.0).tolist()] * 500})
    encoding = {"text": "DELTA_BYTE_ARRAY"}
    pyarrow.parquet.write_table(table, path, use_dictionary=["vector"], column_encoding=encoding)
    with path.open("rb") as stream:
        [group] = group_memory(stream)
    assert group.columns[0].shared == group.columns[0].largest > 0
    assert [row.fields["text"] for row in open_table(path)] == texts


def peak_of_reading(folder):
    """The memory that a fresh process takes to read `p.parquet`, and what it says."""
    script = (
        "from likewise.data import open_table\n"
        "from likewise.errors import FormatError\n"
        "try:\n"
        "    for number, row in zip(range(300), open_table('p.parquet')): pass\n"
        "    print('read')\n"
        "except FormatError as error: print(error)\n"
        "[peak] = [line for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "print(peak.split()[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, peak = done.stdout.splitlines()
    return said, int(peak) * 1024


def nested(depth):
    found = pyarrow.array(np.zeros(2**21, "int8"))
    for _ in range(depth):
        found = pyarrow.StructArray.from_arrays([found], ["s"])
    return pyarrow.ListArray.from_arrays(pyarrow.array([0, 2**21], pyarrow.int32()), found)


def long_texts(*, count, rows, text):
    places = pyarrow.array(np.zeros(count * rows, "int32"))
    texts = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array([text]))
    ends = pyarrow.array([count * row for row in range(rows + 1)], pyarrow.int32())
    return pyarrow.ListArray.from_arrays(ends, texts) if count > 1 else texts


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (lambda: long_texts(count=3000, rows=4, text="x" * 2**20), "read"),
        (lambda: long_texts(count=1, rows=200, text="x" * 2**20 + "\N{GRINNING FACE}"), "read"),
        (lambda: nested(12), "lists of"),
    ],
    ids=["a dictionary in lists", "wide characters", "structures in lists"],
)
def test_parquet_cells_that_unfold_take_little_memory(tmp_path, column, said):
    made = column()
    write_packed(tmp_path / "p.parquet", text_a=["a"] * len(made), c=made)
    found, peak = peak_of_reading(tmp_path)
    assert said in found
    assert peak < 1e9


def test_parquet_lists_structures_and_maps_are_read_as_pyarrow_gives_them(tmp_path):
    """Texts come as a dictionary and its rows, in lists too: what is made of them is the same."""
    inner = pyarrow.list_(pyarrow.struct([("t", pyarrow.string()), ("n", pyarrow.list_(pyarrow.string()))]))
    table = pyarrow.table(
        {
            "text": ["a", None, "b", "a"],
            "raw": [b"1", b"1", None, b"2"],
            "words": [["x", "y", None], [], None, ["x"]],
            "deep": pyarrow.array(
                [[{"t": "p", "n": ["q", None]}, None], None, [], [{"t": None, "n": None}]], inner
            ),
            "pair": [{"a": "x", "b": 1}, None, {"a": None, "b": None}, {"a": "x", "b": 2}],
            "map": pyarrow.array(
                [[("k", "v")], None, [], [("k", None), ("l", "v")]],
                pyarrow.map_(pyarrow.string(), pyarrow.string()),
            ),
            "numbers": [[1.5], None, [2.0, 3.0], []],
        }
    )
    for options in ({}, {"use_dictionary": False}, {"row_group_size": 3}):
        pyarrow.parquet.write_table(table, tmp_path / "p.parquet", **options)
        assert [row.fields for row in open_table(tmp_path / "p.parquet")] == table.to_pylist()


def test_a_footer_that_readers_may_understand_in_two_ways_is_refused():
    """Field 1 as an i32, twice: Thrift's own readers take the one whose type is right."""
    with pytest.raises(NotParquetError, match="field 1 twice"):
        parquetpages._Compact(bytes([0x15, 2, 0x06, 2, 2, 0])).struct()
    with pytest.raises(NotParquetError, match="ends too early"):
        parquetpages._Compact(bytes([0x15])).struct()
    with pytest.raises(NotParquetError, match="nested too deeply"):
        parquetpages._Compact(bytes([0x1C] * 40)).struct()
    empty = bytes([0x19, 0xFC, 0x80, 0x80, 0x80, 2]) + bytes(2**22 + 9)
    with pytest.raises(NotParquetError, match="more than"):
        parquetpages._Compact(empty).struct()


def test_damaged_parquet_is_refused_whatever_is_damaged(tmp_path):
    path = tmp_path / "p.parquet"
    rows = {"text_a": [f"text {n % 7}" for n in range(50)], "text_b": ["y"] * 50, "score": list(range(50))}
    pyarrow.parquet.write_table(pyarrow.table(rows), path)
    whole, rng = path.read_bytes(), random.Random(0)
    refused = []
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 2, 5])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged[: rng.choice([len(whole), rng.randrange(len(whole))])])
        try:
            count_rows(path)
            load_records(path)
        except LikewiseError as error:
            refused.append(len(str(error)))
    assert len(refused) > 50
    assert max(refused) < 2000


def test_rows_of_packed_nonsense_are_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.data.tables._COUNTED_BYTES", 2**15)
    with gzip.open(tmp_path / "bomb.csv.gz", "wb") as file:
        file.write(b"a,b\n" + b"\n" * 5_000_000)
    assert (tmp_path / "bomb.csv.gz").stat().st_size < 2**15
    assert count_rows(tmp_path / "bomb.csv.gz") is None


@pytest.mark.parametrize(
    "source",
    [
        *(None, 3, 3.5, b"bytes", object(), {}, {"text_a": ["a"]}, set(), iter([]), [], [[]], [None], [3]),
        *(
            [("a",)],
            [("a", "b", "c", "d")],
            [("a", "b"), 3],
            [("a", "b"), ("c",)],
            [("a", "b"), "cd"],
            [{}],
            [{"x": 1}, 3],
            [{1: 2}],
        ),
        *([{"text_a": [1], "text_b": {}}], [{"text_a": None, "text_b": "b"}], "", " ", "\0", "a/b/c"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_whatever_is_given_as_rows_is_refused_in_words(source):
    with pytest.raises(LikewiseError) as caught:
        load_records(source)
    assert str(caught.value)
