"""Real processes that need not import anything: forks of one that has imported what loads slowly.

A process of its own costs seconds of imports. A fork has its own memory, folder, environment, streams,
signals and exit code all the same. What Python does before the first line of the command line is left to
the tests that start `python -m likewise`.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

# Nothing of `likewise.cli`: it looks at streams and environment when it is imported.
PRELOADED = ["likewise.api", "likewise.explain", "likewise.evaluation", "transformers.trainer", "scipy.stats"]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(PRELOADED)


class Fork:
    """The command line, or a script, in a process of its own; like a Popen whose output is text."""

    def __init__(
        self,
        *arguments: object,
        script: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
    ) -> None:
        self.args = ["likewise" if script is None else str(script), *map(str, arguments)]
        self._said = tempfile.TemporaryDirectory(prefix="forks-")
        folder = str(cwd or Path.cwd())
        environment = dict(os.environ if env is None else env)
        given = (self.args, script is not None, folder, environment, self._said.name, input)
        self._process = CONTEXT.Process(target=_be, args=given)
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def communicate(self, timeout: float = 300) -> tuple[str, str]:
        """Wait for the end; what was written to the output and to the error stream."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
            raise subprocess.TimeoutExpired(self.args, timeout)
        with self._said:
            out, err = (Path(self._said.name, name) for name in ("out", "err"))
            return out.read_text(encoding="utf8"), err.read_text(encoding="utf8")


def run(*arguments: object, check: bool = False, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line or a script to its end."""
    fork = Fork(*arguments, **options)  # type: ignore[arg-type]
    out, err = fork.communicate()
    assert fork.returncode is not None
    if check and fork.returncode != 0:
        raise subprocess.CalledProcessError(fork.returncode, fork.args, out, err)
    return subprocess.CompletedProcess(fork.args, fork.returncode, out, err)


def _be(
    arguments: list[str],
    script: bool,
    folder: str,
    environment: dict[str, str],
    said: str,
    given: str | None,
) -> None:
    code = 70
    try:
        # As Python begins: a server of forks ignores Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY) if given is None else _piped(given), 0)
        for number, name in ((1, f"{said}/out"), (2, f"{said}/err")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf8", closefd=False)
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        sys.argv = arguments
        code = _call(script)
        # As the interpreter's end does: temporary folders are removed here.
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def _piped(given: str) -> int:
    """The end of a pipe that a short text is read from."""
    end, beginning = os.pipe()
    os.write(beginning, given.encode())
    os.close(beginning)
    return end


def _call(script: bool) -> int:
    try:
        if script:
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            from likewise.cli import main

            main()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
