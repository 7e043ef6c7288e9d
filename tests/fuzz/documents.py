"""Hostile TOML: recipes, suites and experiments, and the verbs that read them."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.frozen.worlds import recipes
from tests.fuzz.arena import Case, Outcome, not_plain_json
from tests.fuzz.mutations import VALUES, Draw, damage_bytes, damage_document

# Words that a recipe, a suite or an experiment knows somewhere: in another place they are wrong.
_WORDS = (
    *("pairs", "labels", "joint", "inject", "parallel", "refine", "graded", "ordered", "classes", "cosine"),
    *("scalar", "distribution", "described", "contrast", "mse", "pearson", "kl_grid", "cross_entropy"),
    *("single", "multi-task", "exact", "sgd", "bilstm", "lstm", "average", "vectors", "relation", "subset"),
    *("head", "matcher", "similarity", "mood", "sts7", "stsb/test", "crosslingual", "spearman", "accuracy"),
    *("pairs.csv", "moods.csv", "links.jsonl", "en-de.tsv", "encoder", "nothing.csv", ".", "recipe.toml"),
    *("similarity:0..5", "similarity:5..0", "x:classes", "mood:fast|slow", "a:low<high", ":", "x:0..1e9"),
)
_KEYS = (
    *("kind", "name", "lo", "hi", "step", "labels", "positions", "metric", "texts", "corpus", "source"),
    *("weight", "noise", "limit", "columns", "rescale", "round", "text_a", "text_b", "hidden", "word2vec"),
    *("epochs", "batch_size", "max_steps", "learning_rate", "warmup", "fold", "dev_share", "anchor"),
    *("seed", "seeds", "grid", "folds", "each", "add", "stages", "set", "check", "suite", "sources"),
    *("file", "relation", "task", "subsets", "by_name", "encoder", "objective", "hold_out", "evaluation"),
    *("max_length", "prompt", "vectors", "normalise", "sample", "dropout", "save_every", "token_budget"),
)


class Raw(str):
    """TOML as it is written, for what JSON cannot say."""


_RAW = tuple(
    Raw(text)
    for text in (
        "1979-05-27T07:32:00Z",
        "07:32:00",
        "0xDEADBEEF",
        "1_000",
        "+inf",
        "-nan",
        "1e400",
        "'''a\nb'''",
        '"\\u0000"',
        '"\\U0010FFFF"',
        "[[[[[[]]]]]]",
        "{ a.b.c = 1 }",
    )
)
_VALUES = (*VALUES, *_WORDS, *_WORDS, *_RAW)
# An experiment that is accepted is run: numbers that ask for hours are left to recipes, which are planned.
_SMALL = tuple(
    value
    for value in _VALUES
    if not (isinstance(value, int | float) and 3 < abs(value) < 1e20)
    and not (isinstance(value, list) and len(value) > 10)
)


def to_toml(document: Any) -> str:
    """A document as TOML, every table inline; null, which TOML lacks, is an empty text."""
    if not isinstance(document, dict):
        return f"value = {_inline(document)}\n"
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in document.items())


def _inline(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return '""' if value is None else json.dumps(value)


def _toml(draw: Draw, document: Any, values: tuple[Any, ...] = _VALUES) -> bytes:
    """A document, damaged in its values or its bytes."""
    way = draw(st.sampled_from(("values", "values", "values", "values", "bytes", "none")))
    if way == "values":
        document = damage_document(draw, document, values=values, keys=_KEYS)
    content = to_toml(document).encode("utf8", "replace")
    return damage_bytes(draw, content) if way == "bytes" else content


def _not_toml(content: bytes) -> str:
    try:
        tomllib.loads(content.decode("utf8"))
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        return f"it is not TOML ({error})"
    return ""


def _judge_plan(outcome: Outcome, folder: Path) -> Iterator[str]:
    """A plan is the recipe, which is TOML again, and lines about its stages."""
    if "\nstage " not in outcome.out and not outcome.out.startswith("stage "):
        yield f"a plan without a stage: {outcome.out[-300:]!r}"


def _judge_json(outcome: Outcome, folder: Path) -> Iterator[str]:
    if wrong := not_plain_json(outcome.out):
        yield wrong


@st.composite
def recipe_cases(draw: Draw) -> Case:
    """A recipe of any kind, planned and not run."""
    document = recipes()[draw(st.sampled_from(sorted(recipes())))]
    content = _toml(draw, document)
    return Case(
        ("train", "r.toml", "--dry-run", "--device", "cpu"),
        {"r.toml": content},
        models={"": "world"},
        must_fail=_not_toml(content),
        judge=_judge_plan,
    )


_SUITE: dict[str, Any] = {
    "name": "own",
    "by_name": False,
    "task": [
        {"name": "rated", "file": "test.csv", "relation": "similarity:0..5", "metric": "pearson"},
        {
            "name": "labelled",
            "file": "dev.csv",
            "text_a": "text_a",
            "text_b": "text_b",
            "relation": "similarity:0..5",
            "column": "similarity",
            "subsets": False,
            "texts": 2,
        },
    ],
}


@st.composite
def suite_cases(draw: Draw) -> Case:
    """A suite of one's own: a model is measured on it, or a table is audited against it."""
    content = _toml(draw, _SUITE)
    audited = draw(st.booleans())
    arguments = (
        ("audit", "more.csv", "--against", "s.toml", "--json")
        if audited
        else ("evaluate", "m", "--suite", "s.toml", "--json", "--device", "cpu")
    )
    return Case(
        arguments,
        {"s.toml": content},
        models={"": "tables"} if audited else {"": "tables", "m": "pairs"},
        must_fail=_not_toml(content),
        keeps=("runs",),
        judge=_judge_json,
    )


_EXPERIMENT: dict[str, Any] = {
    "name": "small",
    "description": "the encoder as it is",
    "recipe": "recipe.toml",
    "seeds": [1],
    "setting": [{"name": "raw", "stages": 0}, {"name": "again", "stages": 0, "set": {"stage.0.epochs": 1}}],
    "start": [{"name": "first", "set": {"encoder.max_length": 16}}],
    "base": {"stage.0.batch_size": 16},
    "suite": "suite.toml",
    "sources": ["cosine"],
    "baseline": "raw",
}
_TRAINED: dict[str, Any] = {
    "name": "trained",
    "recipe": "recipe.toml",
    "seeds": [1],
    "setting": [{"name": "a", "grid": {"stage.0.epochs": [0.1, 0.2]}}],
    "check": [{"name": "own", "source": "test.csv", "relation": "similarity", "metric": "pearson"}],
    "folds": 2,
    "base": {"stage.0.max_steps": 1, "stage.0.save_every": 1},
    "suite": "suite.toml",
}


@st.composite
def experiment_cases(draw: Draw) -> Case:
    """An experiment, run where it is accepted: mostly one that trains nothing."""
    trained = draw(st.integers(0, 9)) == 0
    content = _toml(draw, _TRAINED if trained else _EXPERIMENT, _SMALL)
    return Case(
        ("experiment", "e.toml", "--json", "--device", "cpu"),
        {
            "e.toml": content,
            "recipe.toml": to_toml(recipes()["joint" if trained else "pairs-exact"]).encode(),
            "suite.toml": to_toml({**_SUITE, "task": _SUITE["task"][:1]}).encode(),
        },
        models={"": "world"},
        must_fail=_not_toml(content),
        keeps=("runs",),
        judge=_judge_json,
    )
