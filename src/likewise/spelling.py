"""How messages name an option: `--text-a NAME` on the command line, `text_a="NAME"` in Python.

A message that names an option asks `spelt` for its name, and one that suggests a call asks `spelt_call`. Both
answer in the spelling of whoever called: Python, unless the command line runs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

ValueForm = Literal["text", "number", "texts", "mapping", "switch"]


@dataclass(frozen=True, slots=True)
class Option:
    """An option's name on the command line and in Python, and the form of its value in Python."""

    flag: str
    keyword: str
    form: ValueForm = "text"


# Every option that a message outside the command line names, by its keyword or, at a clash, by another name.
OPTIONS = {
    one.keyword: one
    for one in (
        Option("--accept-licence", "accept", "texts"),
        Option("--add-label", "add_labels", "mapping"),
        Option("--allow-different", "allow_different", "switch"),
        Option("--annotator", "annotators", "texts"),
        Option("--base", "base"),
        Option("--column", "column"),
        Option("--data", "data"),
        Option("--data-dir", "data_dir"),
        Option("--delimiter", "delimiter"),
        Option("--describe", "describe"),
        Option("--device", "device"),
        Option("--encoder", "encoder"),
        Option("--format", "form"),
        Option("--label", "label"),
        Option("--labels", "labels", "mapping"),
        Option("--long", "long"),
        Option("--metric", "metric"),
        Option("--mode", "mode"),
        Option("--on-bad", "on_bad"),
        Option("--output", "output"),
        Option("--overwrite", "overwrite", "switch"),
        Option("--precision", "precision"),
        Option("--rank", "rank", "number"),
        Option("--rehearse", "rehearse", "number"),
        Option("--relation", "relations", "texts"),
        Option("--resume", "resume", "switch"),
        Option("--scale", "scale"),
        Option("--set", "overrides", "mapping"),
        Option("--source", "source"),
        Option("--storage", "storage"),
        Option("--task", "task"),
        Option("--template", "templates", "texts"),
        Option("--text", "text"),
        Option("--text-a", "text_a"),
        Option("--text-b", "text_b"),
        Option("--to", "to"),
        Option("--workers", "workers", "number"),
    )
}
# `data get` calls its place of files `source` in Python, where `from` is taken.
OPTIONS["place"] = Option("--from", "source")

ANY = "…"

_speaking: list[bool] = []


@contextmanager
def speaking_flags() -> Iterator[None]:
    """While this context is open, messages name options as the command line does."""
    _speaking.append(True)
    try:
        yield
    finally:
        _speaking.pop()


def speak_flags() -> None:
    """From now on, messages of this process name options as the command line does."""
    _speaking.append(True)


def speaks_flags() -> bool:
    """Whether messages name options as the command line does."""
    return bool(_speaking)


def spelt(keyword: str, value: str | Sequence[str] | None = None) -> str:
    """An option, with a value if one is given: `--mode zero`, or `mode="zero"`.

    An option that is repeated takes a sequence: `--annotator A --annotator B`, or `annotators=["A", "B"]`.
    The value of a mapping is `NAME=VALUE`. The value "…" stands for any: `--mode`, or `mode=…`.
    """
    one = OPTIONS[keyword]
    if value is not None and not isinstance(value, str):
        if speaks_flags():
            return " ".join(spelt(keyword, each) for each in value)
        return f"{one.keyword}=[{', '.join(map(_text, value))}]"
    if speaks_flags():
        return one.flag if value in (None, ANY) else f"{one.flag} {shlex.quote(value)}"
    if one.form == "switch":
        return f"{one.keyword}=True"
    return one.keyword if value is None else f"{one.keyword}={_in_python(one.form, value)}"


def spelt_together(**values: str | Sequence[str] | None) -> str:
    """Several options of one call: `--text-a NAME --text-b NAME`, or `text_a="NAME", text_b="NAME"`."""
    return (" " if speaks_flags() else ", ").join(spelt(keyword, value) for keyword, value in values.items())


def spelt_call(verb: str, *arguments: str, **values: str | Sequence[str]) -> str:
    """A call of a verb: `likewise train NAME --data FILE`, or `likewise.train("NAME", data="FILE")`.

    A verb of two words, such as `data get`, is a function of that package in Python.
    """
    between, quote = (" ", shlex.quote) if speaks_flags() else (", ", _text)
    told = between.join([*map(quote, arguments), *([spelt_together(**values)] if values else [])])
    return f"likewise {verb} {told}" if speaks_flags() else f"likewise.{verb.replace(' ', '.')}({told})"


def _in_python(form: ValueForm, value: str) -> str:
    if form == "number" or value == ANY:
        return value
    if form == "texts":
        return f"[{_text(value)}]"
    if form == "mapping":
        name, _, said = value.partition("=")
        return f"{{{_text(name.strip())}: {_text(said.strip())}}}"
    return _text(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
