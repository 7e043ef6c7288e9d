"""The one module that writes to disk. A file or folder is either complete or absent, and it survives a power
cut.

Everything is written first to a place of its own beside its target:

    .likewise-7c1f09aa52d0b3e4/     a folder with a unique name, locked while the process that made it lives
      whole                         the file or folder that is being written
      replaced, name                the old folder and its name, if the system cannot exchange two in one step
      keep                          the old folder holds files of somebody else and could not be put back

When the new file or folder is complete, it is synced and takes its name in one step, and the folder around it
is synced. If the process is killed, its place is no longer locked, and the next write into the same folder
removes it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import logging
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from likewise.errors import DataError, Problem, UsageError
from likewise.files import find_input
from likewise.spelling import spelt

_log = logging.getLogger("likewise")
_PLACE = re.compile(r"\.likewise-[0-9a-f]{16}")
_WHOLE, _REPLACED, _NAME, _KEEP = "whole", "replaced", "name", "keep"
_PLAIN_NAME = re.compile(r"[^/\0]+")
_AT_CWD, _EXCHANGE = -100, 2
# What goes wrong in writing and not in reading.
_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
# safetensors and tokenizers say "(os error 28)", pyarrow "[Errno 28]".
_HIDDEN = re.compile(r"(?:os error|\[[Ee]rrno) (\d+)[)\]]")


class UnwritableError(DataError):
    """A file or folder could not be written: there is no room, no permission, or no such place."""


class BusyError(UsageError):
    """Another process is working on the same files."""


# Files.


@contextmanager
def open_aside(
    path: str | Path,
    *,
    replace: bool = True,
    ours: bool = False,
    before_naming: Callable[[Path], None] | None = None,
) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name when the block succeeds and vanishes when it fails.

    Missing folders are made. Without `replace`, a file that appears under the name in the meantime is kept. A
    device or pipe (/dev/stdout) is written to directly. A file that this command reads is refused, unless it
    is `ours`, as in a cache. `before_naming` is called with the complete file just before it takes its name.
    """
    target = _real(path)
    if not ours:
        _refuse_input(target, path)
    if os.path.isdir(target):  # which, unlike Path.is_dir, also answers for names that cannot be
        raise DataError(
            [Problem(str(path), "this is a folder, but the name of a file is expected", "name a file in it")]
        )
    if os.path.exists(target) and not os.path.isfile(target):
        with saying_why(path), _open_device(target) as device:
            yield device
        return
    with path_aside(path, replace=replace, ours=ours) as whole:
        with whole.open("xb") as handle:
            yield handle
            handle.flush()
        if before_naming is not None:
            before_naming(whole)


def _open_device(path: Path) -> BinaryIO:
    """Open a device or pipe for writing. One that nobody reads is refused, since writing would wait for
    ever.
    """
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


@contextmanager
def path_aside(
    path: str | Path, suffix: str = "", *, replace: bool = True, ours: bool = False
) -> Iterator[Path]:
    """A path that ends in `suffix`, for code that writes files by name.

    The file takes the name `path` when the block succeeds and vanishes when it fails. Without `replace`, a
    file that appears under the name in the meantime is kept. A file that this command reads is refused,
    unless it is `ours`, as in a cache.
    """
    # A link under a name that we chose ourselves is replaced; what it leads to is somebody else's.
    target = _real(Path(path).parent) / Path(path).name if ours else _real(path)
    if not ours:
        _refuse_input(target, path)
    with _place_beside(target, path) as place:
        whole = place / f"{_WHOLE}{suffix}"
        with saying_why(path, of_others=True):
            yield whole
        if not ours:
            _refuse_input(target, path)  # it may have been opened since
        with saying_why(path):
            sync_file(whole, mode=_mode_of(target))
            _name(whole, target, replace=replace)
            sync_folder(target.parent)


def _name(whole: Path, target: Path, *, replace: bool) -> None:
    """Give a file its name. Without `replace`, do so only if the name is free."""
    if replace:
        whole.replace(target)
        return
    try:
        os.link(whole, target)
    except OSError:
        # Some file systems have no hard links: there the name is looked at just before it is taken.
        if os.path.lexists(target):
            found = f"{target} appeared while it was being written"
            raise UsageError(
                f"{found}. Choose another name, or replace it with {spelt('overwrite')}."
            ) from None
        whole.replace(target)


def write_text_aside(path: str | Path, text: str, *, replace: bool = True, ours: bool = False) -> None:
    """Write a UTF-8 text file that is either complete or absent."""
    with open_aside(path, replace=replace, ours=ours) as handle:
        handle.write(text.encode("utf-8"))


def write_json_aside(path: str | Path, value: object, *, replace: bool = True, ours: bool = False) -> None:
    """Write a JSON file that is either complete or absent. NaN and infinities become null."""
    write_text_aside(path, to_json(value, indent=2) + "\n", replace=replace, ours=ours)


def to_json(value: object, *, indent: int | None = None) -> str:
    """JSON of plain values, dataclasses, paths, numpy numbers and arrays. NaN and infinities become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain)
    except ValueError:
        loose = json.loads(
            json.dumps(value, ensure_ascii=False, default=_plain), parse_constant=lambda name: None
        )
        return json.dumps(loose, ensure_ascii=False, allow_nan=False, indent=indent)


# Folders.


# Whether a folder may be removed; asked about the very folder that is about to go.
MayGo = Callable[[Path], bool]


@contextmanager
def folder_aside(path: str | Path, *, replace: MayGo | None = None) -> Iterator[Path]:
    """An empty folder to fill. It takes its name when the block succeeds and vanishes when it fails.

    With `replace`, an existing folder is exchanged for the new one in one step. It is then removed if
    `replace` says that it may go. Otherwise it gets its name back, so that a file that somebody adds at the
    last moment is not lost.
    """
    target = _real(path)
    _refuse_input(target, path, inside=True)
    with _place_beside(target, path) as place:
        whole = place / _WHOLE
        with saying_why(path, of_others=True):
            whole.mkdir()
            yield whole
        _refuse_input(target, path, inside=True)
        with saying_why(path):
            sync_tree(whole)
            if replace is not None and target.is_dir():
                whole.chmod(stat.S_IMODE(target.stat().st_mode))
                _exchange(whole, target, place)
                _give_back_unless(replace, whole, target, place)
            elif target.exists():
                raise UsageError(
                    f"{path} appeared while it was being written. Choose another {spelt('output')}."
                )
            else:
                whole.rename(target)
            sync_folder(target.parent)


def remove_folder(path: str | Path, *, may_go: MayGo = lambda folder: True) -> bool:
    """Remove a folder, and return whether it is gone. At no moment is a part of it left under its name.

    A folder that `may_go` refuses at the last moment stays as it is.
    """
    target = _real(path)
    if not os.path.isdir(target):
        return True
    with _place_beside(target, path) as place, saying_why(path):
        (place / _NAME).write_text(target.name, encoding="utf8")
        target.rename(place / _REPLACED)
        gone = may_go(place / _REPLACED)
        if gone:
            (place / _NAME).unlink()
        else:
            _put_back(place)
        sync_folder(target.parent)
    return gone


def remove_file(path: Path) -> None:
    """Remove a file of ours, so that the removal survives a power cut."""
    _refuse_input(_real(path), path)
    with saying_why(path):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


@contextmanager
def scratch_folder(inside: Path | None = None) -> Iterator[Path]:
    """A temporary folder, for temporary files or `inside` a folder. If its process is killed, the next one
    removes it.
    """
    target = (inside or Path(tempfile.gettempdir())) / "scratch"
    with _place_beside(target, target.parent) as place:
        yield place


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, so that they survive a power cut."""
    if os.path.isdir(path):
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


# Lasting.


def sync_file(path: Path, mode: int | None = None) -> None:
    """Sync a file, so that it survives a power cut. Its permissions become the usual ones, or `mode`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        # Some libraries write files that only their owner may read.
        os.fchmod(handle, 0o666 & ~_umask() if mode is None else mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder, so that they survive a power cut, if the file system can do so."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems cannot sync a folder, and say so by these.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Sync all files of a folder and then the folders themselves, the innermost first."""
    for where, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_file(Path(where) / name)
        sync_folder(Path(where))


# Locks.


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock of a file that serves as a lock only. If another process has it, raise the error
    `busy`.
    """
    with saying_why(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        if not _lock(handle):
            raise BusyError(busy)
        yield
    finally:
        os.close(handle)


@contextmanager
def own_turn(path: Path, busy: str = "") -> Iterator[None]:
    """Hold a lock by name. Others wait for it, or get the error `busy`. Its file is removed when nobody
    holds it.
    """
    with saying_why(path):
        make_folder(path.parent)
        handle = _open_turn(path, busy)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def drop_turn(path: Path) -> None:
    """Remove the lock file of a process that was killed. A lock that somebody holds stays."""
    if os.path.isfile(path):
        with suppress(BusyError, UnwritableError, UsageError), own_turn(path, "held"):
            pass


def _open_turn(path: Path, busy: str) -> int:
    while True:
        if path.is_symlink():
            raise UsageError(f"{path} is a link, but a lock must be a file of its own. Remove the link.")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size:
            os.close(handle)
            raise UsageError(f"{path} is not an empty file, so it is no lock of Likewise. Move it away.")
        if not _lock(handle, wait=not busy):
            os.close(handle)
            raise BusyError(busy)
        with suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == path.stat().st_ino:
                return handle
        os.close(handle)  # the one before removed the file while we waited for it


def _lock(handle: int, *, wait: bool = False) -> bool:
    """Whether the lock of an open file or folder could be taken. It is released when the process ends."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# Errors.


@contextmanager
def saying_why(path: str | Path, *, of_others: bool = False) -> Iterator[None]:
    """Turn an error of the operating system while `path` is written into a message about that path.

    With `of_others` the block is code of somebody else, and only errors that are certainly about writing are
    turned.
    """
    try:
        yield
    except (BrokenPipeError, UnwritableError, BusyError):
        raise
    except Exception as error:
        found = _system_error(error)
        if found is None or (of_others and found.errno not in _WRITING):
            raise
        raise UnwritableError([unwritable(path, found)]) from error


def _system_error(error: Exception) -> OSError | None:
    """The error of the operating system, even if a library hides it in the text of its own error."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    hidden = _HIDDEN.search(str(error))
    return None if hidden is None else OSError(int(hidden[1]), os.strerror(int(hidden[1])))


def unwritable(path: str | Path, error: OSError) -> Problem:
    """The problem of a path that cannot be written."""
    found = f"this cannot be written ({error.strerror or error})"
    return Problem(str(path), found, "check the folder, its permissions and the space left")


# Places.


@contextmanager
def _place_beside(target: Path, said: str | Path) -> Iterator[Path]:
    """A locked folder of our own beside a target. It is removed when the block ends. Errors name `said`."""
    with saying_why(said):
        make_folder(target.parent)
        sweep(target.parent)
        place, handle = _locked_place(target.parent)
    try:
        yield place
    finally:
        try:
            _remove_place(place)
        finally:
            os.close(handle)


def _remove_place(place: Path) -> None:
    """Remove a place, unless it holds an old folder that could not be put back under its name."""
    with suppress(OSError, ValueError):
        _put_back(place)
    if _waits_for_its_name(place):
        _log.warning(
            (
                "%s could not be put back. It is kept in %s, and the next command that writes to this "
                "folder puts it back."
            ),
            place.parent / (place / _NAME).read_text(encoding="utf8"),
            place / _REPLACED,
        )
    elif not (place / _KEEP).exists():
        # An error that passes does not leave it there for ever.
        shutil.rmtree(place, ignore_errors=True)
        if os.path.lexists(place):
            shutil.rmtree(place, ignore_errors=True)


def _locked_place(parent: Path) -> tuple[Path, int]:
    while True:
        place = parent / f".likewise-{secrets.token_hex(8)}"
        place.mkdir(mode=0o700)
        try:
            handle = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            continue  # swept away before it was locked
        # A file system that has no locks for folders is no obstacle: a place there is never swept.
        _lock(handle, wait=True)
        if place.exists():
            return place, handle
        os.close(handle)


def sweep(parent: Path) -> None:
    """Remove what killed processes left in a folder. Each process looks through a folder once."""
    _swept(str(parent), os.getpid())


@cache
def _swept(parent: str, process: int) -> None:
    with suppress(OSError, ValueError):
        places = [Path(parent) / name for name in os.listdir(parent) if _PLACE.fullmatch(name)]
        for place in places:
            with suppress(OSError, ValueError):
                _remove_dead(place)


def _remove_dead(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        # Somebody else's is none of our business, whatever it is called.
        if os.fstat(handle).st_uid == os.getuid() and _lock(handle):
            _remove_place(place)
    finally:
        os.close(handle)


def _exchange(whole: Path, target: Path, place: Path) -> None:
    """Exchange two folders: in one step if the system can, or else through the place."""
    if _exchanged_at_once(whole, target):
        return
    name = place / _NAME
    name.write_text(target.name, encoding="utf8")
    sync_file(name)
    sync_folder(place)
    target.rename(place / _REPLACED)
    try:
        whole.rename(target)
    except BaseException:
        _put_back(place)
        raise


def _give_back_unless(may_go: MayGo, whole: Path, target: Path, place: Path) -> None:
    """Undo an exchange if the old folder turns out to hold something that must not be removed."""
    old = whole if whole.exists() else place / _REPLACED
    if may_go(old):
        return
    # What is in it is somebody's: a place with this file is removed by nobody.
    (place / _KEEP).touch()
    try:
        if old == whole:
            _exchange(whole, target, place)
        else:
            target.rename(whole)
            _put_back(place)
    except BaseException:
        _log.warning("other files were added to %s in the meantime. They are kept in %s.", target, old)
        raise
    (place / _KEEP).unlink()
    found = f"other files were added to {target} in the meantime, so it was not replaced"
    raise UsageError(f"{found}. Move them away, or choose another {spelt('output')}.")


def _put_back(place: Path) -> None:
    """Give an old folder its name back, if the process stopped before replacing or removing it."""
    if _waits_for_its_name(place):
        (place / _REPLACED).rename(place.parent / (place / _NAME).read_text(encoding="utf8"))


def _waits_for_its_name(place: Path) -> bool:
    """Whether a place holds an old folder whose name is free."""
    name, replaced = place / _NAME, place / _REPLACED
    if name.is_symlink() or replaced.is_symlink() or not (name.is_file() and replaced.is_dir()):
        return False
    try:
        target = place.parent / name.read_text(encoding="utf8")
    except (OSError, ValueError):
        return False
    plain = target.parent == place.parent and _PLAIN_NAME.fullmatch(target.name)
    return bool(plain) and not os.path.lexists(target)


def _exchanged_at_once(one: Path, other: Path) -> bool:
    """Whether the system exchanged two names in one step (Linux: renameat2)."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    if libc.renameat2(_AT_CWD, paths[0], _AT_CWD, paths[1], _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))


def _refuse_input(target: Path, said: str | Path, *, inside: bool = False) -> None:
    """Refuse to overwrite a file that the command reads, by whatever name it was found."""
    found = find_input(target, inside=inside)
    if found is not None:
        raise UsageError(
            f"writing {said} would change {found}, which is an input. Choose another name for the output."
        )


def _real(path: str | Path) -> Path:
    """The path behind all links. A link is written through, not replaced."""
    return Path(os.path.realpath(path))


def _mode_of(path: Path) -> int | None:
    """The permissions of a file that is about to be replaced."""
    return path.stat().st_mode & 0o7777 if os.path.isfile(path) else None


@cache
def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
