"""Writers: what is written comes back, and a file is whole or not there."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.data import TableWriter, open_table, write_json_aside, write_text_aside
from likewise.data.writing import open_aside
from likewise.errors import DataError, UsageError

ENDINGS = ["csv", "tsv", "jsonl", "parquet", "csv.gz", "tsv.xz", "jsonl.zst", "csv.bz2", "parquet.gz"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@dataclass
class Point:
    x: float


def write(path, rows, columns=None) -> None:
    with TableWriter(path, columns) as writer:
        for row in rows:
            writer.write_row(row)


def expected(text: str, ending: str) -> str:
    return text.translate(str.maketrans("\t\n\r", "   ")) if ending == "tsv" else text


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_writing_round_trip(tmp_path, ending, rows):
    path = tmp_path / f"pairs.{ending}"
    write(path, [{"a": a, "b": b} for a, b in rows])
    back = [(row.fields["a"], row.fields["b"]) for row in open_table(path)]
    assert back == [(expected(a, ending), expected(b, ending)) for a, b in rows]


@pytest.mark.parametrize("ending", ENDINGS)
def test_writing_leaves_nothing_behind_after_an_error(tmp_path, ending):
    def rows(error):
        for number in range(1_500):
            yield {"a": "x", "b": number}
        raise error

    for error in (RuntimeError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            write(tmp_path / f"out.{ending}", rows(error))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_writing_replaces_an_old_file_only_at_the_end(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    path.write_text("old", encoding="utf-8")
    with TableWriter(path) as writer:
        writer.write_row({"a": "x", "b": "y"})
        assert path.read_text(encoding="utf-8") == "old"
    assert [row.fields for row in open_table(path)] == [{"a": "x", "b": "y"}]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_writing_equal_rows_give_equal_bytes(tmp_path):
    for name in ("one.csv.gz", "two.csv.gz"):
        write(tmp_path / name, [{"a": "x", "b": "y"}])
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


def test_writing_cells_of_every_kind(tmp_path):
    row = {"a": None, "b": True, "c": 1.5, "d": math.nan, "e": [1, 2], "f": np.float32(0.5), "g": np.int64(3)}
    write(tmp_path / "out.csv", [row])
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == 'a,b,c,d,e,f,g\n,true,1.5,,"[1, 2]",0.5,3\n'
    write(tmp_path / "out.jsonl", [row, {"other": 1}])
    first, second = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(first) == {"a": None, "b": True, "c": 1.5, "d": None, "e": [1, 2], "f": 0.5, "g": 3}
    assert json.loads(second) == {"other": 1}


def test_writing_columns_are_fixed(tmp_path):
    with TableWriter(tmp_path / "out.csv", ["b", "a"]) as writer:
        writer.write_row({"a": 1})
        with pytest.raises(UsageError, match=r"there is no column c\. The columns are b, a"):
            writer.write_row({"c": 1})
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "b,a\n,1\n"


def test_writing_parquet_keeps_types_across_batches(tmp_path):
    path = tmp_path / "out.parquet"
    write(path, [{"a": "x", "b": n / 2, "c": None} for n in range(2_500)])
    rows = [row.fields for row in open_table(path)]
    assert (len(rows), rows[2_499]) == (2_500, {"a": "x", "b": 1249.5, "c": None})
    with pytest.raises(DataError, match=r"a column changes its type .*Write \.jsonl"):
        write(path, [{"a": 1}] * 1_100 + [{"a": "text"}] * 1_100)
    assert len(list(open_table(path))) == 2_500


def test_writing_refuses_what_it_cannot_write(tmp_path):
    with pytest.raises(
        UsageError, match=r"the ending '\.xlsx' is not a format that can be written\. Choose \.csv"
    ):
        TableWriter(tmp_path / "out.xlsx")
    with pytest.raises(UsageError, match="two or more columns"):
        write(tmp_path / "out.tsv", [{"a": 1}])
    with pytest.raises(UsageError, match="only inside its `with` block"):
        TableWriter(tmp_path / "out.csv").write_row({"a": 1})
    with pytest.raises(DataError, match="this is a folder, but the name of a file is expected"):
        write_text_aside(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []


def test_writing_unwritable_place_says_why(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"this cannot be written \(.*\)\. Check the folder, its permissions and the space"
    ):
        write_text_aside(tmp_path / "file" / "below.txt", "x")


def test_writing_full_disk_says_so_and_removes_the_partial(tmp_path):
    with pytest.raises(DataError, match="No space left"), open_aside(tmp_path / "out.txt"):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), open_aside(tmp_path / "out.txt"):
        Path(tmp_path / "absent").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def test_writing_text_and_json_aside(tmp_path):
    write_text_aside(tmp_path / "new" / "folder" / "note.txt", "täxt")
    assert (tmp_path / "new" / "folder" / "note.txt").read_text(encoding="utf-8") == "täxt"
    value = {
        "p": Path("x"),
        "n": np.arange(2),
        "d": Point(math.nan),
        "s": {"b", "a"},
        "i": math.inf,
        "t": "ä",
    }
    write_json_aside(tmp_path / "value.json", value)
    text = (tmp_path / "value.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"p": "x", "n": [0, 1], "d": {"x": None}, "s": ["a", "b"], "i": None, "t": "ä"}
    assert "ä" in text
    with pytest.raises(TypeError, match="object has no JSON form"):
        write_json_aside(tmp_path / "value.json", object())
    assert (tmp_path / "value.json").read_text(encoding="utf-8") == text


def test_writing_follows_a_link_and_writes_to_a_device(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text_aside(tmp_path / "link.txt", "x")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text(encoding="utf-8") == "x"
    write_text_aside("/dev/null", "x")
