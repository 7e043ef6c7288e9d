"""Runs commands for the fuzzers: a process with everything imported that forks a child for the commands.

A child answers many commands, each through `likewise.cli.main` with its own standard streams; where one ends
the child, the parent tells so and forks another. Requests come on standard input and answers go to standard
output, both as JSON after four bytes of length.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import resource
import sys
import time
from typing import Any

# A limit on the address space keeps a runaway command from taking the machine; growth is judged by others.
_ADDRESSES = 4 * 2**30
# A child is replaced now and then, so that what commands leave behind in it does not add up.
_COMMANDS_OF_A_CHILD = 400
_SHOWN = 2_000_000
_NOBODY_ASKS = 99


def _read_exactly(source: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        block = os.read(source, size - len(found))
        if not block:
            os._exit(_NOBODY_ASKS)
        found += block
    return found


def _receive(source: int) -> Any:
    return json.loads(_read_exactly(source, int.from_bytes(_read_exactly(source, 4), "big")))


def _send(target: int, answer: Any) -> None:
    content = json.dumps(answer).encode()
    content = len(content).to_bytes(4, "big") + content
    while content:
        content = content[os.write(target, content) :]


def _memory(name: str) -> int:
    """A line of /proc/self/status in bytes; 0 where there is no such file."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(name)), 0)
    return 0


def _forget_peak() -> None:
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _read_back(stream: int) -> str:
    size = os.lseek(stream, 0, os.SEEK_END)
    return os.pread(stream, min(size, _SHOWN), 0).decode("utf8", "surrogateescape")


def _run(request: Any, streams: tuple[int, int, int]) -> dict[str, Any]:
    """Run one command as if it were a process of its own; what it said and took."""
    import torch

    from likewise import disk
    from likewise.cli import main

    torch.manual_seed(request["chance"])
    disk._swept.cache_clear()
    os.chdir(request["folder"])
    for number, stream in enumerate(streams):
        os.lseek(stream, 0, os.SEEK_SET)
        os.ftruncate(stream, 0)
        os.dup2(stream, number)
    os.write(streams[0], request["stdin"].encode("latin1"))
    os.lseek(streams[0], 0, os.SEEK_SET)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf8")
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf8")
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), encoding="utf8", write_through=True)
    sys.argv = ["likewise", *request["arguments"]]
    before = _memory("VmRSS")
    _forget_peak()
    start, code = time.perf_counter(), 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    seconds = time.perf_counter() - start
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    growth = max(0, _memory("VmHWM") - before)
    said = {"out": _read_back(streams[1]), "err": _read_back(streams[2])}
    return {"code": code, "seconds": seconds, "growth": growth, **said}


def _serve(source: int, target: int) -> None:
    """Answer commands until there were enough of them."""
    # Weights are mapped and threads have stacks: both are addresses and not memory.
    limit = _memory("VmSize") + _ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    streams = tuple(os.memfd_create(name) for name in ("in", "out", "err"))
    _send(target, {"child": os.getpid()})
    for _ in range(_COMMANDS_OF_A_CHILD):
        request = _receive(source)
        if request.get("fresh"):
            return
        _send(target, _run(request, streams))  # type: ignore[arg-type]
        gc.collect(0)


def _import_everything(model: str) -> None:
    """Import what commands import, by running one: a child has it all from its first command on."""
    import pyarrow.parquet  # noqa: F401
    import zstandard  # noqa: F401

    import likewise.api
    import likewise.experiments  # noqa: F401
    from likewise.cli import main

    sys.argv = ["likewise", "explain", "the old man runs", "a woman sleeps", "--model", model, "--json"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()


def serve(model: str) -> None:
    """Fork children that answer, one after another, until standard input ends."""
    source, target = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    _import_everything(model)
    gc.freeze()
    while True:
        child = os.fork()
        if not child:
            try:
                _serve(source, target)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        if ended == _NOBODY_ASKS:
            return
        if ended:
            _send(target, {"died": ended})


if __name__ == "__main__":
    serve(sys.argv[1])
