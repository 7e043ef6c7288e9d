"""check: everything wrong with a file, in one go; and the keys under which pairs are the same."""

from __future__ import annotations

import gzip
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.data import check, load_records, open_table, pair_key, text_key
from likewise.errors import DataError, UsageError
from likewise.records import Relation

BAD = """text_a,text_b,similarity,entails
A cat sleeps.,A kitten sleeps.,4.5,yes
,A dog barks.,1,no
A bird sings.,A bird sings!,0.5,yes
It rains.,It snows.,5.2,no
It rains.,It snows.,four,perhaps
a kitten SLEEPS,A cat sleeps,1,yes
only,two
A cat sleeps.,A kitten sleeps.,4.5,yes
Sun.,Moon.,NaN,
Sun.,A very long text about the sun and the moon and all the stars.,2,no
"""
RELATIONS = ["similarity:0..5", "entails:yes|no"]


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(BAD, encoding="utf-8")
    return path


def lines_of(report):
    return {(finding.kind, finding.severity, finding.problem.source) for finding in report.findings}


def test_check_collects_all_problems_at_once(bad):
    report = check(bad, relations=RELATIONS, max_chars=40)
    assert lines_of(report) == {
        ("empty text", "problem", "bad.csv:3"),
        ("same text rated low", "warning", "bad.csv:4"),
        ("out of range", "problem", "bad.csv:5"),
        ("not a number", "problem", "bad.csv:6"),
        ("unknown label", "problem", "bad.csv:6"),
        ("malformed row", "problem", "bad.csv:8"),
        ("duplicate row", "warning", "bad.csv:9"),
        ("conflicting ratings", "warning", "bad.csv:7"),
        ("NaN", "problem", "bad.csv:10"),
        ("over-long text", "problem", "bad.csv:11"),
    }
    assert (report.problems, report.warnings, report.ok) == (7, 3, False)
    assert all(finding.problem.remedy for finding in report.findings)
    messages = {finding.kind: str(finding.problem) for finding in report.findings}
    assert messages["conflicting ratings"] == (
        "bad.csv:7: similarity is 1 here, but 4.5 for the same pair on line 2. Keep "
        "one of the two ratings, or their mean."
    )
    assert messages["duplicate row"].startswith("bad.csv:9: this row repeats line 2. Remove it")


def test_check_strict_counts_conflicts_as_problems(bad):
    report = check(bad, relations=RELATIONS, max_chars=40, strict=True)
    assert (report.problems, report.warnings) == (8, 2)
    assert {f.kind for f in report.findings if f.severity == "warning"} == {
        "duplicate row",
        "same text rated low",
    }


def test_check_summary(bad):
    report = check(bad, relations=RELATIONS)
    similarity, entails = (summary.to_dict() for summary in report.relations)
    assert report.rows == 9
    assert report.length_range == (0, 12, 62)
    assert (similarity["rated"], similarity["missing"], similarity["min"], similarity["max"]) == (
        6,
        0,
        0.5,
        4.5,
    )
    assert similarity["mean"] == pytest.approx((4.5 + 1 + 0.5 + 1 + 4.5 + 2) / 6)
    assert (entails["labels"], entails["missing"], entails["inferred"]) == ({"yes": 4, "no": 3}, 1, False)
    json.dumps(report.to_dict(), allow_nan=False)


def test_check_says_which_scale_it_chose(tmp_path):
    path = tmp_path / "fine.csv"
    path.write_text("s1,s2,score\nx,y,0.5\nz,w,4\n", encoding="utf-8")
    report = check(path)
    assert report.ok
    assert report.texts == ("s1", "s2")
    assert [(s.relation.scale, s.inferred) for s in report.relations] == [("0..4", True)]


def test_check_counts_are_exact_and_few_are_shown(tmp_path):
    path = tmp_path / "many.tsv"
    path.write_text("a\tb\tscore\n" + "x\t\t9\n" * 500, encoding="utf-8")
    report = check(path, relations=["score:0..5"], shown=3)
    assert report.counts == {"empty text": 500, "out of range": 500}
    assert len(report.findings) == 6


def test_check_missing_columns_are_findings(bad):
    report = check(bad, relations=["similarty:0..5", "entails:classes"])
    assert report.counts["missing column"] == 1
    assert "did you mean 'similarity'?" in report.findings[0].problem.message
    assert [summary.relation.name for summary in report.relations] == ["entails"]
    report = check(bad, text_a="nope")
    assert (report.counts, report.rows) == ({"missing column": 1}, 0)
    report = check(bad, relations=["nope:0..5"])
    assert report.relations == []
    assert report.rows == 9


def test_check_takes_relation_objects(bad):
    report = check(bad, relations=[Relation.graded("similarity", 0, 10), "entails:classes"])
    assert "out of range" not in report.counts
    assert [summary.relation.scale for summary in report.relations] == ["0..10", "no | perhaps | yes"]


def test_check_unreadable_files_are_findings(tmp_path):
    report = check(tmp_path / "absent.csv")
    assert report.counts == {"unreadable": 1}
    assert "no such file" in report.findings[0].problem.message
    path = tmp_path / "cut.csv.gz"
    whole = gzip.compress(b"a,b,score\n" + b"".join(b"x%d,y,9\n" % n for n in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])
    report = check(path, relations=["score:0..5"])
    assert report.counts["unreadable"] == 1
    assert report.counts["out of range"] == report.rows > 0
    assert check(path).counts["unreadable"] == 1


def test_check_malformed_first_line_does_not_stop_it(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"a": \n{"a": "x", "b": "y", "score": 1}\n[]\n', encoding="utf-8")
    report = check(path)
    assert [finding.problem.source for finding in report.findings] == ["pairs.jsonl:1", "pairs.jsonl:3"]
    assert report.rows == 1


def test_check_no_rows(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\n", encoding="utf-8")
    assert check(path).counts == {"no rows": 1}


def test_check_wrong_declarations_are_usage_errors(bad):
    with pytest.raises(UsageError, match="is not a range of numbers"):
        check(bad, relations=["similarity:low..high"])


@pytest.mark.parametrize("relations", [["similarity:0..5"], ()])
@pytest.mark.parametrize("cell", ["3", "", "nan", "9", "x", "-"])
def test_check_passes_exactly_what_read_accepts(cell, relations):
    rows = [
        {"text_a": "x", "text_b": "y", "similarity": cell},
        {"text_a": "v", "text_b": "w", "similarity": "5"},
    ]
    report = check(rows, relations=relations)
    try:
        load_records(rows, relations=[summary.relation for summary in report.relations])
    except DataError:
        assert not report.ok
    else:
        assert report.ok


def test_check_pairs_without_letters_do_not_conflict():
    rows = [{"a": "?!", "b": "…", "score": 1}, {"a": "!!", "b": "??", "score": 5}]
    assert check(rows).counts == {}
    rows = [{"a": "? !", "b": "…", "score": 1}, {"a": "…", "b": "?!", "score": 5}]
    assert check(rows).counts == {"conflicting ratings": 1}


def test_check_one_text_a_row():
    report = check(
        [{"text": "x", "label": "p"}, {"text": "x", "label": "q"}, {"text": "", "label": "q"}], pairs=False
    )
    assert report.counts == {"empty text": 1, "conflicting ratings": 1}


def test_check_conflicts_are_reported_in_line_order():
    rows = [{"a": f"t{n % 40}", "b": "u", "score": n // 40} for n in range(120)]
    report = check(open_rows(rows), relations=["score:0..5"], shown=200)
    found = [
        int(f.problem.source.rpartition(":")[2]) for f in report.findings if f.kind == "conflicting ratings"
    ]
    assert found == list(range(41, 121))


def open_rows(rows):
    assert len(list(open_table(rows))) == len(rows)
    return rows


def test_keys_are_normalised_and_unordered():
    assert text_key("It's  Fine.") == text_key("its_fine") == "itsfine"
    assert text_key("Straße ２") == "strasse2"
    assert text_key("?!") == text_key(" ? !\n") == "?!" != text_key("🙂")
    assert text_key(" \t") == ""
    assert pair_key("b.", "A") == pair_key("a", "B") == ("a", "b")


@given(st.text())
def test_keys_follow_their_definition(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(char for char in folded if char.isalnum())
    assert text_key(text) == (letters or "".join(text.split()))
    assert bool(text_key(text)) == bool(text.strip())
