"""The documentation site builds without a warning, loads nothing from elsewhere and has every public name."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import likewise

ROOT = Path(__file__).resolve().parents[1]
# Tags and attributes by which a page makes a browser load something.
LOADS = {
    **dict.fromkeys(["script", "img", "iframe", "source", "audio", "video", "embed"], "src"),
    "link": "href",
    "object": "data",
}
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//")


class Loads(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in LOADS and (value := values.get(LOADS[tag])):
            self.found.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built strictly; the tests are skipped, with the reason, where its tools are not installed."""
    if not all(map(importlib.util.find_spec, ("mkdocs", "material", "mkdocstrings"))):
        pytest.skip("the documentation tools are not here: pip install 'likewise[docs]'")
    folder = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "WARNING" not in result.stdout + result.stderr
    return folder


@pytest.mark.slow
def test_site_loads_nothing_from_elsewhere(site):
    # The page for addresses that a server does not know names its files from the server's root.
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) > 20
    for page in pages:
        parser = Loads()
        parser.feed(page.read_text(encoding="utf8"))
        for value in parser.found:
            assert not ELSEWHERE.match(value), f"{page.name} loads {value}"
            assert (page.parent / value.partition("#")[0].partition("?")[0]).exists(), f"{page.name}: {value}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), sheet.name
    for script in site.rglob("*.js"):
        assert not re.search(r"unpkg\.com|jsdelivr|googleapis|gstatic", script.read_text(encoding="utf8"))


@pytest.mark.slow
def test_site_shows_every_public_name_notebook_and_figure(site):
    reference = "".join(page.read_text(encoding="utf8") for page in (site / "reference").glob("*.html"))
    for name in likewise.__all__:
        assert f'id="likewise.{name}"' in reference or f"likewise.{name}</code>" in reference, name
    notebook = (site / "examples" / "your_ratings.ipynb.html").read_text(encoding="utf8")
    assert "raw encoder</th>" in notebook
    shown = (site / "gallery.html").read_text(encoding="utf8")
    assert all(f"figures/{one.name}" in shown for one in (ROOT / "docs" / "figures").iterdir())


@pytest.mark.slow
def test_site_has_no_comment_and_no_path_of_this_machine(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf8")
        assert str(ROOT) not in text, page
        assert str(Path.home()) + "/" not in text, page
        assert "<!-- table" not in text, page
        assert "<!-- numbers" not in text, page


def test_reference_names_every_public_name():
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf8") for page in pages)
    for name in likewise.__all__:
        directive = rf"^::: likewise\.{name}$" if name != "__version__" else "`likewise.__version__`"
        assert re.search(directive, text, re.MULTILINE), f"no page of docs/reference has ::: likewise.{name}"
