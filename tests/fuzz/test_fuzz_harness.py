"""The fuzzers themselves: each fault that they look for is one that they see."""

from __future__ import annotations

import hashlib
import os

import pytest

from tests.fuzz.arena import MOST_GROWTH, MOST_SECONDS, Arena, Case, Outcome, misbehaviour, not_plain_json
from tests.fuzz.folders import join_safetensors, split_safetensors, why_weights_are_wrong
from tests.fuzz.tables import read_independently, why_it_cannot_be_answered
from tests.fuzz.test_fuzz_regressions import FROZEN

ROWS = b"text_a,text_b\n" + b"".join(b"the man %d,a woman %d\n" % (n, n) for n in range(12))
CHECK = ("data", "check", "t.csv", "--json")
WEIGHTS = (FROZEN / "pairs" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome(died="the process ended by -9"), "ended by -9"),
        (Outcome(code=1, err="Traceback (most recent call last):\n"), "a traceback"),
        (Outcome(code=70, err="error: this is a bug in likewise"), "exit code 70"),
        (Outcome(code=1), "without a word"),
        (Outcome(code=1, err="error: there is not enough memory"), "all memory"),
        (Outcome(growth=MOST_GROWTH + 1), "memory grew"),
        (Outcome(seconds=MOST_SECONDS + 1), "it took"),
        (Outcome(code=2, err="x" * 50_000), "a message of 50,000 characters"),
    ],
)
def test_fuzz_harness_sees_misbehaviour(outcome, told):
    [found] = misbehaviour(outcome, Case((), {}))
    assert told in found


def test_fuzz_harness_sees_a_success_that_cannot_be_one():
    assert [*misbehaviour(Outcome(), Case((), {}, must_fail="it is cut short"))] == [
        "exit code 0 although it is cut short"
    ]
    assert not [*misbehaviour(Outcome(code=1, err="error"), Case((), {}, must_fail="it is cut short"))]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="commands are run as Linux has it")
def test_fuzz_harness_sees_files_that_are_left_and_judges_answers(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "pairs").symlink_to(FROZEN / "pairs")
    (tmp_path / "examples").mkdir()
    arena = Arena(tmp_path / "examples", tmp_path / "models")
    try:
        outcome, found = arena.try_case(Case(CHECK, {"t.csv": ROWS}, judge=lambda outcome, folder: iter("!")))
        assert (outcome.code, found) == (0, ["!"])
        split = ("data", "split", "t.csv", "--output", "parts")
        outcome, found = arena.try_case(Case(split, {"t.csv": ROWS}))
        assert sorted(found) == [
            "left behind: parts",
            "left behind: parts/test.csv",
            "left behind: parts/train.csv",
        ]
        assert arena.try_case(Case(split, {"t.csv": ROWS}, writes=("parts",)))[1] == []
    finally:
        arena.close()


@pytest.mark.parametrize(
    ("content", "ending", "told"),
    [
        (b"text_a,text_b\nx,\xff\n", ".csv", "not UTF-8"),
        (b'text_a,text_b\n"x,y\n', ".csv", "not CSV"),
        (b"text_a,text_b\nx\n", ".csv", "differ in length"),
        (b"text_a\ttext_b\nx\t \n", ".tsv", "text_b is ' ', no text"),
        (b'{"text_a": "x", "text_b": 1}\n', ".jsonl", "no text"),
        (b'{"text_a": "x"\n', ".jsonl", "not JSON"),
        (b"PAR1", ".parquet", "pyarrow does not read it"),
    ],
)
def test_fuzz_harness_knows_tables_that_must_be_refused(content, ending, told):
    assert told in why_it_cannot_be_answered(read_independently(content, ending), ("text_a", "text_b"))


def test_fuzz_harness_knows_weights_that_must_be_refused():
    header, data = split_safetensors(WEIGHTS)
    name = "embeddings.LayerNorm.bias"
    assert why_weights_are_wrong(WEIGHTS, join_safetensors(header, data), None) == ""
    without = {key: value for key, value in header.items() if key != name}
    nan = b"\x00\x00\xc0\x7f"
    begin, _ = header[name]["data_offsets"]
    cases = {
        "header": WEIGHTS[:100],
        "cover": join_safetensors(header, data + b"x"),
        "not finite": join_safetensors(header, data[:begin] + nan + data[begin + 4 :]),
        "shape": join_safetensors({**header, name: {**header[name], "shape": [1, 32]}}, data),
        "missing": join_safetensors({**without, "x": header[name]}, data),
    }
    for told, made in cases.items():
        assert told in why_weights_are_wrong(WEIGHTS, made, None)
    recorded = hashlib.sha256(WEIGHTS).hexdigest()
    assert why_weights_are_wrong(WEIGHTS, WEIGHTS, recorded) == ""
    assert "hash" in why_weights_are_wrong(WEIGHTS, WEIGHTS + b"x", recorded)


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": [1, Infinity]}', "1e999"])
def test_fuzz_harness_takes_only_json_of_finite_numbers(text):
    assert not_plain_json(text)
    assert not not_plain_json('{"a": [1, 2.5, null, "NaN"]}')
