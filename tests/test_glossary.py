"""The words of docs/glossary.md are used everywhere: wordings that they replaced do not come back.

A page or a module is held to this once it is on one of the two lists below. Code, generated tables, comments
and the targets of links are not read; of a module, only what users read: messages, and help texts in `cli/`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "docs/annotation.md",
    "docs/data.md",
    "docs/evaluation.md",
    "docs/explain.md",
    "docs/glossary.md",
    "docs/index.md",
    "docs/quickstart.md",
    "docs/results.md",
)
# Files or folders below src/likewise.
MODULES: tuple[str, ...] = (
    "__init__.py",
    "adapters.py",
    "annotation",
    "answering.py",
    "api.py",
    "arguments.py",
    "cli",
    "data",
    "disk.py",
    "documents.py",
    "errors.py",
    "evaluation",
    "explain",
    "files.py",
    "folders.py",
    "heads.py",
    "losses.py",
    "matchers.py",
    "outputs.py",
    "pairing.py",
    "ranks.py",
    "records.py",
    "registry.py",
    "schedules.py",
    "store",
    "versions.py",
    "wording.py",
)
# A retired wording, and what to write.
RETIRED = {
    r"untouched encoders?|encoders? as (?:it is|they are)": "raw encoder",
    r"leak(?:s|age)? (?:is |was )?let in": "leak not filtered",
    r"near-cop(?:y|ies)": "near-duplicate",
    r"costs? (?:nothing|no training)": "needs no training, or baseline",
    r"rating scales?|ranges? of ratings": "scale, or relation",
    r"gold": "rating, or label",
    r"what people said": "rating, or label",
    r"pairings?": "pair features",
    r"(?:every|each|per|first|last) looks?": "evaluation step, or evaluation",
    r"(?:keeps?|kept|leaves?|beats?|below) the start": "starting model",
    r"the start (?:is|was) (?:kept|not|a candidate)": "starting model",
    r"the teaching|untaught|phrases (?:first )?taught|taught phrases": "phrase injection",
    r"keeps? (?:one|you) waiting": "takes several seconds",
}
_APART = re.compile(
    r"<!-- table [\w:.-]+ -->\n.*?<!-- end -->|<!--.*?-->|```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL
)


def prose(page: str) -> str:
    """A page whose other parts are blank, line by line."""
    return _APART.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), page)


def messages(source: str, *, help_texts: bool) -> Iterator[tuple[int, str]]:
    """The strings of a module that users read, with their lines; docstrings of functions are help texts.

    A string without a space is a name or a key.
    """
    tree = ast.parse(source)
    kept = ast.FunctionDef | ast.AsyncFunctionDef if help_texts else ()
    silent = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if not isinstance(node, kept) and isinstance(node.body[0] if node.body else None, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            if " " in node.value.strip():
                yield node.lineno, node.value


def retired(text: str) -> Iterator[tuple[int, str, str]]:
    """Line (zero-based), wording and what to write, of every retired wording in a text."""
    for pattern, instead in RETIRED.items():
        for found in re.finditer(rf"\b(?:{pattern})\b", text.replace("\n", " "), re.IGNORECASE):
            yield text.count("\n", 0, found.start()), found.group(), instead


def said() -> Iterator[tuple[str, int, str]]:
    """Everything on the lists that users read: file, its first line, text."""
    for name in PAGES:
        yield name, 1, prose((ROOT / name).read_text(encoding="utf8"))
    for name in MODULES:
        place = ROOT / "src" / "likewise" / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            inside = path.relative_to(ROOT)
            source = path.read_text(encoding="utf8")
            for line, text in messages(source, help_texts="cli" in inside.parts):
                yield str(inside), line, prose(text)


def test_retired_wordings_do_not_come_back():
    found = [
        f"{name}:{first + line}: {wording!r}; write: {instead}"
        for name, first, text in said()
        for line, wording, instead in retired(text)
    ]
    assert not found, "\n".join(found)


def test_glossary_has_at_most_25_terms_each_with_a_meaning():
    rows = re.findall(
        r"^\| \*\*(.+?)\*\* \| (.+) \|$", (ROOT / "docs" / "glossary.md").read_text("utf8"), re.M
    )
    assert 20 <= len(rows) <= 25
    assert all(meaning.count(" ") > 5 and meaning.endswith(".") for _, meaning in rows)


@pytest.mark.parametrize(
    "text",
    [
        "The untouched\nencoder is better.",
        "Leak let in, for comparison.",
        "It counts near-copies.",
        "The raw cosine costs no training.",
        "Compare with the gold.",
    ],
)
def test_retired_wordings_are_found(text):
    [found] = retired(prose(text))
    assert found[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "`pairing = ['u', 'v']` and `keep_start`",
        "<!-- table x -->\n| leak let in |\n<!-- end -->",
        "```\nhead gives such scores, a file of one score such gold\n```",
        "[more](relations.md#pairing-and-a-head)",
        "At the start of a run, look at the plan. The golden rule.",
        "<!-- numbers: cell x > untouched encoder > y -->",
    ],
)
def test_retired_wordings_are_no_false_alarms(text):
    assert not list(retired(prose(text)))


def test_messages_are_what_users_read():
    source = '''"""A module about gold."""
def verb():
    """Help of the verb."""
    x = {"gold": 1}
    raise ValueError(f"row {x} has no gold rating")
'''
    assert [text for _, text in messages(source, help_texts=True)] == [
        "Help of the verb.",
        " has no gold rating",
    ]
    assert [text for _, text in messages(source, help_texts=False)] == [" has no gold rating"]
