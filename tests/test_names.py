"""One name means one thing, and texts name papers and pages that a reader of the repository can find."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "likewise"
# An alias or a type variable is in CapWords; a constant, all in capitals, is read with its module's name.
ALIAS = re.compile(r"[A-Z]\w*[a-z]\w*")
OUTSIDE = re.compile(r"\bMETHODS\W+(?:\d|[Aa]ppendix)|\bof METHODS\b|\b[Ss]eeds? 00\d")
TEXTS = {".py", ".toml", ".md", ".json", ".sh"}


def public_names(path: Path) -> Iterator[str]:
    """The functions, classes and aliases that a module defines for others; imports define nothing."""
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [one.id for one in targets if isinstance(one, ast.Name) and ALIAS.fullmatch(one.id)]
        else:
            continue
        yield from (name for name in found if not name.startswith("_") and name != "main")


def is_verb(path: Path, name: str) -> bool:
    """Whether a name is the verb of its file in cli/: `likewise score` and `likewise.score` are one thing."""
    return path.parent == SOURCE / "cli" and path.stem == name


def written() -> Iterator[Path]:
    """Files of the repository that people read."""
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))
    for folder in ("src", "tests", "docs", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in TEXTS and path != Path(__file__):
                yield path


def test_a_public_name_is_defined_in_one_module():
    owners: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name in sorted(set(public_names(path))):
            if not is_verb(path, name):
                owners.setdefault(name, []).append(str(path.relative_to(SOURCE)))
    assert {name: modules for name, modules in owners.items() if len(modules) > 1} == {}


def test_no_text_refers_to_documents_outside_the_repository():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in written()
        for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), start=1)
        if OUTSIDE.search(line)
    ]
    assert not found
