"""Running the notebooks of examples/; `python -m tests.notebooks` keeps the new outputs in them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook as nbformat reads it."""
    import nbformat

    return nbformat.read(path, as_version=4)


def execute(path: Path, folder: Path) -> Any:
    """A notebook with the outputs of a fresh run in a folder."""
    from nbclient import NotebookClient

    # The kernel imports this checkout from any folder.
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    notebook = read(path)
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, timeout=900, record_timing=False, coalesce_streams=True, resources=where
    ).execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    # The version of Python and the like differ from run to run and tell a reader nothing.
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main() -> None:
    """Run every notebook and keep what it printed."""
    import nbformat

    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(execute(path, Path(folder)), path)


if __name__ == "__main__":
    main()
