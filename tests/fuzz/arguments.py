"""Hostile words of the command line: texts, labels, scales, overrides and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.arena import Case, Outcome, not_plain_json
from tests.fuzz.mutations import Draw, texts

_ROWS = b"text_a,text_b,similarity\n" + b"".join(
    b"the old man runs %d,a woman sleeps %d,%d\n" % (n, n * 3, n % 6) for n in range(14)
)
_SCALES = (
    *("similarity:0..5", "similarity:classes", "similarity:0..1e999", "similarity:5..0", "similarity:nan..1"),
    *("similarity:a|b", "similarity:0<1<2<3<4<5", "similarity:", ":0..5", "x:0..5", "similarity:0|1|2|3|4|5"),
    *(
        "similarity:-0..5",
        "similarity:0..5..6",
        "similarity:0..1e-320",
        "text_a:classes",
        "similarity:0..9e9",
    ),
)
_NUMBERS = ("0", "1", "0.2", "0.999", "-1", "nan", "inf", "1e-9", "1e309", "2", "x", "", "９", "0x1", "1_0")
_PATHS = (
    *("stage.0.epochs=2", "stage.0.epochs=-1", "stage.0.batch_size=1e9", "stage.9.epochs=1", "stage=1"),
    *("relation.similarity.hi=4", 'relation."similarity".lo=nan', "encoder.name=x", "seed=99999999999", "="),
    *(
        "stage.0.objective.0.loss=kl_grid",
        "stage.0.data=[]",
        "name='../x'",
        "stage.0.kind=joint",
        "a.b.c.d=1",
    ),
    *("stage.0.objective.0.hidden=65536", "stage.0.warmup=[", "encoder={kind='bilstm'}", "stage.-1.epochs=1"),
)
_LABELS = (
    "fast, slow",
    "fast | a fast train, slow",
    "a = fast, b = slow",
    "fast, fast",
    "fast",
    ",",
    "=",
    "a=,b=",
)


def _word(draw: Draw, known: tuple[str, ...]) -> str:
    """One of the known words, or any text; the system passes on no NUL."""
    found = draw(st.one_of(st.sampled_from(known), st.sampled_from(known), texts(0.7), st.text(max_size=10)))
    return found.replace("\0", "")


def _judge(outcome: Outcome, folder: Path) -> Iterator[str]:
    if wrong := not_plain_json(outcome.out):
        yield wrong


def _silent(outcome: Outcome, folder: Path) -> Iterator[str]:
    return iter(())


@st.composite
def argument_cases(draw: Draw) -> Case:
    """A verb with odd words; what begins with a dash is an option to every verb and stays one."""
    plain = ("the old man runs", "a woman sleeps in the park")
    model = ("--model", "m", "--device", "cpu")
    verb = draw(st.sampled_from(("score", "classify", "explain", "check", "plan", "set", "split", "limit")))
    if verb in ("score", "explain"):
        arguments = (verb, "--json", *model, "--", _word(draw, plain), _word(draw, plain))
        return Case(arguments, {}, models={"m": "pairs"}, judge=_judge)
    if verb == "classify":
        labels = f"--labels={_word(draw, _LABELS)}"
        arguments = (verb, "--json", *model, labels, "--", _word(draw, plain))
        return Case(arguments, {}, models={"m": "labels"}, judge=_judge)
    files: dict[str, bytes | None] = {"t.csv": _ROWS}
    if verb == "check":
        return Case(
            ("data", "check", "t.csv", "--json", f"--relation={_word(draw, _SCALES)}"), files, judge=_judge
        )
    train = ("train", "t.csv", "--encoder", "m", "--device", "cpu", "--dry-run")
    if verb == "plan":
        return Case(
            (*train, f"--relation={_word(draw, _SCALES)}"), files, models={"m": "pairs"}, judge=_silent
        )
    if verb == "set":
        overrides = [f"--set={_word(draw, _PATHS)}" for _ in range(draw(st.integers(1, 2)))]
        return Case((*train, *overrides), files, models={"m": "pairs"}, judge=_silent)
    number = _word(draw, _NUMBERS)
    if verb == "split":
        option = draw(st.sampled_from(("--test", "--dev", "--seed")))
        arguments = ("data", "split", "t.csv", "--output", "parts", "--json", f"{option}={number}")
        return Case(arguments, files, writes=("parts",), judge=_judge)
    arguments = ("audit", "t.csv", "--against", "u.csv", "--json", f"--limit={number}")
    return Case(arguments, {**files, "u.csv": b"text_a,text_b\nx,y\n"}, judge=_judge)
