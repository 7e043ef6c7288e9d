"""The page: one file, nothing from outside, escaped, readable without colour."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from likewise.explain.page import explanation_page, signed
from likewise.predict import load

VOID = {"meta", "br"}


class Read(HTMLParser):
    """Tags that open and close as they should, and the text outside of style."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(page: str) -> Read:
    reader = Read()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def model(tiny_encoder):
    return load(tiny_encoder, device="cpu")


def test_page_is_one_whole_file_that_loads_nothing(model):
    page = explanation_page([model.explain("The old man plays.", "A man plays guitar.", phrases="rules")])
    reader = read(page)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in reader.tags}
    assert not re.search(r"https?:|url\(|@import|src=", page)
    assert "prefers-color-scheme: dark" in page


def test_page_escapes_texts_and_turns_with_their_direction(model):
    nasty = "<script>alert(1)</script> & \"man\" 'dog'"
    page = explanation_page([model.explain(nasty, "الكلب ينام في البيت", phrases="rules")], title="<x>")
    reader = read(page)
    assert "script" not in {tag for tag, _ in reader.tags}
    texts = [attrs for tag, attrs in reader.tags if attrs.get("class") == "text"]
    assert [attrs["dir"] for attrs in texts] == ["auto", "auto"]
    numbers = re.compile(r"<sup>\d+</sup>")
    shown = re.findall(r'<p class="text" dir="auto">(.*?)</p>', page)[0]
    assert "".join(read(numbers.sub("", shown)).text) == nasty
    for plain, safe in (("<", "&lt;"), (">", "&gt;"), (" & ", "&amp;"), ('"', "&quot;")):
        assert shown.count(safe) == nasty.count(plain)
    assert "<title>&lt;x&gt;</title>" in page


def test_page_numbers_both_halves_of_a_match_and_shows_what_is_left(model):
    found = model.explain("The old man plays.", "The old man plays guitar in the park.", phrases="rules")
    page = explanation_page([found])
    for number in range(1, len(found.joined) + 1):
        assert page.count(f"<sup>{number}</sup>") == 2
        assert f".pair:has(.k{number}:is(:hover, :focus)) .k{number}" in page
    assert page.count('class="block alone" tabindex') == len(found.a.unmatched) + len(found.b.unmatched)
    for side in (found.a, found.b):
        for phrase in side.phrases:
            assert signed(phrase.carries) in page


def test_page_says_what_was_not_measured(model):
    page = explanation_page([model.explain("man", "...", phrases="rules")])
    assert "not measured" in page
    assert "the second text has no phrase" in page


def test_signed_has_no_minus_nothing():
    assert [signed(number) for number in (0.1234, -0.5, -0.0001, 0.0)] == [
        "+0.123",
        "-0.500",
        "0.000",
        "0.000",
    ]


def test_page_has_a_note_above_its_pairs_if_there_is_one(model):
    pairs = model.explain([("a man", "a dog")], phrases="rules")
    page = explanation_page(pairs, note="The first 1 of 2 & more.")
    assert page.index('<p class="part">The first 1 of 2 &amp; more.</p>') < page.index("<article")
    assert read(page)
    assert '<p class="part">' not in explanation_page(pairs)


def test_page_of_many_pairs_and_of_none(model):
    assert explanation_page(model.explain([("a man", "a dog")] * 3, phrases="rules")).count("<article") == 3
    assert read(explanation_page([]))


def test_fragment_for_a_notebook_is_the_pair_of_the_page_and_changes_nothing_else(model):
    found = model.explain("The old man plays.", "A man plays guitar.", phrases="rules")
    shown = found._repr_html_()
    reader = read(shown)
    assert reader.tags[0] == ("div", {"class": "likewise explained"})
    assert not {"script", "link", "img", "iframe", "html", "body"} & {tag for tag, _ in reader.tags}
    assert not re.search(r"https?:|url\(|@import|src=", shown)
    article = re.compile(r"<article.*</article>", re.DOTALL)
    assert article.search(shown)[0] == article.search(explanation_page([found]))[0]
    style = re.search(r"<style>(.*)</style>", shown, re.DOTALL)[1]
    rules = [one for one in re.findall(r"([^{}]+)\{", style) if not one.strip().startswith("@media")]
    assert len(rules) > 40
    for rule in rules:
        for selector in re.split(r", (?![^(]*\))", rule.rpartition("}")[2].strip()):
            assert ".likewise.explained" in selector, selector


def test_fragment_is_light_or_dark_as_the_notebook_or_the_system_is(model):
    shown = model.explain("A man plays.", "A man sings.", phrases="rules")._repr_html_()
    assert "prefers-color-scheme: dark" in shown
    for theme in (
        'body[data-jp-theme-light="false"]',
        "body.vscode-dark",
        'body[data-jp-theme-light="true"]',
    ):
        assert f"{theme} .likewise.explained" in shown


def test_fragment_escapes_texts(model):
    nasty = "<script>alert(1)</script></style><style>*{}</style> & \"man\" 'dog'"
    shown = model.explain(nasty, "a man <img src=x onerror=alert(1)>", phrases="rules")._repr_html_()
    assert shown.count("<style>") == 1
    assert not {"script", "img"} & {tag for tag, _ in read(shown).tags}
    assert "&lt;" in shown
