"""The notebooks of examples/: they run, print what they keep, and keep nothing of the machine they ran on."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.notebooks import NOTEBOOKS, execute, read

PATH = re.compile(r"(?<![\w.])/(?:home|root|tmp|var|work|usr|opt|Users)/|[A-Z]:\\\\")
NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request) -> Path:
    """A notebook; the test is skipped, with the reason, where its tools are not installed."""
    if not all(map(importlib.util.find_spec, ("nbformat", "nbclient", "ipykernel", "pandas"))):
        pytest.skip("the notebook tools are not here: pip install 'likewise[dev]'")
    return request.param


def printed(cell) -> str:
    """What a cell printed, with a zero for every number: they differ between processors."""
    texts = [one.get("text") or one.get("data", {}).get("text/plain", "") for one in cell.outputs]
    return " ".join(NUMBER.sub("0", "\n".join(texts)).split())


def code(book) -> list:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def test_notebook_keeps_small_outputs_without_paths(notebook):
    cells = code(read(notebook))
    assert any(cell.outputs for cell in cells)
    for cell in cells:
        assert not any(one.output_type == "error" or one.get("name") == "stderr" for one in cell.outputs)
        assert len(str(cell.outputs)) < 8_000
        assert not PATH.search(str(cell.outputs))


@pytest.mark.slow
def test_notebook_runs_and_prints_what_it_keeps(notebook, minilm, tmp_path):
    kept, fresh = code(read(notebook)), code(execute(notebook, tmp_path))
    for old, new in zip(kept, fresh, strict=True):
        assert not any(one.output_type == "error" or one.get("name") == "stderr" for one in new.outputs)
        assert [one.output_type for one in old.outputs] == [one.output_type for one in new.outputs]
        # Cells that are tagged so show rows or verdicts that may differ between processors.
        if "varies" not in old.metadata.get("tags", []):
            assert printed(new) == printed(old), "the kept outputs are stale: run make notebooks"
