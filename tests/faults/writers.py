"""Small writers, one right and others each wrong in its own way: what the harness must tell apart."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from likewise.cli import answering, main
from likewise.errors import LikewiseError
from likewise.experiments.predictions import Gathered, write_summary

_TEXT = "new " * 4000
_RESULT = Path("out/result.txt")
_FOLDER = Path("out/result")


def right() -> None:
    """Aside, synced, renamed; removed after an error, and what a kill left is swept by the next run."""
    aside = _RESULT.with_name(".result.txt.partial")
    try:
        aside.unlink(missing_ok=True)
        with aside.open("w") as file:
            file.write(_TEXT)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(_RESULT)
    except OSError as error:
        aside.unlink(missing_ok=True)
        sys.exit(f"error: {error}")


def in_place() -> None:
    """Writes over the old file."""
    try:
        _RESULT.write_text(_TEXT)
    except OSError as error:
        sys.exit(f"error: {error}")


def remove_first() -> None:
    """Removes the old folder before the new one has its name."""
    aside = _FOLDER.with_name("result.partial")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        (aside / "a.txt").write_text(_TEXT)
        shutil.rmtree(_FOLDER, ignore_errors=True)
        aside.rename(_FOLDER)
    except OSError as error:
        sys.exit(f"error: {error}")


def old_result() -> None:
    """What `remove_first` is to replace."""
    _FOLDER.mkdir()
    (_FOLDER / "a.txt").write_text("old")


def old_summary() -> None:
    """The result of an experiment that `new_summary` is to replace."""
    _write_summary([1.0, 2.0, 3.0])


def new_summary() -> None:
    """Another result of the same experiment, with other predictions, which are a file of their own."""
    try:
        _write_summary([3.0, 1.0, 2.0])
    except (LikewiseError, OSError) as error:  # as the command line does
        sys.exit(f"error: {error}")


def _write_summary(values: list[float]) -> None:
    about = {"runs": [], "tasks": {}}
    gathered = Gathered(about, {"gold/rated": np.array(values, dtype=np.float32)})
    result = SimpleNamespace(name="mine", predictions=gathered, to_dict=lambda: {"values": values})
    write_summary(result, Path("out/summary"))


def score_in_sections() -> None:
    """`likewise score`, with sections of so few texts that a small table has several."""
    answering.WINDOW, answering.SECTION_TEXTS = 64, 30
    main()


def never_swept() -> None:
    """Leaves what a kill left: every run takes another name aside."""
    handle, name = tempfile.mkstemp(dir="out", prefix=".", suffix=".partial")
    try:
        with open(handle, "w") as file:
            file.write(_TEXT)
        os.replace(name, _RESULT)
    except OSError as error:
        os.unlink(name)
        sys.exit(f"error: {error}")


def silent() -> None:
    """Ends with 0 though the file could not be written."""
    aside = _RESULT.with_name(".result.txt.partial")
    try:
        aside.write_text(_TEXT)
        aside.replace(_RESULT)
    except OSError:
        aside.unlink(missing_ok=True)


def uncaught() -> None:
    """Shows a traceback."""
    aside = _RESULT.with_name(".result.txt.partial")
    aside.write_text(_TEXT)
    aside.replace(_RESULT)


def careless() -> None:
    """Moves its input away while it works."""
    held = Path("inputs/pairs.csv")
    held.rename("inputs/.held")
    right()
    Path("inputs/.held").rename(held)


def by_mapping() -> None:
    """Writes through mapped memory, which no call shows."""
    import mmap

    with _RESULT.open("w+b") as file:
        os.truncate(file.fileno(), 4096)
        with mmap.mmap(file.fileno(), 4096) as mapped:
            mapped[:] = b"x" * 4096


def weights() -> None:
    """Writes as the library of the weights does."""
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(1000)}, "out/weights.safetensors")


def hang() -> None:
    """Never ends."""
    import time

    time.sleep(60)


def exchange() -> None:
    """Exchanges a folder for another; the exit status is the error."""
    import ctypes

    other = Path("out/other")
    other.mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, bytes(other), -100, bytes(_FOLDER), 2):
        sys.exit(ctypes.get_errno())
