"""A process that has imported everything once and forks a child for every run.

It is started with the shim preloaded, reads one job a line from a pipe and answers with one line:

    {"watched", "cwd", "arguments" or "call", "environment", "n", "mode", "error", "exchange",
     "log", "out", "limit"}
    → {"status": exit status, negative for a signal, or "late"; "seconds"}
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.shim import Fault, Mode, arm, disarm, refuse_exchange

# What verbs import when they run; the rest is learnt from the first runs (`_catch_up`).
_HEAVY = ("torch", "transformers", "sentence_transformers", "pyarrow.parquet", "scipy.stats", "likewise.api")


def serve(commands: int, answers: int) -> None:
    """Fork a child per job until the pipe of commands is closed."""
    for name in _HEAVY:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    with os.fdopen(commands, encoding="utf8") as jobs, os.fdopen(answers, "w", encoding="utf8") as said:
        said.write("ready\n")
        said.flush()
        for line in jobs:
            job = json.loads(line)
            gc.collect()
            gc.freeze()
            answer = _run(job)
            # Before the answer: whoever has it clears the notes for the next run.
            _catch_up(Path(job["out"]) / "modules")
            said.write(json.dumps(answer) + "\n")
            said.flush()


def _run(job: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_child(job)
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], job["limit"])
    os.close(handle)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    found: int | str = os.waitstatus_to_exitcode(status) if ended else "late"
    return {"status": found, "seconds": time.monotonic() - started}


def _be_child(job: dict[str, Any]) -> None:
    """Run the verb as a process of its own would, and end as it would."""
    code = 70
    try:
        os.environ.update(job["environment"])
        # Named, not found: Python's own search tries folders out with a file that a kill would leave.
        tempfile.tempdir = os.environ["TMPDIR"]
        os.chdir(job["cwd"])
        out = Path(job["out"])
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(out / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        fault = Fault(job["n"], Mode(job["mode"]), job["error"])
        before = set(sys.modules)
        if not job["exchange"]:
            refuse_exchange()
        arm(Path(job["watched"]), fault, Path(job["log"]))
        code = _call(job)
        # As the interpreter's end does: temporary folders are removed here.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        disarm()
        (out / "modules").write_text("\n".join(sorted(set(sys.modules) - before)), encoding="utf8")
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    os._exit(code)


def _call(job: dict[str, Any]) -> int:
    sys.argv = ["likewise", *job["arguments"]]
    try:
        if job.get("call"):
            module, _, name = job["call"].partition(":")
            getattr(importlib.import_module(module), name)()
        else:
            from likewise.cli import main

            main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        # What Python says of an error that nobody caught.
        traceback.print_exc()
        return 1
    return 0


def _catch_up(modules: Path) -> None:
    """Import what a child had to import, so that the next one need not."""
    names: Iterable[str] = modules.read_text(encoding="utf8").split("\n") if modules.is_file() else ()
    for name in names:
        if name and name not in sys.modules and not name.startswith("__"):
            with suppress(BaseException):
                importlib.import_module(name)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
