"""The library that fails and kills (shim.c): built, armed, and its log read."""

from __future__ import annotations

import ctypes
import errno
import shutil
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")


class Mode(IntEnum):
    """What happens at the n-th call."""

    COUNT = 0
    FAIL_ONCE = 1  # the call fails, later ones work
    FAIL_ON = 2  # it and all later ones fail; on a full disk what takes no room still works
    KILL = 3  # SIGKILL before the call
    KILL_SHORT = 4  # half of a write, then SIGKILL
    SHORT = 5  # a write takes half of the bytes and says so, as it may


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done to a run: nothing, or a mode at the n-th counted call."""

    n: int = 0
    mode: Mode = Mode.COUNT
    error: int = 0

    @property
    def kills(self) -> bool:
        """Whether the process does not live to see it."""
        return self.mode in (Mode.KILL, Mode.KILL_SHORT)

    def __str__(self) -> str:
        said = self.mode.name.lower().replace("_", " ")
        return f"{said} {errno.errorcode[self.error]}" if self.error else said


@dataclass(frozen=True, slots=True)
class Call:
    """One counted call: its number, kind, path below the watched folder, target of a rename, bytes."""

    n: int
    kind: str
    path: str
    to: str = ""
    size: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.path}" + (f" → {self.to}" if self.to else "")


def compiler() -> str | None:
    """A C compiler, None where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """Compile the library into a folder."""
    made = folder / "shim.so"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-U_FORTIFY_SOURCE", "-shared", "-fPIC"]
    command = [str(compiler()), *flags, "-o", str(made), str(SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return made


def arm(watched: Path, fault: Fault, log: Path) -> None:
    """Begin to count in this process, which was started with the library preloaded."""
    library = ctypes.CDLL(None)
    library.likewise_arm.argtypes = (
        ctypes.c_char_p,
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_char_p,
    )
    library.likewise_trap()
    folder = str(watched.resolve()).encode()
    if library.likewise_arm(folder, fault.n, int(fault.mode), fault.error, str(log).encode()):
        raise OSError(f"the shim cannot write its log {log}")


def refuse_exchange() -> None:
    """Let this process be on a file system where two names cannot be exchanged in one step."""
    ctypes.CDLL(None).likewise_refuse_exchange()


def disarm() -> None:
    """Let every call of this process through again."""
    ctypes.CDLL(None).likewise_disarm()


def read_log(log: Path) -> list[Call]:
    """The counted calls of a run; the last is the one that was hit, if it was killed."""
    calls = []
    for line in log.read_text(encoding="utf8", errors="replace").splitlines():
        n, kind, path, to, size = line.split("\t")
        calls.append(Call(int(n), kind, path, to, int(size)))
    return calls
