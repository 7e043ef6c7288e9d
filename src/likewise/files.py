"""Names that may lead to files: whether a file exists, whether it ends, and what the system says about it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from likewise.errors import FormatError, Problem, UsageError
from likewise.wording import sentence

_LONGEST_PATH, _LONGEST_PART = 4096, 255
# What stands under a name that is no regular file, and what to do instead. A pipe waits for its writer, a
# device may have no end: neither is opened.
_SPECIAL = (
    (stat.S_ISDIR, "this is a folder, but a file is expected", "name a file in it"),
    (
        stat.S_ISFIFO,
        "this is a named pipe, which may never end",
        "save its output to a file, and name that file",
    ),
    (stat.S_ISSOCK, "this is a socket, but a file is expected", "name a file"),
    (stat.S_ISCHR, "this is a device, which may never end", "name a file"),
    (stat.S_ISBLK, "this is a device, but a file is expected", "name a file"),
)
_SAID = {
    errno.ENOSPC: ("there is no space left on the disk", "free some space, or write elsewhere"),
    errno.EDQUOT: ("the quota of this disk is used up", "free some space, or write elsewhere"),
    errno.ENAMETOOLONG: ("the name is too long for a file", "choose a shorter name"),
    errno.ELOOP: ("the name is a link that leads in a circle", "name the file itself"),
    errno.ENOTDIR: ("a part of the path is a file, but a folder is expected", "check the path"),
    errno.EISDIR: ("this is a folder, but a file is expected", "name a file"),
    errno.ENOENT: ("there is no such file or folder", "check the path"),
    errno.EACCES: ("permission denied", "check the permissions"),
    errno.EPERM: ("the system does not permit it", "check the permissions"),
    errno.EROFS: ("this disk is read-only", "write elsewhere"),
    errno.EMFILE: ("too many files are open", "close some of them, or raise the limit (ulimit -n)"),
    errno.EBADF: ("it is closed", "open it for the command"),
    errno.EIO: ("the disk or device reports an error", "check the hardware, or use another disk"),
    errno.ENOMEM: ("there is not enough memory", "use smaller inputs or batches"),
}


def may_be_path(name: str) -> bool:
    """Whether a text can be a path: it is not blank, holds no NUL, and has no part that is too long."""
    if not name.strip() or "\0" in name:
        return False
    try:
        parts = os.fsencode(name).split(b"/")
    except UnicodeEncodeError:
        return False
    return sum(map(len, parts)) <= _LONGEST_PATH and max(map(len, parts)) <= _LONGEST_PART


def is_there(name: str | os.PathLike[str]) -> bool:
    """Whether anything exists under a name. Nothing exists under a name that cannot be a path."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def refuse_endless(path: str | os.PathLike[str]) -> None:
    """Refuse a name that leads to anything but a regular file. A name that leads nowhere is accepted here."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return
    for is_one, found, remedy in _SPECIAL:
        if is_one(mode):
            raise FormatError([Problem(os.fspath(path), found, remedy)])


# What standard input is called by the system.
STANDARD_INPUT = Path("/dev/stdin")


def is_file_on(descriptor: int) -> bool:
    """Whether an open file is a regular file, and not a pipe, a terminal or closed."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


# What the command at work has read: real paths, each with what tells a file from others under any name.
# Two trainings in two threads of one program have a record each.
_inputs: ContextVar[dict[str, tuple[int, int]] | None] = ContextVar("inputs", default=None)


@contextmanager
def remembering_inputs() -> Iterator[None]:
    """Record every file and model folder that is read inside the block, so that none of them is overwritten.

    A block inside another one adds to the record of the outer block.
    """
    before = _inputs.get()
    token = _inputs.set({} if before is None else before)
    try:
        yield
    finally:
        _inputs.reset(token)


def note_input(path: str | os.PathLike[str]) -> None:
    """Record that a file or model folder of the user is read."""
    inputs = _inputs.get()
    if inputs is None:
        return
    try:
        found = os.stat(path)
        inputs[os.path.realpath(path)] = (found.st_dev, found.st_ino)
    except (OSError, ValueError):
        return  # whoever opens it says why


def find_input(target: Path, *, inside: bool = False) -> str | None:
    """The input that writing `target` would change: the same file, or a folder that holds it.

    With `inside`, also an input that lies in `target`, which is a folder.
    """
    inputs = _inputs.get()
    if not inputs:
        return None
    real = os.path.realpath(target)
    above = {real, *map(str, Path(real).parents)}
    try:
        found = os.stat(real)
        same = (found.st_dev, found.st_ino)
    except OSError:
        same = None
    for path, node in inputs.items():
        if path in above or node == same or (inside and path.startswith(real + os.sep)):
            return path
    return None


def refuse_output_into_input() -> None:
    """Refuse a standard output that is a file the command reads, because the command would read its own
    output for ever.
    """
    inputs = _inputs.get()
    if not inputs or not is_file_on(1):
        return
    found = os.fstat(1)
    for path, node in inputs.items():
        if node == (found.st_dev, found.st_ino):
            raise UsageError(
                f"standard output is {path}, which is an input. Send the answers to another file."
            )


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def os_message(error: OSError) -> str:
    """The message about an error of the operating system: which file, what happened, and what to do."""
    said, remedy = _SAID.get(error.errno or 0, ((error.strerror or str(error) or type(error).__name__), ""))
    place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return f"{place}{said[:1].lower() + said[1:]}" + (f". {sentence(remedy)}" if remedy else "")
