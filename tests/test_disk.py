"""The one module that writes: whole or not there, lasting, swept, locked."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from likewise import disk
from likewise.disk import (
    BusyError,
    UnwritableError,
    drop_turn,
    folder_aside,
    locked,
    open_aside,
    own_turn,
    path_aside,
    remove_folder,
    saying_why,
    scratch_folder,
    write_json_aside,
    write_text_aside,
)
from likewise.errors import DataError, UsageError


@pytest.fixture(autouse=True)
def _sweeping_again():
    """A process looks through a folder once; tests are several writers in one process."""
    disk._swept.cache_clear()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed_writer(code: str, folder: Path) -> None:
    """Run a writer in a process of its own that is killed at the point where it calls `die`."""
    die = "import os, signal\ndef die(): os.kill(os.getpid(), signal.SIGKILL)\n"
    done = subprocess.run([sys.executable, "-c", die + code], cwd=folder, check=False)
    assert done.returncode == -9


def test_disk_file_appears_when_it_is_whole(tmp_path):
    with open_aside(tmp_path / "deep" / "er" / "a.txt") as file:
        file.write(b"new")
        assert not (tmp_path / "deep" / "er" / "a.txt").exists()
    assert (tmp_path / "deep" / "er" / "a.txt").read_bytes() == b"new"
    assert names(tmp_path / "deep" / "er") == ["a.txt"]


def test_disk_file_of_a_failed_block_leaves_the_old_one(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with suppress(ValueError), open_aside(tmp_path / "a.txt") as file:
        file.write(b"new")
        raise ValueError("no")
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_disk_file_keeps_the_permissions_of_the_one_it_replaces(tmp_path):
    (tmp_path / "a.txt").write_text("private")
    (tmp_path / "a.txt").chmod(0o600)
    write_text_aside(tmp_path / "a.txt", "new")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


def test_disk_files_are_readable_as_usual_though_a_library_wrote_them_for_their_owner_alone(tmp_path):
    with folder_aside(tmp_path / "m") as place:
        (place / "weights").write_bytes(b"0")
        (place / "weights").chmod(0o600)
    (tmp_path / "plain").write_bytes(b"0")
    usual = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "m" / "weights").stat().st_mode == usual


def test_disk_file_through_a_link_changes_what_the_link_leads_to(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text_aside(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_disk_name_of_255_bytes_can_be_written_and_a_longer_one_is_told(tmp_path):
    write_text_aside(tmp_path / ("n" * 255), "x")
    assert names(tmp_path) == ["n" * 255]
    with pytest.raises(UnwritableError, match="File name too long"):
        write_text_aside(tmp_path / ("n" * 256), "x")


def test_disk_folder_for_a_file_is_told(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        write_text_aside(tmp_path, "x")


def test_disk_file_below_a_file_is_told(tmp_path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(UnwritableError, match="cannot be written"):
        write_text_aside(tmp_path / "a" / "b.txt", "x")


def test_disk_full_device_is_told():
    with pytest.raises(UnwritableError, match="No space left"):
        write_text_aside("/dev/full", "x" * 100_000)


def test_disk_full_disk_that_a_library_hides_in_its_own_error_is_told(tmp_path):
    class LibraryError(Exception):
        pass

    with pytest.raises(UnwritableError, match="No space left"), path_aside(tmp_path / "a") as path:
        raise LibraryError(f"I/O error: writing {path} failed (os error 28)")


def test_disk_error_of_reading_inside_a_block_is_not_taken_for_one_of_writing(tmp_path):
    with pytest.raises(FileNotFoundError), open_aside(tmp_path / "a"):
        (tmp_path / "absent").read_bytes()


def test_disk_broken_pipe_stays_one():
    with pytest.raises(BrokenPipeError), saying_why("x"):
        raise BrokenPipeError(errno.EPIPE, "gone")


def test_disk_folder_is_exchanged_for_a_new_one(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "old").write_text("old")
    with folder_aside(tmp_path / "m", replace=lambda old: True) as place:
        (place / "new").write_text("new")
        assert names(tmp_path / "m") == ["old"]
    assert names(tmp_path) == ["m"]
    assert names(tmp_path / "m") == ["new"]


def test_disk_folder_that_is_there_is_not_replaced_unasked(tmp_path):
    (tmp_path / "m").mkdir()
    with (
        pytest.raises(UsageError, match="appeared while it was being written"),
        folder_aside(tmp_path / "m") as place,
    ):
        (place / "new").write_text("new")
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("step", ["os.rename", "os.fsync"])
def test_disk_killed_while_a_folder_is_replaced_leaves_old_or_new_whole(tmp_path, step):
    for count in range(8):
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m" / "a").write_text("old")
        (tmp_path / "m" / "b").write_text("old")
        killed_writer(
            f"""
from likewise import disk
real, calls = {step}, [0]
def counted(*a, **k):
    calls[0] += 1
    if calls[0] > {count}: die()
    return real(*a, **k)
{step} = counted
with disk.folder_aside("m", replace=lambda old: True) as place:
    (place / "a").write_text("new"); (place / "b").write_text("new")
die()
""",
            tmp_path,
        )
        found = {(tmp_path / "m" / name).read_text() for name in "ab"}
        assert len(found) == 1
    disk._swept.cache_clear()
    write_text_aside(tmp_path / "next", "x")
    assert names(tmp_path) == ["m", "next"]


def test_disk_without_an_exchange_in_one_step_a_killed_writer_loses_nothing(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a").write_text("old")
    killed_writer(
        """
from pathlib import Path
from likewise import disk
disk._exchanged_at_once = lambda one, other: False
real, calls = Path.rename, [0]
def counted(self, other):
    calls[0] += 1
    if calls[0] == 2: die()
    return real(self, other)
Path.rename = counted
with disk.folder_aside("m", replace=lambda old: True) as place:
    (place / "a").write_text("new")
""",
        tmp_path,
    )
    assert not (tmp_path / "m").exists()
    write_text_aside(tmp_path / "next", "x")
    assert (tmp_path / "m" / "a").read_text() == "old"
    assert names(tmp_path) == ["m", "next"]


def broken_renames(monkeypatch, *, after):
    """Every rename fails after some that went well."""
    real, calls = Path.rename, []

    def rename(self, other):
        calls.append(self)
        if len(calls) > after:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(self, other)

    monkeypatch.setattr(Path, "rename", rename)


def old_folder(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a").write_text("old")


def next_write(tmp_path):
    """What the next command finds: another process has not looked through the folder yet."""
    disk._swept.cache_clear()
    write_text_aside(tmp_path / "next", "x")
    (tmp_path / "next").unlink()


def replace_folder(tmp_path, may_go=lambda old: True):
    with folder_aside(tmp_path / "m", replace=may_go) as place:
        (place / "a").write_text("new")


def test_disk_an_old_folder_that_cannot_be_put_back_is_kept_for_the_next_write(tmp_path, monkeypatch, caplog):
    old_folder(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(disk, "_exchanged_at_once", lambda one, other: False)
        broken_renames(broken, after=1)
        with pytest.raises(DataError, match="Input/output error"):
            replace_folder(tmp_path)
    assert "is kept in" in caplog.text
    next_write(tmp_path)
    assert (tmp_path / "m" / "a").read_text() == "old"
    assert names(tmp_path) == ["m"]


def test_disk_an_interrupt_between_two_renames_loses_nothing(tmp_path, monkeypatch):
    old_folder(tmp_path)
    real = Path.rename

    def interrupted(self, other):
        real(self, other)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(disk, "_exchanged_at_once", lambda one, other: False)
        broken.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replace_folder(tmp_path)
    next_write(tmp_path)
    assert (tmp_path / "m" / "a").read_text() == "old"
    assert names(tmp_path) == ["m"]


def test_disk_a_folder_that_may_not_go_and_cannot_be_put_back_is_kept(tmp_path, monkeypatch):
    old_folder(tmp_path)
    with monkeypatch.context() as broken:
        broken_renames(broken, after=1)
        with pytest.raises(DataError, match="Input/output error"):
            remove_folder(tmp_path / "m", may_go=lambda folder: False)
    next_write(tmp_path)
    assert (tmp_path / "m" / "a").read_text() == "old"


@pytest.mark.parametrize("at_once", [True, False])
def test_disk_a_users_file_in_a_folder_that_cannot_be_given_back_is_kept(
    tmp_path, monkeypatch, caplog, at_once
):
    old_folder(tmp_path)
    exchanges = []

    def exchanged(one, other):
        exchanges.append(one)
        if not at_once:
            return False
        if len(exchanges) > 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        one.rename(tmp_path / "third")
        other.rename(one)
        (tmp_path / "third").rename(other)
        return True

    with monkeypatch.context() as broken:
        broken.setattr(disk, "_exchanged_at_once", exchanged)
        broken_renames(broken, after=3 if at_once else 2)
        with pytest.raises(DataError, match="Input/output error"):
            replace_folder(tmp_path, may_go=lambda old: False)
    next_write(tmp_path)
    [kept] = [path for path in tmp_path.rglob("a") if path.read_text() == "old"]
    assert str(kept.parents[1]) in caplog.text


def test_disk_removes_what_a_killed_writer_left_and_not_what_a_living_one_writes(tmp_path):
    killed_writer('from likewise import disk\nwith disk.open_aside("a") as f: die()', tmp_path)
    [left] = names(tmp_path)
    assert left.startswith(".likewise-")
    with open_aside(tmp_path / "b") as living:
        disk._swept.cache_clear()
        write_text_aside(tmp_path / "c", "x")
        assert not (tmp_path / left).exists()
        living.write(b"y")
    assert names(tmp_path) == ["b", "c"]


def test_disk_leaves_alone_what_only_looks_like_ours(tmp_path):
    (tmp_path / ".likewise-notes").mkdir()
    (tmp_path / "x.partial").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mine").write_text("x")
    (tmp_path / f".likewise-{'0' * 16}").symlink_to("outside")
    write_text_aside(tmp_path / "a", "x")
    assert (tmp_path / "outside" / "mine").exists()
    assert {".likewise-notes", "x.partial", "outside"} <= set(names(tmp_path))


@pytest.mark.parametrize("at_once", [True, False])
def test_disk_folder_that_got_a_file_at_the_last_moment_is_not_lost(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(disk, "_exchanged_at_once", lambda one, other: False)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "old").write_text("old")

    def may_go(folder):
        return names(folder) == ["old"]

    with pytest.raises(UsageError, match=r"other files were added to .* in the meantime"):
        write_model(tmp_path / "m", may_go, meanwhile=tmp_path / "m" / "thesis")
    assert names(tmp_path) == ["m"]
    assert names(tmp_path / "m") == ["old", "thesis"]


def write_model(target, may_go, meanwhile):
    with folder_aside(target, replace=may_go) as place:
        (place / "new").write_text("new")
        meanwhile.write_text("mine")


def test_disk_folder_that_may_not_go_stays(tmp_path):
    (tmp_path / "run").mkdir()
    assert not remove_folder(tmp_path / "run", may_go=lambda folder: False)
    assert names(tmp_path) == ["run"]
    assert remove_folder(tmp_path / "run")
    assert names(tmp_path) == []


def test_disk_file_that_appears_while_another_is_written_is_kept(tmp_path):
    with pytest.raises(UsageError, match="appeared while"):
        write_while_appearing(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "theirs"
    assert names(tmp_path) == ["a.csv"]


def write_while_appearing(path):
    with open_aside(path, replace=False) as file:
        path.write_text("theirs")
        file.write(b"ours")


def test_disk_file_without_replace_is_written_where_there_is_none(tmp_path):
    write_text_aside(tmp_path / "a.csv", "x", replace=False)
    assert (tmp_path / "a.csv").read_text() == "x"
    assert names(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("planted", ["link", "name", "bytes"])
def test_disk_place_that_somebody_planted_moves_nothing(tmp_path, planted):
    victim, place = tmp_path / "victim", tmp_path / "shared" / f".likewise-{'0' * 16}"
    victim.mkdir()
    place.mkdir(parents=True)
    (victim / "thesis.txt").write_text("x")
    if planted == "link":
        (place / "replaced").symlink_to(victim)
        (place / "name").write_text("taken")
    else:
        (place / "replaced").mkdir()
        (place / "name").write_bytes(b"../../taken" if planted == "name" else b"\xff\0")
    write_text_aside(tmp_path / "shared" / "out.csv", "x")
    assert names(victim) == ["thesis.txt"]
    assert names(tmp_path) == ["shared", "victim"]
    assert "out.csv" in names(tmp_path / "shared")


def test_disk_pipe_that_nobody_reads_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnwritableError, match="cannot be written"):
        write_text_aside(tmp_path / "pipe", "x")


def test_disk_folder_is_never_half_removed(tmp_path):
    (tmp_path / "run" / "deep").mkdir(parents=True)
    (tmp_path / "run" / "deep" / "a").write_text("x")
    killed_writer(
        """
import shutil
from likewise import disk
shutil.rmtree = lambda *a, **k: die()
disk.remove_folder("run")
""",
        tmp_path,
    )
    assert not (tmp_path / "run").exists()
    remove_folder(tmp_path / "absent")
    write_text_aside(tmp_path / "next", "x")
    assert names(tmp_path) == ["next"]


def test_disk_scratch_folder_of_a_killed_process_goes_with_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    killed_writer("from likewise import disk\nwith disk.scratch_folder() as f: die()", tmp_path)
    assert len(names(tmp_path)) == 1
    with scratch_folder() as own:
        assert names(tmp_path) == [own.name]
    assert names(tmp_path) == []


def test_disk_lock_is_held_by_one_and_goes_with_its_process(tmp_path):
    with locked(tmp_path / "lock", "busy"):
        code = 'import pathlib, likewise.disk as d\nwith d.locked(pathlib.Path("lock"), "busy"): pass'
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "BusyError: busy" in done.stderr
    killed_writer(
        'from pathlib import Path\nfrom likewise import disk\nwith disk.locked(Path("lock"), "busy"): die()',
        tmp_path,
    )
    with locked(tmp_path / "lock", "busy"):
        pass
    assert issubclass(BusyError, UsageError)


def test_disk_turn_of_a_killed_holder_is_dropped_and_one_that_is_held_is_not(tmp_path):
    turn = tmp_path / "cell.lock"
    turn.touch()
    drop_turn(turn)
    assert names(tmp_path) == []
    with own_turn(turn):
        drop_turn(turn)
        assert names(tmp_path) == ["cell.lock"]
    drop_turn(turn)
    assert names(tmp_path) == []


def test_disk_turn_is_no_link_and_no_file_of_the_users(tmp_path):
    (tmp_path / "link.lock").symlink_to(tmp_path / "created")
    (tmp_path / "notes.lock").write_text("mine", encoding="utf8")
    os.mkfifo(tmp_path / "pipe.lock")
    for name, found in (
        ("link", "is a link"),
        ("notes", "is not an empty file"),
        ("pipe", "is not an empty"),
    ):
        with ExitStack() as stack, pytest.raises(UsageError, match=found):
            stack.enter_context(own_turn(tmp_path / f"{name}.lock"))
        drop_turn(tmp_path / f"{name}.lock")
    assert names(tmp_path) == ["link.lock", "notes.lock", "pipe.lock"]
    assert (tmp_path / "notes.lock").read_text(encoding="utf8") == "mine"


def test_disk_place_that_cannot_be_removed_for_a_moment_goes_all_the_same(tmp_path, monkeypatch):
    remove, failed = os.rmdir, []

    def fail_once(path, **options):
        if not failed:
            failed.append(path)
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return remove(path, **options)

    monkeypatch.setattr(os, "rmdir", fail_once)
    write_text_aside(tmp_path / "found.txt", "whole")
    assert failed
    assert names(tmp_path) == ["found.txt"]


def test_disk_json_without_nan(tmp_path):
    write_json_aside(tmp_path / "a.json", {"x": float("nan"), "y": [1.5, float("inf")]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": None, "y": [1.5, None]}


def test_disk_syncs_a_file_before_it_is_named_and_the_folder_after(tmp_path, monkeypatch):
    told = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda f: (told.append(os.readlink(f"/proc/self/fd/{f}")), fsync(f))[1])
    monkeypatch.setattr(Path, "replace", lambda a, b: (told.append("named"), replace(a, b))[1])
    write_text_aside(tmp_path / "a", "x")
    assert told[0].endswith("/whole")
    assert told[1:] == ["named", str(tmp_path)]
