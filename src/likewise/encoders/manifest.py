"""The list of files that a model was saved with, and the check that they are still the same.

model.json lists every file of its folder with its size and sha256. A changed weights file is an error,
because the answers would be those of another model. Another changed file gives a warning, because people do
edit a prompt or the maximum length. LIKEWISE_VERIFY=quick compares only sizes. Folders that were saved by
versions without this list load with a warning.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from likewise.encoders.reading import DAMAGED, MEBIBYTE, read_json
from likewise.errors import ModelError, UsageError
from likewise.files import file_sha256
from likewise.wording import in_one_line

VARIABLE = "LIKEWISE_VERIFY"
DOCUMENT = "likewise/model.json"
# The list lies in the first; people add to the second.
_UNLISTED = frozenset({DOCUMENT, "README.md"})
MOST_DOCUMENT = 16 * MEBIBYTE
# Settings and vocabularies that loaders look for by name, whether a model was saved with them or not.
_SETTINGS = (
    *("*config*.json", "*token*.json", "modules.json", "vocab*.json", "vocab*.txt", "merges.txt"),
    *("*.model", "*.spm", "*.jinja", "unigram.json"),
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger("likewise")
_told: set[str] = set()


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """The size and sha256 of every file of a saved model by path, for its model.json."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in _UNLISTED:
            found[name] = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    return found


def verify_files(folder: Path) -> None:
    """Raise an error if a model's weights have changed since it was saved; warn about other changed files."""
    how = os.environ.get(VARIABLE, "") or "full"
    if how not in ("full", "quick"):
        raise UsageError(f"{VARIABLE} is {how!r}, but it must be full or quick. Correct it or unset it.")
    document = folder / DOCUMENT
    if not os.path.lexists(document):
        return
    listed = read_json(document, most=MOST_DOCUMENT)
    files = listed.get("files") if isinstance(listed, dict) else None
    if files is None:
        _tell_once(folder, "saved without checksums by an earlier version, so damaged files may go unnoticed")
        return
    _check_list(files, document)
    _refuse_others(folder, files, how)


def _refuse_others(folder: Path, files: Mapping[str, Any], how: str) -> None:
    """Compare a folder with its list: every file must exist, and the weights must be the same."""
    for name in files:
        if not (folder / name).is_file():
            raise ModelError(
                f"{folder / name} is missing, so the folder is incomplete. Copy the model again."
            )
    changed = [name for name, saved in files.items() if _has_changed(folder / name, saved, how)]
    for name in changed:
        if name.endswith(".safetensors"):
            raise ModelError(
                f"{folder / name} is not the file that the model was saved with. Copy the model again, or "
                "save weights that you changed on purpose to another folder."
            )
    for name in _added_weights(folder, files):
        raise ModelError(f"{folder / name} was not there when the model was saved. Move it away.")
    if changed:
        _tell_once(folder, f"{', '.join(changed)} changed since the model was saved, so answers may differ")
    added = list(_added_settings(folder, files))
    if added:
        _tell_once(
            folder, f"{', '.join(added)} was not there when the model was saved, so answers may differ"
        )


def _check_list(files: Any, document: Path) -> None:
    for name, saved in files.items() if isinstance(files, dict) else [("", None)]:
        path = PurePosixPath(name)
        known = saved if isinstance(saved, dict) else {}
        if not isinstance(known.get("bytes"), int) or not _SHA256.fullmatch(str(known.get("sha256"))):
            raise ModelError(f"{document}: the list of files is damaged. Copy the model or train it again.")
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            raise ModelError(f"{document} lists {name!r}, which lies outside the folder; {DAMAGED}")


def _has_changed(path: Path, saved: Mapping[str, Any], how: str) -> bool:
    try:
        if path.stat().st_size != saved["bytes"]:
            return True
        return how == "full" and file_sha256(path) != saved["sha256"]
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); {DAMAGED}") from None


def _added_weights(folder: Path, files: Mapping[str, Any]) -> Iterator[str]:
    """Weights that were not saved with the model but are where a loader might read them."""
    return _added(folder, files, ("*.safetensors",))


def _added_settings(folder: Path, files: Mapping[str, Any]) -> Iterator[str]:
    """Settings and vocabularies that were not saved with the model but have names that loaders look for."""
    return _added(folder, files, _SETTINGS)


def _added(folder: Path, files: Mapping[str, Any], patterns: Iterable[str]) -> Iterator[str]:
    places = {PurePosixPath(name).parent.as_posix() for name in files}
    for place in sorted(places | {".", "likewise/label_encoder"}):
        found = {path for pattern in patterns for path in (folder / place).glob(pattern)}
        for path in sorted(found):
            name = path.relative_to(folder).as_posix()
            if name not in files and name not in _UNLISTED:
                yield name


def _tell_once(folder: Path, what: str) -> None:
    line = in_one_line(f"{folder}: {what}")
    if line not in _told:
        _told.add(line)
        _log.warning(line)
