"""Files that cannot be read: each error names the file, the line, what was found and what to do."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.data import check, open_table, read
from likewise.data.lines import MAX_LINE
from likewise.errors import DataError, FormatError, UsageError

UTF16 = "text_a,text_b\nx,y\n".encode("utf-16")[:-1]

# name of the file, its bytes, what the message must say
CASES = {
    "empty csv": (
        "p.csv",
        b"",
        r"p\.csv: this is empty, but a header line and rows are expected. Write a header",
    ),
    "empty tsv": ("p.tsv", b"\n\n", r"p\.tsv: this is empty, but a header"),
    "empty jsonl": (
        "p.jsonl",
        b"",
        r"p\.jsonl: this is empty, but one JSON object per line is expected. Write one",
    ),
    "latin-1": (
        "p.csv",
        b"text_a,text_b\nx,y\ncaf\xe9,z\n",
        r"p\.csv:3: byte 0xe9 at offset 21 is not UTF-8\. Save it as UTF-8",
    ),
    "damaged utf-16": (
        "p.csv",
        UTF16,
        r"p\.csv:2: this is UTF-16 text that is cut short or damaged here.*Save it as UTF-8",
    ),
    "gzip without its ending": (
        "p.csv",
        gzip.compress(b"text_a,text_b\nx,y\n"),
        r"p\.csv:1: this is gzip data, but UTF-8 text is expected. Add \.gz to its name",
    ),
    "spreadsheet": (
        "p.csv",
        b"PK\x03\x04rest",
        r"p\.csv:1: this is a zip archive or a spreadsheet.*save the sheet as",
    ),
    "no gzip": (
        "p.csv.gz",
        b"text_a,text_b\n",
        r"p\.csv\.gz:1: the file is cut short or damaged.*Not a gzipped",
    ),
    "no xz": (
        "p.csv.xz",
        b"text_a,text_b\n",
        r"p\.csv\.xz:1: the file is cut short or damaged.*download it again",
    ),
    "no zstandard": (
        "p.csv.zst",
        b"text_a,text_b\n",
        r"p\.csv\.zst:1: the file is cut short or damaged.*again",
    ),
    "no bzip2": (
        "p.csv.bz2",
        b"text_a,text_b\n",
        r"p\.csv\.bz2:1: the file is cut short or damaged.*download it again",
    ),
    "bzip2 inside": ("p.csv", bz2.compress(b"a,b\n", 1), r"p\.csv:1: this is bzip2 data.*Add \.bz2"),
    "utf-32": (
        "p.csv",
        "text_a,text_b\nx,y\n".encode("utf-32"),
        r"p\.csv:1: this is UTF-32 text, but UTF-8 text is expected. Save it as UTF-8",
    ),
    "tsv without tabs": (
        "p.tsv",
        b"text\nhello\n",
        r"p\.tsv:1: the header has no tab: there is one column.*save the file as \.csv",
    ),
    "too few fields, semicolons": (
        "p.csv",
        b"text_a;text_b\nx;y\nx\nx;y\nx;y\n",
        r"p\.csv:3: there is 1 field, but 2 are expected .* a field that holds a semicolon in double quotes",
    ),
    "too few fields, csv": (
        "p.csv",
        b'text_a,text_b\n"x\n",y\nx\n',
        (
            r"p\.csv:4: there is 1 field, but 2 are expected \(text_a, text_b\). "
            r'Put a field .*in double quotes \("\)'
        ),
    ),
    "too many fields, csv": (
        "p.csv",
        b"text_a,text_b\nx,y\nx,y,z\n",
        r"p\.csv:3: there are 3 fields, but 2 are expected",
    ),
    "too many fields, tsv": (
        "p.tsv",
        b"text_a\ttext_b\nx\ty\tz\n",
        r"p\.tsv:2: there are 3 fields, but 2 are expected \(text_a, text_b\). Replace each tab",
    ),
    "NUL": (
        "p.tsv",
        b"text_a\ttext_b\nx\ty\n\0\tz\n",
        r"p\.tsv:3: there is a NUL byte at offset 18, but text is expected. The file is damaged or not UTF-8",
    ),
    "malformed json": (
        "p.jsonl",
        b'{"text_a": "x", "text_b": "y"}\n{"text_a": \n',
        r"p\.jsonl:2: this line is not a JSON object \(.*\). Write one complete object per line",
    ),
    "json array": (
        "p.jsonl",
        b'[{"text_a": "x"}]\n',
        r"p\.jsonl:1: this is a JSON list, but an object is expected. Write one",
    ),
    "json key twice": ("p.jsonl", b'{"a": "x", "a": "y"}\n', r"p\.jsonl:1: .*the same key occurs twice"),
    "deep json": ("p.jsonl", b"[" * 100_000 + b"\n", r"p\.jsonl:1: this line is not a JSON object"),
    "open quote": (
        "p.csv",
        b'text_a,text_b\n"x,y\nz,w\n',
        r"p\.csv:2: this row is not valid CSV.*Close every quoted",
    ),
    "text after a quote": (
        "p.csv",
        b'text_a,text_b\n"x"x,y\n',
        r"p\.csv:2: .*expected after.*double a quote",
    ),
    "lone carriage returns": (
        "p.csv",
        b"text_a,text_b\rx,y\r",
        r"p\.csv:1: this row is not valid CSV.*line feeds",
    ),
    "no parquet": (
        "p.parquet",
        b"text_a,text_b\n",
        r"p\.parquet: this is not a whole parquet file.*write it again",
    ),
    "unknown ending": (
        "p.ods",
        b"x",
        r"p\.ods: the ending '\.ods' is not known\. Rename or convert it to \.csv, \.tsv",
    ),
    "no spreadsheet": (
        "p.xlsx",
        b"text_a,text_b\n",
        r"p\.xlsx: this is not a whole \.xlsx file .*save the sheet as CSV",
    ),
    "no ending": (
        "pairs",
        b"x",
        r"pairs: the file name has no ending that tells its format\. Rename or convert it to \.csv",
    ),
    "only a compression": ("pairs.gz", b"x", r"pairs\.gz: the file name has no ending"),
}


@pytest.mark.parametrize("case", CASES)
def test_formats_error_names_file_line_and_remedy(tmp_path, case):
    name, content, message = CASES[case]
    if name.endswith(".zst"):
        pytest.importorskip("zstandard")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        list(open_table(path))
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].remedy


@pytest.mark.parametrize("ending", ["gz", "xz", "zst", "bz2"])
def test_formats_truncated_compression_is_noticed(tmp_path, ending):
    content = b"text_a,text_b\n" + b"".join(b"%d,row %d\n" % (n, n * n) for n in range(5_000))
    if ending == "zst":
        packed = pytest.importorskip("zstandard").ZstdCompressor().compress(content)
    else:
        packed = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}[ending](content)
    path = tmp_path / f"pairs.csv.{ending}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(
        FormatError, match=rf"pairs\.csv\.{ending}:\d+: the file is cut short or damaged here.*again"
    ):
        list(open_table(path))


def test_formats_truncated_parquet_is_noticed(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "pairs.parquet"
    parquet.write_table(pyarrow.table({"a": ["x"] * 1000, "b": ["y"] * 1000}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"pairs\.parquet: this is not a whole parquet file"):
        open_table(path)


def test_formats_absent_file_suggests_a_near_name(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"pair\.csv: there is no such file\. Did you mean pairs\.csv\?"):
        open_table(tmp_path / "pair.csv")
    with pytest.raises(FormatError, match=r"zzz\.jsonl: there is no such file\. Check the path"):
        open_table(tmp_path / "none" / "zzz.jsonl")


def test_formats_folder_is_refused(tmp_path):
    with pytest.raises(
        FormatError, match=r"this is a folder without data files, but a file is expected\. Name a file"
    ):
        open_table(tmp_path)


def test_formats_unreadable_file_says_why(tmp_path, monkeypatch):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\n", encoding="utf-8")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        FormatError, match=r"this cannot be opened \(Permission denied\)\. Check the path and its perm"
    ):
        open_table(path)


def test_formats_one_file_has_no_splits(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\nx,y\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has no split 'dev'"):
        open_table(path, split="dev")


def test_formats_header_only_is_refused_by_read(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("text_a,text_b\n", encoding="utf-8")
    assert list(open_table(path)) == []
    with pytest.raises(
        DataError, match=r"pairs\.csv: this has columns \(text_a, text_b\) but no rows\. Add rows"
    ):
        list(read(path))


def test_formats_long_field_is_read_and_longer_line_refused(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(f"a,b\n{'x' * 1_000_000},y\n", encoding="utf-8")
    assert len(str(next(iter(open_table(path))).fields["a"])) == 1_000_000
    assert csv.field_size_limit() >= MAX_LINE
    path.write_text(f"a,b\n{'x' * (MAX_LINE + 1)},y\n", encoding="utf-8")
    with pytest.raises(
        FormatError,
        match=r"pairs\.csv:2: this line has more than 10 MB, but one row per line is expected\. Check",
    ):
        list(open_table(path))


def test_formats_unclosed_quote_stops_at_the_field_limit(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('a,b\n"x,y\n' + "some words,more words\n" * 520_000, encoding="utf-8")
    with pytest.raises(
        FormatError, match=r"pairs\.csv:2: this row is not valid CSV \(field larger than field limit"
    ):
        list(open_table(path))


def test_formats_scan_steps_over_what_it_can(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tb\nx\ty\nx\n\xff\ty\n\0\tz\nlast\trow\n")
    problems = []
    rows = list(open_table(path).scan(problems.append))
    assert [problem.source for problem in problems] == ["pairs.tsv:3", "pairs.tsv:4", "pairs.tsv:5"]
    assert [row.fields["a"] for row in rows] == ["x", "\ufffd", " ", "last"]


def test_formats_field_limit_of_the_process_is_never_lowered(tmp_path):
    before = csv.field_size_limit(MAX_LINE * 2)
    try:
        path = tmp_path / "pairs.csv"
        path.write_text("a,b\nx,y\n", encoding="utf-8")
        list(open_table(path))
        assert csv.field_size_limit() == MAX_LINE * 2
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "csv.xz", "csv.zst", "csv.bz2", "parquet.gz"]
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.text('ab,\t\n\r"{}[]:01', max_size=80).map(str.encode))
def test_formats_any_bytes_give_rows_or_a_data_error(tmp_path, ending, content):
    path = tmp_path / f"pairs.{ending}"
    path.write_bytes(content)
    with suppress(DataError):
        list(open_table(path))
    check(path, text_a="a", text_b="b")
