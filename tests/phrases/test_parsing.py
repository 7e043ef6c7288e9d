"""Phrases from a parser: what a parse gives, which phraser a name leads to, and what is said without one."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import DataError, ModelError, UsageError
from likewise.phrases import parsing
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.parsing import SpacyPhraser, phraser
from likewise.phrases.spans import nodes, uncrossed

REMEDY = "pip install 'likewise[phrases]' and python -m spacy download en_core_web_md"
NEEDS_SPACY = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None, reason="no spaCy here: pip install 'likewise[phrases]'"
)


@pytest.fixture(scope="module")
def model() -> str:
    """A spaCy model's folder or package; the test is skipped, with the reason, where there is none."""
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'likewise[phrases]'")
    home = os.environ.get("LIKEWISE_MODELS") or "~/.cache/likewise-models"
    folder = Path(home).expanduser() / "spacy"
    if (folder / "meta.json").is_file():
        return str(folder)
    for name in parsing.PACKAGES:
        if importlib.util.find_spec(name):
            return name
    pytest.skip(f"no spaCy model in {folder} and none installed: python -m spacy download en_core_web_md")


@pytest.fixture(scope="module")
def parser(model) -> SpacyPhraser:
    return SpacyPhraser(model)


@pytest.fixture
def without_models(monkeypatch, tmp_path):
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path))
    monkeypatch.setattr(parsing, "PACKAGES", ("no_such_package",))
    return tmp_path


def spans_of(parse):
    return uncrossed(parsing._candidates(parse), len(parse.words))


def said(phrases):
    return {phrases.said(span) for span in phrases.spans}


# What a parse gives


@NEEDS_SPACY
def test_parsing_reads_noun_verb_and_preposition_phrases_off_a_parse():
    import spacy
    from spacy.tokens import Doc

    words = "They are giving up old jobs in town .".split()
    heads = [2, 2, 2, 2, 5, 2, 5, 6, 2]
    deps = "nsubj aux ROOT prt amod dobj prep pobj punct".split()
    kinds = "PRON AUX VERB ADP ADJ NOUN ADP NOUN PUNCT".split()
    parse = parsing._read(Doc(spacy.blank("en").vocab, words=words, heads=heads, deps=deps, pos=kinds))
    found = {" ".join(words[start:end]) for start, end in spans_of(parse)}
    assert found == {
        "They are giving up old jobs in town",
        "are giving up",
        "are giving up old jobs in town",
        "old jobs in town",
        "old jobs",
        "in town",
    }


@settings(max_examples=50)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=9), st.data())
def test_parsing_makes_a_tree_of_any_parse(tied, data):
    """Branches that cross, marks anywhere, more than one root, noun chunks that overlap."""
    count = len(tied)
    # A word hangs on one before it in a shuffled order, or on none: no loops, but crossing branches.
    shuffled = data.draw(st.permutations(range(count)))
    heads = [0] * count
    for place, word in enumerate(shuffled):
        heads[word] = shuffled[tied[place]] if tied[place] < place else word
    children = [[n for n, head in enumerate(heads) if head == word != n] for word in range(count)]
    draw = lambda *values: data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))  # noqa: E731
    parse = parsing._Parse(
        words=tuple((2 * n, 2 * n + 1) for n in range(count)),
        heads=heads,
        labels=draw("aux", "prt", "prep", "dobj", "punct", "conj"),
        kinds=draw("VERB", "NOUN", "PUNCT"),
        marks=draw(True, False),
        nouns=[(n, min(count, n + 3)) for n in range(0, count, 2)],
        children=children,
        wholes=parsing._wholes(heads, children),
    )
    phrases = parsing.Phrases("w " * count, parse.words, spans_of(parse), "test")
    for start, end in phrases.spans:
        assert end - start > 1
        assert not parse.marks[start]
        assert not parse.marks[end - 1]


# A real model


def test_parsing_of_english(parser):
    first, second = parser(["A cat is standing on tree branches.", "She wants to play the old guitar."])
    assert first.by == parser.name
    assert parser.name.startswith("spaCy en_core_web_")
    assert {"A cat", "is standing", "on tree branches", "tree branches"} <= said(first)
    assert {"the old guitar", "to play", "to play the old guitar"} <= said(second)


def test_parsing_takes_spacys_words_but_for_white_space(parser):
    text = "  I don't \n\n know , really .\t"
    (phrases,) = parser([text])
    assert phrases.text == text
    assert phrases.tokens == ("I", "do", "n't", "know", ",", "really", ".")


ODD = ["", " \n ", "...", "👍🏽 👨\u200d👩!", "我喜歡蘋果。", "הכלב ישן", "\ud800 dog", "\x00", "word " * 500]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_parsing_of_odd_texts_is_a_tree(parser, text):
    (phrases,) = parser([text])
    assert phrases.text == text
    spans, _ = nodes(phrases)
    assert bool(spans) == bool(text.strip())


def test_parsing_gives_the_same_in_any_company(parser):
    texts = ["A man runs.", "", "Two dogs play with a ball in the snow.", "A man runs."]
    together = parser(texts)
    assert together == [parser([text])[0] for text in texts]
    assert parser([]) == []


def test_parsing_refuses_a_text_that_spacy_would_not_take(parser, monkeypatch):
    monkeypatch.setattr(parser._nlp, "max_length", 10)
    with pytest.raises(DataError, match=r"text 1: has more than the 10 characters"):
        parser(["short", "a text that is too long"])


def test_parsing_leaves_out_what_phrases_do_not_need(parser):
    assert not {"ner", "lemmatizer"} & set(parser._nlp.component_names)


# Which phraser a name leads to


def test_phraser_by_name(model, parser, monkeypatch):
    if Path(model).is_dir():
        monkeypatch.setenv("LIKEWISE_MODELS", str(Path(model).parent))
    told = []
    assert isinstance(phraser("rules", told.append), RuleChunker)
    assert phraser("auto", told.append).name == parser.name
    assert told == []


@NEEDS_SPACY
def test_phraser_auto_without_a_model_tells_what_it_uses_and_how_to_do_better(without_models):
    told = []
    assert phraser("auto", told.append).name == "rules"
    assert told == [
        f"no spaCy model was found, so phrases are found by rules. For better phrases, run {REMEDY}."
    ]
    assert phraser("auto").name == "rules"


def test_phraser_auto_without_spacy_tells_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    told = []
    assert phraser(tell=told.append).name == "rules"
    assert told == [
        f"spaCy is not installed, so phrases are found by rules. For better phrases, run {REMEDY}."
    ]


@pytest.mark.parametrize("name", ["spacy", "en_core_web_md", "./folder"])
def test_phraser_refuses_a_parser_that_is_not_installed(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UsageError) as caught:
        phraser(name)
    assert "spaCy is not installed" in str(caught.value)
    assert REMEDY in str(caught.value)


@NEEDS_SPACY
@pytest.mark.parametrize("name", ["spacy", "no_such_package", "numpy", "os.path", "no/such/folder"])
def test_phraser_refuses_a_model_that_is_not_there(without_models, name):
    with pytest.raises(UsageError) as caught:
        phraser(name)
    assert name in str(caught.value)
    assert REMEDY in str(caught.value)


@NEEDS_SPACY
def test_phraser_refuses_a_folder_that_is_no_pipeline_or_has_no_parser(tmp_path):
    import spacy

    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="is not a spaCy pipeline"):
        phraser(str(tmp_path / "empty"))
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ModelError, match="has no parser"):
        phraser(str(tmp_path / "blank"))
    (tmp_path / "blank" / "config.cfg").write_text("garbage", encoding="utf8")
    with pytest.raises(ModelError, match=r"spaCy cannot load .*blank"):
        phraser(str(tmp_path / "blank"))


@NEEDS_SPACY
def test_phraser_finds_a_package_without_running_it(without_models, monkeypatch):
    package = without_models / "en_made_up"
    folder = package / "en_made_up-1.0"
    folder.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('was run')", encoding="utf8")
    (folder / "config.cfg").touch()
    for place in (package, folder):
        meta = json.dumps({"lang": "en", "name": "made_up", "version": "1.0"})
        (place / "meta.json").write_text(meta, encoding="utf8")
    monkeypatch.setattr(parsing, "PACKAGES", ("en_made_up",))
    assert parsing._find_model() is None
    monkeypatch.syspath_prepend(str(without_models))
    assert parsing._find_model() == folder
    (without_models / "spacy").mkdir()
    for name in ("config.cfg", "meta.json"):
        (without_models / "spacy" / name).touch()
    assert parsing._find_model() == without_models / "spacy"


@NEEDS_SPACY
@pytest.mark.parametrize("place", ["pipeline", "lib/site-packages/pipeline"])
def test_parsing_reads_no_pickle_of_a_pipeline(tmp_path, place, monkeypatch):
    """Whatever leads to a layer of PyTorch, its weights are not opened; afterwards all is as before."""
    import spacy
    import torch
    from thinc.api import PyTorchWrapper
    from thinc.shims.pytorch import PyTorchShim

    layer = PyTorchWrapper(torch.nn.Linear(2, 2)).initialize()
    content, opened = layer.to_bytes(), []
    monkeypatch.setattr(torch, "load", lambda *given, **options: opened.append(given))
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    spacy.blank("en").to_disk(tmp_path / place)

    def load(folder, **options):
        PyTorchWrapper(torch.nn.Linear(2, 2)).from_bytes(content)

    monkeypatch.setattr(spacy, "load", load)
    before = PyTorchShim.from_bytes
    with pytest.raises(ModelError, match="whose weights are a pickle"):
        SpacyPhraser(tmp_path / place)
    assert opened == []
    assert PyTorchShim.from_bytes is before
