"""The other end of the fork server: starts it and asks it for runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faults.shim import Call, Fault, read_log

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0
_ROOM = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: exit status (negative: a signal; None: it took too long), what it said, its calls."""

    status: int | None
    said: str
    calls: tuple[Call, ...]
    seconds: float


@contextmanager
def working_folder() -> Iterator[Path]:
    """A folder for worlds, in memory where there is room: each of thousands of runs lays one out anew."""
    memory = Path("/dev/shm")
    fits = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    with tempfile.TemporaryDirectory(prefix="faults-", dir=memory if fits else None) as folder:
        yield Path(folder).resolve()


class ForkServer:
    """Runs verbs below one folder, each in a fresh fork; `with` starts and ends the process."""

    def __init__(self, shim: Path, notes: Path) -> None:
        self._shim, self._notes = shim, notes

    def __enter__(self) -> Self:
        self._notes.mkdir(parents=True, exist_ok=True)
        read_job, self._write_job = os.pipe()
        self._read_answer, write_answer = os.pipe()
        with (self._notes / "server").open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.server", str(read_job), str(write_answer)],
                cwd=ROOT,
                env=_environment(self._shim),
                pass_fds=(read_job, write_answer),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        os.close(read_job)
        os.close(write_answer)
        self._jobs = os.fdopen(self._write_job, "w", encoding="utf8")
        self._answers = os.fdopen(self._read_answer, encoding="utf8")
        if self._answers.readline() != "ready\n":
            self.__exit__(None, None, None)
            raise self._gone("did not start")
        return self

    def _gone(self, what: str) -> RuntimeError:
        said = (self._notes / "server").read_text(encoding="utf8", errors="replace")
        return RuntimeError(f"the fork server {what}, exit status {self._process.wait()}: {said}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A server that died is told by the run that noticed it.
        with suppress(BrokenPipeError):
            self._jobs.close()
        self._process.wait()
        self._answers.close()

    def run(
        self,
        world: Path,
        arguments: list[str],
        fault: Fault | None = None,
        *,
        call: str = "",
        exchange: bool = True,
        limit: float = LIMIT,
    ) -> Ran:
        """Run a verb inside a world (or a function `module:name`), with a fault, and wait for its end."""
        fault = fault or Fault()
        log = self._notes / "calls"
        job = {
            "watched": str(world),
            "cwd": str(world),
            "arguments": arguments,
            "call": call,
            "environment": world_environment(world),
            "n": fault.n,
            "mode": int(fault.mode),
            "error": fault.error,
            "exchange": exchange,
            "log": str(log),
            "out": str(self._notes),
            "limit": limit,
        }
        for name in ("modules", "stdout", "stderr", "calls"):
            (self._notes / name).unlink(missing_ok=True)
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        line = self._answers.readline()
        if not line:
            raise self._gone("ended")
        answer = json.loads(line)
        said = "".join(
            (self._notes / name).read_text(encoding="utf8", errors="replace") for name in ("stdout", "stderr")
        )
        status = None if answer["status"] == "late" else int(answer["status"])
        return Ran(status, said, tuple(read_log(log)), answer["seconds"])


def world_environment(world: Path) -> dict[str, str]:
    """Everything a verb may write to by itself lies in its world."""
    return {
        "HOME": str(world / "home"),
        "XDG_CACHE_HOME": str(world / "home" / ".cache"),
        "LIKEWISE_CACHE": str(world / "cache"),
        "LIKEWISE_TEST_LOG": str(world / "looks" / "looks.jsonl"),
        "TMPDIR": str(world / "tmp"),
    }


def _environment(shim: Path) -> dict[str, str]:
    return {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        # The same sums wherever arrays happen to lie in memory, so that all servers train the same weights.
        "MKL_CBWR": "COMPATIBLE",
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "200",
    }
