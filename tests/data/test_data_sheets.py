"""Tables as spreadsheets write them: delimiters, decimal commas, UTF-16, repeated headers, .xlsx."""

from __future__ import annotations

import io
import logging
import zipfile
from contextlib import suppress

import pytest

from likewise.data import check, load_records, open_table
from likewise.data.dialects import delimited_by, sniff_delimiter
from likewise.data.splits import split_file
from likewise.errors import DataError, FormatError, MissingExtraError, UsageError

ROWS = [["text_a", "text_b", "score"], ["ein Hund, klein", "eine Katze", "3,5"], ["x", 'sagt "ja"', "4"]]


def joined(mark: str, rows: list[list[str]] = ROWS) -> str:
    quoted = [[f'"{c.replace(chr(34), chr(34) * 2)}"' if set(c) & set('",;') else c for c in r] for r in rows]
    return "".join(mark.join(row) + "\r\n" for row in quoted)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_sheets_are_read_with_any_delimiter_and_encoding(tmp_path, mark, encoding):
    path = tmp_path / "pairs.csv"
    start = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((start + joined(mark)).encode(encoding))
    table = open_table(path)
    assert table.delimiter == mark
    assert [list(table.columns), *[list(row.fields.values()) for row in table]] == ROWS
    assert [row.source for row in table] == ["pairs.csv:2", "pairs.csv:3"]
    records = load_records(path, relations=["score:0..5"])
    assert [record.values["score"] for record in records] == [3.5, 4]
    assert check(path, relations=["score:0..5"]).ok


def test_sheets_tell_a_guessed_delimiter_once(tmp_path, caplog):
    (tmp_path / "p.csv").write_text(joined(";"), encoding="utf8")
    for _ in range(2):
        list(open_table(tmp_path / "p.csv"))
    assert [record.message for record in caplog.records] == [
        "p.csv: the fields are separated by semicolons (to choose: delimiter=…)"
    ]
    caplog.clear()
    (tmp_path / "q.csv").write_text(joined(","), encoding="utf8")
    list(open_table(tmp_path / "q.csv"))
    assert not caplog.records


def test_sheets_read_unicode_text_of_excel_with_its_quotes(tmp_path):
    (tmp_path / "p.txt").write_bytes(joined("\t").encode("utf-16"))
    assert [list(row.fields.values()) for row in open_table(tmp_path / "p.txt")] == ROWS[1:]


def test_sheets_a_tsv_keeps_its_quotes_and_one_without_tabs_is_a_csv(tmp_path):
    (tmp_path / "p.tsv").write_text('a\tb\n"x\ty"\n', encoding="utf8")
    [row] = open_table(tmp_path / "p.tsv")
    assert row.fields == {"a": '"x', "b": 'y"'}
    (tmp_path / "q.tsv").write_text('a,b\n"x,y",z\n', encoding="utf8")
    [row] = open_table(tmp_path / "q.tsv")
    assert row.fields == {"a": "x,y", "b": "z"}


def test_sheets_heed_the_line_sep_and_a_named_delimiter(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("sep=|\na|b;c\nx|y;z\n", encoding="utf8")
    table = open_table(path)
    assert table.columns == ("a", "b;c")
    assert [row.source for row in table] == ["p.csv:3"]
    path.write_text("a|b;c\nx|y;z\n", encoding="utf8")
    assert open_table(path, delimiter=";").columns == ("a|b", "c")
    with delimited_by([tmp_path], "|"):  # a folder stands for its files
        assert open_table(path).columns == ("a", "b;c")
    assert open_table(path, delimiter="tab").columns == ("a|b;c",)
    with pytest.raises(UsageError, match=r"Choose ',' or ';' or '\|' or tab"):
        open_table(path, delimiter="x")
    with pytest.raises(UsageError, match="from memory"):
        open_table([("a", "b")], delimiter=";")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a,b;c\n", "1,2;3\n"], ","),
        (["a;b, c;d\n", "1;2;3\n", "1,5;2;3\n"], ";"),
        (["text\n", "one; two\n"], ","),
        (['"a;b",c\n', "1,2\n"], ","),
        (["a,b\n", "1,2\n", "1,2,3\n"], ","),
        ([], ","),
    ],
)
def test_sniff_delimiter_prefers_the_own_one_where_it_fits(lines, expected):
    assert sniff_delimiter(lines, ",") == expected


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3,5", "4", "", "-0,25"], [3.5, 4, None, -0.25]),
        (["0,125", "1,234"], [0.125, 1.234]),
        (["3,5", "2.5"], [3.5, 2.5]),
    ],
)
def test_decimal_commas_are_read_and_kept_as_they_were(tmp_path, cells, values):
    path = tmp_path / "p.csv"
    path.write_text("text_a;text_b;score\n" + "".join(f"x;y;{cell}\n" for cell in cells), encoding="utf8")
    assert [r.values["score"] for r in load_records(path, relations=["score:-1..5"])] == values
    assert [row.fields["score"] for row in open_table(path)] == cells


@pytest.mark.parametrize(
    ("cells", "line"),
    [(("3,5", "1.200"), 3), (("1.200", "3,5"), 3), (("4", "1,25", "2.5", "-1.500"), 5)],
)
def test_decimal_points_that_may_separate_thousands_are_refused_beside_commas(tmp_path, cells, line):
    path = tmp_path / "mixed.csv"
    path.write_text("text_a;text_b;score\n" + "".join(f"x;y;{c}\n" for c in cells), encoding="utf8")
    told = (
        rf"mixed\.csv:{line}: score is .*: (1\.200 can mean 1\.2 or 1200|-1\.500 can mean -1\.5 or -1500)\."
    )
    with pytest.raises(DataError, match=told):
        load_records(path, relations=["score:-5000..5000"])
    assert not check(path, relations=["score:-5000..5000"]).ok


@pytest.mark.parametrize(
    ("mark", "cells", "told"),
    [
        (";", ("1.200", "2.500", "4"), True),
        (";", ("4", "2.500"), True),
        (";", ("0.5", "1.200"), False),
        (";", ("0.200", "2.5"), False),
        (",", ("1.200", "2.500"), False),
    ],
)
def test_decimal_points_between_semicolons_are_told(tmp_path, caplog, mark, cells, told):
    path = tmp_path / f"points{ord(mark)}-{'_'.join(cells)}.csv"
    rows = "".join(f"x{mark}y{mark}{cell}\n" for cell in cells)
    path.write_text(f"text_a{mark}text_b{mark}score\n{rows}", encoding="utf8")
    values = [record.values["score"] for record in load_records(path, relations=["score:0..5"])]
    assert values == [float(cell) for cell in cells]
    assert ("If it separates thousands, write the numbers without it" in caplog.text) is told


def test_rows_that_hold_nothing_are_no_rows_but_keep_their_place_where_they_are_answered(tmp_path, caplog):
    path = tmp_path / "trailing.csv"
    rows = [f"a{n};b{n};{n % 5}" for n in range(10)]
    lines = ["text_a;text_b;score", *rows[:5], ";;", *rows[5:], ";;", " ; ;", ";", ";;;;"]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    records = load_records(path, relations=["score:0..5"])
    assert [record.source for record in records][4:6] == ["trailing.csv:6", "trailing.csv:8"]
    assert len(records) == 10
    report = check(path, relations=["score:0..5"])
    assert (report.ok, report.rows) == (True, 10)
    parts = split_file(path, tmp_path / "parts")
    assert sum(part.rows for part in parts.values()) == 10
    written = [(tmp_path / "parts" / f"{name}.csv").read_text().splitlines()[1:] for name in parts]
    assert sorted(line for part in written for line in part) == rows
    assert caplog.text.count("trailing.csv: 5 rows without any text or value are left out") == 1
    assert len(list(open_table(path))) == 15
    path.write_text("text_a;text_b;score\nx;;2\n", encoding="utf8")
    with pytest.raises(DataError, match="text_b is empty"):
        load_records(path, relations=["score:0..5"])


@pytest.mark.parametrize(("mark", "encoding"), [(";", "utf-8-sig"), (";", "utf-8"), (",", "utf-8-sig")])
def test_split_writes_a_byte_order_mark_where_excel_wrote_one(tmp_path, mark, encoding):
    rows = [["text_a", "text_b"], *([f"ä{n}", f"b{n}"] for n in range(20))]
    (tmp_path / "p.csv").write_text(joined(mark, rows), encoding=encoding)
    split_file(tmp_path / "p.csv", tmp_path / "parts")
    for name in ("train", "test"):
        start = (tmp_path / "parts" / f"{name}.csv").read_bytes()[:3]
        assert (start == b"\xef\xbb\xbf") is ((mark, encoding) == (";", "utf-8-sig"))


def test_decimal_commas_that_may_separate_thousands_are_told_or_refused(tmp_path, caplog):
    path = tmp_path / "unsure.csv"
    path.write_text("text_a;text_b;score\nx;y;1,234\n", encoding="utf8")
    assert load_records(path, relations=["score:0..5"])[0].values["score"] == 1.234
    assert "(1,234 is 1.234). If it separates thousands, write the numbers without it" in caplog.text
    for cells in (("1,234", "2.5"), ("2.5", "1,234")):
        path.write_text("text_a;text_b;score\n" + "".join(f"x;y;{c}\n" for c in cells), encoding="utf8")
        with pytest.raises(DataError, match=r"unsure\.csv:3: score is .* may separate thousands"):
            load_records(path, relations=["score:0..5"])


@pytest.mark.parametrize("cell", ["1,2,3", "1.234,5", ",5", "5,", "1 234,5"])
def test_decimal_commas_are_no_lists_and_no_other_forms(tmp_path, cell):
    path = tmp_path / "p.csv"
    path.write_text(f"text_a;text_b;score\nx;y;{cell}\n", encoding="utf8")
    with pytest.raises(DataError, match=r"p\.csv:2: score is .* which is not a number"):
        load_records(path, relations=["score:0..5"])


def test_repeated_columns_are_renamed_and_refused_only_if_asked_for(tmp_path, caplog):
    path = tmp_path / "twice.csv"
    path.write_text("id,text_a,text_b,score,id,id_2\n1,x,y,2,3,4\n", encoding="utf8")
    table = open_table(path)
    assert table.columns == ("id", "text_a", "text_b", "score", "id_3", "id_2")
    assert "2 columns are called 'id'. The later ones are read as 'id_3'" in caplog.text
    assert load_records(path, relations=["score:0..5", "id_3:0..5"])[0].values == {"score": 2, "id_3": 3}
    for options in ({"relations": ["id:0..5"]}, {"relations": (), "text_a": "id", "text_b": "text_b"}):
        with pytest.raises(DataError, match=r"twice\.csv:1: two columns have the same name: 'id'"):
            load_records(path, **options)
    report = check(path, relations=["id:0..5"])
    assert not report.ok
    path.write_text("text_a,text_b,text_a\nx,y,z\n", encoding="utf8")
    with pytest.raises(DataError, match="two columns have the same name: 'text_a'"):
        load_records(path, relations=())


def test_split_keeps_the_delimiter(tmp_path):
    rows = [["text_a", "text_b", "score"], *([f"a{n}", f"b{n}", "1,5"] for n in range(20))]
    (tmp_path / "p.csv").write_text(joined(";", rows), encoding="utf8")
    split_file(tmp_path / "p.csv", tmp_path / "parts")
    assert (tmp_path / "parts" / "test.csv").read_text().startswith("text_a;text_b;score\n")


# Spreadsheets.


@pytest.fixture
def book(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    import datetime

    made = openpyxl.Workbook()
    sheet = made.active
    sheet.append(["text_a", "text_b", "score", "day"])
    sheet.append(["x", "y", 3.5, datetime.date(2024, 2, 1)])
    sheet.append([None])
    sheet.append([2024, "=1+1", "1,5", datetime.datetime(2024, 2, 1, 3, 4)])
    made.create_sheet("Second one").append(["text", "n"])
    made["Second one"].append(["z", True])
    path = tmp_path / "book.xlsx"
    made.save(path)
    return path


def test_xlsx_is_read_as_a_csv_file_would_be(book):
    table = open_table(book)
    assert [(tuple(row.fields.values()), row.source) for row in table] == [
        (("x", "y", "3.5", "2024-02-01"), "book.xlsx:2"),
        # A formula that no spreadsheet has computed has no value.
        (("2024", "", "1,5", "2024-02-01T03:04:00"), "book.xlsx:4"),
    ]
    [row] = open_table(f"{book}#Second one")
    assert row.fields == {"text": "z", "n": "true"}
    assert row.source == "book.xlsx#Second one:2"
    with pytest.raises(FormatError, match=r"no sheet 'Third'. The sheets are Sheet, Second one"):
        open_table(f"{book}#Third")
    assert list(table) == list(open_table(book))


def test_xlsx_without_its_extra_says_what_to_install(book, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"openpyxl is not installed.*likewise\[excel\]"):
        open_table(book)
    monkeypatch.undo()
    # Without it openpyxl would read a stranger's XML with a parser that expands entities.
    monkeypatch.setitem(sys.modules, "defusedxml", None)
    with pytest.raises(MissingExtraError, match=r"defusedxml is not installed"):
        open_table(book)


def replaced(book, part: str, content: bytes) -> None:
    """The same file with another part."""
    whole = io.BytesIO()
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.infolist():
            new.writestr(one.filename, content if one.filename == part else old.read(one))
    book.write_bytes(whole.getvalue())


_SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>%s'
    b"</sheetData></worksheet>"
)
_ENTITIES = b'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "%s">]><w>&a;</w>' % (b"x" * 100)


@pytest.mark.parametrize(
    ("part", "content", "told"),
    [
        ("xl/worksheets/sheet1.xml", _ENTITIES, "declares entities"),
        ("xl/workbook.xml", _ENTITIES, "declares entities"),
        ("xl/worksheets/sheet1.xml", _SHEET % (b"<row>" + b"<c/>" * 100_000 + b"</row>"), "far beyond"),
        ("xl/worksheets/sheet1.xml", _SHEET % (b"<a>" * 100 + b"</a>" * 100), "far beyond"),
        (
            "xl/worksheets/sheet1.xml",
            _SHEET % b'<row r="1000000000000"><c r="A1"/></row>',
            "more than 1,048,576",
        ),
        ("xl/worksheets/sheet1.xml", b"<worksheet", "not a whole .xlsx file"),
        ("xl/styles.xml", b" " * (2**24 + 1), "unpacks to 16 MB"),
        (
            "xl/worksheets/sheet1.xml",
            _SHEET % (b"<row><c t='inlineStr'><is><t>" + b"x" * (11 * 2**20) + b"</t></is></c></row>"),
            "more than 10 MB",
        ),
        ("[Content_Types].xml", b"<Types/>", "not a whole .xlsx file"),
    ],
)
def test_xlsx_made_to_exhaust_memory_is_refused(book, part, content, told):
    replaced(book, part, content)
    with pytest.raises(FormatError, match=told) as caught:
        list(open_table(book))
    assert str(caught.value).startswith("book.xlsx: ")


_TEXTS_START = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
_DECLARED = (
    b'<Override PartName="/xl/s.dat" ContentType="application/vnd.openxmlformats-officedocument.'
    b'spreadsheetml.sharedStrings+xml"/></Types>'
)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (b"<si><t>" + b"a" * (11 * 2**20) + b"</t></si>", "more than 10 MB"),
        (b"<si><t>" + b" " * (257 * 2**20), "at most 256 MB are read"),
        (b"<!--" + b"a" * (11 * 2**20), "a tag or a comment of more than 10 MB"),
        (b"<si/>" * 1500, "filled far beyond"),
    ],
)
def test_xlsx_parts_are_measured_whatever_they_are_called(book, monkeypatch, texts, told):
    from likewise.data import sheets

    monkeypatch.setattr(sheets, "_TEXT_ELEMENTS", 1000)
    with zipfile.ZipFile(book) as old:
        types = old.read("[Content_Types].xml").replace(b"</Types>", _DECLARED)
    replaced(book, "[Content_Types].xml", types)
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("xl/s.dat", _TEXTS_START + texts)
    with pytest.raises(FormatError, match=told):
        open_table(book)


def test_xlsx_all_parts_together_are_bounded_and_a_large_one_that_is_no_text_too(book, monkeypatch):
    from likewise.data import sheets

    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("xl/media/image1.png", b"\x89PNG" + b"\0" * 2**20)
    assert len(list(open_table(book))) == 2
    monkeypatch.setattr(sheets, "_TEXT_BYTES", 2**19)
    with pytest.raises(FormatError, match=r"image1\.png' unpacks to 1 MB"):
        open_table(book)
    monkeypatch.setattr(sheets, "_ALL_BYTES", 2**19)
    with pytest.raises(FormatError, match="it unpacks to 1 MB"):
        open_table(book)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (b'<row r="1"><c r="A1"/></row><row r="3"/><row r="2"/>', "has row 2 after row 3"),
        (b'<row r="1"><c r="B1"/><c r="A1"/></row>', "has the cell 'A1' after a later one"),
        (b'<row><c r="XFD1"/></row>' * 1100, "filled with empty ones"),
        (b'<row><c r="ZZZZZZ1"/></row>', "filled with empty ones"),
    ],
)
def test_xlsx_rows_that_would_be_lost_or_filled_are_refused(book, rows, told):
    replaced(book, "xl/worksheets/sheet1.xml", _SHEET % rows)
    with pytest.raises(FormatError, match=told):
        list(open_table(book))


@pytest.mark.parametrize(
    ("active", "hidden", "read"),
    [(0, (), "one"), (1, (), "two"), (0, (0,), "two"), (1, (1,), "one"), (2, (0, 1, 2), "one")],
)
def test_xlsx_is_read_at_the_sheet_that_was_open_and_says_so(tmp_path, caplog, active, hidden, read):
    made = pytest.importorskip("openpyxl").Workbook()
    made.remove(made.active)
    for title in ("one", "two", "three"):
        sheet = made.create_sheet(title)
        sheet.append(["text"])
        sheet.append([title])
    path = tmp_path / f"sheets{active}{len(hidden)}.xlsx"
    made.save(path)
    with zipfile.ZipFile(path) as old:
        book = old.read("xl/workbook.xml").replace(b'activeTab="0"', b'activeTab="%d"' % active)
    for place in hidden:  # openpyxl itself saves no workbook whose open sheet is hidden
        number = b'sheetId="%d" state=' % (place + 1)
        book = book.replace(number + b'"visible"', number + b'"hidden"')
    assert book.count(b'"hidden"') == len(hidden)
    replaced(path, "xl/workbook.xml", book)
    other = "two" if read == "one" else "one"
    for _ in range(2):
        assert [row.fields for row in open_table(path)] == [{"text": read}]
    assert [record.message for record in caplog.records] == [
        f"{path.name}: the sheet '{read}' is read, one of 3 (to choose: '{path.name}#{other}')"
    ]
    caplog.clear()
    assert [row.fields for row in open_table(f"{path}#one")] == [{"text": "one"}]
    assert not caplog.records


def test_xlsx_that_lies_about_its_size_is_read_by_its_rows(book):
    cells = b'<row r="1"><c t="str"><v>text</v></c></row><row r="2"><c t="str"><v>x</v></c></row>'
    replaced(
        book,
        "xl/worksheets/sheet1.xml",
        (_SHEET % cells).replace(b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>'),
    )
    assert [row.fields for row in open_table(book)] == [{"text": "x"}]


def test_xlsx_damaged_anywhere_is_an_error_and_no_traceback(book):
    logging.getLogger("openpyxl").setLevel(logging.ERROR)
    whole = book.read_bytes()
    for place in range(0, len(whole), 97):
        book.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(FormatError):
            list(open_table(book))
