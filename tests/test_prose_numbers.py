"""Numbers in prose are checked like tables: markers are read, values shown as they are written."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
TABLE = """| setting | starts | average |
| --- | --- | --- |
| Model-II | LSTM | **81.95 ± 0.19** |
| Model-II | BERT | .897 (+2.9*) |
"""


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """The module, over a result file of our own."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    module = importlib.import_module("tabling.numbers")
    monkeypatch.setattr("tabling.common.RESULTS", tmp_path)
    settings = [
        {"setting": name, "start": "", "mean": {"x": x, "y": y}, "metrics": {"x": "f1", "y": "f1"}}
        for name, x, y in (("one", 70.04, 60.0), ("two", 76.66, 59.95), ("three", 70.0, 90.0))
    ]
    document = {
        "baseline": "one",
        "settings": settings,
        "comparisons": [{"start": "", "setting": "two", "column": "x", "p_holm": 0.0763}],
        "tests": [{"start": "", "setting": "two", "column": "average", "p": 0.0004}],
        "list": [{"name": "a", "share": 0.855}],
    }
    (tmp_path / "mine.json").write_text(json.dumps(document))
    return module


def refreshed(numbers, page):
    """The page after its numbers were filled in."""
    return numbers.refreshed(page, lambda name: TABLE)


@pytest.mark.parametrize(
    ("written", "source", "shown"),
    [
        ("+6.5", "gain mine > two > x", "+6.6"),
        ("6.5", "gain mine > two > x", "6.6"),
        ("−0.5", "gain mine > two > y", "−0.0"),
        ("+0.00", "gain mine > two > y", "−0.05"),
        ("+0.0", "gain mine > three over two > x", "−6.7"),
        (".030", "p mine > two > x", ".076"),
        (".030", "p mine > two > average", "< .001"),
        ("< .001", "p mine > two > x", ".076"),
        (".701", "mean mine > one > x", ".700"),
        (".66", "mean mine > one > x + y", ".65"),
        ("0.0", "mean mine > one > all but x", "60.0"),
        ("1.0", "mean mine > two > x minus 70.6", "6.1"),
        ("82.03", "cell any > Model-II / LSTM > average", "81.95"),
        ("0.3", "cell any > Model-II / LSTM > average > 2", "0.2"),
        (".896", "cell any > BERT > average", ".897"),
        ("+3.0", "cell any > BERT > average > 2", "+2.9"),
        ("85.0", "value mine > list > name=a > share × 100", "85.5"),
    ],
)
def test_prose_number_is_shown_as_it_is_written(numbers, written, source, shown):
    page = f"It reaches {written} points. <!-- numbers: {source} -->\n"
    found = refreshed(numbers, page)
    assert found == page.replace(written, shown, 1)
    assert refreshed(numbers, found) == found


def test_prose_number_markers_account_for_every_number_of_their_block(numbers):
    page = "Of 3.5 and 4.5 one. <!-- numbers: paper; setting --> Then 5.5.\n\n- 6.5 <!-- numbers: data -->\n"
    assert [(one.text, one.source) for one in numbers.written_numbers(page)] == [
        ("3.5", "paper"),
        ("4.5", "setting"),
        ("5.5", ""),
        ("6.5", "data"),
    ]
    assert numbers.unmarked(page) == ["1: 5.5 in: " + page.splitlines()[0]]
    with pytest.raises(numbers.NumberError, match=r"line 3: 1 sources for the numbers 3\.5, 4\.5; give one"):
        numbers.written_numbers("\n\nOf 3.5 and 4.5. <!-- numbers: mean a > b > c -->")
    with pytest.raises(numbers.NumberError, match="line 1: 0 sources for the numbers none"):
        numbers.written_numbers("None. <!-- numbers: paper -->")


def test_prose_numbers_in_tables_and_code_are_left_alone(numbers):
    page = (
        "<!-- table x -->\n| 1.5 |\n<!-- end -->\n```\n2.5\n```\n`3.5` [a](b4.5)\np < .05, Python 3.11+\n"
        "| 5.5 <!-- numbers: paper --> | 6.5 |\n"
    )
    assert [one.text for one in numbers.written_numbers(page)] == ["5.5", "6.5"]
    assert numbers.unmarked(page) == ["9: 6.5 in: " + page.splitlines()[8]]


@pytest.mark.parametrize(
    "source",
    [
        "gain mine > nobody > x",
        "mean mine > one > z",
        "p mine > three > x",
        "gain none > a > b",
        "sum mine > a",
    ],
)
def test_prose_number_without_its_source_is_an_error_with_the_line(numbers, source):
    with pytest.raises(numbers.NumberError, match=r"line 2: 1\.5 has no source"):
        refreshed(numbers, f"\n1.5 <!-- numbers: {source} -->")
