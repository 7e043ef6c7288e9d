"""Ways to damage what is well formed: texts, bytes and JSON-like values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.mutating import places

Draw = Any

PLAIN_TEXTS = (
    "the old man plays guitar in the park",
    "a woman is cooking soup",
    "one cat sleeps near the river .",
    "the child reads a book, not two",
    "a new band runs",
    "no one is in the house tomorrow ?",
)
ODD_TEXTS = (
    "",
    " ",
    "\u00a0\u2003",
    "\ufeff",
    "\u200b",
    "\u202eabc\u202c",
    "\u2066x\u2069",
    "\u0000",
    "a\u0000b",
    "\x1b[31mred\x1b[0m\x07",
    "a\rb",
    "a\nb",
    "a\r\nb",
    "a\u2028b\u2029c\x85d\x0be",
    '"',
    '""',
    'say "so"',
    "'",
    ",",
    "\t",
    ";",
    "\\",
    "=1+1",
    "@SUM(A1)",
    "NaN",
    "nan",
    "inf",
    "-Infinity",
    "-",
    "NA",
    "null",
    "true",
    "0",
    "-0",
    "5.2",
    "1e999",
    "1_000",
    "0x10",
    "９",
    "9" * 5000,
    "e\u0301" * 40,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u0bcd\u0300" * 30,
    "word " * 3000,
    "x" * 100_001,
    "\ud800",
    "\udfff a",
    "../../etc/passwd",
    "[bold]x[/bold]",
    "{x} %s %d",
    "text_a",
)
_JUNK = (
    b"\0",
    b"\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
    b"\r",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b"\t",
    b"{",
    b"[",
    b"}",
    b"\\",
    b"[" * 20_000,
    b'{"a":' * 5000,
    b"NaN",
    b"1e999",
    b"-" * 50,
    b"9" * 5000,
    b"\x1b]0;x\x07",
    b"\xe2\x80\xae",
)
# What may stand in the place of any value of a document.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    64,
    1000,
    10**6,
    2**31,
    2**63 - 1,
    2**63,
    10**10,
    10**30,
    10**400,
    -(2**63),
    0.5,
    -0.0,
    1e-300,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    " ",
    "x",
    "cls",
    "none",
    "float16",
    "../../x",
    "/etc/passwd",
    "a/b",
    "\0",
    "\u202ex",
    "\x1b[31m",
    "é" * 300,
    "x" * 100_000,
    "\ud800",
    [],
    ["x"],
    [None],
    [[1]],
    [1, 2, 3],
    list(range(5000)),
    {},
    {"x": {"y": None}},
    {"": ""},
)


def texts(odd: float = 0.15) -> st.SearchStrategy[str]:
    """Mostly plain sentences, sometimes a text that something trips over."""
    plain = st.sampled_from(PLAIN_TEXTS)
    strange = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=12))
    return st.floats(0, 1).flatmap(lambda share: strange if share < odd else plain)


def damage_bytes(draw: Draw, content: bytes, most: int = 3) -> bytes:
    """Bytes with a few cuts, repeats and insertions."""
    for _ in range(draw(st.integers(1, most))):
        content = _damage_once(draw, content)
    return content


def _damage_once(draw: Draw, content: bytes) -> bytes:
    way = draw(st.sampled_from(("cut", "delete", "repeat", "insert", "flip", "swap", "encode")))
    size = len(content)
    at = draw(st.integers(0, size))
    end = min(size, at + draw(st.sampled_from((1, 1, 2, 4, 8, 64, size))))
    if way == "cut":
        return content[:at]
    if way == "delete":
        return content[:at] + content[end:]
    if way == "repeat":
        return content[:at] + content[at:end] * draw(st.sampled_from((2, 3, 50))) + content[end:]
    if way == "insert":
        junk = draw(st.one_of(st.sampled_from(_JUNK), st.binary(min_size=1, max_size=8)))
        return content[:at] + junk + content[at:]
    if way == "flip" and size:
        at = min(at, size - 1)
        return content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]
    if way == "swap":
        old, new = draw(
            st.sampled_from(((b"\n", b"\r"), (b"\n", b"\r\n"), (b'"', b"'"), (b",", b";"), (b":", b"=")))
        )
        return content.replace(old, new)
    encoding = draw(st.sampled_from(("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp037")))
    return content.decode("utf8", "replace").encode(encoding, "replace")


def _pick(draw: Draw, values: Sequence[Any]) -> Any:
    """One of some values, as a copy: it may be damaged further."""
    return copy.deepcopy(values[draw(st.integers(0, len(values) - 1))])


def damage_document(
    draw: Draw,
    document: Any,
    *,
    values: Sequence[Any] = VALUES,
    keys: Sequence[str] = (),
    counts: Sequence[int] = (1, 1, 1, 1, 1, 2, 3),
) -> Any:
    """A copy of a document with a few places left out, given another value, repeated, or added."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.sampled_from(counts))):
        known = list(places(made))
        if not known:
            return made
        place = _pick(draw, known)
        inner = made
        for step in place[:-1]:
            inner = inner[step]
        _damage(draw, inner, place[-1], values, keys)
    return made


def _damage(draw: Draw, inner: Any, key: Any, values: Sequence[Any], keys: Sequence[str]) -> None:
    way = draw(st.sampled_from(("replace", "replace", "replace", "drop", "add", "nest", "edit", "repeat")))
    if way == "drop":
        del inner[key]
    elif way == "add" and isinstance(inner, dict):
        name = draw(st.one_of(st.sampled_from(keys), st.text(max_size=6)) if keys else st.text(max_size=6))
        inner[name] = _pick(draw, values)
    elif way == "nest":
        listed = draw(st.booleans())
        for _ in range(draw(st.sampled_from((1, 2, 40, 100)))):
            inner[key] = [inner[key]] if listed else {"x": inner[key]}
    elif way == "edit" and isinstance(inner[key], str):
        inner[key] = inner[key] + draw(st.text(max_size=3)) if inner[key] else draw(st.text(max_size=3))
    elif way == "edit" and isinstance(inner[key], int | float):
        inner[key] = inner[key] * draw(st.sampled_from((-1, 2, 3, 1000, 0.5)))
    elif way == "repeat" and isinstance(inner[key], list):
        inner[key] = inner[key] * draw(st.sampled_from((2, 3, 100)))
    else:
        inner[key] = _pick(draw, values)
