"""The log of test runs: one JSON line for every measurement on a test set, so that all of them are counted.

The file is only ever appended to, with one `write` per line, so that parallel runs do not mix their lines. A
line is on disk before its run is reported.
"""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from likewise.disk import UnwritableError, make_folder
from likewise.errors import DataError, Problem
from likewise.files import find_input

LOG_VARIABLE = "LIKEWISE_TEST_LOG"
DEFAULT_LOG = Path("runs") / "likewise-test-runs.jsonl"


class LoggedResult(Protocol):
    """A result that names its suite and protocol."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form with `suite` and `protocol`."""


def log_path(path: str | Path | None = None) -> Path:
    """The log file: the given one, the one in LIKEWISE_TEST_LOG, or runs/likewise-test-runs.jsonl."""
    return Path(path or os.environ.get(LOG_VARIABLE) or DEFAULT_LOG)


def _refuse_others(target: Path) -> None:
    """Refuse to add a line to a file that is an input, or that is not a log of ours."""
    if find_input(target) is None and _is_log(target):
        return
    remedy = f"name another file in {LOG_VARIABLE}"
    raise UnwritableError(
        [Problem(str(target), "this is not a log of test runs, so no line was added to it", remedy)]
    )


def _is_log(target: Path) -> bool:
    """Whether a file begins as a log does, or does not exist yet. A device accepts anything."""
    if not target.is_file():
        return True
    with target.open("rb") as file:
        start = file.read(len(_BEGINS))
    return not start or start == _BEGINS


_BEGINS = b'{"date": "'


def log_test_run(
    result: LoggedResult,
    *,
    model: str,
    fingerprint: str = "",
    recipe: str = "",
    path: str | Path | None = None,
) -> Path:
    """Append one run to the log, without its predictions, and return the log's path."""
    measured = result.to_dict()
    measured.pop("predictions", None)
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "suite": measured.pop("suite"),
        "model": model,
        "fingerprint": fingerprint,
        "recipe": recipe,
        "protocol": measured.pop("protocol"),
        "result": measured,
    }
    target = log_path(path)
    data = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()
    try:
        make_folder(target.parent)
        _refuse_others(target)
        _append(target, data)
    except OSError as error:
        problem = Problem(
            str(target), f"this cannot be written ({error.strerror})", f"name another log in {LOG_VARIABLE}"
        )
        raise UnwritableError([problem]) from None
    return target


def read_log(path: str | Path | None = None) -> list[dict[str, Any]]:
    """All runs in the log, oldest first. A missing log holds none, and a damaged line is an error."""
    target = log_path(path)
    if not target.exists():
        return []
    runs, problems = [], []
    for number, line in enumerate(target.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            run = json.loads(line)
        except ValueError:
            run = None
        if isinstance(run, dict):
            runs.append(run)
        else:
            problems.append(
                Problem(f"{target}:{number}", "this is not a JSON object", "repair or remove this line")
            )
    if problems:
        raise DataError(problems)
    return runs


def _append(target: Path, data: bytes) -> None:
    # One write on a file opened with O_APPEND is placed whole at the end, also beside other writers.
    handle = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            data = b"\n" + data  # a line that a full disk cut short spoils no other
        written = os.write(handle, data)
        if written != len(data):
            if os.fstat(handle).st_size == size + written:  # nobody has written after us
                os.ftruncate(handle, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    finally:
        os.close(handle)
