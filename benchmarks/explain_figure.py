"""The picture of docs/explain.md: a page of `likewise explain --html`, as a browser shows it.

    python benchmarks/explain_figure.py --page page.html
    python benchmarks/explain_figure.py --page page.html --picture docs/figures/explain.png

The first writes the page. The second takes a picture of it and needs playwright, not likewise: pip install
playwright, then playwright install chromium, or --browser with the path of a Chromium.
"""

from __future__ import annotations

import argparse
from pathlib import Path

PAIR = (
    "A young woman repairs bicycles in a small shop behind the station.",
    "Behind the railway station, a girl fixes bikes and sells flowers in her little store.",
)
SIZE = {"width": 980, "height": 600}


def main() -> None:
    """Write the page, or take its picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--browser", help="a Chromium; playwright's own if left out")
    parser.add_argument("--flag", action="append", default=[], help="a flag for the browser")
    options = parser.parse_args()
    if options.picture is None:
        write_page(options.page)
    else:
        take_picture(options.page, options.picture, options.browser, options.flag)


def write_page(page: Path) -> None:
    """The explanation of our pair by the raw encoder."""
    from likewise import load
    from likewise.explain.page import explanation_page

    page.write_text(explanation_page([load("raw").explain(*PAIR)]), encoding="utf8")


def take_picture(page: Path, picture: Path, browser: str | None, flags: list[str]) -> None:
    """The whole page in light colours."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=[f"--{flag}" for flag in flags])
        shown = chromium.new_page(viewport=SIZE, color_scheme="light", device_scale_factor=1.5)
        shown.goto(page.resolve().as_uri())
        shown.screenshot(path=picture, full_page=True)
        chromium.close()


if __name__ == "__main__":
    main()
