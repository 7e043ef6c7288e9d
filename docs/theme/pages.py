"""The steps between the pages of docs/ and what MkDocs reads.

The pages are written for a code host: they link to files of the repository, and they carry comments by which
tables and numbers are filled in. For the site
- a file that a page links to becomes a page: Markdown and notebooks as they read, code as a listing;
- the comments go, and lists and tables get the blank line before them that Python-Markdown needs;
- the gallery gets the figures of docs/figures that it does not describe yet.

MkDocs calls the functions whose names begin with `on_`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Files beside docs/ that are pages whether or not another page links to them.
ALWAYS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/first_hour.ipynb",
    "examples/your_ratings.ipynb",
)
# MkDocs would take a README.md for the home page.
OVERVIEW = "overview.md"
GALLERY = "gallery.md"
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".json": "json", ".sh": "bash"}
FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"[ \t]*(?<!`)<!--.*?-->", re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
ITEM = re.compile(r"(?:[-*+]|1\.) |\|")
FRAME = re.compile(r"<style.*?</style>|\s+border=\"1\"|\s+class=\"dataframe\"", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file outside docs/ that is always shown or that a page links to."""
    waiting = list(ALWAYS)
    for file in files.documentation_pages():
        path = f"docs/{file.src_uri}"
        waiting += targets(path, (ROOT / path).read_text(encoding="utf8"))
    for path in waiting:  # grows while it is read: a page that is added may link to others
        known = path.startswith("docs/") or files.get_file_from_path(place(path))
        if known or not (ROOT / path).exists():
            continue
        text = page_text(path)
        listed = InclusionLevel.INCLUDED if path in ALWAYS else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, place(path), content=text, inclusion=listed))
        if path.endswith((".md", ".ipynb")):
            waiting += targets(path, text)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page as Python-Markdown takes it, its links leading to pages of the site."""
    here = page.file.src_uri
    path = source_of(here)
    if here == GALLERY:
        markdown += other_figures(markdown)

    def change(text: str) -> str:
        text = with_blank_lines(COMMENT.sub("", text))
        return LINK.sub(lambda found: relinked(found, path, here), text)

    return outside_fences(markdown, change)


def on_post_build(config: MkDocsConfig) -> None:
    """Cut the theme's two addresses on another host, of scripts that no page here needs."""
    for script in (Path(config.site_dir) / "assets" / "javascripts").glob("bundle.*.js"):
        text = script.read_text(encoding="utf8")
        script.write_text(text.replace("https://unpkg.com/", "absent/"), encoding="utf8")


def outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    """Markdown whose text is changed and whose fenced code is not."""
    parts, last = [], 0
    for fence in FENCED.finditer(markdown):
        parts += [change(markdown[last : fence.start()]), fence.group()]
        last = fence.end()
    return "".join([*parts, change(markdown[last:])])


def with_blank_lines(text: str) -> str:
    """Text with a blank line between a paragraph and a list or table that follows it at once."""
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        in_paragraph = before.strip() and not ITEM.match(before) and not before.startswith(" ")
        if in_paragraph and ITEM.match(line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def targets(path: str, text: str) -> list[str]:
    """The files and folders of the repository that a page links to."""
    return [target for found in LINK.finditer(text) if (target := resolved(path, found.group(2)))]


def resolved(path: str, link: str) -> str:
    """Where a link of a file leads, from the repository's root; empty if it leads out of the repository."""
    if ":" in link or link.startswith("/"):
        return ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return "" if target.startswith("..") else target


def relinked(found: re.Match[str], path: str, here: str) -> str:
    """A link between files of the repository as one between pages of the site."""
    before, link, anchor, after = found.groups(default="")
    target = resolved(path, link)
    if not target:
        return found.group()
    return f"{before}{posixpath.relpath(place(target), posixpath.dirname(here) or '.')}{anchor}{after}"


def place(path: str) -> str:
    """Where a file of the repository stands in the site."""
    if path == "README.md":
        return OVERVIEW
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if path.endswith(".md") else f"{path}.md"


def source_of(here: str) -> str:
    """The file of the repository that a page of the site is made of."""
    if here == OVERVIEW:
        return "README.md"
    if (ROOT / "docs" / here).exists():
        return f"docs/{here}"
    return here if (ROOT / here).exists() else here.removesuffix(".md")


def page_text(path: str) -> str:
    """A page for a file or folder outside docs/."""
    file = ROOT / path
    if file.is_dir():
        names = [f"{one.name}/" if one.is_dir() else one.name for one in sorted(file.iterdir())]
        kept = [name for name in names if not name.startswith((".", "__pycache__"))]
        return listing(path, "This folder of the repository holds:", "\n".join(kept), "text")
    text = file.read_text(encoding="utf8")
    if file.suffix == ".md":
        return text
    if file.suffix == ".ipynb":
        return notebook_text(json.loads(text), path)
    return listing(path, "This file of the repository reads:", text, LANGUAGES.get(file.suffix, "text"))


def listing(path: str, before: str, text: str, language: str) -> str:
    """A page that shows a text as it is; the site's search leaves it out."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    head = f"---\ntitle: {PurePosixPath(path).name}\nsearch:\n  exclude: true\n---\n# `{path}`\n"
    return f"{head}\n{before}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def notebook_text(notebook: dict[str, Any], path: str) -> str:
    """A notebook as Markdown: its text, its code, and what the code printed when it was last run."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [output_text(one) for one in cell.get("outputs", ())]
    title, _, rest = parts[0].partition("\n")
    parts[0] = f"{title}\n\nThis page is the notebook `{path}` with the outputs of its last run.\n{rest}"
    return "\n\n".join(part for part in parts if part) + "\n"


def output_text(output: dict[str, Any]) -> str:
    """What a cell printed or returned; a table as a table."""
    data = output.get("data", {})
    if "text/html" in data:
        return re.sub(r"\n\s*", "\n", FRAME.sub("", "".join(data["text/html"]))).strip()
    text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
    return f"```text\n{text}\n```" if text else ""


def other_figures(shown: str) -> str:
    """The figures of docs/figures that the gallery does not describe yet."""
    figures = sorted(one.name for one in (ROOT / "docs" / "figures").iterdir())
    missing = [name for name in figures if f"figures/{name}" not in shown]
    return "".join(f"\n## {name}\n\n![{name}](figures/{name})\n" for name in missing)
