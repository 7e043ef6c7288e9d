"""Folders of spaCy pipelines: what would be run, hang or fill the memory is refused before spaCy opens it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from likewise.errors import LikewiseError, ModelError
from likewise.phrases.parsing import SpacyPhraser

pytest.importorskip("spacy")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A pipeline with a parser that was never trained."""
    import spacy

    nlp = spacy.blank("en")
    parser = nlp.add_pipe("parser")
    for label in ("nsubj", "ROOT"):
        parser.add_label(label)
    nlp.initialize()
    folder = tmp_path_factory.mktemp("spacy") / "pipeline"
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def pipeline(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "pipeline"))


@pytest.fixture(autouse=True)
def alarm():
    """Ends a test that hangs."""

    def stop(*_):
        raise TimeoutError("the loader hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def add(pipeline: Path, text: str, *, instead_of: str = "") -> None:
    file = pipeline / "config.cfg"
    whole = file.read_text(encoding="utf8")
    assert instead_of in whole
    file.write_text(whole.replace(instead_of, "") + f"\n{text}\n", encoding="utf8")


def setting(pipeline: Path, key: str, value: str) -> None:
    """Change a key wherever it stands."""
    file = pipeline / "config.cfg"
    changed, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", file.read_text(encoding="utf8"))
    assert count
    file.write_text(changed, encoding="utf8")


def refused(pipeline: Path, *said: str) -> None:
    with pytest.raises(LikewiseError) as caught:
        SpacyPhraser(pipeline)
    for part in said:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pipeline_with_a_parser_loads(pipeline, tmp_path):
    assert SpacyPhraser(pipeline)(["a man sleeps"])[0].words
    shutil.move(pipeline / "vocab", tmp_path / "elsewhere")
    (pipeline / "vocab").symlink_to(tmp_path / "elsewhere")
    (pipeline / "circle").symlink_to(pipeline)
    assert SpacyPhraser(pipeline)(["a man sleeps"])[0].words


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_pipeline_with_a_file_without_an_end_is_refused(pipeline, tmp_path, what, linked):
    if linked:
        shutil.move(pipeline / "vocab", tmp_path / "elsewhere")
        (pipeline / "vocab").symlink_to(tmp_path / "elsewhere")
    file = pipeline / "vocab" / "strings.json"
    file.unlink()
    if what == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    refused(pipeline, str(file))


def test_pipeline_whose_words_would_fill_the_memory_is_refused(pipeline):
    os.truncate(pipeline / "vocab" / "strings.json", 2**36)
    refused(pipeline, "strings.json", "bytes")


@pytest.mark.parametrize("name", ["before_creation", "after_creation", "after_pipeline_creation"])
@pytest.mark.parametrize("way", ["section", "value", "reference"])
def test_pipeline_that_would_run_a_callback_is_refused(pipeline, tmp_path, name, way):
    victim = tmp_path / "victim.csv"
    victim.write_text("kept", encoding="utf8")
    logger = f'@loggers = "spacy.ConsoleLogger.v3"\noutput_file = "{victim}"\nprogress_bar = null'
    if way == "section":
        add(pipeline, f"[nlp.{name}]\n{logger}", instead_of=f"{name} = null\n")
    elif way == "value":
        said = {"@loggers": "spacy.ConsoleLogger.v3", "output_file": str(victim)}
        setting(pipeline, name, json.dumps(said))
    else:
        setting(pipeline, name, "${training.logger}")
    refused(pipeline, "config.cfg", name)
    assert victim.read_text(encoding="utf8") == "kept"


@pytest.mark.parametrize(
    "called",
    [
        '@loggers = "spacy.ConsoleLogger.v3"',
        '@callbacks = "spacy.copy_from_base_model.v1"',
        '@readers = "srsly.read_json.v1"\npath = "/dev/zero"',
        '@misc = "spacy.LookupsDataLoader.v1"\nlang = "en"\ntables = []',
        '@misc = "spacy.KBFromFile.v1"\nkb_path = "x"',
        '@architectures = "other.Model.v1"',
        '@unheard = "x"',
    ],
)
@pytest.mark.parametrize(
    "place", ["nlp.tokenizer", "components.parser.scorer", "components.parser.model.deep"]
)
def test_pipeline_that_would_call_other_functions_is_refused(pipeline, called, place):
    config = (pipeline / "config.cfg").read_text(encoding="utf8")
    config = re.sub(rf"(?ms)^\[{re.escape(place)}\]\n.*?\n\n", "", config)
    (pipeline / "config.cfg").write_text(f"{config}\n[{place}]\n{called}\n", encoding="utf8")
    refused(pipeline, "config.cfg", place, called.split()[0])


def test_pipeline_that_borrows_from_another_is_refused(pipeline):
    add(pipeline, '[components.other]\nsource = "/tmp/elsewhere"')
    refused(pipeline, "config.cfg", "source")


@pytest.mark.parametrize(
    "section", ["training.logger", "corpora.train", "initialize.before_init", "pretraining.x"]
)
def test_pipeline_is_loaded_without_calling_what_trains_it(pipeline, tmp_path, section):
    """What stands there is let be, because nothing of it is called."""
    victim = tmp_path / "victim.csv"
    config = (pipeline / "config.cfg").read_text(encoding="utf8")
    config = re.sub(rf"(?ms)^\[{re.escape(section)}\]\n.*?\n\n", "", config).replace(
        "before_init = null\n", ""
    )
    called = f'@loggers = "spacy.ConsoleLogger.v3"\noutput_file = "{victim}"\nprogress_bar = null'
    (pipeline / "config.cfg").write_text(f"{config}\n[{section}]\n{called}\n", encoding="utf8")
    SpacyPhraser(pipeline)(["a man sleeps"])
    assert not victim.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("depth", "100000"),
        ("depth", "${paths.train}"),
        ("width", "100000000"),
        ("embed_size", "[5000,99999999]"),
    ],
)
def test_pipeline_of_more_layers_than_any_is_refused(pipeline, key, value):
    setting(pipeline, key, value)
    if value.startswith("$"):
        setting(pipeline, "train", "100000")
    refused(pipeline, "config.cfg", key, "larger than in any pipeline")


def test_pipeline_of_many_components_is_refused(pipeline):
    add(pipeline, "\n".join(f'[components.c{n}]\nfactory = "sentencizer"' for n in range(100)))
    refused(pipeline, "config.cfg", "components")


@pytest.mark.parametrize("section", ["training.x", "components.x"])
def test_pipeline_whose_settings_grow_is_refused(pipeline, section):
    """Each level holds the one before twice, in texts and in sections."""
    lines = [f'a{n} = "{"${" + f"{section}.a{n - 1}" + "}"}' * 3 + '"' for n in range(1, 9)]
    add(pipeline, f'[{section}]\na0 = "text"\n' + "\n".join(lines))
    refused(pipeline, "config.cfg", "refers to more than a value")


def test_pipeline_that_repeats_sections_is_refused(pipeline):
    add(
        pipeline,
        "[training.x]\n\n[training.x.a]\nb = 1\n\n[training.x.c]\nb = ${training.x.a}\nc = ${training.x.a}",
    )
    refused(pipeline, "config.cfg", "refers to more than a value")


@pytest.mark.parametrize("language", ["../../x", "en.examples", "${paths.train}", 7])
def test_pipeline_of_a_language_that_is_a_path_is_refused(pipeline, language):
    setting(pipeline, "lang", f'"{language}"')
    refused(pipeline, "config.cfg", "lang")


def test_pipeline_whose_settings_cannot_be_read_is_refused(pipeline):
    (pipeline / "config.cfg").write_text("[" * 1000, encoding="utf8")
    with pytest.raises(ModelError, match="spaCy cannot load "):
        SpacyPhraser(pipeline)
