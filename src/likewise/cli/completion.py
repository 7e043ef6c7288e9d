"""What the Tab key completes: names of recipes, corpora, suites and models, and files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

Complete = Callable[[str], list[str]]

# As in likewise.evaluation.suites, which loads too much for the time between two keys.
SUITES = ("sts7", "relations", "classification", "paraphrase", "language-pairs", "crosslingual", "challenge")
# A shell may act on other characters. Names that hold them have to be typed.
_HARMLESS = re.compile(r"[\w./@%+,~-]+")
_MOST = 200


def offering(*sources: Callable[[], Iterator[str]], files: bool = True) -> Complete:
    """A completion by the names of some sources that begin with what was typed, and by files."""

    def complete(incomplete: str) -> list[str]:
        names = [name for source in sources for name in source() if name.startswith(incomplete)]
        names += _files(incomplete) if files else []
        return [name for name in dict.fromkeys(names) if _HARMLESS.fullmatch(name)][:_MOST]

    return complete


def recipes() -> Iterator[str]:
    """The recipes that come with the package."""
    from likewise.schema.shipped import shipped_recipes

    yield from shipped_recipes()


def corpora() -> Iterator[str]:
    """The parts of the named corpora, such as stsb/train."""
    from likewise.data.catalogue import corpus_names, find_corpus

    for name in corpus_names():
        yield from (f"{name}/{split}" for split in find_corpus(name).splits)


def suites() -> Iterator[str]:
    """The suites that come with the package."""
    yield from SUITES


def models() -> Iterator[str]:
    """The default model, the raw encoder, the shipped models, and those in the user's folder of models."""
    from likewise.encoders.resolve import SHIPPED, SHIPPED_MODELS

    yield from ("default", "raw")
    yield from (name for name in SHIPPED_MODELS if (SHIPPED / name).is_dir())
    folder = os.environ.get("LIKEWISE_MODELS")
    if folder:
        yield from (name.rstrip("/") for name in _files(f"{folder}/", inside=True) if name.endswith("/"))


def _files(incomplete: str, *, inside: bool = False) -> list[str]:
    """Files and folders that begin with what was typed: as it was begun, or `inside`, their names alone."""
    start, slash, name = incomplete.rpartition("/")
    folder = Path(f"{start}{slash}" or ".").expanduser()
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        f"{'' if inside else start + slash}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(name) and (name or not entry.name.startswith("."))
    ]
